"""Calls written for one sample, as they are on a batch: sizes that files hold as constants.

A batch is the samples one behind the other along the first dimension. ADAPT[kind] gives the
inputs that an op has then. What it makes of a model is not taken on trust: `lift` compares.
"""

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import torch

from litesmith.ir.types import Op
from litesmith.numeric.arrays import integers
from litesmith.training.ops.op_values import Value, numbers, options_of

Inputs = list[Value | None]
Adapt = Callable[[Op, Inputs, int], Inputs]


def _is_batched(op: Op, place: int, value: Value, count: int) -> bool:
    """True where the value's first dimension is that of one sample, times the count."""
    tensor = op.inputs[place]
    if tensor is None or not tensor.shape or not value.shape:
        return False
    return value.shape[0] == count * tensor.shape[0]


def _given(value: Value | None) -> list[int]:
    return [] if value is None else list(integers(numbers(value)))


def _sizes(sizes: Sequence[int]) -> Value:
    return np.array(sizes, np.int32)


def reshape(op: Op, inputs: Inputs, count: int) -> Inputs:
    x, shape = inputs[0], inputs[1] if len(inputs) > 1 else None
    asked = _given(shape) or list(options_of(op).integers("new_shape"))
    if x is None or not asked or asked[0] == -1:
        return inputs
    if -1 in asked:
        of_one = op.outputs[0].shape[:1] == (asked[0],) and _is_batched(op, 0, x, count)
    else:
        of_one = prod(asked) * count == prod(x.shape)
    return [x, _sizes([asked[0] * count, *asked[1:]])] if of_one else inputs


def broadcast_to(op: Op, inputs: Inputs, count: int) -> Inputs:
    x, asked = inputs[0], _given(inputs[1])
    if x is None or len(asked) != len(x.shape) or not _is_batched(op, 0, x, count):
        return inputs
    of_one = op.outputs[0].shape[:1] == (asked[0],)
    return [x, _sizes([asked[0] * count, *asked[1:]])] if of_one else inputs


def slice_(op: Op, inputs: Inputs, count: int) -> Inputs:
    """A cut that keeps the whole first dimension keeps it whole."""
    x, begin, size = inputs
    sizes, tensor = _given(size), op.inputs[0]
    if x is None or tensor is None or not _is_batched(op, 0, x, count):
        return inputs
    is_whole = _given(begin)[0] == 0 and sizes[0] == tensor.shape[0]
    return [x, begin, _sizes([-1, *sizes[1:]])] if is_whole else inputs


def strided_slice(op: Op, inputs: Inputs, count: int) -> Inputs:
    x, begin, end, strides = inputs
    options, tensor = options_of(op), op.inputs[0]
    first, last, step = (_given(value)[:1] for value in (begin, end, strides))
    other = ("end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if x is None or tensor is None or not first or not _is_batched(op, 0, x, count):
        return inputs
    if any(options.integer(mask) & 1 for mask in other):
        return inputs
    starts = first[0] == 0 or options.integer("begin_mask") & 1
    if not starts or step[0] != 1 or last[0] < tensor.shape[0]:
        return inputs
    return [x, begin, _sizes([x.shape[0], *_given(end)[1:]]), strides]


def joined(op: Op, inputs: Inputs, count: int) -> Inputs:
    """What is the same for every sample is repeated beside what is not."""
    sizes = [value.shape[0] for value in inputs if value is not None and value.shape]
    most = max(sizes, default=0)
    return [
        _repeated(value, count)
        if value is not None and value.shape and value.shape[0] * count == most
        else value
        for value in inputs
    ]


def _repeated(value: Value, count: int) -> Value:
    times = (count, *(1,) * (len(value.shape) - 1))
    return value.repeat(times) if isinstance(value, torch.Tensor) else np.tile(value, times)


ADAPT: dict[str, Adapt] = {
    "BROADCAST_TO": broadcast_to,
    "CONCATENATION": joined,
    "PACK": joined,
    "RESHAPE": reshape,
    "SELECT": joined,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
}
