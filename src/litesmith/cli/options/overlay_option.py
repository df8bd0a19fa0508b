"""The option --overlay of profile and doctor: what they found, for Model Explorer."""

from pathlib import Path
from typing import Annotated, NamedTuple

from litesmith.cli.options.data_options import say, with_progress
from litesmith.cli.options.declare import option
from litesmith.cli.text import printing as show
from litesmith.data.samples import Data
from litesmith.diagnosis.float_pairs import inseparable
from litesmith.diagnosis.op_errors import op_errors, shown_model
from litesmith.diagnosis.remedies import Pair
from litesmith.diagnosis.verdict import MOST_SAMPLES, spread
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Model
from litesmith.pages.overlay import (
    Overlay,
    errors_overlay,
    opening_command,
    refuse_name,
    times_overlay,
    write_overlay,
)
from litesmith.passes.core.recipe import is_float
from litesmith.phrases import phrase
from litesmith.profiling.op_times import Profile
from litesmith.tflite.file import refuse_output
from litesmith.units import plain

TimesFile = Annotated[
    Path | None,
    option(
        "--overlay",
        metavar="FILE.json",
        help="Write the time of each op for Model Explorer, which colours the graph by it.",
        show_default=False,
    ),
]

OverlayFile = Annotated[
    Path | None,
    option(
        "--overlay",
        metavar="FILE.json",
        help="Write the time of each op, with --data its error, for Model Explorer.",
        show_default=False,
    ),
]


def refuse_overlay(path: Path, model: Path) -> None:
    """Raises before the work where the file could not be written after it."""
    refuse_name(path)
    refuse_output(path, model)


def refuse_errors(content: Model, reference: Model | None) -> None:
    """Raises before the work where the errors of single ops cannot be told."""
    if reference is None and not is_float(content):
        raise BadInput("doctor --overlay shows errors beside a float model; give --against FLOAT")
    why_not = inseparable(content) or (inseparable(reference) if reference else "")
    if why_not:
        raise CannotRun("doctor --overlay: {why_not}; leave out --data for the times", why_not)


class Place(NamedTuple):
    """The model that an overlay is for, the file to write, and whether nothing is printed."""

    model: Path
    out: Path
    quiet: bool


def lay_times(place: Place, content: Model, profile: Profile | None, why_not: str = "") -> None:
    """Writes the time of each op, or says why it has none."""
    if profile is None:
        raise CannotRun("no overlay: {why_not}", why_not)
    _lay(place, content, times_overlay(content, profile))


def lay_errors(place: Place, pair: Pair | None, data: Data) -> None:
    """Writes the error of each op, as seen on a few samples."""
    assert pair is not None, "models that have none were refused"
    few = with_progress(
        spread(data, MOST_SAMPLES), phrase("looking at every op"), quiet=place.quiet
    )
    _lay(place, shown_model(pair), errors_overlay(op_errors(pair, few)))


def _lay(place: Place, content: Model, overlay: Overlay) -> None:
    for note in write_overlay(place.out, content, overlay):
        say("note", note)
    if not place.quiet:
        show.heading(phrase("overlay: {out}", plain(str(place.out))))
        show.command(f"  {opening_command(place.model, place.out)}")
