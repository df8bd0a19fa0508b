"""A recipe that may train, carried out: the data is opened, the result written, records kept."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, NoReturn

from litesmith.anatomy.source_file import SourceFile
from litesmith.arguments import argument
from litesmith.calibration.context import context_of, problems
from litesmith.data.lint import lint
from litesmith.data.samples import Data
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.front.given_data import Calibration, open_calibration, open_given, refuse_problems
from litesmith.ir.types import Model
from litesmith.passes.core import recipe as recipes
from litesmith.passes.core.recipe import Recipe, step_name
from litesmith.passes.core.step import Change, Context, Masks, Tools, Tune, Tuned
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.progress import Note, Progress, silent
from litesmith.regression.size_report import Shrunk, report_sizes
from litesmith.temporary import temporary_folder
from litesmith.tflite.file import save
from litesmith.training.recipe_context import has_torch, training_context, trainings
from litesmith.training.settings import RECORD_SECONDS, Look, Training, TrainingRecord, look_status

# Steps that give weights zeros or codes, and those whose results are weighed.
_SHAPING = ("prune", "cluster")
_SHRINKING = (*_SHAPING, "qat")

# What lies in the folder of a training: records, and what a kill has left of them.
_RECORDS, _TORN = "stage-*.pt", ".litesmith-*.part"


@dataclass(frozen=True, eq=False)
class Job:
    """A recipe that may train, as it was asked for.

    out           the file to write; None where the result stays in memory
    given         the data, where there is some
    resume        True to continue what an interrupted run has left
    reference     the float model that a quantized one was made from
    record_every  seconds between two records of a training
    runs          number of runs that both files are timed in; None for about a second
    refine        the recipe once data is there to look at, and what is to be said of it
    """

    source: SourceFile
    out: Path | None
    recipe: Recipe
    given: Calibration
    training: Training
    resume: bool = False
    reference: Model | Path | None = None
    record_every: float = RECORD_SECONDS
    runs: int | None = None
    progress: Progress = silent
    refine: Callable[[Data], tuple[Recipe, tuple[str, ...]]] | None = None

    @property
    def model(self) -> Model:
        return self.source.model

    @property
    def folder(self) -> Path | None:
        """Where the records of its trainings lie, until the result is written."""
        return None if self.out is None else self.out.with_name(f"{self.out.name}.training")

    @property
    def shrinks(self) -> bool:
        """True where the result is one to be weighed."""
        return any(step_name(step) in _SHRINKING for step in self.recipe)

    @property
    def prunes(self) -> bool:
        return any(step_name(step) == "prune" for step in self.recipe)

    @property
    def trains(self) -> bool:
        has_steps = self.given.source is not None and trainings(self.recipe) > 0
        return has_steps and has_torch()


class Done(NamedTuple):
    """What came of a job.

    shaped   the models after steps that make zeros and codes, which are to be in the result
    recipe   that was applied
    trained  how each training went, a sentence each
    costs    of the file that was given and the one that was written, where they were weighed
    """

    change: Change
    recipe: Recipe
    shaped: tuple[Model, ...]
    trained: tuple[str, ...]
    data: Data | None
    costs: Shrunk | None = None


def refuse_early(job: Job) -> None:
    """Raises before any data is read where it would be read in vain."""
    _refuse_order(job.recipe)
    _refuse_record(job)
    if job.trains and job.training.device not in ("auto", "cpu"):
        from litesmith.training.step_tuner import device_named

        device_named(job.training.device)
    if job.given.source is None or not job.shrinks:
        return
    context = replace(context_of(None, job.reference), tools=Tools(_stop, _stop, _stop), tune=_stop)
    with suppress(_Stopped):  # the steps say what they think of the model and their settings
        recipes.apply(job.model, job.recipe, context)


class _Stopped(CannotApply):
    """A step has asked for data."""


def _stop(*_: object, **__: object) -> NoReturn:
    raise _Stopped("no data is read yet")


def _refuse_order(recipe: Recipe) -> None:
    """Raises where a step finds weights that one before it has made integers."""
    before = ""
    for step in recipe:
        name = step_name(step)
        if before and name in _SHRINKING:
            raise BadInput(
                "{name} works on float weights; put it before {before}, or leave it out",
                name,
                before,
            )
        if isinstance(step, Quantize | Qat) and step.to != "float16":
            before = before or name


def _refuse_record(job: Job) -> None:
    folder, resume = job.folder, argument("resume", True)
    if not job.trains or folder is None:
        if job.resume:
            raise BadInput(
                "{resume}: nothing is trained here: that needs a step, {data}, {out} and torch",
                resume,
                argument("data"),
                argument("out"),
            )
        return
    if folder.exists() and not folder.is_dir():
        raise BadInput("{folder}: is in the way of the records of a training; move it away", folder)
    if job.resume and not folder.is_dir():
        raise BadInput(
            "{folder}: does not exist, so there is no training to go on with; leave out {resume}",
            folder,
            resume,
        )


def carry_out(job: Job, evaluation: Data | None = None) -> Done:
    """Applies the recipe and writes the result; what was trained is kept until then."""
    data = _open(job, evaluation)
    if job.refine is not None and data is not None:
        recipe, notes = job.refine(data)
        job = replace(job, recipe=recipe)
        for note in notes:
            job.progress(Note(note))
    lessons = Lessons(job)
    context = lessons.wrap(_context(job, data, lessons))
    with keep_records(job, lessons):
        change, shaped = _apply(job, context, lessons)
        if job.out is not None:
            save(change.model, job.out)
    if job.trains and job.folder is not None:
        forget(job.folder)
    done = Done(change, job.recipe, shaped, tuple(lessons.told), data)
    return done._replace(costs=_weigh(job, job.out, done)) if job.out and job.shrinks else done


def _context(job: Job, data: Data | None, lessons: "Lessons") -> Context:
    if data is None:
        return context_of(None, job.reference)
    return training_context(
        job.model,
        data,
        job.recipe,
        job.training,
        reference=job.reference,
        record=TrainingRecord(job.folder, job.resume, job.record_every),
        watch=lessons.watch,
        progress=job.progress,
    )


def _open(job: Job, evaluation: Data | None) -> Data | None:
    """The data, looked at before long work is based on it; all of it where it is trained on."""
    given = job.given
    if not job.trains or given.source is None:
        return open_calibration(job.model, given, evaluation, job.progress)
    data = open_given(
        given.source, job.model, given.preparation, job.progress, samples=given.samples
    )
    look = lint if job.training.labels else problems
    refuse_problems(data, look(data, job.model, evaluation=evaluation), given, job.progress)
    return data


def _apply(job: Job, context: Context, lessons: "Lessons") -> tuple[Change, tuple[Model, ...]]:
    """The recipe part by part, and the models whose zeros and codes are to stay."""
    shaped: list[Model] = []
    whole = Change(job.model)
    for part in _parts(job.recipe):
        lessons.step = next((name for name in map(step_name, part) if name in _SHRINKING), "")
        whole = recipes.apply(whole.model, part, context).after(whole)
        if step_name(part[-1]) in _SHAPING:
            shaped.append(whole.model)
    return whole, tuple(shaped)


def _parts(recipe: Recipe) -> Iterator[Recipe]:
    """The recipe, cut after each step that gives weights zeros or codes: all is float there, so
    that each part begins with the reference that the whole would have."""
    start = 0
    for end, step in enumerate(recipe, 1):
        if step_name(step) in _SHAPING or end == len(recipe):
            yield recipe[start:end]
            start = end


def _weigh(job: Job, out: Path, done: Done) -> Shrunk:
    """What the file that was given and the one that was written cost."""
    path = job.source.path
    if path is not None and path.is_file():
        return report_sizes(path, out, promised=done.shaped, runs=job.runs, progress=job.progress)
    with temporary_folder() as folder:  # a pipe is read only once
        copy = folder / "model.tflite"
        save(job.model, copy)
        return report_sizes(copy, out, promised=done.shaped, runs=job.runs, progress=job.progress)


class Lessons:
    """The trainings of a job: how far they have come, and what is said of them."""

    def __init__(self, job: Job) -> None:
        self._folder, self._resumes, self._progress = job.folder, job.resume, job.progress
        self.step = ""
        self.begun = False
        self.told: list[str] = []

    def watch(self, look: Look) -> None:
        """Passes on how far a training has come."""
        self.begun = True
        self._progress(look_status(look, phrase("{step}: {what}", self.step, look.what)))

    def wrap(self, context: Context) -> Context:
        """The same context with a folder for records once something is trained."""
        inner = context.tune
        return context if inner is None else replace(context, tune=self._around(inner))

    def _around(self, inner: Tune) -> Tune:
        def tune(model: Model, *, origin: Model | None = None, masks: Masks | None = None) -> Tuned:
            self._make_folder()
            found = inner(model, origin=origin, masks=masks)
            self.told += [phrase("{step}: {note}", self.step, note) for note in found.notes]
            return found

        return tune

    def _make_folder(self) -> None:
        if self._folder is None:
            return
        if not self.begun and not self._resumes and has_record(self._folder):
            told = phrase("{folder}: of an interrupted training, which starts anew", self._folder)
            self._progress(Note(told))
            forget(self._folder)
        self._folder.mkdir(exist_ok=True)


def has_record(folder: Path) -> bool:
    return any(folder.glob(_RECORDS))


def forget(folder: Path) -> None:
    """Takes the records of trainings away; a file that is none of them stays, and the folder."""
    for path in (*folder.glob(_RECORDS), *folder.glob(_TORN)):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def keep_records(job: Job, lessons: Lessons) -> Generator[None]:
    """Whatever interrupts the work says how to continue it; what would come again does not."""
    folder = job.folder
    try:
        yield
    except BaseException as error:
        is_outside = isinstance(error.__context__, OSError)  # a full disk, a file that is gone
        is_ours = isinstance(error, LitesmithError) and not (lessons.begun and is_outside)
        if not is_ours and job.trains and folder is not None and has_record(folder):
            resume = argument("resume", True)
            error.add_note(
                phrase("{folder} keeps what was trained: {resume} continues", folder, resume)
            )
        raise
    finally:
        if folder is not None:
            with suppress(OSError):  # where it is not there, or holds something
                folder.rmdir()
