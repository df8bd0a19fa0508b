"""Every class of a retrained model: its share right, what it is taken for, its curve."""

from collections.abc import Sequence

from litesmith.evidence.retrain_record import (
    CurveRow,
    ShareRight,
)
from litesmith.lang.language import say
from litesmith.pages.drawing.bars import MORE, Bar, BarChart, BarRow, bar_chart
from litesmith.pages.drawing.markup import (
    Html,
    as_is,
    join_html,
    table_html,
    tag,
)
from litesmith.pages.records.retrain_folder import ClassRow, RetrainFolder
from litesmith.phrases import phrase
from litesmith.units import percent_text, score_text

# Classes that the chart has; the table has all.
_MOST_BARS = 15


def share_words(share: ShareRight | None, *, interval: bool = True) -> str:
    """A share with its interval; "" where there is none."""
    if share is None:
        return ""
    ends = (share.low, share.high) if interval else (None, None)
    return score_text(share.value, "share", *ends)


_JUDGED_BY, _LEARNED_FROM = phrase("Judged by"), phrase("Learned from")
_RIGHT, _TAKEN_FOR = phrase("Right, with 95 % interval"), phrase("Taken for")
_AP50 = phrase("AP50, with 95 % interval")
_TITLES = (phrase("Class"), _JUDGED_BY, _RIGHT, _TAKEN_FOR, _LEARNED_FROM)
_IOU = phrase("IoU, with 95 % interval")
_DETECTOR_TITLES = (phrase("Class"), _JUDGED_BY, _AP50, _LEARNED_FROM)
_SEGMENTER_TITLES = (phrase("Class"), _JUDGED_BY, _IOU, _LEARNED_FROM)


def class_table(record: RetrainFolder) -> Html | None:
    """The classes, the hardest first, as a chart and a table."""
    if not record.classes:
        return None
    order = sorted(
        record.classes, key=lambda row: (row.share is None, row.share.value if row.share else 0)
    )
    if record.has_places:
        titles = class_titles(record)
        rows = (_class_row(row, titles) for row in order if row.count or row.learned)
        return tag("div", table_html(titles, rows, "cards", scope="col"), class_="scroll")
    chart = _class_chart(order)
    is_told = chart is not None and len(order) <= _MOST_BARS  # every share, with its interval
    titles = tuple(title for title in _TITLES if not (is_told and title == _RIGHT))
    rows = (_class_row(row, titles) for row in order)
    shown = table_html(titles, rows, "cards", scope="col")
    return join_html(chart, tag("div", shown, class_="scroll"))


def class_titles(record: RetrainFolder) -> tuple[str, ...]:
    """The heads of the columns of the table."""
    if record.is_segmenter:
        return _SEGMENTER_TITLES
    return _DETECTOR_TITLES if record.is_detector else _TITLES


def _class_chart(order: list[ClassRow]) -> Html | None:
    """The classes with the worst shares, with their intervals."""
    rows = tuple(
        BarRow(
            row.name,
            (
                Bar(
                    row.share.value,
                    share_words(row.share),
                    "after",
                    row.share.low,
                    row.share.high,
                    (phrase("judged by {count} items", row.count),),
                ),
            ),
        )
        for row in order[:_MOST_BARS]
        if row.share is not None
    )
    more = len(order) > _MOST_BARS
    title = phrase("The {count} hardest classes", _MOST_BARS) if more else phrase("Share right")
    chart = BarChart(title, phrase("right, %"), rows, MORE, 0.01, most=1.0, is_wide=True)
    return bar_chart(chart) if len(rows) > 1 else None


def _class_row(row: ClassRow, titles: Sequence[str]) -> Html:
    share = share_words(row.share) or phrase("none to judge by")
    cells: dict[str, str] = {
        _JUDGED_BY: str(row.count),
        _RIGHT: share,
        _AP50: share,
        _IOU: share,
        _TAKEN_FOR: row.taken_for,
        _LEARNED_FROM: str(row.learned),
    }
    return tag(
        "tr",
        tag("th", tag("b", row.name), scope="row"),
        *(
            tag("td", cell, class_="number", data_label=title)
            for title, cell in ((title, cells[title]) for title in titles[1:])
        ),
    )


# The drawing of a curve, in its own units.
_CURVE = 120


def precision_curves(record: RetrainFolder) -> Html | None:
    """The precision of each class at every recall."""
    if not record.curves:
        return None
    hint = phrase(
        "Across: the share of the objects that are found. Up: the share of the boxes that are "
        "right."
    )
    drawn = [_curve(one) for one in record.curves]
    return join_html(tag("p", hint, class_="hint"), tag("ul", *drawn, class_="thumbs curves"))


def _curve(one: CurveRow) -> Html:
    within = [(min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0)) for x, y in one.points]
    points = " ".join(f"{_CURVE * x:.1f},{_CURVE * (1 - y):.1f}" for x, y in within)
    line = tag("polyline", points=points)
    label = phrase("precision and recall of {name}", as_is(one.name))
    picture = tag(
        "svg", line, viewBox=f"-2 -2 {_CURVE + 4} {_CURVE + 4}", role="img", aria_label=label
    )
    return tag("li", picture, tag("p", tag("b", as_is(one.name))))


def confusion_table(record: RetrainFolder) -> Html | None:
    """The confusion matrix: rows are true classes, columns the model's answers."""
    if not record.matrix:
        return None
    names = [row.name for row in record.classes]
    heads = [tag("th", tag("span", as_is(name)), scope="col", title=as_is(name)) for name in names]
    body = [
        tag(
            "tr",
            tag("th", as_is(names[place]), scope="row", title=as_is(names[place])),
            *(_cell(names, place, other, row) for other in range(len(row))),
        )
        for place, row in enumerate(record.matrix)
    ]
    head = tag("tr", tag("td", "is ↓, said →"), *heads)
    shown = tag("table", tag("thead", head), tag("tbody", *body), class_="confusion tips")
    hint = phrase("Rows are the true classes, columns what the model says.")
    title = phrase("Which classes are confused")
    return join_html(
        tag("p", hint, class_="hint"),
        tag("div", shown, class_="scroll", tabindex="0", role="region", aria_label=title),
    )


def _cell(names: list[str], place: int, other: int, row: tuple[int, ...]) -> Html:
    count, total = row[other], sum(row)
    share = count / total if total else 0.0
    kind = "own" if place == other else "none" if not count else None
    tip = phrase("{count} of {total}, {share}", count, total, percent_text(share))
    if place == other:
        head = phrase("{name}, right", names[place])
    else:
        head = phrase("{name} taken for {name2}", names[place], names[other])
    return tag(
        "td",
        str(count),
        class_=kind,
        style=f"--share:{share:.3f}",
        tabindex=-1 if place or other else 0,
        data_trial=as_is(say(head)),
        data_tip=tip,
    )
