"""Which integer kernels the stock runtime has: the column `versions` of the op table, by kind.

Each of them gave the right numbers in LiteRT 2.3.0, which `tests/test_kernels.py` repeats. Kernels
that run without an error and are wrong are left out: PRELU, the comparisons and rough tables
(RSQRT) in int16; NEG, SCATTER_ND and WHERE, which ignore the zero point. The numbers are those of
LiteRT's tools/versioning/op_version.cc, or 1 where it has no versions.
"""

from collections.abc import Mapping

# The kinds by the versions that brought their kernels for int8 and int16, None where none is right.
_PLAIN = {
    (1, None): "ELU HARD_SWISH ONE_HOT PRELU RELU_0_TO_1 RELU_N1_TO_1",
    (1, 1): "DIV EXPAND_DIMS MATRIX_SET_DIAG RANK RESHAPE SELECT SELECT_V2 SHAPE SQUEEZE",
    (1, 2): "LEAKY_RELU QUANTIZE",
    (1, 3): "GATHER_ND",
    (1, 4): "DYNAMIC_UPDATE_SLICE",
    (2, None): (
        "ARG_MAX ARG_MIN DEPTH_TO_SPACE EQUAL GREATER GREATER_EQUAL L2_NORMALIZATION LESS "
        "LESS_EQUAL LOG_SOFTMAX NOT_EQUAL RSQRT SPACE_TO_DEPTH SQUARED_DIFFERENCE"
    ),
    (2, 1): "GELU SPLIT_V STRIDED_SLICE SUM",
    (2, 2): "EXP LOG REDUCE_PROD SQRT",
    (2, 3): (
        "ABS ADD AVERAGE_POOL_2D CONCATENATION LOGISTIC MAX_POOL_2D MEAN MIRROR_PAD PACK PAD "
        "PADV2 REDUCE_MAX REDUCE_MIN RELU RELU6 SOFTMAX TANH TOPK_V2"
    ),
    (2, 4): (
        "BATCH_TO_SPACE_ND GATHER MAXIMUM MINIMUM MUL RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR "
        "SLICE SPACE_TO_BATCH_ND SPLIT UNPACK"
    ),
    (2, 5): "SUB TRANSPOSE",
    (3, None): "SPARSE_TO_DENSE",
    (3, 1): "REVERSE_V2 TILE",
    (3, 3): "BROADCAST_TO FILL",
}
_OTHERS: dict[str, dict[str, int]] = {
    "BATCH_MATMUL": {"int8": 2, "int16": 3, "float32:int8": 4},
    "BIDIRECTIONAL_SEQUENCE_LSTM": {"float32:tensor8": 3},
    "CONV_2D": {
        "int8": 3,
        "int8:int4": 7,
        "int16": 4,
        "int16:int4": 7,
        "float32:int8": 5,
        "float32:int4": 7,
    },
    "DEPTHWISE_CONV_2D": {"int8": 3, "int8:int4": 7, "int16": 5, "float32:int8": 6},
    "DEQUANTIZE": {"int8": 2, "channel8": 5, "int4": 6, "int16": 3, "float16": 3},
    "EMBEDDING_LOOKUP": {"int8": 1, "float32:int8": 4, "float32:int4": 4},
    "FULLY_CONNECTED": {
        "int8": 4,
        "int8:int4": 10,
        "int16": 7,
        "int16:int4": 13,
        "float32:int8": 12,
        "float32:int4": 10,
        "float32:block4": 13,
    },
    "LSTM": {"float32:tensor8": 4},
    "RNN": {"float32:tensor8": 3},
    "SVDF": {"float32:tensor8": 4},
    "TRANSPOSE_CONV": {"int8": 3, "int16": 3, "float32:int8": 3},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {"int8": 1, "float32:tensor8": 3},
    "UNIDIRECTIONAL_SEQUENCE_RNN": {"float32:tensor8": 3},
}


def _plain(int8: int, int16: int | None) -> dict[str, int]:
    return {"int8": int8} if int16 is None else {"int8": int8, "int16": int16}


_ALL = _OTHERS | {kind: _plain(*key) for key, kinds in _PLAIN.items() for kind in kinds.split()}
VERSIONS: dict[str, Mapping[str, int]] = dict(sorted(_ALL.items()))
