"""A detector on a backbone: a light head on its maps, and the op that selects among the boxes.

Every place of a map predicts one box and a score for each class: there are no anchors of several
sizes and shapes to choose for the data. The box is relative to a square around the place, four
strides wide, in the code of SSD, so that the selecting op reads it as it is.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.types import Model, Signature, Tensor
from litesmith.ops.flexbuffer import encode
from litesmith.tasks.boxes import SAME_THING
from litesmith.tasks.detectors import CENTRE_CODE, POSTPROCESS, SIZE_CODE, grid_anchors
from litesmith.transfer.feature_maps import FeatureMap, input_size
from litesmith.transfer.head_layers import HeadBuilder

# The initial probability of every place: few hold an object.
_FIRST_CHANCE = 0.01

# The largest number of boxes from the selecting op, and the score below which it ignores boxes.
_MOST_BOXES, _LEAST_SCORE = 100, 0.01


def build_detector(
    backbone: Model, maps: Sequence[FeatureMap], classes: int, seed: int = 0
) -> Model:
    """The backbone up to its maps with a head of random weights: encoded boxes (1, places, 4), and
    a score before the sigmoid for each class (1, places, classes)."""
    head = HeadBuilder(backbone, maps, np.random.default_rng(seed))
    merged = head.merge_down([head.lateral(one) for one in maps])
    boxes: list[Tensor] = []
    scores: list[Tensor] = []
    for place, value in enumerate(merged):
        features = head.separable(head.separable(value, f"{place}/mix"), f"{place}/tower")
        boxes.append(_rows(head, features, 4, f"{place}/box", 0.0))
        first = -np.log(1 / _FIRST_CHANCE - 1)
        scores.append(_rows(head, features, classes, f"{place}/class", float(first)))
    return head.finish(head.join(boxes, "boxes"), head.join(scores, "logits"))


def _rows(head: HeadBuilder, value: Tensor, wide: int, name: str, bias: float) -> Tensor:
    """The predictions of each place, one row per place."""
    predictions = head.conv(value, wide, name, last=bias)
    places = predictions.shape[1] * predictions.shape[2]
    return head.reshape(predictions, [1, places, wide], f"{name}/rows")


def finish_detector(model: Model, strides: Sequence[int], *, raw: bool) -> Model:
    """The model as it is shipped: scores as probabilities and, unless `raw`, the op that decodes
    the boxes and selects among them."""
    codes, logits = model.main.outputs
    b = Builder()
    b.inputs[:], b.ops[:] = model.main.inputs, model.main.ops
    scores = b.op("LOGISTIC", logits, name="scores")
    outputs = (
        (codes, scores) if raw else _select_boxes(b, codes, scores, input_size(model), strides)
    )
    graph = regraph(model.main, ops=b.ops, outputs=outputs)
    names = ("boxes", "scores") if raw else ("boxes", "classes", "scores", "count")
    given = tuple((tensor.name, tensor) for tensor in graph.inputs)
    signature_outputs = tuple(zip(names, outputs, strict=True))
    signature = Signature("serving_default", 0, given, signature_outputs)
    return replace(with_graphs(model, (graph,)), signatures=(signature,))


def _select_boxes(
    b: Builder, codes: Tensor, scores: Tensor, size: tuple[int, int], strides: Sequence[int]
) -> tuple[Tensor, ...]:
    """TFLite_Detection_PostProcess: boxes, classes, scores and their number."""
    anchors = grid_anchors(size, strides)[:, [1, 0, 3, 2]].astype(np.float32)
    settings = {
        "max_detections": _MOST_BOXES,
        "max_classes_per_detection": 1,
        "detections_per_class": _MOST_BOXES,
        "use_regular_nms": True,
        "nms_score_threshold": _LEAST_SCORE,
        "nms_iou_threshold": SAME_THING,
        "num_classes": scores.shape[-1],
        "y_scale": CENTRE_CODE,
        "x_scale": CENTRE_CODE,
        "h_scale": SIZE_CODE,
        "w_scale": SIZE_CODE,
    }
    b.op(
        "CUSTOM",
        codes,
        scores,
        b.const(anchors, name="anchors"),
        custom=POSTPROCESS,
        custom_options=np.frombuffer(encode(dict(settings)), np.uint8),
        shape=[(1, _MOST_BOXES, 4), (1, _MOST_BOXES), (1, _MOST_BOXES), (1,)],
        dtype="float32",
        name=POSTPROCESS,
    )
    return b.last.outputs
