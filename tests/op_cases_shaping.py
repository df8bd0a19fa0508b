"""Cases of the ops that move elements, and of those without a kernel; see `op_cases`."""

import numpy as np

from litesmith.ir.types import Quant, Record, Tensor
from tests.op_cases import (
    COMBINING,
    ELEMENTWISE,
    Case,
    State,
    case,
    float32,
    int64,
    real,
    truth,
    weight,
    whole,
)

IMAGE = real(1, 3, 4, 2)
RESIZES = [
    case(IMAGE, [6, 8]),
    case(IMAGE, [5, 3], align_corners=True),
    case(IMAGE, [7, 9], half_pixel_centers=True),
    case(IMAGE, [2, 2]),
    case(IMAGE, [2, 3], half_pixel_centers=True),
    case(IMAGE, [1, 1], align_corners=True),
]
# The gates of a recurrent network of 3 inputs and 4 units.
GATES = [weight(4, 3)] * 4 + [weight(4, 4)] * 4 + [None] * 3 + [weight(4)] * 4
RECURRENT = [weight(4, 3), weight(4, 4), weight(4), State((2, 4))]
BOXES = float32([[0, 0, 1, 1], [0, 0, 1, 0.9], [2, 2, 3, 3]])

# [[0, 5, 0], [6, 0, 7]] as rows of a dense dimension and columns of a compressed one.
SPARSE = Tensor(
    "sparse",
    (2, 3),
    data=float32([5, 6, 7]),
    sparsity=Record(
        "SparsityParameters",
        {
            "traversal_order": (0, 1),
            "dim_metadata": (
                Record("DimensionMetadata", {"dense_size": 2}),
                Record(
                    "DimensionMetadata",
                    {
                        "format": "SPARSE_CSR",
                        "array_segments": Record("Int32Vector", {"values": (0, 1, 3)}),
                        "array_indices": Record("Int32Vector", {"values": (1, 0, 2)}),
                    },
                ),
            ),
        },
    ),
)

SHAPING = {
    "BATCH_TO_SPACE_ND": [
        case(real(4, 2, 3, 2), [2, 2], [[0, 0], [0, 0]]),
        case(real(6, 2, 3, 1), [2, 3], [[1, 0], [2, 1]]),
        case(real(4, 2, 3), [2], [[0, 1]]),
    ],
    "BROADCAST_ARGS": [case(whole(3, low=1, high=1), [2, 1, 4]), case([3, 1], [1, 5])],
    "BROADCAST_TO": [
        case(real(3, 1), [2, 3, 4], version=2),
        case(whole(), int64([2, 2]), version=2),
        case(truth(1, 3), [2, 3], version=2),
    ],
    "CONCATENATION": [
        case(real(2, 3), real(2, 4), axis=1),
        case(whole(2, 3), whole(1, 3), whole(4, 3), axis=-2),
        case(whole(2, 3, dtype="int8"), whole(2, 1, dtype="int8"), axis=-1),
    ],
    "DEPTH_TO_SPACE": [case(real(1, 2, 3, 8), block_size=2), case(whole(2, 1, 1, 9), block_size=3)],
    "DYNAMIC_UPDATE_SLICE": [
        case(real(4, 5), real(2, 2), [1, 2]),
        case(real(4, 5), real(2, 2), [-3, 9]),
        case(whole(4), whole(2), int64([1])),
    ],
    "EMBEDDING_LOOKUP": [case([2, 0, 2], weight(3, 4)), case([1], real(2, 3, 2))],
    "EXPAND_DIMS": [case(real(2, 3), 1), case(real(2, 3), [-1]), case(whole(2), -2)],
    "FILL": [case([2, 3], float32(1.5)), case(int64([4]), whole()), case([2], truth())],
    "GATHER": [
        case(real(4, 3), [2, 0, 3]),
        case(real(2, 4, 3), [[1, 0], [3, 3]], axis=1),
        case(real(2, 4, 3), [[1, 0], [3, 3]], axis=1, batch_dims=1),
        case(whole(2, 4), int64(1), axis=-1),
        case(truth(5), whole(3, low=0, high=4)),
    ],
    "GATHER_ND": [
        case(real(4, 3), [[1], [3]]),
        case(real(2, 3, 4), [[[1, 2], [0, 0]]]),
        case(whole(2, 3), int64([[1, 2], [0, 1]])),
    ],
    "MATRIX_DIAG": [case(real(2, 3)), case(whole(4))],
    "MATRIX_SET_DIAG": [case(real(2, 3, 4), real(2, 3)), case(whole(3, 3), whole(3))],
    "MIRROR_PAD": [
        case(real(3, 4), [[1, 2], [0, 3]]),
        case(real(3, 4), [[3, 2], [0, 4]], mode="SYMMETRIC"),
        case(whole(5), int64([[2, 1]])),
    ],
    "ONE_HOT": [
        case(whole(2, 3, low=-1, high=5), 4, float32(2), float32(-1)),
        case(whole(5, low=0, high=3), 3, 7, 1, axis=0),
        case(whole(2, 2, dtype="int64", low=0, high=3), 3, np.bool_(True), np.bool_(False), axis=1),
    ],
    "PACK": [
        case(real(2, 3), real(2, 3), values_count=2),
        case(whole(2), whole(2), whole(2), values_count=3, axis=-1),
        case(whole(), whole(), values_count=2),
    ],
    "PAD": [
        case(real(2, 3), [[1, 0], [2, 3]]),
        case(real(1, 2, 3, 2), [[0, 0], [1, 2], [0, 1], [0, 0]]),
        case(whole(4), int64([[1, 1]])),
    ],
    "PADV2": [
        case(real(2, 3), [[1, 0], [2, 3]], float32(1.5)),
        case(whole(2, 3, dtype="int64"), [[0, 2], [1, 0]], int64(-4)),
    ],
    "RANGE": [
        case(0, 7, 2),
        case(float32(0.5), float32(2), float32(0.1)),
        case(int64(5), int64(-4), int64(-3)),
    ],
    "RANK": [case(real(2, 3, 1)), case(whole())],
    "RESHAPE": [
        case(real(2, 6), [3, 4]),
        case(real(2, 6), [4, -1, 1]),
        case(truth(2, 6), new_shape=(12,)),
        case(whole(1, 1), np.zeros(0, np.int32)),
    ],
    "RESIZE_BILINEAR": RESIZES,
    "RESIZE_NEAREST_NEIGHBOR": [*RESIZES, case(whole(1, 3, 4, 2, dtype="uint8", low=0), [5, 5])],
    "REVERSE_SEQUENCE": [
        case(real(2, 5, 3), [2, 4]),
        case(whole(4, 3), int64([1, 4, 0]), seq_dim=0, batch_dim=1),
    ],
    "REVERSE_V2": [case(real(2, 3, 4), [1]), case(whole(2, 3), [-1]), case(truth(2, 3), [0])],
    "SCATTER_ND": [
        case([[1], [3], [1]], real(3, 2), [5, 2]),
        case([[0, 1], [1, 2]], whole(2), [2, 3]),
        case([[2], [0]], real(2), [4]),
    ],
    "SHAPE": [case(real(2, 3)), case(whole(4, 1, 2), out_type="INT64")],
    "SLICE": [
        case(real(4, 5), [1, 2], [2, -1]),
        case(whole(4, 5), int64([0, 4]), int64([4, 1])),
        case(truth(6), [2], [0]),
    ],
    "SPACE_TO_BATCH_ND": [
        case(real(1, 4, 6, 2), [2, 2], [[0, 0], [0, 0]]),
        case(real(2, 3, 4, 1), [2, 3], [[1, 0], [1, 1]]),
        case(real(1, 4, 3), [2], [[1, 1]]),
    ],
    "SPACE_TO_DEPTH": [case(real(1, 4, 6, 2), block_size=2), case(whole(1, 3, 3, 1), block_size=3)],
    "SPARSE_TO_DENSE": [
        case([[0, 1], [1, 2]], [2, 3], float32([5, 6]), float32(-1)),
        case([1, 3], [5], whole(2), 0),
        case(int64(2), int64([4]), int64(9), int64(1)),
    ],
    "SPLIT": [
        case(1, real(2, 6), num_splits=3),
        case(-2, whole(4, 3), num_splits=2),
    ],
    "SPLIT_V": [
        case(real(2, 6), [1, 2, 3], 1, num_splits=3),
        case(whole(5, 2), int64([2, -1]), [-2], num_splits=2),
    ],
    "SQUEEZE": [
        case(real(1, 2, 1, 3)),
        case(real(1, 2, 1, 3), squeeze_dims=(-2,)),
        case(whole(1, 1)),
    ],
    "STRIDED_SLICE": [
        case(real(4, 5), [1, 0], [3, 5], [1, 2]),
        case(real(4, 5), [-1, 4], [-5, -6], [-1, -2]),
        case(real(4, 5), [9, 9], [9, 2], [1, 1], begin_mask=3, end_mask=1),
        case(real(4, 5), [3, 0], [0, 9], [-1, 2], begin_mask=1, end_mask=3),
        case(real(4, 5), [2, 1], [3, 3], [1, 1], shrink_axis_mask=1),
        case(real(4, 5), [-1, -2], [0, 0], [1, 1], shrink_axis_mask=3),
        case(real(2, 3, 4), [0, 1], [0, 3], [1, 1], ellipsis_mask=1),
        case(real(2, 3, 4), [1, 0, 1], [2, 0, 3], [1, 1, 1], ellipsis_mask=2),
        case(real(4, 5), [0, 1], [0, 3], [1, 1], new_axis_mask=1),
        case(
            real(2, 3, 4),
            [0, 0, 2],
            [0, 0, 3],
            [1, 1, 1],
            ellipsis_mask=1,
            new_axis_mask=2,
            shrink_axis_mask=4,
        ),
        case(real(4, 5), [1], [3], [1]),
        case(real(4, 5), [3, 0], [1, 5], [1, 1]),
        case(truth(6), [-4], [100], [2]),
    ],
    "TILE": [
        case(real(2, 3), [2, 1]),
        case(whole(2, 1, 2), int64([1, 3, 2])),
        case(truth(3), [0]),
    ],
    "TRANSPOSE": [
        case(real(2, 3, 4), [2, 0, 1]),
        case(whole(2, 3), [1, 0]),
        case(whole(1, 2, 3, 4, dtype="int8"), [0, 3, 1, 2]),
    ],
    "UNIQUE": [
        case(float32([3, 1, 3, 2, 1]), shapes=[[3], [5]]),
        case([7, 7, 2, 9], shapes=[[3], [4]], idx_out_type="INT64"),
    ],
    "UNPACK": [case(real(3, 2), num=3), case(whole(2, 3), num=3, axis=-1)],
    "WHERE": [
        case(np.array([[True, False, True], [False, True, True]]), shapes=[[4, 2]]),
        case(float32([0, 2, 0, -1]), shapes=[[2, 1]]),
        case([0, 5], shapes=[[1, 1]]),
    ],
    "ZEROS_LIKE": [case(real(2, 3)), case(whole(4, dtype="int64"))],
}

# Ops whose results a kernel cannot give: only shapes and element types are compared.
WITHOUT_KERNEL = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": [
        case(
            real(5, 2, 3),
            *(*GATES, None, None) * 2,
            *[State((2, 4))] * 4,
            *[None] * 9,
            shapes=[[5, 2, 4], [5, 2, 4]],
            time_major=True,
        ),
    ],
    "BIDIRECTIONAL_SEQUENCE_RNN": [
        case(
            real(5, 2, 3),
            *RECURRENT * 2,
            *[None] * 3,
            shapes=[[5, 2, 4], [5, 2, 4]],
            time_major=True,
        ),
    ],
    "DENSIFY": [case(SPARSE)],
    "LSTM": [
        case(real(2, 3), *GATES, None, None, State((2, 4)), State((2, 4))),
        case(
            real(2, 3),
            *GATES[:4],
            *[weight(4, 2)] * 4,
            *GATES[8:],
            weight(2, 4),
            None,
            State((2, 2)),
            State((2, 4)),
        ),
    ],
    "MULTINOMIAL": [case(real(2, 5), 3)],
    "NON_MAX_SUPPRESSION_V4": [case(BOXES, real(3), 2, float32(0.5), float32(-9))],
    "NON_MAX_SUPPRESSION_V5": [case(BOXES, real(3), 2, float32(0.5), float32(-9), float32(0.5))],
    "QUANTIZE": [case(real(2, 3), quant=Quant.of(0.1, 3))],
    "RANDOM_STANDARD_NORMAL": [case([2, 3])],
    "RANDOM_UNIFORM": [case([4])],
    "RNN": [case(real(2, 3), *RECURRENT)],
    "SVDF": [
        case(real(2, 3), weight(8, 3), weight(8, 5), None, State((2, 40)), rank=2),
    ],
    "UNIDIRECTIONAL_SEQUENCE_LSTM": [
        case(real(5, 2, 3), *GATES, None, None, State((2, 4)), State((2, 4)), time_major=True),
    ],
    "UNIDIRECTIONAL_SEQUENCE_RNN": [case(real(5, 2, 3), *RECURRENT, time_major=True)],
}

CASES: dict[str, list[Case]] = {**ELEMENTWISE, **COMBINING, **SHAPING, **WITHOUT_KERNEL}
