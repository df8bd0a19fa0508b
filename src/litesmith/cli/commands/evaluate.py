"""The command eval: how good a model's answers are, and whether another's are better."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import click

from litesmith.accuracy.evaluate import Against, Evaluation, evaluate_all, preparation_text
from litesmith.accuracy.metrics import METRICS
from litesmith.accuracy.scoring import MOST_DB
from litesmith.cli.commands.model import Json, ModelFile
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
    with_progress,
)
from litesmith.cli.options.declare import option
from litesmith.cli.options.engine_option import EngineName, refuse_unusable, watched_engine
from litesmith.cli.options.ops_option import Ops
from litesmith.cli.text import printing as show
from litesmith.errors import BadInput
from litesmith.phrases import phrase
from litesmith.run.litert.capi import installed_version
from litesmith.tflite.file import load
from litesmith.units import gain_text, plain, score_text, total_text
from litesmith.workers.engine import LOCAL

Reference = Annotated[
    Path | None,
    option("--against", metavar="REF", help="A .tflite file to compare with, sample by sample."),
]
MetricName = Annotated[
    str,
    option(
        "--metric",
        metavar="NAME",
        help=f"{', '.join(METRICS)}, or module:function, called with outputs and label. [auto]",
        show_default=False,
    ),
]


def evaluate(
    model: ModelFile,
    data: DataSource = None,
    against: Reference = None,
    metric: MetricName = "auto",
    on: On = "cpu:1",
    samples: SampleCount = None,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    label_offset: LabelOffset = None,
    ops: Ops = None,
    engine: EngineName = LOCAL,
    as_json: Json = False,
) -> None:
    """Accuracy with its interval, or drift from a reference where there are no labels."""
    if data is None:
        raise BadInput("eval needs data; give --data and a folder, .npz, .npy or module:function")
    refuse_unusable(engine, ops)
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    content = load(model)
    opened = open_evaluation(data, content, options, samples=samples)
    target = checked_target(model, on)
    if against is not None:
        checked_target(against, on)
    watched = with_progress(opened, "evaluating", quiet=engine != LOCAL)
    with watched_engine(engine) as cluster:
        (found,) = evaluate_all(
            [model], watched, against=against, metric=metric, on=target, engine=cluster
        )
    result = replace(found, preparation=preparation_text(opened))
    if as_json:
        click.echo(json.dumps({"schema": 1, "model": str(model), **_as_json(result)}))
    else:
        _print_result(result, model, against)
    for note in found.notes:
        if note not in opened.notes:  # those have been said
            say("note", note)


def _as_json(result: Evaluation) -> dict[str, object]:
    """Numbers that are not finite are null: JSON has no word for them."""
    found = result.against
    told: dict[str, object] = {
        "metric": result.metric,
        "unit": result.unit,
        "value": finite(result.value),
        "low": finite(result.low),
        "high": finite(result.high),
        "n": result.n,
        "data": result.source,
        "preparation": result.preparation,
        "target": result.target,
        "runtime": _runtime(result),
        "notes": result.notes,
    }
    if found is not None:
        told |= {
            "reference": finite(found.value),
            "difference": finite(found.difference),
            "difference_low": finite(found.difference_low),
            "difference_high": finite(found.difference_high),
            "agreement": finite(found.agreement),
            "cosine": finite(found.cosine),
            "snr_db": finite(found.snr_db),
            "verdict": found.verdict or None,
        }
    return told


def finite(value: float | None) -> float | None:
    """The number for JSON, which has no word for others."""
    return value if value is not None and math.isfinite(value) else None


def _runtime(result: Evaluation) -> str:
    return "numpy" if result.target == "numpy" else f"LiteRT {installed_version()}"


def _print_result(result: Evaluation, model: Path, against: Path | None) -> None:
    value = score_text(result.value, result.unit, result.low, result.high)
    show.line(
        phrase(
            "{name}: {title} {value} on {count} samples",
            plain(model.name),
            result.title,
            value,
            total_text(result.n),
        ),
        "bold",
    )
    show.line(f"({result.target}, {_runtime(result)}, {result.preparation})")
    if result.against is not None and against is not None:
        _print_against(result, result.against, against)


def _print_against(result: Evaluation, found: Against, against: Path) -> None:
    name, unit = plain(against.name), result.unit
    if found.value is None or found.difference is None:
        show.line(phrase("against {name}", name))
    else:
        ends = found.difference_low or 0.0, found.difference_high or 0.0
        show.line(phrase("against {name}: {score}", name, score_text(found.value, unit)))
        verdict = found.verdict or phrase("both are infinitely wrong, so that nothing can be told")
        show.line(
            phrase(
                "difference {gain}: {verdict}", gain_text(found.difference, unit, *ends), verdict
            )
        )
    if found.snr_db == MOST_DB:
        show.line("the outputs are equal on every sample")
        return
    drift = [
        f"{METRICS[name].title} {score_text(value, METRICS[name].unit)}"
        for name, value in (
            ("agreement", found.agreement),
            ("cosine", found.cosine),
            ("snr", found.snr_db),
        )
        if value is not None and name != result.metric
    ]
    if drift:
        show.line(", ".join(drift))
