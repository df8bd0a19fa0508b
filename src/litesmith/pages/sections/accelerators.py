"""Which accelerators take the models: entirely, or how many ops in how many parts."""

from collections.abc import Sequence

from litesmith.evidence.records import Taker
from litesmith.evidence.tune_record import FLOAT
from litesmith.pages.drawing.markup import Html, join_html, table_html, tag
from litesmith.pages.records.record_words import names_words, time_words
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.phrases import join, phrase

HEAD = (phrase("Accelerator"), phrase("The model as it came"), phrase("The one to ship"))

_HINT = phrase(
    "Predicted: by rules from the makers' documents. Measured: by the accelerator's own "
    "compiler, which really took the ops. A time that is estimated is that compiler's; "
    "nothing ran there."
)


def accelerators(record: TuneFolder) -> Html | None:
    """A row for each accelerator, or for several with the same answers."""
    found = rows(record)
    if not found:
        return None
    titles = _head(record)
    body = [
        tag(
            "tr",
            tag("th", names, scope="row"),
            *(
                tag("td", words, data_label=title)
                for title, words in zip(titles[1:], cells, strict=True)
            ),
        )
        for names, *cells in found
    ]
    return join_html(
        tag("p", _HINT, class_="hint"),
        table_html(titles, body, "targets cards"),
    )


def rows(record: TuneFolder) -> list[tuple[str, str, str]]:
    """Accelerators with the placement of both models in words."""
    before, after = takers_of(record, FLOAT), takers_of(record, record.shown)
    kept: dict[tuple[str, str], list[str]] = {}
    for target in dict.fromkeys((*before, *after)):
        cells = (_words(before.get(target)), _words(after.get(target)))
        kept.setdefault(cells, []).append(target)
    return [(names_words(names), *cells) for cells, names in kept.items()]


def whole_words(takers: Sequence[Taker]) -> str:
    """`runs entirely on: gpu, hexagon`; "" where it was not checked."""
    if not takers:
        return ""
    names = names_words([taker.placed.target for taker in takers if taker.placed.is_whole])
    return phrase("runs entirely on: {names}", names or phrase("no accelerator"))


def takers_of(record: TuneFolder, name: str) -> dict[str, Taker]:
    entry = record.entry(name)
    return {taker.placed.target: taker for taker in entry.takers} if entry else {}


def _head(record: TuneFolder) -> tuple[str, ...]:
    is_best = record.summary.best is not None
    return HEAD if is_best else (*HEAD[:2], phrase("The nearest"))


def _words(taker: Taker | None) -> str:
    if taker is None:
        return ""
    placed = taker.placed
    if placed.is_whole:
        placement = phrase("whole")
    elif not placed.taken:
        placement = (
            phrase("nothing of it: {why}", phrase(placed.why))
            if placed.why
            else phrase("nothing of it")
        )
    else:
        count = placed.partitions
        parts = phrase("1 part") if count == 1 else phrase("{parts} parts", count)
        why = phrase(": {why}", phrase(placed.why)) if placed.why else ""
        placement = phrase(
            "{taken} of {ops} ops in {parts}{why}", placed.taken, placed.ops, parts, why
        )
    how = phrase(" ({how})", phrase(placed.how)) if placed.how else ""
    time = (
        phrase("; {time}, {latency_how}", time_words(taker.latency_us), phrase(taker.latency_how))
        if taker.latency_us
        else ""
    )
    return join((placement, how, time), "")
