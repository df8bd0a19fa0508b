"""The command quantize: a recipe chosen for a scheme, applied to a model, and checked."""

from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Annotated, NoReturn

from litesmith.accuracy.evaluate import Evaluation, evaluate_all, refuse_misfit
from litesmith.anatomy.findings import scheme
from litesmith.calibration.claims import check_claims
from litesmith.calibration.quantize_effort import EFFORTS, Outcome, Plan, carry_out, plan
from litesmith.cli.commands.model import MISSES_WHAT_WAS_ASKED, Json, ModelFile, refuse_place
from litesmith.cli.options.data_options import (
    DEFAULT_CROP,
    DEFAULT_RESIZE,
    Calibration,
    CalibrationCount,
    Crop,
    DataSource,
    ImageOptions,
    LabelOffset,
    Mean,
    NormName,
    Resize,
    Std,
    TrustData,
    open_calibration,
    open_evaluation,
    say,
    typed,
    with_progress,
)
from litesmith.cli.options.declare import option
from litesmith.cli.text.quantize_text import Result, print_json, print_text
from litesmith.data.samples import Data
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.types import Model
from litesmith.numeric.ranges import ESTIMATORS
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.schemes import SCHEMES, Names
from litesmith.passes.core.step import Context, Tools
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.tflite.file import load, save
from litesmith.units import number_text

OutFile = Annotated[
    Path, option("-o", "--output", help="The .tflite file to write.", show_default=False)
]
To = Annotated[str, option("--to", metavar="SCHEME", help=f"{', '.join(SCHEMES)}.")]
Io = Annotated[str, option("--io", metavar="float|int8|uint8|int16", help="Inputs and outputs.")]
Keep = Annotated[
    list[str] | None,
    option(
        "--keep",
        metavar="OPS",
        help="Leave these as they are: numbers, kinds or name patterns, as in 0,SOFTMAX,head*.",
        show_default=False,
    ),
]
Only = Annotated[
    list[str] | None,
    option("--only", metavar="OPS", help="Change only these.", show_default=False),
]
Ranges = Annotated[
    str, option("--ranges", metavar="|".join(ESTIMATORS), help="How ranges are chosen.")
]
PerTensor = Annotated[bool, option("--per-tensor", help="One scale a weight, not one a channel.")]
Block = Annotated[
    int, option("--block", min=0, help="With dynamic-int4: a scale for each N inputs.")
]
Effort = Annotated[
    str, option("--effort", metavar="|".join(EFFORTS), help="Time put into accuracy.")
]
RandomData = Annotated[
    bool, option("--random-data", help="Ranges from random inputs: to measure speed only.")
]
Evaluated = Annotated[
    str | None,
    option(
        "--eval", metavar="D2", help="Score the model and the result on it.", show_default=False
    ),
]


def quantize(
    model: ModelFile,
    out: OutFile,
    to: To = Quantize.to,
    data: DataSource = None,
    io: Io = Quantize.io,
    keep: Keep = None,
    only: Only = None,
    ranges: Ranges = Quantize.ranges,
    per_tensor: PerTensor = False,
    block: Block = Quantize.block,
    effort: Effort = "default",
    samples: CalibrationCount = None,
    random_data: RandomData = False,
    evaluation: Evaluated = None,
    trust_data: TrustData = False,
    mean: Mean = None,
    std: Std = None,
    norm: NormName = None,
    resize: Resize = DEFAULT_RESIZE,
    crop: Crop = DEFAULT_CROP,
    label_offset: LabelOffset = None,
    as_json: Json = False,
) -> int:
    """Make a model smaller and faster: weights, and data between the ops, as small numbers."""
    refuse_place(out, model)
    if random_data and data is not None:
        raise BadInput("--data and --random-data: give one of them")
    options = ImageOptions(mean, std, norm, resize, crop, label_offset)
    step = Quantize(to, io, op_names(keep), op_names(only), ranges, not per_tensor, block)
    given = Calibration(data, options, samples, random_data, trust_data, as_json)
    content = load(model)
    todo = plan(content, step, effort, has_data=given.is_given)
    _refuse_early(model, content, step, given)
    if given.is_given:
        _refuse_options(content, todo)
    scored_on = None
    if evaluation is not None:
        scored_on = open_evaluation(evaluation, content, options)
        refuse_misfit(content, scored_on)
    calibration = open_calibration(content, given, scored_on)
    done = _carried_out(content, todo, calibration, given)
    save(done.change.model, out)
    file = model if model.is_file() else None  # a pipe is read only once
    skipped, looks = done.change.skipped, effort != "quick"
    claims = check_claims(out, content, calibration, skipped, file, profiled=looks)
    score = None
    if scored_on is not None and not claims.failure:
        score = scored(model, out, scored_on, quiet=as_json)
    words = f"--data {quote(evaluation or 'LABELLED_DATA')}{typed(settled(options, calibration))}"
    result = Result(model, out, content, step, done, claims, calibration, score, words)
    (print_json if as_json else print_text)(result)
    return MISSES_WHAT_WAS_ASKED if claims.is_useless else 0


def _carried_out(model: Model, todo: Plan, data: Data | None, given: Calibration) -> Outcome:
    watched = None if data is None else with_progress(data, "calibrating", quiet=given.quiet)
    done = carry_out(model, todo, watched)
    for note in done.notes:
        say("note", note)
    if given.random and data is not None:
        say("warning", data.notes[0])
    return done


def settled(options: ImageOptions, data: Data | None) -> ImageOptions:
    """The options with the normalisation that was chosen for the user."""
    known = None if data is None else data.items.preparation
    if known is None or options.preparation().is_chosen:
        return options
    if known.norm or not known.is_chosen:
        return options._replace(norm=known.norm or None)
    norm = known.as_norm()
    mean, std = (",".join(map(number_text, numbers)) for numbers in (norm.mean, norm.std))
    return options._replace(mean=mean, std=std)


def op_names(texts: list[str] | None) -> Names:
    """`0,SOFTMAX` and `head*` as a step takes them."""
    parts = [part.strip() for text in texts or () for part in text.split(",")]
    return tuple(int(part) if part.isdecimal() else part for part in parts if part)


def _refuse_early(path: Path, model: Model, step: Quantize, given: Calibration) -> None:
    """Raises before any data is read where it would be read in vain."""
    held = integer_tensors(model)
    if held and not step.keep and not step.only:
        raise BadInput(
            "{path}: is quantized already, {scheme}; {way_out}", path, scheme(model), _way_out(held)
        )
    if SCHEMES[step.to].is_integer and not given.is_given:
        raise BadInput(
            "--to {to} needs data to see the ranges inside the model; give --data, or take "
            "--to dynamic, which needs none, or --random-data to measure speed only",
            step.to,
        )


def _refuse_options(model: Model, todo: Plan) -> None:
    """Raises what the step itself says of its options and of the ops that they name; it is stopped
    where it first asks for data."""
    recipe = todo.recipes[0]
    place = next(number for number, step in enumerate(recipe) if isinstance(step, Quantize))
    with suppress(CannotApply):  # that, or what the work itself will say again
        apply(model, recipe[: place + 1], Context(Tools(_stop, _stop, _stop)))


def _stop(*_: object) -> NoReturn:
    raise CannotApply("no data is read yet")


def _way_out(held: str) -> str:
    if "uint8" in held:
        return phrase('litesmith apply MODEL "upgrade" -o OUT makes it a faster int8 one')
    return phrase("start from the float model, or name the float ops to change with --only")


def scored(path: Path, out: Path, data: Data, *, quiet: bool) -> Evaluation | None:
    """The result's accuracy beside the original's, on the same samples; what stops it is said, so
    that a file that was written has its report."""
    watched = with_progress(data, "evaluating", quiet=quiet)
    try:
        found = evaluate_all([out], watched, against=path)[0]
    except LitesmithError as error:
        say("warning", phrase("not scored: {error}", error))
        return None
    for note in found.notes:
        if note not in data.notes:  # those have been said
            say("note", note)
    return found
