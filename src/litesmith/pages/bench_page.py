"""What `bench --on all` left in its folder, as a page and as Markdown."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from litesmith.evidence.benching import (
    BenchedInside,
    BenchedModel,
    BenchSummary,
    PlacementRow,
    TargetRow,
)
from litesmith.evidence.folder import BENCH
from litesmith.lang.language import say
from litesmith.pages.drawing.markdown import (
    Markdown,
    again,
    escape_markdown,
    fold,
    paragraphs,
    table,
)
from litesmith.pages.drawing.markup import Html, join_html, tag
from litesmith.pages.drawing.page import Page, Part
from litesmith.pages.records.record_words import size_words, time_words
from litesmith.pages.records.salvage_folder import read_inside, read_summary
from litesmith.pages.sections.about import machine, pairs, show_losses
from litesmith.phrases import join, phrase
from litesmith.timing.statistics import MARGIN
from litesmith.units import error_text

_MOST_REASONS = 12


@dataclass(frozen=True)
class Left:
    """Ops that stay on the CPU for one reason."""

    count: int
    kind: str
    why: str


@dataclass(frozen=True)
class ShownTarget:
    """One target in words, "" for what is not known; `tone` is one of those of trials."""

    target: str
    ops: str
    parts: str
    time: str
    how: str
    difference: str
    verdict: str
    tone: str
    left: tuple[Left, ...] = ()


@dataclass(frozen=True)
class ShownModel:
    """A model on every target."""

    row: BenchedModel
    targets: tuple[ShownTarget, ...]


@dataclass(frozen=True)
class BenchFolder:
    """Everything that the report of a bench is made of; `losses` is what could not be read."""

    summary: BenchSummary
    models: tuple[ShownModel, ...]
    losses: tuple[str, ...]

    @property
    def heading(self) -> str:
        return join([one.row.model or phrase("a model") for one in self.models], ", ")


def read_benched(folder: Path) -> BenchFolder:
    """Everything that the folder holds."""
    summary, losses = read_summary(BenchSummary, folder / BENCH)
    inside = [read_inside(BenchedInside, folder, row.digest) for row in summary.models]
    models = tuple(_model(row, one.value) for row, one in zip(summary.models, inside, strict=True))
    more = (why for one in inside for why in one.losses)
    return BenchFolder(summary, models, (*losses, *more))


def _model(row: BenchedModel, inside: BenchedInside | None) -> ShownModel:
    shown = (
        _target(one, inside.placements.get(one.target) if inside else None) for one in row.targets
    )
    return ShownModel(row, tuple(shown))


def _target(row: TargetRow, placed: PlacementRow | None) -> ShownTarget:
    ops: str = phrase("all")
    if row.taken is not None and row.ops is not None:
        ops = phrase("{count} of {count2}", row.taken, row.ops)
    return ShownTarget(
        target=row.target,
        ops=ops,
        parts=str(row.partitions) if row.partitions else "",
        time=time_words(row.latency_us),
        how=_how(row),
        difference="" if row.difference is None else error_text(row.difference),
        verdict=row.verdict,
        tone=_tone(row),
        left=_left(placed),
    )


def _how(row: TargetRow) -> str:
    """How it is known: `measured, 3 runs by itself`."""
    if not row.runs:
        return phrase(row.how)
    count = phrase("1 run") if row.runs == 1 else phrase("{count} runs", row.runs)
    if row.is_alone:
        return phrase("{how}, {count} by itself", phrase(row.how), count)
    return phrase("{how}, {count}", phrase(row.how), count)


def _tone(row: TargetRow) -> str:
    """Whether a model should go to a target: "" where nothing speaks for it or against it."""
    if row.why:
        return ""
    if row.runs:
        if row.ratio is None:
            return "set-aside" if row.is_alone else ""
        return "fits" if row.high is not None and row.high < 1 - MARGIN else "set-aside"
    if row.taken is None or not row.ops:
        return ""
    return "fits" if row.taken == row.ops else "" if row.taken else "set-aside"


def _left(placed: PlacementRow | None) -> tuple[Left, ...]:
    homes = placed.homes if placed else ()
    counts = Counter((home.kind, home.why) for home in homes if not home.taken)
    return tuple(Left(count, kind, why) for (kind, why), count in counts.most_common())


def benched_page(folder: Path) -> Page:
    """The page of a folder that `bench --on all -o` wrote."""
    record = read_benched(folder)
    parts = [
        Part(f"model-{place}", one.row.model or phrase("A model"), _section(one))
        for place, one in enumerate(record.models)
    ]
    parts.append(Part("about", phrase("How to read it, and how to do it again"), _about(record)))
    lost = show_losses(record.losses)
    if lost is not None:
        parts.append(Part("losses", phrase("What could not be read"), lost))
    return Page(record.heading, phrase("every target"), record.summary.version, tuple(parts))


_TITLES = (
    phrase("Target"),
    phrase("Ops taken"),
    phrase("Parts"),
    phrase("Time a run"),
    phrase("How known"),
    phrase("Differs by"),
    phrase("Verdict"),
)


def _section(one: ShownModel) -> Html:
    head = tag("tr", *(tag("th", title) for title in _TITLES))
    body = [_html_row(row) for row in one.targets]
    shown = tag("table", tag("thead", head), tag("tbody", *body), class_="targets cards")
    warnings = one.row.warnings
    return join_html(
        tag("p", size_words(one.row.bytes), class_="hint") if one.row.bytes else None,
        tag("div", shown, class_="scroll"),
        tag("ul", *(tag("li", told) for told in warnings)) if warnings else None,
    )


def _html_row(row: ShownTarget) -> Html:
    cells = (row.ops, row.parts, row.time, row.how, row.difference)
    return tag(
        "tr",
        tag("th", tag("b", row.target), scope="row"),
        *(
            tag("td", cell, class_="number", data_label=title, data_sort=cell)
            for title, cell in zip(_TITLES[1:], cells, strict=False)
        ),
        tag("td", tag("p", row.verdict), _reasons(row.left), class_="why"),
        class_=row.tone or None,
    )


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
        phrase("{count} {kind}: {why}", one.count, one.kind, phrase(one.why))
        for one in left[:_MOST_REASONS]
    ]
    return [*lines, phrase("and {more} more reasons", more)] if more > 0 else lines


_MEANINGS = (
    (
        phrase("measured"),
        phrase("run here in turns with the CPU, or really compiled; “by itself”: a few runs only"),
    ),
    (
        phrase("estimated"),
        phrase("the accelerator's own compiler worked the time out; it has not run"),
    ),
    (phrase("predicted"), phrase("by rules from the makers' documents; nothing was compiled")),
    (
        phrase("differs by"),
        phrase("the largest difference from the CPU's outputs, as a part of the largest"),
    ),
    (phrase("parts"), phrase("pieces between which the CPU works")),
)


def _about(record: BenchFolder) -> Html:
    told = record.summary
    digests = [(phrase("SHA-256 of {model}", one.model), one.digest) for one in told.models]
    command = tag("pre", tag("code", told.command)) if told.command else None
    return join_html(pairs(_MEANINGS), command, pairs([*machine(told.environment), *digests]))


def benched_markdown(folder: Path, stem: str) -> Markdown:
    """The same for a pull request; it has no pictures."""
    record = read_benched(folder)
    parts: list[str] = []
    for one in record.models:
        title = phrase("{model}: every target", one.row.model or phrase("a model"))
        parts += [f"# {escape_markdown(title)}", _table(one.targets)]
        parts.append(_folded_reasons(one.targets))
    meanings = "\n".join(f"- {say(name)}: {escape_markdown(words)}" for name, words in _MEANINGS)
    return Markdown(paragraphs(*parts, meanings, again(record.summary.command)))


def _table(shown: Iterable[ShownTarget]) -> str:
    cells = [
        [
            escape_markdown(cell)
            for cell in (r.target, r.ops, r.parts, r.time, r.how, r.difference, r.verdict)
        ]
        for r in shown
    ]
    return table(_TITLES, cells)


def _folded_reasons(shown: Iterable[ShownTarget]) -> str:
    lines = [
        f"- {escape_markdown(row.target)}: {escape_markdown(join(_lines(row.left), '; '))}"
        for row in shown
        if row.left
    ]
    return fold("Why ops stay on the CPU", "\n".join(lines)) if lines else ""
