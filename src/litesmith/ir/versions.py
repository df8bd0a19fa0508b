"""Which integer kernels the stock runtime has: the column `versions` of the op table, by kind.

All of them were seen to give the right numbers in LiteRT 2.3.0, and `tests/test_kernels.py` sees it
again. What runs without a word and is wrong is left out: PRELU, the comparisons and rough tables
(RSQRT) in int16, NEG, SCATTER_ND and WHERE, which know no zero point. The numbers are those of
LiteRT's tools/versioning/op_version.cc, 1 where it tells no versions apart.
"""

from collections.abc import Mapping

# Named by the versions for int8 and for int16.
_V1_1 = {"int8": 1, "int16": 1}
_V2_1 = {"int8": 2, "int16": 1}
_V2_2 = {"int8": 2, "int16": 2}
_V2_3 = {"int8": 2, "int16": 3}
_V2_4 = {"int8": 2, "int16": 4}
_V2_5 = {"int8": 2, "int16": 5}
_V3_1 = {"int8": 3, "int16": 1}
_V3_3 = {"int8": 3, "int16": 3}
_INT8_1 = {"int8": 1}
_INT8_2 = {"int8": 2}
_INT8_3 = {"int8": 3}

VERSIONS: dict[str, Mapping[str, int]] = {
    "ABS": _V2_3,
    "ADD": _V2_3,
    "ARG_MAX": _INT8_2,
    "ARG_MIN": _INT8_2,
    "AVERAGE_POOL_2D": _V2_3,
    "BATCH_MATMUL": {"int8": 2, "int16": 3, "float32:int8": 4},
    "BATCH_TO_SPACE_ND": _V2_4,
    "BIDIRECTIONAL_SEQUENCE_LSTM": {"float32:tensor8": 2},
    "BROADCAST_TO": _V3_3,
    "CONCATENATION": _V2_3,
    "CONV_2D": {
        "int8": 3,
        "int8:int4": 7,
        "int16": 4,
        "int16:int4": 7,
        "float32:int8": 5,
        "float32:int4": 7,
    },
    "DEPTHWISE_CONV_2D": {"int8": 3, "int8:int4": 7, "int16": 5, "float32:int8": 6},
    "DEPTH_TO_SPACE": _INT8_2,
    "DEQUANTIZE": {"int8": 2, "channel8": 5, "int4": 6, "int16": 3, "float16": 3},
    "DIV": _V1_1,
    "DYNAMIC_UPDATE_SLICE": {"int8": 1, "int16": 4},
    "ELU": _INT8_1,
    "EMBEDDING_LOOKUP": {"int8": 1, "float32:int8": 4, "float32:int4": 4},
    "EQUAL": _INT8_2,
    "EXP": _V2_2,
    "EXPAND_DIMS": _V1_1,
    "FILL": _V3_3,
    "FULLY_CONNECTED": {
        "int8": 4,
        "int8:int4": 10,
        "int16": 7,
        "int16:int4": 13,
        "float32:int8": 12,
        "float32:int4": 10,
        "float32:block4": 13,
    },
    "GATHER": _V2_4,
    "GATHER_ND": {"int8": 1, "int16": 3},
    "GELU": _V2_1,
    "GREATER": _INT8_2,
    "GREATER_EQUAL": _INT8_2,
    "HARD_SWISH": _INT8_1,
    "L2_NORMALIZATION": _INT8_2,
    "LEAKY_RELU": {"int8": 1, "int16": 2},
    "LESS": _INT8_2,
    "LESS_EQUAL": _INT8_2,
    "LOG": _V2_2,
    "LOGISTIC": _V2_3,
    "LOG_SOFTMAX": _INT8_2,
    "LSTM": {"float32:tensor8": 3},
    "MATRIX_SET_DIAG": _V1_1,
    "MAXIMUM": _V2_4,
    "MAX_POOL_2D": _V2_3,
    "MEAN": _V2_3,
    "MINIMUM": _V2_4,
    "MIRROR_PAD": _V2_3,
    "MUL": _V2_4,
    "NOT_EQUAL": _INT8_2,
    "ONE_HOT": _INT8_1,
    "PACK": _V2_3,
    "PAD": _V2_3,
    "PADV2": _V2_3,
    "PRELU": _INT8_1,
    "QUANTIZE": {"int8": 1, "int16": 2},
    "RANK": _V1_1,
    "REDUCE_MAX": _V2_3,
    "REDUCE_MIN": _V2_3,
    "REDUCE_PROD": _V2_2,
    "RELU": _V2_3,
    "RELU6": _V2_3,
    "RELU_0_TO_1": _INT8_1,
    "RELU_N1_TO_1": _INT8_1,
    "RESHAPE": _V1_1,
    "RESIZE_BILINEAR": _V2_4,
    "RESIZE_NEAREST_NEIGHBOR": _V2_4,
    "REVERSE_V2": _V3_1,
    "RNN": {"float32:tensor8": 2},
    "RSQRT": _INT8_2,
    "SELECT": _V1_1,
    "SELECT_V2": _V1_1,
    "SHAPE": _V1_1,
    "SLICE": _V2_4,
    "SOFTMAX": _V2_3,
    "SPACE_TO_BATCH_ND": _V2_4,
    "SPACE_TO_DEPTH": _INT8_2,
    "SPARSE_TO_DENSE": _INT8_3,
    "SPLIT": _V2_4,
    "SPLIT_V": _V2_1,
    "SQRT": _V2_2,
    "SQUARED_DIFFERENCE": _INT8_2,
    "SQUEEZE": _V1_1,
    "STRIDED_SLICE": _V2_1,
    "SUB": _V2_5,
    "SUM": _V2_1,
    "SVDF": {"float32:tensor8": 2},
    "TANH": _V2_3,
    "TILE": _V3_1,
    "TOPK_V2": _V2_3,
    "TRANSPOSE": _V2_5,
    "TRANSPOSE_CONV": {"int8": 3, "int16": 3, "float32:int8": 3},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {"float32:tensor8": 2},
    "UNIDIRECTIONAL_SEQUENCE_RNN": {"float32:tensor8": 2},
    "UNPACK": _V2_4,
}
