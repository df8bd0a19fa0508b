"""What `choose` left in its folder, as a page and as Markdown."""

from collections.abc import Iterable
from pathlib import Path

from litesmith.evidence.tuning import DONE
from litesmith.lang.language import say
from litesmith.pages.drawing.choose_graphs import graphs
from litesmith.pages.drawing.markdown import (
    Markdown,
    again,
    cell,
    escape_markdown,
    paragraphs,
    picture,
    table,
)
from litesmith.pages.drawing.markup import Html, as_is, join_html, tag
from litesmith.pages.drawing.page import Page, Part
from litesmith.pages.drawing.png import png
from litesmith.pages.drawing.svg import figures
from litesmith.pages.records.choose_folder import ChooseFolder, ChosenModel, read_chosen
from litesmith.pages.records.record_words import (
    duration_words,
    score_words,
    size_words,
    split_interval,
    time_words,
)
from litesmith.pages.sections.about import pairs, show_losses, value_words
from litesmith.pages.sections.trial_table import status_words
from litesmith.pages.sections.tune_verdict import Tile, Verdict, run_line, tile_html
from litesmith.phrases import join, join_and, phrase
from litesmith.units import time_interval_text, total_text

_PICKED = Verdict("✓", phrase("To take"), "")
_NOTHING = Verdict("✕", phrase("Nothing fits"), phrase("No model stays within what was asked."))
_UNFINISHED = Verdict("…", phrase("Not finished"), phrase("This is what there is so far."))

_COLUMNS = (phrase("Accuracy"), phrase("Latency"), phrase("File"), phrase("Peak memory"))


def chosen_page(folder: Path) -> Page:
    """The page of a folder that `choose` wrote."""
    record = read_chosen(folder)
    shown = (
        ("verdict", phrase("Verdict"), _verdict(record)),
        ("trade-offs", phrase("Accuracy against size and latency"), _figures(record)),
        ("trials", phrase("Every candidate"), _models(record)),
        ("about", phrase("Data, machine, and how to do it again"), _about(record)),
        ("losses", phrase("What could not be read"), show_losses(record.losses)),
    )
    parts = tuple(Part(name, title, body) for name, title, body in shown if body is not None)
    return Page(_heading(record), verdict_of(record).title, record.summary.version, parts)


def verdict_of(record: ChooseFolder) -> Verdict:
    if record.summary.state != DONE:
        return _UNFINISHED
    return _PICKED if record.summary.pick else _NOTHING


def _heading(record: ChooseFolder) -> str:
    return record.summary.pick or phrase("{count} models", len(record.models))


def _asked(record: ChooseFolder) -> str:
    goals = {"accuracy": phrase("the most accurate"), "": ""}
    goal = goals.get(
        record.summary.request.goal, phrase("least {goal}", phrase(record.summary.request.goal))
    )
    on = (
        phrase("on {target}", record.summary.request.target)
        if record.summary.request.target
        else ""
    )
    told = filter(None, (goal, *record.summary.request.limits, on))
    return join(map(phrase, told), "; ")


def _verdict(record: ChooseFolder) -> Html:
    shown = verdict_of(record)
    kind = {_PICKED: "proven", _NOTHING: "missed"}.get(shown, "none")
    own = record.model(record.summary.pick or record.summary.nearest)
    seconds = record.summary.seconds
    took = phrase(" Took {duration}.", duration_words(seconds)) if seconds else ""
    return tag(
        "div",
        tag("span", shown.sign, class_="sign", aria_hidden="true"),
        tag(
            "div",
            tag("p", shown.title, class_="word"),
            tag("p", record.summary.reason, class_="sentence") if record.summary.reason else None,
            tag("p", shown.meaning, class_="meaning") if shown.meaning else None,
            tag("p", phrase("Asked for: {asked}.{took}", _asked(record), took), class_="asked"),
        ),
        tag("div", *map(tile_html, _tiles(own)), class_="tiles") if own else None,
        _ship(own, record.summary.request.target) if own and record.summary.pick else None,
        class_=f"verdict {kind}",
    )


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
    words, ends = split_time(model)
    if words:
        yield Tile(phrase("Latency"), words, ends, "")
    for title, count in (
        (phrase("File"), entry.bytes),
        ("gzip", entry.gzip_bytes),
        (phrase("Peak memory"), entry.peak_bytes),
    ):
        if count is not None:
            yield Tile(title, size_words(count), "", "")


def split_time(model: ChosenModel) -> tuple[str, str]:
    """`11.3 ms` and `(11.2–11.4)`; the second is "" where it is not known."""
    speed, (low, high) = model.entry.speed, model.time_ends
    if speed is None or speed.p50_us is None:
        return "", ""
    if low is None or high is None:
        return time_words(speed.p50_us), ""
    words, _, ends = time_interval_text(speed.p50_us, low, high).partition(" (")
    return words, f"({ends}"


def _ship(model: ChosenModel, target: str) -> Html:
    file = model.row.file or ""
    rows = (
        (phrase("Take"), file),
        (phrase("Run it with"), run_line(file, target) if file and target else ""),
        (phrase("Made by"), model.entry.recipe),
    )
    shown = [
        tag("div", tag("dt", name), tag("dd", tag("code", value))) for name, value in rows if value
    ]
    return tag("dl", *shown, class_="ship")


def _figures(record: ChooseFolder) -> Html | None:
    hint = phrase(
        "Up and to the left is better. Thin bars are 95 % intervals. On the line are the "
        "models that no other beats in accuracy, time and size at once. A number in place "
        "of a name is that of the table below; hover over a point or tap it for what is "
        "known of it."
    )
    return figures(graphs(record), hint)


def _models(record: ChooseFolder) -> Html | None:
    if not record.models:
        return None
    result = (phrase("Result"),) if record.summary.request.limits else ()
    titles = (phrase("Model"), *result, *_COLUMNS, phrase("What there is to know"))
    head = tag("tr", *(tag("th", tag("button", title, type="button")) for title in titles))
    body = [_row(record, place) for place in range(len(record.models))]
    made = tag("table", tag("thead", head), tag("tbody", *body), class_="trials cards sortable")
    return tag("div", made, class_="scroll")


def _row(record: ChooseFolder, place: int) -> Html:
    model = record.models[place]
    is_pick = model.name == record.summary.pick
    badges = [
        tag("span", badge, class_=f"badge {kind}")
        for badge, kind, given in (
            (phrase("take"), "best", is_pick),
            (phrase("front"), "front", model.row.on_front),
        )
        if given
    ]
    status = model.entry.status
    result = status_words(status)
    return tag(
        "tr",
        tag("th", f"{place + 1}. ", tag("b", model.name), *badges, scope="row"),
        tag("td", result, data_label="Result") if record.summary.request.limits else None,
        *(_cell(title, *cell) for title, cell in zip(_COLUMNS, _cells(model), strict=True)),
        tag("td", *(tag("p", words) for words in known_words(model)), class_="why"),
        id=f"trial-{place}",
        data_trial=model.name,
        class_=f"{status}{' best' if is_pick else ''}".strip() or None,
    )


def _cells(model: ChosenModel) -> tuple[tuple[str, str, float | None], ...]:
    """Of each column the words, what is below them, and what they are sorted by."""
    entry = model.entry
    value, ends = split_interval(score_words(entry.score))
    if not model.is_measured:
        value, ends = phrase("({value})", value), phrase("published")
    time, time_ends = split_time(model)
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


def _cell(title: str, words: str, below: str, key: float | None) -> Html:
    return tag(
        "td",
        as_is(say(words).replace(" ", "\u00a0")),
        tag("small", " ", below) if below else None,
        class_="number",
        data_label=title,
        data_sort="" if key is None else str(key),
    )


def known_words(model: ChosenModel) -> tuple[str, ...]:
    """What a row says beside its numbers."""
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
    told = (*record.summary.notes, *record.summary.warnings)
    return join_html(
        tag("ul", *(tag("li", words) for words in told)) if told else None,
        tag("pre", tag("code", record.summary.command)) if record.summary.command else None,
        pairs([*lines, *machine]),
    )


def chosen_markdown(folder: Path, stem: str) -> Markdown:
    """The same for a pull request; `stem` begins the names of its pictures."""
    record = read_chosen(folder)
    drawn = {f"{stem}-{graph.name}.png": graph for graph in graphs(record)}
    head = ("", phrase("model"), *_COLUMNS, phrase("front"), "")
    told = paragraphs(
        f"# {escape_markdown(_heading(record))}: {escape_markdown(verdict_of(record).title)}",
        f"**{escape_markdown(record.summary.reason)}**" if record.summary.reason else "",
        escape_markdown(phrase("Asked for: {asked}.", _asked(record))),
        "\n".join(picture(graph.title, name) for name, graph in drawn.items()),
        table(head, [_line(record, place) for place in range(len(record.models))]),
        again(record.summary.command),
    )
    return Markdown(told, {name: png(graph) for name, graph in drawn.items()})


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
