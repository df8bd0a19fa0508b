"""How it came about: the decisions, the threads, the data, the machine, and how to do it again."""

from collections.abc import Iterable, Sequence

from litesmith.evidence.records import Environment
from litesmith.evidence.tuning import FLOAT, TargetTime
from litesmith.pages.drawing.markup import Html, bullets, join_html, table_html, tag
from litesmith.pages.records.record_words import duration_words
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.pages.sections.trial_table import link
from litesmith.phrases import phrase
from litesmith.run.core.placement import ESTIMATED
from litesmith.units import bytes_text, number_text, time_interval_text, time_text, total_text

_MEMORY = "memory_bytes"

# Reasons why something could not be read that a page lists.
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
            tag("p", one.answer, class_="answer") if one.answer else None,
            tag("p", *(link(record, name) for name in one.trials)) if one.trials else None,
            class_=None if one.trials else "idle",
        )
        for one in record.summary.path
    ]
    return tag("ol", *steps, class_="path")


def threads(record: TuneFolder) -> Html | None:
    """The time of the float model and of the best one on each target; others are in the table of
    all that was tried."""
    known = [(row, us) for row in record.summary.threads if (us := row.p50_us)]
    rows = [(row, us) for row, us in known if row.model in (FLOAT, "best")]
    if not rows:
        return None
    longest = max(us for _, us in rows)
    titles = (phrase("Target"), phrase("Model"), phrase("Time a run"), "")
    body = [_thread(record, row, us, us / longest) for row, us in rows]
    return table_html(titles, body, "plain")


def _thread(record: TuneFolder, row: TargetTime, us: float, share: float) -> Html:
    low, high, best = row.low_us, row.high_us, record.summary.best
    is_chosen = best is not None and row.target == best.target and row.model in ("best", best.name)
    words = time_interval_text(us, low, high) if low and high else time_text(us)
    if row.how == ESTIMATED:
        words = phrase("{time}, estimated", words)
    bar = tag("i", style=f"width:{round(100 * min(share, 1.0), 1)}%")
    return tag(
        "tr",
        tag("th", row.target, scope="row"),
        tag(
            "td", row.model, tag("span", phrase("ship"), class_="badge best") if is_chosen else None
        ),
        tag("td", words, class_="number"),
        tag("td", tag("span", bar, class_="bar after"), class_="wide"),
    )


def data(record: TuneFolder) -> Html | None:
    """Where the samples came from and how they were divided."""
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
        tag("i", style=f"flex-grow:{count}", class_=f"part{place}")
        for place, (_, count) in enumerate(counts)
        if count
    ]
    return join_html(
        tag("div", *split, class_="split", aria_hidden="true") if total else None,
        pairs(lines),
        bullets(notes),
    )


def environment(record: TuneFolder) -> Html | None:
    """The machine and the versions that the numbers are of."""
    lines = machine(record.summary.environment)
    return pairs(lines) if any(value for _, value in lines) else None


def machine(facts: Environment) -> list[tuple[str, str]]:
    """Names and values of a machine, in words."""
    return [
        (_NAMES.get(name, name), value_words(name, value)) for name, value in facts.items() if name
    ]


def reproduce(record: TuneFolder) -> Html | None:
    """The commands that make the same again, and the digests to compare."""
    told = record.summary
    commands = (
        (phrase("The same search:"), record.summary.command),
        (phrase("The same file, without a search:"), record.replay),
    )
    shown = [
        tag("div", tag("p", words), tag("pre", tag("code", command)))
        for words, command in commands
        if command
    ]
    best = record.entry(told.best.name) if told.best else None
    lines = [
        ("Litesmith", told.version),
        (phrase("SHA-256 of the input"), told.model_digest),
        (phrase("SHA-256 of the result"), best.digest if best else ""),
        (phrase("time it took"), duration_words(told.seconds)),
    ]
    if not shown and not any(value for _, value in lines):
        return None
    return join_html(*shown, pairs(lines))


def value_words(name: str, value: str | float | None) -> str:
    """A fact of a machine, in words."""
    if value is None or isinstance(value, str):
        return value or ""
    return bytes_text(int(value)) if name == _MEMORY else number_text(round(value, 2))


def losses(record: TuneFolder) -> Html | None:
    """What could not be read of a folder, and why."""
    return show_losses(record.losses)


def show_losses(told: Sequence[str]) -> Html | None:
    """Reasons, a line each; the first of many."""
    more = len(told) - _MOST_LOSSES
    lines: list[str] = list(told[:_MOST_LOSSES])
    if more > 0:
        lines.append(phrase("and {count} more", more))
    return bullets(lines)


def pairs(lines: Iterable[tuple[str, str]]) -> Html:
    """Names and what they are, those that say something."""
    shown = [
        tag("div", tag("dt", name), tag("dd", value)) for name, value in lines if name and value
    ]
    return tag("dl", *shown, class_="facts")
