"""How quantize prints: what was done, what is left, what was checked, what to type next."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import click

from litesmith.accuracy.evaluate import Evaluation, preparation_text
from litesmith.accuracy.scoring import MOST_DB
from litesmith.calibration.claims import Claims, Drift, Group
from litesmith.calibration.quantize_effort import Outcome
from litesmith.cli.commands.evaluate import finite
from litesmith.cli.commands.model import sizes_of
from litesmith.cli.text import printing as show
from litesmith.cli.text.apply_text import apply_json, print_done, print_left
from litesmith.data.samples import Data
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import text_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.run.litert.capi import installed_version
from litesmith.tflite.file import digest
from litesmith.tflite.write import chunks
from litesmith.units import (
    bytes_text,
    change_text,
    gain_text,
    plain,
    score_text,
    total_text,
)

# How many groups of a list a person reads.
_MOST_GROUPS = 6


@dataclass(frozen=True, eq=False)
class Result:
    """All that is known of one quantized file."""

    path: Path
    out: Path
    model: Model
    step: Quantize
    done: Outcome
    claims: Claims
    data: Data | None
    score: Evaluation | None = None
    next_data: str = "--data LABELLED_DATA"  # the options that name data to score it on

    @property
    def notes(self) -> list[str]:
        told = [*(self.data.notes if self.data else ()), *self.done.notes]
        return [*told, *(self.score.notes if self.score else ())]


def print_json(result: Result) -> None:
    change, sizes = result.done.change, sizes_of(result.out, result.done.change.model, True)
    told = apply_json(result.out, sizes, digest(result.out), change) | {
        "recipe": text_of(result.done.recipe),
        "data": None if result.data is None else result.data.source,
        "samples": 0 if result.data is None else len(result.data),
        "random_data": result.data is not None and result.data.items.is_random,
        "preparation": "" if result.data is None else preparation_text(result.data),
        "claims": result.claims.facts(),
        "notes": result.notes,
    }
    if result.score is not None:
        told["evaluation"] = score_json(result.score)
    click.echo(json.dumps(told))


def score_json(score: Evaluation) -> show.Json:
    names = ("value", "difference", "difference_low", "difference_high", "agreement", "snr_db")
    against = {name: getattr(score.against, name, None) for name in names}
    told = {"metric": score.metric, "value": score.value, "low": score.low, "high": score.high}
    told |= {"n": score.n, "reference": against.pop("value"), **against}
    return {k: finite(v) if isinstance(v, float) else v for k, v in told.items()}


def print_text(result: Result) -> None:
    show.line(phrase("recipe: {text_of}", text_of(result.done.recipe)))
    print_done(result.done.change.touched)
    print_left(result.done.change.skipped)
    _print_sizes(result)
    _print_claims(result.claims, is_integer=SCHEMES[result.step.to].is_integer)
    _print_data(result)
    if result.score is not None:
        print_score(result.score)
    _print_warnings(result)
    files = quote(str(result.out)), quote(str(result.path))
    show.command(f"litesmith eval {files[0]} {result.next_data} --against {files[1]}")


def _print_sizes(result: Result) -> None:
    # Not the original's gzip: it would take longer than quantizing it.
    is_file = result.path.is_file()
    old = result.path.stat().st_size if is_file else sum(map(len, chunks(result.model)))
    new, new_gzip = sizes_of(result.out, result.done.change.model, False)
    gzipped = "" if new_gzip is None else phrase(", {size} gzipped", bytes_text(new_gzip))
    name = plain(result.out.name)
    show.line(
        phrase(
            "{name}: {size} {change}{gzipped}",
            name,
            bytes_text(new),
            change_text(old, new),
            gzipped,
        ),
        "bold",
    )


def _print_claims(claims: Claims, *, is_integer: bool) -> None:
    if is_integer:
        show.line(phrase("fully integer") if claims.is_integer else _float_text(claims))
        for group in claims.float_ops[:_MOST_GROUPS]:
            if group.why:
                show.line(f"  {group.kind}: {plain(group.why)}")
    if claims.failure:
        return
    if claims.outside is None:
        show.line(
            phrase(
                "whether it runs wholly in XNNPACK is not known: {unknown}", plain(claims.unknown)
            )
        )
    elif claims.outside:
        show.line(phrase("runs in XNNPACK but for {listed}", _listed(claims.outside)))
    else:
        show.line("runs wholly in XNNPACK")
    worst = claims.worst
    if worst is not None and worst.snr_db is not None:
        runtime = f"LiteRT {installed_version()}"
        show.line(
            phrase(
                "runs in {runtime}; on {tried} samples its outputs have {drift}",
                runtime,
                claims.tried,
                _drift_text(worst, len(claims.drift)),
            )
        )


def _float_text(claims: Claims) -> str:
    inside = (
        phrase(", between {conversions} conversions", claims.conversions)
        if claims.conversions
        else ""
    )
    return phrase(
        "not fully integer: {listed} in float{inside}",
        _listed(claims.float_ops) or phrase("no op"),
        inside,
    )


def _listed(groups: Iterable[Group]) -> str:
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.kind] += group.ops
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


def _drift_text(worst: Drift, outputs: int) -> str:
    if worst.snr_db == MOST_DB:
        return phrase("no difference from the original's")
    where = phrase(" in {output!r}", worst.output) if outputs > 1 else ""
    return phrase(
        "an SNR of {score} against the original's{where}",
        score_text(worst.snr_db or 0.0, "dB"),
        where,
    )


def _print_data(result: Result) -> None:
    if result.data is None:
        return
    text = preparation_text(result.data)
    prepared = phrase(" ({what})", text) if text else ""
    count = total_text(len(result.data))
    show.line(
        phrase(
            "calibrated on {count} samples of {source}{prepared}",
            count,
            plain(result.data.source),
            prepared,
        )
    )


def print_score(score: Evaluation) -> None:
    value = score_text(score.value, score.unit, score.low, score.high)
    show.line(
        phrase("{title} {value} on {count} samples", score.title, value, total_text(score.n)),
        "bold",
    )
    found = score.against
    if found is not None and found.value is not None and found.difference is not None:
        ends = found.difference_low or 0.0, found.difference_high or 0.0
        difference = gain_text(found.difference, score.unit, *ends)
        before = score_text(found.value, score.unit)
        verdict = found.verdict or phrase("both are infinitely wrong")
        show.line(
            phrase(
                "the original has {before}: {difference}, {verdict}", before, difference, verdict
            )
        )


def _print_warnings(result: Result) -> None:
    """What must not be overlooked, last and loud."""
    claims = result.claims
    if result.data is not None and result.data.items.is_random:
        show.line("RANDOM DATA: the accuracy of this file means nothing", "bold red")
    if claims.failure:
        show.line(phrase("WARNING: it does not run: {failure}", plain(claims.failure)), "bold red")
    for drift in claims.drift:
        if drift.is_lost:
            show.line(
                phrase("WARNING: output {output!r} is NaN or infinite", drift.output), "bold red"
            )
        elif drift.is_broken:
            ratio = score_text(drift.snr_db or 0.0, "dB")
            show.line(
                phrase(
                    "WARNING: output {output!r} has little to do with the original's: {ratio}; "
                    "look at the data, keep ops in float with --keep, or use --to int16x8 or "
                    "dynamic",
                    drift.output,
                    ratio,
                ),
                "bold red",
            )
