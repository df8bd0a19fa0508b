"""Values along an axis, as per-channel scales and biases are."""

from litesmith.ir.types import Array


def along(values: Array, rank: int, axis: int) -> Array:
    """One value a channel, shaped to broadcast: (channels,) -> (1, …, channels, …, 1)."""
    if values.size == 1:
        return values.reshape((1,) * rank)
    return values.reshape(tuple(-1 if place == axis else 1 for place in range(rank)))
