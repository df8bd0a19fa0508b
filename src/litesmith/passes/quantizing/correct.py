"""`correct`: the mean of every channel, and its gain, back to where the float model has them."""

from collections import Counter
from dataclasses import dataclass

from litesmith.ir.model_text import op_name
from litesmith.ir.types import Model
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.step import Change, Context
from litesmith.passes.quantizing.channel_gain import with_gain
from litesmith.passes.quantizing.paired_walk import Parts, Visit, corrected_bias, walk
from litesmith.phrases import phrase

# Samples that gains are taken from: beyond, they change by under a thousandth.
_SAMPLES = 64


@dataclass(frozen=True)
class Correct:
    """Put back what rounding has moved: into each bias the mean of its channel, and into the scale
    of each channel's weights its gain.

    Layer by layer over the data, each on what the corrected layers before it give; before the
    activation. Goes after `quantize`, or on a quantized file beside its float model.

    gain  also correct the gain, where a weight has a scale for each channel
    """

    gain: bool = True

    def apply(self, model: Model, context: Context) -> Change:
        users = Counter(layer.weight for layer in layers_of(model.main).values())

        def edit(visit: Visit) -> Parts:
            weight = visit.layer.weight
            if self.gain and users[weight] == 1:
                weight = with_gain(visit, weight)
            return Parts(weight, corrected_bias(visit, weight))

        walked = walk(model, context, "correct", edit, paired=_SAMPLES if self.gain else 0)
        touched = tuple(phrase("corrected {op_name}", op_name(layer.op)) for layer in walked.layers)
        return Change(walked.model, touched, tuple(walked.skipped))
