"""Prints the result of `eval`."""

from pathlib import Path

from litesmith.accuracy.evaluate import Against, Evaluation
from litesmith.accuracy.metrics import METRICS
from litesmith.accuracy.scoring import MOST_DB
from litesmith.cli.text import printing as show
from litesmith.phrases import join, phrase
from litesmith.units import gain_text, plain, score_text, total_text


def print_evaluation(result: Evaluation, against: Path | None = None) -> None:
    value = score_text(result.value, result.unit, result.low, result.high)
    show.line(
        phrase(
            "{name}: {title} {value} on {count} samples",
            plain(Path(result.model).name),
            result.title,
            value,
            total_text(result.n),
        ),
        "bold",
    )
    show.line(
        phrase(
            "({target}, {runtime}, {preparation})",
            result.target,
            result.runtime,
            result.preparation,
        )
    )
    if result.against is not None and against is not None:
        _print_against(result, result.against, plain(against.name))


def _print_against(result: Evaluation, found: Against, name: str) -> None:
    unit = result.unit
    if found.value is None or found.difference is None:
        show.line(phrase("against {name}", name))
    else:
        ends = found.difference_low or 0.0, found.difference_high or 0.0
        show.line(phrase("against {name}: {score}", name, score_text(found.value, unit)))
        gain = gain_text(found.difference, unit, *ends)
        unclear = phrase("both are infinitely wrong, so there is no difference to measure")
        show.line(phrase("difference {gain}: {verdict}", gain, found.verdict or unclear))
    if found.snr_db == MOST_DB:
        show.line(phrase("the outputs are equal on every sample"))
        return
    known = ("agreement", found.agreement), ("cosine", found.cosine), ("snr", found.snr_db)
    drift = [
        phrase("{title} {score}", METRICS[metric].title, score_text(value, METRICS[metric].unit))
        for metric, value in known
        if value is not None and metric != result.metric
    ]
    if drift:
        show.line(join(drift, ", "))
