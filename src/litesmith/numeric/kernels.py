"""The kernel table: what each op computes, on plain arrays.

KERNELS[kind](options, *arrays) returns one array or a tuple of arrays, and raises ValueError for
whatever it does not do exactly as the runtime. Ops that depend on more than arrays and options are
left out: on scales, element types of outputs, states, other graphs, chance.
"""

from collections.abc import Sequence

import numpy as np

from litesmith.errors import BadModel
from litesmith.ir.dtype import DTYPES
from litesmith.ir.ops import OPS, infer_shapes, options_or_defaults
from litesmith.ir.types import Array, Op, Record, Tensor
from litesmith.numeric import convolve, picking, reduce, resize, shaping
from litesmith.numeric import elementwise as each
from litesmith.numeric.arrays import NUMBERS, Kernel, refuse_excess
from litesmith.numeric.elementwise import binary, clamped, unary
from litesmith.numeric.picking import unsorted_segment
from litesmith.numeric.reduce import reducer
from litesmith.phrases import phrase

_COMPARED = phrase("bool {numbers}", NUMBERS)
_ORDERED = f"{NUMBERS} int16 int8 uint8"
_BITS = "int16 int32 int8 uint16 uint32 uint8"

KERNELS: dict[str, Kernel] = {
    "ABS": unary(np.abs, "float32 int32"),
    "ADD": binary(np.add, NUMBERS),
    "ADD_N": each.add_n,
    "ARG_MAX": reduce.first_place(np.argmax),
    "ARG_MIN": reduce.first_place(np.argmin),
    "ATAN2": binary(np.arctan2, "float32"),
    "AVERAGE_POOL_2D": convolve.average_pool,
    "BATCH_MATMUL": convolve.batch_matmul,
    "BATCH_TO_SPACE_ND": shaping.batch_to_space,
    "BITWISE_XOR": binary(np.bitwise_xor, _BITS),
    "BROADCAST_ARGS": shaping.broadcast_args,
    "BROADCAST_TO": shaping.broadcast_to,
    "BUCKETIZE": each.bucketize,
    "CAST": each.cast,
    "CEIL": unary(np.ceil),
    "COMPLEX_ABS": unary(np.abs, "complex64", "float32"),
    "CONCATENATION": shaping.concatenation,
    "CONV_2D": convolve.conv_2d,
    "CONV_3D": convolve.conv_3d,
    "CONV_3D_TRANSPOSE": convolve.conv_3d_transpose,
    "COS": unary(np.cos),
    "CUMSUM": reduce.cumulative_sum,
    "DEPTHWISE_CONV_2D": convolve.depthwise_conv_2d,
    "DEPTH_TO_SPACE": shaping.depth_to_space,
    "DEQUANTIZE": each.dequantize,
    "DIV": binary(each.divide, "float32 int32"),
    "DYNAMIC_UPDATE_SLICE": picking.dynamic_update_slice,
    "ELU": unary(lambda x: np.where(x < 0, np.expm1(x), x)),
    "EMBEDDING_LOOKUP": picking.embedding_lookup,
    "EQUAL": binary(np.equal, _COMPARED, "bool"),
    "EXP": unary(np.exp),
    "EXPAND_DIMS": shaping.expand_dims,
    "FAKE_QUANT": each.fake_quant,
    "FILL": shaping.fill,
    "FLOOR": unary(np.floor),
    "FLOOR_DIV": binary(each.floor_divide, "float32 int32"),
    "FLOOR_MOD": binary(each.floor_modulo, NUMBERS),
    "FULLY_CONNECTED": convolve.fully_connected,
    "GATHER": picking.gather,
    "GATHER_ND": picking.gather_nd,
    "GELU": each.gelu,
    "GREATER": binary(np.greater, NUMBERS, "bool"),
    "GREATER_EQUAL": binary(np.greater_equal, NUMBERS, "bool"),
    "HARD_SWISH": unary(each.hard_swish),
    "IMAG": unary(np.imag, "complex64", "float32"),
    "L2_NORMALIZATION": reduce.l2_normalize,
    "L2_POOL_2D": convolve.l2_pool,
    "LEAKY_RELU": each.leaky_relu,
    "LESS": binary(np.less, NUMBERS, "bool"),
    "LESS_EQUAL": binary(np.less_equal, NUMBERS, "bool"),
    "LOCAL_RESPONSE_NORMALIZATION": reduce.local_response,
    "LOG": unary(np.log),
    "LOGICAL_AND": binary(np.logical_and, "bool"),
    "LOGICAL_NOT": unary(np.logical_not, "bool"),
    "LOGICAL_OR": binary(np.logical_or, "bool"),
    "LOGISTIC": unary(lambda x: 1 / (1 + np.exp(-x))),
    "LOG_SOFTMAX": reduce.log_softmax,
    "MATRIX_DIAG": picking.matrix_diag,
    "MATRIX_SET_DIAG": picking.matrix_set_diag,
    "MAXIMUM": binary(each.maximum, _ORDERED),
    "MAX_POOL_2D": convolve.max_pool,
    "MEAN": reducer(reduce.mean, NUMBERS),
    "MINIMUM": binary(each.minimum, _ORDERED),
    "MIRROR_PAD": shaping.mirror_pad,
    "MUL": binary(np.multiply, NUMBERS),
    "NEG": unary(np.negative, NUMBERS),
    "NOT_EQUAL": binary(np.not_equal, _COMPARED, "bool"),
    "ONE_HOT": picking.one_hot,
    "PACK": shaping.pack,
    "PAD": shaping.pad,
    "PADV2": shaping.pad_v2,
    "POW": binary(each.power, "float32 int32"),
    "PRELU": each.prelu,
    "RANGE": shaping.range_,
    "RANK": shaping.rank_of,
    "REAL": unary(np.real, "complex64", "float32"),
    "REDUCE_ALL": reducer(reduce.every, "bool"),
    "REDUCE_ANY": reducer(reduce.some, "bool"),
    "REDUCE_MAX": reducer(reduce.largest, _ORDERED),
    "REDUCE_MIN": reducer(reduce.smallest, _ORDERED),
    "REDUCE_PROD": reducer(reduce.product, NUMBERS),
    "RELU": unary(clamped(0, np.inf)),
    "RELU6": unary(clamped(0, 6)),
    "RELU_0_TO_1": unary(clamped(0, 1)),
    "RELU_N1_TO_1": unary(clamped(-1, 1)),
    "RESHAPE": shaping.reshape,
    "RESIZE_BILINEAR": resize.bilinear,
    "RESIZE_NEAREST_NEIGHBOR": resize.nearest,
    "REVERSE_SEQUENCE": shaping.reverse_sequence,
    "REVERSE_V2": shaping.reverse,
    "RFFT2D": reduce.rfft_2d,
    "RIGHT_SHIFT": binary(each.shift_right, _BITS),
    "ROUND": unary(np.rint),
    "RSQRT": unary(lambda x: 1 / np.sqrt(x)),
    "SCATTER_ND": picking.scatter_nd,
    "SEGMENT_SUM": picking.segment_sum,
    "SELECT": each.select,
    "SELECT_V2": each.select_v2,
    "SHAPE": shaping.shape_of,
    "SIGN": unary(np.sign, "float32 int32"),
    "SIN": unary(np.sin),
    "SLICE": shaping.slice_,
    "SOFTMAX": reduce.softmax,
    "SPACE_TO_BATCH_ND": shaping.space_to_batch,
    "SPACE_TO_DEPTH": shaping.space_to_depth,
    "SPARSE_TO_DENSE": picking.sparse_to_dense,
    "SPLIT": shaping.split,
    "SPLIT_V": shaping.split_v,
    "SQRT": unary(np.sqrt),
    "SQUARE": unary(np.square),
    "SQUARED_DIFFERENCE": binary(lambda x, y: np.square(x - y), "float32 int32"),
    "SQUEEZE": shaping.squeeze,
    "STRIDED_SLICE": shaping.strided_slice,
    "SUB": binary(np.subtract, NUMBERS),
    "SUM": reducer(reduce.total, NUMBERS),
    "TANH": unary(np.tanh),
    "TILE": shaping.tile,
    "TOPK_V2": reduce.top_k,
    "TRANSPOSE": shaping.transpose,
    "TRANSPOSE_CONV": convolve.transpose_conv,
    "UNIQUE": picking.unique,
    "UNPACK": shaping.unpack,
    "UNSORTED_SEGMENT_MAX": unsorted_segment(np.maximum.at, "lowest"),
    "UNSORTED_SEGMENT_MIN": unsorted_segment(np.minimum.at, "highest"),
    "UNSORTED_SEGMENT_PROD": unsorted_segment(np.multiply.at, "one"),
    "UNSORTED_SEGMENT_SUM": unsorted_segment(np.add.at, "zero"),
    "WHERE": picking.where,
    "ZEROS_LIKE": shaping.zeros_like,
}


def evaluate(op: Op, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    """The outputs of an op for these arrays, in the types of its output tensors.

    Raises ValueError for whatever the kernel cannot do, impossible shapes and oversized results
    included.
    """
    if op.kind not in KERNELS:
        raise ValueError(phrase("{kind} has no kernel", op.kind))
    for tensor in (*op.inputs, *op.outputs):
        _refuse_encoded(tensor)
    options = options_or_defaults(op.kind, op.options)
    if op.kind == "CAST" and op.outputs:
        # The runtime obeys the tensor's type and ignores the option, which many files do not set.
        options = options.set(out_data_type=op.outputs[0].dtype.upper())
    _refuse_senseless(op.kind, options, arrays)
    return _check_types(op, _call(op.kind, options, arrays))


def _refuse_encoded(tensor: Tensor | None) -> None:
    """Refuses arrays whose stored numbers stand for other numbers."""
    if tensor is not None and DTYPES[tensor.dtype].storage != tensor.dtype:
        raise ValueError(
            phrase("tensor {name!r}: {dtype} has no plain array", tensor.name, tensor.dtype)
        )


def _refuse_senseless(kind: str, options: Record, arrays: Sequence[Array | None]) -> None:
    """Refuses impossible shapes: with every value known, a shape rule has no other reason to give
    no result.
    """
    roles = OPS[kind].inputs.split()
    needed = sum(role[-1] not in "?*" for role in roles)
    missing = [
        array is None and role[-1] != "?"
        for role, array in zip(roles + roles[-1:] * len(arrays), arrays, strict=False)
    ]
    if len(arrays) < needed or any(missing):
        raise ValueError(
            phrase("{kind} needs {needed} inputs, none of them left out", kind, needed)
        )
    known = [None if a is None else Tensor("", a.shape, str(a.dtype), a) for a in arrays]
    shapes = infer_shapes(kind, known, options)
    if shapes is None and OPS[kind].shape is not None:
        raise ValueError(
            phrase("{kind} is not defined for shapes {shape}", kind, [t.shape for t in known if t])
        )
    for shape in shapes or ():
        refuse_excess(shape)


def _call(kind: str, options: Record, arrays: Sequence[Array | None]) -> tuple[Array, ...]:
    try:
        with np.errstate(all="ignore"):
            result = KERNELS[kind](options, *arrays)
    except (ArithmeticError, BadModel, LookupError, TypeError) as error:
        raise ValueError(f"{kind}: {error}") from error
    return result if isinstance(result, tuple) else (result,)


def _check_types(op: Op, results: tuple[Array, ...]) -> tuple[Array, ...]:
    wanted = [tensor.dtype for tensor in op.outputs]
    if [str(result.dtype) for result in results] != wanted:
        raise ValueError(
            phrase(
                "{kind} gives {dtype}, not {wanted}",
                op.kind,
                [str(r.dtype) for r in results],
                wanted,
            )
        )
    return tuple(np.ascontiguousarray(result).reshape(result.shape) for result in results)
