"""Results as HTML for notebooks: a sentence and small tables, in the colours of the page around
them. A result has at most a few KB and asks for nothing from the network."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, cast

from litesmith.accuracy.evaluate import Evaluation
from litesmith.anatomy.findings import findings, scheme
from litesmith.anatomy.footprint import footprint
from litesmith.diagnosis.verdict import Verdict
from litesmith.ir.types import Model, Tensor
from litesmith.pages.drawing.markup import Child, Html, joined, tag
from litesmith.passes.core.step import Change
from litesmith.phrases import phrase
from litesmith.profiling.op_times import OpTime, Profile
from litesmith.regression.comparison import Compared
from litesmith.search.choosing.choose_models import Chosen
from litesmith.search.trial.trial_record import Record
from litesmith.search.tuning.tune_search import Found
from litesmith.timing.latency import Bench, Comparison, Result
from litesmith.training.retrain_request import Retrained
from litesmith.units import (
    bytes_text,
    count_text,
    gain_text,
    percent_text,
    plain,
    ratio_text,
    score_text,
    time_interval_text,
    time_text,
    total_text,
)

# Colours are those around it, and a blue that stands out on white and on black.
_STYLE = """\
.litesmith{font-variant-numeric:tabular-nums;max-width:60em}\
.litesmith p{margin:.3em 0}\
.litesmith table{border-collapse:collapse;margin:.3em 0}\
.litesmith tbody tr{background:none!important;border-top:1px solid #8885}\
.litesmith th,.litesmith td{text-align:left;padding:.15em .7em .15em 0;vertical-align:top}\
.litesmith .n{text-align:right;white-space:nowrap}\
.litesmith i{display:block;height:.55em;margin-top:.35em;min-width:1px;background:#4a86c8}\
.litesmith .bar{width:8em}"""

_MOST_ROWS, _MOST_NOTES, _MOST_LETTERS = 12, 6, 240


@dataclass(frozen=True)
class Table:
    """Rows under a head; `right` are the columns of numbers.

    shares  a bar for each row, as a share of the longest; none where it is empty
    """

    head: tuple[str, ...]
    rows: Sequence[tuple[Child, ...]]
    right: tuple[int, ...] = ()
    shares: Sequence[float] = ()


@dataclass(frozen=True)
class Shown:
    """A result: what it comes to, in a sentence, and the whole of it."""

    sentence: str
    html: Html


def shown(sentence: str, *parts: Html | None, notes: Iterable[str] = ()) -> Shown:
    """The sentence, tables, and what is to be said of them."""
    told = [tag("p", plain(note)) for note in list(notes)[:_MOST_NOTES]]
    style = tag("style", Html(_STYLE))
    title = tag("p", tag("strong", plain(sentence)))
    whole = tag("div", style, title, *parts, *told, class_="litesmith")
    return Shown(plain(sentence), whole)


def drawn(table: Table) -> Html:
    """The first rows of a table, and how many there are beyond."""
    classes = ["n" if column in table.right else None for column in range(len(table.head))]
    words = [tag("th", word, class_=kind) for word, kind in zip(table.head, classes, strict=True)]
    lines: list[Html] = []
    for place, row in enumerate(table.rows[:_MOST_ROWS]):
        cells = [tag("td", cell, class_=kind) for cell, kind in zip(row, classes, strict=True)]
        lines.append(tag("tr", *cells, _bar(table.shares, place)))
    more = len(table.rows) - len(lines)
    return joined(
        tag("table", tag("thead", tag("tr", *words)), tag("tbody", *lines)),
        tag("p", phrase("and {more} more", more)) if more > 0 else None,
    )


def _bar(shares: Sequence[float], place: int) -> Html | None:
    if not shares:
        return None
    width = 100 * shares[place] / max(max(shares), 1e-12)
    return tag("td", tag("i", style=f"width:{width:.0f}%"), class_="bar")


def _name(text: str) -> Html:
    """A name, which is the same in every language, and not longer than a table can hold."""
    short = plain(text.split(";")[0])
    return tag("code", short if len(short) <= 40 else f"…{short[-39:]}")


# One function a type.


def _model(model: Model) -> Shown:
    cost = footprint(model)
    kinds = sorted(cost.ops, key=lambda kind: -cost.macs_by_kind.get(kind, 0))
    rows = [
        (
            _name(kind),
            str(cost.ops[kind]),
            count_text(cost.macs_by_kind[kind]) if cost.macs_by_kind.get(kind) else "",
            bytes_text(cost.bytes_by_kind[kind]) if cost.bytes_by_kind.get(kind) else "",
        )
        for kind in kinds
    ]
    shares = [float(cost.macs_by_kind.get(kind, 0)) for kind in kinds]
    count = sum(cost.ops.values())
    sentence = (
        f"{count} op{'s' if count != 1 else ''}, {count_text(cost.parameters)} parameters, "
        f"{count_text(cost.macs)} MACs; {scheme(model)}"
    )
    ends = [("input", t) for t in model.main.inputs] + [("output", t) for t in model.main.outputs]
    return shown(
        sentence,
        drawn(Table(("", "name", "type", "shape"), [_end(kind, t) for kind, t in ends])),
        drawn(Table(("op", "count", "MACs", "weights"), rows, (1, 2, 3), shares)),
        notes=[f"{one.what}: {one.why}" for one in findings(model)],
    )


def _end(kind: str, tensor: Tensor) -> tuple[Child, ...]:
    return kind, _name(tensor.name), tag("code", tensor.dtype), tag("code", str(tensor.shape))


def _change(change: Change) -> Shown:
    left = [phrase("left alone: {where}: {why}", skip.where, skip.why) for skip in change.skipped]
    touched = [(plain(line[:_MOST_LETTERS]),) for line in change.touched]
    return shown(
        phrase("{count} changes; {count2} left alone", len(touched), len(left)),
        drawn(Table((phrase("what changed"),), touched)) if touched else None,
        _model(change.model).html,
        notes=left,
    )


def _profile(profile: Profile) -> Shown:
    ops = profile.top(_MOST_ROWS)
    more = len(profile.ops) - len(ops)
    return shown(
        phrase(
            "{time} a run on {target}; profiling adds {share}",
            time_text(profile.run_us),
            profile.target,
            percent_text(profile.overhead),
        ),
        drawn(
            Table(
                ("#", "op", "name", "time", "share", "kernel", phrase("of best")),
                [_op(op) for op in ops],
                (0, 3, 4, 6),
                [op.share for op in ops],
            )
        ),
        notes=[*([f"and {more} more ops, in .to_rows()"] if more else []), profile.note],
    )


def _op(op: OpTime) -> tuple[Child, ...]:
    return (
        str(op.index),
        _name(op.kind),
        _name(op.name),
        "" if op.us is None else time_text(op.us),
        percent_text(op.share),
        op.kernel,
        "" if op.of_best is None else percent_text(op.of_best),
    )


def _bench(bench: Bench) -> Shown:
    return shown(
        "; ".join(_compared(one) for one in bench.comparisons) or phrase("one model, timed"),
        drawn(
            Table(
                ("model", "on", "median", "p90", "memory", "runs"),
                [_timed(one) for one in bench.results],
                (2, 3, 4, 5),
                [one.percentile_us(50) for one in bench.results],
            )
        ),
        notes=bench.warnings,
    )


def _compared(one: Comparison) -> str:
    ratio = ratio_text(one.ratio.value, *one.ratio.interval)
    return phrase(
        "{name} on {target}: {verdict}, {ratio} the time",
        Path(one.b.name).name,
        one.b.target,
        one.ratio.verdict,
        ratio,
    )


def _timed(result: Result) -> tuple[Child, ...]:
    peak = result.peak_bytes
    return (
        _name(Path(result.model).name),
        _name(result.target),
        time_interval_text(result.percentile_us(50), *result.interval_us),
        time_text(result.percentile_us(90)),
        "" if peak is None else bytes_text(peak),
        total_text(result.runs),
    )


def _evaluation(found: Evaluation) -> Shown:
    rows: list[tuple[Child, ...]] = [
        (found.title, score_text(found.value, found.unit, found.low, found.high))
    ]
    against = found.against
    if against is not None and against.value is not None:
        rows.append((phrase("of the reference"), score_text(against.value, found.unit)))
    if against is not None and against.difference is not None:
        ends = against.difference_low or 0.0, against.difference_high or 0.0
        rows.append(("difference", gain_text(against.difference, found.unit, *ends)))
    if against is not None and against.agreement is not None:
        rows.append(("agreement", percent_text(against.agreement)))
    if against is not None and against.snr_db is not None:
        rows.append(("output SNR", score_text(against.snr_db, "dB")))
    verdict = (
        phrase("; {verdict}", against.verdict) if against is not None and against.verdict else ""
    )
    sentence = f"{found.title} {score_text(found.value, found.unit)}{verdict}"
    told = phrase("{count} samples on {target}", total_text(found.n), found.target)
    return shown(sentence, drawn(Table(("", ""), rows, (1,))), notes=[told, *found.notes])


def _both(found: Compared) -> Shown:
    rows: list[tuple[Child, ...]] = [
        (
            _name(name),
            bytes_text(size.bytes),
            bytes_text(size.gzip_bytes),
            time_interval_text(result.percentile_us(50), *result.interval_us),
        )
        for name, size, result in zip(found.names, found.sizes, found.results, strict=True)
    ]
    times = [one.percentile_us(50) for one in found.results]
    table = Table(("model", "file", "gzip", "median"), rows, (1, 2, 3), times)
    return shown(found.verdict, drawn(table), notes=found.bench.warnings)


def _found(found: Found) -> Shown:
    ordered = [one for one in found.records if one.kind == "candidate"] or list(found.records)
    best = found.facts.get("best")
    name = str(cast("dict[str, object]", best)["name"]) if isinstance(best, dict) else ""
    table = Table(
        ("", "candidate", "status", "accuracy", phrase("time of float's"), "file"),
        [("★" if one.name == name else "", *_tried(one)) for one in ordered],
        (3, 4, 5),
    )
    report = f"litesmith report {quote(plain(str(found.folder)))}"
    return shown(found.sentence, drawn(table), tag("p", tag("code", report)), notes=found.warnings)


def _tried(one: Record) -> tuple[Child, ...]:
    known = one.accuracy
    size = cast("dict[str, object]", one.trial.details).get("bytes")
    return (
        _name(one.name),
        one.status,
        score_text(one.evaluation.value, one.evaluation.unit) if known else "",
        "" if one.ratio is None else ratio_text(one.ratio),
        bytes_text(size) if isinstance(size, int) else "",
    )


def _chosen(found: Chosen) -> Shown:
    pick = found.facts.get("pick")
    rows = [("★" if one["model"] == pick else "", *_candidate(one)) for one in found.candidates]
    table = Table(("", "model", "accuracy", "median", "file"), rows, (2, 3, 4))
    return shown(found.reason, drawn(table), notes=found.warnings)


def _candidate(one: dict[str, Any]) -> tuple[Child, ...]:
    ends = one["low"], one["high"]
    return (
        _name(str(one["model"])),
        "" if one["value"] is None else score_text(one["value"], one["unit"], *ends),
        "" if one["p50_us"] is None else time_text(one["p50_us"]),
        "" if one["bytes"] is None else bytes_text(one["bytes"]),
    )


def _retrained(found: Retrained) -> Shown:
    own = [(name, found.found.of_class(place)) for place, name in enumerate(found.classes)]
    rows: list[tuple[Child, ...]] = [
        (_name(name), "" if one is None else score_text(one.value, "share", one.low, one.high))
        for name, one in own
    ]
    shares = [0.0 if one is None else one.value for _, one in own]
    sentence = phrase(
        "{score} right of {count} that were held out; {name}",
        score_text(found.value, "share", found.low, found.high),
        total_text(found.n),
        found.out.name,
    )
    return shown(sentence, drawn(Table(("class", "right"), rows, (1,), shares)), notes=found.notes)


def _verdict(found: Verdict) -> Shown:
    rows: list[tuple[Child, ...]] = [
        (plain(one.what), plain(one.where), one.costs, tag("code", plain(one.command)))
        for one in found.findings
    ]
    table = Table(("what", "where", "costs", phrase("what to do")), rows)
    return shown(found.sentence, drawn(table) if rows else None, notes=found.notes)


FORMATS: dict[type, Callable[[Any], Shown]] = {
    Bench: _bench,
    Change: _change,
    Chosen: _chosen,
    Compared: _both,
    Evaluation: _evaluation,
    Found: _found,
    Model: _model,
    Profile: _profile,
    Retrained: _retrained,
    Verdict: _verdict,
}


def html(result: object) -> str:
    """The markup of a result of one of these types."""
    return FORMATS[type(result)](result).html.text


def text(result: object) -> str:
    """One line of it, where there is no place for markup."""
    return f"<{type(result).__name__}: {FORMATS[type(result)](result).sentence}>"
