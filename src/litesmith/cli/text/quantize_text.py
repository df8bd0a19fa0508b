"""Prints the result of `quantize`: what was done, left alone and checked, and the next command."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from litesmith.accuracy.evaluate import Evaluation, preparation_text
from litesmith.accuracy.scoring import MOST_DB
from litesmith.anatomy.source_file import SourceFile
from litesmith.calibration.claims import Claims, OpGroup, OutputDrift
from litesmith.calibration.mixed_outputs import MixedOutput
from litesmith.cli.text import printing as show
from litesmith.cli.text.apply_text import print_done, print_left
from litesmith.cli.text.speed_text import print_speed
from litesmith.front.quantize import Quantized
from litesmith.operating_system import quote
from litesmith.passes.core.recipe import text_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.phrases import phrase
from litesmith.run.litert.capi import installed_version
from litesmith.units import (
    bytes_text,
    change_text,
    gain_text,
    number_text,
    plain,
    score_text,
    total_text,
)

# The largest number of groups of a list.
_MOST_GROUPS = 6


def print_quantized(result: Quantized) -> None:
    show.line(phrase("recipe: {text_of}", text_of(result.done.recipe)))
    print_done(result.done.change.touched)
    print_left(result.done.change.skipped)
    _print_sizes(result)
    _print_claims(result.claims, is_integer=SCHEMES[result.step.to].is_integer)
    print_speed(result.speed, result.step, is_integer=result.fully_integer)
    _print_data(result)
    if result.score is not None:
        print_score(result.score)
    _print_warnings(result)
    print_next(result.out, result.source, result.next_data)


def print_next(out: Path | None, source: SourceFile, next_data: str) -> None:
    """Prints the command that scores the result."""
    files = quote(str(out)), quote(str(source.path or "MODEL"))
    show.command(f"litesmith eval {files[0]} {next_data} --against {files[1]}")


def _print_sizes(result: Quantized) -> None:
    # The original is not compressed, which would take longer than quantizing it.
    made = SourceFile(result.model, result.out)
    old, new, new_gzip = result.source.bytes, made.bytes, made.quick_gzip_bytes
    gzipped = "" if new_gzip is None else phrase(", {size} gzipped", bytes_text(new_gzip))
    name = plain(made.name)
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
        show.line(phrase("fully integer") if claims.is_integer else float_text(claims))
        for group in claims.float_ops[:_MOST_GROUPS]:
            if group.why:
                show.line(phrase("  {kind}: {why}", group.kind, plain(group.why)))
    if claims.failure:
        return
    if claims.outside is None:
        show.line(
            phrase("unknown whether it runs entirely in XNNPACK: {unknown}", plain(claims.unknown))
        )
    elif claims.outside:
        show.line(phrase("runs in XNNPACK but for {listed}", _list_groups(claims.outside)))
    else:
        show.line("runs entirely in XNNPACK")
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


def float_text(claims: Claims) -> str:
    between = phrase(", between {conversions} conversions", claims.conversions)
    inside = {0: "", 1: phrase(", beside one conversion")}.get(claims.conversions, between)
    return phrase(
        "not fully integer: {listed} in float{inside}",
        _list_groups(claims.float_ops) or phrase("no op"),
        inside,
    )


def _list_groups(groups: Iterable[OpGroup]) -> str:
    counts: Counter[str] = Counter()
    for group in groups:
        counts[group.kind] += group.ops
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common())


def _drift_text(worst: OutputDrift, outputs: int) -> str:
    if worst.snr_db == MOST_DB:
        return phrase("no difference from the original's")
    where = phrase(" in {output!r}", worst.output) if outputs > 1 else ""
    return phrase(
        "an SNR of {score} against the original's{where}",
        score_text(worst.snr_db or 0.0, "dB"),
        where,
    )


def _print_data(result: Quantized) -> None:
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


def _print_warnings(result: Quantized) -> None:
    """Prints what must not be overlooked, last and loud."""
    claims = result.claims
    if result.is_random:
        show.line("RANDOM DATA: the accuracy of this file means nothing", "bold red")
    if claims.failure:
        show.line(phrase("WARNING: it does not run: {failure}", plain(claims.failure)), "bold red")
    for mixed in result.mixed:
        _print_mixed(mixed, result)
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


def _print_mixed(mixed: MixedOutput, result: Quantized) -> None:
    """Prints an output with numbers of several meanings, the loss of the small ones, and the
    remedy.
    """
    show.line(
        phrase(
            "WARNING: output {output!r} holds numbers of several sizes: {small} of {channels} "
            "channels reach {reach}, the others {rest}; one scale leaves the small ones {ratio}",
            mixed.output,
            mixed.small,
            mixed.channels,
            number_text(float(f"{mixed.reach:.3g}")),
            number_text(float(f"{mixed.rest:.3g}")),
            score_text(mixed.snr_db, "dB"),
        ),
        "bold red",
    )
    ops = " ".join(f"--keep {quote(name)}" for name in result.kept_for)
    recipe = quote(result.in_int16)
    told = {
        "float": (mixed.cured_db, phrase("{ops} keeps what makes it float", ops)),
        "int16": (mixed.int16_db, phrase("the recipe {recipe} makes it in int16", recipe)),
    }
    for way, (kept_db, what) in told.items():
        if kept_db is not None and kept_db > mixed.snr_db:
            least = phrase(", where least is lost") if way == mixed.lost_least else ""
            ratio = score_text(kept_db, "dB")
            show.line(phrase("{what}: {ratio}{least}", what, ratio, least))
