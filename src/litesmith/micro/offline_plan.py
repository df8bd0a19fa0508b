"""Plans in a file: the metadata `OfflineMemoryAllocation`, an offset for each tensor.

Stock TensorFlow Lite Micro obeys it and checks nothing but the count of tensors: int32 words, the
version, the number of graphs, the number of tensors, and the offset of each tensor of each graph
in the file's order, -1 where the interpreter is to plan (docs/memory_management.md).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from litesmith.errors import BadModel
from litesmith.ir.edit import MEMORY_PLAN, drop_plan, plan_of
from litesmith.ir.types import Model, Tensor, frozen
from litesmith.micro.buffers import ALIGNMENT

_VERSION = 1
_ONLINE = -1
_HEADER = 3


def read_offsets(model: Model) -> dict[Tensor, int] | None:
    """The offsets that the file gives, by tensor; None where it has no plan."""
    held = plan_of(model)
    if held is None:
        return None
    tensors = [tensor for graph in model.graphs for tensor in graph.tensors]
    raw = np.asarray(held).view(np.uint8).ravel().tobytes()
    words = np.frombuffer(raw[: len(raw) // 4 * 4], np.int32)
    if len(words) < _HEADER or words[2] != len(tensors) or len(words) < _HEADER + len(tensors):
        raise BadModel(
            "metadata {name}: it is not a plan of the {count} tensors of this file; remove it",
            MEMORY_PLAN,
            len(tensors),
        )
    given = zip(tensors, words[_HEADER:].tolist(), strict=False)
    return {tensor: offset for tensor, offset in given if offset != _ONLINE}


def write_offsets(model: Model, offsets: Mapping[Tensor, int]) -> Model:
    """The model with this plan, in place of any other. The plan must be proven first."""
    tensors = [tensor for graph in model.graphs for tensor in graph.tensors]
    words = [_VERSION, len(model.graphs), len(tensors)]
    words += [offsets.get(tensor, _ONLINE) for tensor in tensors]
    if any(offset % ALIGNMENT for offset in offsets.values()):
        raise ValueError(f"offsets must be multiples of {ALIGNMENT}")
    data = frozen(np.array(words, np.int32).view(np.uint8))
    return replace(model, metadata=(*drop_plan(model).metadata, (MEMORY_PLAN, data)))
