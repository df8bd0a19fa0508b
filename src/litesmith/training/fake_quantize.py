"""Fake quantization of what flows between the ops, by the very forms that the file has."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Quant, Tensor
from litesmith.passes.core.schemes import data_places
from litesmith.training.weight_parameters import scaled


class Forms:
    """The scale of every quantized tensor that is computed.

    Tensors that a kernel wants in one scale share one parameter; what a kernel dictates, and
    scales of 16 bits, which are fine enough, stay.
    """

    def __init__(self, graph: Graph, device: torch.device) -> None:
        self._graph = graph
        groups = _groups(graph)
        leaders = list(dict.fromkeys(id(group) for group in groups.values()))
        self._place = {tensor: leaders.index(id(group)) for tensor, group in groups.items()}
        first = {self._place[t]: t for t in reversed(groups)}
        self._first = torch.tensor(
            [_scale(first[n]) for n in range(len(leaders))], dtype=torch.float32, device=device
        )
        fixed = {self._place[t] for t in _fixed(graph) if t in self._place}
        self._is_free = [n not in fixed for n in range(len(leaders))]
        self._free = torch.tensor(self._is_free, dtype=torch.float32, device=device)
        self._log = torch.nn.Parameter(torch.zeros_like(self._first))
        self._zeros = {
            t: torch.tensor([float(_quant(t).zero_point[0])], device=device) for t in groups
        }
        self._limits = {t: (np.iinfo(t.dtype).min, np.iinfo(t.dtype).max) for t in groups}
        self._now: tuple[torch.Tensor, ...] = ()
        self.refresh()

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self._log] if len(self._first) else []

    def refresh(self) -> None:
        """Takes the scales as they are by now; once before every run.

        Those that stay have no gradient, so that none is computed for the model's inputs."""
        now = scaled(self._first, self._log * self._free).split(1)
        pairs = zip(now, self._is_free, strict=False)  # no scales split into one piece of nothing
        self._now = tuple(scale if free else scale.detach() for scale, free in pairs)

    def scale(self, tensor: Tensor) -> torch.Tensor:
        return self._now[self._place[tensor]]

    def through(self, op: Op, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
        """What an op gives, as its tensor can hold it."""
        if tensor not in self._place or _moves(op):
            return value
        return self.held(tensor, value)

    def held(self, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
        """A value as the tensor can hold it; the value itself for a float tensor."""
        if tensor not in self._place:
            return value
        low, high = self._limits[tensor]
        return torch._fake_quantize_learnable_per_tensor_affine(  # type: ignore[attr-defined]
            value.float(), self.scale(tensor), self._zeros[tensor], low, high, 1.0
        )

    def moved(self) -> Mapping[Tensor, Tensor]:
        """Each tensor whose scale has changed, with its new one."""
        self.refresh()
        found: dict[Tensor, Tensor] = {}
        for tensor in self._place:
            quant, scale = _quant(tensor), self.scale(tensor).item()
            if scale != float(quant.scale[0]):
                found[tensor] = replace(tensor, quant=Quant.of(scale, quant.zero_point))
        return found


def _quant(tensor: Tensor) -> Quant:
    assert tensor.quant is not None
    return tensor.quant


def _scale(tensor: Tensor) -> float:
    return float(_quant(tensor).scale[0])


def _has_form(tensor: Tensor | None) -> bool:
    return tensor is not None and tensor.quant is not None and tensor.quant.scale.size == 1


def _shares_scale(op: Op) -> bool:
    return OPS[op.kind].scale == "same"


def _moves(op: Op) -> bool:
    """True where every result is a value of the data, at the same scale."""
    row = OPS[op.kind]
    return _shares_scale(op) and not (row.averages or row.interpolates)


def _data(op: Op) -> list[Tensor]:
    """The quantized data that an op reads and gives."""
    given = (op.inputs[place] for place in data_places(op))
    return [t for t in (*given, *op.outputs) if t is not None and _has_form(t)]


def _groups(graph: Graph) -> dict[Tensor, list[Tensor]]:
    """Every computed tensor with a scale, and those that share it."""
    computed = (*graph.inputs, *(t for op in graph.ops for t in op.outputs))
    groups = {t: [t] for t in computed if _has_form(t)}
    for op in graph.ops:
        if not _shares_scale(op):
            continue
        tensors = [t for t in _data(op) if t in groups]
        for tensor in tensors[:-1]:
            ours, theirs = groups[tensor], groups[tensors[-1]]
            if ours is not theirs and _scale(tensor) == _scale(tensors[-1]):
                ours += theirs
                groups |= dict.fromkeys(theirs, ours)
    return groups


def _fixed(graph: Graph) -> set[Tensor]:
    """Tensors whose scale stays: the inputs', which come as they are, and what is dictated, tied
    to a constant, or fine enough."""
    fixed: set[Tensor] = set(graph.inputs)
    for op in graph.ops:
        row = OPS[op.kind]
        if row.scale == "fixed" or (op.kind == "QUANTIZE" and op.inputs[0] in graph.inputs):
            fixed.update(op.outputs)
        if row.scale == "same" and any(t.is_const for t in _data(op)):
            fixed.update(_data(op))
        fixed.update(t for t in op.outputs if t.dtype not in ("int8", "uint8"))
    return fixed
