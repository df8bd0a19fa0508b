"""The most products that this machine can make on one thread, of the kernels' instructions."""

import ctypes
from collections.abc import Callable, Sequence
from time import thread_time_ns

from llvmlite import ir
from numba import types

from litesmith.native import emit_llvm as emit
from litesmith.native.cpu import Cpu
from litesmith.native.emit_llvm import I32, Value, store, vec
from litesmith.native.tiles import CPU, Loop, compiled, native


def _peak_of(dot: Callable[[Cpu, Value, Value, Value], Value]) -> Callable[..., int]:
    """(rounds, out): a tile of sums to which products are added by `dot`, nothing loaded.

    Empty assembly hides from LLVM that all products are the same.
    """

    def emitted(given: Sequence[Value]) -> None:
        rounds, out = given
        b, lanes = rounds.b, vec(I32)
        factors = rounds.convert("trunc", I32).splat()
        kind = ir.FunctionType(lanes, [lanes])
        loop = Loop(rounds, [factors] * (CPU.rows * CPU.vectors))
        sums: list[Value] = []
        for total in loop.values:
            hidden = Value(b, b.asm(kind, "", "=v,0", [factors.value], side_effect=True))
            sums.append(dot(CPU, total, hidden, factors))
        loop.end(sums)
        everything = sums[0]
        for total in sums[1:]:
            everything = everything + total
        store(everything, out)

    return native(2, types.void, emitted)


_pairs, _fours = _peak_of(emit.dot_pairs), _peak_of(emit.dot_fours)


@compiled
def _run_pairs(rounds: int, out: int) -> None:
    _pairs(rounds, out)


@compiled
def _run_fours(rounds: int, out: int) -> None:
    _fours(rounds, out)


# Products of a lane, and what makes as many as the machine can.
_PEAKS = {"int16": (2, _run_pairs), "int8": (4, _run_fours)}


def peak_gmacs(dtype: str = "int16", rounds: int = 200_000) -> float | None:
    """Products a nanosecond, one thread, at most; None where it cannot be measured."""
    if CPU.pairs != "avx512bw":
        return None
    products, run = _PEAKS[dtype]
    out = ctypes.create_string_buffer(64)
    run(1, ctypes.addressof(out))  # compiles it
    began = thread_time_ns()
    run(rounds, ctypes.addressof(out))
    return rounds * CPU.rows * CPU.vectors * 16 * products / (thread_time_ns() - began)
