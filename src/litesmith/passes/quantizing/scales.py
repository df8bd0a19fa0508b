"""One scale for each tensor of a graph, solved once over all of its integer ops.

An op that only moves values works in one scale, so that its inputs and outputs share one: such
tensors form a group. Some outputs have a scale that their kernel dictates; a group adopts it where
its values fit, and is converted to it where they do not.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isfinite

import numpy as np

from litesmith.ir.ops import OPS
from litesmith.ir.types import Op, Quant, Tensor
from litesmith.numeric.affine import scale_of
from litesmith.passes.core.schemes import data_places

# The stored form of a tensor: element type, scale, zero point.
Form = tuple[str, float, int]
FLOAT: Form = ("float32", 0.0, 0)

Range = tuple[float, float]

# A tensor with steps this much finer than those of its group is worth a conversion.
_NARROW = 1 / 4


def form_of(tensor: Tensor) -> Form | None:
    """The form of a tensor with one scale, or of a float tensor; None for any other."""
    if tensor.dtype == "float32" and tensor.quant is None:
        return FLOAT
    quant = tensor.quant
    if quant is None or quant.block is not None or quant.scale.size != 1:
        return None
    return tensor.dtype, float(quant.scale[0]), int(quant.zero_point[0])


def quant_of(form: Form) -> Quant | None:
    return None if form == FLOAT else Quant.of(form[1], form[2])


def chosen_form(dtype: str, span: Range) -> Form:
    """The form whose codes cover a range of real numbers."""
    scale, zero_point = scale_of(*span, dtype)
    return dtype, float(scale), int(zero_point)


def covered(form: Form) -> Range:
    """The real numbers that a form reaches."""
    dtype, scale, zero_point = form
    info = np.iinfo(dtype)
    return scale * (info.min - zero_point), scale * (info.max - zero_point)


def hull(spans: Iterable[Range]) -> Range:
    """The range that holds all of them."""
    lows, highs = zip(*spans, strict=True)
    return min(lows), max(highs)


def real_tensors(op: Op) -> list[Tensor]:
    """The float tensors that an integer kernel takes as data, and those that it gives."""
    given = (op.inputs[place] for place in data_places(op))
    return [t for t in (*given, *op.outputs) if t is not None and t.dtype == "float32"]


class Scales:
    """The solution: `produced` is the form a tensor is written in, `wanted` the one read.

    `pinned` are forms that are there already; `leaving` are tensors that others than the ops read.
    """

    def __init__(
        self,
        ops: Sequence[Op],
        dtype: str,
        ranges: Mapping[Tensor, Range],
        pinned: Mapping[Tensor, Form],
        leaving: Collection[Tensor | None] = (),
    ) -> None:
        self._dtype, self._ranges, self._leaving = dtype, ranges, leaving
        self._groups = {t: [t] for op in ops for t in real_tensors(op) if not t.is_const}
        self._readers: dict[Tensor, list[Op]] = {}
        for op in ops:
            for tensor in _moved(op):
                self._readers.setdefault(tensor, []).append(op)
        self._join_groups([op for op in ops if _moves(op)])
        self._own = self._dictated(ops, pinned)
        self._forms = self._solved([op for op in ops if _moves(op)])

    def produced(self, tensor: Tensor) -> Form:
        return self._own.get(tensor) or self._forms[tensor]

    def wanted(self, op: Op, tensor: Tensor) -> Form:
        """The form in which an op reads one of its data inputs."""
        if _moves(op):
            return self._forms[_made(op)]
        if tensor.is_const:
            return chosen_form(self._dtype, self._ranges[tensor])
        return self.produced(tensor)

    def _dictated(self, ops: Sequence[Op], pinned: Mapping[Tensor, Form]) -> dict[Tensor, Form]:
        """The forms that a kernel demands of its output, or that are there already."""
        movers = {t for op in ops if _moves(op) for t in op.outputs}
        found = {tensor: form for tensor, form in pinned.items() if tensor not in movers}
        for op in ops:
            fixed = OPS[op.kind].fixed.get(self._dtype) if OPS[op.kind].scale == "fixed" else None
            if fixed is not None:
                form = self._dtype, float(np.float32(fixed[0])), fixed[1]
                found |= dict.fromkeys(op.outputs, form)
        return found

    def _join_groups(self, movers: Sequence[Op]) -> None:
        """Joins the inputs of a moving op with its outputs; of several inputs, only those that are
        not far narrower."""
        for op in movers:
            sources = _moved(op) if len(_moved(op)) == 1 else []
            for tensor in (*sources, *op.outputs):
                if tensor in self._groups:
                    self._join(tensor, _made(op))
        for op in movers:
            for tensor in _moved(op):
                if not self._stays_apart(op, tensor):
                    self._join(tensor, _made(op))

    def _join(self, a: Tensor, b: Tensor) -> None:
        ours, theirs = self._groups[a], self._groups[b]
        if ours is not theirs:
            ours += theirs
            self._groups |= dict.fromkeys(theirs, ours)

    def _stays_apart(self, op: Op, tensor: Tensor) -> bool:
        """True where others read a tensor's group, and would lose by the scale of this op."""
        group = self._groups[tensor]
        everything = [t for moved in (*_moved(op), _made(op)) for t in self._groups[moved]]
        fine, coarse = (
            chosen_form(self._dtype, hull(self._ranges[t] for t in tensors))[1]
            for tensors in (group, everything)
        )
        if fine >= _NARROW * coarse:
            return False
        readers = (reader for t in group for reader in self._readers.get(t, ()))
        others = any((r is not op and len(_moved(r)) != 1) or not _moves(r) for r in readers)
        return others or any(t in self._leaving for t in group)

    def _solved(self, movers: Sequence[Op]) -> dict[Tensor, Form]:
        constants: dict[Tensor, list[Tensor]] = {}  # what is made -> what it must be able to hold
        for op in movers:
            constants.setdefault(_made(op), []).extend(t for t in real_tensors(op) if t.is_const)
        forms: dict[Tensor, Form] = {}
        for tensor, group in self._groups.items():
            if tensor not in forms:
                # An infinite bound limits nothing: the largest code stands for it.
                held = [
                    c
                    for t in group
                    for c in constants.get(t, ())
                    if all(map(isfinite, self._ranges[c]))
                ]
                forms |= dict.fromkeys(group, self._form(group, held))
        return forms

    def _form(self, tensors: Sequence[Tensor], constants: Sequence[Tensor]) -> Form:
        span = hull(self._ranges[t] for t in (*tensors, *constants))
        dictated = {self._own[t] for t in tensors if t in self._own}
        if len(dictated) == 1:
            (form,) = dictated
            low, high = covered(form)
            if form[0] == self._dtype and low - form[1] <= span[0] and span[1] <= high + form[1]:
                return form
        return chosen_form(self._dtype, span)


def _moves(op: Op) -> bool:
    """True for an op that works in one scale, that of its output."""
    return OPS[op.kind].scale == "same"


def _moved(op: Op) -> list[Tensor]:
    """The computed data that an op reads, each once."""
    given = dict.fromkeys(op.inputs[place] for place in data_places(op))
    return [t for t in given if t is not None and t.dtype == "float32" and not t.is_const]


def _made(op: Op) -> Tensor:
    return next(t for t in op.outputs if t.dtype == "float32")
