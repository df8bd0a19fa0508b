"""The first thing on the page: what to ship, what it gains, and how to run it."""

import re
from collections.abc import Sequence
from shlex import quote
from typing import NamedTuple

from litesmith.evidence.records import Score, Speed
from litesmith.evidence.tuning import NextStep, TunedModel
from litesmith.lang.language import say
from litesmith.pages.drawing.markup import Html, bullets, code_facts, join_html, tag
from litesmith.pages.records.record_words import (
    difference_words,
    duration_words,
    faster_words,
    score_words,
    size_words,
    smaller_words,
    split_interval,
    time_words,
)
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.phrases import join, phrase
from litesmith.run.core.placement import ESTIMATED
from litesmith.units import score_text


class Verdict(NamedTuple):
    sign: str
    title: str
    meaning: str


VERDICTS = {
    "proven": Verdict(
        "✓",
        phrase("Proven"),
        phrase(
            "On samples that the search did not use, the whole interval of the difference is "
            "inside the budget."
        ),
    ),
    "likely": Verdict(
        "≈",
        phrase("Likely"),
        phrase(
            "On samples that the search did not use, the estimate is inside the budget; its "
            "interval reaches beyond. More samples would decide."
        ),
    ),
    "unclear": Verdict(
        "≈",
        phrase("Unclear: the machine was busy"),
        phrase(
            "Other programs had the processor, so that the times do not tell whether the file is "
            "faster. Close them, and give the same command again: it measures the times anew."
        ),
    ),
    "keep": Verdict(
        "=",
        phrase("Keep yours"),
        phrase("Nothing that was tried is better than the model as it came, beyond the noise."),
    ),
    "missed": Verdict(
        "✕", phrase("Missed"), phrase("Nothing that was tried is within what was asked.")
    ),
}
_NO_VERDICT = {
    "running": Verdict("…", phrase("Still running"), phrase("This is what there is so far.")),
    "stopped": Verdict(
        "…", phrase("Stopped"), phrase("The search was stopped; this is what there is so far.")
    ),
}
_UNKNOWN = Verdict("–", phrase("No verdict"), phrase("The search ended without one."))


# Targets that a session of this package opens.
_OPENED = ("cpu", "gpu", "micro", "openvino", "numpy")


class Tile(NamedTuple):
    """One gain: a few words, the interval, and the numbers before and after."""

    title: str
    gain: str
    interval: str
    change: str


def changed_verdict(changed: Sequence[str]) -> Verdict:
    """Of a folder that speaks of other files than lie there now."""
    return Verdict("✕", phrase("Not the files that were measured"), join(changed, ". "))


def verdict_of(record: TuneFolder) -> Verdict:
    summary = record.summary
    if record.changed:
        return changed_verdict(record.changed)
    return VERDICTS.get(summary.verdict or "") or _NO_VERDICT.get(summary.state, _UNKNOWN)


def tiles(record: TuneFolder) -> tuple[Tile, ...]:
    """What the best model, or the nearest, gains over the float one."""
    best, first = record.summary.chosen, record.summary.first
    if best is None:
        return ()
    found = (
        _speed_tile(best.latency),
        _score_tile(best.accuracy, _elsewhere(best)),
        _size_tile(phrase("File"), first and first.bytes, best.bytes),
        _size_tile(phrase("Download (gzip)"), first and first.gzip_bytes, best.gzip_bytes),
        _size_tile(phrase("Peak memory"), first and first.peak_bytes, best.peak_bytes),
    )
    return tuple(tile for tile in found if tile is not None)


def _elsewhere(best: TunedModel) -> str:
    """Whose kernels were scored, where those are not the target's: of a CPU all are the same."""
    kinds = {target.partition(":")[0] for target in (best.scored_on, best.target) if target}
    return best.scored_on if best.scored_on and len(kinds) > 1 else ""


def _speed_tile(speed: Speed | None) -> Tile | None:
    if speed is None:
        return None
    if speed.how == ESTIMATED:
        where = phrase("by the compiler for {target}; nothing ran there", speed.target)
        return Tile(phrase("Latency, estimated"), time_words(speed.p50_us), "", where)
    gain, interval = faster_words(speed)
    times = join([time_words(us) for us in (speed.float_us, speed.p50_us) if us], " → ")
    on = phrase("{times} on {target}", times, speed.target) if speed.target else times
    return Tile(phrase("Latency"), gain or time_words(speed.p50_us), interval, on)


def _score_tile(score: Score | None, scored_on: str) -> Tile | None:
    if score is None:
        return None
    gain, interval = split_interval(difference_words(score) or score_words(score))
    after = score_text(score.known_value, score.unit)
    known = score.reference is not None and score.difference is not None
    before = phrase("{score} → ", score_text(score.reference or 0.0, score.unit)) if known else ""
    samples = phrase(", {samples}", score.held_out_text) if score.n else ""
    samples += phrase(" by the kernels of {scored_on}", scored_on) if scored_on else ""
    return Tile(phrase(score.title), gain, interval, join((before, after, samples), ""))


def _size_tile(title: str, before: int | None, after: int | None) -> Tile | None:
    if not after:
        return None
    if not before:
        return Tile(title, size_words(after), "", "")
    change = join((size_words(before), size_words(after)), " → ")
    return Tile(title, smaller_words(before, after), "", change)


def verdict(record: TuneFolder) -> Html:
    """The verdict with its reasons."""
    told, words = record.summary, asked_words(record)
    return verdict_html(
        "missed" if record.changed else told.verdict if told.verdict in VERDICTS else "none",
        verdict_of(record),
        told.sentence,
        asked_html(words, told.seconds) if words else None,
        _nearest(record),
        tag("div", *map(tile_html, tiles(record)), class_="tiles"),
        _ship(told.best) if told.best and not record.changed else None,
        _next(told.next),
    )


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
    """What was asked for, and how long that took."""
    took = phrase(" Took {duration}.", duration_words(seconds)) if seconds else ""
    return tag("p", phrase("Asked for: {asked}.{took}", asked, took), class_="asked")


def asked_words(record: TuneFolder) -> str:
    """What was asked for, in one line."""
    request = record.summary.request
    parts = (
        phrase("least {minimize}", phrase(request.minimize)) if request.minimize else "",
        request.budget,
        *request.limits,
        phrase("on {targets}", ", ".join(request.targets)) if request.targets else "",
    )
    return join([phrase(part) for part in parts if part], "; ")


def tile_html(tile: Tile) -> Html:
    """A gain as a box."""
    return tag(
        "div",
        tag("span", tile.title, class_="label"),
        tag("strong", tile.gain),
        tag("span", tile.interval, class_="interval") if tile.interval else None,
        tag("span", tile.change, class_="change") if tile.change else None,
        class_="tile",
    )


def _ship(best: TunedModel) -> Html:
    is_compiled = best.target.startswith("ethos-")
    verb = phrase("Compile it with") if is_compiled else phrase("Run it with")
    rows = (
        (phrase("Ship"), best.file),
        (verb, run_line(best.file, best.target)),
        (phrase("Made by"), best.recipe),
    )
    return code_facts(rows)


def run_line(file: str, target: str) -> str:
    """The line that opens a model as it was measured, or compiles it; "" where we know of none."""
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


def _next(steps: tuple[NextStep, ...]) -> Html | None:
    if not steps:
        return None
    lines = bullets([_step(step) for step in steps])
    return tag("div", tag("p", "Next", class_="label"), lines, class_="next")


def _step(step: NextStep) -> Html:
    """The command to copy, and what for."""
    if not step.command:
        return join_html(step.purpose)
    return join_html(tag("code", say(step.command)), phrase(": {why}", phrase(step.purpose)))


def _nearest(record: TuneFolder) -> Html | None:
    nearest = record.summary.nearest
    if record.summary.best is not None or nearest is None:
        return None
    return tag(
        "p",
        phrase("Nearest, but no better than yours: {name}", nearest.name)
        if record.summary.verdict == "keep"
        else phrase("Nearest, but not within what was asked: {name}", nearest.name),
        class_="near",
    )
