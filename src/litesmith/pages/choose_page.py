"""The folder of `choose` as a page and as Markdown."""

from collections.abc import Iterable
from pathlib import Path

from litesmith.evidence.tune_record import DONE
from litesmith.lang.language import say
from litesmith.pages.choose_graphs import ChooseFolder, ChosenModel, graphs, read_choice
from litesmith.pages.drawing.markdown import (
    Markdown,
    cell,
    escape_markdown,
    paragraphs,
    picture,
    repeat_line,
    table,
)
from litesmith.pages.drawing.markup import (
    Html,
    badges_html,
    bullets,
    code_facts,
    join_html,
    number_cell,
    sortable,
    tag,
)
from litesmith.pages.drawing.page import Page, list_parts
from litesmith.pages.drawing.png import png
from litesmith.pages.drawing.svg import figures
from litesmith.pages.drawing.verdict_box import (
    Tile,
    Verdict,
    asked_html,
    changed_verdict,
    run_line,
    tiles_html,
    verdict_html,
)
from litesmith.pages.records.glance import Glance, machine_of
from litesmith.pages.records.record_words import (
    score_words,
    size_words,
    split_interval,
    split_time,
)
from litesmith.pages.sections.about import pairs, show_losses, value_words
from litesmith.pages.sections.trial_table import status_words
from litesmith.phrases import join, join_and, phrase
from litesmith.units import total_text

_PICKED = Verdict("✓", phrase("To take"), "")
_NOTHING = Verdict("✕", phrase("Nothing fits"), phrase("No model stays within what was asked."))
_UNCLEAR = Verdict(
    "≈",
    phrase("Unclear: the machine was busy"),
    phrase(
        "Other programs kept the processor busy, so the times do not separate the models. Close "
        "them and run the same command again: it measures the times anew."
    ),
)
_UNFINISHED = Verdict("…", phrase("Not finished"), phrase("This is what there is so far."))

_COLUMNS = (phrase("Accuracy"), phrase("Latency"), phrase("File"), phrase("Peak memory"))


def choose_page(folder: Path) -> Page:
    """The page of a folder that `choose` wrote."""
    record = read_choice(folder)
    parts = list_parts(
        ("verdict", phrase("Verdict"), _verdict(record)),
        ("trade-offs", phrase("Accuracy against size and latency"), _figures(record)),
        ("trials", phrase("Every candidate"), _models(record)),
        ("about", phrase("Data, machine, and how to do it again"), _about(record)),
        ("losses", phrase("What could not be read"), show_losses(record.losses)),
    )
    return Page(_heading(record), verdict_of(record).title, record.summary.version, parts)


def verdict_of(record: ChooseFolder) -> Verdict:
    if record.changed:
        return changed_verdict(record.changed)
    if record.summary.state != DONE:
        return _UNFINISHED
    if record.summary.is_unclear:
        return _UNCLEAR
    return _PICKED if record.summary.pick else _NOTHING


def _heading(record: ChooseFolder) -> str:
    return record.summary.pick or phrase("{count} models", len(record.models))


def _request_words(record: ChooseFolder) -> str:
    request = record.summary.request
    goals = {"accuracy": phrase("the most accurate"), "": ""}
    goal = goals.get(request.goal, phrase("least {goal}", phrase(request.goal)))
    on = phrase("on {target}", request.target) if request.target else ""
    is_told = verdict_of(record) in (_PICKED, _NOTHING)  # whose reason has the limits
    parts = filter(None, (goal, *(() if is_told else request.limits), on))
    return join(map(phrase, parts), "; ")


def _verdict(record: ChooseFolder) -> Html:
    shown = verdict_of(record)
    own = record.model(record.summary.pick or record.summary.nearest)
    return verdict_html(
        _kind(record),
        shown,
        record.summary.reason,
        asked_html(_request_words(record), record.summary.seconds),
        tiles_html(_tiles(own)) if own else None,
        _ship(own, record.summary.request.target)
        if own and record.summary.pick and not record.changed
        else None,
    )


def _kind(record: ChooseFolder) -> str:
    """The kind of the verdict, which decides its look."""
    kinds = {_PICKED: "proven", _NOTHING: "missed", _UNCLEAR: "likely"}
    return "missed" if record.changed else kinds.get(verdict_of(record), "none")


def _tiles(model: ChosenModel) -> Iterable[Tile]:
    entry = model.entry
    if entry.score is not None:
        gain, interval = split_interval(score_words(entry.score))
        count = total_text(entry.score.n) if entry.score.n else ""
        yield Tile(
            entry.score.title,
            gain,
            interval,
            phrase("{count} samples", count) if count else model.source,
        )
    words, ends = _split_time(model)
    if words:
        yield Tile(phrase("Latency"), words, ends, "")
    for title, count in (
        (phrase("File"), entry.bytes),
        ("gzip", entry.gzip_bytes),
        (phrase("Peak memory"), entry.peak_bytes),
    ):
        if count is not None:
            yield Tile(title, size_words(count), "", "")


def _split_time(model: ChosenModel) -> tuple[str, str]:
    speed = model.entry.speed
    return split_time(speed.p50_us if speed else None, *model.time_ends)


def _ship(model: ChosenModel, target: str) -> Html:
    file = model.row.file or ""
    rows = (
        (phrase("Take"), file),
        (phrase("Run it with"), run_line(file, target)),
        (phrase("Made by"), model.entry.recipe),
    )
    return code_facts(rows)


def _figures(record: ChooseFolder) -> Html | None:
    hint = phrase(
        "Up and to the left is better. Thin bars are 95 % intervals. On the line are the "
        "models that no other beats in accuracy, time and size at once. A number in place "
        "of a name refers to the table below; hover over a point or tap it for details."
    )
    return figures(graphs(record), hint)


def _models(record: ChooseFolder) -> Html | None:
    if not record.models:
        return None
    result = (phrase("Result"),) if record.summary.request.limits else ()
    titles = (phrase("Model"), *result, *_COLUMNS, phrase("Notes"))
    return sortable(titles, (_row(record, place) for place in range(len(record.models))))


def _row(record: ChooseFolder, place: int) -> Html:
    model = record.models[place]
    is_pick = model.name == record.summary.pick
    badges = badges_html(
        ((phrase("take"), "best", is_pick), (phrase("front"), "front", model.row.on_front))
    )
    status = model.entry.status
    result = status_words(status)
    return tag(
        "tr",
        tag("th", f"{place + 1}. ", tag("b", model.name), *badges, scope="row"),
        tag("td", result, data_label="Result") if record.summary.request.limits else None,
        *(number_cell(title, *cell) for title, cell in zip(_COLUMNS, _cells(model), strict=True)),
        tag("td", *(tag("p", words) for words in known_words(model)), class_="why"),
        id=f"trial-{place}",
        data_trial=model.name,
        class_=f"{status}{' best' if is_pick else ''}".strip() or None,
    )


def _cells(model: ChosenModel) -> tuple[tuple[str, str, float | None], ...]:
    """For each column: the words, the small words below, and the sort key."""
    entry = model.entry
    value, ends = split_interval(score_words(entry.score))
    if not model.is_measured:
        value, ends = phrase("({value})", value), phrase("published")
    time, time_ends = _split_time(model)
    return (
        (value, ends, entry.score.value if entry.score else None),
        (time, time_ends, entry.speed.p50_us if entry.speed else None),
        (
            size_words(entry.bytes),
            phrase("{size} gzip", size_words(entry.gzip_bytes)) if entry.gzip_bytes else "",
            entry.bytes,
        ),
        (size_words(entry.peak_bytes), "", entry.peak_bytes),
    )


def known_words(model: ChosenModel) -> tuple[str, ...]:
    """The words beside the numbers of a row."""
    near = ", ".join(model.row.as_good)
    matched = phrase("as good within the noise: {near}", near) if near else ""
    source = phrase("accuracy published by {source}, not measured here", model.source)
    return tuple(
        filter(
            None,
            (
                join_and([phrase(miss) for miss in model.row.misses]) if model.row.misses else "",
                matched,
                phrase("made by {recipe}", model.entry.recipe) if model.entry.recipe else "",
                source if model.source and not model.is_measured else "",
                model.row.preparation,
                *model.entry.notes,
            ),
        )
    )


def _about(record: ChooseFolder) -> Html:
    data = record.summary.data
    judged, others, learned = (data.judged, data.calibration, data.learned) if data else (0, 0, 0)
    lines = [
        (phrase("data"), data.source if data else ""),
        (
            phrase("judged by"),
            phrase("{count} samples, the same for all", total_text(judged)) if judged else "",
        ),
        (
            phrase("learned from"),
            phrase("{count} other samples", total_text(learned)) if learned else "",
        ),
        (
            phrase("calibrated on"),
            phrase("{count} other samples", total_text(others)) if others else "",
        ),
    ]
    machine = ((key, value_words(key, v)) for key, v in record.summary.environment.items())
    notes_and_warnings = (*record.summary.notes, *record.summary.warnings)
    return join_html(
        bullets(notes_and_warnings),
        tag("pre", tag("code", record.summary.command)) if record.summary.command else None,
        pairs([*lines, *machine]),
    )


def choose_markdown(folder: Path, stem: str) -> Markdown:
    """The report for a pull request; `stem` begins the names of its pictures."""
    record = read_choice(folder)
    drawn = {f"{stem}-{graph.name}.png": graph for graph in graphs(record)}
    head = ("", phrase("model"), *_COLUMNS, phrase("front"), "")
    content = paragraphs(
        f"# {escape_markdown(_heading(record))}: {escape_markdown(verdict_of(record).title)}",
        f"**{escape_markdown(record.summary.reason)}**" if record.summary.reason else "",
        escape_markdown(phrase("Asked for: {asked}.", _request_words(record))),
        "\n".join(picture(graph.title, name) for name, graph in drawn.items()),
        table(head, [_line(record, place) for place in range(len(record.models))]),
        repeat_line(record.summary.command),
    )
    return Markdown(content, {name: png(graph) for name, graph in drawn.items()})


def _line(record: ChooseFolder, place: int) -> list[str]:
    model = record.models[place]
    name = escape_markdown(model.name)
    cells = (cell(words, below) for words, below, _ in _cells(model))
    return [
        str(place + 1),
        f"**{name}**" if model.name == record.summary.pick else name,
        *cells,
        say("yes") if model.row.on_front else "",
        escape_markdown(join(map(phrase, known_words(model)), "; ")),
    ]


def choose_glance(folder: Path) -> Glance:
    """A choice beside other runs."""
    record = read_choice(folder)
    summary = record.summary
    own = record.model(summary.pick or summary.nearest)
    entry = own.entry if own else None
    return Glance(
        command="choose",
        model=_heading(record),
        kind=_kind(record),
        verdict=verdict_of(record).title,
        headline=summary.reason,
        target=summary.request.target,
        score=score_words(entry.score) if entry else "",
        score_key=entry.score.value if entry and entry.score else None,
        us=entry.speed.p50_us if entry and entry.speed else None,
        bytes=entry.bytes if entry else None,
        version=summary.version,
        machine=machine_of(summary.environment),
    )
