"""Every trial in a table, and in the graphs."""

from collections.abc import Callable
from dataclasses import dataclass

from litesmith.evidence.records import Score
from litesmith.pages.drawing.markup import (
    Html,
    badges_html,
    bullets,
    join_html,
    number_cell,
    sortable,
    tag,
)
from litesmith.pages.drawing.svg import figures
from litesmith.pages.drawing.tradeoff import graphs
from litesmith.pages.records.record_words import (
    difference_words,
    duration_words,
    score_words,
    size_words,
    speed_words,
    split_interval,
    time_words,
)
from litesmith.pages.records.tune_folder import Entry, TuneFolder
from litesmith.pages.sections.accelerators import whole_words
from litesmith.phrases import phrase

_SIGNS: dict[str, str] = {
    phrase("fits"): "✓",
    phrase("near"): "≈",
    phrase("misses"): "✕",
    phrase("refused"): "⊘",
    phrase("set aside"): "–",
}

# The number of lines about skipped ops: reasons repeat for many ops.
_MOST_SKIPPED = 5

# Characters of a recipe that stand in the table.
_MOST_RECIPE = 160


def status_words(status: str) -> str:
    """`✓ fits`"""
    sign = _SIGNS.get(status, "")
    return phrase("{sign} {status}", sign, phrase(status)) if sign else phrase(status)


@dataclass(frozen=True)
class Column:
    """A column of the table: the words of a cell, the small words below, and the sort key."""

    title: str
    words: Callable[[Entry], str]
    small: Callable[[Entry], str]
    key: Callable[[Entry], float | None]


def _score_column(
    title: str, words: Callable[[Entry], str], key: Callable[[Entry], float | None]
) -> Column:
    """A column of scores, with their intervals below."""
    return Column(
        title,
        lambda entry: split_interval(words(entry))[0],
        lambda entry: split_interval(words(entry))[1],
        key,
    )


def _loss_words(score: Score | None) -> str:
    """The difference from the float model, or a score that is one already, as agreement is."""
    return difference_words(score) or score_words(score)


def _loss(score: Score | None) -> float | None:
    if score is None:
        return None
    return score.value if score.difference is None else score.difference


COLUMNS = (
    _score_column(
        phrase("Accuracy"),
        lambda entry: score_words(entry.score),
        lambda entry: entry.score.value if entry.score else None,
    ),
    _score_column(
        phrase("From float"),
        lambda entry: difference_words(entry.score),
        lambda entry: entry.score.difference if entry.score else None,
    ),
    _score_column(
        phrase("Held-out"),
        lambda entry: _loss_words(entry.proof),
        lambda entry: _loss(entry.proof),
    ),
    Column(
        phrase("Latency"),
        lambda entry: time_words(entry.speed.p50_us) if entry.speed else "",
        lambda entry: speed_words(entry.speed),
        lambda entry: (entry.speed.ratio or entry.speed.p50_us) if entry.speed else None,
    ),
    Column(
        phrase("File"),
        lambda entry: size_words(entry.bytes),
        lambda entry: (
            phrase("{size} gzip", size_words(entry.gzip_bytes)) if entry.gzip_bytes else ""
        ),
        lambda entry: entry.bytes,
    ),
    Column(
        phrase("Peak memory"),
        lambda entry: size_words(entry.peak_bytes),
        lambda entry: "",
        lambda entry: entry.peak_bytes,
    ),
    Column(
        "RAM",
        lambda entry: size_words(entry.ram_bytes),
        lambda entry: "",
        lambda entry: entry.ram_bytes,
    ),
    Column(
        phrase("Flash"),
        lambda entry: size_words(entry.flash_bytes),
        lambda entry: "",
        lambda entry: entry.flash_bytes,
    ),
)


def columns_of(record: TuneFolder) -> tuple[Column, ...]:
    """The columns that say something of some trial."""
    return tuple(column for column in COLUMNS if any(map(column.words, record.entries)))


def trade_offs(record: TuneFolder) -> Html | None:
    """The graphs, with notes on how to read them."""
    hint = phrase(
        "Up and to the left is better. Each point is a model; hover over it or tap it for "
        "its numbers and recipe. Thin bars are 95 % intervals, upright ones of the "
        "difference from the float model; below the dashed line a model loses more than the "
        "budget."
    )
    return figures(graphs(record), hint)


def trials(record: TuneFolder) -> Html | None:
    """One row for every trial."""
    if not record.entries:
        return None
    columns = columns_of(record)
    titles = (
        phrase("Model"),
        phrase("Result"),
        *(column.title for column in columns),
        phrase("Why, and what came out"),
    )
    body = [_row(record, place, columns) for place in range(len(record.entries))]
    count = (
        phrase("{count} models. Click a heading to sort by it.", len(body))
        if len(body) > 1
        else None
    )
    hint = tag("p", count, class_="hint screen") if count else None
    return join_html(hint, sortable(titles, body))


def link(record: TuneFolder, name: str) -> Html:
    """A trial's name, as a link to its row where it has one."""
    places = [place for place, entry in enumerate(record.entries) if entry.name == name]
    if not places:
        return tag("span", name, class_="chip")
    return tag("a", name, href=f"#trial-{places[0]}", class_="chip")


def _row(record: TuneFolder, place: int, columns: tuple[Column, ...]) -> Html:
    entry = record.entries[place]
    best = record.summary.best
    is_best = best is not None and entry.name == best.name
    badges = badges_html(
        (
            (phrase("ship"), "best", is_best),
            (phrase("front"), "front", entry.name in record.summary.front),
            (phrase("integer"), "integer", entry.is_integer),
        )
    )
    name = join_html(tag("b", entry.name), *badges)
    return tag(
        "tr",
        tag("th", name, scope="row", data_sort=entry.name),
        tag("td", status_words(entry.status), data_label="Result", data_sort=entry.status),
        *(
            number_cell(one.title, one.words(entry), one.small(entry), one.key(entry))
            for one in columns
        ),
        tag("td", *_why(entry), class_="why", data_sort=" ".join(entry.reasons)),
        id=f"trial-{place}",
        data_trial=entry.name,
        class_=f"{entry.status.replace(' ', '-')}{' best' if is_best else ''}".strip() or None,
    )


def _why(entry: Entry) -> tuple[Html | None, ...]:
    left = [phrase("{where}: {why}", where, phrase(why)) for where, why in entry.skipped]
    more = len(left) - _MOST_SKIPPED
    lines = [
        *entry.notes,
        *left[:_MOST_SKIPPED],
        *([phrase("and {more} more", more)] if more > 0 else []),
    ]
    took = duration_words(entry.seconds)
    count = phrase("{count} more to know", len(entry.notes) + len(left))
    details = tag("details", tag("summary", count), bullets(lines))
    return (
        *(tag("p", reason) for reason in entry.reasons),
        _recipe(entry.recipe),
        tag("p", tag("small", whole)) if (whole := whole_words(entry.takers)) else None,
        tag("small", " ", took) if took else None,
        details if lines else None,
    )


def _recipe(text: str) -> Html | None:
    """A recipe; a long one, as of mixtures that name hundreds of ops, behind its beginning."""
    if len(text) <= _MOST_RECIPE:
        return tag("code", text) if text else None
    beginning = tag("summary", tag("code", f"{text[:_MOST_RECIPE].rstrip()} …"))
    return tag("details", beginning, tag("code", text))
