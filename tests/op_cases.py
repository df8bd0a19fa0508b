"""Small calls of every op, as data: `tests/test_every_op.py` runs them.

A case lists the inputs in order: a `Feed` is handed over when the model runs, a `State` is kept by
the runtime, None is left out, a tensor is itself, and everything else is a constant.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from litesmith.ir.types import Quant, Tensor, Value


class Feed(NamedTuple):
    """A graph input of random values."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -3
    high: float = 3


class State(NamedTuple):
    """A variable tensor that starts as zeros."""

    shape: tuple[int, ...]


Input = Feed | State | Tensor | ArrayLike | None


class Case(NamedTuple):
    """One call.

    shapes   of the outputs, where only a run can tell
    error    that a float result may have, as a share of the largest value
    version  of the op, where the runtime knows no first one
    quant    of the output
    """

    inputs: tuple[Input, ...]
    options: dict[str, Value]
    shapes: Sequence[Sequence[int]] | None = None
    error: float = 1e-6
    version: int = 1
    quant: Quant | None = None


def case(
    *inputs: Input,
    shapes: Sequence[Sequence[int]] | None = None,
    error: float = 1e-6,
    version: int = 1,
    quant: Quant | None = None,
    **options: Value,
) -> Case:
    return Case(inputs, options, shapes, error, version, quant)


def real(*shape: int, low: float = -3, high: float = 3) -> Feed:
    return Feed(shape, "float32", low, high)


def whole(*shape: int, dtype: str = "int32", low: int = -9, high: int = 9) -> Feed:
    return Feed(shape, dtype, low, high)


def truth(*shape: int) -> Feed:
    return Feed(shape, "bool")


def weight(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def int64(values: ArrayLike) -> np.ndarray:
    return np.array(values, np.int64)


def float32(values: ArrayLike) -> np.ndarray:
    return np.array(values, np.float32)


UNARY = [case(real(2, 3)), case(real()), case(real(1, 2, 3, 2, 1))]
POSITIVE = [case(real(2, 3, low=0.1, high=9))]
ARITHMETIC = [
    case(real(2, 3), real(2, 3)),
    case(real(2, 1, 3), real(4, 1)),
    case(real(2, 3), real()),
    case(real(1, 2, 2, 3), float32([1, 2, 3]), fused_activation_function="RELU"),
    case(real(2, 3), real(2, 3), fused_activation_function="RELU6"),
    case(real(2, 3), real(2, 3), fused_activation_function="RELU_N1_TO_1"),
    case(whole(2, 3), whole(3), fused_activation_function="RELU6"),
    case(whole(2, 3), whole(2, 3)),
]
INT64_ARITHMETIC = [case(whole(2, 3, dtype="int64"), whole(3, dtype="int64"))]
ORDERING = [
    case(real(2, 3), real(2, 3)),
    case(real(2, 1), float32([0.5, 1.5])),
    case(whole(2, 3, low=0, high=3), whole(3, low=0, high=3)),
    case(whole(4, dtype="int64", low=0, high=3), whole(4, dtype="int64", low=0, high=3)),
]
EQUALITY = [*ORDERING, case(truth(2, 3), truth(2, 3))]
REDUCTION = [
    case(real(2, 3, 4), [1]),
    case(real(2, 3, 4), [0, -1], keep_dims=True),
    case(real(2, 3, 4), [-2, 1, 1]),
    case(real(2, 3), -1),
    case(real(1, 2, 3, 2), [1, 2]),
    case(whole(2, 3, 4), [2, 0]),
    case(whole(2, 3, 4, dtype="int64"), [1], keep_dims=True),
]
EXTREME = [
    *REDUCTION,
    case(whole(2, 3, dtype="int8"), [1]),
    case(whole(2, 3, dtype="uint8", low=0), [1]),
]
LOGICAL = [case(truth(2, 3, 4), [1]), case(truth(2, 3), [0, -1], keep_dims=True)]
ARG = [
    case(real(2, 3, 4), 1, output_type="INT32"),
    case(real(2, 3, 4), -1, output_type="INT64"),
    case(whole(3, 9, low=0, high=3), int64([1]), output_type="INT32"),
    case(whole(3, 9, dtype="int8", low=0, high=3), [0], output_type="INT32"),
    case(truth(2, 5), [-1], output_type="INT32"),
]
POOLS = [
    case(real(1, 5, 6, 2), filter_width=2, filter_height=3),
    case(real(2, 5, 6, 2), filter_width=3, filter_height=3, padding="VALID"),
    case(real(1, 7, 6, 3), filter_width=3, filter_height=2, stride_w=2, stride_h=3),
    case(real(1, 4, 4, 1), filter_width=2, filter_height=2, fused_activation_function="RELU"),
]
SEGMENTS = [
    case(real(4, 2), [0, 1, 0, 3], 5),
    case(real(2, 2, 3), [[0, 1], [1, -1]], 2),
    case(whole(4, 2), [1, 1, 1, 1], 2),
    case(whole(3), [2, 0, 2], 3),
]

ELEMENTWISE = {
    "ABS": [*UNARY, case(whole(2, 3))],
    "ADD": ARITHMETIC + INT64_ARITHMETIC,
    "ADD_N": [case(real(2, 3), real(2, 3), real(2, 3)), case(whole(4), whole(4))],
    "ATAN2": [case(real(2, 3), real(2, 3))],
    "BITWISE_XOR": [
        case(whole(2, 3), whole(2, 3)),
        case(whole(2, 3, dtype="int8"), whole(3, dtype="int8")),
        case(whole(4, dtype="uint32", low=0), whole(4, dtype="uint32", low=0)),
    ],
    "BUCKETIZE": [
        case(real(2, 5), boundaries=(-1.0, 0.0, 0.5)),
        case(whole(9), boundaries=(-3.0, 0.0, 4.0)),
    ],
    "CAST": [
        case(real(2, 3), in_data_type="FLOAT32", out_data_type="INT32"),
        case(real(2, 3, low=0), in_data_type="FLOAT32", out_data_type="UINT8"),
        case(real(2, 3), in_data_type="FLOAT32", out_data_type="BOOL"),
        case(real(2, 3), in_data_type="FLOAT32", out_data_type="FLOAT16"),
        case(whole(2, 3), in_data_type="INT32", out_data_type="FLOAT32"),
        case(whole(2, 3, low=-999, high=999), in_data_type="INT32", out_data_type="INT8"),
        case(whole(2, 3, dtype="int64"), in_data_type="INT64", out_data_type="INT32"),
        case(truth(5), in_data_type="BOOL", out_data_type="FLOAT32"),
        case(Feed((4,), "complex64"), in_data_type="COMPLEX64", out_data_type="FLOAT32"),
    ],
    "CEIL": UNARY,
    "COMPLEX_ABS": [case(Feed((2, 3), "complex64"))],
    "COS": UNARY,
    "DEQUANTIZE": [case(Feed((2, 3), "float16"))],
    "DIV": [
        case(real(2, 3), real(2, 3, low=0.5)),
        case(real(2, 3), real(3, low=-3, high=-1), fused_activation_function="RELU6"),
        case(whole(2, 9), whole(9, low=1)),
        case(whole(2, 9), whole(9, low=-9, high=-1)),
    ],
    "ELU": UNARY,
    "EQUAL": EQUALITY,
    "EXP": UNARY,
    "FAKE_QUANT": [
        case(real(2, 9), min=-1.0, max=2.0),
        case(real(2, 9), min=-1.3, max=2.1, num_bits=4),
        case(real(2, 9), min=0.0, max=2.5, num_bits=5),
    ],
    "FLOOR": UNARY,
    "FLOOR_DIV": [
        case(real(2, 3), real(2, 3, low=0.5)),
        case(real(2, 3), real(3, low=-3, high=-0.5)),
        case(whole(2, 9), whole(9, low=1)),
        case(whole(2, 9), whole(9, low=-9, high=-1)),
    ],
    "FLOOR_MOD": [
        case(real(2, 3), real(2, 3, low=0.5)),
        case(real(2, 3), real(3, low=-3, high=-0.5)),
        case(whole(2, 9), whole(9, low=1)),
        case(whole(2, 9, dtype="int64"), whole(9, dtype="int64", low=-9, high=-1)),
    ],
    "GELU": [
        case(real(2, 9), error=3e-6),
        case(real(2, 9), approximate=True, error=1e-5),
    ],
    "GREATER": ORDERING,
    "GREATER_EQUAL": ORDERING,
    "HARD_SWISH": [case(real(3, 9, low=-5, high=5))],
    "IMAG": [case(Feed((2, 3), "complex64"))],
    "LEAKY_RELU": [case(real(2, 9)), case(real(2, 9), alpha=0.5)],
    "LESS": ORDERING,
    "LESS_EQUAL": ORDERING,
    "LOG": POSITIVE,
    "LOGICAL_AND": [case(truth(2, 3), truth(2, 3)), case(truth(2, 3), truth(3))],
    "LOGICAL_NOT": [case(truth(2, 3))],
    "LOGICAL_OR": [case(truth(2, 3), truth(2, 3)), case(truth(2, 1), truth(3))],
    "LOGISTIC": [case(real(2, 9, low=-9, high=9), error=2e-6)],
    "MAXIMUM": [*ORDERING, case(whole(5, dtype="int8"), whole(5, dtype="int8"))],
    "MINIMUM": [*ORDERING, case(whole(5, dtype="int16"), whole(5, dtype="int16"))],
    "MUL": ARITHMETIC + INT64_ARITHMETIC,
    "NEG": [*UNARY, case(whole(2, 3)), case(whole(3, dtype="int64"))],
    "NOT_EQUAL": EQUALITY,
    "POW": [
        case(real(2, 3, low=0.1), real(3)),
        case(whole(2, 3, low=-3, high=4), whole(3, low=0, high=5)),
    ],
    "PRELU": [
        case(real(1, 3, 3, 2), weight(2)),
        case(real(1, 3, 3, 2), weight(1, 1, 2)),
        case(real(2, 5), real(2, 5)),
    ],
    "REAL": [case(Feed((2, 3), "complex64"))],
    "RELU": UNARY,
    "RELU6": [case(real(3, 9, low=-9, high=9))],
    "RELU_0_TO_1": UNARY,
    "RELU_N1_TO_1": UNARY,
    "RIGHT_SHIFT": [
        case(whole(9, low=-999, high=999), whole(9, low=0, high=40)),
        case(whole(2, 3, dtype="int8"), whole(3, dtype="int8", low=-2, high=9)),
        case(whole(4, dtype="uint16", low=0, high=999), whole(4, dtype="uint16", low=0, high=20)),
    ],
    "ROUND": [*UNARY, case(float32([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]))],
    "RSQRT": POSITIVE,
    "SELECT": [
        case(truth(2, 3), real(2, 3), real(2, 3)),
        case(truth(2), real(2, 3), real(2, 3)),
        case(truth(), whole(2, 3), whole(2, 3)),
    ],
    "SELECT_V2": [
        case(truth(2, 3), real(2, 3), real(2, 3)),
        case(truth(3), real(2, 1), real()),
        case(truth(2, 1), whole(2, 3, dtype="int64"), whole(3, dtype="int64")),
    ],
    "SIGN": [*UNARY, case(whole(9, low=-1, high=2))],
    "SIN": UNARY,
    "SQRT": POSITIVE,
    "SQUARE": UNARY,
    "SQUARED_DIFFERENCE": [
        case(real(2, 3), real(3)),
        case(whole(2, 3), whole(2, 3)),
    ],
    "SUB": ARITHMETIC + INT64_ARITHMETIC,
    "TANH": [case(real(2, 9), error=3e-6)],
}

COMBINING = {
    "ARG_MAX": ARG,
    "ARG_MIN": ARG,
    "AVERAGE_POOL_2D": POOLS,
    "BATCH_MATMUL": [
        case(real(2, 3, 4), real(2, 4, 5)),
        case(real(2, 4, 3), real(2, 5, 4), adj_x=True, adj_y=True),
        case(real(2, 1, 3, 4), real(5, 4, 2)),
        case(real(3, 4), weight(4, 5)),
    ],
    "CONV_2D": [
        case(real(1, 5, 6, 3), weight(4, 3, 3, 3), weight(4)),
        case(real(2, 5, 6, 3), weight(4, 3, 2, 3), weight(4), padding="VALID"),
        case(real(1, 7, 8, 3), weight(4, 3, 3, 3), weight(4), stride_w=2, stride_h=3),
        case(
            real(1, 9, 9, 2),
            weight(3, 3, 3, 2),
            weight(3),
            dilation_w_factor=2,
            dilation_h_factor=3,
        ),
        case(real(1, 4, 4, 4), weight(6, 3, 3, 2), weight(6)),
        case(real(1, 4, 4, 3), weight(2, 1, 1, 3), weight(2), fused_activation_function="RELU"),
    ],
    "CONV_3D": [
        case(real(1, 3, 4, 5, 2), weight(2, 2, 3, 2, 4), weight(4)),
        case(real(1, 4, 4, 5, 2), weight(2, 2, 2, 2, 3), padding="VALID", stride_d=2, stride_h=2),
    ],
    "CONV_3D_TRANSPOSE": [
        case([1, 4, 6, 3, 2], weight(2, 3, 1, 2, 3), real(1, 2, 3, 3, 3), stride_d=2, stride_h=2),
        case([1, 3, 3, 4, 2], weight(2, 1, 2, 2, 3), real(1, 2, 3, 3, 3), padding="VALID"),
    ],
    "CUMSUM": [
        case(real(2, 3, 4), 1),
        case(real(2, 3), -1, exclusive=True),
        case(whole(2, 3), 0, reverse=True),
        case(whole(4, dtype="int64"), 0, reverse=True, exclusive=True),
    ],
    "DEPTHWISE_CONV_2D": [
        case(real(1, 5, 6, 3), weight(1, 3, 3, 3), weight(3)),
        case(real(1, 5, 6, 2), weight(1, 3, 2, 6), weight(6), depth_multiplier=3, padding="VALID"),
        case(real(2, 7, 7, 3), weight(1, 3, 3, 3), weight(3), stride_w=2, stride_h=2),
        case(
            real(1, 9, 9, 2),
            weight(1, 3, 3, 2),
            weight(2),
            dilation_w_factor=2,
            dilation_h_factor=2,
        ),
        case(
            real(1, 5, 5, 1),
            weight(1, 3, 3, 4),
            weight(4),
            depth_multiplier=4,
            fused_activation_function="RELU6",
        ),
    ],
    "FULLY_CONNECTED": [
        case(real(2, 3), weight(4, 3), weight(4)),
        case(real(2, 2, 3), weight(4, 6), None, fused_activation_function="RELU"),
        case(real(2, 2, 3), weight(4, 3), weight(4), keep_num_dims=True),
        case(real(2, 3), real(4, 3)),
    ],
    "L2_NORMALIZATION": [case(real(2, 3, 4)), case(real(1, 2, 2, 5))],
    "L2_POOL_2D": POOLS,
    "LOCAL_RESPONSE_NORMALIZATION": [
        case(real(1, 2, 2, 9), radius=2, error=1e-5),
        case(real(1, 2, 2, 9), radius=20, bias=2.0, alpha=0.3, beta=0.75, error=1e-5),
    ],
    "LOG_SOFTMAX": [case(real(2, 5), error=3e-6)],
    "MAX_POOL_2D": POOLS,
    "MEAN": REDUCTION,
    "REDUCE_ALL": LOGICAL,
    "REDUCE_ANY": LOGICAL,
    "REDUCE_MAX": EXTREME,
    "REDUCE_MIN": EXTREME,
    "REDUCE_PROD": REDUCTION,
    "RFFT2D": [
        case(real(2, 8, 8), [8, 8], error=1e-5),
        case(real(2, 6, 9), [8, 4], error=1e-5),
    ],
    "SEGMENT_SUM": [case(real(4, 2), [0, 0, 1, 2]), case(whole(3), [0, 1, 1])],
    "SOFTMAX": [case(real(2, 5)), case(real(1, 2, 2, 3), beta=0.5), case(real(7))],
    "SUM": REDUCTION,
    "TOPK_V2": [
        case(real(3, 9), 4),
        case(whole(2, 9, low=0, high=3), 5),
        case(whole(9, dtype="int8", low=0, high=3), 9),
    ],
    "TRANSPOSE_CONV": [
        case([1, 6, 8, 4], weight(4, 3, 3, 2), real(1, 3, 4, 2), stride_w=2, stride_h=2),
        case(
            [1, 7, 9, 4],
            weight(4, 3, 3, 2),
            real(1, 3, 4, 2),
            weight(4),
            stride_w=2,
            stride_h=2,
            padding="VALID",
        ),
        case([2, 5, 5, 3], weight(3, 4, 2, 2), real(2, 5, 5, 2), fused_activation_function="RELU"),
        case([1, 5, 7, 4], weight(4, 1, 1, 2), real(1, 3, 4, 2), stride_w=2, stride_h=2),
    ],
    "UNSORTED_SEGMENT_MAX": SEGMENTS,
    "UNSORTED_SEGMENT_MIN": SEGMENTS,
    "UNSORTED_SEGMENT_PROD": SEGMENTS,
    "UNSORTED_SEGMENT_SUM": SEGMENTS,
}
