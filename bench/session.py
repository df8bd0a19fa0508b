"""What a session costs over the runtime itself.

* A tiny model: `Session.run` at most 3 µs over the bare C call with the same arguments.
* vww int8 and MobileNet v1: `Session.run` / a bare loop of the C call is 1.00 ± 0.02.
* 50 MB in and 50 MB out: views at least 5 times cheaper than set_tensor / get_tensor.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, perf_counter_ns

from report import print_table, tell_figure, verdict_line
from stock import arguments, want_folder

import litesmith
from litesmith.run.litert.compiled_model import CompiledRunner
from litesmith.run.session import fill_inputs
from litesmith.timing.copies import Copies, time_copies
from litesmith.timing.statistics import Ratio, turns_ratio
from litesmith.units import bytes_text, ratio_text, time_text

OVERHEAD_US, TOLERANCE, CHEAPER = 3.0, 0.02, 5.0
MODELS = ("vww_96_int8.tflite", "mobilenet_v1_1.0_224.tflite")
TURN_SECONDS = 0.003
BLOCKS, TURNS = 12, 20


def adder(elements: int) -> litesmith.Model:
    b = litesmith.Builder()
    x = b.input("x", (1, elements))
    return b.model(b.op("ADD", x, x))


def bare(session: litesmith.Session) -> Callable[[int], None]:
    """A loop of nothing but the C call, with the session's own arguments."""
    runner = session.runner
    assert isinstance(runner, CompiledRunner)
    function, given = runner._run, runner._arguments

    def loop(runs: int) -> None:
        for _ in range(runs):
            function(*given)

    return loop


def ours(session: litesmith.Session) -> Callable[[int], None]:
    def loop(runs: int) -> None:
        for _ in range(runs):
            session.run()

    return loop


def timed(loop: Callable[[int], None], runs: int) -> float:
    """Microseconds of one run."""
    start = perf_counter_ns()
    loop(runs)
    return (perf_counter_ns() - start) / 1e3 / runs


def compare(source: Path | litesmith.Model, seconds: float) -> tuple[float, float, Ratio]:
    """Microseconds of the bare call and of Session.run, and their ratio, in mirrored turns."""
    blocks: list[float] = []
    times: tuple[list[float], list[float]] = ([], [])
    end = perf_counter() + seconds
    while len(blocks) < BLOCKS or perf_counter() < end:
        with litesmith.Session(source) as session:
            fill_inputs(session)
            loops = (bare(session), ours(session))
            timed(loops[0], 3)
            runs = max(1, round(TURN_SECONDS * 1e6 / timed(loops[0], 3)))
            pairs = [_pair(loops, runs, turn % 2) for turn in range(TURNS)]
        leads = [turn % 2 == 0 for turn in range(TURNS)]
        blocks.append(turns_ratio([a for a, _ in pairs], [b for _, b in pairs], leads))
        times[0].extend(a for a, _ in pairs)
        times[1].extend(b for _, b in pairs)
    return median(times[0]), median(times[1]), Ratio(tuple(blocks))


def _pair(
    loops: tuple[Callable[[int], None], Callable[[int], None]], runs: int, first: int
) -> tuple[float, float]:
    found = {place: timed(loops[place], runs) for place in (first, 1 - first)}
    return found[0], found[1]


def call_rows(folder: Path, seconds: float) -> tuple[list[tuple[str, ...]], list[str]]:
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, source in (("tiny", adder(4)), *((n, folder / n) for n in MODELS)):
        call, run, ratio = compare(source, seconds)
        rows.append(
            (
                name,
                time_text(call),
                time_text(run),
                time_text(run - call),
                ratio_text(ratio.value, *ratio.interval),
            )
        )
        tell_figure(f"{name} more", run - call)
        tell_figure(f"{name} ratio", ratio.value, *ratio.interval)
        if name == "tiny" and run - call > OVERHEAD_US:
            missed.append(f"{name}: Session.run costs {time_text(run - call)} over the call")
        if name != "tiny" and abs(ratio.value - 1) > TOLERANCE:
            missed.append(f"{name}: Session.run takes {ratio_text(ratio.value)} of a bare loop")
    return rows, missed


def moving(found: Copies) -> float:
    return found.feed_us + found.read_us


def copy_rows(seconds: float) -> tuple[list[tuple[str, ...]], list[str]]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "wide.tflite"
        litesmith.save(adder(12_500_000), path)
        found = time_copies(path, seconds=seconds)
    classic = next(one for one in found if one.way.startswith("set_tensor"))
    for one in found:
        tell_figure(one.way, moving(classic) / moving(one))
    rows = [
        (
            one.way,
            time_text(one.feed_us),
            time_text(one.read_us),
            bytes_text(one.copied_bytes),
            f"{moving(classic) / moving(one):.1f}",
        )
        for one in found
    ]
    slow = [
        f"{one.way}: {moving(classic) / moving(one):.1f} times cheaper"
        for one in found
        if one.way.startswith("view") and moving(classic) / moving(one) < CHEAPER
    ]
    return rows, slow


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each comparison")
    options = parser.parse_args()
    rows, missed = call_rows(want_folder(options.models, "--models"), options.seconds)
    print_table(("model", "C call", "Session.run", "more", "ratio (95 % interval)"), rows)
    rows, slow = copy_rows(options.seconds)
    print_table(("50 MB in, 50 MB out", "feed", "read", "copied", "times cheaper"), rows)
    return verdict_line([*missed, *slow])


if __name__ == "__main__":
    sys.exit(main())
