"""Options that every command with data has, and what becomes of them."""

import sys
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Annotated, NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from litesmith.calibration.context import CALIBRATION_SAMPLES, RandomSamples, problems
from litesmith.cli.options.declare import option
from litesmith.cli.text.deliver import say as say
from litesmith.data.lint import lint_evaluation
from litesmith.data.preparation import NORMS, RESIZES, Preparation
from litesmith.data.samples import Data, Sample, WatchedData
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.lang import language
from litesmith.phrases import phrase

DataSource = Annotated[
    str | None,
    option(
        "--data",
        metavar="D",
        help="A folder of images, or of class folders; .npz with x and y; .npy; module:function.",
        show_default=False,
    ),
]
SampleCount = Annotated[
    int | None,
    option(
        "--samples", min=1, help="Use so many, spread over the classes. [all]", show_default=False
    ),
]
Mean = Annotated[
    str | None,
    option(
        "--mean",
        metavar="M",
        help="Pixels of 0 to 255 become (x − M) / S; one number or three, as in 127.5.",
        show_default=False,
    ),
]
Std = Annotated[
    str | None,
    option("--std", metavar="S", help="See --mean.", show_default=False),
]
NormName = Annotated[
    str | None,
    option(
        "--norm",
        metavar="|".join(NORMS),
        help="The same by name. [from the model, or guessed and said]",
        show_default=False,
    ),
]
Resize = Annotated[
    str, option("--resize", metavar="|".join(RESIZES), help="How images are resized.")
]
Crop = Annotated[
    float,
    option("--crop", help="The central share of an image that is kept; 0 squashes it."),
]
LabelOffset = Annotated[
    int | None,
    option(
        "--label-offset",
        help="Added to labels, 1 for a background class. [detected and said]",
        show_default=False,
    ),
]

CalibrationCount = Annotated[
    int | None,
    option(
        "--samples",
        min=1,
        help=f"Calibrate on so many, spread over the classes. [{CALIBRATION_SAMPLES}]",
        show_default=False,
    ),
]
TrustData = Annotated[bool, option("--trust-data", help="Go on although the data looks wrong.")]

DEFAULT_RESIZE, DEFAULT_CROP = Preparation.resize, Preparation.crop


class ImageOptions(NamedTuple):
    """The options on images as they were typed."""

    mean: str | None = None
    std: str | None = None
    norm: str | None = None
    resize: str = DEFAULT_RESIZE
    crop: float = DEFAULT_CROP
    label_offset: int | None = None

    def preparation(self) -> Preparation:
        """What they ask for, or BadInput."""
        mean, std = _numbers("--mean", self.mean), _numbers("--std", self.std)
        return Preparation(mean, std, self.norm or "", self.resize, self.crop, self.label_offset)


def open_given(
    source: str, model: Model, options: ImageOptions, *, samples: int | None = None
) -> Data:
    """The data that the options name; what was chosen for the user is said on stderr."""
    data = open_data(source, model, preparation=options.preparation(), samples=samples)
    say_notes(data)
    return data


def open_evaluation(
    source: str, model: Model, options: ImageOptions, *, samples: int | None = None
) -> Data:
    """Data to score a model on, with a warning of each thing that looks wrong with it."""
    data = open_given(source, model, options, samples=samples)
    for problem in lint_evaluation(data, model):
        say(
            "warning",
            phrase(
                "{source}: {what}: {why}; {fix}",
                data.source,
                problem.what,
                problem.why,
                problem.fix,
            ),
        )
    return data


def typed(options: ImageOptions, samples: int | None = None) -> str:
    """The options on data as they were typed, so that a command reads it in the same way."""
    given = {**options._asdict(), "samples": samples}
    usual = {**ImageOptions()._asdict(), "samples": None}
    return "".join(
        f" --{name.replace('_', '-')} {quote(str(value))}"
        for name, value in given.items()
        if value != usual[name]
    )


def say_notes(data: Data) -> None:
    """One line on stderr for each choice that was made for the user."""
    for note in data.notes:
        say("note", note)


class Calibration(NamedTuple):
    """The data that steps look at, as it was asked for.

    random   True for random numbers in place of data
    trusted  True where data that looks wrong is to be used
    quiet    True where a program reads the output
    """

    source: str | None
    options: ImageOptions
    samples: int | None = None
    random: bool = False
    trusted: bool = False
    quiet: bool = False

    @property
    def is_given(self) -> bool:
        return self.source is not None or self.random


def open_calibration(
    model: Model, given: Calibration, evaluation: Data | None = None
) -> Data | None:
    """The data, looked at before long work is based on it; None where none was given."""
    count = given.samples or CALIBRATION_SAMPLES
    if given.random:
        return RandomSamples(model, count, given.options.preparation())
    if given.source is None:
        return None
    data = open_data(
        given.source,
        model,
        preparation=given.options.preparation(),
        samples=count,
        is_asked=given.samples is not None,
    )
    say_notes(data)
    for problem in problems(data, model, evaluation):
        told = f"{data.source}: {problem.what}: {problem.why}; {problem.fix}"
        if problem.serious and not given.trusted:
            raise BadInput("{told}, or use it anyway with --trust-data", told)
        say("warning", told)
    return data


def with_progress(data: Data, what: str, *, quiet: bool = False) -> Data:
    """The same data with a bar on the terminal, which goes away; none where nobody looks."""
    if quiet or not sys.stderr.isatty():
        return data

    def watch(samples: Iterable[Sample]) -> Iterator[Sample]:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        console = Console(stderr=True)
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as shown:
            yield from shown.track(samples, total=len(data), description=language.say(what))

    return WatchedData(data, watch)


def _numbers(option: str, text: str | None) -> tuple[float, ...]:
    """`127.5` or `1,2,3` as numbers."""
    if text is None:
        return ()
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise BadInput(
            "{option} {what}: give one number or three, as in 127.5 or 1,2,3", option, text
        ) from None
