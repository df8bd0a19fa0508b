"""What `bench --on all` left in its folder, as a page and as Markdown."""

from collections import Counter
from collections.abc import Mapping
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
from litesmith.pages.drawing.markup import Html, bullets, join_html, table_html, tag
from litesmith.pages.drawing.page import Page, list_parts
from litesmith.pages.records.record_words import size_words, time_words
from litesmith.pages.records.salvage_folder import read_inside, read_summary
from litesmith.pages.sections.about import machine, pairs, show_losses
from litesmith.phrases import join, phrase
from litesmith.timing.statistics import MARGIN, UNCLEAR
from litesmith.units import error_text

_MOST_REASONS = 12


@dataclass(frozen=True)
class BenchFolder:
    """Everything that the report of a bench is made of.

    placed  by the digest of a model and a target: where its ops go
    losses  what could not be read
    """

    summary: BenchSummary
    placed: Mapping[tuple[str, str], PlacementRow]
    losses: tuple[str, ...]

    @property
    def heading(self) -> str:
        return join([one.model or phrase("a model") for one in self.summary.models], ", ")


def read_benched(folder: Path) -> BenchFolder:
    """Everything that the folder holds."""
    summary, losses = read_summary(BenchSummary, folder / BENCH)
    placed: dict[tuple[str, str], PlacementRow] = {}
    for digest in (model.digest for model in summary.models):
        inside, more = read_inside(BenchedInside, folder, digest)
        losses = (*losses, *more)
        if inside is not None:
            placed |= {(digest, target): one for target, one in inside.placements.items()}
    return BenchFolder(summary, placed, losses)


def _cells(row: TargetRow) -> tuple[str, ...]:
    """One target in words, "" for what is not known: see `_TITLES`."""
    is_part = row.taken is not None and row.ops is not None
    return (
        row.target,
        phrase("{count} of {count2}", row.taken, row.ops) if is_part else phrase("all"),
        str(row.partitions) if row.partitions else "",
        time_words(row.latency_us),
        _how(row),
        "" if row.difference is None else error_text(row.difference),
        row.verdict,
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
    if row.why or row.verdict == UNCLEAR:
        return ""
    if row.runs:
        if row.ratio is None:
            return "set-aside" if row.is_alone else ""
        return "fits" if row.high is not None and row.high < 1 - MARGIN else "set-aside"
    if row.taken is None or not row.ops:
        return ""
    return "fits" if row.taken == row.ops else "" if row.taken else "set-aside"


def _reasons(placed: PlacementRow | None) -> tuple[int, list[str]]:
    """How many ops stay on the CPU, and why."""
    homes = placed.homes if placed else ()
    counts = Counter((home.kind, home.why) for home in homes if not home.taken)
    lines: list[str] = [
        phrase("{count} {kind}: {why}", count, kind, phrase(why))
        for (kind, why), count in counts.most_common(_MOST_REASONS)
    ]
    more = len(counts) - _MOST_REASONS
    if more > 0:
        lines.append(phrase("and {more} more reasons", more))
    return counts.total(), lines


def benched_page(folder: Path) -> Page:
    """The page of a folder that `bench --on all -o` wrote."""
    record = read_benched(folder)
    sections = [
        (f"model-{place}", one.model or phrase("A model"), _section(record, one))
        for place, one in enumerate(record.summary.models)
    ]
    parts = list_parts(
        *sections,
        ("about", phrase("How to read it, and how to do it again"), _about(record)),
        ("losses", phrase("What could not be read"), show_losses(record.losses)),
    )
    return Page(record.heading, phrase("every target"), record.summary.version, parts)


_TITLES = (
    phrase("Target"),
    phrase("Ops taken"),
    phrase("Parts"),
    phrase("Time a run"),
    phrase("How known"),
    phrase("Differs by"),
    phrase("Verdict"),
)


def _section(record: BenchFolder, one: BenchedModel) -> Html:
    rows = (_html_row(row, record.placed.get((one.digest, row.target))) for row in one.targets)
    return join_html(
        tag("p", size_words(one.bytes), class_="hint") if one.bytes else None,
        tag("div", table_html(_TITLES, rows, "targets cards"), class_="scroll"),
        bullets(one.warnings),
    )


def _html_row(row: TargetRow, placed: PlacementRow | None) -> Html:
    target, *cells, verdict = _cells(row)
    count, why = _reasons(placed)
    many = phrase("{count} ops stay on the CPU", count)
    stay = phrase("1 op stays on the CPU") if count == 1 else many
    return tag(
        "tr",
        tag("th", tag("b", target), scope="row"),
        *(
            tag("td", cell, class_="number", data_label=title, data_sort=cell)
            for title, cell in zip(_TITLES[1:], cells, strict=False)
        ),
        tag(
            "td",
            tag("p", verdict),
            tag("details", tag("summary", stay), bullets(why)) if why else None,
            class_="why",
        ),
        class_=_tone(row) or None,
    )


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
    for one in record.summary.models:
        title = phrase("{model}: every target", one.model or phrase("a model"))
        rows = [[escape_markdown(cell) for cell in _cells(row)] for row in one.targets]
        parts += [f"# {escape_markdown(title)}", table(_TITLES, rows), _folded_reasons(record, one)]
    meanings = "\n".join(f"- {say(name)}: {escape_markdown(words)}" for name, words in _MEANINGS)
    return Markdown(paragraphs(*parts, meanings, again(record.summary.command)))


def _folded_reasons(record: BenchFolder, one: BenchedModel) -> str:
    lines: list[str] = []
    for target in (row.target for row in one.targets):
        _, why = _reasons(record.placed.get((one.digest, target)))
        if why:
            lines.append(f"- {escape_markdown(target)}: {escape_markdown(join(why, '; '))}")
    return fold("Why ops stay on the CPU", "\n".join(lines)) if lines else ""
