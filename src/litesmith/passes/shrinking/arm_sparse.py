"""Which convolutions XNNPACK computes without their zeros on ARM, and why not the others.

The rules are those of XNNPACK's src/subgraph.c, `xnn_check_nchw_compatibility` and what follows it:
a part of the model that begins with a 3×3 convolution of stride 2 on 3 channels, ends with a mean
or a sum, and has between them only ops that compute channel by channel; more than two thirds of the
weights of its 1×1 convolutions are zero. The runtime looks for such parts only in models with
sparse weights behind DENSIFY (LiteRT tflite/delegates/xnnpack). `bench/arm_sparse.py` asks the
runtime itself.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from litesmith.ir.edit import consumers
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor, constant_numbers
from litesmith.ir.window import slides
from litesmith.phrases import phrase
from litesmith.units import percent_text

_LEAST_ZEROS = 2 / 3


def arm_sparse(graph: Graph) -> dict[Op, str]:
    """For every convolution of a graph: "" where its zeros are skipped on ARM, else why not."""
    convolutions = [op for op in graph.ops if OPS[op.kind].is_convolution]
    reasons = {op: _why_not_pointwise(op) for op in convolutions}
    joins = _SparseParts(graph)
    for op in convolutions:
        if not reasons[op]:
            reasons[op] = joins.why_not(op)
    if any(not why for why in reasons.values()) and not _has_densify(graph):
        dense = phrase(
            "its weights are stored dense: the runtime looks for sparse ones behind DENSIFY"
        )
        reasons = {op: why or dense for op, why in reasons.items()}
    return reasons


def _has_densify(graph: Graph) -> bool:
    return any(op.kind == "DENSIFY" for op in graph.ops)


def _why_not_pointwise(op: Op) -> str:
    """Why a convolution by itself is none that can be computed sparse; "" where it is."""
    data, weight = op.inputs[0], op.inputs[1]
    if data is None or weight is None or len(weight.shape) != 4 or op.options is None:
        return phrase("its weights are not known")
    if data.dtype != "float32" or op.outputs[0].dtype != "float32":
        return phrase("it computes in {dtype}; only float convolutions skip zeros", data.dtype)
    _, height, width, inputs = weight.shape
    if (height, width) != (1, 1):
        return phrase("its kernel is {height}×{width}; only 1×1 ones skip zeros", height, width)
    if any(slide.stride != 1 or slide.dilation != 1 for slide in slides(op.options, (1, 1))):
        return phrase("it has a stride or a dilation")
    if data.shape[-1] != inputs:
        return phrase("its channels are in groups")
    return ""


class _SparseParts:
    """The parts of a graph in which all ops can compute channel by channel."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._readers = consumers(graph)
        self._makers = {t: op for op in graph.ops for t in op.outputs}
        self._padding = {op.outputs[0]: op for op in graph.ops if self._is_fused(op)}
        self._ways = {op: self._way(op) for op in graph.ops}
        for op in [op for op, way in self._ways.items() if way == "on or out"]:
            is_read = any(self._ways[user] in _READING for user in self._users(op))
            self._ways[op] = "on" if is_read else "out"

    def why_not(self, op: Op) -> str:
        """Why the part around a 1×1 convolution is not computed sparse; "" where it is."""
        members = self._members(op)
        for member in members:
            for why in self._against(member):
                return why
        zeros, count = self._zeros([m for m in members if OPS[m.kind].is_convolution])
        if zeros <= _LEAST_ZEROS * count:
            share = percent_text(zeros / count if count else 0)
            return phrase(
                "{share} of the weights of the 1×1 convolutions around it are zero; more "
                "than {share2} are needed",
                share,
                percent_text(_LEAST_ZEROS),
            )
        return ""

    def _is_fused(self, op: Op) -> bool:
        """Whether an op pads an image for one layer, which then does that itself."""
        if op.kind != "PAD" or _pad(op) is None or op.outputs[0] in self._graph.outputs:
            return False
        readers = self._readers.get(op.outputs[0], [])
        return len(readers) == 1 and (
            (OPS[readers[0].kind].is_convolution or OPS[readers[0].kind].is_depthwise)
            and readers[0].option("padding") == "VALID"
        )

    def _way(self, op: Op) -> str:
        """`in` where an op begins a part, `on` inside, `out` at its end, "" for all others; `on or
        out` where that hangs on who reads it."""
        if any(t.dtype != "float32" for t in (*_activations(op), *op.outputs)):
            return ""
        row = OPS[op.kind]
        if row.is_convolution:
            return "on" if not _why_not_pointwise(op) else "in" if self._is_stem(op) else ""
        if row.is_depthwise:
            return "on" if self._is_plain_depthwise(op) else ""
        return _WAYS[op.kind](op) if op.kind in _WAYS else ""

    def _is_stem(self, op: Op) -> bool:
        weight = op.inputs[1]
        if weight is None or op.options is None:
            return False
        moves = slides(op.options, weight.shape[1:3])
        fits = weight.shape[1:] == (3, 3, 3) and all(
            (slide.stride, slide.dilation) == (2, 1) for slide in moves
        )
        return fits and self._padded_by(op) == 1

    def _is_plain_depthwise(self, op: Op) -> bool:
        weight, data = op.inputs[1], op.inputs[0]
        if weight is None or data is None or op.options is None or len(weight.shape) != 4:
            return False
        size = weight.shape[1]
        moves = slides(op.options, weight.shape[1:3])
        strides = {slide.stride for slide in moves}
        return (
            weight.shape[1] == weight.shape[2]
            and size in (3, 5)
            and strides in ({1}, {2})
            and all(slide.dilation == 1 for slide in moves)
            and data.shape[-1] == weight.shape[-1]
            and (
                self._padded_by(op) == size // 2
                # XNNPACK knows what SAME comes to where an image keeps its size.
                or (op.option("padding") == "SAME" and strides == {1})
            )
        )

    def _padded_by(self, op: Op) -> int | None:
        """The padding of the image on every side, by a separate op; None where it is uneven."""
        pad = self._padding.get(op.inputs[0]) if op.inputs[0] is not None else None
        return _pad(pad) if pad is not None else None

    def _sources(self, op: Op) -> Iterator[Tensor]:
        """The inputs of an op, seen through padding."""
        for tensor in _activations(op):
            pad = self._padding.get(tensor)
            yield tensor if pad is None or pad.inputs[0] is None else pad.inputs[0]

    def _users(self, op: Op) -> Iterator[Op]:
        for tensor in op.outputs:
            for reader in self._readers.get(tensor, []):
                if reader.outputs and reader.outputs[0] in self._padding:
                    yield from self._readers.get(reader.outputs[0], [])
                else:
                    yield reader

    def _members(self, op: Op) -> list[Op]:
        """All ops of the op's part, in order."""
        found: set[Op] = set()
        waiting = [op]
        while waiting:
            member = waiting.pop()
            if member in found:
                continue
            found.add(member)
            if self._ways[member] in ("on", "out"):
                sources = (self._makers.get(t) for t in self._sources(member))
                waiting += [m for m in sources if m and self._ways[m] in ("in", "on")]
            if self._ways[member] in ("in", "on"):
                waiting += [u for u in self._users(member) if self._ways[u] in ("on", "out")]
        return [each for each in self._graph.ops if each in found]

    def _against(self, op: Op) -> Iterator[str]:
        """What keeps the op's part from being computed sparsely."""
        if self._ways[op] in ("on", "out"):
            for tensor in self._sources(op):
                maker = self._makers.get(tensor)
                if maker is None:
                    yield phrase(
                        "{op_name} before it reads an input of the model, with no 3×3 stem",
                        op_name(op),
                    )
                elif self._ways[maker] not in ("in", "on"):
                    yield phrase("{op_name}, which it hangs on, has no sparse form", op_name(maker))
        if self._ways[op] in ("in", "on"):
            if any(t in self._graph.outputs for t in op.outputs):
                yield phrase("{op_name}, joined to it, writes an output of the model", op_name(op))
            for user in self._users(op):
                if self._ways[user] not in ("on", "out"):
                    yield phrase("{op_name}, joined to it, has no sparse form", op_name(user))

    def _zeros(self, ops: Sequence[Op]) -> tuple[int, int]:
        """Zeros and weights of 1×1 convolutions, seen through DENSIFY."""
        zeros = count = 0
        for weight in (op.inputs[1] for op in ops):
            assert weight is not None
            maker = self._makers.get(weight)
            stored = maker.inputs[0] if maker is not None and maker.kind == "DENSIFY" else weight
            if stored is not None and stored.data is not None and weight.shape[1:3] == (1, 1):
                zeros += weight.elements - int(np.count_nonzero(stored.data))
                count += weight.elements
        return zeros, count


def _activations(op: Op) -> list[Tensor]:
    """The data that an op computes with; the weights of layers are none."""
    places = op.inputs[: 2 if OPS[op.kind].arithmetic in ("+", "*") else 1]
    return [t for t in places if t is not None and not t.is_const]


def _by_channel(op: Op) -> str:
    """On with images, or an image and a constant that is one number or one a channel.

    XNNPACK counts the sizes of the first input for a constant in either place, so that one in the
    second is taken only where the image is a single row of numbers.
    """
    first, second = op.inputs[0], op.inputs[1]
    if first is None or second is None or len(first.shape) != 4 or len(second.shape) != 4:
        return ""
    has_constant = first.is_const or second.is_const
    return "" if has_constant and sum(size != 1 for size in first.shape) > 1 else "on"


def _on_images(op: Op) -> str:
    return "on" if len(op.outputs[0].shape) == 4 else ""


def _resize(op: Op) -> str:
    data = op.inputs[0]
    if data is None or len(data.shape) != 4:
        return ""
    return "on" if min(data.shape[1:3]) > 1 else ""


def _reduction(op: Op) -> str:
    data = op.inputs[0]
    is_known = constant_numbers(op.inputs[1]) is not None
    return "on or out" if data is not None and len(data.shape) == 4 and is_known else ""


_READING = ("on", "out", "on or out")

_UNARY = (
    *("ABS", "CEIL", "COS", "ELU", "EXP", "FLOOR", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOG"),
    *("LOGISTIC", "NEG", "RELU", "RELU6", "RELU_N1_TO_1", "ROUND", "RSQRT", "SIN", "SQRT"),
    *("SQUARE", "TANH"),
)

# The role of an op in a part, by its kind; layers are examined with their paddings.
_WAYS: dict[str, Callable[[Op], str]] = {
    **dict.fromkeys(_UNARY, _on_images),
    "ADD": _by_channel,
    "DEPTH_TO_SPACE": lambda op: "out",
    "MEAN": _reduction,
    "MUL": _by_channel,
    "RESIZE_BILINEAR": _resize,
    "SUM": _reduction,
}


def _pad(op: Op) -> int | None:
    """The padding of height and width, the same on every side; None where it is uneven."""
    widths = constant_numbers(op.inputs[1])
    if widths is None or widths.shape != (4, 2):
        return None
    inner = np.unique(widths[1:3])
    return int(inner[0]) if inner.size == 1 and not widths[[0, 3]].any() else None
