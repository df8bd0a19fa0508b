"""The folder of `tune` as a page and as Markdown."""

from collections.abc import Callable, Mapping
from pathlib import Path

from litesmith.lang.language import say
from litesmith.pages.drawing.markdown import (
    Markdown,
    cell,
    code,
    escape_markdown,
    fold,
    paragraphs,
    picture,
    table,
)
from litesmith.pages.drawing.markup import Html
from litesmith.pages.drawing.page import Page, list_parts
from litesmith.pages.drawing.png import png
from litesmith.pages.drawing.tradeoff import TradeoffGraph, graphs
from litesmith.pages.graph.tuned_graph import tuned_graph
from litesmith.pages.records.glance import Glance, machine_of
from litesmith.pages.records.record_words import difference_words, score_words
from litesmith.pages.records.tune_folder import Entry, TuneFolder, read_search
from litesmith.pages.sections.about import data, environment, losses, path, reproduce, threads
from litesmith.pages.sections.accelerators import accelerators, whole_words
from litesmith.pages.sections.accelerators import rows as accelerator_rows
from litesmith.pages.sections.disagreements import disagreements
from litesmith.pages.sections.inside_models import layer_errors, op_times
from litesmith.pages.sections.micro_memory import micro_memory
from litesmith.pages.sections.trial_table import columns_of, status_words, trade_offs, trials
from litesmith.pages.sections.tune_verdict import asked_words, headline, tiles, verdict, verdict_of
from litesmith.phrases import join, phrase

# The name of a section, its title, and the function that builds it: None where there is nothing to
# show.
SECTIONS: tuple[tuple[str, str, Callable[[TuneFolder], Html | None]], ...] = (
    ("verdict", phrase("Verdict"), verdict),
    ("trade-offs", phrase("What each model costs"), trade_offs),
    ("trials", phrase("Every model that was tried"), trials),
    ("memory", phrase("Memory of the microcontroller"), micro_memory),
    ("accelerators", phrase("Accelerators"), accelerators),
    ("ops", phrase("Where the time goes"), op_times),
    ("layers", phrase("Where the error comes from"), layer_errors),
    ("graph", phrase("The graph"), tuned_graph),
    ("answers", phrase("Where the answers differ"), disagreements),
    ("path", phrase("How it was decided"), path),
    ("threads", phrase("Threads"), threads),
    ("data", phrase("Data"), data),
    ("environment", phrase("Environment"), environment),
    ("reproduce", phrase("How to reproduce it"), reproduce),
    ("losses", phrase("What could not be read"), losses),
)


def tune_page(folder: Path) -> Page:
    """The page of a folder that `tune` wrote."""
    return page_of(read_search(folder))


def page_of(record: TuneFolder) -> Page:
    parts = list_parts(*((name, title, show(record)) for name, title, show in SECTIONS))
    summary = record.summary
    return Page(summary.model, verdict_of(record).title, summary.version, parts)


def tune_markdown(folder: Path, stem: str) -> Markdown:
    """The report for a pull request; `stem` begins the names of its pictures."""
    record = read_search(folder)
    drawn = {f"{stem}-{graph.name}.png": graph for graph in graphs(record)}
    return Markdown(_text(record, drawn), {name: png(graph) for name, graph in drawn.items()})


def _text(record: TuneFolder, drawn: Mapping[str, TradeoffGraph]) -> str:
    shown, model = verdict_of(record), record.summary.model or phrase("model")
    asked = phrase("Asked for: {asked}.", asked_words(record))
    return paragraphs(
        f"# {escape_markdown(model)}: {escape_markdown(shown.title)}",
        f"**{escape_markdown(told)}**" if (told := headline(record)) else "",
        f"{say(shown.meaning)} {escape_markdown(asked)}",
        _gains(record),
        "\n".join(picture(graph.title, name) for name, graph in drawn.items()),
        *sorted({escape_markdown(graph.samples) for graph in drawn.values()}),
        _accelerators(record),
        _trials(record),
        _commands(record),
    )


def _gains(record: TuneFolder) -> str:
    rows = [
        [
            " ".join(escape_markdown(cell).split())
            for cell in (one.title, one.gain, one.interval, one.change)
        ]
        for one in tiles(record)
    ]
    return table(("", phrase("against float"), phrase("95 % interval"), ""), rows) if rows else ""


def _trials(record: TuneFolder) -> str:
    if not record.entries:
        return ""
    columns = columns_of(record)
    head = (phrase("model"), phrase("result"), *(c.title for c in columns), phrase("why"))
    rows = [_row(record, entry) for entry in record.entries]
    count = phrase("All {count} models that were tried", len(rows))
    return fold(count, table(head, rows))


def _accelerators(record: TuneFolder) -> str:
    found = accelerator_rows(record)
    if not found:
        return ""
    cells = [[escape_markdown(cell) for cell in row] for row in found]
    return table(
        (phrase("accelerator"), phrase("the model as it came"), phrase("the result")), cells
    )


def _row(record: TuneFolder, entry: Entry) -> list[str]:
    best = record.summary.best
    is_best = best is not None and best.name == entry.name
    name = f"**{escape_markdown(entry.name)}**" if is_best else escape_markdown(entry.name)
    cells = [cell(column.words(entry), column.small(entry)) for column in columns_of(record)]
    words = [*entry.reasons, entry.recipe, whole_words(entry.takers)]
    return [
        name,
        escape_markdown(status_words(entry.status)),
        *cells,
        escape_markdown(join([phrase(part) for part in words if part], "; ")),
    ]


def _commands(record: TuneFolder) -> str:
    lines = [
        f"- {say(words)}: {code(command)}"
        for words, command in (
            (phrase("the same search"), record.summary.command),
            (phrase("the same file"), record.replay),
        )
        if command
    ]
    return "\n".join(lines)


def tune_glance(folder: Path) -> Glance:
    """A search beside other runs."""
    record = read_search(folder)
    summary, shown = record.summary, verdict_of(record)
    best, first = summary.chosen, summary.first
    score, speed = (best.accuracy, best.latency) if best else (None, None)
    return Glance(
        command="tune",
        model=summary.model,
        kind="missed" if record.changed else summary.verdict or "none",
        verdict=shown.title,
        headline=headline(record),
        target=speed.target if speed else "",
        score=difference_words(score) or score_words(score),
        score_key=(score.value if score.difference is None else score.difference)
        if score
        else None,
        us=speed.p50_us if speed else None,
        before_us=speed.float_us if speed else None,
        bytes=best.bytes if best else None,
        before_bytes=first.bytes if first else None,
        version=summary.version,
        machine=machine_of(summary.environment),
    )
