"""A short calibration: some sparse layers in Litesmith's kernels beside the runtime's dense ones.

It takes half a second, once per processor, when a session on `cpu:N:litesmith` first meets a layer
with zeros. The constants of `sparse_parts.py` say how times depend on shapes; the calibration
learns one factor for the runtime's kernels and one for ours, for each kind of layers. Both take
turns, and the shortest runs count, so that other work on the machine does little harm.
"""

import time
from collections.abc import Callable, Sequence
from statistics import geometric_mean

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.types import Array, Model, Quant
from litesmith.kernels.programs.cost_factors import (
    Factors,
    Learned,
    is_learned,
    is_possible,
    keep,
    kind_of,
)
from litesmith.kernels.programs.prepare_sparse import sparse_layer
from litesmith.kernels.programs.program import Program, address, align
from litesmith.kernels.programs.sparse_parts import BLOCK, KINDS, expected_ns
from litesmith.run.core.target import Target
from litesmith.run.litert.compiled_model import CompiledRunner
from litesmith.tflite.write import to_bytes

# Rows, inputs and channels, of many rows and of few: of the middle layers of common networks.
SHAPES = {False: ((196, 256, 256), (49, 512, 512)), True: ((1, 1024, 1024), (1, 512, 1024))}
ZEROS = 0.9
_ROUNDS, _LEAST_NS = 12, 400_000
_TIMES = 16  # that a program has our kernel: a call of Python's takes as long as a small layer


def learn_costs() -> None:
    """Learns the costs on this machine, unless they are known or cannot be stored."""
    if not is_learned():
        keep(measured())


def measured() -> Learned:
    """The factors of each kind of layers."""
    found: Learned = {}
    for dtype in KINDS:
        for is_few, shapes in SHAPES.items():
            pairs = [_measure(dtype, *shape) for shape in shapes]
            factors = Factors(*(geometric_mean(side) for side in zip(*pairs, strict=True)))
            if is_possible(factors):
                found[kind_of(dtype, is_few)] = factors
    return found


def _measure(dtype: str, rows: int, inputs: int, channels: int) -> Factors:
    """The factors of one layer."""
    model = _layer(dtype, rows, inputs, channels)
    op = model.main.ops[0]
    program = Program((sparse_layer(op),) * _TIMES, model.main.inputs, model.main.outputs)
    arrays = [align(np.zeros(t.shape, t.dtype)) for t in (op.inputs[0], *op.outputs) if t]
    places = [address(array) for array in arrays]
    runner = CompiledRunner(to_bytes(model), Target("cpu", 1))
    try:
        dense, sparse = _shortest((runner.run, lambda: program.run_at(places)))
    finally:
        runner.close()
    expected = expected_ns(rows, inputs, channels, _zeros(model), dtype)
    return Factors(dense / expected[0], sparse / _TIMES / expected[1])


def _layer(dtype: str, rows: int, inputs: int, channels: int) -> Model:
    """A fully connected layer with a fixed share of its blocks of weights zero."""
    rng = np.random.default_rng(0)
    kept = rng.random((channels, inputs // BLOCK, 1)) >= ZEROS
    weights = (rng.integers(1, 127, (channels, inputs // BLOCK, BLOCK)) * kept).astype(dtype)
    flat, bias = weights.reshape(channels, inputs), np.zeros(channels, KINDS[dtype].bias)
    b = Builder()
    if dtype == "float32":
        return b.model(b.op("FULLY_CONNECTED", b.input("x", (rows, inputs)), flat, bias))
    x = b.input("x", (rows, inputs), "int8", Quant.of(0.02))
    steps = np.full(channels, 0.01, np.float32)
    w = b.const(flat, "w", quant=Quant.of(steps, axis=0))
    start = b.const(bias, "b", quant=Quant.of(np.float32(0.02) * steps, axis=0))
    return b.model(b.op("FULLY_CONNECTED", x, w, start, dtype="int8", quant=Quant.of(0.5)))


def _zeros(model: Model) -> float:
    weight = model.main.ops[0].inputs[1]
    assert weight is not None and weight.data is not None
    blocks: Array = np.asarray(weight.data).reshape(-1, BLOCK)
    return 1 - float(np.any(blocks, axis=1).mean())


def _shortest(runs: Sequence[Callable[[], object]]) -> list[float]:
    """Nanoseconds of a run of each: the least of some rounds, in turns."""
    clock = time.thread_time_ns if is_fine(time.thread_time_ns) else time.perf_counter_ns
    least = [float("inf")] * len(runs)
    for _ in range(_ROUNDS):
        for place, run in enumerate(runs):
            run()  # what the other one left in the caches goes
            count, began = 0, clock()
            while (took := clock() - began) < _LEAST_NS or not count:
                run()
                count += 1
            least[place] = min(least[place], took / count)
    return least


def is_fine(clock: Callable[[], int]) -> bool:
    """True where a clock moves within the shortest time that is measured, and not in leaps: that of
    a thread takes steps of 16 ms on Windows, which tells 100 ns of it."""
    began, ends = clock(), time.perf_counter_ns() + _LEAST_NS
    while time.perf_counter_ns() < ends:
        pass
    return 0 < clock() - began <= 2 * _LEAST_NS
