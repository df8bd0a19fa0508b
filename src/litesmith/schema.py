"""The vocabulary of the .tflite format as data: enums, unions, tables, fields and defaults.

A field's place in its table is its flatbuffer slot, so the order of the words below is part of the
format. Everything that reads or writes a file is driven by these tables; nothing else knows a slot.
The format's own description is TensorFlow Lite's `schema.fbs`, and `tests/test_schema.py` compares
every line here with the schema module that the runtime's wheel carries.
"""

import struct
from typing import NamedTuple

FILE_IDENTIFIER = b"TFL3"

SCALARS = {
    "bool": struct.Struct("<?"),
    "float32": struct.Struct("<f"),
    "int16": struct.Struct("<h"),
    "int32": struct.Struct("<i"),
    "int64": struct.Struct("<q"),
    "int8": struct.Struct("<b"),
    "uint16": struct.Struct("<H"),
    "uint32": struct.Struct("<I"),
    "uint64": struct.Struct("<Q"),
    "uint8": struct.Struct("<B"),
}

# Each enum: the scalar that stores it, then its names from 0 on.
_ENUMS = """
TensorType int8: FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64
    COMPLEX128 UINT64 RESOURCE VARIANT UINT32 UINT16 INT4 BFLOAT16 INT2 UINT4 FLOAT8_E4M3FN
    FLOAT8_E5M2
DimensionType int8: DENSE SPARSE_CSR
BuiltinOperator int32: ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE
    DEQUANTIZE EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1
    RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM
    CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
    SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
    BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM
    CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT
    SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT
    SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND
    LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE
    RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL
    REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE
    MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5
    SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM
    CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND
    HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
    ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL
    GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX
    UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT
    STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM
    STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM
    STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS
    STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG
    STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER
    STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER
    STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE
    STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT
    STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR
    REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
StablehloPrecisionConfig uint32: DEFAULT HIGH HIGHEST
StablehloComparisonDirection uint32: STABLEHLO_COMPARISON_DIRECTION_EQ
    STABLEHLO_COMPARISON_DIRECTION_NE STABLEHLO_COMPARISON_DIRECTION_GE
    STABLEHLO_COMPARISON_DIRECTION_GT STABLEHLO_COMPARISON_DIRECTION_LE
    STABLEHLO_COMPARISON_DIRECTION_LT
StablehloComparisonType uint32: STABLEHLO_COMPARISON_TYPE_NOTYPE STABLEHLO_COMPARISON_TYPE_FLOAT
    STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER STABLEHLO_COMPARISON_TYPE_SIGNED
    STABLEHLO_COMPARISON_TYPE_UNSIGNED
RngAlgorithm int8: DEFAULT PHILOX THREEFRY
Padding int8: SAME VALID
ActivationFunctionType int8: NONE RELU RELU_N1_TO_1 RELU6 TANH SIGN_BIT
LSHProjectionType int8: UNKNOWN SPARSE DENSE
FullyConnectedOptionsWeightsFormat int8: DEFAULT SHUFFLED4x16INT8
LSTMKernelType int8: FULL BASIC
CombinerType int8: SUM MEAN SQRTN
MirrorPadMode int8: REFLECT SYMMETRIC
ReduceWindowFunction int32: UNSUPPORTED ADD MUL MINIMUM MAXIMUM ALL ANY
CustomOptionsFormat int8: FLEXBUFFERS
"""

# Each union: its member tables; the number stored is the place in the list, 0 for none.
_UNIONS = """
QuantizationDetails: CustomQuantization BlockwiseQuantization MultiAxisQuantization
SparseIndexVector: Int32Vector Uint16Vector Uint8Vector
BuiltinOptions: Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions
    Pool2DOptions SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions ConcatenationOptions
    AddOptions L2NormOptions LocalResponseNormalizationOptions LSTMOptions ResizeBilinearOptions
    CallOptions ReshapeOptions SkipGramOptions SpaceToDepthOptions EmbeddingLookupSparseOptions
    MulOptions PadOptions GatherOptions BatchToSpaceNDOptions SpaceToBatchNDOptions
    TransposeOptions ReducerOptions SubOptions DivOptions SqueezeOptions SequenceRNNOptions
    StridedSliceOptions ExpOptions TopKV2Options SplitOptions LogSoftmaxOptions CastOptions
    DequantizeOptions MaximumMinimumOptions ArgMaxOptions LessOptions NegOptions PadV2Options
    GreaterOptions GreaterEqualOptions LessEqualOptions SelectOptions SliceOptions
    TransposeConvOptions SparseToDenseOptions TileOptions ExpandDimsOptions EqualOptions
    NotEqualOptions ShapeOptions PowOptions ArgMinOptions FakeQuantOptions PackOptions
    LogicalOrOptions OneHotOptions LogicalAndOptions LogicalNotOptions UnpackOptions
    FloorDivOptions SquareOptions ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions
    BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions FloorModOptions RangeOptions
    ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions MirrorPadOptions
    AbsOptions SplitVOptions UniqueOptions ReverseV2Options AddNOptions GatherNdOptions CosOptions
    WhereOptions RankOptions ReverseSequenceOptions MatrixDiagOptions QuantizeOptions
    MatrixSetDiagOptions HardSwishOptions IfOptions WhileOptions DepthToSpaceOptions
    NonMaxSuppressionV4Options NonMaxSuppressionV5Options ScatterNdOptions SelectV2Options
    DensifyOptions SegmentSumOptions BatchMatMulOptions CumsumOptions CallOnceOptions
    BroadcastToOptions Rfft2dOptions Conv3DOptions HashtableOptions HashtableFindOptions
    HashtableImportOptions HashtableSizeOptions VarHandleOptions ReadVariableOptions
    AssignVariableOptions RandomOptions BucketizeOptions GeluOptions DynamicUpdateSliceOptions
    UnsortedSegmentProdOptions UnsortedSegmentMaxOptions UnsortedSegmentMinOptions
    UnsortedSegmentSumOptions ATan2Options SignOptions BitcastOptions BitwiseXorOptions
    RightShiftOptions
BuiltinOptions2: StablehloConcatenateOptions StablehloBroadcastInDimOptions StablehloSliceOptions
    StablehloConvolutionOptions StablehloCustomCallOptions StablehloReduceOptions
    StablehloScatterOptions StablehloCompareOptions StablehloDynamicSliceOptions
    StablehloPadOptions StablehloIotaOptions StablehloDotGeneralOptions
    StablehloReduceWindowOptions StablehloSortOptions StablehloWhileOptions StablehloGatherOptions
    StablehloTransposeOptions DilateOptions StablehloRngBitGeneratorOptions ReduceWindowOptions
    StableHLOCompositeOptions StablehloShiftLeftOptions StablehloCaseOptions
"""

# Each table: `name:type=default` for every slot. [type] is a vector; a union takes two slots.
_TABLES = """
CustomQuantization: custom:[uint8]
BlockwiseQuantization: scales:int32 zero_points:int32 block_size:int32 block_shape:[int32]
MultiAxisQuantization: scales:int32 zero_points:int32 block_size:int32
    quantized_dimensions:[int32]
QuantizationParameters: min:[float32] max:[float32] scale:[float32] zero_point:[int64]
    details:QuantizationDetails quantized_dimension:int32
Int32Vector: values:[int32]
Uint16Vector: values:[uint16]
Uint8Vector: values:[uint8]
DimensionMetadata: format:DimensionType dense_size:int32 array_segments:SparseIndexVector
    array_indices:SparseIndexVector
SparsityParameters: traversal_order:[int32] block_map:[int32] dim_metadata:[DimensionMetadata]
VariantSubType: shape:[int32] type:TensorType has_rank:bool
Tensor: shape:[int32] type:TensorType buffer:uint32 name:string
    quantization:QuantizationParameters is_variable:bool sparsity:SparsityParameters
    shape_signature:[int32] has_rank:bool variant_tensors:[VariantSubType]
    external_buffer:uint32
StablehloGatherOptions: offset_dims:[int64] collapsed_slice_dims:[int64] start_index_map:[int64]
    index_vector_dim:int64 slice_sizes:[int64] indices_are_sorted:bool
StablehloTransposeOptions: permutation:[int64]
StablehloDotGeneralOptions: lhs_batching_dimensions:[int64] rhs_batching_dimensions:[int64]
    lhs_contracting_dimensions:[int64] rhs_contracting_dimensions:[int64]
    precision_config:[StablehloPrecisionConfig]
StablehloReduceWindowOptions: window_dimensions:[int64] window_strides:[int64]
    base_dilations:[int64] window_dilations:[int64] padding:[int64] body_subgraph_index:int32
StablehloWhileOptions: cond_subgraph_index:int32 body_subgraph_index:int32
StablehloSortOptions: dimension:int64 is_stable:bool comparator_subgraph_index:int32
StablehloConcatenateOptions: dimension:int64
StablehloBroadcastInDimOptions: broadcast_dimensions:[int64]
StablehloCompareOptions: comparison_direction:StablehloComparisonDirection
    compare_type:StablehloComparisonType
StablehloDynamicSliceOptions: slice_sizes:[int64]
StablehloPadOptions: edge_padding_low:[int64] edge_padding_high:[int64] interior_padding:[int64]
StablehloIotaOptions: iota_dimension:int64
StablehloCustomCallOptions: call_target_name:string has_side_effect:bool backend_config:string
    api_version:int32 called_computations:[int32] custom_attributes:[uint8]
StablehloReduceOptions: dimensions:[int64] body_subgraph_index:int32
StablehloSliceOptions: start_indices:[int64] limit_indices:[int64] strides:[int64]
StablehloConvolutionOptions: window_strides:[int64] padding:[int64] lhs_dilation:[int64]
    rhs_dilation:[int64] window_reversal:[bool] input_batch_dimension:int64
    input_feature_dimension:int64 input_spatial_dimensions:[int64]
    kernel_input_feature_dimension:int64 kernel_output_feature_dimension:int64
    kernel_spatial_dimensions:[int64] output_batch_dimension:int64
    output_feature_dimension:int64 output_spatial_dimensions:[int64] feature_group_count:int64
    batch_group_count:int64 precision_config:[StablehloPrecisionConfig]
StablehloScatterOptions: indices_are_sorted:bool update_window_dims:[int64]
    inserted_window_dims:[int64] scatter_dims_to_operand_dims:[int64] index_vector_dim:int64
    unique_indices:bool update_computation_subgraph_index:int32
StablehloCaseOptions: branch_subgraph_indices:[int32]
StablehloRngBitGeneratorOptions: algorithm:RngAlgorithm
Conv2DOptions: padding:Padding stride_w:int32 stride_h:int32
    fused_activation_function:ActivationFunctionType dilation_w_factor:int32=1
    dilation_h_factor:int32=1 quantized_bias_type:TensorType
Conv3DOptions: padding:Padding stride_d:int32 stride_w:int32 stride_h:int32
    fused_activation_function:ActivationFunctionType dilation_d_factor:int32=1
    dilation_w_factor:int32=1 dilation_h_factor:int32=1
Pool2DOptions: padding:Padding stride_w:int32 stride_h:int32 filter_width:int32
    filter_height:int32 fused_activation_function:ActivationFunctionType
DepthwiseConv2DOptions: padding:Padding stride_w:int32 stride_h:int32 depth_multiplier:int32
    fused_activation_function:ActivationFunctionType dilation_w_factor:int32=1
    dilation_h_factor:int32=1
ConcatEmbeddingsOptions: num_channels:int32 num_columns_per_channel:[int32]
    embedding_dim_per_channel:[int32]
LSHProjectionOptions: type:LSHProjectionType
SVDFOptions: rank:int32 fused_activation_function:ActivationFunctionType
    asymmetric_quantize_inputs:bool
RNNOptions: fused_activation_function:ActivationFunctionType asymmetric_quantize_inputs:bool
SequenceRNNOptions: time_major:bool fused_activation_function:ActivationFunctionType
    asymmetric_quantize_inputs:bool
BidirectionalSequenceRNNOptions: time_major:bool
    fused_activation_function:ActivationFunctionType merge_outputs:bool
    asymmetric_quantize_inputs:bool
FullyConnectedOptions: fused_activation_function:ActivationFunctionType
    weights_format:FullyConnectedOptionsWeightsFormat keep_num_dims:bool
    asymmetric_quantize_inputs:bool quantized_bias_type:TensorType quant_spec:[uint8]
SoftmaxOptions: beta:float32
ConcatenationOptions: axis:int32 fused_activation_function:ActivationFunctionType
AddOptions: fused_activation_function:ActivationFunctionType pot_scale_int16:bool=1
MulOptions: fused_activation_function:ActivationFunctionType
L2NormOptions: fused_activation_function:ActivationFunctionType
LocalResponseNormalizationOptions: radius:int32 bias:float32 alpha:float32 beta:float32
LSTMOptions: fused_activation_function:ActivationFunctionType cell_clip:float32
    proj_clip:float32 kernel_type:LSTMKernelType asymmetric_quantize_inputs:bool
UnidirectionalSequenceLSTMOptions: fused_activation_function:ActivationFunctionType
    cell_clip:float32 proj_clip:float32 time_major:bool asymmetric_quantize_inputs:bool
    diagonal_recurrent_tensors:bool
BidirectionalSequenceLSTMOptions: fused_activation_function:ActivationFunctionType
    cell_clip:float32 proj_clip:float32 merge_outputs:bool time_major:bool=1
    asymmetric_quantize_inputs:bool
ResizeBilinearOptions: new_height:int32 new_width:int32 align_corners:bool
    half_pixel_centers:bool
ResizeNearestNeighborOptions: align_corners:bool half_pixel_centers:bool
CallOptions: subgraph:uint32
ReshapeOptions: new_shape:[int32]
SkipGramOptions: ngram_size:int32 max_skip_size:int32 include_all_ngrams:bool
SpaceToDepthOptions: block_size:int32
DepthToSpaceOptions: block_size:int32
SubOptions: fused_activation_function:ActivationFunctionType pot_scale_int16:bool=1
DivOptions: fused_activation_function:ActivationFunctionType
EmbeddingLookupSparseOptions: combiner:CombinerType
GatherOptions: axis:int32 batch_dims:int32
ReducerOptions: keep_dims:bool
SqueezeOptions: squeeze_dims:[int32]
SplitOptions: num_splits:int32
SplitVOptions: num_splits:int32
StridedSliceOptions: begin_mask:int32 end_mask:int32 ellipsis_mask:int32 new_axis_mask:int32
    shrink_axis_mask:int32 offset:bool
CastOptions: in_data_type:TensorType out_data_type:TensorType
ArgMaxOptions: output_type:TensorType
ArgMinOptions: output_type:TensorType
TransposeConvOptions: padding:Padding stride_w:int32 stride_h:int32
    fused_activation_function:ActivationFunctionType quantized_bias_type:TensorType
SparseToDenseOptions: validate_indices:bool
ShapeOptions: out_type:TensorType
FakeQuantOptions: min:float32 max:float32 num_bits:int32 narrow_range:bool
PackOptions: values_count:int32 axis:int32
OneHotOptions: axis:int32
UnpackOptions: num:int32 axis:int32
LeakyReluOptions: alpha:float32
MirrorPadOptions: mode:MirrorPadMode
UniqueOptions: idx_out_type:TensorType=2
ReverseSequenceOptions: seq_dim:int32 batch_dim:int32
IfOptions: then_subgraph_index:int32 else_subgraph_index:int32
CallOnceOptions: init_subgraph_index:int32
WhileOptions: cond_subgraph_index:int32 body_subgraph_index:int32
BatchMatMulOptions: adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool
CumsumOptions: exclusive:bool reverse:bool
HashtableOptions: table_id:int32 key_dtype:TensorType value_dtype:TensorType
VarHandleOptions: container:string shared_name:string
RandomOptions: seed:int64 seed2:int64
BucketizeOptions: boundaries:[float32]
GeluOptions: approximate:bool
ReduceWindowOptions: reduce_function:ReduceWindowFunction
OperatorCode: deprecated_builtin_code:int8 custom_code:string version:int32=1
    builtin_code:BuiltinOperator
StableHLOCompositeOptions: name:string decomposition_subgraph_index:int32
    composite_attributes:[uint8] composite_attributes_format:CustomOptionsFormat version:int32
Operator: opcode_index:uint32 inputs:[int32] outputs:[int32] builtin_options:BuiltinOptions
    custom_options:[uint8] custom_options_format:CustomOptionsFormat
    mutating_variable_inputs:[bool] intermediates:[int32] large_custom_options_offset:uint64
    large_custom_options_size:uint64 builtin_options_2:BuiltinOptions2
    debug_metadata_index:int32=-1
SubGraph: tensors:[Tensor] inputs:[int32] outputs:[int32] operators:[Operator] name:string
    debug_metadata_index:int32=-1
Buffer: data:[uint8] offset:uint64 size:uint64
ExternalBufferGroup: name:string
ExternalBuffer: id:uint32 group:uint32 offset:uint64 length:uint64 packing:string
Metadata: name:string buffer:uint32
TensorMap: name:string tensor_index:uint32
SignatureDef: inputs:[TensorMap] outputs:[TensorMap] signature_key:string deprecated_tag:string
    subgraph_index:uint32
Model: version:uint32 operator_codes:[OperatorCode] subgraphs:[SubGraph] description:string
    buffers:[Buffer] metadata_buffer:[int32] metadata:[Metadata] signature_defs:[SignatureDef]
    external_buffer_groups:[ExternalBufferGroup] external_buffers:[ExternalBuffer]
"""

# Tables with no field at all.
_EMPTY_TABLES = """
PadOptions PadV2Options SpaceToBatchNDOptions BatchToSpaceNDOptions TopKV2Options
TransposeOptions ExpOptions CosOptions LogSoftmaxOptions DequantizeOptions MaximumMinimumOptions
TileOptions GreaterOptions GreaterEqualOptions LessOptions LessEqualOptions NegOptions
SelectOptions SliceOptions ExpandDimsOptions EqualOptions NotEqualOptions RankOptions PowOptions
LogicalOrOptions AbsOptions HardSwishOptions LogicalAndOptions LogicalNotOptions FloorDivOptions
SquareOptions ZerosLikeOptions FillOptions FloorModOptions RangeOptions SquaredDifferenceOptions
ReverseV2Options AddNOptions GatherNdOptions WhereOptions MatrixDiagOptions QuantizeOptions
MatrixSetDiagOptions NonMaxSuppressionV4Options NonMaxSuppressionV5Options ScatterNdOptions
SelectV2Options DensifyOptions SegmentSumOptions BroadcastToOptions Rfft2dOptions
HashtableFindOptions HashtableImportOptions HashtableSizeOptions ReadVariableOptions
AssignVariableOptions DynamicUpdateSliceOptions UnsortedSegmentProdOptions
UnsortedSegmentMaxOptions UnsortedSegmentSumOptions ATan2Options UnsortedSegmentMinOptions
SignOptions BitcastOptions BitwiseXorOptions RightShiftOptions DilateOptions
StablehloShiftLeftOptions
"""


class Field(NamedTuple):
    """One field of a table; `kind` is scalar, enum, string, table or union."""

    name: str
    slot: int
    kind: str
    type: str
    vector: bool
    default: int | float | bool

    @property
    def is_offset(self) -> bool:
        """True where the table holds not the value but the way to it."""
        return self.vector or self.kind in ("string", "table", "union")

    @property
    def stored(self) -> str:
        """The scalar that stores the value, or one element of a vector."""
        return ENUMS[self.type].stored if self.kind == "enum" else self.type


class Enum(NamedTuple):
    """Names by number, numbers by name, and the scalar type that stores them."""

    stored: str
    names: tuple[str, ...]
    numbers: dict[str, int]


def _entries(text: str) -> list[tuple[str, list[str]]]:
    """`Name: word word` entries, continued on indented lines."""
    entries: list[tuple[str, list[str]]] = []
    for line in text.strip().splitlines():
        if line[0] == " ":
            entries[-1][1].extend(line.split())
        else:
            name, _, words = line.partition(": ")
            entries.append((name, words.split()))
    return entries


def _enums() -> dict[str, Enum]:
    enums: dict[str, Enum] = {}
    for head, names in _entries(_ENUMS):
        name, stored = head.split()
        enums[name] = Enum(stored, tuple(names), {word: i for i, word in enumerate(names)})
    return enums


def _kind(type_name: str) -> str:
    if type_name in ENUMS:
        return "enum"
    if type_name in UNIONS:
        return "union"
    if type_name == "string":
        return "string"
    return "table" if type_name[0].isupper() else "scalar"


def _default(type_name: str, text: str) -> int | float | bool:
    if type_name == "bool":
        return text == "1"
    return float(text or 0) if type_name.startswith("float") else int(text or 0)


def _fields(words: list[str]) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    slot = 0
    for word in words:
        name, _, rest = word.partition(":")
        type_name, _, default = rest.partition("=")
        inner = type_name.strip("[]")
        kind = _kind(inner)
        slot += kind == "union"
        fields[name] = Field(name, slot, kind, inner, inner != type_name, _default(inner, default))
        slot += 1
    return fields


ENUMS = _enums()
UNIONS = {name: tuple(words) for name, words in _entries(_UNIONS)}
TABLES = {name: _fields(words) for name, words in _entries(_TABLES)}
TABLES.update((name, {}) for name in _EMPTY_TABLES.split())
