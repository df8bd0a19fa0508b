"""Traces read back: with perfetto's own classes, and as Chrome's JSON."""

import json
from itertools import pairwise
from pathlib import Path

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from litesmith.errors import BadInput
from litesmith.profiling.op_times import profile_ops
from litesmith.profiling.trace import (
    CHROME,
    PERFETTO,
    Piece,
    clock_offset_ns,
    run_pieces,
    write_trace,
)
from tests import zoo

PIECES = [
    Piece("b", "outer", 100, 50),
    Piece("b", "inner", 100, 20, (("op", 3), ("kernel", "xnnpack"))),
    Piece("b", "empty", 130, 0),
    Piece("a", "alone", 90, 5),
]


def read_perfetto(path: Path) -> Trace:
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    return trace


def test_perfetto_reads_what_was_written(tmp_path: Path) -> None:
    assert write_trace(tmp_path / "t.pftrace", PIECES) == PERFETTO
    trace = read_perfetto(tmp_path / "t.pftrace")
    tracks = {p.track_descriptor.uuid: p.track_descriptor.name for p in trace.packet}
    events = [p for p in trace.packet if p.HasField("track_event")]
    seen = [
        (tracks[p.track_event.track_uuid], p.track_event.type, p.track_event.name, p.timestamp)
        for p in events
    ]
    begin, end = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END
    assert seen == [
        ("a", begin, "alone", 90),
        ("a", end, "", 95),
        ("b", begin, "outer", 100),
        ("b", begin, "inner", 100),
        ("b", end, "", 120),
        ("b", begin, "empty", 130),
        ("b", end, "", 130),
        ("b", end, "", 150),
    ]
    notes = {n.name: n for n in events[3].track_event.debug_annotations}
    assert notes["op"].int_value == 3
    assert notes["kernel"].string_value == "xnnpack"


def test_chrome_reads_what_was_written(tmp_path: Path) -> None:
    assert write_trace(tmp_path / "t.json", PIECES) == CHROME
    events = json.loads((tmp_path / "t.json").read_text("utf-8"))["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"]) for e in slices] == [
        ("alone", 0.09, 0.005),
        ("outer", 0.1, 0.05),
        ("inner", 0.1, 0.02),
        ("empty", 0.13, 0.0),
    ]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [names[e["tid"]] for e in slices] == ["a", "b", "b", "b"]


def test_one_slice_for_each_op_and_run_inside_its_run(tmp_path: Path) -> None:
    found = profile_ops(zoo.convnet(), runs=3)
    pieces = list(run_pieces(found.runs, "convnet"))
    runs = [piece for piece in pieces if piece.name.startswith("run ")]
    assert len(runs) == 3
    for run in runs:
        own = [p for p in pieces if p not in runs and run.start_ns <= p.start_ns <= run.end_ns]
        assert [dict(p.details)["op"] for p in own] == [0, 1, 2, 3, 4]
        assert all(p.end_ns <= run.end_ns for p in own)
        assert all(a.end_ns <= b.start_ns for a, b in pairwise(own))
    write_trace(tmp_path / "t", pieces)
    events = [p.track_event.type for p in read_perfetto(tmp_path / "t").packet]
    assert events.count(TrackEvent.TYPE_SLICE_BEGIN) == 3 * (5 + 1)
    assert events.count(TrackEvent.TYPE_SLICE_END) == 3 * (5 + 1)


def test_the_clocks_are_compared_once() -> None:
    assert clock_offset_ns() == clock_offset_ns()


def test_a_trace_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"):
        write_trace(tmp_path / "missing" / "t.json", PIECES)
    assert not list(tmp_path.iterdir())
