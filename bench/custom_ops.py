"""What custom ops cost over what they compute, and what a native one saves.

* A chain of 50 ops on 16 numbers: under 20 µs each in Python, under 1 µs each compiled; nothing is
  subtracted, so the computing of 16 numbers is in it.
* The same chain 10,000 times: resident memory grows by less than 2 MB.
* x · relu6(x + 3) / 6 on 200,704 numbers as four ops of LiteRT's, and replaced by one of ours.
"""

import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import arguments

import litesmith
from litesmith import ops
from litesmith.native.compile import why_not
from litesmith.run.session import fill_inputs
from litesmith.units import bytes_text, ratio_text, time_text

LENGTH, RUNS = 50, 20
PYTHON_US, NATIVE_US, GROWTH_BYTES = 20.0, 1.0, 2_000_000
FIND = "MUL(MUL(x, RELU6(ADD(x, 3))), 0.16666667)"


@litesmith.op("InPython")
def in_python(x):
    return x + 1


@litesmith.op("Compiled")
def compiled(x):
    return x + 1


@compiled.native
def _(x, out):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = x[i, j] + 1


@litesmith.op("PythonSwish")
def python_swish(x):
    return x * np.clip(x + 3, 0, 6) / 6


@litesmith.op("Swish")
def swish(x):
    return x * np.clip(x + 3, 0, 6) / 6


@swish.native
def _(x, out):
    flat, result = x.reshape(-1), out.reshape(-1)
    for i in range(flat.size):
        result[i] = flat[i] * min(max(flat[i] + 3, 0), 6) / 6


@litesmith.delegate("adder")
class Adder:
    """Adds in numpy, an op at a time."""

    def claims(self, op: litesmith.Op) -> bool:
        return op.kind == "ADD"

    def program(self, graph: litesmith.Graph) -> Callable[..., None]:
        constants = [op.inputs[1].data for op in graph.ops]

        def run(inputs, outputs):
            value = inputs[0]
            for constant in constants:
                value = value + constant
            outputs[0][...] = value

        return run


def chain(operator: ops.Operator | None, *, apart: bool = False) -> litesmith.Model:
    """50 ops in a row: of a custom operator, or ADD; `apart` puts NEG between them."""
    b = litesmith.Builder()
    y = b.input("x", (1, 16))
    for _ in range(LENGTH):
        y = b.op("ADD", y, np.float32(1)) if operator is None else operator.add(b, y)
        y = b.op("NEG", y) if apart else y
    return b.model(y)


def swishes() -> dict[str, litesmith.Model]:
    b = litesmith.Builder()
    x = b.input("x", (1, 56, 56, 64))
    six = b.op("RELU6", b.op("ADD", x, np.float32(3)))
    plain = b.model(b.op("MUL", b.op("MUL", x, six), np.float32(1 / 6)))
    replaced = {
        name: litesmith.apply(plain, f'replace(find="{FIND}", op={name})').model
        for name in ("PythonSwish", "Swish")
    }
    return {
        "four ops of LiteRT": plain,
        "numpy": replaced["PythonSwish"],
        "numba": replaced["Swish"],
    }


def in_turns(
    models: dict[str, tuple[litesmith.Model, str]], seconds: float
) -> dict[str, list[float]]:
    """Microseconds of runs, of all models in turns; every block opens them anew."""
    times: dict[str, list[float]] = {name: [] for name in models}
    end, order = perf_counter() + seconds, list(models)
    while perf_counter() < end or not times[order[0]]:
        order.reverse()
        sessions = {name: litesmith.Session(*models[name]) for name in order}
        for session in sessions.values():
            fill_inputs(session)
            session.run()
        for _ in range(RUNS):
            for name, session in sessions.items():
                start = perf_counter_ns()
                session.run()
                times[name].append((perf_counter_ns() - start) / 1e3)
        for session in sessions.values():
            session.close()
    return times


def call_rows(seconds: float) -> tuple[list[tuple[str, ...]], list[str]]:
    bars = {"in Python": PYTHON_US, "a delegate's, in Python": PYTHON_US, "compiled": NATIVE_US}
    models = {
        "LiteRT's ADD": (chain(None), "cpu:1"),
        "in Python": (chain(in_python), "cpu:1"),
        "compiled": (chain(compiled), "cpu:1"),
        "a delegate's, in Python": (chain(None, apart=True), "custom:adder"),
    }
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, found in in_turns(models, seconds).items():
        each = median(found) / LENGTH
        tell_figure(name, each)
        rows.append((name, time_text(median(found)), time_text(each), str(len(found))))
        if each > bars.get(name, np.inf):
            missed.append(f"{name}: {time_text(each)} a call")
    return rows, missed


def growth_rows(runs: int) -> tuple[list[tuple[str, ...]], list[str]]:
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, operator in (("in Python", in_python), ("compiled", compiled)):
        with litesmith.Session(chain(operator)) as session:
            for _ in range(200):
                session.run()
            gc.collect()
            before = resident()
            for _ in range(runs):
                session.run()
            grown = resident() - before
        rows.append((name, str(runs), bytes_text(max(grown, 0))))
        if grown > GROWTH_BYTES:
            missed.append(f"{name}: {bytes_text(grown)} more after {runs} runs")
    return rows, missed


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def swish_rows(seconds: float) -> list[tuple[str, ...]]:
    models = {name: (model, "cpu:1") for name, model in swishes().items()}
    times = {name: median(found) for name, found in in_turns(models, seconds).items()}
    for name, us in times.items():
        tell_figure(name, us)
    first = times["four ops of LiteRT"]
    return [(name, time_text(us), ratio_text(us / first)) for name, us in times.items()]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each of the tables")
    parser.add_argument("--runs", type=int, default=10_000, help="while memory is watched")
    options = parser.parse_args()
    if why_not():
        print(why_not(), file=sys.stderr)
        return 2
    rows, missed = call_rows(options.seconds)
    print_table(("50 custom ops", "a run", "a call", "runs"), rows)
    if Path("/proc/self/statm").exists():
        rows, grown = growth_rows(options.runs)
        missed += grown
        print_table(("50 custom ops", "runs", "memory grew by"), rows)
    print_table(("hard swish", "time", "ratio"), swish_rows(options.seconds))
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
