"""A float model whose weights were changed, brought back towards the original layer by layer.

Each layer in turn, on the outputs of the restored layers before it: the remaining weights make up
for the missing ones, and the mean of every channel is restored through its bias.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import CannotApply
from litesmith.ir.edit import with_ops
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Model, Op, Tensor, frozen
from litesmith.numeric.affine import from_rows, rows_of
from litesmith.numeric.patches import covariances
from litesmith.numeric.sparse import refit_under_mask
from litesmith.passes.core.layers import Layer, real_bias, real_values, rebuilt
from litesmith.passes.core.step import Skip, Tools
from litesmith.passes.core.weight_structure import codebook_of
from litesmith.passes.quantizing.layer_rows import paired_rows, why_no_rows
from litesmith.passes.quantizing.paired_walk import mean_output
from litesmith.passes.quantizing.track import Track, chosen_samples
from litesmith.phrases import phrase

Floats = NDArray[np.float64]

# The number of rows behind the moments: this many for each input of an output, and at least this
# many.
_ROWS = 8
_LEAST_ROWS = 4_096

# The number of samples whose rows are held at once.
_GROUP = 16

# Multiplications in the equations of one layer; beyond, only its means are put back.
_MOST_WORK = 200_000_000_000


def restored(
    original: Model, changed: Model, tools: Tools, places: Sequence[int], *, refill: bool = True
) -> tuple[Model, list[Skip]]:
    """The changed model nearer to the original on these samples. Both have the same ops.

    refill  also solve for the weights that are not zero, but for clustered ones; else only the
            biases change
    """
    try:
        samples = chosen_samples(tools, original, places)
        tracks = Track(original, tools, samples), Track(changed, tools, samples)
        return _Walk(*tracks, refill=refill).walked(changed)
    except CannotApply as error:
        return changed, [
            Skip(phrase("the biases"), phrase("the means were not put back: {error}", error))
        ]


class _Walk:
    def __init__(self, theirs: Track, ours: Track, *, refill: bool) -> None:
        self._theirs, self._ours, self._refill = theirs, ours, refill
        self._users = Counter(layer.weight for layer in ours.layers)

    def walked(self, changed: Model) -> tuple[Model, list[Skip]]:
        replaced: dict[Op, Op] = {}
        skipped: list[Skip] = []
        self._theirs.run(0, {})
        self._ours.run(0, replaced)
        pairs = zip(self._theirs.layers, self._ours.layers, strict=True)
        for number, (wanted, layer) in enumerate(pairs, 1):
            try:
                replaced |= self._restored(wanted, layer)
            except ValueError as error:
                skipped.append(
                    Skip(op_name(layer.op), phrase("it was not restored: {error}", error))
                )
            self._theirs.run(number, {})
            self._ours.run(number, replaced)
        return with_ops(changed, replaced), skipped

    def _restored(self, wanted: Layer, layer: Layer) -> dict[Op, Op]:
        weight = layer.weight
        if self._refill and self._can_refill(wanted, layer):
            weight = self._refilled(wanted, layer)
        mean = _mean(self._ours.values(layer.data)[0])
        bias = real_bias(layer)
        reached = mean_output(layer, mean, real_values(weight), bias)
        shift = self._wanted_mean(wanted) - reached
        if not np.isfinite(shift).all():
            raise ValueError(phrase("a mean is infinite or not a number"))
        if weight is layer.weight and not shift.any():
            return {}
        return rebuilt(layer, weight, bias + shift)

    def _wanted_mean(self, layer: Layer) -> Floats:
        mean = _mean(self._theirs.values(layer.data)[0])
        return mean_output(layer, mean, real_values(layer.weight), real_bias(layer))

    def _can_refill(self, wanted: Layer, layer: Layer) -> bool:
        values = layer.weight.values()
        is_same = np.array_equal(values, wanted.weight.values())
        if is_same or self._users[layer.weight] > 1 or OPS[layer.op.kind].is_depthwise:
            return False
        if any(codebook_of(wanted.weight.values(), axis) for axis in (layer.axis, None)):
            return False  # other numbers would be no codes of the book
        left = np.count_nonzero(rows_of(values, layer.axis), axis=1).astype(np.float64)
        return not why_no_rows(layer) and (left**3).sum() / 3 < _MOST_WORK

    def _refilled(self, wanted: Layer, layer: Layer) -> Tensor:
        hessian, cross = self._covariances(wanted, layer)
        values = real_values(layer.weight)
        rows = refit_under_mask(
            rows_of(real_values(wanted.weight), layer.axis),
            rows_of(values != 0, layer.axis),
            hessian,
            cross,
        )
        data = from_rows(rows.astype(np.float32), layer.weight.shape, layer.axis)
        return replace(layer.weight, data=frozen(data))

    def _covariances(self, wanted: Layer, layer: Layer) -> tuple[Floats, Floats]:
        """The covariance of the weights' inputs, and their covariance with the original's
        inputs."""
        samples = self._ours.values(layer.data)[0], self._theirs.values(wanted.data)[0]
        inputs = layer.weight.elements // layer.channels
        most = -(-max(_ROWS * inputs, _LEAST_ROWS) // len(samples[0]))
        pairs = paired_rows((layer, wanted), samples, zero=0, most=most, group=_GROUP)
        return covariances(pairs)[:2]


def _mean(values: Array) -> Floats:
    return values.sum(axis=0, dtype=np.float64) / len(values)
