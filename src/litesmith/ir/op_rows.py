"""The rows of the op table, sorted by kind; `op_row` explains columns and traits.

A kind that is not here has a bare row: no options, nothing known.
"""

from math import inf

from litesmith.ir import macs, shapes
from litesmith.ir import shapes_by_index as by_index
from litesmith.ir.op_row import Row
from litesmith.ir.types import Value

STRIDES: dict[str, Value] = {"stride_w": 1, "stride_h": 1}
STRIDES_3D: dict[str, Value] = {**STRIDES, "stride_d": 1}
DEPTHWISE: dict[str, Value] = {**STRIDES, "depth_multiplier": 1}
POOL: dict[str, Value] = {**STRIDES, "filter_width": 1, "filter_height": 1}
TANH: dict[str, Value] = {"fused_activation_function": "TANH"}

# Output scales that integer kernels demand, or take for granted without a look at the tensor
# (LiteRT tflite/kernels/activations.cc and l2norm.cc). Named by the interval of real numbers.
FROM_ZERO = {"int16": (1 / 32768, 0), "int8": (1 / 256, -128), "uint8": (1 / 256, 0)}
L2_UNIT = {"int8": (1 / 128, 0), "uint8": (1 / 128, 128)}
FROM_MINUS_ONE = {"int16": (1 / 32768, 0), **L2_UNIT}
UP_TO_ZERO = {"int8": (16 / 256, 127), "uint8": (16 / 256, 255)}

# Input, forget, cell and output gate in turn: input weights, recurrent weights, peepholes (no cell
# gate), biases, projection and its bias, two states, four layer norms. A gate's input weights may
# be absent, as may all after the fifth in the basic kernel, whose inputs are fewer.
_GATES = "w? w w w w? w w w w? w? w? b? b b b w? b?"
_GATES_OR_BASIC = "w? w w w w? w? w? w? w? w? w? b? b? b? b? w? b?"
LSTM = f"x {_GATES_OR_BASIC} v? v? w? w? w? w?"
SEQUENCE_LSTM = f"x {_GATES} v v w? w? w? w?"
BIDIRECTIONAL_LSTM = f"x {_GATES} {_GATES} v v v v x? w? w? w? w? w? w? w? w?"

ROWS: dict[str, Row] = {
    "ABS": Row("x", "AbsOptions", scale="free", shape=shapes.same),
    "ADD": Row(
        "x x",
        "AddOptions",
        scale="free",
        shape=shapes.broadcast,
        fuses_activation=True,
        arithmetic="+",
        is_commutative=True,
    ),
    "ADD_N": Row("x*", "AddNOptions", shape=shapes.same),
    "ARG_MAX": Row("x s", "ArgMaxOptions", dtype="option:output_type", shape=by_index.drop_axis),
    "ARG_MIN": Row("x s", "ArgMinOptions", dtype="option:output_type", shape=by_index.drop_axis),
    "ASSIGN_VARIABLE": Row("i x", "AssignVariableOptions", has_effect=True, uses_variable=True),
    "ATAN2": Row("x x", "ATan2Options", shape=shapes.same),
    "AVERAGE_POOL_2D": Row(
        "x",
        "Pool2DOptions",
        scale="same",
        shape=shapes.pool,
        defaults=POOL,
        has_window=True,
        fuses_activation=True,
        averages=True,
    ),
    "BATCH_MATMUL": Row(
        "x x", "BatchMatMulOptions", scale="free", macs=macs.batch_matmul, shape=shapes.batch_matmul
    ),
    "BATCH_TO_SPACE_ND": Row(
        "x s s", "BatchToSpaceNDOptions", scale="same", shape=by_index.batch_to_space
    ),
    "BIDIRECTIONAL_SEQUENCE_LSTM": Row(
        BIDIRECTIONAL_LSTM,
        "BidirectionalSequenceLSTMOptions",
        axis=0,
        scale="free",
        macs=macs.recurrent,
        defaults=TANH,
    ),
    "BIDIRECTIONAL_SEQUENCE_RNN": Row(
        "x w w b v w w b v x? w? w?",
        "BidirectionalSequenceRNNOptions",
        axis=0,
        scale="free",
        macs=macs.recurrent,
        defaults=TANH,
    ),
    "BITCAST": Row("x", "BitcastOptions"),
    "BITWISE_XOR": Row("x x", "BitwiseXorOptions", shape=shapes.broadcast),
    "BROADCAST_ARGS": Row("x x", shape=shapes.broadcast_args),
    "BROADCAST_TO": Row(
        "x s", "BroadcastToOptions", scale="same", shape=shapes.given(1), takes_shape=True
    ),
    "BUCKETIZE": Row("x", "BucketizeOptions", dtype="int32", shape=shapes.same),
    "CALL": Row("x*", "CallOptions", has_effect=True, is_control_flow=True),
    "CALL_ONCE": Row("", "CallOnceOptions", has_effect=True, is_control_flow=True),
    "CAST": Row("x", "CastOptions", dtype="option:out_data_type", shape=shapes.same, converts=True),
    "CEIL": Row("x", shape=shapes.same),
    "COMPLEX_ABS": Row("x", dtype="float32", shape=shapes.same),
    "CONCATENATION": Row("x*", "ConcatenationOptions", scale="same", shape=shapes.concatenation),
    "CONCAT_EMBEDDINGS": Row(options="ConcatEmbeddingsOptions"),
    "CONV_2D": Row(
        "x w b?",
        "Conv2DOptions",
        axis=0,
        scale="free",
        macs=macs.conv,
        shape=shapes.conv,
        defaults=STRIDES,
        depth=3,
        is_layer=True,
        has_window=True,
        fuses_activation=True,
    ),
    "CONV_3D": Row(
        "x w b?",
        "Conv3DOptions",
        axis=4,
        macs=macs.conv_3d,
        shape=shapes.conv_3d,
        defaults=STRIDES_3D,
        depth=3,
        has_window=True,
    ),
    "CONV_3D_TRANSPOSE": Row(  # no step asks for its depth
        "s w x b?",
        "Conv3DOptions",
        axis=3,
        macs=macs.transpose_conv,
        shape=shapes.given(0),
        defaults=STRIDES_3D,
        takes_shape=True,
        spreads=True,
    ),
    "COS": Row("x", "CosOptions", shape=shapes.same),
    "CUMSUM": Row("x s", "CumsumOptions", shape=shapes.same),
    "CUSTOM": Row(has_effect=True),
    "DELEGATE": Row(has_effect=True, is_control_flow=True),
    "DENSIFY": Row("x", "DensifyOptions", scale="same", shape=shapes.same, unpacks=True),
    "DEPTHWISE_CONV_2D": Row(
        "x w b?",
        "DepthwiseConv2DOptions",
        axis=3,
        scale="free",
        macs=macs.depthwise_conv,
        shape=shapes.depthwise_conv,
        defaults=DEPTHWISE,
        is_layer=True,
        is_depthwise=True,
        has_window=True,
        fuses_activation=True,
    ),
    "DEPTH_TO_SPACE": Row("x", "DepthToSpaceOptions", scale="same", shape=by_index.depth_to_space),
    "DEQUANTIZE": Row(
        "x",
        "DequantizeOptions",
        dtype="float32",
        shape=shapes.same,
        converts=True,
        rescales=True,
        unpacks=True,
    ),
    "DILATE": Row(options="DilateOptions"),
    "DIV": Row(
        "x x",
        "DivOptions",
        scale="free",
        shape=shapes.broadcast,
        fuses_activation=True,
        arithmetic="/",
    ),
    "DYNAMIC_UPDATE_SLICE": Row(
        "x x i", "DynamicUpdateSliceOptions", scale="same", shape=shapes.same
    ),
    "ELU": Row("x", scale="free", shape=shapes.same),
    "EMBEDDING_LOOKUP": Row("i w", axis=0, scale="same", shape=by_index.embedding_lookup),
    "EMBEDDING_LOOKUP_SPARSE": Row(options="EmbeddingLookupSparseOptions"),
    "EQUAL": Row("x x", "EqualOptions", dtype="bool", shape=shapes.broadcast),
    "EXP": Row("x", "ExpOptions", scale="free", shape=shapes.same),
    "EXPAND_DIMS": Row(
        "x s", "ExpandDimsOptions", scale="same", shape=shapes.expand_dims, reshapes=True
    ),
    "FAKE_QUANT": Row("x", "FakeQuantOptions", shape=shapes.same, defaults={"num_bits": 8}),
    "FILL": Row("s x", "FillOptions", scale="same", shape=shapes.given(0), takes_shape=True),
    "FLOOR": Row("x", shape=shapes.same),
    "FLOOR_DIV": Row("x x", "FloorDivOptions", shape=shapes.broadcast),
    "FLOOR_MOD": Row("x x", "FloorModOptions", shape=shapes.broadcast),
    "FULLY_CONNECTED": Row(
        "x w b?",
        "FullyConnectedOptions",
        axis=0,
        scale="free",
        macs=macs.conv,
        shape=shapes.fully_connected,
        depth=1,
        is_layer=True,
        has_sparse_kernel=True,
        fuses_activation=True,
    ),
    "GATHER": Row("x i", "GatherOptions", scale="same", shape=by_index.gather),
    "GATHER_ND": Row("x i", "GatherNdOptions", scale="same", shape=by_index.gather_nd),
    "GELU": Row("x", "GeluOptions", scale="free", shape=shapes.same),
    "GREATER": Row("x x", "GreaterOptions", dtype="bool", shape=shapes.broadcast),
    "GREATER_EQUAL": Row("x x", "GreaterEqualOptions", dtype="bool", shape=shapes.broadcast),
    "HARD_SWISH": Row("x", "HardSwishOptions", scale="free", shape=shapes.same),
    "HASHTABLE": Row("", "HashtableOptions", dtype="resource"),
    "HASHTABLE_FIND": Row("i i x", "HashtableFindOptions", varies=True),
    "HASHTABLE_IMPORT": Row("i i x", "HashtableImportOptions", has_effect=True),
    "HASHTABLE_LOOKUP": Row("i i x", dtype="x uint8"),
    "HASHTABLE_SIZE": Row("i", "HashtableSizeOptions", dtype="int64", varies=True),
    "IF": Row("i x*", "IfOptions", is_control_flow=True),
    "IMAG": Row("x", dtype="float32", shape=shapes.same),
    "L2_NORMALIZATION": Row("x", "L2NormOptions", scale="fixed", fixed=L2_UNIT, shape=shapes.same),
    "L2_POOL_2D": Row("x", "Pool2DOptions", shape=shapes.pool, defaults=POOL, has_window=True),
    "LEAKY_RELU": Row(
        "x", "LeakyReluOptions", scale="free", shape=shapes.same, defaults={"alpha": 0.2}
    ),
    "LESS": Row("x x", "LessOptions", dtype="bool", shape=shapes.broadcast),
    "LESS_EQUAL": Row("x x", "LessEqualOptions", dtype="bool", shape=shapes.broadcast),
    "LOCAL_RESPONSE_NORMALIZATION": Row(
        "x",
        "LocalResponseNormalizationOptions",
        shape=shapes.same,
        defaults={"radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5},
    ),
    "LOG": Row("x", scale="free", shape=shapes.same, is_logarithm=True),
    "LOGICAL_AND": Row("x x", "LogicalAndOptions", dtype="bool", shape=shapes.broadcast),
    "LOGICAL_NOT": Row("x", "LogicalNotOptions", dtype="bool", shape=shapes.same),
    "LOGICAL_OR": Row("x x", "LogicalOrOptions", dtype="bool", shape=shapes.broadcast),
    "LOGISTIC": Row(
        "x",
        scale="fixed",
        fixed=FROM_ZERO,
        shape=shapes.same,
        makes_probabilities=True,
        saturates=True,
    ),
    "LOG_SOFTMAX": Row(
        "x",
        "LogSoftmaxOptions",
        scale="fixed",
        fixed=UP_TO_ZERO,
        shape=shapes.same,
        is_softmax=True,
        makes_probabilities=True,
        is_logarithm=True,
        saturates=True,
    ),
    "LSH_PROJECTION": Row(options="LSHProjectionOptions"),
    "LSTM": Row(
        LSTM,
        "LSTMOptions",
        axis=0,
        scale="free",
        macs=macs.recurrent,
        shape=by_index.lstm,
        defaults=TANH,
    ),
    "MATRIX_DIAG": Row("x", "MatrixDiagOptions", shape=by_index.matrix_diag),
    "MATRIX_SET_DIAG": Row("x x", "MatrixSetDiagOptions", scale="same", shape=shapes.same),
    "MAXIMUM": Row(
        "x x", "MaximumMinimumOptions", scale="same", shape=shapes.broadcast, is_commutative=True
    ),
    "MAX_POOL_2D": Row(
        "x",
        "Pool2DOptions",
        scale="same",
        shape=shapes.pool,
        defaults=POOL,
        has_window=True,
        fuses_activation=True,
    ),
    "MEAN": Row("x s", "ReducerOptions", scale="free", shape=by_index.reduce, averages=True),
    "MINIMUM": Row(
        "x x", "MaximumMinimumOptions", scale="same", shape=shapes.broadcast, is_commutative=True
    ),
    "MIRROR_PAD": Row("x s", "MirrorPadOptions", scale="same", shape=shapes.pad),
    "MUL": Row(
        "x x",
        "MulOptions",
        scale="free",
        shape=shapes.broadcast,
        fuses_activation=True,
        arithmetic="*",
        is_commutative=True,
    ),
    "MULTINOMIAL": Row(
        "x s", "RandomOptions", dtype="int64", shape=by_index.multinomial, varies=True
    ),
    "NEG": Row("x", "NegOptions", shape=shapes.same),
    "NON_MAX_SUPPRESSION_V4": Row(
        "x x s s s",
        "NonMaxSuppressionV4Options",
        dtype="int32",
        shape=by_index.suppression,
        sized_by_values=True,
    ),
    "NON_MAX_SUPPRESSION_V5": Row(
        "x x s s s s",
        "NonMaxSuppressionV5Options",
        dtype="int32 float32 int32",
        shape=by_index.soft_suppression,
        sized_by_values=True,
    ),
    "NOT_EQUAL": Row("x x", "NotEqualOptions", dtype="bool", shape=shapes.broadcast),
    "ONE_HOT": Row(
        "i s x x", "OneHotOptions", scale="same", shape=by_index.one_hot, defaults={"axis": -1}
    ),
    "PACK": Row("x*", "PackOptions", scale="same", shape=shapes.pack),
    "PAD": Row("x s", "PadOptions", scale="same", shape=shapes.pad, pads=True),
    "PADV2": Row("x s x", "PadV2Options", scale="same", shape=shapes.pad, pads=True),
    "POW": Row("x x", "PowOptions", shape=shapes.broadcast),
    "PRELU": Row("x x", scale="free", shape=shapes.broadcast),
    "QUANTIZE": Row(
        "x",
        "QuantizeOptions",
        scale="free",
        dtype="int8",
        shape=shapes.same,
        converts=True,
        rescales=True,
    ),
    "RANDOM_STANDARD_NORMAL": Row(
        "s", "RandomOptions", dtype="float32", shape=shapes.given(0), takes_shape=True, varies=True
    ),
    "RANDOM_UNIFORM": Row(
        "s", "RandomOptions", dtype="float32", shape=shapes.given(0), takes_shape=True, varies=True
    ),
    "RANGE": Row("x x x", "RangeOptions", shape=by_index.range_, sized_by_values=True),
    "RANK": Row("x", "RankOptions", dtype="int32", shape=shapes.scalar, reads_shape_only=True),
    "READ_VARIABLE": Row("i", "ReadVariableOptions", uses_variable=True, varies=True),
    "REAL": Row("x", dtype="float32", shape=shapes.same),
    "REDUCE_ALL": Row("x s", "ReducerOptions", dtype="bool", shape=by_index.reduce),
    "REDUCE_ANY": Row("x s", "ReducerOptions", dtype="bool", shape=by_index.reduce),
    "REDUCE_MAX": Row("x s", "ReducerOptions", scale="same", shape=by_index.reduce),
    "REDUCE_MIN": Row("x s", "ReducerOptions", scale="same", shape=by_index.reduce),
    "REDUCE_PROD": Row("x s", "ReducerOptions", scale="free", shape=by_index.reduce),
    "REDUCE_WINDOW": Row(options="ReduceWindowOptions"),
    "RELU": Row("x", scale="free", shape=shapes.same, clamps=(0, inf)),
    "RELU6": Row("x", scale="free", shape=shapes.same, clamps=(0, 6)),
    "RELU_0_TO_1": Row("x", scale="free", shape=shapes.same, clamps=(0, 1)),
    "RELU_N1_TO_1": Row("x", scale="free", shape=shapes.same, clamps=(-1, 1)),
    "RESHAPE": Row(
        "x s?",
        "ReshapeOptions",
        scale="same",
        shape=shapes.reshape,
        reshapes=True,
        takes_shape=True,
    ),
    "RESIZE_BILINEAR": Row(
        "x s", "ResizeBilinearOptions", scale="same", shape=by_index.resize, interpolates=True
    ),
    "RESIZE_NEAREST_NEIGHBOR": Row(
        "x s", "ResizeNearestNeighborOptions", scale="same", shape=by_index.resize
    ),
    "REVERSE_SEQUENCE": Row(
        "x s", "ReverseSequenceOptions", shape=shapes.same, defaults={"seq_dim": 1}
    ),
    "REVERSE_V2": Row("x s", "ReverseV2Options", scale="same", shape=shapes.same),
    "RFFT2D": Row("x s", "Rfft2dOptions", dtype="complex64", shape=by_index.rfft_2d),
    "RIGHT_SHIFT": Row("x x", "RightShiftOptions", shape=shapes.broadcast),
    "RNN": Row(
        "x w w b v",
        "RNNOptions",
        axis=0,
        scale="free",
        macs=macs.recurrent,
        shape=by_index.rnn,
        defaults=TANH,
    ),
    "ROUND": Row("x", shape=shapes.same),
    "RSQRT": Row("x", scale="free", shape=shapes.same),
    "SCATTER_ND": Row("i x s", "ScatterNdOptions", shape=shapes.given(2), takes_shape=True),
    "SEGMENT_SUM": Row("x i", "SegmentSumOptions", shape=by_index.segment_sum),
    "SELECT": Row("i x x", "SelectOptions", scale="same", shape=shapes.like(1)),
    "SELECT_V2": Row("i x x", "SelectV2Options", scale="same", shape=shapes.broadcast),
    "SHAPE": Row(
        "x",
        "ShapeOptions",
        dtype="option:out_type",
        shape=by_index.shape_of,
        defaults={"out_type": "INT32"},
        reads_shape_only=True,
    ),
    "SIGN": Row("x", "SignOptions", shape=shapes.same),
    "SIN": Row("x", shape=shapes.same),
    "SKIP_GRAM": Row(options="SkipGramOptions"),
    "SLICE": Row("x s s", "SliceOptions", scale="same", shape=shapes.slice_),
    "SOFTMAX": Row(
        "x",
        "SoftmaxOptions",
        scale="fixed",
        fixed=FROM_ZERO,
        shape=shapes.same,
        defaults={"beta": 1.0},
        is_softmax=True,
        makes_probabilities=True,
        saturates=True,
    ),
    "SPACE_TO_BATCH_ND": Row(
        "x s s", "SpaceToBatchNDOptions", scale="same", shape=by_index.space_to_batch
    ),
    "SPACE_TO_DEPTH": Row("x", "SpaceToDepthOptions", scale="same", shape=by_index.space_to_depth),
    "SPARSE_TO_DENSE": Row(
        "i s x x", "SparseToDenseOptions", scale="same", shape=shapes.given(1), takes_shape=True
    ),
    "SPLIT": Row("s x", "SplitOptions", scale="same", shape=shapes.split),
    "SPLIT_V": Row("x s s", "SplitVOptions", scale="same", shape=shapes.split_v),
    "SQRT": Row("x", scale="free", shape=shapes.same),
    "SQUARE": Row("x", "SquareOptions", shape=shapes.same),
    "SQUARED_DIFFERENCE": Row(
        "x x", "SquaredDifferenceOptions", scale="free", shape=shapes.broadcast
    ),
    "SQUEEZE": Row("x", "SqueezeOptions", scale="same", shape=shapes.squeeze, reshapes=True),
    "STABLEHLO_BROADCAST_IN_DIM": Row(options="StablehloBroadcastInDimOptions"),
    "STABLEHLO_CASE": Row(options="StablehloCaseOptions"),
    "STABLEHLO_COMPARE": Row(options="StablehloCompareOptions"),
    "STABLEHLO_COMPOSITE": Row("x*", "StableHLOCompositeOptions"),
    "STABLEHLO_CONCATENATE": Row(options="StablehloConcatenateOptions"),
    "STABLEHLO_CONVOLUTION": Row(options="StablehloConvolutionOptions"),
    "STABLEHLO_CUSTOM_CALL": Row(options="StablehloCustomCallOptions", varies=True),
    "STABLEHLO_DOT_GENERAL": Row(options="StablehloDotGeneralOptions"),
    "STABLEHLO_DYNAMIC_SLICE": Row(options="StablehloDynamicSliceOptions"),
    "STABLEHLO_GATHER": Row(options="StablehloGatherOptions"),
    "STABLEHLO_IOTA": Row(options="StablehloIotaOptions"),
    "STABLEHLO_PAD": Row(options="StablehloPadOptions"),
    "STABLEHLO_REDUCE": Row(options="StablehloReduceOptions"),
    "STABLEHLO_REDUCE_WINDOW": Row(options="StablehloReduceWindowOptions"),
    "STABLEHLO_RNG_BIT_GENERATOR": Row(options="StablehloRngBitGeneratorOptions", varies=True),
    "STABLEHLO_SCATTER": Row(options="StablehloScatterOptions"),
    "STABLEHLO_SHIFT_LEFT": Row(options="StablehloShiftLeftOptions"),
    "STABLEHLO_SLICE": Row(options="StablehloSliceOptions"),
    "STABLEHLO_SORT": Row(options="StablehloSortOptions"),
    "STABLEHLO_TRANSPOSE": Row(options="StablehloTransposeOptions"),
    "STABLEHLO_WHILE": Row(options="StablehloWhileOptions"),
    "STRIDED_SLICE": Row(
        "x s s s", "StridedSliceOptions", scale="same", shape=shapes.strided_slice
    ),
    "SUB": Row(
        "x x",
        "SubOptions",
        scale="free",
        shape=shapes.broadcast,
        fuses_activation=True,
        arithmetic="-",
    ),
    "SUM": Row("x s", "ReducerOptions", scale="free", shape=by_index.reduce),
    "SVDF": Row(
        "x w w b? v",
        "SVDFOptions",
        axis=0,
        scale="free",
        macs=macs.recurrent,
        shape=by_index.svdf,
        defaults={"rank": 1},
    ),
    "TANH": Row("x", scale="fixed", fixed=FROM_MINUS_ONE, shape=shapes.same, saturates=True),
    "TILE": Row("x s", "TileOptions", scale="same", shape=shapes.tile),
    "TOPK_V2": Row("x s", "TopKV2Options", scale="same", dtype="x int32", shape=by_index.top_k),
    "TRANSPOSE": Row(
        "x s", "TransposeOptions", scale="same", shape=shapes.transpose, transposes=True
    ),
    "TRANSPOSE_CONV": Row(
        "s w x b?",
        "TransposeConvOptions",
        axis=0,
        scale="free",
        macs=macs.transpose_conv,
        shape=shapes.given(0),
        defaults=STRIDES,
        depth=3,
        takes_shape=True,
        spreads=True,
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": Row(
        SEQUENCE_LSTM,
        "UnidirectionalSequenceLSTMOptions",
        axis=0,
        scale="free",
        macs=macs.recurrent,
        shape=by_index.lstm,
        defaults=TANH,
    ),
    "UNIDIRECTIONAL_SEQUENCE_RNN": Row(
        "x w w b v",
        "SequenceRNNOptions",
        axis=0,
        scale="free",
        macs=macs.recurrent,
        shape=by_index.rnn,
        defaults=TANH,
    ),
    "UNIQUE": Row("x", "UniqueOptions", dtype="x option:idx_out_type", sized_by_values=True),
    "UNPACK": Row("x", "UnpackOptions", scale="same", shape=shapes.unpack),
    "UNSORTED_SEGMENT_MAX": Row(
        "x i s", "UnsortedSegmentMaxOptions", shape=by_index.unsorted_segment
    ),
    "UNSORTED_SEGMENT_MIN": Row(
        "x i s", "UnsortedSegmentMinOptions", shape=by_index.unsorted_segment
    ),
    "UNSORTED_SEGMENT_PROD": Row(
        "x i s", "UnsortedSegmentProdOptions", shape=by_index.unsorted_segment
    ),
    "UNSORTED_SEGMENT_SUM": Row(
        "x i s", "UnsortedSegmentSumOptions", shape=by_index.unsorted_segment
    ),
    "VAR_HANDLE": Row("", "VarHandleOptions", dtype="resource"),
    "WHERE": Row("x", "WhereOptions", dtype="int64", sized_by_values=True),
    "WHILE": Row("x*", "WhileOptions", dtype="each", is_control_flow=True),
    "ZEROS_LIKE": Row("x", "ZerosLikeOptions", shape=shapes.same),
}
