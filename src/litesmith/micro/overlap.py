"""How far a layer's output must lie below its input so that both can share memory.

The reference kernels write an output from its first byte to its last, and read for each pixel a
window of the input. An output that starts `distance` bytes below its input overwrites only what is
never read again. That is a fact of these kernels: others (CMSIS-NN, ESP-NN) may read ahead.
"""

from collections.abc import Callable, Iterator, Mapping

from litesmith.ir.ops import options_or_defaults
from litesmith.ir.types import Op, Record, Tensor, constant_numbers
from litesmith.micro.buffers import align_up, tensor_bytes

# Bytes written up to some moment, and the first byte of the input that is read after it.
Steps = Iterator[tuple[int, int]]


def shared_distance(op: Op, place: int) -> int | None:
    """Bytes by which the first output must precede an input to share its memory; None where the
    kernel reads the input in another order."""
    walk = _WALKS.get(op.kind)
    source = op.inputs[place] if place < len(op.inputs) else None
    if walk is None or source is None or len(op.outputs) != 1 or source.is_const:
        return None
    steps = walk(op, place)
    if steps is None:
        return None
    distance = max((written - unread for written, unread in steps), default=0)
    return align_up(max(0, distance))


def _width(tensor: Tensor) -> int:
    return tensor_bytes(tensor) // max(1, tensor.elements)


def _elementwise_walk(op: Op, place: int) -> Steps | None:
    """Element by element, both in order: every input that has the output's shape."""
    source, made = op.inputs[place], op.outputs[0]
    shapes = {t.shape for t in op.inputs if t is not None}
    if source is None or shapes != {made.shape}:
        return None
    # The widths differ where types do: the last element is the worst, or the first.
    ends = (0, max(0, made.elements - 1))
    return iter([((n + 1) * _width(made), (n + 1) * _width(source)) for n in ends])


def _window_walk(op: Op, place: int) -> Steps | None:
    source, made = op.inputs[0], op.outputs[0]
    if place or source is None or len(source.shape) != 4 or len(made.shape) != 4:
        return None
    options = options_or_defaults(op.kind, op.options)
    return _window_steps(source, made, *_rows_and_columns(op, options, source, made))


def _rows_and_columns(
    op: Op, options: Record, source: Tensor, made: Tensor
) -> tuple[list[int], list[int]]:
    """The first row that each output row reads, and the first column that each column reads."""
    strides = options.integer("stride_h"), options.integer("stride_w")
    if "filter_height" in options:
        kernel = options.integer("filter_height"), options.integer("filter_width")
        dilations = 1, 1
    else:
        weight = op.inputs[1]
        assert weight is not None
        kernel = weight.shape[1], weight.shape[2]
        dilations = options.integer("dilation_h_factor"), options.integer("dilation_w_factor")
    is_same = options.word("padding") == "SAME"
    firsts: list[list[int]] = []
    for axis in (0, 1):
        size, out = source.shape[1 + axis], made.shape[1 + axis]
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        needed = (out - 1) * strides[axis] + reach - size
        before = max(0, needed) // 2 if is_same else 0
        firsts.append([max(0, n * strides[axis] - before) for n in range(out)])
    return firsts[0], firsts[1]


def _window_steps(source: Tensor, made: Tensor, rows: list[int], columns: list[int]) -> Steps:
    """At the end of each output pixel, and of each image of a batch."""
    _, height, width, depth = source.shape
    pixel, made_pixel = depth * _width(source), made.shape[3] * _width(made)
    image, made_image = height * width * pixel, len(rows) * len(columns) * made_pixel
    for batch in range(source.shape[0]):
        for y, row in enumerate(rows):
            after = min(rows[y + 1 :], default=height) * width * pixel
            for x, column in enumerate(columns):
                # The pixel's own window is read until its last channel is written.
                unread = min((row * width + column) * pixel, after)
                written = (y * len(columns) + x + 1) * made_pixel
                yield batch * made_image + written, batch * image + unread


def _padding_walk(op: Op, place: int) -> Steps | None:
    """Row by row: padding is written without reading anything."""
    source, made, edges = op.inputs[0], op.outputs[0], constant_numbers(op.inputs[1])
    if place or source is None or edges is None or edges.shape != (4, 2) or edges[[0, 3]].any():
        return None
    _, height, width, depth = source.shape
    row, made_row = width * depth * _width(source), made.shape[2] * depth * _width(made)
    above = int(edges[1, 0])
    # Once the last row is read, nothing is left to be overwritten.
    ends = ((above + y + 1) * made_row for y in range(-1, height - 1))
    return iter([(written, y * row) for y, written in enumerate(ends)])


_UNARY = (
    "ABS CEIL COS ELU EXP FLOOR HARD_SWISH LEAKY_RELU LOG LOGISTIC NEG QUANTIZE DEQUANTIZE RELU "
    "RELU6 ROUND RSQRT SIN SQRT SQUARE TANH"
)
_BINARY = "ADD MAXIMUM MINIMUM MUL SQUARED_DIFFERENCE SUB"
_WINDOWS = "AVERAGE_POOL_2D CONV_2D DEPTHWISE_CONV_2D MAX_POOL_2D"

_WALKS: Mapping[str, Callable[[Op, int], Steps | None]] = {
    **dict.fromkeys(f"{_UNARY} {_BINARY}".split(), _elementwise_walk),
    **dict.fromkeys(_WINDOWS.split(), _window_walk),
    "PAD": _padding_walk,
}
