"""Models made by the workers of a cluster, also ahead of their turn: the same bytes as here."""

from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from litesmith.calibration.claims import Claims, check_claims
from litesmith.calibration.observe import Spread
from litesmith.data.samples import Data
from litesmith.data.shipping import Content, DataPiece, portions, send_model
from litesmith.data.shipping import join_pieces as join_data
from litesmith.ir.types import Model
from litesmith.passes.core.step import Skip
from litesmith.temporary import temporary_file
from litesmith.workers.engine import Engine, Held, inside

B = TypeVar("B")

# What runs on a worker: what is asked for, the data in pieces, and the model to begin with.
Pieces = tuple[Held[DataPiece], ...]
Build = Callable[[str, tuple[Pieces], Content], B]


class Order(NamedTuple):
    """A model to be made: what is asked for, the samples to look at, and the file to begin with."""

    asked: str
    few: Data
    source: Path
    digest: str
    words: str  # what the worker is said to do


class RemoteBuilds(Generic[B]):
    """What workers are making, each by a name that tells it from all others."""

    def __init__(self, engine: Engine | None, build: Build[B]) -> None:
        self._engine, self._build = engine, build
        self._begun: dict[str, Held[B]] = {}

    def begin(self, name: str, order: Order) -> None:
        """Has a worker start, unless one has; only data that is stored travels with its digest."""
        if self._engine is None or name in self._begun or order.few.items.stored is None:
            return
        pieces = tuple(p.held for p in portions(self._engine, order.few, digests=True))
        model = send_model(self._engine, order.source, order.digest)
        self._begun[name] = self._engine.call(
            order.words, self._build, order.asked, (pieces,), model
        )

    def finish(self, name: str) -> B | None:
        """What was made; None where no worker was asked for it."""
        begun = self._begun.pop(name, None)
        if begun is None or self._engine is None:
            return None
        (found,) = self._engine.gathered([begun])
        return found

    def stop(self) -> None:
        """Ends what was begun in vain."""
        if self._engine is not None:
            self._engine.cancel(self._begun.values())
        self._begun.clear()


class Arrived(NamedTuple):
    """Data that was shipped: whole again, and in pieces where there are several."""

    few: Data
    spread: Spread | None


def join_pieces(pieces: Pieces) -> Arrived:
    """The data that a worker was given in pieces."""
    engine = inside()
    few = join_data(list(engine.gathered(pieces)))
    return Arrived(few, Spread(engine, pieces) if len(pieces) > 1 else None)


def look_at(made: Content, model: Model, few: Data, skipped: tuple[Skip, ...]) -> Claims:
    """A look at a file that is not written yet."""
    with temporary_file(made.data, "made.tflite") as path:
        return check_claims(path, model, few, skipped, profiled=False)
