"""The rows of the op table, sorted by kind; `op_row` explains columns and traits.

A kind that is not here has a bare row: only its options are known.
"""

from math import inf

from litesmith.ir import macs, shapes
from litesmith.ir.op_row import Row
from litesmith.ir.types import Value

STRIDES: dict[str, Value] = {"stride_w": 1, "stride_h": 1}
STRIDES_3D: dict[str, Value] = {**STRIDES, "stride_d": 1}
DEPTHWISE: dict[str, Value] = {**STRIDES, "depth_multiplier": 1}
POOL: dict[str, Value] = {**STRIDES, "filter_width": 1, "filter_height": 1}
TANH: dict[str, Value] = {"fused_activation_function": "TANH"}

# Output scales that integer kernels demand, or assume without checking the tensor
# (LiteRT tflite/kernels/activations.cc and l2norm.cc). Named by the interval of real numbers.
FROM_ZERO = {"int16": (1 / 32768, 0), "int8": (1 / 256, -128), "uint8": (1 / 256, 0)}
L2_UNIT = {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)}
FROM_MINUS_ONE = {"int16": (1 / 32768, 0), **L2_UNIT}
UP_TO_ZERO = {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)}

# Input, forget, cell and output gate in turn: input weights, recurrent weights, peepholes (no cell
# gate), biases, projection and its bias, two states, four gains of layer norms, which are stored
# like biases. A gate's input weights may be absent, as may all after the fifth in the basic kernel,
# whose inputs are fewer.
_GATES = "w? w w w w? w w w w? w? w? b? b b b w? b?"
_GATES_OR_BASIC = "w? w w w w? w? w? w? w? w? w? b? b? b? b? w? b?"
LSTM = f"x {_GATES_OR_BASIC} v? v? b? b? b? b?"
SEQUENCE_LSTM = f"x {_GATES} v v b? b? b? b?"
BIDIRECTIONAL_LSTM = f"x {_GATES} {_GATES} v v v v x? w? w? w? w? w? w? w? w?"

_ARITHMETIC = Row("x x", "free", shapes.broadcast, fuses_activation=True)
_COMPARISON = Row("x x", shape=shapes.broadcast, dtype="bool")
_LAYER = Row("x w b?", "free", axis=0, is_layer=True, fuses_activation=True)
_POOL = Row("x", shape=shapes.pool, options="Pool2DOptions", defaults=POOL, has_window=True)
_PROBABILITIES = Row("x", "fixed", shapes.same, makes_probabilities=True, saturates=True)
_RECURRENT = Row("x w w b v", "free", axis=0, macs=macs.recurrent, defaults=TANH)
_EXTREME = Row(
    "x x", "same", shapes.broadcast, options="MaximumMinimumOptions", is_commutative=True
)
_RANDOM = Row(
    "s",
    shape=shapes.held_shape(0),
    options="RandomOptions",
    dtype="float32",
    takes_shape=True,
    varies=True,
)
_REDUCER = Row("x s", shape=shapes.reduce, options="ReducerOptions")

ROWS: dict[str, Row] = {
    "ABS": Row("x", "free", shapes.same),
    "ADD": _ARITHMETIC._replace(arithmetic="+", is_commutative=True),
    "ADD_N": Row("x*", shape=shapes.same),
    "ARG_MAX": Row("x s", shape=shapes.drop_axis, dtype="option:output_type"),
    "ARG_MIN": Row("x s", shape=shapes.drop_axis, dtype="option:output_type"),
    "ASSIGN_VARIABLE": Row("i x", has_effect=True, uses_variable=True),
    "ATAN2": Row("x x", shape=shapes.same),
    "AVERAGE_POOL_2D": _POOL._replace(scale="same", fuses_activation=True, averages=True),
    "BATCH_MATMUL": Row("x x", "free", shapes.batch_matmul, macs=macs.batch_matmul),
    "BATCH_TO_SPACE_ND": Row("x s s", "same", shapes.batch_to_space),
    "BIDIRECTIONAL_SEQUENCE_LSTM": _RECURRENT._replace(inputs=BIDIRECTIONAL_LSTM),
    "BIDIRECTIONAL_SEQUENCE_RNN": _RECURRENT._replace(inputs="x w w b v w w b v x? w? w?"),
    "BITCAST": Row("x"),
    "BITWISE_XOR": Row("x x", shape=shapes.broadcast),
    "BROADCAST_ARGS": Row("x x", shape=shapes.broadcast_args),
    "BROADCAST_TO": Row("x s", "same", shapes.held_shape(1), takes_shape=True),
    "BUCKETIZE": Row("x", shape=shapes.same, dtype="int32"),
    "CALL": Row("x*", has_effect=True, is_control_flow=True),
    "CALL_ONCE": Row("", has_effect=True, is_control_flow=True),
    "CAST": Row("x", shape=shapes.same, dtype="option:out_data_type", converts=True),
    "CEIL": Row("x", shape=shapes.same),
    "COMPLEX_ABS": Row("x", shape=shapes.same, dtype="float32"),
    "CONCATENATION": Row("x*", "same", shapes.concatenation),
    "CONV_2D": _LAYER._replace(
        shape=shapes.conv, depth=3, rank=4, macs=macs.conv, defaults=STRIDES, has_window=True
    ),
    "CONV_3D": Row(
        "x w b?",
        shape=shapes.conv_3d,
        axis=4,
        depth=3,
        rank=5,
        macs=macs.conv_3d,
        defaults=STRIDES_3D,
        has_window=True,
    ),
    "CONV_3D_TRANSPOSE": Row(  # no step asks for its depth
        "s w x b?",
        shape=shapes.held_shape(0),
        options="Conv3DOptions",
        axis=3,
        rank=5,
        macs=macs.transpose_conv,
        defaults=STRIDES_3D,
        takes_shape=True,
        spreads=True,
    ),
    "COS": Row("x", shape=shapes.same),
    "CUMSUM": Row("x s", shape=shapes.same),
    "CUSTOM": Row(has_effect=True),
    "DELEGATE": Row(has_effect=True, is_control_flow=True),
    "DENSIFY": Row("x", "same", shapes.same, unpacks=True),
    "DEPTHWISE_CONV_2D": _LAYER._replace(
        shape=shapes.depthwise_conv,
        axis=3,
        rank=4,
        macs=macs.depthwise_conv,
        defaults=DEPTHWISE,
        is_depthwise=True,
        has_window=True,
    ),
    "DEPTH_TO_SPACE": Row("x", "same", shapes.depth_to_space),
    "DEQUANTIZE": Row(
        "x", shape=shapes.same, dtype="float32", converts=True, rescales=True, unpacks=True
    ),
    "DIV": _ARITHMETIC._replace(arithmetic="/"),
    "DYNAMIC_UPDATE_SLICE": Row("x x i", "same", shapes.same),
    "ELU": Row("x", "free", shapes.same),
    "EMBEDDING_LOOKUP": Row("i w", "same", shapes.embedding_lookup, axis=0),
    "EQUAL": _COMPARISON,
    "EXP": Row("x", "free", shapes.same),
    "EXPAND_DIMS": Row("x s", "same", shapes.expand_dims, reshapes=True),
    "FAKE_QUANT": Row("x", shape=shapes.same, defaults={"num_bits": 8}),
    "FILL": Row("s x", "same", shapes.held_shape(0), takes_shape=True),
    "FLOOR": Row("x", shape=shapes.same),
    "FLOOR_DIV": Row("x x", shape=shapes.broadcast),
    "FLOOR_MOD": Row("x x", shape=shapes.broadcast),
    "FULLY_CONNECTED": _LAYER._replace(
        shape=shapes.fully_connected, depth=1, rank=2, macs=macs.conv, has_sparse_kernel=True
    ),
    "GATHER": Row("x i", "same", shapes.gather),
    "GATHER_ND": Row("x i", "same", shapes.gather_nd),
    "GELU": Row("x", "free", shapes.same),
    "GREATER": _COMPARISON,
    "GREATER_EQUAL": _COMPARISON,
    "HARD_SWISH": Row("x", "free", shapes.same),
    "HASHTABLE": Row("", dtype="resource"),
    "HASHTABLE_FIND": Row("i i x", varies=True),
    "HASHTABLE_IMPORT": Row("i i x", has_effect=True),
    "HASHTABLE_LOOKUP": Row("i i x", dtype="x uint8"),
    "HASHTABLE_SIZE": Row("i", dtype="int64", varies=True),
    "IF": Row("i x*", is_control_flow=True),
    "IMAG": Row("x", shape=shapes.same, dtype="float32"),
    "L2_NORMALIZATION": Row("x", "fixed", shapes.same, options="L2NormOptions", fixed=L2_UNIT),
    "L2_POOL_2D": _POOL,
    "LEAKY_RELU": Row("x", "free", shapes.same, defaults={"alpha": 0.2}),
    "LESS": _COMPARISON,
    "LESS_EQUAL": _COMPARISON,
    "LOCAL_RESPONSE_NORMALIZATION": Row(
        "x", shape=shapes.same, defaults={"radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5}
    ),
    "LOG": Row("x", "free", shapes.same, is_logarithm=True),
    "LOGICAL_AND": _COMPARISON,
    "LOGICAL_NOT": Row("x", shape=shapes.same, dtype="bool"),
    "LOGICAL_OR": _COMPARISON,
    "LOGISTIC": _PROBABILITIES._replace(fixed=FROM_ZERO),
    "LOG_SOFTMAX": _PROBABILITIES._replace(fixed=UP_TO_ZERO, is_softmax=True, is_logarithm=True),
    "LSTM": _RECURRENT._replace(inputs=LSTM, shape=shapes.lstm),
    "MATRIX_DIAG": Row("x", shape=shapes.matrix_diag),
    "MATRIX_SET_DIAG": Row("x x", "same", shapes.same),
    "MAXIMUM": _EXTREME,
    "MAX_POOL_2D": _POOL._replace(scale="same", fuses_activation=True),
    "MEAN": _REDUCER._replace(scale="free", averages=True),
    "MINIMUM": _EXTREME,
    "MIRROR_PAD": Row("x s", "same", shapes.pad),
    "MUL": _ARITHMETIC._replace(arithmetic="*", is_commutative=True),
    "MULTINOMIAL": Row(
        "x s", shape=shapes.multinomial, options="RandomOptions", dtype="int64", varies=True
    ),
    "NEG": Row("x", shape=shapes.same),
    "NON_MAX_SUPPRESSION_V4": Row(
        "x x s s s", shape=shapes.suppression, dtype="int32", sized_by_values=True
    ),
    "NON_MAX_SUPPRESSION_V5": Row(
        "x x s s s s",
        shape=shapes.soft_suppression,
        dtype="int32 float32 int32",
        sized_by_values=True,
    ),
    "NOT_EQUAL": _COMPARISON,
    "ONE_HOT": Row("i s x x", "same", shapes.one_hot, defaults={"axis": -1}),
    "PACK": Row("x*", "same", shapes.pack),
    "PAD": Row("x s", "same", shapes.pad, pads=True),
    "PADV2": Row("x s x", "same", shapes.pad, pads=True),
    "POW": Row("x x", shape=shapes.broadcast),
    "PRELU": Row("x x", "free", shapes.broadcast),
    "QUANTIZE": Row("x", "free", shapes.same, dtype="int8", converts=True, rescales=True),
    "RANDOM_STANDARD_NORMAL": _RANDOM,
    "RANDOM_UNIFORM": _RANDOM,
    "RANGE": Row("x x x", shape=shapes.range_, sized_by_values=True),
    "RANK": Row("x", shape=shapes.scalar, dtype="int32", reads_shape_only=True),
    "READ_VARIABLE": Row("i", uses_variable=True, varies=True),
    "REAL": Row("x", shape=shapes.same, dtype="float32"),
    "REDUCE_ALL": _REDUCER._replace(dtype="bool"),
    "REDUCE_ANY": _REDUCER._replace(dtype="bool"),
    "REDUCE_MAX": _REDUCER._replace(scale="same"),
    "REDUCE_MIN": _REDUCER._replace(scale="same"),
    "REDUCE_PROD": _REDUCER._replace(scale="free"),
    "RELU": Row("x", "free", shapes.same, clamps=(0, inf)),
    "RELU6": Row("x", "free", shapes.same, clamps=(0, 6)),
    "RELU_0_TO_1": Row("x", "free", shapes.same, clamps=(0, 1)),
    "RELU_N1_TO_1": Row("x", "free", shapes.same, clamps=(-1, 1)),
    "RESHAPE": Row("x s?", "same", shapes.reshape, reshapes=True, takes_shape=True),
    "RESIZE_BILINEAR": Row("x s", "same", shapes.resize, interpolates=True),
    "RESIZE_NEAREST_NEIGHBOR": Row("x s", "same", shapes.resize),
    "REVERSE_SEQUENCE": Row("x s", shape=shapes.same, defaults={"seq_dim": 1}),
    "REVERSE_V2": Row("x s", "same", shapes.same),
    "RFFT2D": Row("x s", shape=shapes.rfft_2d, dtype="complex64"),
    "RIGHT_SHIFT": Row("x x", shape=shapes.broadcast),
    "RNN": _RECURRENT._replace(shape=shapes.rnn),
    "ROUND": Row("x", shape=shapes.same),
    "RSQRT": Row("x", "free", shapes.same),
    "SCATTER_ND": Row("i x s", shape=shapes.held_shape(2), takes_shape=True),
    "SEGMENT_SUM": Row("x i", shape=shapes.segment_sum),
    "SELECT": Row("i x x", "same", shapes.like(1)),
    "SELECT_V2": Row("i x x", "same", shapes.broadcast),
    "SHAPE": Row(
        "x",
        shape=shapes.shape_of,
        dtype="option:out_type",
        defaults={"out_type": "INT32"},
        reads_shape_only=True,
    ),
    "SIGN": Row("x", shape=shapes.same),
    "SIN": Row("x", shape=shapes.same),
    "SLICE": Row("x s s", "same", shapes.slice_),
    "SOFTMAX": _PROBABILITIES._replace(fixed=FROM_ZERO, defaults={"beta": 1.0}, is_softmax=True),
    "SPACE_TO_BATCH_ND": Row("x s s", "same", shapes.space_to_batch),
    "SPACE_TO_DEPTH": Row("x", "same", shapes.space_to_depth),
    "SPARSE_TO_DENSE": Row("i s x x", "same", shapes.held_shape(1), takes_shape=True),
    "SPLIT": Row("s x", "same", shapes.split),
    "SPLIT_V": Row("x s s", "same", shapes.split_v),
    "SQRT": Row("x", "free", shapes.same),
    "SQUARE": Row("x", shape=shapes.same),
    "SQUARED_DIFFERENCE": Row("x x", "free", shapes.broadcast),
    "SQUEEZE": Row("x", "same", shapes.squeeze, reshapes=True),
    "STABLEHLO_COMPOSITE": Row("x*"),
    "STABLEHLO_CUSTOM_CALL": Row(varies=True),
    "STABLEHLO_RNG_BIT_GENERATOR": Row(varies=True),
    "STRIDED_SLICE": Row("x s s s", "same", shapes.strided_slice),
    "SUB": _ARITHMETIC._replace(arithmetic="-"),
    "SUM": _REDUCER._replace(scale="free"),
    "SVDF": _RECURRENT._replace(inputs="x w w b? v", shape=shapes.svdf, defaults={"rank": 1}),
    "TANH": Row("x", "fixed", shapes.same, fixed=FROM_MINUS_ONE, saturates=True),
    "TILE": Row("x s", "same", shapes.tile),
    "TOPK_V2": Row("x s", "same", shapes.top_k, dtype="x int32"),
    "TRANSPOSE": Row("x s", "same", shapes.transpose, transposes=True),
    "TRANSPOSE_CONV": Row(
        "s w x b?",
        "free",
        shapes.held_shape(0),
        axis=0,
        depth=3,
        rank=4,
        macs=macs.transpose_conv,
        defaults=STRIDES,
        takes_shape=True,
        spreads=True,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _RECURRENT._replace(inputs=SEQUENCE_LSTM, shape=shapes.lstm),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _RECURRENT._replace(
        shape=shapes.rnn, options="SequenceRNNOptions"
    ),
    "UNIQUE": Row("x", dtype="x option:idx_out_type", sized_by_values=True),
    "UNPACK": Row("x", "same", shapes.unpack),
    "UNSORTED_SEGMENT_MAX": Row("x i s", shape=shapes.unsorted_segment),
    "UNSORTED_SEGMENT_MIN": Row("x i s", shape=shapes.unsorted_segment),
    "UNSORTED_SEGMENT_PROD": Row("x i s", shape=shapes.unsorted_segment),
    "UNSORTED_SEGMENT_SUM": Row("x i s", shape=shapes.unsorted_segment),
    "VAR_HANDLE": Row("", dtype="resource"),
    "WHERE": Row("x", dtype="int64", sized_by_values=True),
    "WHILE": Row("x*", dtype="each", is_control_flow=True),
    "ZEROS_LIKE": Row("x", shape=shapes.same),
}
