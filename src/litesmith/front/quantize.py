"""`quantize`: a recipe chosen for a scheme, applied to a model, and checked on the written file."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn, Unpack

from litesmith.accuracy.evaluate import Evaluation, preparation_text
from litesmith.anatomy.findings import scheme
from litesmith.anatomy.source_file import Source, SourceFile, open_source
from litesmith.arguments import argument, check_types, refuse_below
from litesmith.calibration.claims import Claims, check_claims
from litesmith.calibration.mixed_outputs import MixedOutput, makers, mixed_outputs, try_cures
from litesmith.calibration.quantize_effort import Outcome, Plan, carry_out, plan
from litesmith.calibration.runnable import dead, refuse_dead
from litesmith.data.preparation import Preparing, read_preparation
from litesmith.data.samples import Data
from litesmith.data.sources import Given
from litesmith.display import show_html
from litesmith.errors import BadInput, CannotApply, CannotRun
from litesmith.front.given_data import (
    Calibration,
    open_calibration,
    open_judging,
    scoring_options,
)
from litesmith.front.made_model import (
    Json,
    MadeModel,
    OpNames,
    Place,
    read_names,
    read_place,
    score,
    score_facts,
)
from litesmith.front.speed_check import MadeFile, SpeedCheck, check_speed
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply, text_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.core.step import Context, Tools
from litesmith.passes.quantizing.integer_graph import computes_in_float, integer_tensors
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.tidy.upgrade import legacy_tensors
from litesmith.phrases import Phrase, phrase
from litesmith.progress import WARNING, Note, Progress, silent
from litesmith.run.core.target import Target
from litesmith.temporary import temporary_folder
from litesmith.tflite.file import save

_NOT_TIMED = phrase("--effort quick; litesmith bench compares the two")


@dataclass(frozen=True, repr=False, eq=False)
class Quantized(MadeModel):
    """A quantized model, and what was checked of its file.

    claims         integers only, XNNPACK only, near the original: as found in the file
    speed          its time beside the original's, and what makes it slower where it is
    score          of the model and the original on `eval`, where that was asked for
    next_data      the options that name data to score it on
    mixed          outputs with numbers of several meanings, of which the small ones are lost
    kept_for       the ops that had better be kept for these
    in_int16       the recipe that makes these outputs in int16
    fully_integer  whether integers were asked for throughout
    """

    step: Quantize
    done: Outcome
    claims: Claims
    data: Data | None
    speed: SpeedCheck
    score: Evaluation | None
    next_data: str
    mixed: tuple[MixedOutput, ...] = ()
    kept_for: tuple[str, ...] = ()
    in_int16: str = ""
    fully_integer: bool = False

    @property
    def is_random(self) -> bool:
        """True where ranges come from random numbers."""
        return self.data is not None and self.data.items.is_random

    @property
    def is_as_asked(self) -> bool:
        """False where the file is of no use."""
        return not self.claims.is_useless

    @property
    def notes(self) -> list[str]:
        told = [*(self.data.notes if self.data else ()), *self.done.notes]
        return [*told, *(self.score.notes if self.score else ())]

    def to_json(self) -> Json:
        data = self.data
        told = self.facts() | {
            "recipe": text_of(self.done.recipe),
            "data": None if data is None else data.source,
            "samples": 0 if data is None else len(data),
            "random_data": self.is_random,
            "preparation": "" if data is None else preparation_text(data),
            "claims": self.claims.facts(),
            **self.speed.facts(),
            "predicted_us": self.done.forms and self.done.forms.predicted_us,
            "mixed_outputs": [one._asdict() for one in self.mixed],
            "notes": self.notes,
        }
        return told if self.score is None else told | {"evaluation": score_facts(self.score)}

    def _repr_html_(self) -> str:
        return show_html(self, self.notes)


@check_types
def quantize(
    model: Source,
    data: Given | None = None,
    *,
    to: str = Quantize.to,
    out: Place | None = None,
    io: str = Quantize.io,
    keep: OpNames | None = None,
    only: OpNames | None = None,
    ranges: str = Quantize.ranges,
    per_tensor: bool = False,
    block: int = Quantize.block,
    effort: str = "default",
    on: str = "cpu:1",
    fully_integer: bool = False,
    samples: int | None = None,
    random_data: bool = False,
    runs: int | None = None,
    eval: Given | None = None,
    trust_data: bool = False,
    progress: Progress = silent,
    **options: Unpack[Preparing],
) -> Quantized:
    """Makes a model smaller: weights, and data between the ops, as small numbers; and times it.

    >>> litesmith.quantize("model.tflite", "val.npz", to="int8", runs=12).save("small.tflite")

    Integer schemes need data, or `random_data` to measure speed only. With int8, ops that are
    faster in float `on` the target stay float, unless the result is to be `fully_integer`. Both
    models are timed there in so many `runs`. `eval` is other data, which both are scored on.
    """
    refuse_below("samples", samples, 1)
    refuse_below("runs", runs, 1)
    refuse_below("block", block, 0)
    target = Target.parse(on)
    place = read_place(out, model)
    if random_data and data is not None:
        pair = argument("data"), argument("random_data")
        raise BadInput("{data} and {random_data}: give one of them", pair[0], pair[1])
    names = read_names(keep), read_names(only)
    step = Quantize(to, io, *names, ranges, not per_tensor, block)
    preparation = read_preparation(**options)
    given = Calibration(data, preparation, samples, random_data, trust_data)
    source = open_source(model)
    on_cpu = target.kind == "cpu" and io == "float" and not fully_integer
    todo = plan(source.model, step, effort, has_data=given.is_given, on_cpu=on_cpu)
    _refuse_early(source, step, given)
    if given.is_given:
        _refuse_options(source.model, todo)
    judging = open_judging(eval, source.model, preparation, progress)
    calibration = open_calibration(source.model, given, judging, progress)
    chosen = None if fully_integer else target
    try:
        done = carry_out(source.model, todo, calibration, target=chosen, progress=progress)
    except CannotRun as error:  # of what was made on the way
        raise dead(source.model, todo.recipes[0], str(error)) from None
    refuse_dead(done.change.model, source.model, done.recipe)
    _tell(done, calibration, progress)
    next_data = scoring_options(eval, options, calibration)
    checked = _check(source, done, place, calibration, judging, effort, target, runs, progress)
    mixed = _Mixed()
    if calibration is not None and not checked.claims.is_useless and SCHEMES[to].is_integer:
        again = partial(_again, source, step, effort, calibration, chosen)
        mixed = _mixed(source, done, calibration, again)
    return Quantized(
        source,
        place,
        done.change,
        step,
        done,
        checked.claims,
        calibration,
        checked.speed,
        checked.score,
        next_data,
        *mixed,
        fully_integer=fully_integer,
    )


def _again(
    source: SourceFile,
    step: Quantize,
    effort: str,
    data: Data,
    target: Target | None,
    keep: Sequence[str],
) -> Outcome:
    """The model once more, with more ops kept."""
    more = replace(step, keep=(*step.keep, *keep))
    todo = plan(source.model, more, effort, has_data=True)
    return carry_out(source.model, todo, data, target=target)


class _Mixed(NamedTuple):
    """Outputs whose small numbers are lost, the ops that make them, and the recipe that has these
    in int16."""

    found: tuple[MixedOutput, ...] = ()
    keep: tuple[str, ...] = ()
    in_int16: str = ""


def _mixed(
    source: SourceFile, done: Outcome, data: Data, again: Callable[[Sequence[str]], Outcome]
) -> _Mixed:
    """Outputs whose small numbers are lost, with what they keep by each cure."""
    found = mixed_outputs(done.change.model, source.model, data, source.model)
    keep = makers(source.model, found)
    if not keep:
        return _Mixed(found)
    kept = again(keep)
    cured, step = try_cures(found, kept.change.model, source.model, data)
    return _Mixed(cured, keep, text_of((*kept.recipe, step)))


class _Checked(NamedTuple):
    """What is found of a written file."""

    claims: Claims
    speed: SpeedCheck
    score: Evaluation | None


def _tell(done: Outcome, data: Data | None, progress: Progress) -> None:
    for note in done.notes:
        progress(Note(note))
    if data is not None and data.items.is_random:
        progress(Note(data.notes[0], WARNING))


def _check(
    source: SourceFile,
    done: Outcome,
    out: Path | None,
    data: Data | None,
    judging: Data | None,
    effort: str,
    target: Target,
    runs: int | None,
    progress: Progress,
) -> _Checked:
    """The claims, the time, and the score where there is data to score it on."""
    with _written(done.change.model, out) as path:
        file = source.path if source.is_file else None  # a pipe is read only once
        claims = check_claims(
            path, source.model, data, done.change.skipped, file, profiled=effort != "quick"
        )
        if claims.failure:
            return _Checked(claims, SpeedCheck(None, claims.failure), None)
        file_made = MadeFile(source, done.recipe, done.change.model, path)
        speed = SpeedCheck(None, _NOT_TIMED)
        if effort != "quick" or runs is not None:
            speed = check_speed(file_made, target, runs, progress)
        made = SourceFile(done.change.model, path)
        found = None if judging is None else score(made, source, judging, progress)
        return _Checked(claims, speed, found)


@contextmanager
def _written(model: Model, out: Path | None) -> Generator[Path]:
    """The file of a model; one that goes away where none was asked for."""
    if out is not None:
        save(model, out)
        yield out
        return
    with temporary_folder() as folder:
        path = folder / "model.tflite"
        save(model, path)
        yield path


def _refuse_early(source: SourceFile, step: Quantize, given: Calibration) -> None:
    """Raises before any data is read where it would be read in vain."""
    held = integer_tensors(source.model)
    if held and not step.keep and not step.only and not computes_in_float(source.model):
        raise BadInput(
            "{model}: is quantized already, {scheme}; {way_out}",
            source.path or source.name,
            scheme(source.model),
            _way_out(source.model),
        )
    if SCHEMES[step.to].is_integer and not given.is_given:
        raise BadInput(
            "{to} needs data to see the ranges inside the model; give {data}, or take "
            "{dynamic}, which needs none, or {random_data} to measure speed only",
            argument("to", step.to),
            argument("data"),
            argument("to", "dynamic"),
            argument("random_data", True),
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


def _way_out(model: Model) -> Phrase:
    if legacy_tensors(model):
        return phrase('litesmith apply MODEL "upgrade" -o OUT.tflite makes it a faster int8 one')
    return phrase(
        "start from the float model, or name the float ops to change with {only}", argument("only")
    )
