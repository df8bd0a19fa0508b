"""Flash: the model, the interpreter and the kernels that the model uses. Estimated.

Bytes of code are those of TensorFlow Lite Micro's reference kernels (commit 90b983c of August
2026), compiled by clang 21 for a Cortex-M4 with -Os and without error texts, an object file each.
A linker drops functions that are not called and a vendor's kernels are larger, so the sum is an
estimate; what a file of the standard library adds is left out.
"""

from collections.abc import Mapping
from typing import NamedTuple

from litesmith.ir.types import Model

# The interpreter, the allocator, the planner and the parsers of options.
INTERPRETER_BYTES = 14117

# A source file of kernels: its bytes of code, and the kinds whose kernels it has.
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
    ("mul", 212, "MUL"),
    ("neg", 0, "NEG"),
    ("pack", 0, "PACK"),
    ("pad", 0, "PAD PADV2"),
    ("pooling", 0, "AVERAGE_POOL_2D MAX_POOL_2D"),
    ("prelu", 0, "PRELU"),
    ("quantize", 0, "QUANTIZE"),
    ("read_variable", 0, "READ_VARIABLE"),
    ("reduce", 0, "MEAN REDUCE_ALL REDUCE_MAX REDUCE_MIN SUM"),
    ("reshape", 0, "RESHAPE"),
    ("resize_bilinear", 0, "RESIZE_BILINEAR"),
    ("resize_nearest_neighbor", 0, "RESIZE_NEAREST_NEIGHBOR"),
    ("reverse", 0, "REVERSE_V2"),
    ("round", 0, "ROUND"),
    ("select", 0, "SELECT_V2"),
    ("shape", 0, "SHAPE"),
    ("slice", 0, "SLICE"),
    ("softmax", 0, "SOFTMAX"),
    ("space_to_batch_nd", 0, "SPACE_TO_BATCH_ND"),
    ("space_to_depth", 0, "SPACE_TO_DEPTH"),
    ("split", 0, "SPLIT"),
    ("split_v", 0, "SPLIT_V"),
    ("squared_difference", 0, "SQUARED_DIFFERENCE"),
    ("squeeze", 0, "SQUEEZE"),
    ("strided_slice", 0, "STRIDED_SLICE"),
    ("sub", 0, "SUB"),
    ("svdf", 0, "SVDF"),
    ("tanh", 0, "TANH"),
    ("transpose", 0, "TRANSPOSE"),
    ("transpose_conv", 0, "TRANSPOSE_CONV"),
    ("unidirectional_sequence_lstm", 4970, "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    ("unpack", 0, "UNPACK"),
    ("var_handle", 0, "VAR_HANDLE"),
    ("while", 0, "WHILE"),
    ("zeros_like", 0, "ZEROS_LIKE"),
)

_FILE_OF = {kind: name for name, _, kinds in KERNEL_FILES for kind in kinds.split()}
_BYTES_OF = {name: count for name, count, _ in KERNEL_FILES}


class FlashAccount(NamedTuple):
    """What a model takes of flash.

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
    """The flash of a model whose file has so many bytes."""
    kinds = {op.label for _, _, op in model.ops()}
    names = sorted({_FILE_OF[kind] for kind in kinds if kind in _FILE_OF})
    unknown = tuple(sorted(kind for kind in kinds if kind not in _FILE_OF))
    return FlashAccount(
        file_bytes, INTERPRETER_BYTES, {name: _BYTES_OF[name] for name in names}, unknown
    )
