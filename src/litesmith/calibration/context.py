"""The context of steps, made from a user's data."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from litesmith.calibration.observe import Spread, tools
from litesmith.data.images import channel_axis, picture
from litesmith.data.lint import Problem, lint
from litesmith.data.preparation import UNTOUCHED, Norm, Preparation, normalize
from litesmith.data.samples import Data, Items, Sample, watch_data
from litesmith.errors import BadInput
from litesmith.ir.ops import counting_inputs
from litesmith.ir.types import Array, Model, Tensor
from litesmith.passes.core.step import Context
from litesmith.phrases import phrase
from litesmith.precision.width_clock import CLOCK
from litesmith.progress import Progress, silent
from litesmith.run.session import random_values
from litesmith.tflite.file import load
from litesmith.tflite.read_metadata import metadata

# Enough samples for every range; more cost time without a measurable gain.
CALIBRATION_SAMPLES = 256


def context_of(
    data: Data | None,
    reference: Model | str | os.PathLike[str] | None = None,
    *,
    spread: Spread | None = None,
    progress: Progress = silent,
) -> Context:
    """The context of steps; where data is spread, workers observe it."""
    if data is not None:
        data = watch_data(data, phrase("looking at the data"), progress)
    known = reference if isinstance(reference, Model | None) else load(reference)
    threads = 0 if spread is None else 1
    seen = None if data is None else tools(data, threads=threads, spread=spread)
    return Context(seen, known, clock=CLOCK)


def problems(data: Data, model: Model, evaluation: Data | None = None) -> list[Problem]:
    """The problems of data that calibrates; labels play no part."""
    stored = data.items.stored
    unlabelled = (
        data if stored is None else replace(stored, rows=replace(stored.rows, classes=None))
    )
    return lint(unlabelled, model, evaluation=evaluation)


@dataclass(frozen=True, eq=False)
class RandomSamples:
    """Random numbers instead of data: they show that a model runs, not what it will compute.

    Normalised pixels where the model or its scaling says how, otherwise a normal distribution.
    """

    model: Model
    count: int
    scaling: Preparation = UNTOUCHED
    source: str = "random numbers"

    @property
    def digest(self) -> str:
        inputs = [f"{t.dtype} {t.shape} {self._norm(n)}" for n, t in enumerate(self._inputs)]
        return f"random {self.count} {inputs}"

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            phrase(
                "RANDOM DATA: the ranges come from random inputs, so the accuracy of the result "
                "means nothing; use it to measure speed and size only"
            ),
        )

    @property
    def items(self) -> Items:
        return Items(is_random=True)

    @property
    def _inputs(self) -> tuple[Tensor, ...]:
        return self.model.main.inputs

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Sample]:
        for number in range(self.count):
            random = np.random.default_rng(number)
            inputs = (self._values(random, place) for place in range(len(self._inputs)))
            yield Sample(tuple(inputs), name=f"random sample {number}")

    def _values(self, random: np.random.Generator, place: int) -> Array:
        tensor = self._inputs[place]
        if tensor.dtype == "string":
            raise BadInput(
                "input {name!r} takes texts, which cannot be made at random", tensor.name
            )
        norm = self._norm(place)
        if norm is not None:
            return normalize(random.integers(0, 256, tensor.shape), norm, channel_axis(tensor))
        is_real = tensor.quant is not None
        like = np.empty(tensor.shape, np.float32 if is_real else tensor.dtype)
        is_whole = tensor in counting_inputs(self.model.main)
        return random_values(random, like, is_whole=is_whole)

    def _norm(self, place: int) -> Norm | None:
        tensor = self._inputs[place]
        if tensor.dtype != "float32" or picture(tensor) is None:
            return None
        if self.scaling.is_chosen:
            return self.scaling.as_norm()
        told = metadata(self.model).inputs
        known = told[place] if place < len(told) else None
        return None if known is None else Norm(known.mean, known.std, "")
