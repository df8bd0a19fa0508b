"""What `bench --on all` left in its folder, as a page and as Markdown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from litesmith.lang.language import say
from litesmith.pages.drawing.markdown import (
    Markdown,
    again,
    escaped,
    folded,
    paragraphs,
    table,
)
from litesmith.pages.drawing.markup import Html, joined, tag
from litesmith.pages.drawing.page import Page, Part
from litesmith.pages.records.read_folder import read_optional, read_summary
from litesmith.pages.records.record_words import size_words, time_words
from litesmith.pages.records.tolerant_json import (
    Fields,
    fields,
    number,
    positive,
    rows,
    text,
    texts,
)
from litesmith.pages.sections.about import machine, pairs
from litesmith.phrases import phrase
from litesmith.units import error_text

_MOST_REASONS = 12


@dataclass(frozen=True)
class Left:
    """Ops that stay on the CPU for one reason."""

    count: int
    kind: str
    why: str


@dataclass(frozen=True)
class Row:
    """One target, in words; "" is what is not known."""

    target: str
    ops: str
    parts: str
    time: str
    how: str
    difference: str
    verdict: str
    left: tuple[Left, ...] = ()


@dataclass(frozen=True)
class Benched:
    """A model on every target."""

    model: str
    digest: str
    size: float | None
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    version: str = ""
    command: str = ""
    models: tuple[Benched, ...] = ()
    environment: Fields = field(default_factory=dict[str, object])

    @property
    def heading(self) -> str:
        return ", ".join(one.model or "a model" for one in self.models)


def read_benched(folder: Path) -> Record:
    """Everything that the folder holds."""
    shown = read_summary(folder / "bench.json", "bench")
    return Record(
        text(shown.get("version")),
        text(shown.get("command")),
        tuple(_model(folder, row) for row in rows(shown.get("models"))),
        fields(shown.get("environment")),
    )


def _model(folder: Path, shown: Fields) -> Benched:
    digest = text(shown.get("digest"))
    place = folder / "evidence" / f"{digest}.json"
    placed = fields(read_optional(place).get("placements")) if digest.isalnum() else {}
    targets = rows(shown.get("targets"))
    return Benched(
        text(shown.get("model")),
        digest,
        positive(shown.get("bytes")),
        tuple(_row(row, fields(placed.get(text(row.get("target"))))) for row in targets),
        texts(shown.get("warnings")),
    )


def _row(shown: Fields, placed: Fields) -> Row:
    taken, ops = number(shown.get("taken")), number(shown.get("ops"))
    parts, difference = positive(shown.get("partitions")), number(shown.get("difference"))
    return Row(
        target=text(shown.get("target")),
        ops="all"
        if taken is None or ops is None
        else phrase("{count} of {count2}", int(taken), int(ops)),
        parts="" if parts is None else str(int(parts)),
        time=time_words(positive(shown.get("latency_us"))),
        how=_how(shown),
        difference="" if difference is None else error_text(difference),
        verdict=text(shown.get("verdict")),
        left=_left(placed),
    )


def _how(shown: Fields) -> str:
    """How it is known: `measured, 3 runs by itself`."""
    how, runs = text(shown.get("how")), positive(shown.get("runs"))
    if runs is None:
        return how
    count = phrase("1 run") if runs == 1 else phrase("{count} runs", int(runs))
    if shown.get("is_alone") is True:
        return phrase("{how}, {count} by itself", phrase(how), count)
    return phrase("{how}, {count}", phrase(how), count)


def _left(placed: Fields) -> tuple[Left, ...]:
    counts: dict[tuple[str, str], int] = {}
    for home in rows(placed.get("homes")):
        if home.get("taken") is False:
            reason = text(home.get("kind")), text(home.get("why"))
            counts[reason] = counts.get(reason, 0) + 1
    order = sorted(counts, key=lambda reason: -counts[reason])
    return tuple(Left(counts[kind, why], kind, why) for kind, why in order)


def benched_page(folder: Path) -> Page:
    """The page of a folder that `bench --on all -o` wrote."""
    record = read_benched(folder)
    parts = [
        Part(f"model-{place}", one.model or phrase("A model"), _section(one))
        for place, one in enumerate(record.models)
    ]
    parts.append(Part("about", phrase("How to read it, and how to do it again"), _about(record)))
    return Page(record.heading, "every target", record.version, tuple(parts))


_TITLES = (
    "Target",
    "Ops taken",
    "Parts",
    "Time a run",
    phrase("How known"),
    phrase("Differs by"),
    "Verdict",
)


def _section(one: Benched) -> Html:
    head = tag("tr", *(tag("th", title) for title in _TITLES))
    body = [_html_row(row) for row in one.rows]
    shown = tag("table", tag("thead", head), tag("tbody", *body), class_="targets cards")
    return joined(
        tag("p", size_words(one.size), class_="hint") if one.size else None,
        tag("div", shown, class_="scroll"),
        tag("ul", *(tag("li", warning) for warning in one.warnings)) if one.warnings else None,
    )


def _html_row(row: Row) -> Html:
    cells = (row.ops, row.parts, row.time, row.how, row.difference)
    return tag(
        "tr",
        tag("th", tag("b", row.target), scope="row"),
        *(
            tag("td", cell, class_="number", data_label=title, data_sort=cell)
            for title, cell in zip(_TITLES[1:], cells, strict=False)
        ),
        tag("td", tag("p", row.verdict), _reasons(row.left), class_="why"),
        class_=_tone(row.verdict),
    )


def _tone(verdict: str) -> str | None:
    """Which of the tones of trials a verdict has."""
    if verdict.startswith(("worth it", "takes it whole")):
        return "fits"
    return "set-aside" if verdict.startswith(("not", "needs")) else None


def _reasons(left: Sequence[Left]) -> Html | None:
    """Why ops stay on the CPU, folded away."""
    total = sum(one.count for one in left)
    if not total:
        return None
    return tag(
        "details",
        tag("summary", _stay(total)),
        tag("ul", *(tag("li", words) for words in _lines(left))),
    )


def _stay(count: int) -> str:
    if count == 1:
        return phrase("1 op stays on the CPU")
    return phrase("{count} ops stay on the CPU", count)


def _lines(left: Sequence[Left]) -> list[str]:
    more = len(left) - _MOST_REASONS
    lines: list[str] = [
        phrase("{count} {kind}: {why}", one.count, one.kind, one.why)
        for one in left[:_MOST_REASONS]
    ]
    return [*lines, phrase("and {more} more reasons", more)] if more > 0 else lines


_MEANINGS = (
    (
        "measured",
        phrase("run here in turns with the CPU, or really compiled; “by itself”: a few runs only"),
    ),
    ("estimated", phrase("the accelerator's own compiler worked the time out; it has not run")),
    ("predicted", phrase("by rules from the makers' documents; nothing was compiled")),
    (
        phrase("differs by"),
        phrase("the largest difference from the CPU's outputs, as a part of the largest"),
    ),
    ("parts", phrase("pieces between which the CPU works")),
)


def _about(record: Record) -> Html:
    digests = [(phrase("SHA-256 of {model}", one.model), one.digest) for one in record.models]
    command = tag("pre", tag("code", record.command)) if record.command else None
    return joined(pairs(_MEANINGS), command, pairs([*machine(record.environment), *digests]))


def benched_markdown(folder: Path, stem: str) -> Markdown:
    """The same for a pull request; it has no pictures."""
    record = read_benched(folder)
    parts: list[str] = []
    for one in record.models:
        title = phrase("{model}: every target", one.model or phrase("a model"))
        parts += [f"# {escaped(title)}", _table(one.rows)]
        parts.append(_folded_reasons(one.rows))
    meanings = "\n".join(f"- {say(name)}: {escaped(words)}" for name, words in _MEANINGS)
    return Markdown(paragraphs(*parts, meanings, again(record.command)))


def _table(shown: Iterable[Row]) -> str:
    cells = [
        [
            escaped(cell)
            for cell in (r.target, r.ops, r.parts, r.time, r.how, r.difference, r.verdict)
        ]
        for r in shown
    ]
    return table(_TITLES, cells)


def _folded_reasons(shown: Iterable[Row]) -> str:
    lines = [
        f"- {escaped(row.target)}: {escaped('; '.join(_lines(row.left)))}"
        for row in shown
        if row.left
    ]
    return folded("Why ops stay on the CPU", "\n".join(lines)) if lines else ""
