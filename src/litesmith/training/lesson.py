"""What a model learns: samples, the answers to approach (the original model's, the labels, or
both), and the distance of the model from these answers.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional

from litesmith.calibration.observe import open_apart
from litesmith.data.answers import real
from litesmith.data.samples import as_stored
from litesmith.errors import BadInput
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.ops import OPS
from litesmith.ir.softmax_scores import ends_in_softmax, judged_outputs, scores_of
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.passes.core.step import Masks
from litesmith.training.augment import Augment, Mixed
from litesmith.training.ops.lift import Lift, constants_of, is_real
from litesmith.training.sample_arrays import TrainingSamples, room
from litesmith.training.student import Student
from litesmith.units import plain

# Softens the target, because the ranking of the other classes teaches too. Where the original is
# certain, its probabilities say little and the errors of the scores say more.
_TEMPERATURE = 2.0

# An output that varies by less than a hundredth of its size would outweigh all others, for errors
# that no rounding can avoid.
_LEAST_SPREAD = 1e-4

# The weight of the errors of the blocks' sums beside the errors of the answers. ResNet-8 at 1.55
# times the speed, 450 epochs: 83.2 % right without, 83.5 % with; its held-out loss is 5 % lower.
_OF_SUMS = 2.0

# Samples that are evaluated at once.
_AT_ONCE = 64


@dataclass(frozen=True)
class Aim:
    """The distance of answers from their targets; 0 means reached.

    classes  for each output, True where it holds scores of classes: these are compared as
             probabilities too, other outputs by squared errors alone
    spreads  the variance of each output of the original, to which errors are relative
    scores   the place of the output that labels refer to; None where there are no labels
    follow   the weight of the original's answers; the labels have the rest
    """

    classes: tuple[bool, ...]
    spreads: tuple[float, ...]
    scores: int | None = None
    follow: float = 1.0

    def __call__(
        self,
        answers: Sequence[torch.Tensor],
        wanted: Sequence[torch.Tensor],
        labels: torch.Tensor | None,
        mixed: Mixed | None = None,
    ) -> torch.Tensor:
        """The mean over a batch; a mixed sample has the labels of both, by their shares.

        Sums of blocks may follow the answers on either side; the distance leaves them out.
        """
        total = torch.zeros((), device=answers[0].device)
        if self.follow:
            count = len(self.classes)
            for place, (answer, target) in enumerate(zip(answers[:count], wanted, strict=False)):
                total = total + self.follow * self._distance(place, answer.float(), target)
            total = total + self.follow * _sums_distance(answers[count:], wanted[count:])
        if self.follow < 1:
            assert labels is not None and self.scores is not None
            scores = answers[self.scores].float().reshape(len(labels), -1)
            total = total + (1 - self.follow) * _label_loss(scores, labels, mixed)
        return total

    def _distance(self, place: int, answer: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        target = target.reshape(answer.shape)  # numbers without a dimension have one in stores
        error = functional.mse_loss(answer, target) / self.spreads[place]
        if not self.classes[place]:
            return error
        ours, theirs = (
            functional.log_softmax(scores / _TEMPERATURE, -1).reshape(-1, scores.shape[-1])
            for scores in (answer, target)
        )
        divergence = functional.kl_div(ours, theirs, reduction="batchmean", log_target=True)
        return divergence.clamp_min(0) * _TEMPERATURE**2 + error


def _sums_distance(
    sums: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]
) -> torch.Tensor | float:
    """The distance of the sums behind blocks from the original's, relative to the variance of
    these."""
    errors = [
        functional.mse_loss(ours.float(), theirs) / theirs.var().clamp_min(1e-12)
        for ours, theirs in zip(sums, wanted, strict=False)
    ]
    return _OF_SUMS * torch.stack(errors).mean() if errors else 0.0


def _label_loss(scores: torch.Tensor, labels: torch.Tensor, mixed: Mixed | None) -> torch.Tensor:
    """The cross entropy of the scores with the labels."""
    if mixed is None:
        return functional.cross_entropy(scores, labels)
    own, others = (
        functional.cross_entropy(scores, which, reduction="none")
        for which in (labels, labels[mixed.others])
    )
    return (mixed.kept * own + (1 - mixed.kept) * others).mean()


def aim_of(
    graph: Graph, wanted: Sequence[Array], *, scores: int | None = None, follow: float = 1.0
) -> Aim:
    """The aim that suits a model's outputs; `wanted` are the original's answers, `scores` the place
    of the output that labels refer to."""
    outputs = judged_outputs(graph)
    spreads = tuple(map(_spread, outputs, wanted))
    classes = tuple(
        ends_in_softmax(graph, tensor) or place == scores for place, tensor in enumerate(outputs)
    )
    return Aim(classes, spreads, scores, follow if scores is not None else 1.0)


def scores_place(graph: Graph, rows: int) -> int | None:
    """The place of the output with a score for each class in this many rows, SOFTMAX first."""
    outputs = judged_outputs(graph)
    candidates = [
        place
        for place, tensor in enumerate(outputs)
        if tensor.shape and tensor.elements == rows * tensor.shape[-1] > rows
    ]
    softmaxes = [place for place in candidates if ends_in_softmax(graph, outputs[place])]
    return next(iter((*softmaxes, *candidates)), None)


def _spread(tensor: Tensor, values: Array) -> float:
    """The variance of an output; for an almost constant output, a small part of its squared
    size."""
    count, total, squares = 0, 0.0, 0.0
    for start in range(0, len(values), _AT_ONCE):  # all of them may not fit into memory
        part = values[start : start + _AT_ONCE].astype(np.float64)
        count, total, squares = count + part.size, total + part.sum(), squares + (part**2).sum()
    if not np.isfinite(squares):
        raise BadInput(
            "output {name!r} of the original is infinite or not a number on some samples, "
            "and cannot be followed; leave these out, or mend the data",
            plain(tensor.name),
        )
    square, mean = squares / max(count, 1), total / max(count, 1)
    return max(float(square - mean**2), _LEAST_SPREAD * float(square)) or 1.0


# Samples of a step, where memory allows; and the bytes that their activations may take.
_BATCH, _GPU_BATCH, _MOST_BYTES = 64, 128, 3_000_000_000

Inputs = Sequence[torch.Tensor | Array]

# Values that are held of each activation: as computed, as rounded, and for the way back.
_COPIES = 3


def shared_sums(ours: Graph, theirs: Graph) -> list[tuple[Tensor, Tensor]]:
    """The sums that end blocks in both graphs: sums of computed values, of equal names and
    shapes."""
    sums = [
        {op.outputs[0].name: op.outputs[0] for op in graph.ops if _is_sum(op)}
        for graph in (ours, theirs)
    ]
    pairs = [(sums[0][name], sums[1][name]) for name in sums[0] if name in sums[1]]
    return [(one, other) for one, other in pairs if one.shape == other.shape]


def _is_sum(op: Op) -> bool:
    adds = OPS[op.kind].arithmetic == "+"
    result = op.outputs[0]
    computed = not any(t is None or t.is_const for t in op.inputs)
    return adds and computed and bool(result.name) and result.dtype == "float32"


class Teacher:
    """The original, whose answers are followed: its scores, and after them some sums."""

    def __init__(self, model: Model, device: torch.device, sums: Sequence[Tensor] = ()) -> None:
        self.device, self.model = device, model
        wanted = [scores_of(model.main, t) for t in judged_outputs(model.main)]
        self._lift = Lift(model, [*wanted, *sums])
        self._constants = constants_of(model, device)

    @torch.no_grad()
    def __call__(self, inputs: Sequence[torch.Tensor | Array]) -> list[torch.Tensor]:
        return self._lift(inputs, self._constants)


def answers(teacher: Teacher, samples: TrainingSamples) -> tuple[Array, ...]:
    """The original's answers to every sample."""
    stores: list[Array] = []
    count = len(samples.inputs[0])
    batch = batch_size(teacher.model, count)
    for place in range(0, count, batch):
        places = np.arange(place, min(place + batch, count))
        inputs = [stack_samples(store[places], teacher.device) for store in samples.inputs]
        answers = [a.cpu().numpy() for a in teacher(inputs)]
        answers = [a.reshape(len(places), -1, *a.shape[1:]) for a in answers]
        stores = stores or [room(count, a.shape[1:], a.dtype) for a in answers]
        for store, answer in zip(stores, answers, strict=True):
            store[places] = answer
    return tuple(stores)


def stack_samples(values: Array, device: torch.device) -> torch.Tensor | Array:
    """Samples side by side along the first axis; integers stay arrays."""
    joined = _stack(values)
    return torch.from_numpy(joined).to(device) if joined.dtype == np.float32 else joined


def _stack(values: Array) -> Array:
    return np.ascontiguousarray(values.reshape(-1, *values.shape[2:]))


def batch_size(model: Model, samples: int, device: torch.device | None = None) -> int:
    """The number of samples per step that suits the data, the memory and the device."""
    values = sum(t.elements for op in model.main.ops for t in op.outputs if is_real(t))
    held = values * _COPIES * np.dtype(np.float32).itemsize
    usual = _BATCH if device is None or device.type != "cuda" else _GPU_BATCH
    most = min(usual, max(1, samples // 8), max(1, _MOST_BYTES // max(held, 1)))
    return 1 << (most.bit_length() - 1)


class DeviceSamples:
    """Samples that are entirely on the device, with their targets and labels.

    inputs, wanted, labels  as tensors, indexed by sample
    """

    def __init__(
        self, samples: TrainingSamples, wanted: Sequence[Array], device: torch.device
    ) -> None:
        self.inputs = [torch.from_numpy(store).to(device) for store in samples.inputs]
        self.wanted = [torch.from_numpy(store).to(device) for store in wanted]
        labels = samples.labels
        self.labels = None if labels is None else torch.from_numpy(labels).to(device)

    def inputs_at(self, places: torch.Tensor) -> list[torch.Tensor | Array]:
        return [_rows(store[places]) for store in self.inputs]

    def wanted_at(self, places: torch.Tensor) -> list[torch.Tensor]:
        return [_rows(store[places]) for store in self.wanted]

    def labels_at(self, places: torch.Tensor) -> torch.Tensor | None:
        return None if self.labels is None else self.labels[places].reshape(-1)


def _rows(values: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, *values.shape[2:])


def keep_on_device(
    samples: TrainingSamples, wanted: Sequence[Array], device: torch.device
) -> DeviceSamples | None:
    """Puts the samples on a GPU, where they fit into half of its free memory and are real
    numbers."""
    stores = (*samples.inputs, *wanted)
    if device.type != "cuda" or any(store.dtype != np.float32 for store in samples.inputs):
        return None
    free, _ = torch.cuda.mem_get_info(device)
    is_small = sum(store.nbytes for store in stores) < free // 2
    return DeviceSamples(samples, wanted, device) if is_small else None


class Lesson:
    """A student, samples, and the target answers: a `Trainable` for `fit`.

    A teacher answers augmented samples; without a teacher, only labels count.
    """

    def __init__(
        self,
        student: Student,
        samples: TrainingSamples,
        wanted: Sequence[Array],
        aim: Aim,
        *,
        masks: Masks | None = None,
        augment: Augment,
        teacher: Teacher | None = None,
        batch: int = 0,
    ) -> None:
        self._student, self._samples, self._wanted = student, samples, wanted
        self._aim, self._schedule = aim, masks
        self._augment, self._teacher = augment, teacher
        self.parameters, self.masks = student.parameters, student.masks
        self.samples = len(samples.learned)
        self.device = student.device
        self.batch = batch or batch_size(student.model, self.samples, self.device)
        self._near = keep_on_device(samples, wanted, self.device)

    def draw(self, places: Array, turn: int) -> list[Array] | None:
        """The places of samples and the random changes to them; None where they are not on the
        device."""
        if self._near is None:
            return None
        shapes = [(len(places) * s.shape[1], *s.shape[2:]) for s in self._samples.inputs]
        drawn = [] if self._augment.is_idle else self._augment.draw(shapes, turn)
        return [self._samples.learned[places], *drawn]

    def loss_of(self, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
        """The loss from the result of `draw`, computed on the device alone."""
        near = self._near
        assert near is not None
        places, *chance = drawn
        inputs, mixed, wanted = near.inputs_at(places), None, near.wanted_at(places)
        if chance:
            inputs, mixed = self._augment.change(inputs, chance)
            wanted = [] if self._teacher is None else self._teacher(inputs)
        with precision(self.device, exact=False, coarse=not self._student.is_quantized):
            answers = self._student(inputs)
        return self._aim(answers, wanted, near.labels_at(places), mixed)

    def loss(self, places: Array, turn: int) -> torch.Tensor:
        return self._loss(self._samples.learned[places], turn)

    @torch.no_grad()
    def held_out(self) -> float:
        held = self._samples.held
        groups = [held[start : start + self.batch] for start in range(0, len(held), self.batch)]
        losses = [float(self._loss(group)) * len(group) for group in groups]
        return sum(losses) / len(held)

    def mask(self, progress: float) -> None:
        if self._schedule is not None:
            self._student.mask_by(self._schedule, progress)

    def _loss(self, places: Array, turn: int | None = None) -> torch.Tensor:
        device = self._student.device
        inputs = [stack_samples(store[places], device) for store in self._samples.inputs]
        wanted: Sequence[torch.Tensor] | None = None
        mixed: Mixed | None = None
        if turn is not None and not self._augment.is_idle:
            inputs, mixed = self._augment(inputs, turn)
            wanted = [] if self._teacher is None else self._teacher(inputs)
        with precision(device, exact=turn is None, coarse=not self._student.is_quantized):
            answers = self._student(inputs)
        return self._distance(answers, places, wanted, mixed)

    def _distance(
        self,
        answers: Sequence[torch.Tensor],
        places: Array,
        wanted: Sequence[torch.Tensor] | None = None,
        mixed: Mixed | None = None,
    ) -> torch.Tensor:
        device = answers[0].device
        if wanted is None:
            wanted = [torch.from_numpy(_stack(w[places])).to(device) for w in self._wanted]
        labels = self._samples.labels
        known = None if labels is None else torch.from_numpy(labels[places].reshape(-1)).to(device)
        return self._aim(answers, wanted, known, mixed)

    def in_runtime(self, model: Model) -> Array:
        """The loss on each held-out sample of a model as the runtime computes it."""
        graph = regraph(
            model.main, outputs=[scores_of(model.main, t) for t in judged_outputs(model.main)]
        )
        exposed = with_graphs(model, (graph, *model.graphs[1:]))
        losses: list[float] = []
        with open_apart(replace(exposed, signatures=(), metadata=())) as run:
            for place in self._samples.held:
                given = [store[place] for store in self._samples.inputs]
                stored = [as_stored(t, a) for t, a in zip(graph.inputs, given, strict=True)]
                results = zip(run(stored), graph.outputs, strict=True)
                answers = [torch.from_numpy(np.array(real(a, t))) for a, t in results]
                losses.append(float(self._distance(answers, np.array([place]))))
        return np.array(losses)


@contextmanager
def precision(device: torch.device, *, exact: bool, coarse: bool) -> Generator[None]:
    """Sets the precision of a device: full for judging, less for training where possible.

    Float models train in bfloat16, whose steps are as coarse as those of int8; so models with codes
    use TF32, which is finer.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = not exact
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=coarse and not exact):
            yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before
