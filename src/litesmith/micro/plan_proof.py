"""Runs a plan op by op in memory that is poisoned between the ops.

Each op runs alone on values read from one arena at the plan's offsets, and its results are written
there; then every byte that belongs to no live tensor is overwritten. A plan that lets go of a value
too early, or lets two values meet, does not give the model's own answer.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.micro.buffers import Buffer, inner_graphs
from litesmith.micro.greedy_plan import MemoryPlan

# Runs one op: its inputs in their order, None for those left out -> its outputs.
RunOp = Callable[[Op, Sequence[Array | None]], Sequence[Array]]


def run_poisoned(
    model: Model, plan: MemoryPlan, inputs: Sequence[Array], run_op: RunOp, *, seed: int = 0
) -> list[Array]:
    """The outputs of a model without control flow, with its memory poisoned between the ops."""
    if any(inner_graphs(op) for op in model.main.ops):
        raise ValueError("control flow has no plan of its own")
    arena = _Arena(plan, seed)
    states = {t: np.zeros(t.shape, DTYPES[t.dtype].storage) for t in model.main.tensors}
    for tensor, array in zip(model.main.inputs, inputs, strict=True):
        arena.write(tensor, array)
    arena.poison(0)
    for tick, op in enumerate(model.main.ops, 1):
        given = [None if t is None else _read(t, arena, states) for t in op.inputs]
        for tensor, array in zip(op.outputs, run_op(op, given), strict=True):
            arena.write(tensor, np.asarray(array))
        arena.poison(tick)
    return [_read(tensor, arena, states) for tensor in model.main.outputs]


def _read(tensor: Tensor, arena: "_Arena", states: Mapping[Tensor, Array]) -> Array:
    if tensor.data is not None and tensor.data.size:
        return tensor.values()
    return states[tensor] if tensor.variable else arena.read(tensor)


class _Arena:
    """Bytes, and which buffer lies where."""

    def __init__(self, plan: MemoryPlan, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._bytes = self._random.integers(0, 256, plan.bytes + 16, np.uint8)
        placed = zip(plan.buffers, plan.offsets, strict=True)
        self._at: dict[Tensor, tuple[Buffer, int]] = {
            one.tensor: (one, at) for one, at in placed if one.tensor is not None
        }

    def write(self, tensor: Tensor, array: Array) -> None:
        if tensor in self._at:
            raw = np.ascontiguousarray(array, DTYPES[tensor.dtype].storage).view(np.uint8).ravel()
            start = self._at[tensor][1]
            self._bytes[start : start + raw.size] = raw

    def read(self, tensor: Tensor) -> Array:
        dtype = np.dtype(DTYPES[tensor.dtype].storage)
        start = self._at[tensor][1] if tensor in self._at else 0
        raw = self._bytes[start : start + tensor.elements * dtype.itemsize].copy()
        return raw.view(dtype).reshape(tensor.shape)

    def poison(self, tick: int) -> None:
        """Overwrites all that no later op reads."""
        kept = np.zeros(self._bytes.size, bool)
        for tensor, (one, start) in self._at.items():
            if one.first <= tick < one.last or (tick == one.last and self._ends_with(one)):
                size = np.dtype(DTYPES[tensor.dtype].storage).itemsize * tensor.elements
                kept[start : start + size] = True
        noise = self._random.integers(0, 256, self._bytes.size, np.uint8)
        self._bytes = np.where(kept, self._bytes, noise)

    def _ends_with(self, buffer: Buffer) -> bool:
        return buffer.last == max(other.last for other, _ in self._at.values())
