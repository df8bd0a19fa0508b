"""Models built by the workers of a cluster, also ahead of their turn; the bytes equal a local
build's."""

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

# A function that runs on a worker: it takes the request, the data in pieces, and the original
# model.
Pieces = tuple[Held[DataPiece], ...]
Build = Callable[[str, tuple[Pieces], Content], B]


class Order(NamedTuple):
    """An order for a model: the request, the samples to look at, and the original file."""

    asked: str
    few: Data
    source: Path
    digest: str
    words: str  # what the worker is said to do


class RemoteBuilds(Generic[B]):
    """The models that workers are building, each under a unique name."""

    def __init__(self, engine: Engine | None, build: Build[B]) -> None:
        self._engine, self._build = engine, build
        self._begun: dict[str, Held[B]] = {}

    def begin(self, name: str, order: Order) -> None:
        """Has a worker start on an order, unless one already has; only stored data travels by its
        digest."""
        if self._engine is None or name in self._begun or order.few.items.stored is None:
            return
        pieces = tuple(p.held for p in portions(self._engine, order.few, digests=True))
        model = send_model(self._engine, order.source, order.digest)
        self._begun[name] = self._engine.call(
            order.words, self._build, order.asked, (pieces,), model
        )

    def finish(self, name: str) -> B | None:
        """Returns the built model; None where no worker was asked for it."""
        begun = self._begun.pop(name, None)
        if begun is None or self._engine is None:
            return None
        (found,) = self._engine.gathered([begun])
        return found

    def stop(self) -> None:
        """Stops the builds that nobody wants any more."""
        if self._engine is not None:
            self._engine.cancel(self._begun.values())
        self._begun.clear()


class Arrived(NamedTuple):
    """Shipped data: joined, and in its pieces where there are several."""

    few: Data
    spread: Spread | None


def join_pieces(pieces: Pieces) -> Arrived:
    """Joins the pieces of data that a worker received."""
    engine = inside()
    few = join_data(list(engine.gathered(pieces)))
    return Arrived(few, Spread(engine, pieces) if len(pieces) > 1 else None)


def look_at(made: Content, model: Model, few: Data, skipped: tuple[Skip, ...]) -> Claims:
    """Checks the claims about a model that is not written to a file yet."""
    with temporary_file(made.data, "made.tflite") as path:
        return check_claims(path, model, few, skipped, profiled=False)
