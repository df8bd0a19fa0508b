"""Traces: slices on tracks, as a file for the Perfetto UI and Chrome's tracing page.

Spans of the application lie on the same timeline as the model's ops, because the time may be lost
outside the model.
"""

import json
import os
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from litesmith.profiling.events import Run, Timeline, moments
from litesmith.run.session import Session
from litesmith.tflite.file import refuse_unwritable, write_whole

if TYPE_CHECKING:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

# Clocks that differ by less than this are the same clock: a run takes a while to begin.
_SAME_CLOCK_NS = 1_000_000
_PROCESS, _SEQUENCE = 1, 1  # ids that a trace requires; there is one process and one writer
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
            starts = [m.start_us for m in moments(session.stop_profile()) if m.start_us]
            differences.append(1000 * min(starts, default=start // 1000) - start)
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
        yield _wrap(_track_packet(number, track, is_first=number == 1))
        for piece, is_begin in _begins_and_ends(list(own)):
            yield _wrap(_slice_packet(number, piece, is_begin=is_begin))


def _begins_and_ends(pieces: Sequence[Piece]) -> Iterator[tuple[Piece, bool]]:
    """Each slice at its beginning (True) and at its end; inner slices end first."""
    open_pieces: list[Piece] = []
    for piece in pieces:
        while open_pieces and open_pieces[-1].end_ns <= piece.start_ns:
            yield open_pieces.pop(), False
        yield piece, True
        open_pieces.append(piece)
    while open_pieces:
        yield open_pieces.pop(), False


def _wrap(packet: "TracePacket") -> bytes:
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


# The limit of a recording, so that one that never ends does not fill the memory.
_MOST_SPANS = 100_000


class Recording:
    """The spans of all threads, up to a limit; `dropped` counts those beyond it."""

    def __init__(self, most: int = _MOST_SPANS) -> None:
        self.dropped = 0
        self._most = most
        self._pieces: list[Piece] = []
        self._lock = threading.Lock()

    def add(self, piece: Piece) -> None:
        with self._lock:
            if len(self._pieces) < self._most:
                self._pieces.append(piece)
            else:
                self.dropped += 1

    @property
    def pieces(self) -> tuple[Piece, ...]:
        with self._lock:
            return tuple(self._pieces)


_active: list[Recording] = []
_active_lock = threading.Lock()


@contextmanager
def span(name: str) -> Generator[None]:
    """Records the time spent inside the block, if a recording is on; also a decorator.

    >>> with litesmith.span("decode"):
    ...     image = np.load("val.npz")["x"][0]
    """
    start = perf_counter_ns()
    try:
        yield
    finally:
        end = perf_counter_ns()
        with _active_lock:
            recordings = list(_active)
        if recordings:
            thread = threading.current_thread()
            track = phrase("application: {name} ({native_id})", thread.name, thread.native_id)
            for recording in recordings:
                recording.add(Piece(track, name, start, end - start))


@contextmanager
def record(path: str | os.PathLike[str], *sessions: Session) -> Generator[Recording]:
    """Writes a trace of the spans inside the block and of the runs of sessions opened with
    `profile=True`.

    >>> with litesmith.Session("model.tflite", profile=True) as session:
    ...     with litesmith.record("run.json", session):
    ...         with litesmith.span("decode"):
    ...             session.inputs["image"][...] = 0.5
    ...         session.run()

    Spans are on Python's `perf_counter` clock. The runtime's times are moved to it by an offset
    that is measured; on Linux it is 0, because both read the same clock.
    """
    refuse_unwritable(Path(path))  # fails before the work, not after it
    recording = Recording()
    for session in sessions:
        session.start_profile()
    with _active_lock:
        _active.append(recording)
    try:
        yield recording
    finally:
        with _active_lock:
            _active.remove(recording)
        pieces = list(recording.pieces)
        for number, session in enumerate(sessions, 1):
            runs = Timeline(session.model).runs(moments(session.stop_profile()))
            pieces += run_pieces(runs, phrase("model {number} on {target}", number, session.target))
        write_trace(Path(path), pieces)
