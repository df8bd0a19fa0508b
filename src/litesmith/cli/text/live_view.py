"""A view of long work on the terminal, which goes away when the work is done."""

import sys
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live


class Screen:
    """Shows one picture after another on a terminal; elsewhere lines can be printed instead.

    quiet  True where nothing is to be shown at all
    shows  True where there is a terminal to show pictures on
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.shows = not quiet and sys.stderr.isatty()
        self.console = Console(stderr=True)
        self._live = Live(console=self.console, transient=True, auto_refresh=False)

    def __enter__(self) -> Self:
        if self.shows:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self.shows:
            self._live.stop()

    def draw(self, picture: RenderableType) -> None:
        self._live.update(picture, refresh=True)  # no thread beside timings
