"""Traces: slices on tracks, as a file that the Perfetto UI and Chrome's tracing page open."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from litesmith.ir.build import Builder
from litesmith.phrases import phrase
from litesmith.profiling.events import Run, moments
from litesmith.run.session import Session
from litesmith.tflite.file import write_whole

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

# Clocks that differ by less than this are the same clock: a run takes a while to begin.
_SAME_CLOCK_NS = 1_000_000
_PROCESS, _SEQUENCE = 1, 1  # numbers that a trace wants; there is one process, one writer
PERFETTO, CHROME = "Perfetto trace", "Chrome trace-event JSON"


@dataclass(frozen=True)
class Piece:
    """A slice of a trace, on Python's `perf_counter` clock. On a track, slices nest or follow."""

    track: str
    name: str
    start_ns: int
    ns: int
    details: tuple[tuple[str, str | int], ...] = ()

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.ns


def write_trace(path: Path, pieces: Iterable[Piece]) -> str:
    """Writes a trace and returns its format: Chrome's where the name ends in .json or the package
    perfetto is not installed, Perfetto's otherwise."""
    ordered = sorted(pieces, key=lambda piece: (piece.track, piece.start_ns, -piece.ns))
    if path.suffix == ".json" or find_spec("perfetto") is None:
        write_whole(path, [json.dumps(_chrome(ordered)).encode()])
        return CHROME
    write_whole(path, _perfetto(ordered))
    return PERFETTO


def run_pieces(runs: Sequence[Run], track: str) -> Iterator[Piece]:
    """A slice for each run with a slice for each op inside it."""
    offset = clock_offset_ns()
    for number, run in enumerate(runs):
        start, end = round(1000 * run.start_us), round(1000 * (run.start_us + run.us))
        yield Piece(track, phrase("run {number}", number), start - offset, end - start)
        for part in run.slices:
            first = min(max(round(1000 * part.start_us), start), end)
            last = min(max(round(1000 * (part.start_us + part.us)), first), end)
            place = -1 if part.index is None else part.index
            details = (("graph", part.graph), ("op", place), ("kernel", part.kernel))
            details += (("runtime", part.tag),)
            yield Piece(track, part.name, first - offset, last - first, details)


@cache
def clock_offset_ns() -> int:
    """The runtime's clock minus Python's `perf_counter`, measured on a model of one op.

    On Linux both are the same clock and the answer is 0.
    """
    b = Builder()
    model = b.model(b.op("ADD", b.input("x", (1,)), np.ones(1, np.float32)))
    differences: list[int] = []
    with Session(model, profile=True) as session:
        for _ in range(5):
            session.start_profile()
            start = perf_counter_ns()
            session.run()
            told = [m.start_us for m in moments(session.stop_profile()) if m.start_us]
            differences.append(1000 * min(told, default=start // 1000) - start)
    least = min(differences, key=abs)  # it has the least delay in it
    return 0 if abs(least) < _SAME_CLOCK_NS else least


def _chrome(pieces: Sequence[Piece]) -> dict[str, object]:
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": _PROCESS, "name": "process_name", "args": {"name": "litesmith"}}
    ]
    for number, (track, own) in enumerate(groupby(pieces, key=lambda piece: piece.track), 1):
        place = {"pid": _PROCESS, "tid": number}
        events.append({"ph": "M", **place, "name": "thread_name", "args": {"name": track}})
        for piece in own:
            times = {"ts": piece.start_ns / 1000, "dur": piece.ns / 1000}
            events.append(
                {"ph": "X", **place, "name": piece.name, **times, "args": dict(piece.details)}
            )
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _perfetto(pieces: Sequence[Piece]) -> Iterator[bytes]:
    """The trace packet by packet; each is a field of the message Trace, so they simply follow."""
    for number, (track, own) in enumerate(groupby(pieces, key=lambda piece: piece.track), 1):
        yield _wrapped(_track_packet(number, track, is_first=number == 1))
        for piece, is_begin in _begins_and_ends(list(own)):
            yield _wrapped(_slice_packet(number, piece, is_begin=is_begin))


def _begins_and_ends(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Each slice when it begins (True) and when it ends, inner ones ending first."""
    open_pieces: list[Piece] = []
    for piece in pieces:
        while open_pieces and open_pieces[-1].end_ns <= piece.start_ns:
            yield open_pieces.pop(), False
        yield piece, True
        open_pieces.append(piece)
    while open_pieces:
        yield open_pieces.pop(), False


def _wrapped(packet: "TracePacket") -> bytes:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.packet.append(packet)
    return trace.SerializeToString()


def _track_packet(number: int, name: str, *, is_first: bool) -> "TracePacket":
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

    packet = TracePacket()
    packet.trusted_packet_sequence_id = _SEQUENCE
    if is_first:
        packet.sequence_flags = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    packet.track_descriptor.uuid = number
    packet.track_descriptor.name = name
    return packet


def _slice_packet(number: int, piece: Piece, *, is_begin: bool) -> "TracePacket":
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent

    packet = TracePacket()
    packet.trusted_packet_sequence_id = _SEQUENCE
    packet.timestamp = piece.start_ns if is_begin else piece.end_ns
    event = packet.track_event
    event.track_uuid = number
    event.type = TrackEvent.TYPE_SLICE_BEGIN if is_begin else TrackEvent.TYPE_SLICE_END
    if is_begin:
        event.name = piece.name
        for key, value in piece.details:
            note = event.debug_annotations.add()
            note.name = key
            if isinstance(value, int):
                note.int_value = value
            else:
                note.string_value = value
    return packet
