"""Whether a native kernel computes what its function means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Array, Op, Tensor
from litesmith.ops.call import Call
from litesmith.ops.flexbuffer import Option, encode
from litesmith.ops.native import cause, checked_loops
from litesmith.ops.operator import Operator
from litesmith.phrases import phrase


@dataclass(frozen=True)
class Agreement:
    """How far a native kernel is from its function.

    agrees   True where no element is farther than the tolerance
    largest  the largest difference of an element, by the largest value that the function gave
    where    output and place of it
    """

    agrees: bool
    largest: float
    where: str

    def __bool__(self) -> bool:
        return self.agrees

    def __str__(self) -> str:
        return phrase(
            "{what}: by {largest:.3g} at {where}",
            phrase("agrees") if self.agrees else phrase("differs"),
            self.largest,
            self.where,
        )


def check(
    operator: Operator, *arrays: Array | None, tolerance: float = 1e-5, **options: Option
) -> Agreement:
    """Compares a native kernel with its function on these inputs.

    The kernel is compiled with checks here: one that reads or writes outside its arrays raises.
    Outputs are filled with other values first, so that what is not written is seen.
    """
    if operator.loops is None:
        raise BadInput("op {name!r} has no native kernel to check", operator.name)
    tensors = tuple(
        None if a is None else Tensor(phrase("input {i}", i), a.shape, str(a.dtype))
        for i, a in enumerate(arrays)
    )
    rest = MappingProxyType({"custom_options": encode(options)} if options else {})
    op = Op("CUSTOM", tensors, (), custom=operator.name, rest=rest)
    computed = [np.require(a, requirements=("C", "A")) for a in arrays if a is not None]
    expected = Call(operator, op).called(computed)
    outputs = tuple(
        Tensor(phrase("output {i}", i), r.shape, str(r.dtype)) for i, r in enumerate(expected)
    )
    call = Call(operator, Op("CUSTOM", tensors, outputs, custom=operator.name, rest=rest))
    made = [np.full(r.shape, _unlikely(r.dtype), r.dtype) for r in expected]
    _run_checked(
        call, [None if a is None else np.require(a, requirements=("C", "A")) for a in arrays], made
    )
    return _compared(expected, made, tolerance)


def _run_checked(call: Call, inputs: Sequence[Array | None], outputs: Sequence[Array]) -> None:
    run, extras = checked_loops(call)
    try:
        run(*inputs, *outputs, *extras)
    except Exception as error:
        raise CannotRun(
            "native kernel of {name!r}: {cause}", call.operator.name, cause(error)
        ) from error


def _unlikely(dtype: np.dtype) -> float | int | bool:
    if dtype.kind == "f":
        return float("nan")
    return True if dtype.kind == "b" else 85  # 0b1010101


def _compared(expected: Sequence[Array], made: Sequence[Array], tolerance: float) -> Agreement:
    largest, where = 0.0, phrase("no place")
    for number, (a, b) in enumerate(zip(expected, made, strict=True)):
        if not a.size:
            continue
        wide = a.astype(np.float64), b.astype(np.float64)
        scale = float(np.abs(wide[0], where=np.isfinite(wide[0]), out=np.zeros(a.shape)).max())
        same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
        with np.errstate(invalid="ignore"):
            apart = np.where(same, 0.0, np.abs(wide[0] - wide[1]) / (scale or 1.0))
        apart = np.where(np.isnan(apart), np.inf, apart)
        place = np.unravel_index(int(apart.argmax()), a.shape)
        if apart[place] > largest:
            largest = float(apart[place])
            where = phrase("output {number} [{int}]", number, ", ".join(str(int(p)) for p in place))
    return Agreement(largest <= tolerance, largest, where)
