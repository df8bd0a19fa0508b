"""What each op of a quantized model adds to its error: the numbers behind a verdict, op by op."""

from dataclasses import dataclass

from litesmith.accuracy.scoring import MOST_DB
from litesmith.data.samples import Data
from litesmith.diagnosis.float_pairs import renumbered, twins
from litesmith.diagnosis.loss import Loss, decibels, losses
from litesmith.diagnosis.remedies import Pair
from litesmith.diagnosis.single_op_error import FORM, WEIGHTS
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model
from litesmith.phrases import phrase

MOVES, EXACT, NO_TWIN = phrase("moves values only"), "exact", phrase("not in both models")


@dataclass(frozen=True)
class OpError:
    """One op of the main graph of the user's file.

    snr_db  the float model's signal over the error that this op alone makes; None where `why` says
            the reason
    """

    index: int
    snr_db: float | None
    why: str = ""


def op_errors(pair: Pair, data: Data) -> tuple[OpError, ...]:
    """The error of every op, given exact inputs: what earlier ops do wrong does not count."""
    found = twins(pair.model, pair.reference)
    known = renumbered(found, pair.file) if pair.is_ours else found
    seen = losses(pair.model, pair.reference, known, data)
    by_place = {loss.twin.place: loss for loss in seen}
    ops = shown_model(pair).main.ops
    return tuple(_error(place, op.kind, by_place.get(place)) for place, op in enumerate(ops))


def shown_model(pair: Pair) -> Model:
    """The model that the user has a file of, whose ops are numbered."""
    return pair.file if pair.is_ours else pair.model


def _error(place: int, kind: str, loss: Loss | None) -> OpError:
    if loss is None:
        return OpError(place, None, NO_TWIN)
    if OPS[kind].moves_data:
        return OpError(place, None, MOVES)
    snr = decibels(1.0, loss.noise(FORM) + loss.noise(WEIGHTS))
    return OpError(place, None, EXACT) if snr >= MOST_DB else OpError(place, snr)
