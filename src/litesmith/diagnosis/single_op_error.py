"""What the error of some ops alone does to a model's output: the float model with only these
quantized, run beside the float model as it is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from time import perf_counter
from typing import NamedTuple

import numpy as np

from litesmith.calibration.observe import tools
from litesmith.data.samples import Data, Sample, as_stored
from litesmith.diagnosis.float_pairs import (
    Twin,
    exposing,
    has_stored_weights,
    to_codes,
    to_real,
    with_stored_weights,
)
from litesmith.diagnosis.loss import as_real, decibels
from litesmith.ir.edit import regraph
from litesmith.ir.softmax_scores import ends_in_softmax, moved_from, scores_of
from litesmith.ir.types import Array, Graph, Model, Op, Tensor

FORM, WEIGHTS = "form", "weights"

Part = tuple[Twin, str]


def quantized_parts(reference: Model, parts: Sequence[Part]) -> tuple[Model, dict[Tensor, Tensor]]:
    """The float model with the forms or the weights of some ops as the quantized model has them;
    and what became of the tensors whose form was changed."""
    forms = {twin.theirs: twin for twin, part in parts if part == FORM and twin.quant}
    layers = {
        twin.layers[1].op: twin.layers
        for twin, part in parts
        if part == WEIGHTS and twin.layers and has_stored_weights(twin.layers[0])
    }
    now: dict[Tensor, Tensor] = {}
    ops: list[Op] = []

    def pass_form(tensor: Tensor) -> None:
        if tensor in forms:
            twin = forms[tensor]
            codes = replace(twin.ours, name=f"{tensor.name}/codes")
            now[tensor] = replace(tensor, name=f"{tensor.name}/rounded")
            ops.extend((to_codes(tensor, codes), to_real(codes, now[tensor])))

    for tensor in reference.main.inputs:
        pass_form(tensor)
    for op in reference.main.ops:
        new = with_stored_weights(*layers[op]) if op in layers else op
        inputs = tuple(None if t is None else now.get(t, t) for t in new.inputs)
        ops.append(replace(new, inputs=inputs))
        for tensor in op.outputs:
            pass_form(tensor)
    graph = regraph(reference.main, ops=ops)
    return replace(reference, graphs=(graph, *reference.graphs[1:])), now


class Drift(NamedTuple):
    """How far a model's answers are from the float model's.

    noise    the power of the error as a share of the signal's, in the output where it is largest
    damage   what is compared: for a model that chooses among classes, how much the probabilities
             it gives them diverge (Kullback and Leibler's, in nats a sample), which a cut or a tie
             of the highest scores drives and other noise hardly does; for others the noise
    """

    noise: float
    damage: float

    @property
    def decibels(self) -> float:
        return decibels(1.0, self.noise)


class Judge:
    """Runs models on the same samples and holds their scores against the float model's."""

    def __init__(self, reference: Model, judged: Sequence[Twin], data: Data) -> None:
        self._reference, self._data = reference, data
        self._outputs = [twin.theirs for twin in judged]
        self._chooses = [_is_chosen_from(reference.main, tensor) for tensor in self._outputs]
        self.chooses = any(self._chooses)
        self._samples: list[Sample] = list(data)
        start = perf_counter()
        self._wanted = list(self._answers(reference, self._outputs))
        self.seconds = perf_counter() - start

    def alone(self, parts: Sequence[Part]) -> Drift:
        """What these parts do, all others exact."""
        model, now = quantized_parts(self._reference, parts)
        return self.drift(model, [now.get(t, t) for t in self._outputs])

    def drift(self, model: Model, outputs: Sequence[Tensor]) -> Drift:
        signal, noise = np.zeros((2, len(outputs)))
        divergence = 0.0
        for answer, wanted in zip(self._answers(model, outputs), self._wanted, strict=True):
            for place, (a, b) in enumerate(zip(answer, wanted, strict=True)):
                signal[place] += np.square(b).sum()
                noise[place] += np.square(a - b).sum()
                if self._chooses[place]:
                    divergence += _divergence(a, b) / len(self._wanted)
        share = float((noise / np.maximum(signal, 1e-30)).max())
        return Drift(share, divergence if self.chooses else share)

    def _answers(self, model: Model, outputs: Sequence[Tensor]) -> Iterator[list[Array]]:
        exposed = exposing(model, outputs)
        with tools(self._data).opened(exposed) as run:
            for sample in self._samples:
                results = run(list(map(as_stored, exposed.main.inputs, sample.inputs)))
                # the session's memory is written anew by its next run, so that it is copied
                pairs = zip(results, outputs, strict=True)
                yield [as_real(array, tensor).astype(np.float64) for array, tensor in pairs]


def _is_chosen_from(graph: Graph, tensor: Tensor) -> bool:
    """True where a softmax turns these scores, at once or in another shape, into an output."""
    if tensor.shape[-1:] == (1,) and len(tensor.shape) < 3:
        return False
    chosen = [t for t in graph.outputs if ends_in_softmax(graph, t)]
    return any(moved_from(graph, scores_of(graph, t)) is tensor for t in chosen)


def _divergence(scores: Array, wanted: Array) -> float:
    """How far the classes' probabilities are from the wanted ones, summed over rows."""
    ours, theirs = (_log_probabilities(a) for a in (scores, wanted))
    return float((np.exp(theirs) * (theirs - ours)).sum())


def _log_probabilities(scores: Array) -> Array:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
