"""Prints the time of a quantized file beside that of its source, with the remedy where it is
slower.
"""

from litesmith.cli.text import printing as show
from litesmith.front.speed_check import SpeedCheck
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.units import plain, time_text

# The largest number of kinds of ops.
_MOST_KINDS = 6


def print_speed(
    speed: SpeedCheck, step: Quantize, *, is_recipe: bool = False, is_integer: bool = False
) -> None:
    """Prints the time, the ops to blame where it is longer, and the command that helps.
    `is_recipe`: the user wrote the step in a recipe; `is_integer`: the user requires integers
    throughout.
    """
    latency = speed.latency
    if latency is None:
        show.line(phrase("its time was not measured: {why}", plain(speed.untimed)))
        return
    ratio = latency.ratio
    told = phrase(
        "time on {target}: {times}, {words}", latency.target, ratio.times_words, ratio.words
    )
    show.line(told, "bold red" if speed.is_slower else "bold")
    print_blame(speed, step, is_recipe=is_recipe, is_integer=is_integer)


def print_blame(
    speed: SpeedCheck, step: Quantize, *, is_recipe: bool = False, is_integer: bool = False
) -> None:
    """Prints the ops that make a file slower, and the command that helps."""
    for kind in speed.blamed[:_MOST_KINDS]:
        show.line(
            phrase(
                "  {ops} {kind}: {time} a run, {time2} in float",
                kind.ops,
                kind.kind,
                time_text(kind.integer_us),
                time_text(kind.float_us),
            )
        )
    if speed.is_slower:
        show.line(_cure(speed, step, is_recipe=is_recipe, is_integer=is_integer))


def _cure(speed: SpeedCheck, step: Quantize, *, is_recipe: bool, is_integer: bool) -> str:
    """The command that makes a file that is not slower."""
    kinds = ",".join(kind.kind for kind in speed.blamed[:_MOST_KINDS])
    if is_recipe:
        return _recipe_cure(kinds, step)
    is_forced = is_integer or step.io != "float"
    if step.to == "int8" and is_forced and not (step.keep or step.only):
        return phrase(
            "leave out --fully-integer and --io, and ops that are faster in float stay "
            "float; or use --to float16, which computes like the original at half its size"
        )
    if step.to == "dynamic" and kinds:
        return phrase(
            "litesmith tune finds the fastest file within a budget; --keep {kinds} leaves these "
            "float; --to float16 computes like the original at half its size",
            kinds,
        )
    return phrase(
        "litesmith tune finds the fastest file within a budget; --to float16 computes like the "
        "original at half its size"
    )


def _recipe_cure(kinds: str, step: Quantize) -> str:
    """The same for a recipe, which keeps only the named ops float."""
    if step.to == "int8" and kinds:
        return phrase(
            "litesmith quantize leaves ops in float where float is faster; in a recipe, "
            "quantize(keep=[{kinds}]) does the same",
            kinds,
        )
    return phrase(
        "litesmith tune finds the fastest file within a budget; quantize(to=float16) computes like "
        "the original at half its size"
    )
