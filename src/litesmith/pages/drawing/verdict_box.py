"""The box at the top of a page: the verdict, what to do, the numbers once, and commands to copy."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from litesmith.evidence.tune_record import NextStep
from litesmith.lang.language import say
from litesmith.operating_system import quote
from litesmith.pages.drawing.markup import Html, bullets, join_html, tag
from litesmith.pages.records.record_words import duration_words
from litesmith.phrases import join, phrase

# Targets that `litesmith.load` opens.
_OPENED = ("cpu", "gpu", "micro", "openvino", "numpy")


class Verdict(NamedTuple):
    sign: str
    title: str
    meaning: str


class Tile(NamedTuple):
    """A gain: its title, the gain in words, the interval, and the numbers before and after."""

    title: str
    gain: str
    interval: str
    change: str


def changed_verdict(changed: Sequence[str]) -> Verdict:
    """The verdict on a folder whose files differ from those measured."""
    return Verdict("✕", phrase("Not the files that were measured"), join(changed, ". "))


def verdict_html(
    kind: str, shown: Verdict, sentence: str, asked: Html | None, *rest: Html | None
) -> Html:
    """The box on top of a page."""
    return tag(
        "div",
        tag("span", shown.sign, class_="sign", aria_hidden="true"),
        tag(
            "div",
            tag("p", shown.title, class_="word"),
            tag("p", sentence, class_="sentence") if sentence else None,
            tag("p", shown.meaning, class_="meaning") if shown.meaning else None,
            asked,
        ),
        *rest,
        class_=f"verdict {kind}",
    )


def asked_html(asked: str, seconds: float | None) -> Html:
    """The user's request, and how long it took."""
    took = phrase(" Took {duration}.", duration_words(seconds)) if seconds else ""
    return tag("p", phrase("Asked for: {asked}.{took}", asked, took), class_="asked")


def tiles_html(tiles: Iterable[Tile]) -> Html | None:
    """Gains side by side; None where there are none."""
    shown = [_tile(tile) for tile in tiles]
    return tag("div", *shown, class_="tiles") if shown else None


def _tile(tile: Tile) -> Html:
    return tag(
        "div",
        tag("span", tile.title, class_="label"),
        tag("strong", tile.gain),
        tag("span", tile.interval, class_="interval") if tile.interval else None,
        tag("span", tile.change, class_="change") if tile.change else None,
        class_="tile",
    )


def run_line(file: str, target: str) -> str:
    """The line of code that opens a model as it was measured, or compiles it; "" where there is
    none.
    """
    if not file or not target:
        return ""
    if target.startswith("ethos-"):
        return f"vela {quote(file)} --accelerator-config {target}"
    threads = re.fullmatch(r"cpu:(\d+)", target)
    if threads:
        return f"ai_edge_litert.interpreter.Interpreter({file!r}, num_threads={threads[1]})"
    if not target.startswith(_OPENED):
        return ""
    return f"litesmith.Session({file!r}, target={target!r})"


def next_html(steps: Sequence[NextStep]) -> Html | None:
    """What to do next, with commands to copy."""
    if not steps:
        return None
    lines = bullets([_step(step) for step in steps])
    return tag("div", tag("p", "Next", class_="label"), lines, class_="next")


def _step(step: NextStep) -> Html:
    """A command to copy, and its purpose."""
    if not step.command:
        return join_html(step.purpose)
    return join_html(tag("code", say(step.command)), phrase(": {why}", phrase(step.purpose)))
