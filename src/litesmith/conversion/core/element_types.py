"""Element types as ONNX numbers them."""

from litesmith.errors import BadModel

# Element types by ONNX's numbers.
DTYPES = (
    "undefined",
    "float32",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "string",
    "bool",
    "float16",
    "float64",
    "uint32",
    "uint64",
    "complex64",
    "complex128",
    "bfloat16",
    "float8_e4m3fn",
    "float8e4m3fnuz",
    "float8_e5m2",
    "float8e5m2fnuz",
    "uint4",
    "int4",
    "float4e2m1",
    "float8e8m0",
    "uint2",
    "int2",
    "float6e2m3",
    "float6e3m2",
)


def dtype_name(number: int) -> str:
    """The element type of a number in the file."""
    if not 0 <= number < len(DTYPES):
        raise BadModel("element type {number} is not known", number)
    return DTYPES[number]
