"""The functions of this room as machine code: by name, compiled when first asked for."""

import ctypes
from collections.abc import Callable
from functools import cache

from litesmith.native.compile import Function, address_of

Run = Callable[[int, int, int, int, int], None]

_LAYERS, _SPARSE = "kernels.loops.loops_layers", "kernels.loops.loops_sparse"
_PROGRAM, _VALUES = "kernels.loops.program_loop", "kernels.loops.loops_values"

FUNCTIONS = {
    "average": Function(_VALUES, "average_unit", 4),
    "copy": Function(_VALUES, "copy_unit", 4),
    "depthwise": Function(_LAYERS, "depthwise_unit", 4),
    "dequantize": Function(_VALUES, "dequantize_unit", 4),
    "largest": Function(_VALUES, "largest_unit", 4),
    "many_rows": Function(_LAYERS, "many_rows", 7),
    "mean": Function(_VALUES, "mean_unit", 4),
    "one_row": Function(_LAYERS, "one_row", 7),
    "pad": Function(_VALUES, "pad_unit", 4),
    "part": Function(_PROGRAM, "run_part", 2, tells=True),
    "product": Function(_LAYERS, "product_unit", 4),
    "quantize": Function(_VALUES, "quantize_unit", 4),
    "repeat": Function(_VALUES, "repeat_unit", 4),
    "run": Function(_PROGRAM, "run_program", 5),
    "softmax": Function(_VALUES, "softmax_unit", 4),
    "sparse": Function(_SPARSE, "sparse_unit", 4),
    "sparse_int8": Function(_SPARSE, "sparse_int8_unit", 4),
    "sparse_int8_row": Function(_SPARSE, "sparse_int8_row_unit", 4),
    "sparse_row": Function(_SPARSE, "sparse_row_unit", 4),
    "table": Function(_VALUES, "table_unit", 4),
    "two": Function(_VALUES, "two_unit", 4),
}


def kernel_address(name: str) -> int:
    """The address of a kernel. The first call in a process loads or compiles it."""
    return address_of(FUNCTIONS[name])


@cache
def run_native() -> Run:
    """(code, ops, buffers, scratch, counters): see `run_program`; without the interpreter."""
    return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 5)(kernel_address("run"))
