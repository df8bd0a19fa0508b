"""The items that the result and the float model answer most differently, side by side."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from litesmith.evidence.measurement import AnswerRow, DisagreementRow, MarkRow
from litesmith.evidence.tune_record import FLOAT
from litesmith.pages.drawing.markup import Html, as_is, join_html, tag
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.pages.sections.inside_models import inside_of
from litesmith.phrases import phrase
from litesmith.units import score_text

# The side of a picture in the units of its drawing.
_SIDE = 160

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


def disagreements(record: TuneFolder) -> Html | None:
    """The answers of both models to the held-out items on which their scores differ most."""
    found = inside_of(record, record.shown).disagreements
    if not found:
        return None
    hint = phrase(
        "Among the held-out items compared, those whose scores differ most: the float model on "
        "the left, {best} on the right.",
        record.shown or "best",
    )
    unit, names = _unit(record), (FLOAT, record.shown or "best")
    items = [show_item(one, names, unit) for one in found]
    return join_html(tag("p", hint, class_="hint"), tag("ul", *items, class_="pairs"))


def _unit(record: TuneFolder) -> str:
    model = record.summary.chosen
    return model.accuracy.unit if model is not None and model.accuracy is not None else ""


def show_item(
    one: DisagreementRow, names: tuple[str, str], unit: str = "", more: Html | None = None
) -> Html:
    """An item with the answers of two models side by side; `more` stands below its name."""
    pair = ((names[0], one.before, one.after), (names[1], one.after, one.before))
    return tag(
        "li",
        *(_answer(name, own, other, one.thumbnail, unit) for name, own, other in pair),
        tag("p", as_is(one.name), class_="hint"),
        more,
    )


def _answer(name: str, own: AnswerRow, other: AnswerRow, picture: str, unit: str) -> Html:
    score = "" if own.score is None else score_text(own.score, unit)
    caption = phrase("{name}: {score}", name, score) if score else name
    drawn = _drawing(picture, own, caption) if _is_coded(picture) and picture else None
    words = tag("p", *_words(own.text, other.text)) if own.text or other.text else None
    return tag("figure", tag("figcaption", caption), drawn, words)


def _is_coded(content: str) -> bool:
    return _BASE64.fullmatch(content) is not None


def _drawing(picture: str, own: AnswerRow, caption: str) -> Html:
    mask = None
    if own.mask and _is_coded(own.mask):
        mask = _image(f"data:image/png;base64,{own.mask}")
    return tag(
        "svg",
        tag("title", caption),
        _image(f"data:image/jpeg;base64,{picture}"),
        mask,
        *(shape for mark in own.marks for shape in _mark(mark)),
        viewBox=f"0 0 {_SIDE} {_SIDE}",
        role="img",
    )


def _image(source: str) -> Html:
    return tag("image", href=source, width=_SIDE, height=_SIDE)


def _mark(mark: MarkRow) -> Iterator[Html]:
    if len(mark.box) != 4:
        return
    left, top, right, bottom = (round(side * _SIDE, 1) for side in mark.box)
    if mark.is_point:
        yield tag("circle", cx=left, cy=top, r=2.5)
        return
    yield tag("rect", x=left, y=top, width=max(right - left, 0.0), height=max(bottom - top, 0.0))
    yield tag("text", as_is(mark.words), x=left + 2, y=max(top + 9, 9.0))


def _words(own: str, other: str) -> Iterator[Html | None]:
    """The words of an answer; words that the other answer lacks are marked."""
    mine, theirs = own.split(), other.split()
    for kind, start, end, _, _ in SequenceMatcher(None, mine, theirs).get_opcodes():
        words = " ".join(mine[start:end])
        if words:
            yield as_is(f"{words} ") if kind == "equal" else tag("mark", as_is(words))
            yield None if kind == "equal" else as_is(" ")
