"""The result of a search made again from its recipe.json, to the byte."""

import json
from pathlib import Path
from typing import cast

from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.data.preparation import Preparation
from litesmith.data.sample_splits import take_some
from litesmith.data.sources import open_data
from litesmith.errors import BadInput, os_reason
from litesmith.ir.types import Model
from litesmith.passes.core import recipe as recipes
from litesmith.passes.core.step import Change, Context
from litesmith.search.trial.data_split import split
from litesmith.search.trial.trial_facts import Json
from litesmith.search.tuning.tune_search import open_beside
from litesmith.tflite.file import digest, load
from litesmith.training.recipe_context import training_context, trainings
from litesmith.training.settings import Training


def replay(place: Path, model: Path) -> tuple[Change, str]:
    """What the recipe makes of the model, and the digest that its file is to have.

    Raises where the model or the data is not what the recipe was found with.
    """
    facts = _read(place)
    if facts["input_digest"] != digest(model):
        raise BadInput(
            "{place}: was found for another model than {model}; give that one", place, model
        )
    content = load(model)
    recipe = recipes.parse(str(facts["recipe"]))
    change = recipes.apply(content, recipe, _context(place, facts, content, recipe))
    return change, str(facts["digest"])


def _read(place: Path) -> Json:
    try:
        facts = cast(Json, json.loads(place.read_bytes()))
        missing = {"recipe", "input_digest", "digest", "opened", "training"} - facts.keys()
    except OSError as error:
        raise BadInput("{place}: cannot be read ({why})", place, os_reason(error)) from None
    except (ValueError, AttributeError):
        raise BadInput("{place}: is not the recipe.json of a search", place) from None
    if missing:
        raise BadInput(
            "{place}: is not the recipe.json of a search; {min!r} is missing", place, min(missing)
        )
    return facts


def _context(place: Path, facts: Json, model: Model, recipe: recipes.Recipe) -> Context:
    opened = cast("Json | None", facts["opened"])
    if opened is None:
        raise BadInput("{place}: its data lived in a program and cannot be opened again", place)
    asked = {
        key: tuple(cast("list[float]", value)) if isinstance(value, list) else value
        for key, value in cast(Json, opened["preparation"]).items()
    }
    preparation = Preparation(**asked)  # pyright: ignore[reportArgumentType]
    samples = cast("int | None", opened["samples"])
    other = cast("str | None", opened["calibrate"])
    data = open_data(str(opened["data"]), model, preparation=preparation, samples=samples)
    given = None if other is None else open_beside(other, data, model, preparation)
    part = split(data, given).calibration
    if facts.get("calibration_digest") != part.digest:
        raise BadInput(
            "{place}: {data} has changed since; the result would differ", place, opened["data"]
        )
    training = cast("Json | None", facts["training"])
    if training is None or not trainings(recipe):
        return context_of(take_some(part, CALIBRATION_SAMPLES))
    settings = Training(**training)  # pyright: ignore[reportArgumentType]
    return training_context(model, part, recipe, settings)
