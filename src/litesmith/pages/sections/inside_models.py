"""Inside the models: the time of each op before and after, and the error of each layer."""

from collections import Counter
from collections.abc import Mapping, Sequence

from litesmith.evidence.tune_record import FLOAT, LayerRow, OpRow, TunedInside
from litesmith.pages.drawing.bars import Bar, BarChart, BarRow, bar_chart, time_chart
from litesmith.pages.drawing.markup import Html, as_is, join_html, legend_html, table_html, tag
from litesmith.pages.drawing.plot import ticks
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.phrases import join, phrase
from litesmith.units import number_text, percent_text, score_text, time_text

_MOST_OPS, _MOST_KINDS, _MOST_LAYERS = 10, 10, 6
_MOST_LETTERS = 36

# Columns end where the error is a thousandth, which is invisible.
_SAME_DECIBELS = 60.0

Pair = tuple[str, float | None, float | None]  # a name, its time before and after


def op_times(record: TuneFolder) -> Html | None:
    """The time of the float model's ops beside the best model's."""
    before, after = inside_of(record, FLOAT), inside_of(record, record.shown)
    if not before.ops and not after.ops:
        return None
    pairs = _pair_times(_by_kind(before.ops), _by_kind(after.ops))
    ops = _pair_times(_by_name(before.ops), _by_name(after.ops))
    names = (FLOAT, record.shown or "best")
    totals = [sum(op.us or 0.0 for op in inside.ops) for inside in (before, after)]
    shown = [
        phrase("{name} {time}", name, time_text(total))
        for name, total in zip(names, totals, strict=True)
        if total
    ]
    return join_html(
        tag(
            "p",
            phrase("Time inside ops, in a profiled run: {shown}.", join(shown, "; ")),
            class_="hint",
        ),
        legend_html(zip(("before", "after"), names, strict=True)) if all(totals) else None,
        tag(
            "div",
            bar_chart(_time_chart(phrase("By kind of op"), pairs[:_MOST_KINDS], totals)),
            bar_chart(_time_chart(phrase("The slowest ops"), ops[:_MOST_OPS], totals)),
            class_="figures",
        ),
    )


def layer_errors(record: TuneFolder) -> Html | None:
    """The distance of each layer of the best model from the float model's."""
    layers = inside_of(record, record.shown).layers
    if not layers:
        return None
    count = max(1, min(_MOST_LAYERS, len(layers) // 3))
    worst = sorted(layers, key=lambda layer: layer.snr_db)[:count]
    top = min(max(1.0, *(layer.snr_db for layer in layers)), _SAME_DECIBELS)
    hint = phrase(
        "How near each layer of {best} stays to the float model: 20 dB is an error of a tenth, "
        "40 dB of a hundredth. Columns under a dot are the worst.",
        record.shown,
    )
    rows = [
        tag(
            "tr",
            tag("th", _short_name(layer.kind, layer.name), scope="row"),
            tag("td", score_text(layer.snr_db, "dB"), class_="number"),
        )
        for layer in worst
    ]
    return join_html(
        tag("p", hint, class_="hint"),
        _columns(layers, worst, top),
        tag("h3", "The layers with the most error"),
        table_html((phrase("Layer"), phrase("Signal to noise")), rows, "plain", scope="col"),
    )


def inside_of(record: TuneFolder, name: str) -> TunedInside:
    entry = record.entry(name)
    digest = entry.digest if entry else record.summary.model_digest if name == FLOAT else ""
    return record.inside.get(digest) or TunedInside(1, name)


def _by_kind(ops: Sequence[OpRow]) -> Mapping[str, float]:
    totals: dict[str, float] = {}
    for op in ops:
        kind = op.kind or "?"
        totals[kind] = totals.get(kind, 0.0) + (op.us or 0.0)
    return totals


def _by_name(ops: Sequence[OpRow]) -> Mapping[str, float]:
    """Times by name; an op without a name of its own is identified by its number."""
    seen: Counter[str] = Counter()
    times: dict[str, float] = {}
    for op in ops:
        name = _short_name(op.kind, op.name)
        seen[name] += 1
        times[name if seen[name] == 1 else f"{name} #{seen[name]}"] = op.us or 0.0
    return times


def _short_name(kind: str, name: str) -> str:
    """The kind of an op and the end of its name, which says more than the start."""
    *parts, short = name.split(";")[0].split("/")
    while parts and len(parts[-1]) + len(short) < _MOST_LETTERS:
        short = f"{parts.pop()}/{short}"
    cut = "…/" if parts else ""
    kept = short if len(short) <= _MOST_LETTERS else f"…{short[-_MOST_LETTERS:]}"
    return f"{kind} {cut}{kept}".strip()


def _pair_times(before: Mapping[str, float], after: Mapping[str, float]) -> list[Pair]:
    """Both times of every name, the longest first."""
    names = {**before, **after}
    pairs = [(name, before.get(name), after.get(name)) for name in names]
    return sorted(pairs, key=lambda pair: max(pair[1] or 0, pair[2] or 0), reverse=True)


def _time_chart(title: str, pairs: Sequence[Pair], totals: Sequence[float]) -> BarChart:
    rows = tuple(
        BarRow(
            name,
            tuple(
                Bar(us, time_text(us), kind, facts=(_share_words(us / total),))
                for kind, us, total in (("", before, totals[0]), ("after", after, totals[1]))
                if us and total
            ),
        )
        for name, before, after in pairs
    )
    return time_chart(title, rows)


def _share_words(share: float) -> str:
    return phrase("{share} of the time inside ops", percent_text(share))


def _columns(layers: Sequence[LayerRow], worst: Sequence[LayerRow], top: float) -> Html:
    """A column for each layer over an axis of decibels."""
    marks = ticks(0.0, top, 4)
    numbers = [
        tag("span", number_text(mark), style=f"bottom:{round(100 * mark / top, 1)}%")
        for mark in marks
    ]
    columns = [
        _column(layer, top, layer in worst, is_first=not place)
        for place, layer in enumerate(layers)
    ]
    title = tag("span", "↑ ", phrase("better"), class_="better")
    return tag(
        "figure",
        tag("p", title, tag("span", phrase("signal to noise, dB")), class_="axis-title"),
        tag(
            "div",
            tag("div", *numbers, class_="heights", aria_hidden="true"),
            tag("div", *columns, class_="columns tips"),
            class_="upright",
            style=f"--step:{round(100 * (marks[1] - marks[0]) / top, 3) if marks[1:] else 100}%",
        ),
        tag(
            "p", tag("span", phrase("layers in the order in which they run →")), class_="axis-title"
        ),
        class_="chart",
    )


def _column(layer: LayerRow, top: float, is_worst: bool, *, is_first: bool) -> Html:
    height = min(max(100 * layer.snr_db / top, 2.0), 100.0)
    where, error = _short_name(layer.kind, layer.name), score_text(layer.snr_db, "dB")
    words = phrase("{index}: {where}, {error}", layer.index, where, error)
    return tag(
        "i",
        style=f"height:{round(height, 1)}%",
        class_="worst" if is_worst else None,
        tabindex=0 if is_first else -1,
        role="img",
        aria_label=words,
        data_trial=as_is(where),
        data_tip=error,
    )
