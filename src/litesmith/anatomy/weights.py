"""The stored weights of a model: their zeros, and how many distinct numbers they hold."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from litesmith.errors import BadModel
from litesmith.ir.dtype import DTYPES
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Tensor
from litesmith.numeric.affine import weight_codes, weight_scales
from litesmith.numeric.arrays import along
from litesmith.numeric.sparse_encoding import dense_values, listed_values
from litesmith.passes.core.schemes import roles
from litesmith.passes.core.weight_structure import LEAST_SHARING, MOST_BOOK, codebook_of, kept
from litesmith.phrases import phrase
from litesmith.units import plain, total_text

# Smaller constants that belong to no layer are settings, not parameters.
_LEAST_TABLE = 256

# Rounding alone makes about as many zeros as ones; this many times more come from pruning.
_MORE_THAN_ONES = 4


@dataclass(frozen=True)
class WeightFacts:
    """The contents of one layer's weight, or of another large constant.

    zeros     numbers that stand for 0, including those that a sparse encoding leaves out
    unique    distinct stored numbers, including 0 where there is a zero
    codes     for a clustered float weight, the distinct numbers once each channel is divided by its
              scale
    sparse    True where zeros are left out of the file
    is_layer  False for a lookup table and other constants that are no layer's weight
    """

    name: str
    op: str
    dtype: str
    elements: int
    zeros: int
    unique: int
    codes: int | None = None
    sparse: bool = False
    is_layer: bool = True

    @property
    def values(self) -> int:
        """The number of distinct values in the weight, apart from the scales of its channels."""
        return self.unique if self.codes is None else self.codes

    @property
    def bits(self) -> int:
        """The bits that distinguish these values."""
        return max(self.values - 1, 0).bit_length()


class _Stored(NamedTuple):
    """A weight as stored; `axis` is the axis of its channels."""

    op: Op
    weight: Tensor
    axis: int
    is_layer: bool = True

    @property
    def label(self) -> str:
        return f"{plain(self.op.label)} {plain(self.weight.name)!r}"


def weight_facts(model: Model) -> tuple[WeightFacts, ...]:
    """The weight of each layer of the main graph in order (a shared one once), followed by other
    parameters: tables, weights of recurrent ops, large constants."""
    found = {stored.weight: stored for stored in _stored_weights(model.main)}
    for graph in model.graphs:
        for stored in _other_parameters(graph):
            found.setdefault(stored.weight, stored)
    return tuple(_facts(stored) for stored in found.values())


def zero_share(weights: Iterable[WeightFacts]) -> float:
    """The share of zeros among all numbers of these weights."""
    counts = [(facts.zeros, facts.elements) for facts in weights]
    return sum(zeros for zeros, _ in counts) / max(sum(elements for _, elements in counts), 1)


def _stored_weights(graph: Graph) -> Iterator[_Stored]:
    made = _unpacking(graph)
    for op in graph.ops:
        row, words = OPS[op.kind], roles(op)
        if row.axis is None or row.bias is None or words.count("w") != 1:
            continue
        weight = _stored_constant(op.inputs[words.index("w")], made)
        is_there = weight is not None and weight.data is not None and DTYPES[weight.dtype].bits
        if weight is not None and is_there and weight.elements and len(weight.shape) > row.axis:
            yield _Stored(op, weight, row.axis)


def _other_parameters(graph: Graph) -> Iterator[_Stored]:
    """Large constants that ops read, except biases."""
    made = _unpacking(graph)
    for op in graph.ops:
        if OPS[op.kind].unpacks:
            continue
        for role, given in zip(roles(op), op.inputs, strict=True):
            tensor = _stored_constant(given, made)
            if role != "b" and tensor is not None and _is_parameter(tensor):
                yield _Stored(op, tensor, 0, is_layer=False)


def _is_parameter(tensor: Tensor) -> bool:
    row = DTYPES[tensor.dtype]
    is_real = row.is_float or tensor.quant is not None
    return tensor.data is not None and is_real and row.bits > 0 and tensor.elements >= _LEAST_TABLE


def _unpacking(graph: Graph) -> dict[Tensor, Tensor | None]:
    return {op.outputs[0]: op.inputs[0] for op in graph.ops if OPS[op.kind].unpacks}


def _stored_constant(tensor: Tensor | None, made: Mapping[Tensor, Tensor | None]) -> Tensor | None:
    """The stored constant that a tensor is unpacked from, if there is one."""
    while tensor is not None and tensor in made:
        tensor = made[tensor]
    return tensor


def _facts(stored: _Stored) -> WeightFacts:
    weight = stored.weight
    is_sparse = weight.sparsity is not None
    values = listed_values(weight) if is_sparse else weight.values()
    left_out = weight.elements - values.size
    zeros = _is_zero(values, None if is_sparse else weight.quant)
    has_codes = stored.is_layer and not is_sparse
    adds_zero = left_out > 0 and not zeros.any()
    return WeightFacts(
        name=plain(weight.name),
        op=stored.op.label,
        dtype=weight.dtype,
        elements=weight.elements,
        zeros=int(zeros.sum()) + left_out,
        unique=int(np.unique(values).size) + adds_zero,
        codes=_codebook_size(weight.dtype, values, stored.axis) if has_codes else None,
        sparse=is_sparse,
        is_layer=stored.is_layer,
    )


def _is_zero(values: Array, quant: Quant | None) -> Array:
    """Where stored numbers stand for 0."""
    return values == _zero_points(values, quant)


def _zero_points(values: Array, quant: Quant | None) -> Array | int:
    if quant is None or not quant.zero_point.size:
        return 0
    return along(quant.zero_point, values.ndim, quant.axis)


def _codebook_size(dtype: str, values: Array, axis: int) -> int | None:
    """The size of a float weight's codebook; None where it has none, or stores codes anyway."""
    if dtype not in ("float16", "float32"):
        return None
    book = codebook_of(values.astype(np.float32), axis)
    return None if book is None else int(book.book.size)


class Promises(NamedTuple):
    """Layers whose zeros or codes had to stay, and a line for each that lost some."""

    layers: int
    broken: tuple[str, ...]


def promises(before: Model, after: Model) -> Promises:
    """Checks that one model keeps the structure of another.

    A zero of a pruned weight must stay a zero, and a clustered weight must not gain codes. Layers
    are compared in order where both models have the same number, otherwise by name, and only where
    their shapes agree.
    """
    complaints: list[str] = []
    layers = 0
    for old, new in _pairs(before.main, after.main):
        try:
            was, now = dense_values(old.weight), dense_values(new.weight)
        except BadModel as error:
            complaints.append(phrase("{told}: not compared, {error}", new.label, error))
            continue
        zeros, most = _pruned_zeros(old, was), _book_size(old, was)
        layers += zeros is not None or most is not None
        if zeros is not None:
            complaints += _lost_zeros(new, now, zeros)
        if most is not None:
            complaints += _more_codes(new, now, most)
    return Promises(layers, tuple(complaints))


def _pairs(before: Graph, after: Graph) -> Iterator[tuple[_Stored, _Stored]]:
    old, new = list(_stored_weights(before)), list(_stored_weights(after))
    if len(old) != len(new):
        names = {stored.weight.name: stored for stored in new}
        old = [stored for stored in old if stored.weight.name in names]
        new = [names[stored.weight.name] for stored in old]
    by_weights = {(a.weight, b.weight): (a, b) for a, b in zip(old, new, strict=True)}
    for one, other in by_weights.values():
        if one.weight.shape == other.weight.shape:
            yield one, other


def _lost_zeros(new: _Stored, now: Array, zeros: Array) -> Iterator[str]:
    lost = zeros & ~_is_zero(now, new.weight.quant)
    if lost.any():
        gone, all_zeros = (total_text(int(places.sum())) for places in (lost, zeros))
        yield phrase(
            "{told}: {lost} of {zeros} zeros are no longer zero", new.label, gone, all_zeros
        )


def _more_codes(new: _Stored, now: Array, most: int) -> Iterator[str]:
    codes = _codes_in_use(new, now)
    if codes > most:
        yield phrase(
            "{told}: {count} codes beside 0, {count2} before",
            new.label,
            total_text(codes),
            total_text(most),
        )


def _pruned_zeros(stored: _Stored, values: Array) -> Array | None:
    """The zeros of a pruned weight; None for a weight that was not pruned."""
    zeros = _is_zero(values, stored.weight.quant)
    if kept(~zeros) is None:
        return None
    if DTYPES[stored.weight.dtype].is_float:
        return zeros
    points = _zero_points(values, stored.weight.quant)
    ones = np.count_nonzero(np.abs(values.astype(np.int64) - points) == 1)
    return zeros if np.count_nonzero(zeros) > _MORE_THAN_ONES * ones else None


def _book_size(stored: _Stored, values: Array) -> int | None:
    """The number of codes of a clustered weight, without 0; None where it is not clustered."""
    row = DTYPES[stored.weight.dtype]
    if row.is_float:
        size = _codebook_size(stored.weight.dtype, values, stored.axis)
    else:
        size = _spaced(values) if row.bits >= 8 else None
    if size is None or size > min(MOST_BOOK, values.size // LEAST_SHARING):
        return None
    return _codes_in_use(stored, values)


def _spaced(codes: Array) -> int | None:
    """The number of distinct codes, where they skip most of those between them; otherwise None,
    because they were merely rounded."""
    used = np.unique(codes).astype(np.int64)
    return int(used.size) if 2 * used.size <= used[-1] - used[0] + 1 else None


def _codes_in_use(stored: _Stored, values: Array) -> int:
    """The number of distinct codes without 0; a float weight is first rounded to the int8 grid."""
    if DTYPES[stored.weight.dtype].is_float:
        real = np.nan_to_num(values.astype(np.float32), nan=0, posinf=0, neginf=0)
        codes = weight_codes(real, weight_scales(real, stored.axis, 8), stored.axis, 8)
    else:
        codes = values.astype(np.int64) - _zero_points(values, stored.weight.quant)
    return int(np.count_nonzero(np.unique(codes)))
