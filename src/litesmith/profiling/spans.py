"""The application's own work on the same timeline as the model's: the bug may be outside it."""

import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns

from litesmith.phrases import phrase
from litesmith.profiling.events import Timeline, moments
from litesmith.profiling.trace import Piece, run_pieces, write_trace
from litesmith.run.session import Session
from litesmith.tflite.file import refuse_unwritable

# A recording that nobody ends must not eat the memory.
_MOST_SPANS = 100_000


class Recording:
    """Spans of all threads, up to a limit; `dropped` counts those beyond it."""

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
    """Puts what happens inside into the recording that is on, if one is; also a decorator.

    >>> with litesmith.span("decode"):                                  # doctest: +SKIP
    ...     image = decode(file)
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
    """Writes a trace of the spans inside it and of the runs of sessions opened with `profile=True`.

    >>> with litesmith.record("out.pftrace", session):                  # doctest: +SKIP
    ...     with litesmith.span("decode"):
    ...         session.inputs["image"][...] = decode(file)
    ...     session.run()

    Spans are on Python's `perf_counter` clock. The runtime's times are moved to it by an offset
    that is measured; on Linux it is 0, because both read the same clock.
    """
    refuse_unwritable(Path(path))  # before the work, not after it
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
