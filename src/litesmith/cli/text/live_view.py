"""A view of long work on the terminal, which disappears when the work is done."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from litesmith.cli.text.printing import Edge, localize
from litesmith.lang.language import say
from litesmith.phrases import phrase
from litesmith.units import plain, total_text
from litesmith.workers.engine import Worker

_MOST_LINES = 24


class Screen:
    """Shows one picture after another on a terminal; without a terminal, lines can be printed
    instead.

    quiet  True where nothing is shown
    shows  True where there is a terminal to show pictures on
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.shows = not quiet and sys.stderr.isatty()
        self.console = Edge(stderr=True)
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
        self._live.update(picture, refresh=True)  # without a thread, which would disturb timings


def worker_lines(workers: Sequence[Worker]) -> list[Text]:
    """One line per worker: its node, its present work, and the number of finished calls."""
    lines = [
        Text(
            say(
                phrase(
                    "{what} {node}: {doing} · {count} done",
                    phrase("device") if one.device else phrase("worker"),
                    plain(one.node),
                    plain(one.doing) or phrase("waits"),
                    total_text(one.done),
                )
            ),
            style="dim",
            no_wrap=True,
            overflow="ellipsis",
        )
        for one in workers[:_MOST_LINES]
    ]
    if len(workers) > _MOST_LINES:
        lines.append(
            localize(phrase("and {count} more", total_text(len(workers) - _MOST_LINES)), "dim")
        )
    return lines
