"""The command compare: is B as good as A, and faster?"""

import json
from math import isfinite
from pathlib import Path
from typing import Annotated

import click

from litesmith.accuracy.evaluate import Evaluation, finite
from litesmith.accuracy.scoring import MOST_DB
from litesmith.cli.commands.bench import Seconds
from litesmith.cli.commands.profile import On, checked_target
from litesmith.cli.options.data_options import (
    DEFAULT_CROP,
    DEFAULT_RESIZE,
    Crop,
    DataSource,
    ImageOptions,
    LabelOffset,
    Mean,
    NormName,
    Resize,
    SampleCount,
    Std,
    open_evaluation,
    say,
)
from litesmith.cli.options.declare import argument
from litesmith.cli.options.ops_option import Ops
from litesmith.cli.options.shared_options import Json, MetricName
from litesmith.cli.text import printing as show
from litesmith.cli.text.progress_text import Terminal
from litesmith.data.lint import lint_evaluation
from litesmith.data.samples import Data
from litesmith.phrases import phrase
from litesmith.regression.comparison import Compared, Drift, Manner, compared, misfit
from litesmith.tflite.file import load
from litesmith.timing.latency import Rule
from litesmith.units import (
    bytes_text,
    gain_text,
    plain,
    ratio_text,
    score_text,
    time_text,
    total_text,
)

Before = Annotated[Path, argument(metavar="A", help="The .tflite file before.", show_default=False)]
After = Annotated[
    Path,
    argument(metavar="B", help="The .tflite file to take its place.", show_default=False),
]

# How many outputs a person reads.
_MOST_OUTPUTS = 12


def compare(
    a: Before,
    b: After,
    data: DataSource = None,
    on: On = "cpu:1",
    metric: MetricName = "auto",
    seconds: Seconds = None,
    samples: SampleCount = None,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    label_offset: LabelOffset = None,
    ops: Ops = None,
    as_json: Json = False,
) -> None:
    """Is B as good as A, and faster? Accuracy, time, size and drift side by side."""
    Rule(seconds=seconds)  # refuses a wrong number before the work
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    opened = None if data is None else _opened(data, (a, b), options, samples)
    target = checked_target(a, on)
    checked_target(b, on)
    with Terminal(quiet=as_json) as progress:
        found = compared(a, b, opened, Manner(target, metric, seconds, progress))
    if as_json:
        click.echo(json.dumps(_as_json(found, (a, b))))
    else:
        _print(found)
        if data is not None and found.accuracy is None:
            show.line("litesmith eval scores each of them on its own")
    known = opened.notes if opened is not None else ()  # those have been said
    for note in found.accuracy.notes if found.accuracy else ():
        if note not in known:
            say("note", note)
    for warning in found.bench.warnings:
        say("warning", warning)


def _opened(
    source: str, paths: tuple[Path, Path], options: ImageOptions, samples: int | None
) -> Data | None:
    """The data as A wants it; None where B could not be given the same."""
    models = load(paths[0]), load(paths[1])
    if misfit(*models):
        return None
    data = open_evaluation(source, models[0], options, samples=samples)
    for problem in lint_evaluation(data, models[1]):
        say(
            "warning",
            phrase(
                "for {paths}: {what}: {why}; {fix}",
                paths[1],
                problem.what,
                problem.why,
                problem.fix,
            ),
        )
    return data


def _print(found: Compared) -> None:
    show.line(found.verdict, "bold")
    rows = show.table("", "A", "B", "B against A", right=(1, 2))
    if found.accuracy is not None:
        rows.add_row(*_accuracy_cells(found.accuracy))
    times = [time_text(result.percentile_us(50)) for result in found.results]
    ratio = ratio_text(found.ratio.value, *found.ratio.interval)
    rows.add_row(phrase("time on {target}", found.results[0].target), *times, ratio)
    for name, sizes in _sizes(found).items():
        rows.add_row(name, *map(_size_text, sizes), _quotient(*sizes))
    show.console.print()
    show.console.print(rows)
    if found.accuracy is not None:
        count, how = total_text(found.accuracy.n), found.accuracy.preparation
        show.line(f"{count} samples of {plain(found.accuracy.source)}{f'; {how}' if how else ''}")
    _print_drifts(found)


def _accuracy_cells(found: Evaluation) -> tuple[str, str, str, str]:
    against = found.against
    if against is None or against.value is None or against.difference is None:
        own = score_text(found.value, found.unit, found.low, found.high)
        return found.title, "", "", own
    ends = against.difference_low or 0.0, against.difference_high or 0.0
    gain = gain_text(against.difference, found.unit, *ends)
    values = score_text(against.value, found.unit), score_text(found.value, found.unit)
    return found.title, *values, gain


def _sizes(found: Compared) -> dict[str, tuple[int | None, int | None]]:
    (a, b), (first, second) = found.sizes, found.results
    return {
        "disk": (a.bytes, b.bytes),
        "gzip": (a.gzip_bytes, b.gzip_bytes),
        "peak memory": (first.peak_bytes, second.peak_bytes),
    }


def _size_text(size: int | None) -> str:
    return "" if size is None else bytes_text(size)


def _quotient(a: int | None, b: int | None) -> str:
    return ratio_text(b / a) if a and b is not None else ""


def _print_drifts(found: Compared) -> None:
    drifts = found.drifts
    if drifts.why:
        if drifts.why != found.why:  # which the verdict says
            show.line(phrase("no drift is told: {why}", drifts.why))
        return
    on = f"{drifts.samples} {'random inputs' if drifts.is_random else 'samples'}"
    if all(drift.is_equal for drift in drifts.outputs):
        show.line(phrase("the outputs are equal on {on}", on))
    else:
        rows = show.table("output", "cosine", "SNR", right=(1, 2))
        for drift in drifts.outputs[:_MOST_OUTPUTS]:
            rows.add_row(*map(show.said, _drift_cells(drift)))
        show.heading(phrase("drift from A, on {on}", on))
        show.console.print(rows)
        if len(drifts.outputs) > _MOST_OUTPUTS:
            show.line(
                phrase("… and {count} more (--json lists all)", len(drifts.outputs) - _MOST_OUTPUTS)
            )
    if drifts.is_random:
        show.line("random inputs tell whether both compute alike, not how good: give --data")


def _drift_cells(drift: Drift) -> tuple[str, str, str]:
    if drift.cosine is None or drift.snr_db is None:
        return drift.output, "", phrase("not comparable")
    if drift.snr_db == MOST_DB:
        return drift.output, "", "equal"
    return drift.output, score_text(drift.cosine, ""), score_text(drift.snr_db, "dB")


def _as_json(found: Compared, paths: tuple[Path, Path]) -> show.Json:
    """Numbers that are not finite are null: JSON has no word for them."""
    low, high = found.ratio.interval
    times = [result.percentile_us(50) for result in found.results]
    disk, gzipped, peak = (_pair(*sizes) for sizes in _sizes(found).values())
    return {
        "schema": 1,
        "a": str(paths[0]),
        "b": str(paths[1]),
        "accuracy": None if found.accuracy is None else _accuracy_json(found.accuracy),
        "no_accuracy": found.why,
        "latency": {
            "ratio": found.ratio.value,
            "low": low,
            "high": high if isfinite(high) else None,
            "verdict": found.ratio.verdict,
            "a_us": times[0],
            "b_us": times[1],
            "target": found.results[0].target,
            "block_ratios": found.ratio.blocks,
        },
        "bytes": disk,
        "gzip_bytes": gzipped,
        "peak_bytes": peak,
        "drift": {
            "samples": found.drifts.samples,
            "random": found.drifts.is_random,
            "outputs": [drift._asdict() for drift in found.drifts.outputs],
            "why": found.drifts.why,
        },
        "verdict": found.verdict,
        "digests": _pair(*(result.contender.digest for result in found.results)),
        "host": found.bench.host.facts(),
        "warnings": found.bench.warnings,
    }


def _pair(a: object, b: object) -> show.Json:
    return {"a": a, "b": b}


def _accuracy_json(found: Evaluation) -> show.Json:
    """`low` and `high` are of the difference; where there is none, B's value is the comparison."""
    against = found.against
    assert against is not None
    return {
        "metric": found.metric,
        "unit": found.unit,
        "a": finite(against.value),
        "b": finite(found.value),
        "b_low": finite(found.low),
        "b_high": finite(found.high),
        "difference": finite(against.difference),
        "low": finite(against.difference_low),
        "high": finite(against.difference_high),
        "verdict": against.verdict or None,
        "agreement": finite(against.agreement),
        "n": found.n,
        "data": found.source,
        "preparation": found.preparation,
        "notes": found.notes,
    }
