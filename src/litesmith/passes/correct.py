"""`correct`: the mean of every channel back to where the float model has it."""

from dataclasses import dataclass

from litesmith.ir.show import op_name
from litesmith.ir.types import Model
from litesmith.passes.step import Change, Context
from litesmith.passes.walk import Parts, Visit, corrected_bias, walk


@dataclass(frozen=True)
class Correct:
    """Put into each layer's bias what rounding has moved its mean by.

    Layer by layer over the data, each on what the corrected layers before it give; before the
    activation. Goes after `quantize`, or on a quantized file beside its float model.
    """

    def apply(self, model: Model, context: Context) -> Change:
        walked = walk(model, context, "correct", _corrected)
        touched = tuple(f"corrected the bias of {op_name(layer.op)}" for layer in walked.layers)
        return Change(walked.model, touched, tuple(walked.skipped))


def _corrected(visit: Visit) -> Parts:
    weight = visit.layer.weight
    return Parts(weight, corrected_bias(visit, weight))
