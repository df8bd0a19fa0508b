"""Data as a user hands it over: opened, looked at, and described so that it can be typed again."""

from os import PathLike
from os.path import exists
from typing import NamedTuple

from litesmith.accuracy.evaluate import refuse_misfit
from litesmith.arguments import argument
from litesmith.calibration.context import CALIBRATION_SAMPLES, RandomSamples, problems
from litesmith.data.lint import Problem, lint_evaluation
from litesmith.data.preparation import Preparation, Preparing
from litesmith.data.samples import Data
from litesmith.data.sources import Given, open_data
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.operating_system import quote
from litesmith.phrases import Phrase, phrase
from litesmith.progress import WARNING, Note, Progress
from litesmith.units import number_text


class Calibration(NamedTuple):
    """The data that steps look at, as it was asked for.

    random   True for random numbers in place of data
    trusted  True where data that looks wrong is to be used
    """

    source: Given | None
    preparation: Preparation
    samples: int | None = None
    random: bool = False
    trusted: bool = False

    @property
    def is_given(self) -> bool:
        return self.source is not None or self.random

    @property
    def is_trusted(self) -> bool:
        """True where data that looks wrong is used, and the user told: what a program holds in
        memory is its own choice."""
        return self.trusted or not isinstance(self.source, str | PathLike)


def open_given(
    source: Given,
    model: Model,
    preparation: Preparation,
    progress: Progress,
    *,
    samples: int | None = None,
) -> Data:
    """The data of a user; what was chosen on their behalf is told."""
    data = open_data(source, model, preparation=preparation, samples=samples)
    tell_notes(data, progress)
    return data


def open_evaluation(
    source: Given,
    model: Model,
    preparation: Preparation,
    progress: Progress,
    *,
    samples: int | None = None,
) -> Data:
    """Data to score a model on, with a warning of each thing that looks wrong with it."""
    data = open_given(source, model, preparation, progress, samples=samples)
    for problem in lint_evaluation(data, model):
        progress(Note(problem_text(data, problem), WARNING))
    return data


def open_judging(
    source: Given | None, model: Model, preparation: Preparation, progress: Progress
) -> Data | None:
    """Data to score a model and its result on; None where none was given."""
    if source is None:
        return None
    data = open_evaluation(source, model, preparation, progress)
    refuse_misfit(model, data)
    return data


def open_calibration(
    model: Model, given: Calibration, evaluation: Data | None, progress: Progress
) -> Data | None:
    """The data, looked at before long work is based on it; None where none was given."""
    count, is_asked = given.samples or CALIBRATION_SAMPLES, given.samples is not None
    if given.random:
        return RandomSamples(model, count, given.preparation)
    if given.source is None:
        return None
    data = open_data(
        given.source, model, preparation=given.preparation, samples=count, is_asked=is_asked
    )
    tell_notes(data, progress)
    refuse_problems(data, problems(data, model, evaluation), given, progress)
    return data


def refuse_problems(
    data: Data, found: list[Problem], given: Calibration, progress: Progress
) -> None:
    """Raises for the first serious problem, unless the data is trusted; the others are told."""
    for problem in found:
        told = problem_text(data, problem)
        if problem.serious and not given.is_trusted:
            trusted = argument("trust_data", True)
            raise BadInput("{problem}, or use it anyway with {trusted}", told, trusted)
        progress(Note(told, WARNING))


def problem_text(data: Data, problem: Problem) -> Phrase:
    return phrase(
        "{source}: {what}: {why}; {fix}", data.source, problem.what, problem.why, problem.fix
    )


def tell_notes(data: Data, progress: Progress) -> None:
    """Passes on what was chosen on the user's behalf."""
    for note in data.notes:
        progress(Note(note))


def type_options(preparing: Preparing, samples: int | None = None) -> str:
    """The options on data as they are typed, so that a command reads it in the same way."""
    given = {**preparing, "samples": samples}
    names = (*Preparing.__annotations__, "samples")
    return "".join(
        f" --{name.replace('_', '-')} {quote(_typed(given[name]))}"
        for name in names
        if given.get(name) is not None
    )


def _typed(value: object) -> str:
    if isinstance(value, tuple | list):
        return ",".join(number_text(one) for one in value)  # pyright: ignore
    return str(value)


def scoring_options(judges: Given | None, preparing: Preparing, data: Data | None) -> str:
    """The options that name data to score a result on, read as its own data was: what was given to
    judge by, else that data itself where it has labels."""
    words = type_options(_settle_options(preparing, data))
    own = data.source if judges is None and data is not None and _is_labelled(data) else ""
    return f"--data {quote(source_text(judges) or own or 'LABELLED_DATA')}{words}"


def _is_labelled(data: Data) -> bool:
    """Whether data that a command can name has labels."""
    stored = data.items.stored
    if stored is None or not exists(data.source):
        return False
    return any(sample.label is not None for sample in stored.spread(1).one_by_one())


def _settle_options(preparing: Preparing, data: Data | None) -> Preparing:
    """The options with the normalisation that was chosen for the user."""
    known = None if data is None else data.items.preparation
    is_chosen = any(preparing.get(name) is not None for name in ("mean", "std", "norm"))
    if known is None or is_chosen or not known.is_chosen:
        return preparing
    if known.norm:
        return {**preparing, "norm": known.norm}
    norm = known.as_norm()
    return {**preparing, "mean": norm.mean, "std": norm.std}


def source_text(source: Given | None) -> str:
    """How the data is named in a command."""
    return source if isinstance(source, str) else "" if source is None else str(source)
