#!/usr/bin/env python3
"""A stand-in for TensorFlow Lite's `benchmark_model`, for a machine with only the Python wheel.

It takes the flags that litesmith passes, opens and runs the model in the same runtime, and prints
the times in the words of `benchmark_model`.
"""

import sys
from statistics import fmean, pstdev
from time import perf_counter_ns

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType


def main() -> int:
    flags = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
    print("INFO: STARTING!")
    print(f"INFO: Num threads: [{flags['num_threads']}]\nINFO: Graph: [{flags['graph']}]")
    if flags.get("use_gpu") == "true":
        print("ERROR: GPU acceleration is unsupported on this platform.")
        return 1
    uses_xnnpack = flags.get("use_xnnpack") == "true"
    start = perf_counter_ns()
    try:
        interpreter = Interpreter(
            flags["graph"],
            num_threads=int(flags["num_threads"]),
            experimental_op_resolver_type=OpResolverType.AUTO
            if uses_xnnpack
            else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        )
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        print(f"ERROR: Failed to load model {flags['graph']}: {' '.join(str(error).split())}")
        return 1
    created = (perf_counter_ns() - start) / 1e3
    fill(interpreter)
    print(f"INFO: Loaded model {flags['graph']}")
    warm_up = runs_of(interpreter, 1, float(flags["warmup_min_secs"]))
    print(f"INFO: {told(warm_up)}\n")
    times = runs_of(interpreter, int(flags["num_runs"]), float(flags["min_secs"]))
    print(f"INFO: {told(times)}\n")
    print(
        f"INFO: Inference timings in us: Init: {created:.0f}, First inference: {warm_up[0]:.0f}, "
        f"Warmup (avg): {fmean(warm_up):g}, Inference (avg): {fmean(times):g}"
    )
    return 0


def fill(interpreter: Interpreter) -> None:
    """Fills every input with random numbers: small integers, since those may be indices."""
    random = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        kind = np.dtype(detail["dtype"])
        most = 128 if kind.itemsize < 4 else 2
        values = random.uniform(0, 1, detail["shape"]) * (1 if kind.kind == "f" else most)
        interpreter.set_tensor(detail["index"], values.astype(kind))


def runs_of(interpreter: Interpreter, count: int, seconds: float) -> list[float]:
    """The microseconds of each run: at least `count` runs, for at least `seconds`."""
    times: list[float] = []
    while len(times) < count or sum(times) < seconds * 1e6:
        start = perf_counter_ns()
        interpreter.invoke()
        times.append((perf_counter_ns() - start) / 1e3)
    return times


def told(times: list[float]) -> str:
    low, high = round(min(times)), round(max(times))
    return (
        f"count={len(times)} first={times[0]:.0f} curr={times[-1]:.0f} min={low} max={high} "
        f"avg={fmean(times):g} std={pstdev(times):.0f}"
    )


if __name__ == "__main__":
    sys.exit(main())
