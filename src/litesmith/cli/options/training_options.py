"""Options that every command that trains has, and what becomes of them."""

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple, NoReturn

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of, problems
from litesmith.cli.options.data_options import (
    Calibration,
    open_calibration,
    open_given,
    say,
    with_progress,
)
from litesmith.cli.options.declare import option
from litesmith.data.lint import lint
from litesmith.data.samples import Data
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.types import Model
from litesmith.lang import language
from litesmith.passes.core import recipe as recipes
from litesmith.passes.core.recipe import Recipe, step_name
from litesmith.passes.core.step import Change, Context, Masks, Tools, Tune, Tuned
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.regression.size_report import Shrunk, shrunk
from litesmith.tflite.file import save
from litesmith.training.recipe_context import Record, has_torch, training_context, trainings
from litesmith.training.settings import AUGMENTS, RECORD_SECONDS, Look, Training
from litesmith.units import number_text

# Steps that give weights zeros or codes, and those whose results are weighed.
_SHAPING = ("prune", "cluster")
_SHRINKING = (*_SHAPING, "qat")

# What lies in the folder of a training: records, and what a kill has left of them.
_RECORDS, _TORN = "stage-*.pt", ".litesmith-*.part"

_BAR_WIDTH = 10

Epochs = Annotated[float, option("--epochs", help="Times that each sample is used.")]
Minutes = Annotated[
    float | None,
    option("--minutes", help="Train no longer than this. [no limit]", show_default=False),
]
Rate = Annotated[
    float | None,
    option(
        "--rate",
        help="Learning rate in units of each weight's size. [several are tried]",
        show_default=False,
    ),
]
Batch = Annotated[
    int,
    option("--batch", help="Samples a step. [as many as suit]", show_default=False),
]
LabelShare = Annotated[
    float,
    option(
        "--labels",
        metavar="SHARE",
        help="Share of the loss for labels, 0 to 1; the rest follows the original.",
    ),
]
AugmentName = Annotated[
    str,
    option(
        "--augment",
        metavar="|".join(AUGMENTS),
        help="Mirror and move colour pictures; mix for a hundred epochs; shift if mirrors mislead.",
    ),
]
Seed = Annotated[int, option("--seed", help="Of the order of samples, and all chance.")]
Device = Annotated[str, option("--device", metavar="auto|cpu|cuda", help="Where to train.")]
Resume = Annotated[bool, option("--resume", help="Go on with an interrupted training.")]
RecordEvery = Annotated[
    float, option("--record-every", metavar="SECONDS", help="Between two records to go on from.")
]
TimedRuns = Annotated[
    int | None,
    option("--runs", help="Time both files in so many runs. [for a second]", show_default=False),
]
NoTune = Annotated[bool, option("--no-tune", help="Train nothing, also where there is data.")]
TrainingCount = Annotated[
    int | None,
    option(
        "--samples",
        min=1,
        help=f"Use so many, spread over the classes. [all to train, else {CALIBRATION_SAMPLES}]",
        show_default=False,
    ),
]


@dataclass(frozen=True, eq=False)
class Job:
    """A recipe that may train, as it was asked for.

    given      the data, where there is some
    resume     True to go on with what an interrupted run has left
    reference  the float model that a quantized one was made from
    every      seconds between two records of a training
    runs       both files are timed in so many; None for about a second
    """

    model: Model
    out: Path
    recipe: Recipe
    given: Calibration
    training: Training
    resume: bool = False
    reference: Path | None = None
    every: float = RECORD_SECONDS
    runs: int | None = None

    @property
    def folder(self) -> Path:
        """Where the records of its trainings lie, until the result is written."""
        return self.out.with_name(f"{self.out.name}.training")

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
    trained  how each training went, a sentence each
    """

    change: Change
    shaped: tuple[Model, ...]
    trained: tuple[str, ...]
    data: Data | None

    @property
    def is_trained(self) -> bool:
        """True where a training took a step."""
        return self.change.steps > 0


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
    if not job.trains:
        if job.resume:
            raise BadInput("--resume: nothing is trained here: that needs a step, --data and torch")
        return
    folder = job.folder
    if folder.exists() and not folder.is_dir():
        raise BadInput("{folder}: is in the way of the records of a training; move it away", folder)
    if job.resume and not folder.is_dir():
        raise BadInput(
            "{folder}: does not exist, so there is no training to go on with; leave out --resume",
            folder,
        )


def carry_out(job: Job, evaluation: Data | None = None) -> Done:
    """Applies the recipe and writes the result; what was trained is kept until then."""
    opened = _opened(job, evaluation)
    if opened is not None:
        opened = with_progress(opened, phrase("looking at the data"), quiet=job.given.quiet)
    lessons = _Lessons(job)
    context = lessons.watched(_context(job, opened, lessons))
    with _kept(job, lessons):
        change, shaped = _applied(job, context, lessons)
        save(change.model, job.out)
    if job.trains:
        forget(job.folder)
    return Done(change, shaped, tuple(lessons.told), opened)


def _context(job: Job, data: Data | None, lessons: "_Lessons") -> Context:
    if data is None:
        return context_of(None, job.reference)
    return training_context(
        job.model,
        data,
        job.recipe,
        job.training,
        reference=job.reference,
        record=Record(job.folder, job.resume, job.every),
        watch=lessons.watch,
    )


def _opened(job: Job, evaluation: Data | None) -> Data | None:
    """The data, looked at before long work is based on it; all of it where it is trained on."""
    given = job.given
    if not job.trains or given.source is None:
        return open_calibration(job.model, given, evaluation)
    data = open_given(given.source, job.model, given.options, samples=given.samples)
    look = lint if job.training.labels else problems
    for problem in look(data, job.model, evaluation=evaluation):
        told = f"{data.source}: {problem.what}: {problem.why}; {problem.fix}"
        if problem.serious and not given.trusted:
            raise BadInput("{told}, or use it anyway with --trust-data", told)
        say("warning", told)
    return data


def _applied(job: Job, context: Context, lessons: "_Lessons") -> tuple[Change, tuple[Model, ...]]:
    """The recipe part by part, and the models whose zeros and codes are to stay."""
    model = job.model
    shaped: list[Model] = []
    whole = Change(model)
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


def weighed(path: Path, job: Job, done: Done) -> Shrunk:
    """What the file that was given and the one that was written cost."""
    if path.is_file():
        return shrunk(path, job.out, promised=done.shaped, runs=job.runs)
    with TemporaryDirectory() as folder:  # a pipe is read only once
        copy = Path(folder) / "model.tflite"
        save(job.model, copy)
        return shrunk(copy, job.out, promised=done.shaped, runs=job.runs)


class _Lessons:
    """The trainings of a job: how far they are, on the terminal, and what is said of them."""

    def __init__(self, job: Job) -> None:
        self._folder, self._resumes = job.folder, job.resume
        self._shown = _Bar() if sys.stderr.isatty() and not job.given.quiet else None
        self.step = ""
        self.begun = False
        self.told: list[str] = []

    def watch(self, look: Look) -> None:
        self.begun = True
        if self._shown is not None:
            self._shown.show(self.step, look)

    def watched(self, context: Context) -> Context:
        """The same context with a folder for records once something is trained."""
        inner = context.tune
        return context if inner is None else replace(context, tune=self._around(inner))

    def _around(self, inner: Tune) -> Tune:
        def tune(model: Model, *, origin: Model | None = None, masks: Masks | None = None) -> Tuned:
            self._make_folder()
            try:
                found = inner(model, origin=origin, masks=masks)
            finally:
                if self._shown is not None:
                    self._shown.close()
            self.told += [phrase("{step}: {note}", self.step, note) for note in found.notes]
            return found

        return tune

    def _make_folder(self) -> None:
        if not self.begun and not self._resumes and has_record(self._folder):
            say(
                "note",
                phrase("{folder}: of an interrupted training, which starts anew", self._folder),
            )
            forget(self._folder)
        self._folder.mkdir(exist_ok=True)


class _Bar:
    """A bar on the terminal while something is trained, which goes away."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._what = ""

    def show(self, step: str, look: Look) -> None:
        if self._progress is None or look.what != self._what:
            self.close()
            self._progress, self._what = _progress(), look.what
            self._progress.start()
            what = language.say(f"{step}: {look.what}")
            self._task = self._progress.add_task(what, total=look.steps, loss="")
        losses = phrase(
            "loss {number} ({number2} at first)", number_text(look.best), number_text(look.first)
        )
        self._progress.update(self._task, completed=look.step, loss=language.say(losses))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(_BAR_WIDTH),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
        console=Console(stderr=True),
        transient=True,
    )


def has_record(folder: Path) -> bool:
    return any(folder.glob(_RECORDS))


def forget(folder: Path) -> None:
    """Takes the records of trainings away; a file that is none of them stays, and the folder."""
    for path in (*folder.glob(_RECORDS), *folder.glob(_TORN)):
        path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _kept(job: Job, lessons: _Lessons) -> Generator[None]:
    """Whatever interrupts the work says how to go on with it; what would come again does not."""
    try:
        yield
    except BaseException as error:
        is_outside = isinstance(error.__context__, OSError)  # a full disk, a file that is gone
        if not isinstance(error, LitesmithError) or (lessons.begun and is_outside):
            _note(error, job)
        raise
    finally:
        with suppress(OSError):  # where it is not there, or holds something
            job.folder.rmdir()


def _note(error: BaseException, job: Job) -> None:
    if job.trains and has_record(job.folder):
        error.add_note(phrase("{folder} keeps what was trained: --resume goes on", job.folder))
