"""The best arithmetic speed this CPU reaches through the runtime: a yardstick for a model's ops."""

from functools import cache
from time import perf_counter

import numpy as np

from litesmith.anatomy.footprint import op_macs
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Op, Quant
from litesmith.run.core.target import Target
from litesmith.run.session import Session

# A 1×1 convolution is the matrix product that the kernels are best at. These sizes keep weights and
# activations inside a usual second-level cache and take about a millisecond.
_SIDE, _CHANNELS = 24, 256
_SECONDS, _LEAST_RUNS = 0.1, 5


@cache
def best_gmacs(target: Target) -> dict[str, float]:
    """GMAC/s of the fastest run of a matrix product, float32 and int8, on a target."""
    return {name: _fastest(model, target) for name, model in _products().items()}


def arithmetic(op: Op) -> str:
    """Which of the two yardsticks an op is held against: its weights decide."""
    places = [tensor for tensor in op.inputs[1:2] if tensor is not None]
    return "float32" if not places or places[0].dtype.startswith("float") else "int8"


def _products() -> dict[str, Model]:
    random = np.random.default_rng(0)
    b = Builder()
    x = b.input("x", (1, _SIDE, _SIDE, _CHANNELS))
    weights = random.normal(0, 0.1, (_CHANNELS, 1, 1, _CHANNELS)).astype(np.float32)
    whole = b.model(b.op("CONV_2D", x, weights, np.zeros(_CHANNELS, np.float32)))
    b = Builder()
    x = b.input("x", (1, _SIDE, _SIDE, _CHANNELS), "int8", Quant.of(0.05))
    codes = random.integers(-127, 128, (_CHANNELS, 1, 1, _CHANNELS)).astype(np.int8)
    scales = np.full(_CHANNELS, 0.01, np.float32)
    w = b.const(codes, quant=Quant.of(scales))
    bias = b.const(np.zeros(_CHANNELS, np.int32), quant=Quant.of(scales * np.float32(0.05)))
    return {
        "float32": whole,
        "int8": b.model(b.op("CONV_2D", x, w, bias, quant=Quant.of(0.2), version=3)),
    }


def _fastest(model: Model, target: Target) -> float:
    with Session(model, target) as session:
        end = perf_counter() + _SECONDS
        times: list[float] = []
        while len(times) < _LEAST_RUNS or perf_counter() < end:
            start = perf_counter()
            session.run()
            times.append(perf_counter() - start)
    return op_macs(model.main.ops[0]) / min(times) / 1e9
