"""`apply`: a recipe applied to a model; the result of a search made again."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from litesmith.anatomy.source_file import Source, SourceFile, open_source
from litesmith.arguments import argument, check_types, refuse_below
from litesmith.data.preparation import UNTOUCHED, Preparation, read_preparation
from litesmith.data.sources import Given
from litesmith.display import show_html
from litesmith.errors import BadInput
from litesmith.front.given_data import Calibration
from litesmith.front.made_model import (
    Json,
    MadeModel,
    Place,
    model_digest,
    read_place,
)
from litesmith.front.recipe_job import Done, Job, carry_out, refuse_early
from litesmith.front.speed_check import MadeFile, SpeedCheck, blame, check_speed
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import Recipe, parse
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.progress import Progress, silent
from litesmith.regression.size_report import Shrunk, arm_facts, skipping_facts
from litesmith.run.core.target import Target
from litesmith.search.tuning.replay import GivenAgain, replay
from litesmith.tflite.file import save
from litesmith.training.settings import (
    RECORD_SECONDS,
    Training,
    TrainingOptions,
    read_training,
    split_preparing,
)


@dataclass(frozen=True, repr=False, eq=False)
class Applied(MadeModel):
    """A model after every step of a recipe, with all that was touched and left alone.

    trained  how each training went, a sentence each
    costs    of both files, where the recipe prunes, clusters or trains and a file was written
    same     whether the bytes are those of the search that is made again; None where none is
    step     the step of the recipe that quantizes; None where none does
    speed    of the written file beside its source, where the recipe quantizes
    """

    trained: tuple[str, ...] = ()
    costs: Shrunk | None = None
    prunes: bool = False
    same: bool | None = None
    step: Quantize | None = None
    speed: SpeedCheck | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of trainings."""
        return self.change.notes

    @property
    def is_as_asked(self) -> bool:
        """False where zeros or codes were lost, or where a search was not made again exactly."""
        return self.same is not False and (self.costs is None or self.costs.is_verified)

    def to_json(self) -> Json:
        told = self.facts()
        if self.speed is not None:
            told |= self.speed.facts()
        if self.costs is not None:
            told |= self.costs.to_json() | {"trained": list(self.trained)}
        if self.prunes and self.out is not None:
            told |= {"arm": arm_facts(self.model), "litesmith": skipping_facts(self.model)}
        return told if self.same is None else told | {"same": self.same}

    def _repr_html_(self) -> str:
        return show_html(self, self.trained)


@check_types
def apply(
    model: Source,
    recipe: Recipe | str,
    data: Given | None = None,
    *,
    out: Place | None = None,
    calibrate: Given | None = None,
    reference: Model | str | os.PathLike[str] | None = None,
    samples: int | None = None,
    preparation: Preparation = UNTOUCHED,
    training: Training | None = None,
    resume: bool = False,
    record_every: float = RECORD_SECONDS,
    runs: int | None = None,
    trust_data: bool = False,
    progress: Progress = silent,
    **options: Unpack[TrainingOptions],
) -> Applied:
    """The model after every step of a recipe, with all that was touched and left alone.

    >>> change = litesmith.apply("model.tflite", "quantize | correct", "val.npz", samples=64)
    >>> change.save("small.tflite")

    `data` is whatever `litesmith eval --data` takes, an array, or a generator: steps that look at
    what the model computes need it, and those that train use all of it. `reference` is the float
    model that an already quantized one was made from, where a step is to compare with it. A recipe
    that ends in .json is that of a search, whose result is made again: with the data that it names
    by a path, or with what is given here as `data` and `calibrate`, checked by its digest. Code is
    always given here, since a file brings none. A file that is quantized is timed beside the model.
    """
    refuse_below("samples", samples, 1)
    place = read_place(out, model)
    if isinstance(recipe, str) and recipe.endswith(".json"):
        return _replay(Path(recipe), model, place, GivenAgain(data, calibrate))
    if calibrate is not None:
        told = argument("calibrate")
        raise BadInput(
            "{calibrate}: goes with the recipe.json of a search; give {data}",
            told,
            argument("data"),
        )
    steps = parse(recipe) if isinstance(recipe, str) else recipe
    prepared = read_preparation(preparation, **split_preparing(options))
    given = Calibration(data, prepared, samples, trusted=trust_data)
    told = reference if isinstance(reference, Model | None) else Path(reference)
    asked = read_training(training, **options)
    source = open_source(model)
    job = Job(source, place, steps, given, asked, resume, told, record_every, runs, progress)
    refuse_early(job)
    done = carry_out(job)
    made = None if place is None else MadeFile(source, steps, done.change.model, place)
    return Applied(
        source,
        place,
        done.change,
        done.trained,
        done.costs,
        job.prunes,
        step=None if made is None else made.step,
        speed=None if made is None else _check(made, done, runs, progress),
    )


def _check(made: MadeFile, done: Done, runs: int | None, progress: Progress) -> SpeedCheck | None:
    """The time of a file that is quantized; a file that was weighed has its time already."""
    if made.step is None:
        return None
    if done.costs is None:
        return check_speed(made, Target(), runs, progress)
    return blame(made, Target(), SpeedCheck(done.costs.latency, done.costs.untimed))


def _replay(recipe: Path, model: Source, out: Path | None, again: GivenAgain) -> Applied:
    """The result of a search, made again, and whether it is the same to the byte."""
    if not isinstance(model, str | os.PathLike):
        raise BadInput("{recipe}: is for a file; give the path of the model", recipe)
    change, wanted = replay(recipe, Path(model), again)
    if out is not None:
        save(change.model, out)
    same = model_digest(SourceFile(change.model, out)) == wanted
    return Applied(open_source(model), out, change, same=same)
