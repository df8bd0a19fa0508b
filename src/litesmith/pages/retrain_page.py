"""The folder of `retrain`, as a page and as Markdown."""

from collections.abc import Iterator
from pathlib import Path

from litesmith.evidence.retrain_record import (
    HeadTried,
    MistakeRow,
    RetrainSummary,
    WordRow,
)
from litesmith.evidence.tune_record import NextStep
from litesmith.operating_system import quote
from litesmith.pages.drawing.assets import asset
from litesmith.pages.drawing.bars import Bar, BarChart, BarRow, bar_chart
from litesmith.pages.drawing.markdown import (
    Markdown,
    escape_markdown,
    paragraphs,
    repeat_line,
    table,
)
from litesmith.pages.drawing.markup import (
    Html,
    as_is,
    bullets,
    code_facts,
    join_html,
    tag,
)
from litesmith.pages.drawing.page import Page, list_parts
from litesmith.pages.drawing.verdict_box import (
    Tile,
    Verdict,
    next_html,
    run_line,
    tiles_html,
    verdict_html,
)
from litesmith.pages.records.glance import Glance, machine_of
from litesmith.pages.records.record_words import duration_words, split_interval
from litesmith.pages.records.retrain_folder import RetrainFolder, guess_share, read_retraining
from litesmith.pages.sections.about import machine, pairs, show_losses
from litesmith.pages.sections.class_tables import (
    class_table,
    class_titles,
    confusion_table,
    precision_curves,
    share_words,
)
from litesmith.phrases import Quantity, join, phrase
from litesmith.units import number_text, percent_text, score_text, total_text

_MOST_BARS = 15


def retrain_page(folder: Path) -> Page:
    """The page of a folder that `retrain` wrote."""
    record = read_retraining(folder)
    parts = list_parts(
        ("verdict", phrase("Verdict"), _verdict(record)),
        ("classes", phrase("Every class"), class_table(record)),
        ("confusion", phrase("Which classes are confused"), confusion_table(record)),
        ("curves", phrase("Precision and recall"), precision_curves(record)),
        ("mistakes", phrase("The worst mistakes"), _mistakes(record)),
        ("head", phrase("How the head was chosen"), _head(record)),
        ("about", phrase("How it was made, and how to do it again"), _about(record)),
        ("losses", phrase("What could not be read"), show_losses(record.losses)),
    )
    outcome = share_words(record.result.right, interval=False) or phrase("retrained")
    return Page(record.summary.model, outcome, record.summary.version, parts)


_UNJUDGED = Verdict(
    "–", phrase("Not judged"), phrase("There were no items to judge it by: give some with --val.")
)
_LEARNED = Verdict(
    "✓",
    phrase("Learned"),
    phrase("On items that it has not seen, its whole interval is above guessing."),
)
_GUESSES = Verdict(
    "✕",
    phrase("No better than a guess"),
    phrase(
        "On items that it has not seen, it is not clearly better than always answering the "
        "largest class. More items to learn from, or --fine-tune, may help."
    ),
)


_FINDS = Verdict(
    "✓",
    phrase("Learned"),
    phrase("It finds objects in images that it has not seen; the whole interval is above 0."),
)
_FINDS_NOTHING = Verdict(
    "✕",
    phrase("It finds too little"),
    phrase(
        "In images that it has not seen, it may find nothing at all. More images to learn from, "
        "or --fine-tune, may help."
    ),
)


def verdict_of(record: RetrainFolder) -> tuple[str, Verdict]:
    """The verdict, and how it is drawn."""
    right = record.result.right
    if right is None:
        return "none", _UNJUDGED
    if record.has_places:
        return ("proven", _FINDS) if right.low > 0 else ("missed", _FINDS_NOTHING)
    return ("proven", _LEARNED) if right.low > guess_share(record) else ("missed", _GUESSES)


def _verdict(record: RetrainFolder) -> Html:
    kind, shown = verdict_of(record)
    is_good = kind == "proven"
    headline = phrase("Ship {name}", record.summary.model or phrase("a model"))
    return join_html(
        tag("style", asset("retrained.css")),
        verdict_html(
            kind,
            shown,
            headline if is_good else "",
            tag("p", _how(record), class_="asked"),
            tiles_html(_tiles(record)),
            _ship(record) if record.result.out else None,
            next_html(list_next(record)),
        ),
    )


def _tiles(record: RetrainFolder) -> Iterator[Tile]:
    result = record.result
    if result.right is not None:
        right, interval = split_interval(share_words(result.right))
        judged = phrase("of {count} items that it has not seen", total_text(result.n))
        yield Tile(_score_title(record), right, interval, judged)
    if result.right is not None and not record.has_places:
        guess = score_text(guess_share(record), "share")
        yield Tile(phrase("By a guess"), guess, "", phrase("always the largest class"))
    known = [(row.share.value, row.name) for row in record.classes if row.share is not None]
    if len(known) > 1:
        share, name = min(known)
        yield Tile(phrase("Hardest class"), Quantity(name), "", score_text(share, "share"))


def _score_title(record: RetrainFolder) -> str:
    if record.is_segmenter:
        return phrase("Mean IoU")
    return "AP50" if record.is_detector else phrase("Right")


def _ship(record: RetrainFolder) -> Html:
    out = record.result.out
    return code_facts(
        ((phrase("Ship"), out), (phrase("Run it with"), run_line(out, "cpu:1"))),
    )


def list_next(record: RetrainFolder) -> tuple[NextStep, ...]:
    """The next steps with the model: make it small, prove it, keep it from getting worse."""
    out, data = record.result.out, record.summary.data
    if not out:
        return ()
    model, judged = quote(out), quote(data.judged or data.learned)
    steps = [
        NextStep(
            f"litesmith tune {model} --data {judged} --max-drop 1pt",
            phrase("makes it smaller and faster, with the proof"),
        ),
        NextStep(
            f"litesmith gate baseline.json {model} --data {judged} --update",
            phrase("writes the baseline for later models"),
        ),
    ]
    is_plain = record.result.fine_tuned is None and record.result.from_scratch is None
    if is_plain and record.summary.command:
        command = f"{record.summary.command} --fine-tune all"
        steps.append(NextStep(command, phrase("trains all layers, which may gain more")))
    return tuple(steps)


def _how(record: RetrainFolder) -> str:
    parts: list[str] = [
        phrase(
            "{count} classes, learned from {count2} items",
            len(record.classes),
            total_text(record.result.learned),
        )
    ]
    if record.summary.backbone:
        name = record.summary.backbone
        is_scratch = record.result.from_scratch is not None
        parts.append(
            phrase("{name} from scratch", name)
            if is_scratch
            else phrase("a detector on {name}", name)
            if record.is_detector
            else phrase("a segmenter on {name}", name)
            if record.is_segmenter
            else phrase("a new head on {name}", name)
        )
    if record.result.seconds is not None:
        parts.append(phrase("in {duration}", duration_words(record.result.seconds)))
    tuned = record.result.fine_tuned
    if tuned is not None and tuned.is_kept:
        alone = share_words(tuned.head_alone)
        parts.append(phrase("fine-tuned; the head alone has {share}", alone))
    return join(parts, ", ") + "."


def _mistakes(record: RetrainFolder) -> Html | None:
    if not record.mistakes:
        return None
    hint = phrase(
        "The mistakes that the model was most confident about. Wrong labels show up here, too."
    )
    if record.is_detector:
        hint = phrase("True boxes are green, the model's are red. Wrong labels show up here, too.")
    if record.is_segmenter:
        hint = phrase(
            "Pixels that only the mask has are green, pixels that only the model predicts are "
            "red; the share is that of right pixels. Wrong masks show up here, too."
        )
    items = [_mistake(one) for one in record.mistakes]
    return join_html(tag("p", hint, class_="hint"), tag("ul", *items, class_="thumbs"))


def _mistake(one: MistakeRow) -> Html:
    sure = "" if one.confidence is None else phrase(" ({share})", percent_text(one.confidence))
    picture = None
    if one.thumbnail:
        source = f"data:image/jpeg;base64,{one.thumbnail}"
        alt = phrase("{true}, taken for {said}", one.true, one.said)
        picture = Html(tag("img", src=source, alt=alt, loading="lazy").text.removesuffix("</img>"))
    return tag(
        "li",
        picture,
        tag("p", tag("b", one.said), phrase("{sure}; is ", sure), as_is(one.true)),
        _sentence(one.words),
        tag("p", as_is(one.name), class_="hint"),
    )


def _sentence(words: tuple[WordRow, ...]) -> Html | None:
    """A text whose words are highlighted by how much they contributed to the model's answer."""
    if not words:
        return None
    most = max(max(abs(word.weight) for word in words), _LEAST_WEIGHT)
    marks = [
        tag(
            "span",
            as_is(f"{word.word} "),
            class_="for" if word.weight > 0 else "against",
            style=f"--share:{min(1.0, abs(word.weight) / most):.2f}",
        )
        for word in words
    ]
    return tag("p", *marks, class_="deciding")


# Words that change a probability by less than this are not highlighted.
_LEAST_WEIGHT = 0.01


def _head(record: RetrainFolder) -> Html | None:
    if not record.summary.head:
        return _tuned(record)
    hint = phrase(
        "Strengths of the penalty on the head's weights, each judged by cross-validation "
        "on the items to learn from. The one with the lowest loss is taken."
    )
    rows = tuple(
        BarRow(number_text(round(one.strength, 6)), (_strength_bar(one, record.result.strength),))
        for one in record.summary.head
    )
    chart = BarChart(phrase("Loss by penalty"), phrase("loss"), rows)
    return join_html(tag("p", hint, class_="hint"), bar_chart(chart), _tuned(record))


def _strength_bar(one: HeadTried, taken: float | None) -> Bar:
    words = f"{one.loss:.4f}"
    is_taken = one.strength == taken
    right = phrase("{share} right", percent_text(one.accuracy))
    label = phrase("{loss} (taken)", words) if is_taken else words
    return Bar(one.loss, label, "own" if is_taken else "", facts=(right,))


def _tuned(record: RetrainFolder) -> Html | None:
    tuned = record.result.fine_tuned
    return tag("p", tuned.told) if tuned and tuned.told else None


def _about(record: RetrainFolder) -> Html:
    summary = record.summary
    command = tag("pre", tag("code", summary.command)) if summary.command else None
    notes = bullets(summary.result.notes)
    return join_html(notes, command, pairs([*_facts(summary), *machine(summary.environment)]))


def _facts(summary: RetrainSummary) -> tuple[tuple[str, str], ...]:
    result, embedding = summary.result, summary.result.embedding
    part = phrase("a part of it that was held out") if summary.data.is_part else ""
    return (
        (phrase("learned from"), summary.data.learned),
        (phrase("judged by"), part or summary.data.judged),
        (phrase("preparation"), result.preparation),
        (phrase("embedding"), embedding.how),
        (phrase("its tensor"), embedding.tensor),
        (phrase("numbers in it"), str(embedding.size) if embedding.size else ""),
        (phrase("SHA-256 of the model"), result.digest),
        (phrase("SHA-256 of the backbone"), summary.backbone_digest),
    )


def retrain_markdown(folder: Path, stem: str) -> Markdown:
    """The report for a pull request, without pictures."""
    record = read_retraining(folder)
    right = escape_markdown(share_words(record.result.right))
    head = f"# {escape_markdown(record.summary.model or phrase('a model'))}: {right}"
    titles = class_titles(record)
    rows = [
        [
            escape_markdown(row.name),
            str(row.count),
            escape_markdown(share_words(row.share)),
            *(() if record.has_places else (escape_markdown(row.taken_for),)),
            str(row.learned),
        ]
        for row in record.classes
        if row.count or row.learned or not record.has_places
    ]
    notes = "\n".join(f"- {escape_markdown(note)}" for note in record.result.notes)
    shown = table(titles, rows) if rows else ""
    repeat = repeat_line(record.summary.command)
    return Markdown(paragraphs(head, escape_markdown(_how(record)), shown, notes, repeat))


def retrain_glance(folder: Path) -> Glance:
    """A retraining beside other runs."""
    record = read_retraining(folder)
    kind, shown = verdict_of(record)
    right = record.result.right
    return Glance(
        command="retrain",
        model=record.summary.model,
        kind=kind,
        verdict=shown.title,
        headline=_how(record),
        score=share_words(right),
        score_key=right.value if right else None,
        version=record.summary.version,
        machine=machine_of(record.summary.environment),
    )
