"""A segmenter on a backbone: a light head on its maps that predicts the class of every pixel."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.ir.types import Model, Signature
from litesmith.transfer.feature_maps import FeatureMap, input_size
from litesmith.transfer.head_layers import HeadBuilder

# Edges need finer maps than boxes do.
SEGMENTER_STRIDES = (4, 8, 16, 32)


def build_segmenter(
    backbone: Model, maps: Sequence[FeatureMap], classes: int, seed: int = 0
) -> Model:
    """The backbone up to its maps with a head of random weights: a score for each class at every
    pixel (1, height, width, classes), from the finest map, to which the coarser ones are added."""
    head = HeadBuilder(backbone, maps, np.random.default_rng(seed))
    merged = head.merge_down([head.lateral(one) for one in maps])
    features = head.separable(head.separable(merged[0], "mix"), "tower")
    scores = head.conv(features, classes, "class", last=0.0)
    return head.finish(head.enlarge(scores, input_size(backbone), "scores"))


def finish_segmenter(model: Model) -> Model:
    """The model as it is shipped."""
    given = tuple((tensor.name, tensor) for tensor in model.main.inputs)
    signature_outputs = (("scores", model.main.outputs[0]),)
    return replace(model, signatures=(Signature("serving_default", 0, given, signature_outputs),))
