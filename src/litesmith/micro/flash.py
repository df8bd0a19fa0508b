"""The flash of a model, of the interpreter, and of the kernels that the model uses, estimated.

Bytes of code are those of TensorFlow Lite Micro's reference kernels (commit 90b983c of August
2026), compiled by clang 22 for a Cortex-M4 with -Os and without error texts, an object file each. A
linker drops functions that are not called and a vendor's kernels are larger, so the sum is an
estimate; code of the standard library is left out.
"""

from collections.abc import Mapping
from typing import NamedTuple

from litesmith.ir.types import Model

# The interpreter, the allocator, the planner and the parsers of options.
INTERPRETER_BYTES = 29195

# A source file of kernels: its bytes of code, and the kinds of ops with kernels in it.
KERNEL_FILES: tuple[tuple[str, int, str], ...] = (
    ("activations", 1552, "RELU RELU6"),
    ("add", 6158, "ADD"),
    ("add_n", 1314, "ADD_N"),
    ("arg_min_max", 1326, "ARG_MAX ARG_MIN"),
    ("assign_variable", 326, "ASSIGN_VARIABLE"),
    ("batch_matmul", 5862, "BATCH_MATMUL"),
    ("batch_to_space_nd", 1036, "BATCH_TO_SPACE_ND"),
    ("broadcast_args", 800, "BROADCAST_ARGS"),
    ("broadcast_to", 1240, "BROADCAST_TO"),
    ("call_once", 184, "CALL_ONCE"),
    ("cast", 1218, "CAST"),
    ("ceil", 308, "CEIL"),
    ("comparisons", 29898, "EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL"),
    ("concatenation", 2876, "CONCATENATION"),
    ("conv", 4788, "CONV_2D"),
    ("cumsum", 1522, "CUMSUM"),
    ("decode", 11470, "TFLM_DECODE"),
    ("depth_to_space", 998, "DEPTH_TO_SPACE"),
    ("depthwise_conv", 3918, "DEPTHWISE_CONV_2D"),
    ("dequantize", 596, "DEQUANTIZE"),
    ("div", 4920, "DIV"),
    ("dynamic_update_slice", 2362, "DYNAMIC_UPDATE_SLICE"),
    ("elementwise", 3594, "ABS COS LOG LOGICAL_NOT RSQRT SIN SQRT SQUARE"),
    ("elu", 536, "ELU"),
    ("embedding_lookup", 850, "EMBEDDING_LOOKUP"),
    ("exp", 332, "EXP"),
    ("expand_dims", 474, "EXPAND_DIMS"),
    ("fill", 604, "FILL"),
    ("floor", 166, "FLOOR"),
    ("floor_div", 1162, "FLOOR_DIV"),
    ("floor_mod", 1146, "FLOOR_MOD"),
    ("fully_connected", 3806, "FULLY_CONNECTED"),
    ("gather", 1192, "GATHER"),
    ("gather_nd", 888, "GATHER_ND"),
    ("hard_swish", 970, "HARD_SWISH"),
    ("if", 418, "IF"),
    ("l2_pool_2d", 1534, "L2_POOL_2D"),
    ("l2norm", 1286, "L2_NORMALIZATION"),
    ("leaky_relu", 836, "LEAKY_RELU"),
    ("log_softmax", 3004, "LOG_SOFTMAX"),
    ("logical", 996, "LOGICAL_AND LOGICAL_OR"),
    ("logistic", 2572, "LOGISTIC"),
    ("maximum_minimum", 5442, "MAXIMUM MINIMUM"),
    ("mirror_pad", 782, "MIRROR_PAD"),
    ("mul", 5138, "MUL"),
    ("neg", 174, "NEG"),
    ("pack", 1070, "PACK"),
    ("pad", 2956, "PAD PADV2"),
    ("pooling", 4304, "AVERAGE_POOL_2D MAX_POOL_2D"),
    ("prelu", 2978, "PRELU"),
    ("quantize", 1478, "QUANTIZE"),
    ("read_variable", 154, "READ_VARIABLE"),
    ("reduce", 6976, "MEAN REDUCE_ALL REDUCE_MAX REDUCE_MIN SUM"),
    ("reshape", 442, "RESHAPE"),
    ("resize_bilinear", 2172, "RESIZE_BILINEAR"),
    ("resize_nearest_neighbor", 2046, "RESIZE_NEAREST_NEIGHBOR"),
    ("reverse", 2724, "REVERSE_V2"),
    ("round", 374, "ROUND"),
    ("select", 4344, "SELECT_V2"),
    ("shape", 170, "SHAPE"),
    ("slice", 2206, "SLICE"),
    ("softmax", 4318, "SOFTMAX"),
    ("space_to_batch_nd", 1168, "SPACE_TO_BATCH_ND"),
    ("space_to_depth", 990, "SPACE_TO_DEPTH"),
    ("split", 1216, "SPLIT"),
    ("split_v", 1396, "SPLIT_V"),
    ("squared_difference", 4382, "SQUARED_DIFFERENCE"),
    ("squeeze", 402, "SQUEEZE"),
    ("strided_slice", 8390, "STRIDED_SLICE"),
    ("sub", 6700, "SUB"),
    ("svdf", 3108, "SVDF"),
    ("tanh", 2528, "TANH"),
    ("transpose", 1494, "TRANSPOSE"),
    ("transpose_conv", 4398, "TRANSPOSE_CONV"),
    ("unidirectional_sequence_lstm", 8704, "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    ("unpack", 874, "UNPACK"),
    ("var_handle", 170, "VAR_HANDLE"),
    ("while", 430, "WHILE"),
    ("zeros_like", 292, "ZEROS_LIKE"),
)

_FILE_OF = {kind: name for name, _, kinds in KERNEL_FILES for kind in kinds.split()}
_BYTES_OF = {name: count for name, count, _ in KERNEL_FILES}


class FlashAccount(NamedTuple):
    """The flash that a model needs.

    model        bytes of the file
    interpreter  bytes of code that every model needs, estimated
    kernels      bytes of code by source file of kernels, estimated
    unknown      ops whose code is not in the table
    """

    model: int
    interpreter: int
    kernels: Mapping[str, int]
    unknown: tuple[str, ...]

    @property
    def total(self) -> int:
        return self.model + self.interpreter + sum(self.kernels.values())

    def to_json(self) -> dict[str, object]:
        return {
            "total": self.total,
            "model": self.model,
            "interpreter": self.interpreter,
            "kernels": dict(self.kernels),
            "unknown": list(self.unknown),
            "how": "estimated",
        }


def add_up_flash(model: Model, file_bytes: int) -> FlashAccount:
    """The flash of a model with a file of this size."""
    kinds = {op.custom or op.kind for _, _, op in model.ops()}
    names = sorted({_FILE_OF[kind] for kind in kinds if kind in _FILE_OF})
    unknown = tuple(sorted(kind for kind in kinds if kind not in _FILE_OF))
    return FlashAccount(
        file_bytes, INTERPRETER_BYTES, {name: _BYTES_OF[name] for name in names}, unknown
    )
