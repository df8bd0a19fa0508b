"""The folder of `bench --on all` as a page and as Markdown."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from litesmith.evidence.bench_record import (
    BenchedInside,
    BenchedModel,
    BenchSummary,
    PlacementRow,
    TargetRow,
)
from litesmith.evidence.folder import BENCH
from litesmith.lang.language import say
from litesmith.pages.drawing.bars import Bar, BarRow, bar_chart, time_chart
from litesmith.pages.drawing.markdown import (
    Markdown,
    escape_markdown,
    fold,
    paragraphs,
    repeat_line,
    table,
)
from litesmith.pages.drawing.markup import (
    Html,
    bullets,
    join_html,
    legend_html,
    table_html,
    tag,
)
from litesmith.pages.drawing.page import Page, list_parts
from litesmith.pages.drawing.verdict_box import Tile, Verdict, tiles_html, verdict_html
from litesmith.pages.records.glance import Glance, machine_of
from litesmith.pages.records.record_words import names_words, size_words, split_time, time_words
from litesmith.pages.records.salvage_folder import read_inside, read_summary
from litesmith.pages.sections.about import machine, pairs, show_losses
from litesmith.phrases import join, phrase
from litesmith.run.core.placement import MEASURED
from litesmith.timing.statistics import MARGIN, UNCLEAR, speed_interval, speed_words
from litesmith.units import error_text

_MOST_REASONS = 12


@dataclass(frozen=True)
class BenchFolder:
    """Everything in the report of a bench.

    placed  the placement of ops, by the digest of a model and a target
    losses  what could not be read, and why
    """

    summary: BenchSummary
    placed: Mapping[tuple[str, str], PlacementRow]
    losses: tuple[str, ...]

    @property
    def heading(self) -> str:
        return join([one.model or phrase("a model") for one in self.summary.models], ", ")


def read_bench(folder: Path) -> BenchFolder:
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
    """The cells of one target, "" for unknown values; `_TITLES` names the columns."""
    is_part = row.taken is not None and row.ops is not None
    return (
        row.target,
        phrase("{taken} of {ops}", row.taken, row.ops) if is_part else phrase("all"),
        str(row.partitions) if row.partitions else "",
        time_words(row.latency_us),
        _how(row),
        "" if row.difference is None else error_text(row.difference),
        row.verdict,
    )


def _how(row: TargetRow) -> str:
    """How a time was obtained, as in `measured, 3 runs by itself`."""
    if not row.runs:
        return phrase(row.how)
    count = phrase("1 run") if row.runs == 1 else phrase("{count} runs", row.runs)
    if row.is_alone:
        return phrase("{how}, {count} by itself", phrase(row.how), count)
    return phrase("{how}, {count}", phrase(row.how), count)


def _tone(row: TargetRow) -> str:
    """Whether a model should run on a target, as a tone; "" where no verdict is known."""
    if row.why or row.verdict == UNCLEAR:
        return ""
    if row.runs:
        if row.ratio is None:
            return "set-aside" if row.is_alone else ""
        return "fits" if row.high is not None and row.high < 1 - MARGIN else "set-aside"
    return "set-aside" if row.ops and not row.taken else ""


def _reasons(placed: PlacementRow | None) -> tuple[int, list[str]]:
    """The number of ops left to the CPU, and the reasons."""
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


def bench_page(folder: Path) -> Page:
    """The page of a folder that `bench --on all -o` wrote."""
    record = read_bench(folder)
    sections = [
        (f"model-{place}", one.model or phrase("A model"), _section(record, one))
        for place, one in enumerate(record.summary.models)
    ]
    parts = list_parts(
        ("verdict", phrase("Verdict"), _verdicts(record)),
        ("times", phrase("How long a run takes"), _times(record)),
        *sections,
        ("about", phrase("How to read it, and how to do it again"), _about(record)),
        ("losses", phrase("What could not be read"), show_losses(record.losses)),
    )
    models = record.summary.models
    outcome = _advice(models[0]) if len(models) == 1 else phrase("every target")
    return Page(record.heading, outcome, record.summary.version, parts)


# Times measured here.


def timed_rows(model: BenchedModel) -> list[TargetRow]:
    """The targets that the model was run on, the fastest first."""
    timed = [row for row in model.targets if row.latency_us and row.runs]
    return sorted(timed, key=lambda row: row.latency_us or 0.0)


def base_of(model: BenchedModel) -> TargetRow | None:
    """The row of the CPU, with which the other targets took turns."""
    turns = [row for row in model.targets if row.latency_us and row.runs and not row.is_alone]
    return next((row for row in turns if row.ratio is None), None)


def winner_of(model: BenchedModel) -> TargetRow | None:
    """The fastest of the targets that are faster than the CPU beyond the noise; else the CPU."""
    faster = [row for row in timed_rows(model) if row.ratio is not None and _tone(row) == "fits"]
    return next(iter(faster), base_of(model))


def verdict_of(model: BenchedModel) -> tuple[str, Verdict]:
    """The verdict on a model, and how it is drawn."""
    base, winner = base_of(model), winner_of(model)
    if base is None or winner is None:
        return "none", Verdict("–", phrase("Not measured"), phrase("Nothing here could run it."))
    if winner is not base:
        meaning = phrase("Timed in turns with the CPU, the whole interval is faster.")
        return "proven", Verdict("✓", phrase("Measured"), meaning)
    if any(row.verdict == UNCLEAR for row in timed_rows(model)):
        meaning = phrase(
            "Other programs kept the processor busy, so the times do not separate the targets. "
            "Close them and run the same command again."
        )
        return "unclear", Verdict("≈", phrase("Unclear: the machine was busy"), meaning)
    meaning = phrase("Nothing timed here is faster than the CPU beyond the noise.")
    return "proven", Verdict("✓", phrase("Measured"), meaning)


def _advice(model: BenchedModel) -> str:
    winner = winner_of(model)
    return phrase("run it on {target}", winner.target) if winner else phrase("every target")


def _headline(record: BenchFolder, model: BenchedModel) -> str:
    winner, is_one_of_several = winner_of(model), len(record.summary.models) > 1
    if winner is None:
        return ""
    if verdict_of(model)[0] == "unclear":
        more = phrase("Measure again on a machine that is quiet")
        return phrase("{name}: {why}", model.model, more) if is_one_of_several else more
    if is_one_of_several:
        return phrase("Run {model} on {target}", model.model or phrase("a model"), winner.target)
    return phrase("Run it on {target}", winner.target)


def _verdicts(record: BenchFolder) -> Html | None:
    shown = [_verdict(record, model) for model in record.summary.models]
    return join_html(*shown) if shown else None


def _verdict(record: BenchFolder, model: BenchedModel) -> Html:
    kind, shown = verdict_of(model)
    warnings = [tag("p", words, class_="asked") for words in model.warnings]
    return verdict_html(
        kind, shown, _headline(record, model), join_html(*warnings), tiles_html(_tiles(model))
    )


def _tiles(model: BenchedModel) -> Iterator[Tile]:
    base, winner = base_of(model), winner_of(model)
    if winner is not None:
        on = phrase("on {target}", winner.target)
        low, high = _ends(winner, base)
        words, ends = split_time(winner.latency_us, low, high)
        yield Tile(phrase("Latency"), words, ends, on)
    if base is not None and winner is not None and winner.ratio is not None:
        ends = (winner.low, winner.high, "")
        against = phrase("{time} on {target}", time_words(base.latency_us), base.target)
        gain, interval = speed_words(winner.ratio, *ends), speed_interval(*ends)
        yield Tile(phrase("Against the CPU"), gain, interval, against)
    if model.bytes:
        yield Tile(phrase("File"), size_words(model.bytes), "", "")
    others = [row for row in model.targets if not row.runs and row.ops and not row.why]
    if others:
        whole = sum(row.taken == row.ops for row in others)
        words = phrase("{taken} of {ops}", whole, len(others))
        told = phrase("would take all of it; predicted, nothing ran there")
        yield Tile(phrase("Other accelerators"), words, "", told)


def _ends(row: TargetRow, base: TargetRow | None) -> tuple[float | None, float | None]:
    """The ends of a time's interval: those of the ratio to the CPU, by the CPU's time."""
    if base is None or not base.latency_us or row.low is None or row.high is None:
        return None, None
    return row.low * base.latency_us, row.high * base.latency_us


def _times(record: BenchFolder) -> Html | None:
    """A chart for each model: the measured times, and below them, hatched, the estimates of
    compilers.
    """
    models = record.summary.models
    drawn = [_chart(one, one.model if len(models) > 1 else "") for one in models]
    charts = [chart for chart in drawn if chart is not None]
    if not charts:
        return None
    is_guessed = any(row.latency_us and not row.runs for one in models for row in one.targets)
    keys = [("own", phrase("to take")), ("after", phrase("measured"))]
    keys += [("guess", phrase("estimated"))] if is_guessed else []
    hint = phrase("Bars are medians, thin lines 95 % intervals of the ratio to the CPU.")
    side_by_side = tag("div", *charts, class_="figures") if len(charts) > 1 else charts[0]
    return join_html(tag("p", hint, class_="hint"), legend_html(keys), side_by_side)


def _chart(model: BenchedModel, title: str) -> Html | None:
    known = [row for row in model.targets if row.latency_us]
    ranked = sorted(known, key=lambda row: (not row.runs, row.latency_us or 0.0))
    rows = tuple(BarRow(row.target, (_bar(model, row),)) for row in ranked)
    return bar_chart(time_chart(title, rows))


def _bar(model: BenchedModel, row: TargetRow) -> Bar:
    low, high = _ends(row, base_of(model))
    kind = "guess" if not row.runs else "own" if row == winner_of(model) else "after"
    us = row.latency_us or 0.0
    return Bar(us, time_words(us), kind, low, high, (_how(row), row.verdict))


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
    """The section of a model: the targets that ran here; below them, folded, those that are only
    predicted.
    """
    ran = [row for row in one.targets if row.runs or row.how == MEASURED]
    others = [row for row in one.targets if row not in ran]
    return join_html(
        tag("h3", phrase("Measured here")) if ran else None,
        _table(record, one, ran),
        tag("h3", phrase("Not run here: what rules and compilers say")) if others else None,
        _table(record, one, others),
    )


def _table(record: BenchFolder, one: BenchedModel, rows: Sequence[TargetRow]) -> Html | None:
    if not rows:
        return None
    shown = [
        _html_row(group, record.placed.get((one.digest, group[0].target))) for group in _group(rows)
    ]
    return tag("div", table_html(_TITLES, shown, "targets cards", scope="col"), class_="scroll")


def _group(rows: Sequence[TargetRow]) -> list[list[TargetRow]]:
    """Groups neighbouring targets whose rows differ only in their names."""
    found: list[list[TargetRow]] = []
    for row in rows:
        if found and _cells_without_name(found[-1][0]) == _cells_without_name(row):
            found[-1].append(row)
        else:
            found.append([row])
    return found


def _cells_without_name(row: TargetRow) -> tuple[str, ...]:
    _, *cells = _cells(row)
    return tuple(cell.replace(row.target, "") for cell in cells)


def _html_row(group: Sequence[TargetRow], placed: PlacementRow | None) -> Html:
    row = group[0]
    _, *cells, verdict = _cells(row)
    count, why = _reasons(placed)
    many = phrase("{count} ops stay on the CPU", count)
    stay = phrase("1 op stays on the CPU") if count == 1 else many
    return tag(
        "tr",
        tag("th", tag("b", names_words([one.target for one in group]) or "?"), scope="row"),
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
        phrase("the accelerator's own compiler estimated the time; nothing ran there"),
    ),
    (phrase("predicted"), phrase("by rules from the makers' documents; nothing was compiled")),
    (
        phrase("differs by"),
        phrase("the largest difference from the CPU's outputs, as a share of the largest output"),
    ),
    (phrase("parts"), phrase("pieces of the model, with the CPU at work between them")),
)


def _about(record: BenchFolder) -> Html:
    summary = record.summary
    digests = [(phrase("SHA-256 of {model}", one.model), one.digest) for one in summary.models]
    command = tag("pre", tag("code", summary.command)) if summary.command else None
    return join_html(pairs(_MEANINGS), command, pairs([*machine(summary.environment), *digests]))


def bench_markdown(folder: Path, stem: str) -> Markdown:
    """The report for a pull request, without pictures."""
    record = read_bench(folder)
    parts: list[str] = []
    for one in record.summary.models:
        title = phrase("{model}: every target", one.model or phrase("a model"))
        rows = [[escape_markdown(cell) for cell in _cells(row)] for row in one.targets]
        verdict = verdict_of(one)[1].title
        bold_verdict = f"**{escape_markdown(verdict)}**. {escape_markdown(_headline(record, one))}"
        parts += [
            f"# {escape_markdown(title)}",
            bold_verdict,
            table(_TITLES, rows),
            _folded_reasons(record, one),
        ]
    meanings = "\n".join(f"- {say(name)}: {escape_markdown(words)}" for name, words in _MEANINGS)
    return Markdown(paragraphs(*parts, meanings, repeat_line(record.summary.command)))


def _folded_reasons(record: BenchFolder, one: BenchedModel) -> str:
    lines: list[str] = []
    for target in (row.target for row in one.targets):
        _, why = _reasons(record.placed.get((one.digest, target)))
        if why:
            lines.append(f"- {escape_markdown(target)}: {escape_markdown(join(why, '; '))}")
    return fold("Why ops stay on the CPU", "\n".join(lines)) if lines else ""


def bench_glance(folder: Path) -> Glance:
    """A bench beside other runs: its first model where that is fastest."""
    record = read_bench(folder)
    summary = record.summary
    if not summary.models:
        return Glance("bench", record.heading, "none", phrase("Not measured"), "")
    model = summary.models[0]
    kind, shown = verdict_of(model)
    winner = winner_of(model)
    return Glance(
        command="bench",
        model=record.heading,
        kind=kind,
        verdict=shown.title,
        headline=_headline(record, model),
        target=winner.target if winner else "",
        us=winner.latency_us if winner else None,
        bytes=model.bytes,
        version=summary.version,
        machine=machine_of(summary.environment),
    )
