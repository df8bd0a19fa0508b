"""A detector on a backbone: a light head on its maps, and the op that chooses among the boxes.

Every place of a map tells one box and a score for each class: there are no anchors of several sizes
and shapes to choose for the data. The box is told relative to a square around the place, four
strides wide, in the code of SSD, so that the op that chooses boxes reads it as it is.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.edit import needed_ops, regraph, with_graphs
from litesmith.ir.types import Array, Model, Signature, Tensor
from litesmith.ops.flexbuffer import encode
from litesmith.tasks.boxes import SAME_THING
from litesmith.tasks.detectors import CENTRE_CODE, POSTPROCESS, SIZE_CODE, grid_anchors
from litesmith.transfer.feature_maps import FeatureMap, input_size

# Channels of the head, and the probability that a place begins with: few hold anything.
_WIDE, _FIRST_CHANCE = 64, 0.01

# Small weights of the last layers, so that every place begins with the same box and score.
_SMALL = 0.01

# Names of what belongs to the head, by which training tells it from the backbone.
HEAD = "head/"

# What the op that chooses gives at most, and what it does not look at.
_MOST_BOXES, _LEAST_SCORE = 100, 0.01


def build_detector(
    backbone: Model, maps: Sequence[FeatureMap], classes: int, seed: int = 0
) -> Model:
    """The backbone up to its maps with a head of random weights: boxes (1, places, 4) in code, and
    a score before the sigmoid for each class (1, places, classes)."""
    head = _Head(backbone, maps, np.random.default_rng(seed))
    merged = head.merge_down([head.lateral(one) for one in maps])
    boxes: list[Tensor] = []
    scores: list[Tensor] = []
    for place, value in enumerate(merged):
        told = head.separable(head.separable(value, f"{place}/mix"), f"{place}/tower")
        boxes.append(head.rows(told, 4, f"{place}/box", 0.0))
        first = -np.log(1 / _FIRST_CHANCE - 1)
        scores.append(head.rows(told, classes, f"{place}/class", float(first)))
    return head.finish(head.join(boxes, "boxes"), head.join(scores, "logits"))


class _Head:
    """The ops of a head as they are added behind a backbone."""

    def __init__(
        self, backbone: Model, maps: Sequence[FeatureMap], random: np.random.Generator
    ) -> None:
        self._backbone, self._random = backbone, random
        self._builder = Builder()
        graph = backbone.main
        self._builder.inputs[:] = graph.inputs
        self._builder.ops[:] = needed_ops(graph.ops, [m.tensor for m in maps], lambda op: False)

    def _weights(self, *shape: int, deviation: float) -> Array:
        return self._random.normal(0, deviation, shape).astype(np.float32)

    def _conv(self, value: Tensor, wide: int, name: str, last: float | None = None) -> Tensor:
        """A convolution of one pixel; `last` is the bias that a last layer begins with."""
        deep = value.shape[3]
        deviation = (2 / deep) ** 0.5 if last is None else _SMALL
        weight = self._weights(wide, 1, 1, deep, deviation=deviation)
        bias = np.full(wide, last or 0.0, np.float32)
        return self._builder.op(
            "CONV_2D",
            value,
            self._builder.const(weight, name=f"{HEAD}{name}/weight"),
            self._builder.const(bias, name=f"{HEAD}{name}/bias"),
            name=f"{HEAD}{name}",
            fused_activation_function="RELU" if last is None else "NONE",
        )

    def lateral(self, one: FeatureMap) -> Tensor:
        return self._conv(one.tensor, _WIDE, f"lateral{one.stride}")

    def merge_down(self, values: Sequence[Tensor]) -> list[Tensor]:
        """Each map with the next coarser one, which has seen more of the picture, laid over it."""
        merged = [values[-1]]
        for place in reversed(range(len(values) - 1)):
            value = values[place]
            sizes = self._builder.const(np.array(value.shape[1:3], np.int32))
            larger = self._builder.op(
                "RESIZE_NEAREST_NEIGHBOR", merged[0], sizes, name=f"{HEAD}{place}/larger"
            )
            merged.insert(0, self._builder.op("ADD", value, larger, name=f"{HEAD}{place}/merged"))
        return merged

    def separable(self, value: Tensor, name: str) -> Tensor:
        """A window over each channel, then a mixture of the channels."""
        deep = value.shape[3]
        weight = self._weights(1, 3, 3, deep, deviation=(1 / 9) ** 0.5)
        windows = self._builder.op(
            "DEPTHWISE_CONV_2D",
            value,
            self._builder.const(weight, name=f"{HEAD}{name}/window/weight"),
            self._builder.const(np.zeros(deep, np.float32), name=f"{HEAD}{name}/window/bias"),
            name=f"{HEAD}{name}/window",
            depth_multiplier=1,
        )
        return self._conv(windows, _WIDE, name)

    def rows(self, value: Tensor, wide: int, name: str, bias: float) -> Tensor:
        told = self._conv(value, wide, name, last=bias)
        places = told.shape[1] * told.shape[2]
        return self._builder.op("RESHAPE", told, [1, places, wide], name=f"{HEAD}{name}/rows")

    def join(self, parts: Sequence[Tensor], name: str) -> Tensor:
        if len(parts) == 1:
            return parts[0]
        return self._builder.op("CONCATENATION", *parts, axis=1, name=f"{HEAD}{name}")

    def finish(self, *outputs: Tensor) -> Model:
        graph = regraph(
            self._backbone.main,
            ops=self._builder.ops,
            inputs=self._backbone.main.inputs,
            outputs=outputs,
        )
        return replace(with_graphs(self._backbone, (graph,)), signatures=(), metadata=())


def finish_detector(model: Model, strides: Sequence[int], *, raw: bool) -> Model:
    """The model as it is shipped: scores as probabilities and, unless `raw`, the op that makes
    boxes of codes and chooses among them."""
    codes, logits = model.main.outputs
    b = Builder()
    b.inputs[:], b.ops[:] = model.main.inputs, model.main.ops
    scores = b.op("LOGISTIC", logits, name="scores")
    outputs = (codes, scores) if raw else _chosen(b, codes, scores, input_size(model), strides)
    graph = regraph(model.main, ops=b.ops, outputs=outputs)
    names = ("boxes", "scores") if raw else ("boxes", "classes", "scores", "count")
    given = tuple((tensor.name, tensor) for tensor in graph.inputs)
    told = tuple(zip(names, outputs, strict=True))
    signature = Signature("serving_default", 0, given, told)
    return replace(with_graphs(model, (graph,)), signatures=(signature,))


def _chosen(
    b: Builder, codes: Tensor, scores: Tensor, size: tuple[int, int], strides: Sequence[int]
) -> tuple[Tensor, ...]:
    """TFLite_Detection_PostProcess: boxes, classes, scores and how many there are."""
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
