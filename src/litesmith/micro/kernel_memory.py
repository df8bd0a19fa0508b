"""The memory of each kernel of TensorFlow Lite Micro in the arena, one row per kind of op.

Read in its sources (`micro/kernels/*.cc`, `flatbuffer_conversions.cc`) and observed: a build for a
32-bit machine reported every allocation for a call of each op in each type.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from litesmith.ir.types import Op, Tensor, constant_numbers
from litesmith.micro.buffers import tensor_bytes
from litesmith.micro.structures import EVAL_TENSOR, size_of

# The sizes of the blocks that a kernel requests when it is prepared, given the machine's word size.
Blocks = Callable[[Op, int], list[int]]


def _none(_: Op, __: int) -> list[int]:
    return []


class Kernel(NamedTuple):
    """Memory of one kind of op.

    options  the structure that holds its options, "" for none
    data     the structure of the kernel's data, "" for none
    lasting  further permanent blocks
    scratch  blocks that live during the op
    wheel    the structure of the kernel's data in the wheel, which can decompress weights
    """

    options: str = ""
    data: str = ""
    lasting: Blocks = _none
    scratch: Blocks = _none
    wheel: str = ""


def _optional_input(op: Op, place: int) -> Tensor | None:
    return op.inputs[place] if place < len(op.inputs) else None


def _dtype(op: Op, place: int = 0) -> str:
    tensor = _optional_input(op, place)
    return "" if tensor is None else tensor.dtype


def _shape(op: Op, place: int) -> tuple[int, ...]:
    tensor = _optional_input(op, place)
    return () if tensor is None else tensor.shape


def _dims(tensor: Tensor) -> int:
    """Bytes of a writable shape: the count and the sizes."""
    return 4 + 4 * len(tensor.shape)


def _own_shape(op: Op, _: int) -> list[int]:
    return [_dims(op.outputs[0])]


def _channels(axis: int) -> Blocks:
    """A multiplier and a shift for each channel, of float layers too."""

    def blocks(op: Op, _: int) -> list[int]:
        shape = _shape(op, 1)
        return [4 * shape[axis]] * 2 if shape else []

    return blocks


def _rows(op: Op, _: int) -> list[int]:
    """The memory of a fully connected layer with a scale for each row."""
    weight = _optional_input(op, 1)
    if weight is None or weight.quant is None or not weight.quant.per_channel:
        return []
    return [4 * weight.quant.scale.size] * 2 if _dtype(op) in ("int8", "int16") else []


def _unpacked_bytes(op: Op, _: int) -> list[int]:
    """Weights of four bits, unpacked while the op runs."""
    weight = _optional_input(op, 1)
    return [weight.elements] if weight is not None and weight.dtype == "int4" else []


def _sums(op: Op, _: int) -> list[int]:
    """Sums of 4 or 8 bytes for each element that a transposed convolution makes."""
    width = {"int8": 4, "int16": 8}.get(_dtype(op, 2), 0)
    return [width * op.outputs[0].elements] if width else []


def _axes(op: Op, _: int) -> list[int]:
    axes = _optional_input(op, 1)
    return [4 * len(_shape(op, 0)), 4 * (axes.elements if axes is not None else 0)]


def _accumulator_bytes(op: Op, word: int) -> list[int]:
    is_integer = _dtype(op) in ("int8", "int16")
    return [*([4 * op.outputs[0].elements] if is_integer else []), *_axes(op, word)]


def _lstm(op: Op, _: int) -> list[int]:
    """Four buffers of the cell's type; the states are inputs 18 and 19."""
    state, cell = _optional_input(op, 18), _optional_input(op, 19)
    if state is None or cell is None:
        return []
    return [tensor_bytes(cell) // max(1, cell.elements) * state.elements] * 4


def _svdf(op: Op, _: int) -> list[int]:
    batch, filters, units = _shape(op, 0)[0], _shape(op, 1)[0], op.outputs[0].shape[-1]
    if _dtype(op) == "float32":
        return [4 * batch * filters]
    return [4 * batch * filters, 4 * batch * units]


def _transposed_bytes(op: Op, word: int) -> list[int]:
    """The memory of a product of matrices: its transposed factor, and the shape of the result."""
    blocks = [28] if _dtype(op) in ("int8", "int16") else []
    turned = [op.inputs[0]] if op.option("adj_x") else []
    turned += [] if op.option("adj_y") else [op.inputs[1]]
    for tensor in filter(None, turned):
        blocks += [size_of(EVAL_TENSOR, word), _dims(tensor), tensor_bytes(tensor)]
    return [*blocks, _dims(op.outputs[0])]


def _softmax_tables(op: Op, _: int) -> list[int]:
    return [1026, 1026] if _dtype(op) == "int16" else []


def _pointers(op: Op, word: int) -> list[int]:
    return [word * len(op.inputs)]


def _if_int8(fields: str) -> Blocks:
    return lambda op, word: [size_of(fields, word)] if _dtype(op) == "int8" else []


def _lookup_bytes(op: Op, word: int) -> list[int]:
    return [_dims(op.outputs[0]), size_of("iz", word)]


def _mirror_bytes(op: Op, _: int) -> list[int]:
    return [4 * len(_shape(op, 0))] * 2


def _decoder_bytes(op: Op, word: int) -> list[int]:
    """A pointer and a state for each tensor that is decoded, by the kind of code."""
    blocks = [word * len(op.outputs)]
    for place in range(len(op.outputs)):
        coded = constant_numbers(_optional_input(op, 2 * place + 1))
        kind = None if coded is None or not coded.size else int(coded.ravel().view("uint8")[0])
        blocks.append(size_of(_STATES.get(kind or 0, _STATES[0]), word))
    return blocks


_STATES = {0: "pppzpzpiibbbb", 1: "pppzppzzibb", 2: "pppzpzpiibbbb"}

_DENSE = "iiiiiiiiippb"
_CONVOLUTION = "[iiii]iiiiippiii"
_WHEEL_CONVOLUTION = _CONVOLUTION + "ii"

KERNELS: Mapping[str, Kernel] = {
    "ABS": Kernel("", "iiiibii"),
    "ADD": Kernel("ib", "b" + 14 * "i"),
    "ADD_N": Kernel("", "", _if_int8(10 * "i"), _pointers),
    "ARG_MAX": Kernel("i"),
    "ARG_MIN": Kernel("i"),
    "ASSIGN_VARIABLE": Kernel(wheel="i"),
    "AVERAGE_POOL_2D": Kernel(10 * "i", "[iiii]iiii"),
    "BATCH_MATMUL": Kernel("bbb", "pppbbb", _transposed_bytes),
    "BATCH_TO_SPACE_ND": Kernel(),
    "BROADCAST_ARGS": Kernel(),
    "BROADCAST_TO": Kernel(),
    "CALL_ONCE": Kernel("i", "ib"),
    "CAST": Kernel("ii"),
    "CEIL": Kernel(),
    "CONCATENATION": Kernel("ii", "ippiii", wheel="[ippiii]" + 10 * "i"),
    "CONV_2D": Kernel(7 * "i", _CONVOLUTION, _channels(0), _unpacked_bytes, _WHEEL_CONVOLUTION),
    "COS": Kernel(),
    "CUMSUM": Kernel("bb", "", _if_int8(9 * "i")),
    "DEPTHWISE_CONV_2D": Kernel(
        7 * "i", _CONVOLUTION, _channels(-1), _unpacked_bytes, _WHEEL_CONVOLUTION
    ),
    "DEPTH_TO_SPACE": Kernel("i", "", _own_shape),
    "DEQUANTIZE": Kernel("", "[di]iii"),
    "DIV": Kernel("i", 7 * "i"),
    "DYNAMIC_UPDATE_SLICE": Kernel(),
    "ELU": Kernel("", 256 * "b"),
    "EMBEDDING_LOOKUP": Kernel("", "", _lookup_bytes),
    "EQUAL": Kernel("", "iiiiiiib"),
    "EXP": Kernel(),
    "EXPAND_DIMS": Kernel(),
    "FILL": Kernel(),
    "FLOOR": Kernel(),
    "FLOOR_DIV": Kernel(),
    "FLOOR_MOD": Kernel(),
    "FULLY_CONNECTED": Kernel(8 * "i", _DENSE, _rows, _unpacked_bytes, _DENSE + "ii"),
    "GATHER": Kernel("ii", "", _own_shape),
    "GATHER_ND": Kernel("", "", _own_shape),
    "GREATER": Kernel("", "iiiiiiib"),
    "GREATER_EQUAL": Kernel("", "iiiiiiib"),
    "HARD_SWISH": Kernel("", "hhhihi"),
    "IF": Kernel("ii", "ii"),
    "L2_NORMALIZATION": Kernel("i", "i"),
    "L2_POOL_2D": Kernel(10 * "i", "", _own_shape),
    "LEAKY_RELU": Kernel("i", 6 * "i"),
    "LESS": Kernel("", "iiiiiiib"),
    "LESS_EQUAL": Kernel("", "iiiiiiib"),
    "LOG": Kernel(),
    "LOGICAL_AND": Kernel(),
    "LOGICAL_NOT": Kernel(),
    "LOGICAL_OR": Kernel(),
    "LOGISTIC": Kernel("", 4 * "i"),
    "LOG_SOFTMAX": Kernel("", "", _if_int8("iiiiizz")),
    "MAXIMUM": Kernel(),
    "MAX_POOL_2D": Kernel(10 * "i", "[iiii]iiii"),
    "MEAN": Kernel("b", 11 * "i", _none, _accumulator_bytes),
    "MINIMUM": Kernel(),
    "MIRROR_PAD": Kernel("i", 5 * "i", _none, _mirror_bytes),
    "MUL": Kernel("i", 9 * "i"),
    "NEG": Kernel(),
    "NOT_EQUAL": Kernel("", "iiiiiiib"),
    "PACK": Kernel("ii"),
    "PAD": Kernel("", 14 * "i"),
    "PADV2": Kernel("", 14 * "i"),
    "PRELU": Kernel("", 7 * "i"),
    "QUANTIZE": Kernel("", "[id]iii"),
    "READ_VARIABLE": Kernel(),
    "REDUCE_ALL": Kernel("b", 11 * "i", _none, _axes),
    "REDUCE_MAX": Kernel("b", 11 * "i", _none, _axes),
    "REDUCE_MIN": Kernel("b", 11 * "i", _none, _axes),
    "RELU": Kernel("", 7 * "i"),
    "RELU6": Kernel("", "ii"),
    "RESHAPE": Kernel(9 * "i"),
    "RESIZE_BILINEAR": Kernel("bb"),
    "RESIZE_NEAREST_NEIGHBOR": Kernel("bb"),
    "REVERSE_V2": Kernel(),
    "ROUND": Kernel(),
    "RSQRT": Kernel("", "iiiibii"),
    "SELECT_V2": Kernel("", "b"),
    "SHAPE": Kernel("i"),
    "SIN": Kernel(),
    "SLICE": Kernel(),
    "SOFTMAX": Kernel("i", "diiiiiiippppp", _softmax_tables),
    "SPACE_TO_BATCH_ND": Kernel("", "i"),
    "SPACE_TO_DEPTH": Kernel("i", "", _own_shape),
    "SPLIT": Kernel("i"),
    "SPLIT_V": Kernel("i"),
    "SQRT": Kernel(),
    "SQUARE": Kernel(),
    "SQUARED_DIFFERENCE": Kernel("", "d" + 13 * "d"),
    "SQUEEZE": Kernel(9 * "i"),
    "STRIDED_SLICE": Kernel(6 * "i", 21 * "i"),
    "SUB": Kernel("ib", "b" + 12 * "i"),
    "SUM": Kernel("b", 11 * "i", _none, _accumulator_bytes),
    "SVDF": Kernel("iib", 9 * "i", _none, _svdf),
    "TANH": Kernel("", 4 * "i"),
    "TRANSPOSE": Kernel(),
    "TRANSPOSE_CONV": Kernel(5 * "i", 16 * "i" + "pp", _channels(0), _sums, 18 * "i" + "pp"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Kernel("iiibb", 86 * "d", _none, _lstm),
    "UNPACK": Kernel("ii"),
    "VAR_HANDLE": Kernel("pp", "i"),
    "WHILE": Kernel("ii", "ii"),
    "ZEROS_LIKE": Kernel(),
}

# Custom ops by their names.
CUSTOM_KERNELS: Mapping[str, Kernel] = {
    "CIRCULAR_BUFFER": Kernel("", "ii"),
    "TFLM_DECODE": Kernel("", "", _decoder_bytes),
}


def kernel_of(op: Op) -> Kernel | None:
    """The row of an op; None where its kernel is not known."""
    return CUSTOM_KERNELS.get(op.custom) if op.is_custom else KERNELS.get(op.kind)
