"""Several runs side by side, of whatever commands, with a filter: a row each, and their charts."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from litesmith.lang.language import say
from litesmith.pages.drawing.bars import Bar, BarChart, BarRow, bar_chart, time_chart
from litesmith.pages.drawing.markdown import Markdown, escape_markdown, paragraphs, table
from litesmith.pages.drawing.markup import (
    Html,
    as_is,
    join_html,
    legend_html,
    number_cell,
    sortable,
    tag,
)
from litesmith.pages.drawing.page import Page, list_parts
from litesmith.pages.records.glance import Glance
from litesmith.pages.records.record_words import (
    size_words,
    smaller_words,
    split_interval,
    time_words,
)
from litesmith.phrases import join, phrase
from litesmith.units import factor_text

_TITLES = (
    phrase("Run"),
    phrase("Verdict"),
    phrase("Accuracy"),
    phrase("Latency"),
    phrase("File"),
    phrase("What to do"),
)
_SIGNS = {"proven": "✓", "likely": "≈", "unclear": "≈", "keep": "=", "missed": "✕"}
_STATES = {"proven": "fits", "missed": "misses"}

# unit -> how many bytes it has
_BYTES = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True)
class Run:
    """A folder at a glance; `page` is the link to its own report."""

    folder: Path
    glance: Glance
    page: str = ""

    @property
    def name(self) -> str:
        return self.folder.name or str(self.folder)

    @property
    def words(self) -> str:
        """The words by which a filter finds the run."""
        found = self.glance
        parts = (
            *(self.name, str(self.folder), found.command, found.model, found.target),
            *(say(found.verdict), say(found.machine), found.version),
        )
        return " ".join(parts).lower()


def link_page(folder: Path, place: Path) -> str:
    """The relative link from a page to the report of a folder; "" where there is none."""
    report = folder / "report.html"
    if not report.is_file():
        return ""
    try:
        way = os.path.relpath(report.resolve(), place.resolve().parent)
    except ValueError:  # on another drive
        return ""
    return quote(Path(way).as_posix())


def runs_page(runs: Sequence[Run]) -> Page:
    """The page of several runs."""
    parts = list_parts(
        ("verdict", phrase("Runs"), _filter(runs)),
        ("runs", phrase("Every run"), _table(runs)),
        ("costs", phrase("What each costs"), _charts(runs)),
    )
    heading = phrase("{count} runs", len(runs))
    versions = sorted({run.glance.version for run in runs} - {""})
    outcome = phrase("side by side")
    return Page(heading, outcome, versions[0] if len(versions) == 1 else "", parts)


def _filter(runs: Sequence[Run]) -> Html:
    """The number of runs with each verdict, and the field that filters them."""
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.glance.verdict] = counts.get(run.glance.verdict, 0) + 1
    counted = join([phrase("{verdict}: {count}", phrase(v), c) for v, c in counts.items()], " · ")
    machines = {run.glance.machine for run in runs} - {""}
    apart = phrase(
        "The runs are from {count} machines; times compare only within one.", len(machines)
    )
    field = tag("input", type="search", id="filter", autocomplete="off", spellcheck="false")
    return tag(
        "div",
        tag("p", counted, class_="sentence"),
        tag("p", apart, class_="asked") if len(machines) > 1 else None,
        tag(
            "p",
            tag("label", phrase("Show only runs with"), for_="filter"),
            field,
            tag("output", "", id="shown", for_="filter", data_all=phrase("of {count}", len(runs))),
            class_="filter",
            hidden=True,
        ),
        class_="verdict none plainly",
    )


def _table(runs: Sequence[Run]) -> Html:
    return sortable(_TITLES, (_row(run) for run in runs))


def _row(run: Run) -> Html:
    found = run.glance
    model = tag("b", found.model or run.name)
    name = tag("a", model, href=as_is(run.page)) if run.page else model
    sign = _SIGNS.get(found.kind, "–")
    return tag(
        "tr",
        tag(
            "th",
            name,
            tag("small", tag("code", f"{found.command} {run.folder}")),
            scope="row",
            data_sort=found.model,
        ),
        tag(
            "td",
            phrase("{sign} {status}", sign, phrase(found.verdict)),
            data_label=_TITLES[1],
            data_sort=found.verdict,
        ),
        number_cell(_TITLES[2], *split_interval(found.score), found.score_key),
        number_cell(_TITLES[3], time_words(found.us), _speed(found), found.us),
        number_cell(_TITLES[4], size_words(found.bytes), _size(found), found.bytes),
        tag("td", tag("p", found.headline), class_="why", data_sort=found.headline),
        class_=_STATES.get(found.kind),
        data_filter=as_is(run.words),
    )


def _speed(found: Glance) -> str:
    """How much faster than before, and on which target."""
    on = phrase("on {target}", found.target) if found.target else ""
    if not found.us or not found.before_us:
        return on
    ratio = found.before_us / found.us
    gain = (
        factor_text(ratio, phrase("faster"))
        if ratio >= 1
        else factor_text(1 / ratio, phrase("slower"))
    )
    return join([one for one in (gain, on) if one], " ")


def _size(found: Glance) -> str:
    if not found.bytes or not found.before_bytes:
        return ""
    return smaller_words(found.before_bytes, found.bytes)


def _charts(runs: Sequence[Run]) -> Html | None:
    """Times and sizes, before and after."""
    times = _bar_rows(runs, lambda g: (g.before_us, g.us), time_words)
    sizes = _bar_rows(runs, lambda g: (g.before_bytes, g.bytes), size_words)
    shown = [
        chart
        for chart in (
            bar_chart(time_chart(phrase("Time a run"), times)),
            bar_chart(_size_chart(sizes)),
        )
        if chart is not None
    ]
    if not shown:
        return None
    keys = (("before", phrase("before")), ("after", phrase("now")))
    return join_html(legend_html(keys), tag("div", *shown, class_="figures"))


def _size_chart(rows: tuple[BarRow, ...]) -> BarChart:
    largest = max((bar.value for row in rows for bar in row.bars), default=0.0)
    unit = next((one for one in reversed(_BYTES) if largest >= _BYTES[one]), "B")
    axis = phrase("file size, {unit}", unit)
    return BarChart(phrase("File size"), axis, rows, size=_BYTES[unit])


def _bar_rows(
    runs: Sequence[Run],
    pair: Callable[[Glance], tuple[float | None, float | None]],
    words: Callable[[float | None], str],
) -> tuple[BarRow, ...]:
    rows: list[BarRow] = []
    for run in runs:
        sides = zip(("", "after"), pair(run.glance), strict=True)
        facts = (run.glance.model, run.glance.target, run.glance.machine)
        bars = tuple(Bar(v, words(v), kind, facts=facts) for kind, v in sides if v)
        rows.append(BarRow(run.name, bars, run.words))
    return tuple(rows)


def runs_markdown(runs: Sequence[Run]) -> Markdown:
    """The report for a pull request, without pictures."""
    head = (phrase("command"), *_TITLES)
    rows = [[escape_markdown(one) for one in _cells(run)] for run in runs]
    title = phrase("{count} runs side by side", len(runs))
    return Markdown(paragraphs(f"# {escape_markdown(title)}", table(head, rows)))


def _cells(run: Run) -> tuple[str, ...]:
    found = run.glance
    return (
        found.command,
        found.model or run.name,
        found.verdict,
        found.score,
        join([one for one in (time_words(found.us), _speed(found)) if one], " "),
        join([one for one in (size_words(found.bytes), _size(found)) if one], " "),
        found.headline,
    )
