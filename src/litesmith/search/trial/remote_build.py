"""Candidates made by the workers of a cluster, also ahead of their turn: the same bytes as here."""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from litesmith.calibration.claims import Claims, check_claims
from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.calibration.observe import Spread
from litesmith.data.model_shipping import Content, load_content, send_model
from litesmith.data.sample_shipping import Piece, join_pieces, portions
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.passes.core import recipe as recipes
from litesmith.passes.core.step import Skip
from litesmith.phrases import phrase
from litesmith.tflite.write import to_bytes
from litesmith.training.recipe_context import trainings
from litesmith.workers.engine import Engine, Held, inside


class Checked(NamedTuple):
    """What a search asks of a file that was made: see `Claims`."""

    is_integer: bool
    is_useless: bool
    failure: str

    @staticmethod
    def of(claims: Claims) -> "Checked":
        return Checked(claims.is_integer, claims.is_useless, claims.failure)


class Built(NamedTuple):
    """A candidate as a worker has made it."""

    content: Content
    skipped: tuple[Skip, ...]
    checked: Checked


@dataclass
class Making:
    """Has workers make candidates of one model, calibrated on some of the samples.

    What trains is made where the search runs: it has its own records, and may have a GPU.
    """

    engine: Engine
    source: Path
    digest: str
    calibration: Data
    _begun: dict[str, Held[Built]] = field(default_factory=dict[str, Held[Built]])

    def __post_init__(self) -> None:
        self._few = take_some(self.calibration, CALIBRATION_SAMPLES)

    def can(self, recipe: str) -> bool:
        """True for what workers make: data of other kinds does not travel with its digest."""
        return bool(recipe) and self._few.items.stored is not None and not trains(recipe)

    def begin(self, names: Iterable[tuple[str, str]]) -> None:
        """Starts to make what may be asked for next: recipes, each with its name."""
        for recipe, name in names:
            if recipe not in self._begun and self.can(recipe):
                pieces = tuple(p.held for p in portions(self.engine, self._few, digests=True))
                model = send_model(self.engine, self.source, self.digest)
                words = phrase("making {name}", name)
                self._begun[recipe] = self.engine.call(words, build, recipe, (pieces,), model)

    def built(self, recipe: str, name: str) -> Built:
        """What a recipe makes; LitesmithError where it does not fit the model."""
        self.begin([(recipe, name)])
        (found,) = self.engine.gathered([self._begun.pop(recipe)])
        return found

    def stop(self) -> None:
        """Ends what was begun in vain."""
        self.engine.cancel(self._begun.values())
        self._begun.clear()


def trains(recipe: str) -> bool:
    return trainings(recipes.parse(recipe)) > 0


def build(recipe: str, given: tuple[tuple[Held[Piece], ...]], content: Content) -> Built:
    """What runs on a worker: a recipe, with the data looked at by several workers where it is in
    several pieces, and a look at the result."""
    data, model = arrived(given[0]), load_content(content)
    context = context_of(data.few, spread=data.spread)
    change = recipes.apply(model, recipes.parse(recipe), context)
    check(change.model)
    made = np.frombuffer(to_bytes(change.model), np.uint8)
    claims = claims_of(made, model, data.few, change.skipped)
    return Built(made, change.skipped, Checked.of(claims))


class Arrived(NamedTuple):
    """Data that was shipped: whole again, and in pieces where there are several."""

    few: Data
    spread: Spread | None


def arrived(pieces: tuple[Held[Piece], ...]) -> Arrived:
    """The data that a worker was given in pieces."""
    engine = inside()
    few = cast(Data, join_pieces(list(engine.gathered(pieces))))
    return Arrived(few, Spread(engine, pieces) if len(pieces) > 1 else None)


def claims_of(made: Content, model: Model, few: Data, skipped: tuple[Skip, ...]) -> Claims:
    """A look at a file that is not written yet."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.tflite"
        path.write_bytes(made.data)
        return check_claims(path, model, few, skipped, profiled=False)
