"""The progress of long work on the terminal: a line that disappears, and notes that stay."""

import shutil
import sys
from collections.abc import Callable
from time import monotonic
from types import TracebackType
from typing import Self, TypeVar

from litesmith.cli.options.wrapping import clip
from litesmith.cli.text.message import say
from litesmith.lang import language
from litesmith.phrases import phrase
from litesmith.progress import Note, Status
from litesmith.units import plain, time_text, total_text

_PATIENCE_SECONDS = 1.0
_FRAME_SECONDS = 0.1  # the shortest time between two lines, because drawing costs time

# a remaining time is shown from here on: earlier it is a guess, and shorter ones do not matter
_LEAST_SECONDS = 1.0

_CLEAR = "\r\x1b[K"

V = TypeVar("V")


class Terminal:
    """The `progress` of a command: shows the state of the work, and prints its notes at once.

    quiet     True where a program reads the output: no line is shown, but notes are printed
    patience  seconds before the first line: shorter work shows none
    """

    def __init__(self, *, quiet: bool = False, patience: float = _PATIENCE_SECONDS) -> None:
        self._shows, self._patience = not quiet and sys.stderr.isatty(), patience
        self._began = self._since = monotonic()
        self._what, self._drawn = "", 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._clear()

    def __call__(self, event: Status | Note) -> None:
        if isinstance(event, Note):
            self._clear()
            say(event.kind, event.text)
        elif self._shows:
            self._show(event)

    def _clear(self) -> None:
        if self._drawn:
            print(_CLEAR, end="", file=sys.stderr, flush=True)

    def _show(self, status: Status) -> None:
        now = monotonic()
        if status.what != self._what:
            self._what, self._since = status.what, now
        elif now - self._drawn < _FRAME_SECONDS:
            return
        is_all = not status.of and not status.done  # the work reports nothing after this
        if is_all or now - self._began >= self._patience:
            self._drawn = now
            width = shutil.get_terminal_size().columns - 1
            text = clip(status_line(status, now - self._since), width)
            print(f"{_CLEAR}{text}", end="", file=sys.stderr, flush=True)


def pass_on(show: Callable[[V], None]) -> Callable[[V | Status | Note], None]:
    """A `progress` that prints notes at once and draws views with the given function."""

    def progress(event: V | Status | Note) -> None:
        if isinstance(event, Note):
            say(event.kind, event.text)
        elif not isinstance(event, Status):
            show(event)

    return progress


def status_line(status: Status, seconds: float) -> str:
    """The state of work that began `seconds` ago, in a line."""
    parts = [plain(language.say(status.what))]
    if status.of:
        parts.append(f"{total_text(status.done)}/{total_text(status.of)}")
    left = seconds * (status.of / status.done - 1) if status.done else 0.0
    if min(seconds, left) >= _LEAST_SECONDS:
        parts.append(language.say(phrase("about {time} left", time_text(1e6 * left))))
    if status.more:
        parts.append(plain(language.say(status.more)))
    return " · ".join(parts)
