"""The option --engine, and the workers of a cluster as a view shows them."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Annotated

from rich.text import Text

from litesmith.cli.options.declare import option
from litesmith.cli.text.live_view import Screen
from litesmith.cli.text.printing import said
from litesmith.errors import BadInput
from litesmith.lang.language import say
from litesmith.phrases import phrase
from litesmith.units import plain, total_text
from litesmith.workers.engine import ENGINES, Engine, Worker, open_engine, refuse_engine

EngineName = Annotated[
    str,
    option(
        "--engine",
        metavar="|".join(ENGINES),
        help="Who does the work: this machine, or the nodes of a Ray cluster.",
    ),
]

_MOST_LINES = 24


def refuse_unusable(text: str, ops: Sequence[str] | None = None) -> None:
    """Raises before any data is read where there is no such engine."""
    refuse_engine(text)
    if ops and text != ENGINES[0]:
        raise BadInput(
            "--ops with --engine {what}: files of yours stay here; use --engine local", text
        )


def worker_lines(workers: Sequence[Worker]) -> list[Text]:
    """One line a worker: its node, what it does, and how much it has done."""
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
            said(phrase("and {count} more", total_text(len(workers) - _MOST_LINES)), "dim")
        )
    return lines


@contextmanager
def watched_engine(text: str, *, quiet: bool = False) -> Generator[Engine | None]:
    """The engine, with its workers on the terminal while it is at work."""
    with open_engine(text) as engine:
        if engine is None or quiet:
            yield engine
            return
        with Screen(quiet=False) as screen:
            if screen.shows:
                engine.watch(lambda workers: screen.draw(_lines(workers)))
            yield engine
            engine.watch(None)


def _lines(workers: Sequence[Worker]) -> Text:
    return Text("\n").join(worker_lines(workers))
