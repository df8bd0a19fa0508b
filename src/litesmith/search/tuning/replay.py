"""recipe.json: how the result of a search was made, and how to rebuild it byte for byte."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from litesmith.arguments import argument
from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.data.data_digest import data_digest
from litesmith.data.preparation import Preparation
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data
from litesmith.data.sources import Given, open_data
from litesmith.errors import BadInput, os_reason
from litesmith.evidence.codec import Malformed, Mark, decode, parse
from litesmith.ir.types import Model
from litesmith.passes.core import recipe as recipes
from litesmith.passes.core.step import Change, Context
from litesmith.search.trial.data_split import split
from litesmith.tflite.file import digest, load
from litesmith.training.recipe_context import lazy_rounding, training_context, trainings
from litesmith.training.settings import Training
from litesmith.type_guards import is_path
from litesmith.units import plain


@dataclass(frozen=True)
class DataOpening:
    """How data was opened, so that it can be opened again; `calibrate` is separate calibration
    data. The digests belong to the named files; "" where none is known."""

    data: str
    calibrate: str | None
    samples: int | None
    preparation: Preparation
    data_digest: Annotated[str, Mark.OMITTED] = ""
    calibrate_digest: Annotated[str, Mark.OMITTED] = ""


@dataclass(frozen=True)
class RecipeFile:
    """The contents of recipe.json.

    opened    how to open the data again; None for data that lived in a program
    training  how the training steps trained; None where nothing was trained
    """

    schema: Literal[1]
    recipe: str
    input_digest: str
    digest: str
    command: str
    version: str
    calibration_digest: str
    opened: DataOpening | None
    training: Training | None


def remember(
    data: Given, calibrate: Given | None, preparation: Preparation, samples: int | None = None
) -> DataOpening | None:
    """Records how the data was opened; None for data that exists only in memory."""
    texts = [_place(source) for source in ((data,) if calibrate is None else (data, calibrate))]
    first, other = texts[0], texts[-1]
    if first is None or other is None:
        return None
    return DataOpening(
        first,
        None if calibrate is None else other,
        samples,
        preparation,
        data_digest(Path(first)),
        "" if calibrate is None else data_digest(Path(other)),
    )


def _place(source: Given) -> str | None:
    """The absolute path of data; None for data in memory."""
    if not is_path(source):
        return None
    text = os.fspath(source)
    return os.path.abspath(text) if os.path.exists(text) else text


def open_beside(source: Given, data: Data, model: Model, preparation: Preparation) -> Data:
    """Opens other data with the preparation of the first, which its own guess might not match."""
    asked = replace(data.items.preparation or preparation, label_offset=preparation.label_offset)
    return open_data(source, model, preparation=asked)


class GivenAgain(NamedTuple):
    """The data of a search as the caller supplies it again; None opens what the recipe names."""

    data: Given | None = None
    calibrate: Given | None = None


_AS_RECORDED = GivenAgain()


def replay(place: Path, model: Path, again: GivenAgain = _AS_RECORDED) -> tuple[Change, str]:
    """Applies the recipe to the model; returns the change and the digest that the file must have.

    Raises where the model or the data differs from that of the search. A recipe may come from
    anywhere: it names files to be read, never code to be run.
    """
    found = _read(place)
    if found.input_digest != digest(model):
        raise BadInput(
            "{place}: was found for another model than {model}; give that one", place, model
        )
    content = load(model)
    recipe = recipes.parse(found.recipe)
    change = recipes.apply(content, recipe, _context(place, found, content, recipe, again))
    return change, found.digest


def _read(place: Path) -> RecipeFile:
    try:
        return decode(RecipeFile, parse(place.read_bytes()))
    except OSError as error:
        raise BadInput("{place}: cannot be read ({why})", place, os_reason(error)) from None
    except Malformed as error:
        raise BadInput(
            "{place}: is not the recipe.json of a search ({error})", place, error
        ) from None


def _context(
    place: Path, found: RecipeFile, model: Model, recipe: recipes.Recipe, again: GivenAgain
) -> Context:
    opened = found.opened
    if opened is None:
        raise BadInput("{place}: its data lived in a program and cannot be opened again", place)
    preparation = opened.preparation
    first = _source(place, "data", opened.data, again.data)
    other = _source(place, "calibrate", opened.calibrate, again.calibrate)
    assert first is not None
    if again.data is None:
        _refuse_other(place, "data", opened.data, opened.data_digest)
    if again.calibrate is None and opened.calibrate is not None:
        _refuse_other(place, "calibrate", opened.calibrate, opened.calibrate_digest)
    data = open_data(first, model, preparation=preparation, samples=opened.samples)
    given = None if other is None else open_beside(other, data, model, preparation)
    part = split(data, given).calibration
    if found.calibration_digest != part.digest:
        raise BadInput(
            "{place}: {data} has changed since; the result would differ", place, plain(opened.data)
        )
    if found.training is None or not trainings(recipe):
        context = context_of(take_some(part, CALIBRATION_SAMPLES))
        return replace(context, learn=lazy_rounding())
    return training_context(model, part, recipe, found.training)


def _refuse_other(place: Path, option: str, recorded: str, wanted: str) -> None:
    """Raises where the data named by the recipe has changed, before anything in it is decoded. Data
    that the caller supplies is compared by its samples, regardless of their order and names."""
    if wanted and data_digest(Path(recorded)) not in (wanted, ""):
        raise BadInput(
            "{place}: {data} has changed since, and is not opened on the word of a recipe; where "
            "its samples are the same, give {option}",
            place,
            plain(recorded),
            argument(option, plain(recorded)),
        )


def _source(place: Path, option: str, recorded: str | None, again: Given | None) -> Given | None:
    """The caller's data; otherwise the file or folder that the recipe names, and nothing else."""
    if recorded is None or again is not None:
        return again if recorded is not None else None
    named = Path(recorded)
    if ":" in recorded and not named.exists():
        raise BadInput(
            "{place}: its data came from the code {code}, and a recipe brings none; read the code, "
            "then give it yourself with {option}",
            place,
            plain(recorded),
            argument(option, plain(recorded)),
        )
    if named.exists() and not (named.is_file() or named.is_dir()):
        raise BadInput(
            "{place}: its data {data} is neither a file nor a folder; give {option}",
            place,
            plain(recorded),
            argument(option),
        )
    return named
