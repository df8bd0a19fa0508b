"""How it came about: the decisions, the threads, the data, the machine, and how to do it again."""

from collections.abc import Iterable

from litesmith.pages.drawing.markup import Html, joined, tag
from litesmith.pages.records.record_words import duration_words
from litesmith.pages.records.tolerant_json import Fields, number, positive, text, texts
from litesmith.pages.records.tune_record import Record
from litesmith.pages.sections.trial_table import link
from litesmith.phrases import phrase
from litesmith.units import bytes_text, number_text, time_interval_text, time_text, total_text

_PARTS = {
    "calibration": phrase("calibration: what the quantizer looks at"),
    "search": phrase("search: what models are chosen by"),
    "held_out": phrase("held-out: what the result is proven on"),
}
_NAMES = {
    "cpu": "CPU",
    "memory_bytes": phrase("memory"),
    "os": phrase("system"),
    "python": "Python",
    "litert": "LiteRT",
    "litesmith": "Litesmith",
    "load": phrase("load at the end"),
    "busy": phrase("share of the CPU in use by others"),
}


def path(record: Record) -> Html | None:
    """The questions in the order in which they were asked."""
    if not record.path:
        return None
    steps = [
        tag(
            "li",
            tag("p", one.question or one.branch, class_="question"),
            tag("p", one.answer, class_="answer") if one.answer else None,
            tag("p", *(link(record, name) for name in one.trials)) if one.trials else None,
            class_=None if one.trials else "idle",
        )
        for one in record.path
    ]
    return tag("ol", *steps, class_="path")


def threads(record: Record) -> Html | None:
    """The time of each model on each target."""
    rows = [(row, us) for row in record.threads if (us := positive(row.get("p50_us")))]
    if not rows:
        return None
    compared = [us for row, us in rows if row.get("model") in ("float", "best")]
    longest = max(compared or [us for _, us in rows])
    head = tag(
        "tr",
        *(
            tag("th", title)
            for title in (phrase("Target"), phrase("Model"), phrase("Time a run"), "")
        ),
    )
    body = [_thread(record, row, us, us / longest) for row, us in rows]
    return tag("table", tag("thead", head), tag("tbody", *body), class_="plain")


def _thread(record: Record, row: Fields, us: float, share: float) -> Html:
    target, model = text(row.get("target")), text(row.get("model"))
    low, high = positive(row.get("low_us")), positive(row.get("high_us"))
    best = record.best
    is_chosen = best is not None and target == best.target and model in ("best", best.name)
    words = time_interval_text(us, low, high) if low and high else time_text(us)
    if text(row.get("how")) == "estimated":
        words += ", estimated"
    bar = tag("i", style=f"width:{round(100 * min(share, 1.0), 1)}%")
    return tag(
        "tr",
        tag("th", target, scope="row"),
        tag("td", model, tag("span", "ship", class_="badge best") if is_chosen else None),
        tag("td", words, class_="number"),
        tag("td", tag("span", bar, class_="bar after"), class_="wide"),
    )


def data(record: Record) -> Html | None:
    """Where the samples came from and how they were divided."""
    shown = record.data
    counts = [(words, positive(shown.get(part))) for part, words in _PARTS.items()]
    total = sum(count or 0 for _, count in counts)
    lines = [
        ("source", text(shown.get("source"))),
        (phrase("calibration from"), text(shown.get("calibration_source"))),
        ("preparation", text(shown.get("preparation"))),
        *((words, total_text(int(count))) for words, count in counts if count),
    ]
    notes = texts(shown.get("notes"))
    if not any(value for _, value in lines) and not notes:
        return None
    split = [
        tag("i", style=f"flex-grow:{int(count)}", class_=f"part{place}")
        for place, (_, count) in enumerate(counts)
        if count
    ]
    return joined(
        tag("div", *split, class_="split", aria_hidden="true") if total else None,
        pairs(lines),
        tag("ul", *(tag("li", note) for note in notes)) if notes else None,
    )


def environment(record: Record) -> Html | None:
    """The machine and the versions that the numbers are of."""
    lines = machine(record.environment)
    return pairs(lines) if any(value for _, value in lines) else None


def machine(facts: Fields) -> list[tuple[str, str]]:
    """Names and values of a machine, in words."""
    named = ((text(key), value) for key, value in facts.items())
    return [(_NAMES.get(name, name), value_words(name, value)) for name, value in named if name]


def reproduce(record: Record) -> Html | None:
    """The commands that make the same again, and the digests to compare."""
    commands = (
        (phrase("The same search:"), record.command),
        (phrase("The same file, without a search:"), record.replay),
    )
    shown = [
        tag("div", tag("p", words), tag("pre", tag("code", command)))
        for words, command in commands
        if command
    ]
    best = record.entry(record.best.name) if record.best else None
    lines = [
        ("Litesmith", record.version),
        (phrase("SHA-256 of the input"), record.digest),
        (phrase("SHA-256 of the result"), best.digest if best else ""),
        (phrase("time it took"), duration_words(record.seconds)),
    ]
    if not shown and not any(value for _, value in lines):
        return None
    return joined(*shown, pairs(lines))


def value_words(name: str, value: object) -> str:
    """A fact of a machine, in words."""
    found = number(value)
    if found is None:
        return text(value)
    return bytes_text(int(found)) if name.endswith("bytes") else number_text(round(found, 2))


def pairs(lines: Iterable[tuple[str, str]]) -> Html:
    """Names and what they are, those that say something."""
    shown = [
        tag("div", tag("dt", name), tag("dd", value)) for name, value in lines if name and value
    ]
    return tag("dl", *shown, class_="facts")
