"""Loops of the user's as machine code: compiled once for the types and ranks of a call."""

# pyright: reportArgumentType=false, reportCallIssue=false, reportMissingImports=false
# pyright: reportPrivateImportUsage=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# numba leaves parts of its types open.

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import TYPE_CHECKING

import numpy as np

from litesmith.errors import CannotRun
from litesmith.installing import install_command
from litesmith.ir.types import Array
from litesmith.native.compile import why_not
from litesmith.ops.delegate import Native, Shape
from litesmith.ops.results import error_text
from litesmith.phrases import phrase

if TYPE_CHECKING:
    from litesmith.ops.call import Call

_SCALES, _ZERO_POINTS = "scales", "zero_points"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# One parameter of the loops: a tensor's type and rank, or None where an input is left out.
Kind = tuple[str, int] | None

_lock = threading.Lock()
_made: dict[object, object] = {}


class Loops:
    """A compiled kernel at one place of a model, and the memory that it finds its arrays by.

    `room` begins with addresses of computed inputs and of outputs; behind them are addresses of
    constants, then the shape of each tensor.
    """

    def __init__(self, call: Call, extras: tuple[object, ...]) -> None:
        self._call = call
        self._tensors = [t for t in (*call.op.inputs, *call.op.outputs) if t is not None]
        self._constants = [
            np.require(a, requirements=("C", "A")) for a in call.constants if a is not None
        ]
        moving = len(call.computed) + len(call.op.outputs)
        self._shapes_at = moving + len(self._constants)
        self.room = np.zeros(self._shapes_at + sum(len(t.shape) for t in self._tensors), np.int64)
        self.room[moving : self._shapes_at] = [a.ctypes.data for a in self._constants]
        made = compiled(call.operator.loops, self._kinds(), self._places(), extras)
        self.native = Native(made.address, 0, self.room, (made, self._constants))  # type: ignore[attr-defined]

    def set_shapes(self, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> None:
        moving = iter(inputs)
        shapes = [t.shape if t.is_const else next(moving) for t in self._tensors[: -len(outputs)]]
        flat: list[int] = []
        for tensor, shape in zip(self._tensors, (*shapes, *outputs), strict=True):
            if len(shape) != len(tensor.shape):
                raise CannotRun(
                    "{name}: {name2!r} has {count} dimensions in the model, and {count2} by "
                    "the shape rule",
                    self._call.name,
                    tensor.name,
                    len(tensor.shape),
                    len(shape),
                )
            flat += shape
        self.room[self._shapes_at :] = flat

    def _kinds(self) -> tuple[Kind, ...]:
        tensors = (*self._call.op.inputs, *self._call.op.outputs)
        return tuple(None if t is None else (t.dtype, len(t.shape)) for t in tensors)

    def _places(self) -> tuple[int, ...]:
        """Where in `room` the address of each tensor is."""
        computed, outputs = len(self._call.computed), len(self._call.op.outputs)
        moving, fixed = iter(range(computed)), iter(range(computed + outputs, self._shapes_at))
        inputs = [
            next(fixed) if t.is_const else next(moving)
            for t in self._call.op.inputs
            if t is not None
        ]
        return (*inputs, *range(computed, computed + outputs))


def loops_of(call: Call) -> tuple[Loops | None, str]:
    """The compiled kernel of a call; else None, and why its function runs in Python."""
    loops = call.operator.loops
    assert loops is not None
    names = list(signature(_plain(loops)).parameters)
    tensors = len(call.op.inputs) + len(call.op.outputs)
    if len(names) < tensors:
        raise CannotRun(
            "{name}: its native kernel takes {names}, and the call has {count} inputs and "
            "{count2} outputs",
            call.name,
            ", ".join(names),
            len(call.op.inputs),
            len(call.op.outputs),
        )
    if why_not():
        return None, phrase(
            "op {name!r} runs in Python: {install}", call.operator.name, install_command("jit")
        )
    if call.is_real and _SCALES not in names[tensors:]:
        return None, (
            phrase(
                "{name} runs in Python: it is quantized, and its native kernel takes no {scales}",
                call.name,
                _SCALES,
            )
        )
    return Loops(call, tuple(_extra(call, name) for name in names[tensors:])), ""


def checked_loops(call: Call) -> tuple[Callable[..., None], tuple[object, ...]]:
    """The loops with checks of every index, and what they take beside arrays."""
    from numba import njit

    if why_not():
        raise CannotRun(why_not())
    loops = _plain(call.operator.loops)
    tensors = len(call.op.inputs) + len(call.op.outputs)
    names = list(signature(loops).parameters)[tensors:]
    checked = njit(error_model="numpy", boundscheck=True)(loops)
    return checked, tuple(_extra(call, name) for name in names)


def _extra(call: Call, name: str) -> object:
    """What a native kernel is given beside arrays; it becomes a constant of the machine code."""
    tensors = (*call.op.inputs, *call.op.outputs)
    if name == _SCALES:
        return tuple(_first(t.quant.scale if t and t.quant else None, 1.0) for t in tensors)
    if name == _ZERO_POINTS:
        return tuple(_first(t.quant.zero_point if t and t.quant else None, 0) for t in tensors)
    if name in call.settings:
        value = call.settings[name]
        return tuple(value) if isinstance(value, list) else value
    for function in (_plain(call.operator.loops), call.operator.reference):
        known = signature(function).parameters.get(name)
        if known is not None and known.default is not Parameter.empty:
            return known.default
    raise CannotRun(
        "{name}: its native kernel takes {name2!r}, which is no option of the op", call.name, name
    )


def _first(numbers: Array | None, unset: float) -> float | int:
    return unset if numbers is None or not numbers.size else numbers.reshape(-1)[0].item()


def _plain(function: Callable[..., None] | None) -> Callable[..., None]:
    return getattr(function, "py_func", function)  # type: ignore[return-value]


def compiled(
    loops: Callable[..., None] | None,
    kinds: tuple[Kind, ...],
    places: tuple[int, ...],
    extras: tuple[object, ...],
) -> object:
    """A C function of (user, room) that calls the loops; made once for the same arguments."""
    key = loops, kinds, places, extras, tuple(map(type, extras))
    with _lock:
        if key not in _made:
            _made[key] = _compiled(loops, kinds, places, extras)
        return _made[key]


def _compiled(
    loops: Callable[..., None] | None,
    kinds: tuple[Kind, ...],
    places: tuple[int, ...],
    extras: tuple[object, ...],
) -> object:
    from numba import carray, cfunc, njit, types
    from numba.core.errors import NumbaError

    inner = loops if hasattr(loops, "py_func") else njit(error_model="numpy")(loops)
    names: dict[str, object] = {"kernel": inner, "carray": carray}
    names |= {f"extra{i}": extra for i, extra in enumerate(extras)}
    names |= {f"at_{kind[0]}": pointer(kind[0]) for kind in kinds if kind is not None}
    exec(_source(kinds, places, len(extras)), names)
    signature_of = types.int32(types.int64, types.CPointer(types.int64))
    try:
        return cfunc(signature_of)(names["entry"])
    except NumbaError as error:
        name = getattr(_plain(loops), "__qualname__", "it")
        raise CannotRun(
            "native kernel {name}: numba cannot compile it: {cause}", name, cause(error)
        ) from error


def _source(kinds: tuple[Kind, ...], places: tuple[int, ...], extras: int) -> str:
    """The function that numba compiles around the loops: addresses become arrays."""
    arguments: list[str] = []
    shape_at = 1 + max(places, default=-1)
    where = iter(places)
    for kind in kinds:
        if kind is None:
            arguments.append("None")
            continue
        dtype, rank = kind
        sizes = "".join(f"room[{shape_at + i}], " for i in range(rank))
        arguments.append(f"carray(at_{dtype}(room[{next(where)}]), ({sizes}))")
        shape_at += rank
    arguments += [f"extra{i}" for i in range(extras)]
    return (
        "def entry(user, room):\n"
        "    try:\n"
        f"        kernel({', '.join(arguments)})\n"
        "    except Exception:\n"
        "        return 1\n"
        "    return 0\n"
    )


@cache
def pointer(dtype: str) -> object:
    """For compiled code: an address as a pointer to such elements."""
    from numba import from_dtype, types
    from numba.core import extending

    element = from_dtype(np.dtype(dtype))

    @extending.intrinsic
    def at(_, address):  # type: ignore[no-untyped-def]
        def made(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            kind = context.get_value_type(signature.return_type)
            return builder.inttoptr(arguments[0], kind)

        return types.CPointer(element)(address), made

    return at


def cause(error: Exception) -> str:
    """What went wrong, on one line: of the many that numba has, the one that says it."""
    from numba.core.errors import NumbaError

    if not isinstance(error, NumbaError):
        return error_text(error)
    plain = _COLOURS.sub("", str(error))  # numba has them wherever it finds colorama
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    skipped = ("Failed in", "File ", "During:", ">>>", "There are", "[", "- ", "Overload")
    told = [line for line in lines if not line.startswith(skipped)]
    return (told or lines or [type(error).__name__])[0]
