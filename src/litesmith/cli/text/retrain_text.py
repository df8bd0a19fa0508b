"""What retrain shows while it works and when it is done."""

import json
import sys
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.text import Text

from litesmith.cli.text import printing as show
from litesmith.lang.language import say
from litesmith.phrases import phrase
from litesmith.training.retrain_record import result_facts
from litesmith.training.retraining import Retrained
from litesmith.training.settings import Look
from litesmith.units import number_text, percent_text, plain, score_text, time_text, total_text

_BAR_WIDTH = 20

# Classes and mistakes that are listed; the page has all of them.
_LISTED, _MISTAKES = 12, 3

# Columns of the terminal that all but one name take.
_OTHERS = 60


class Shown:
    """A bar on the terminal for whatever is being done, which goes away."""

    def __init__(self, *, quiet: bool) -> None:
        self._shows = not quiet and sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(_BAR_WIDTH),
            MofNCompleteColumn(),
            TimeLeft(),
            TextColumn("{task.fields[more]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._what, self._task = "", TaskID(0)

    def __enter__(self) -> Self:
        if self._shows:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._shows:
            self._bar.stop()

    def progress(self, what: str, done: int, of: int) -> None:
        self._update(what, done, of)

    def watch(self, look: Look) -> None:
        losses = phrase(
            "loss {number} ({number2} at first)", number_text(look.best), number_text(look.first)
        )
        self._update(look.what, look.step, look.steps, losses)

    def _update(self, what: str, done: int, of: int, more: str = "") -> None:
        if not self._shows:
            return
        if what != self._what:
            if self._what:
                self._bar.remove_task(self._task)
            self._what = what
            self._task = self._bar.add_task(say(what), total=of or None, more=more)
        self._bar.update(self._task, completed=done, more=say(more))


def print_json(result: Retrained, page: Path) -> None:
    click.echo(json.dumps({"schema": 1, **result_facts(result), "report": str(page)}))


def print_text(result: Retrained, page: Path) -> None:
    value = score_text(result.value, "share", result.low, result.high)
    count = total_text(result.n)
    show.line(
        phrase(
            "{name}: top-1 {value} on {count} items not learned from",
            plain(result.out.name),
            value,
            count,
        ),
        "bold",
    )
    took = phrase("{time} in all", time_text(result.seconds * 1e6))
    learned = phrase("{count} items", total_text(sum(result.learned.counts)))
    if result.scratch is not None:
        show.line(
            phrase(
                "{name} trained from scratch on {learned}, {took}",
                result.scratch.name,
                learned,
                took,
            )
        )
    if result.head is not None and result.head.tried:
        share = percent_text(result.head.judged.accuracy)
        show.line(
            phrase(
                "head of {count} classes solved on {learned} ({share} in cross-validation), {took}",
                len(result.classes),
                learned,
                share,
                took,
            )
        )
    if result.tuned is not None and result.head_alone is not None:
        alone = result.head_alone.value
        show.line(
            phrase(
                "the head alone: {score}", score_text(alone.value, "share", alone.low, alone.high)
            )
        )
    _print_classes(result)
    _print_mistakes(result)
    show.line(phrase("report: {page}", plain(str(page))))
    show.line("next:")
    source = quote(str(result.learned.data.source))
    out = quote(str(result.out))
    small = quote(str(result.out.with_name(f"{result.out.stem}-int8.tflite")))
    show.command(f"litesmith quantize {out} --to int8 --data {source} -o {small}")


def _print_classes(result: Retrained) -> None:
    table = show.table("class", "items", "right", "95 %", "taken for", right=(1, 2))
    found = result.found
    names = show.shortened(found.names, _OTHERS)
    shares = [(found.of_class(place), place) for place in range(len(found.names))]
    known = [(value, place) for value, place in shares if value is not None]
    known.sort(key=lambda pair: (pair[0].value, pair[1]))
    for value, place in known[:_LISTED]:
        table.add_row(
            Text(names[found.names[place]]),
            total_text(int(found.table[place].sum())),
            percent_text(value.value),
            f"{percent_text(value.low)}–{percent_text(value.high)}",
            show.said(_taken_for(result, place, names)),
        )
    show.console.print(table)
    if len(known) > _LISTED:
        show.line(
            phrase("and {count} classes that do better; the report has all", len(known) - _LISTED)
        )


def _taken_for(result: Retrained, place: int, names: dict[str, str]) -> str:
    row = result.found.table[place].copy()
    row[place] = 0
    if not row.any():
        return ""
    other = int(row.argmax())
    return f"{names[result.found.names[other]]} ({row[other]})"


def _print_mistakes(result: Retrained) -> None:
    for one in result.found.mistakes[:_MISTAKES]:
        show.line(
            phrase(
                "surely wrong: {name} taken for {said} ({share})",
                plain(one.name),
                plain(one.said),
                percent_text(one.confidence),
            )
        )
