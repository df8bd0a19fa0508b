"""Layers in bands: where the outputs of some layers make the peak, they are computed a few rows at
a time, so that no more than a band of each is in memory at once.

A region of a graph (one tensor in, one out) is repeated for each band of its output's rows. Each op
reads the rows that its window needs, found backwards from the band: a slice of its input, with the
padding that the whole op had at the edges written out. Rows shared by two bands are computed twice.
Every number is computed by the same kernel from the same numbers, so that the outputs stay equal to
the bit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from litesmith.ir.edit import consumers, drop_plan, regraph, with_main
from litesmith.ir.ops import OPS, options_or_defaults
from litesmith.ir.types import Graph, Model, Op, Tensor, frozen
from litesmith.ir.window import pads, slides

Span = tuple[int, int]  # rows, the last one excluded

_IMAGE = 4  # dimensions: batch, rows, columns, channels
_TYPES = ("float32", "int8", "int16")  # that the kernels slice, pad and join


class Reading(NamedTuple):
    """How an op reads the rows of an input.

    rows     gives the input rows that some output rows need, also beyond the input's edges
    columns  padding before and after the columns
    """

    rows: Callable[[Span], Span]
    columns: Span = (0, 0)


@dataclass(frozen=True)
class Region:
    """Ops that can be made in bands: neighbours in the order, from one tensor to one tensor."""

    first: int
    last: int

    def ops(self, graph: Graph) -> tuple[Op, ...]:
        return graph.ops[self.first : self.last + 1]


def list_regions(graph: Graph, peak: int, most: int) -> Iterator[Region]:
    """The regions that contain the op `peak` and end in an output that can be cut, the shortest
    first; a region has at most `most` ops.
    """
    readers = consumers(graph)
    for length in range(2, most + 1):
        for first in range(max(0, peak - length + 1), min(peak + 1, len(graph.ops) - length + 1)):
            region = Region(first, first + length - 1)
            if source_of(graph, region, readers) is not None:
                yield region


def source_of(
    graph: Graph, region: Region, readers: Mapping[Tensor, Sequence[Op]]
) -> Tensor | None:
    """The tensor that a region reads; None where it cannot be made in bands."""
    ops = region.ops(graph)
    inner, made = set(ops), {t for op in ops for t in op.outputs}
    if any(read_rows(op) is None for op in ops):
        return None
    sources = {t for op in ops for t in _flowing(op) if t not in made}
    ends = {t for t in made if t in graph.outputs or not inner.issuperset(readers.get(t, ()))}
    if len(sources) != 1 or ends != {ops[-1].outputs[0]}:
        return None
    return next(iter(sources))


def split_region(model: Model, region: Region, bands: int) -> Model:
    """The model with a region's output computed in this many bands, which are joined at the end."""
    graph = model.main
    ops = region.ops(graph)
    source = source_of(graph, region, consumers(graph))
    if source is None:
        raise ValueError("these ops cannot be made in bands")
    whole = ops[-1].outputs[0]
    made: list[Op] = []
    pieces: list[Tensor] = []
    for number in range(bands):
        height = whole.shape[1]
        rows = height * number // bands, height * (number + 1) // bands
        band = _Band(source, ops, rows, f"band{number}")
        made += band.ops
        pieces.append(band.made)
    join = options_or_defaults("CONCATENATION", None).set(axis=1)
    made.append(
        Op("CONCATENATION", tuple(pieces), (whole,), join, _version("CONCATENATION", whole))
    )
    changed = (*graph.ops[: region.first], *made, *graph.ops[region.last + 1 :])
    return drop_plan(with_main(model, regraph(graph, ops=changed)))


class _Band:
    """The ops that make some rows of the last op's output."""

    def __init__(self, source: Tensor, ops: Sequence[Op], rows: Span, name: str) -> None:
        self.ops: list[Op] = []
        self._name = name
        wanted = _wanted_rows(ops, rows)
        self._pieces = {source: (source, (0, source.shape[1]))}
        for op in ops:
            out = op.outputs[0]
            self._pieces[out] = self._make(op, wanted[out]), wanted[out]
        self.made = self._pieces[ops[-1].outputs[0]][0]

    def _make(self, op: Op, rows: Span) -> Tensor:
        readings = read_rows(op)
        assert readings is not None
        inputs = list(op.inputs)
        for place, reading in readings.items():
            source = inputs[place]
            assert source is not None
            inputs[place] = self._read(source, reading.rows(rows), reading.columns)
        made = self._part(op.outputs[0], (rows[1] - rows[0], op.outputs[0].shape[2]))
        options = op.options
        if op.kind in _WINDOWS:
            options = options_or_defaults(op.kind, op.options).set(padding="VALID")
        if op.kind == "PAD":  # the padding was added to the rows it reads
            return inputs[0] or made
        self.ops.append(replace(op, inputs=tuple(inputs), outputs=(made,), options=options))
        return made

    def _read(self, tensor: Tensor, rows: Span, columns: Span) -> Tensor:
        """The rows of a tensor, zeros beyond its edges."""
        piece, held = self._pieces[tensor]
        height, width = tensor.shape[1:3]
        kept = max(rows[0], 0), min(rows[1], height)
        if kept[0] >= kept[1]:
            raise ValueError("a band of nothing but padding")
        if kept != held:
            size = kept[1] - kept[0], width
            cut = self._part(tensor, size)
            begin = _numbers("begin", [0, kept[0] - held[0], 0, 0])
            shape = _numbers("size", cut.shape)
            version = _version("SLICE", tensor)
            self.ops.append(Op("SLICE", (piece, begin, shape), (cut,), version=version))
            piece = cut
        before, after = kept[0] - rows[0], rows[1] - kept[1]
        if before or after or any(columns):
            padded = self._part(tensor, (rows[1] - rows[0], width + sum(columns)))
            edges = _numbers("edges", [[0, 0], [before, after], list(columns), [0, 0]])
            self.ops.append(Op("PAD", (piece, edges), (padded,), version=_version("PAD", tensor)))
            piece = padded
        return piece

    def _part(self, tensor: Tensor, size: tuple[int, int]) -> Tensor:
        shape = (tensor.shape[0], *size, tensor.shape[3])
        name = f"{tensor.name}/{self._name}.{len(self.ops)}"
        return replace(tensor, name=name, shape=shape, dynamic=None)


def _wanted_rows(ops: Sequence[Op], rows: Span) -> dict[Tensor, Span]:
    """The rows of each tensor that these of the last one need, found from the end."""
    wanted = {ops[-1].outputs[0]: rows}
    for op in reversed(ops):
        for place, reading in (read_rows(op) or {}).items():
            tensor = op.inputs[place]
            assert tensor is not None
            low, high = reading.rows(wanted[op.outputs[0]])
            low, high = max(low, 0), min(high, tensor.shape[1])
            known = wanted.get(tensor, (low, high))
            wanted[tensor] = min(low, known[0]), max(high, known[1])
    return wanted


def _numbers(name: str, values: Sequence[object]) -> Tensor:
    data = np.array(values, np.int32)
    return Tensor(name, data.shape, "int32", frozen(data))


def _version(kind: str, tensor: Tensor) -> int:
    return OPS[kind].versions.get(tensor.dtype, 1)


# How ops read rows.


def read_rows(op: Op) -> dict[int, Reading] | None:
    """How an op reads each of its computed inputs; None where it cannot be computed in bands."""
    reads = _READS.get(op.kind)
    out = op.outputs[0] if len(op.outputs) == 1 else None
    if reads is None or out is None or op.intermediates:
        return None
    if not all(_is_image(t) for t in (out, *_flowing(op))):
        return None
    return reads(op)


def _flowing(op: Op) -> list[Tensor]:
    return [t for t in op.inputs if t is not None and not t.is_const]


def _is_image(tensor: Tensor) -> bool:
    is_plain = len(tensor.shape) == _IMAGE and tensor.shape[0] == 1 and tensor.dtype in _TYPES
    return is_plain and not tensor.variable and min(tensor.shape) > 0


def _same_rows(op: Op) -> dict[int, Reading] | None:
    """Element by element: constants serve every row alike, or nothing is done."""
    out = op.outputs[0]
    readings: dict[int, Reading] = {}
    for place, tensor in enumerate(op.inputs):
        if tensor is None:
            continue
        if not tensor.is_const:
            if tensor.shape != out.shape:
                return None
            readings[place] = Reading(_shift_by(0))
        elif len(tensor.shape) >= _IMAGE - 1 and tensor.shape[-3] != 1:
            return None
    return readings or None


def _windows(op: Op) -> dict[int, Reading] | None:
    source, out = op.inputs[0], op.outputs[0]
    if source is None or source.is_const or any(not t.is_const for t in _rest(op)):
        return None
    options = options_or_defaults(op.kind, op.options)
    if "filter_height" in options:
        windows = options.integer("filter_height"), options.integer("filter_width")
    else:
        weight = op.inputs[1]
        assert weight is not None
        windows = weight.shape[1], weight.shape[2]
    slide, across = slides(options, windows)
    padding = options.word("padding")
    above, below = pads(padding, source.shape[1], slide) if padding == "SAME" else (0, 0)
    columns = pads(padding, source.shape[2], across) if padding == "SAME" else (0, 0)
    # Pools ignore padding: zeros written in its place would count.
    if op.kind in _POOLS and (above or below or any(columns)):
        return None
    if padding == "VALID" and out.shape[1] < 1:
        return None

    def rows(wanted: Span) -> Span:
        first = wanted[0] * slide.stride - above
        return first, (wanted[1] - 1) * slide.stride - above + slide.reach

    return {0: Reading(rows, columns)}


def _rest(op: Op) -> list[Tensor]:
    return [t for t in op.inputs[1:] if t is not None]


def _edges(op: Op) -> dict[int, Reading] | None:
    """Zeros around an image: rows of the result are shifted against those of the image."""
    edges = op.inputs[1]
    if edges is None or edges.data is None or edges.shape != (_IMAGE, 2):
        return None
    (front, back), (above, _), columns, channels = edges.values().tolist()
    if front or back or any(channels):
        return None
    return {0: Reading(_shift_by(above), tuple(columns))}


def _shift_by(count: int) -> Callable[[Span], Span]:
    def rows(wanted: Span) -> Span:
        return wanted[0] - count, wanted[1] - count

    return rows


_POOLS = ("AVERAGE_POOL_2D", "MAX_POOL_2D")
_WINDOWS = (*_POOLS, "CONV_2D", "DEPTHWISE_CONV_2D")
_ALIKE = "ADD HARD_SWISH LEAKY_RELU LOGISTIC MUL QUANTIZE RELU RELU6 SUB TANH"

_READS: Mapping[str, Callable[[Op], dict[int, Reading] | None]] = {
    **dict.fromkeys(_ALIKE.split(), _same_rows),
    **dict.fromkeys(_WINDOWS, _windows),
    "PAD": _edges,
}
