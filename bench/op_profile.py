"""Per-operator profiles that add up, and a trace that reads back.

Bars, for each of four models on one thread:

* the op times sum to within 15 % of the p50 of unprofiled runs, taken in turns with the profiled
  ones; what recording costs is shown apart, as overhead;
* every op of the file has a time, or is named as fused or removed;
* the trace of a MobileNet profile parses back with perfetto's own classes (or as Chrome's JSON
  where perfetto is not installed) and holds one slice for each timed op and run.
"""

import json
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from report import print_table, tell_figure, verdict_line
from stock import MISSING, arguments, want_folder

from litesmith.profiling.alignment import NO_EVENT
from litesmith.profiling.op_times import Profile, profile_ops
from litesmith.profiling.trace import run_pieces, write_trace
from litesmith.units import percent_text, time_text

MOST_APART = 0.15
MODELS = ("mobilenet_v1_1.0_224", "efficientnet_lite0_f32", "vww_96_int8", "deeplabv3")
TRACED = MODELS[0]


def row(name: str, found: Profile) -> tuple[str, ...]:
    timed = sum(bool(op.kernel) for op in found.ops)
    named = sum(bool(op.why) and op.why != NO_EVENT for op in found.ops)
    return (
        name,
        time_text(found.run_us),
        time_text(found.ops_us),
        f"{found.ops_us / found.run_us:.3f}",
        percent_text(found.overhead),
        str(len(found.ops)),
        str(timed),
        str(named),
        str(len(found.runs)),
    )


def missed(name: str, found: Profile) -> list[str]:
    """The bars that a profile misses."""
    ratio = found.ops_us / found.run_us
    tell_figure(name, ratio)
    lines: list[str] = []
    if abs(ratio - 1) > MOST_APART:
        lines.append(f"{name}: the ops sum to {ratio:.3f} of the unprofiled p50")
    for op in found.ops:
        if not op.kernel and (not op.why or op.why == NO_EVENT):
            lines.append(f"{name}: op {op.index} {op.kind} has no time and no reason")
    return lines


def slices(path: Path) -> Counter[str]:
    """The number of slices of each name in a trace, read back by perfetto or as Chrome's JSON."""
    if path.suffix == ".json":
        events = json.loads(path.read_text())["traceEvents"]
        wanted = {"ph", "pid", "tid", "name", "ts", "dur", "args"}
        complete = [event for event in events if event["ph"] == "X"]
        if not all(wanted == set(event) for event in complete):
            return Counter()
        return Counter(event["name"] for event in complete)
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    events = [p.track_event for p in trace.packet if p.HasField("track_event")]
    begins = [event for event in events if event.type == TrackEvent.TYPE_SLICE_BEGIN]
    ends = [event for event in events if event.type == TrackEvent.TYPE_SLICE_END]
    return Counter(event.name for event in begins) if len(begins) == len(ends) else Counter()


def trace_missed(found: Profile, path: Path) -> list[str]:
    kind = write_trace(path, run_pieces(found.runs, TRACED))
    seen = slices(path)
    ops = sum(count for name, count in seen.items() if not name.startswith("run "))
    timed = sum(bool(op.kernel) for op in found.ops)
    print(f"{kind}: {ops} slices of {timed} ops in {len(found.runs)} runs")
    if ops != timed * len(found.runs) or seen.total() != ops + len(found.runs):
        return [f"{TRACED}: the {kind} holds {ops} slices, not {timed} × {len(found.runs)}"]
    return []


def main() -> int:
    options = arguments(__doc__).parse_args()
    folder = want_folder(options.models, "--models")
    lines: list[str] = []
    rows: list[tuple[str, ...]] = []
    traced: Profile | None = None
    for name in MODELS:
        path = folder / f"{name}.tflite"
        if not path.is_file():
            print(f"{path}: no such file; name its folder with --models", file=sys.stderr)
            return MISSING
        found = profile_ops(path, on="cpu:1")
        rows.append(row(name, found))
        lines += missed(name, found)
        traced = found if name == TRACED else traced
    head = ("model", "p50", "ops", "ratio", "overhead", "ops", "timed", "fused", "runs")
    print_table(head, rows)
    assert traced is not None
    with TemporaryDirectory() as scratch:
        names = ["t.json", "t.pftrace"] if find_spec("perfetto") else ["t.json"]
        for name in names:
            lines += trace_missed(traced, Path(scratch) / name)
    return verdict_line(lines)


if __name__ == "__main__":
    sys.exit(main())
