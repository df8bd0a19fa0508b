"""The building blocks of compiled code: functions of emitted instructions, memory, threads, calls.

Addresses are plain 64-bit integers.
"""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# llvmlite and numba leave parts of their types open.

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir  # pyright: ignore[reportMissingImports]
from numba import config, njit, types  # pyright: ignore[reportMissingImports]
from numba.core.registry import cpu_target  # pyright: ignore[reportMissingImports]
from numba.extending import intrinsic  # pyright: ignore[reportMissingImports]

from litesmith.native import emit_llvm as emit
from litesmith.native.cpu import Cpu, cpu_of
from litesmith.native.emit_llvm import I8, I16, I32, I64, Value, load, store
from litesmith.operating_system import THIS, arm_products

Emitted = Callable[[Sequence[Value]], Value | None]


def _features() -> frozenset[str]:
    """The features that numba compiles for: those of this machine, or those in its settings."""
    from llvmlite import binding  # pyright: ignore[reportMissingImports]

    if config.CPU_FEATURES is None and arm_products():
        more = ",".join(f"+{name}" for name in arm_products())
        config.CPU_FEATURES = f"{binding.get_host_cpu_features().flatten()},{more}"
        # A process that has already compiled code did so without these options.
        features = cpu_target.target_context.codegen().magic_tuple()[2]
    else:
        features = config.CPU_FEATURES
    if features is not None:
        return frozenset(word[1:] for word in features.split(",") if word.startswith("+"))
    return frozenset(name for name, on in binding.get_host_cpu_features().items() if on)


CPU: Cpu = cpu_of(_features())

# Functions of compiled code: divisions are by numbers that `prepare` has checked.
compiled = njit(error_model="numpy")


def native(count: int, result: types.Type, emitted: Emitted) -> Callable[..., int]:
    """A function of `count` integers for compiled code, made of emitted instructions."""

    def generate(context: object, builder: ir.IRBuilder, _: object, arguments: object) -> object:
        given = [Value(builder, argument) for argument in arguments]  # type: ignore[attr-defined]
        made = emitted(given)
        return context.get_dummy_value() if made is None else made.value  # type: ignore

    signature = result(*[types.int64] * count)
    names = ", ".join(f"a{place}" for place in range(count))
    scope = {"signature": signature, "generate": generate}
    source = f"def typed(context, {names}):\n    return signature, generate\n"
    exec(source, scope)  # numba reads the number of arguments from the function's own signature
    return intrinsic(scope["typed"])


class Loop:
    """A loop of `count` rounds, at least one, with values carried from round to round."""

    def __init__(self, count: Value, carried: Sequence[Value]) -> None:
        self.b, self.count = count.b, count
        before = self.b.block
        self.block = self.b.function.append_basic_block()
        self.b.branch(self.block)
        self.b.position_at_end(self.block)
        self._phis = []
        for start in (emit.constant(self.b, I64, 0), *carried):
            phi = self.b.phi(start.type)
            phi.add_incoming(start.value, before)
            self._phis.append(phi)
        self.round, *self.values = (Value(self.b, phi) for phi in self._phis)

    def end(self, carried: Sequence[Value]) -> None:
        after = self.b.function.append_basic_block()
        following = self.round + 1
        for phi, value in zip(self._phis, (following, *carried), strict=True):
            phi.add_incoming(value.value, self.b.block)
        self.b.cbranch((following < self.count).value, self.block, after)
        self.b.position_at_end(after)


def _loader(kind: ir.Type) -> Callable[..., int]:
    def emitted(given: Sequence[Value]) -> Value:
        (address,) = given
        loaded = load(address, kind)
        return loaded if kind is I64 else loaded.convert("sext", I64)

    return native(1, types.int64, emitted)


def _storer(kind: ir.Type) -> Callable[..., int]:
    def emitted(given: Sequence[Value]) -> None:
        address, value = given
        store(value if kind is I64 else value.convert("trunc", kind), address)

    return native(2, types.void, emitted)


def _emit_copy(given: Sequence[Value]) -> None:
    to, source, count = given
    b, byte = to.b, I8.as_pointer()
    memcpy = b.module.declare_intrinsic("llvm.memcpy", [byte, byte, I64])
    pointers = [b.inttoptr(address.value, byte) for address in (to, source)]
    b.call(memcpy, [*pointers, count.value, ir.Constant(emit.I1, 0)])


def _emit_zero(given: Sequence[Value]) -> None:
    to, count = given
    b, byte = to.b, I8.as_pointer()
    memset = b.module.declare_intrinsic("llvm.memset", [byte, I64])
    pointer = b.inttoptr(to.value, byte)
    b.call(memset, [pointer, ir.Constant(I8, 0), count.value, ir.Constant(emit.I1, 0)])


def _emit_take(given: Sequence[Value]) -> Value:
    address, more = given
    b = address.b
    pointer = b.inttoptr(address.value, I64.as_pointer())
    return Value(b, b.atomic_rmw("add", pointer, more.value, "seq_cst"))


def _emit_rest(given: Sequence[Value]) -> None:
    """Lets other threads continue: a pause, and after many pauses some microseconds of sleep.

    A thread that waits so long waits for one that does not get a core, perhaps this very core.
    """
    (rounds,) = given
    b = rounds.b
    if CPU.pairs:
        b.call(emit.external(b, "llvm.x86.sse2.pause", ir.VoidType(), []), [])
    if THIS.sleep:
        with b.if_then((rounds > 3000).value):
            b.call(emit.external(b, THIS.sleep, I32, [I32]), [ir.Constant(I32, 20)])


def _caller(count: int) -> Callable[..., int]:
    """Makes (address, arguments): a call of the compiled function at an address."""

    def emitted(given: Sequence[Value]) -> None:
        place, *arguments = given
        kind = ir.FunctionType(ir.VoidType(), [I64] * count)
        function = place.b.inttoptr(place.value, kind.as_pointer())
        place.b.call(function, [argument.value for argument in arguments])

    return native(1 + count, types.void, emitted)


int64_at, int32_at, int16_at = _loader(I64), _loader(I32), _loader(I16)
put_int64, put_int32, put_int16 = _storer(I64), _storer(I32), _storer(I16)
copy_bytes = native(3, types.void, _emit_copy)  # (to, from, bytes)
zero_bytes = native(2, types.void, _emit_zero)  # (to, bytes)
# (address, more): adds atomically and returns the previous number
take = native(2, types.int64, _emit_take)
rest_a_little = native(1, types.void, _emit_rest)  # (rounds waited so far)
call_unit, call_rows = _caller(4), _caller(7)


@compiled
def word(op: int, place: int) -> int:
    """A 64-bit word of the record at the address `op`."""
    return int64_at(op + 8 * place)
