"""Multiply-accumulates of one call, from the shapes of its tensors; 0 for impossible shapes."""

from math import prod

from litesmith.ir.types import Op, Tensor


def conv(op: Op) -> int:
    """CONV_2D and FULLY_CONNECTED: each output value costs one row of the weight."""
    weight = _tensor(op, 1)
    if weight is None or not op.outputs or not weight.shape or weight.shape[0] < 1:
        return 0
    return _size(op.outputs[0]) * (_size(weight) // weight.shape[0])


def depthwise_conv(op: Op) -> int:
    """Each output value costs one window of one channel."""
    weight = _tensor(op, 1)
    if weight is None or not op.outputs or len(weight.shape) != 4:
        return 0
    return _size(op.outputs[0]) * max(weight.shape[1] * weight.shape[2], 0)


def conv_3d(op: Op) -> int:
    """Weights (depth, height, width, in, out): each output value costs the weights of one output
    channel.
    """
    weight = _tensor(op, 1)
    if weight is None or not op.outputs or len(weight.shape) != 5 or weight.shape[4] < 1:
        return 0
    return _size(op.outputs[0]) * (_size(weight) // weight.shape[4])


def transpose_conv(op: Op) -> int:
    """Each input value is multiplied with every weight of its channel."""
    weight, data = _tensor(op, 1), _tensor(op, 2)
    if weight is None or data is None or len(weight.shape) < 4:
        return 0
    channels = max(data.shape[-1:], default=0)
    return _size(data) * (_size(weight) // channels) if channels > 0 else 0


def batch_matmul(op: Op) -> int:
    """The output values times the length of the summed dimension."""
    data = _tensor(op, 0)
    if data is None or not op.outputs or len(data.shape) < 2:
        return 0
    summed = data.shape[-2] if op.option("adj_x") else data.shape[-1]
    return _size(op.outputs[0]) * max(summed, 0)


def recurrent(op: Op) -> int:
    """The sizes of all matrices among the inputs, once for each row of the data."""
    data = _tensor(op, 0)
    if data is None or not data.shape or data.shape[-1] < 1:
        return 0
    rows = _size(data) // data.shape[-1]
    weights = [t for t in op.inputs[1:] if t is not None and not t.variable and len(t.shape) == 2]
    return rows * sum(map(_size, weights))


def _tensor(op: Op, place: int) -> Tensor | None:
    return op.inputs[place] if place < len(op.inputs) else None


def _size(tensor: Tensor) -> int:
    return prod(tensor.shape) if min(tensor.shape, default=1) >= 0 else 0
