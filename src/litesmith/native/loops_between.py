"""The code between the runtime, which calls it as a custom op, and a kernel."""

# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# llvmlite and numba leave parts of their types open.

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba import types

from litesmith.native import compile as at
from litesmith.native.emit_llvm import I32, I64, Value
from litesmith.native.tiles import int64_at, native, put_int64, word


def _caller_with_result(*kinds: ir.Type) -> Callable[..., int]:
    """Makes (address, arguments): a call of the C function at an address, which returns 32 bits."""

    def emitted(given: Sequence[Value]) -> Value:
        place, *arguments = given
        kind = ir.FunctionType(I32, kinds)
        function = place.b.inttoptr(place.value, kind.as_pointer())
        fitting = [
            argument.convert("trunc", I32) if kind is I32 else argument
            for argument, kind in zip(arguments, kinds, strict=True)
        ]
        return Value(place.b, place.b.call(function, [argument.value for argument in fitting]))

    return native(1 + len(kinds), types.int32, emitted)


_lock, _unlock, _compute = (
    _caller_with_result(I64, I64, I32),
    _caller_with_result(I64),
    _caller_with_result(I64, I64),
)


def run_between(record: int, input_count: int, inputs: int, output_count: int, outputs: int) -> int:
    """Finds the memory of each tensor and calls the kernel. Records a failure, because the runtime
    ignores the return value; after a failure, no kernel runs any more.
    """
    failed = word(record, at.FAILED)
    if int64_at(failed) != 0:
        return 0
    room = word(record, at.ROOM)
    for place in range(input_count):
        _lock(word(record, at.LOCK), word(inputs, place), room + 8 * place, 0)
    for place in range(output_count):
        where = room + 8 * (input_count + place)
        _lock(word(record, at.LOCK), word(outputs, place), where, 1)
    if _compute(word(record, at.FUNCTION), word(record, at.USER), room) != 0:
        put_int64(failed, word(record, at.NUMBER))
    for place in range(input_count):
        _unlock(word(record, at.UNLOCK), word(inputs, place))
    for place in range(output_count):
        _unlock(word(record, at.UNLOCK), word(outputs, place))
    return 0
