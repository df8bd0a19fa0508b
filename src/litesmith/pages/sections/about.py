"""How the result came about: the decisions, the threads, the data, the machine, and how to repeat
it."""

from collections.abc import Iterable, Sequence

from litesmith.evidence.records import Environment
from litesmith.evidence.tune_record import (
    FITS,
    FLOAT,
    MISSES,
    NEAR,
    REFUSED,
    SET_ASIDE,
    PathStep,
    TargetTime,
)
from litesmith.pages.drawing.bars import Bar, BarRow, bar_chart, time_chart
from litesmith.pages.drawing.markup import Html, bullets, join_html, legend_html, tag
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.pages.sections.trial_table import link
from litesmith.phrases import phrase
from litesmith.run.core.placement import ESTIMATED
from litesmith.units import (
    bytes_text,
    number_text,
    percent_text,
    time_interval_text,
    time_text,
    total_text,
)

_MEMORY = "memory_bytes"

# The models whose times are on record for every target.
_BOTH = (FLOAT, "best")

# The largest number of unreadable things that a page lists.
_MOST_LOSSES = 12

_PARTS = (
    phrase("calibration: what the quantizer looks at"),
    phrase("search: what models are chosen by"),
    phrase("held-out: what the result is proven on"),
)
_NAMES = {
    "cpu": "CPU",
    _MEMORY: phrase("memory"),
    "os": phrase("system"),
    "python": "Python",
    "litert": "LiteRT",
    "litesmith": "Litesmith",
    "load": phrase("load at the end"),
    "busy": phrase("share of the CPU in use by others"),
}


def path(record: TuneFolder) -> Html | None:
    """The questions in the order in which they were asked."""
    if not record.summary.path:
        return None
    steps = [
        tag(
            "li",
            tag("p", one.question or one.branch, class_="question"),
            tag("p", answer, class_="answer") if (answer := _answer(record, one)) else None,
            tag("p", *(link(record, name) for name in one.trials)) if one.trials else None,
            class_=None if one.trials else "idle",
        )
        for one in record.summary.path
    ]
    return tag("ol", *steps, class_="path")


# The status of a branch's best trial -> the answer to the branch's question.
_ANSWERS = {
    FITS: phrase("yes"),
    NEAR: phrase("nearly"),
    MISSES: phrase("no"),
    SET_ASIDE: phrase("no"),
    REFUSED: phrase("not possible"),
}


def _answer(record: TuneFolder, step: PathStep) -> str:
    """The outcome of a branch; the numbers of its trials are in their rows."""
    tried = {entry.status for name in step.trials if (entry := record.entry(name)) is not None}
    return next((words for status, words in _ANSWERS.items() if status in tried), step.answer)


def threads(record: TuneFolder) -> Html | None:
    """The times of the float model and of the best one on each target; other models are in the
    table of trials. A single target is covered by the headline."""
    known = [row for row in record.summary.threads if row.p50_us and row.model in _BOTH]
    targets = list(dict.fromkeys(row.target for row in known))
    if len(targets) < 2:
        return None
    rows = tuple(
        BarRow(target, tuple(_thread(record, row) for row in known if row.target == target))
        for target in targets
    )
    keys = legend_html((("before", FLOAT), ("after", record.shown or "best")))
    return join_html(keys, bar_chart(time_chart(phrase("Time a run"), rows)))


def _thread(record: TuneFolder, row: TargetTime) -> Bar:
    us, low, high, best = row.p50_us or 0.0, row.low_us, row.high_us, record.summary.best
    is_chosen = best is not None and row.target == best.target and row.model == _BOTH[1]
    facts = (
        record.shown if row.model == _BOTH[1] else row.model,
        time_interval_text(us, low, high) if low and high else "",
        phrase("estimated") if row.how == ESTIMATED else "",
        phrase("to ship") if is_chosen else "",
    )
    words = time_text(us)
    if is_chosen:
        words = phrase("{time} (ship)", words)
    kind = "after" if row.model == _BOTH[1] else ""
    return Bar(us, words, kind, low, high, facts)


def data(record: TuneFolder) -> Html | None:
    """The origin of the samples, and how they were divided."""
    shown = record.summary.data
    counts = list(zip(_PARTS, (shown.calibration, shown.search, shown.held_out), strict=True))
    total = sum(count for _, count in counts)
    lines = [
        (phrase("source"), shown.source),
        (phrase("calibration from"), shown.calibration_source or ""),
        (phrase("preparation"), shown.preparation),
        *((words, total_text(count)) for words, count in counts if count),
    ]
    notes = shown.notes
    if not any(value for _, value in lines) and not notes:
        return None
    split = [
        tag(
            "i",
            style=f"flex-grow:{count}",
            class_=f"part{place}",
            title=phrase("{part} ({count} samples)", part, total_text(count)),
        )
        for place, (part, count) in enumerate(counts)
        if count
    ]
    return join_html(
        tag("div", *split, class_="split", aria_hidden="true") if total else None,
        pairs(lines),
        bullets(notes),
    )


def environment(record: TuneFolder) -> Html | None:
    """The machine and the versions behind the numbers."""
    lines = machine(record.summary.environment)
    return pairs(lines) if any(value for _, value in lines) else None


def machine(facts: Environment) -> list[tuple[str, str]]:
    """Names and values of a machine, in words."""
    return [
        (_NAMES.get(name, name), value_words(name, value)) for name, value in facts.items() if name
    ]


def reproduce(record: TuneFolder) -> Html | None:
    """The commands that reproduce the result, and the digests to compare."""
    summary = record.summary
    commands = (
        (phrase("The same search:"), record.summary.command),
        (phrase("The same file, without a search:"), record.replay),
    )
    shown = [
        tag("div", tag("p", words), tag("pre", tag("code", command)))
        for words, command in commands
        if command
    ]
    best = record.entry(summary.best.name) if summary.best else None
    lines = [
        (phrase("SHA-256 of the input"), summary.model_digest),
        (phrase("SHA-256 of the result"), best.digest if best else ""),
    ]
    if not shown and not any(value for _, value in lines):
        return None
    return join_html(*shown, pairs(lines))


def value_words(name: str, value: str | float | None) -> str:
    """A fact of a machine, in words."""
    if value is None or isinstance(value, str):
        return value or ""
    shown = {_MEMORY: lambda: bytes_text(int(value)), "busy": lambda: percent_text(value)}
    return shown[name]() if name in shown else number_text(round(value, 2))


def losses(record: TuneFolder) -> Html | None:
    """What could not be read of a folder, and why."""
    return show_losses(record.losses)


def show_losses(reasons: Sequence[str]) -> Html | None:
    """Reasons, one per line; only the first ones where there are many."""
    more = len(reasons) - _MOST_LOSSES
    lines: list[str] = list(reasons[:_MOST_LOSSES])
    if more > 0:
        lines.append(phrase("and {count} more", more))
    return bullets(lines)


def pairs(lines: Iterable[tuple[str, str]]) -> Html:
    """Names with their values, where these are not empty."""
    shown = [
        tag("div", tag("dt", name), tag("dd", value)) for name, value in lines if name and value
    ]
    return tag("dl", *shown, class_="facts")
