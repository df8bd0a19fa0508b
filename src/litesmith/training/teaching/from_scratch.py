"""Training from scratch: a network of the catalogue learns a user's classes from random weights,
with batch normalization that is folded away afterwards.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from litesmith.data.preparation import NORMS, Preparation
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import regraph, rewrite, with_graphs
from litesmith.ir.softmax_scores import scores_of
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.known_networks import NetworkSpec, catalogue_room
from litesmith.numeric.affine import rows_of
from litesmith.passes.core.layers import Layer, layers_of, real_bias, real_values
from litesmith.phrases import phrase
from litesmith.training.augment import Augment
from litesmith.training.fit import Fitted, Pace, fit
from litesmith.training.lesson import batch_size, keep_on_device, precision, stack_samples
from litesmith.training.ops.elementwise_ops import apply_activation
from litesmith.training.ops.lift import Lift, constants_of
from litesmith.training.sample_arrays import TrainingSamples, gather_samples
from litesmith.training.settings import Training, Watch
from litesmith.training.step_tuner import device_named
from litesmith.training.teaching.finetune import LABELS_ONLY, record_of
from litesmith.training.teaching.retrain_request import RetrainRequest, Trained
from litesmith.training.teaching.retraining import RetrainJob
from litesmith.training.weight_parameters import Free, unit_of
from litesmith.transfer.embedding import Embedding, cut_at, embedding_of
from litesmith.transfer.labelled_data import Labelled
from litesmith.units import number_text, time_text, total_text

# Added to a variance, so that a constant channel is not blown up.
_EPSILON = 1e-3

Inputs = Sequence[torch.Tensor | Array]


class Normed:
    """A float network in training, with batch normalization added.

    Every layer that makes a map gives each channel a learned mean and deviation, whatever its
    weights: random weights learn fast that way. A batch needs two samples or more. `settled` and
    `written` fold the statistics of some samples into weights and biases: the same network again.
    """

    def __init__(self, model: Model, device: torch.device | str = "cpu") -> None:
        self.model, self.device = model, torch.device(device)
        self._layers = list(layers_of(model.main).values())
        self._normed = {
            layer.op.outputs[0]: layer
            for layer in self._layers
            if layer.bias is not None and len(layer.op.outputs[0].shape) == 4
        }
        wanted = [scores_of(model.main, tensor) for tensor in model.main.outputs]
        self._plain = Lift(model, wanted)
        self._bare = Lift(_without_activations(model, self._normed), wanted)
        self._fixed = constants_of(model, self.device)
        self._weights = {layer.weight: self._weight(layer) for layer in self._layers}
        self._biases = {
            layer.bias: self._part(real_bias(layer))
            for layer in self._layers
            if layer.bias is not None and layer.op.outputs[0] not in self._normed
        }
        self._gains = {t: self._part(_gain(layer)) for t, layer in self._normed.items()}
        self._means = {t: self._part(np.zeros(x.channels)) for t, x in self._normed.items()}
        self._settled: dict[Tensor, torch.Tensor] | None = None

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        kinds = (self._weights, self._biases, self._gains, self._means)
        return [p for parts in kinds for part in parts.values() for p in part.parameters()]

    def __call__(self, inputs: Inputs) -> list[torch.Tensor]:
        """The scores of a batch: by its own means and deviations, or by those of `settled`."""
        if self._settled is not None:
            return self._plain(inputs, self._settled)
        return self._bare(inputs, self._constants(), self._normalised)

    @contextmanager
    def settled(self, inputs: Inputs) -> Generator[None]:
        """Inside the block, these samples provide the statistics, instead of each batch its own."""
        self._settled = self._folded(inputs)
        try:
            yield
        finally:
            self._settled = None

    def written(self, inputs: Inputs) -> Model:
        """The trained network; these samples provide the statistics."""
        folded = self._folded(inputs)
        parts = [t for x in self._layers for t in (x.weight, x.bias) if t is not None]
        now = {tensor: _filled(tensor, folded[tensor].cpu().numpy()) for tensor in parts}
        return with_graphs(self.model, [rewrite(self.model.main, tensors=now)], now)

    def _constants(self) -> dict[Tensor, torch.Tensor]:
        trained = (*self._weights.items(), *self._biases.items())
        return {**self._fixed, **{tensor: part() for tensor, part in trained}}

    def _normalised(self, op: Op, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
        """A map after normalization by its own batch, and the activation that comes behind it."""
        del op
        if tensor not in self._normed:
            return value
        rows = value.reshape(-1, value.shape[-1])
        gain, mean = self._gains[tensor](), self._means[tensor]()
        made = functional.batch_norm(rows, None, None, gain, mean, True, eps=_EPSILON)
        return apply_activation(self._normed[tensor].op, made.reshape(value.shape))

    @torch.no_grad()
    def _folded(self, inputs: Inputs) -> dict[Tensor, torch.Tensor]:
        """The network's constants with the normalization folded in: the same function, sample by
        sample.
        """
        constants = self._constants()
        folded = dict(constants)

        def through(op: Op, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
            if tensor in self._normed:
                layer = self._normed[tensor]
                rows = value.reshape(-1, layer.channels)
                factor = self._gains[tensor]() / (rows.var(0, correction=0) + _EPSILON).sqrt()
                along = [-1 if at == layer.axis else 1 for at in range(len(layer.weight.shape))]
                folded[layer.weight] = constants[layer.weight] * factor.reshape(along)
                assert layer.bias is not None
                shift = (constants[layer.bias].reshape(-1) - rows.mean(0)) * factor
                folded[layer.bias] = self._means[tensor]() + shift
            return self._normalised(op, tensor, value)

        self._bare(inputs, constants, through)
        return folded

    def _weight(self, layer: Layer) -> Free:
        values = real_values(layer.weight)
        return self._part(values, unit_of(values, layer.axis))

    def _part(self, values: Array, unit: Array | None = None) -> Free:
        given, units = (
            torch.from_numpy(np.array(a, np.float32)).to(self.device)
            for a in (values, np.ones(()) if unit is None else unit)
        )
        return Free(given, units, None)


def _without_activations(model: Model, normed: dict[Tensor, Layer]) -> Model:
    """The same graph, with normalised layers giving their values before the activation."""
    ops = list(model.main.ops)
    for place, op in enumerate(ops):
        if op.outputs[0] in normed and op.options is not None:
            plain = op.options.set(fused_activation_function="NONE")
            ops[place] = replace(op, options=plain)
    return with_graphs(model, [regraph(model.main, ops=ops)])


def _gain(layer: Layer) -> Array:
    """The deviation that random weights were made for: less at the end of a branch that is added
    to its own input, 1 elsewhere, also where more makes up for an activation."""
    squares = (rows_of(real_values(layer.weight), layer.axis) ** 2).sum(axis=1)
    return np.full(layer.channels, min(1.0, float(np.sqrt(squares.mean()))))


def _filled(tensor: Tensor, values: Array) -> Tensor:
    data = np.ascontiguousarray(values.reshape(tensor.shape), np.float32)
    data.setflags(write=False)
    return replace(tensor, data=data)


# Random weights take, and need, larger steps than trained ones; and what they know after a few
# steps is chance, so that no early evaluation ends the training.
_MANNER = Pace(rates=(3e-3, 1e-2, 3e-2), patience=1_000)

# The samples behind the statistics of each channel: this many per held-out sample, at most this
# many in all; and the largest number of values in a map for them.
_PER_HELD, _MOST_USUAL, _MOST_VALUES = 3, 512, 50_000_000

# One sample alone deviates from nothing.
_LEAST_BATCH = 2

# The normalisation of pictures where the catalogue has none that could be had with other data.
_USUAL_NORM = "tf"


def normalised(request: RetrainRequest) -> tuple[RetrainRequest, str]:
    """The request with the catalogue's normalisation, unless it has another, and a note."""
    spec, asked = _spec(request), request.preparation
    if asked.is_chosen:
        return request, ""
    if spec.row.shape is not None:  # features of sounds, not pictures
        return replace(request, preparation=replace(asked, norm="raw")), ""
    if spec.row.scaling is not None:
        mean, std = spec.row.scaling
        made = replace(asked, mean=(mean,), std=(std,))
    else:
        made = replace(asked, norm=spec.row.norm if spec.row.norm in NORMS else _USUAL_NORM)
    return replace(request, preparation=made), _note(spec, made)


def _note(spec: NetworkSpec, made: Preparation) -> str:
    named = phrase(" {norm}", made.norm) if made.norm else ""
    published = spec.row.norm
    is_own = published in NORMS or not made.norm
    why = (
        phrase("usual for {name}", spec.name)
        if is_own
        else phrase("for {name}, of which {published!r} is known", spec.name, published)
    )
    return phrase(
        "normalisation{named} ({formula}), {why}; --norm says otherwise",
        named,
        made.as_norm().formula,
        why,
    )


def _spec(request: RetrainRequest) -> NetworkSpec:
    return catalogue_room().parse(request.backbone.as_posix())


def _build(network: NetworkSpec, classes: int | None, seed: int | None) -> Model:
    """The network, which ends in scores and is padded as the runtime does it best."""
    return catalogue_room().build(str(network), classes, seed, style="tf")


def opened(job: RetrainJob, request: RetrainRequest) -> tuple[Embedding, Labelled, Labelled]:
    """The network's embedding, the data to learn from, and the data to judge by."""
    spec = _spec(request)
    whole = _build(spec, None, None)
    embedding = embedding_of(whole)
    features = cut_at(whole, embedding.tensor)
    learned, proof = job.part_data(features, features)
    found = len(learned.names)
    if spec.classes is not None and spec.classes != found:
        raise BadInput(
            "{spec}: asks for {classes} classes, and {source} has {found}; leave out /{classes}",
            spec,
            spec.classes,
            learned.data.source,
            found,
        )
    return embedding, learned, proof


def trained(learned: Labelled, request: RetrainRequest, watch: Watch | None = None) -> Trained:
    """The network for the classes of the data, trained; CannotApply where it learned nothing."""
    spec, training = _spec(request), request.training
    samples = gather_samples(learned.data, labelled=True)
    if request.balance:
        samples = _balanced(samples)
    start = _build(spec, len(learned.names), training.seed)
    course = _Course(Normed(start, device_named(training.device)), samples, training)
    record = record_of(start, learned.data, request)
    fitted = fit(course, training, course.batch, checkpoint=record, watch=watch, manner=_MANNER)
    told = _describe_training(spec, fitted, course)
    if not fitted.best < fitted.first:
        raise CannotApply(
            "{told}: nothing was learned; give more --epochs, a smaller --rate, or look at "
            "the labels",
            told,
        )
    return Trained(course.written(), str(spec), told, fitted.first, fitted.best)


class _Course:
    """A network and samples with the classes to predict: a `Trainable` for `fit`."""

    def __init__(self, network: Normed, samples: TrainingSamples, training: Training) -> None:
        self._network, self.given = network, samples
        self._augment = Augment(network.model.main, training.augment, training.seed)
        self.parameters, self.masks = network.parameters, list[torch.Tensor]()
        self.samples = len(samples.learned)
        self.device = network.device
        usual = batch_size(network.model, self.samples, self.device)
        self.batch = max(_LEAST_BATCH, training.batch or usual)
        self._near = keep_on_device(samples, (), self.device)
        self._usual = _usual(samples, network.model)

    def draw(self, places: Array, turn: int) -> list[Array] | None:
        """The places of samples and the random changes to them; None where they are not on the
        device."""
        if self._near is None:
            return None
        shapes = [(len(places) * s.shape[1], *s.shape[2:]) for s in self.given.inputs]
        return [self.given.learned[places], *self._augment.draw(shapes, turn)]

    def loss_of(self, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
        """The loss from the result of `draw`, computed on the device alone."""
        assert self._near is not None
        places, *chance = drawn
        inputs, mixed = self._augment.change(self._near.inputs_at(places), chance)
        with precision(self.device, exact=False, coarse=True):
            answers = self._network(inputs)
        return LABELS_ONLY(answers, (), self._near.labels_at(places), mixed)

    def loss(self, places: Array, turn: int) -> torch.Tensor:
        places = self.given.learned[places]
        inputs, mixed = self._augment(self._inputs(places), turn)
        with precision(self._network.device, exact=False, coarse=True):
            answers = self._network(inputs)
        return LABELS_ONLY(answers, (), self._labels(places), mixed)

    @torch.no_grad()
    def held_out(self) -> float:
        """The loss on held-out samples, with the statistics of the data: the network as it would be
        written."""
        held, total = self.given.held, 0.0
        with (
            precision(self._network.device, exact=True, coarse=False),
            self._network.settled(self._inputs(self._usual)),
        ):
            for start in range(0, len(held), self.batch):
                places = held[start : start + self.batch]
                answers = self._network(self._inputs(places))
                loss = LABELS_ONLY(answers, (), self._labels(places))
                total += float(loss) * len(places)
        return total / len(held)

    def mask(self, progress: float) -> None:
        """There is nothing to mask."""

    def written(self) -> Model:
        with precision(self._network.device, exact=True, coarse=False):
            return self._network.written(self._inputs(self._usual))

    def _inputs(self, places: Array) -> list[torch.Tensor | Array]:
        return [stack_samples(store[places], self._network.device) for store in self.given.inputs]

    def _labels(self, places: Array) -> torch.Tensor:
        assert self.given.labels is not None
        return torch.from_numpy(self.given.labels[places].reshape(-1)).to(self._network.device)


def _usual(samples: TrainingSamples, model: Model) -> Array:
    """The places of evenly spread samples for the statistics; fewer where maps are large."""
    places = np.unique(samples.learned)
    largest = max(t.elements for op in model.main.ops for t in op.outputs)
    wanted = min(_MOST_USUAL, max(_LEAST_BATCH, _MOST_VALUES // largest), len(places))
    count = min(wanted, _PER_HELD * len(samples.held))
    return places[np.arange(count) * len(places) // count]


def _balanced(samples: TrainingSamples) -> TrainingSamples:
    """Each class as often as the largest: the samples of others come again in every epoch."""
    assert samples.labels is not None
    labels = samples.labels[samples.learned, 0]
    own = [samples.learned[labels == label] for label in np.unique(labels)]
    most = max(map(len, own))
    return replace(samples, learned=np.concatenate([np.resize(one, most) for one in own]))


def _describe_training(spec: NetworkSpec, fitted: Fitted, course: _Course) -> str:
    """The course of the training in one sentence."""
    epochs = round(fitted.steps / max(1, course.samples // course.batch), 1)
    return phrase(
        "{spec} trained from random weights, {number} epochs of {count} samples at rate "
        "{number2}, {time}: loss on {count2} others {number3} → {number4}",
        spec,
        number_text(epochs),
        total_text(course.samples),
        number_text(fitted.rate),
        time_text(fitted.seconds * 1e6),
        total_text(len(course.given.held)),
        number_text(fitted.first),
        number_text(fitted.best),
    )
