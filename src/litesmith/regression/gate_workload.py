"""A model's own work as a small text: its graph with made-up weights, to time others against.

The runtime's kernels take as long for any weights. So the graph of a baseline, timed in turns with
the model of today, tells what the baseline would take on the machine of today.
"""

import base64
import binascii
from dataclasses import replace

import numpy as np
import zstandard

from litesmith.anatomy.anonymous import anonymous
from litesmith.errors import BadInput, BadModel
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Array, Model, Tensor, memory_place
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes

# Weights repeat after so many values: they take no room then. A prime fits no tile of a kernel.
_PERIOD = 61
_LEVEL = 19
_MOST_BYTES = 8_000_000_000


def pack_workload(model: Model) -> str:
    """The graph, its constants replaced by random ones of the same range that soon repeat."""
    content = to_bytes(_repeating(anonymous(model, keep_custom_options=True)))
    squeezed = zstandard.ZstdCompressor(level=_LEVEL).compress(content)
    return base64.b64encode(squeezed).decode()


def unpack_workload(text: str) -> bytes:
    """The .tflite that was packed."""
    try:
        squeezed = base64.b64decode(text, validate=True)
        if not 0 < zstandard.frame_content_size(squeezed) < _MOST_BYTES:
            raise BadInput("the reference workload has no size")
        content = zstandard.ZstdDecompressor().decompress(squeezed)
        load(content)
    except (binascii.Error, ValueError, zstandard.ZstdError, BadModel) as error:
        raise BadInput("the reference workload is damaged ({error})", error) from None
    return content


def _repeating(model: Model) -> Model:
    made: dict[tuple[int, int], Array] = {}  # constants that share bytes share the new ones too
    tensors: dict[Tensor, Tensor] = {}
    for graph in model.graphs:
        for tensor in graph.tensors:
            if tensor.data is not None and _is_weight(tensor):
                place = memory_place(tensor.data)
                if place not in made:
                    made[place] = _tiled(tensor.data)
                content = made[place].reshape(tensor.data.shape)
                tensors[tensor] = replace(tensor, data=content)
    graphs = [rewrite(graph, tensors=tensors) for graph in model.graphs]
    return with_graphs(model, graphs, tensors)


def _is_weight(tensor: Tensor) -> bool:
    """True for many real numbers; sparse ones stay, because their pattern is what takes room."""
    is_real = DTYPES[tensor.dtype].is_float or tensor.quant is not None
    return is_real and tensor.sparsity is None and tensor.elements > _PERIOD


def _tiled(values: Array) -> Array:
    """The first of them over and over: any shape -> the same shape."""
    made = np.resize(values.reshape(-1)[:_PERIOD], values.shape)
    made.setflags(write=False)
    return made
