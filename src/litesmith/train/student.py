"""A model that is trained: its graph lifted, its weights as parameters, and back into a file."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from litesmith.errors import CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import regraph, rewrite, with_graphs
from litesmith.ir.scores import scores_of
from litesmith.ir.types import Array, Model, Op, Quant, Tensor
from litesmith.numeric.affine import keep_bias_inside
from litesmith.passes.layers import (
    Layer,
    coded_weight,
    layers_of,
    most_bias,
    real_bias,
    real_values,
    rebuilt,
)
from litesmith.passes.step import Masks
from litesmith.passes.structure import codebook_of
from litesmith.train.forms import Forms
from litesmith.train.lift import Lift, constants_of
from litesmith.train.parts import Coded, Free, Part, Rounded, rounded, unit_of

# How far from its code a float weight begins at most, in steps: at the edge of its cell it would
# change sides with the first steps, and undo what was chosen with care.
_INSIDE = 0.25


class Student:
    """The differentiable twin of a model, float or quantized.

    `origin` is the float model that a quantized one was made from: each weight begins where it was
    there, as far as it keeps its code. `masked` weights can be set to zero on the way.
    """

    def __init__(
        self,
        model: Model,
        *,
        origin: Model | None = None,
        masked: bool = False,
        device: torch.device | str = "cpu",
    ) -> None:
        self.model, self.device, self._masked = model, torch.device(device), masked
        self.wanted = [scores_of(model.main, tensor) for tensor in model.main.outputs]
        self._lift = Lift(model, self.wanted)
        self._fixed = constants_of(model, self.device)
        self.forms = Forms(model.main, self.device)
        self.layers = list(layers_of(model.main).values())
        if not self.layers:
            raise CannotApply("training: the model has no layer with weights of its own")
        self.weights = self._weights(origin)
        self.biases = self._biases()

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        parts = [*self.weights.values(), *self.biases.values()]
        return [p for part in parts for p in part.parameters()] + self.forms.parameters()

    @property
    def is_quantized(self) -> bool:
        return any(layer.weight.quant is not None for layer in self.layers)

    @property
    def masks(self) -> list[torch.Tensor]:
        """What a schedule changes."""
        free = (part for part in self.weights.values() if isinstance(part, Free))
        return [part.mask for part in free if part.mask is not None] if self._masked else []

    def __call__(self, inputs: Sequence[torch.Tensor | Array]) -> list[torch.Tensor]:
        """The scores of a batch."""
        self.forms.refresh()
        constants = {**self._fixed, **self._trained()}
        given = [
            self.forms.held(tensor, value) if isinstance(value, torch.Tensor) else value
            for tensor, value in zip(self.model.main.inputs, inputs, strict=True)
        ]
        return self._lift(given, constants, self.forms.through)

    def _trained(self) -> dict[Tensor, torch.Tensor]:
        now: dict[Tensor, torch.Tensor] = {t: part() for t, part in self.weights.items()}
        for layer in self.layers:
            if layer.bias is not None and layer.bias in self.biases:
                now[layer.bias] = self._bias(layer)
        return now

    def _bias(self, layer: Layer) -> torch.Tensor:
        """A bias as its kernel adds it: in the scale of the products."""
        assert layer.bias is not None
        value, scales = self.biases[layer.bias](), self.weights[layer.weight].scales()
        if layer.bias.quant is None or scales is None:
            return value
        step = (scales * self.forms.scale(layer.data)).detach()
        return rounded(value / step) * step

    # What is trained.

    def _weights(self, origin: Model | None) -> dict[Tensor, Part]:
        before = None if origin is None else list(layers_of(origin.main).values())
        parts: dict[Tensor, Part] = {}
        for place, layer in enumerate(self.layers):
            if layer.weight not in parts:
                other = None if before is None else before[place]
                parts[layer.weight] = self._weight(layer, other)
        return parts

    def _weight(self, layer: Layer, origin: Layer | None) -> Part:
        weight, quant = layer.weight, layer.weight.quant
        values = real_values(weight).astype(np.float32)
        of_float = values if origin is None else origin.weight.values()
        found = codebook_of(of_float, layer.axis) if _is_8_bit(weight) else None
        if found is not None and (quant is None or quant.per_channel):
            if quant is not None:
                found = found._replace(scales=quant.scale.astype(np.float64))
            return Coded(found, weight.shape, layer.axis).to(self.device)
        mask = of_float != 0 if np.any(of_float == 0) else None
        if quant is None:
            return self._free(values, layer.axis, mask)
        free = self._free(_inside(of_float, values, quant), layer.axis, mask)
        scales = torch.from_numpy(quant.scale.astype(np.float32)).to(self.device)
        return Rounded(free, scales, quant.axis, DTYPES[weight.dtype].bits)

    def _free(self, values: Array, axis: int, mask: Array | None) -> Free:
        if mask is None and self._masked:
            mask = np.ones_like(values)
        zeros = None if mask is None else self._tensor(mask.astype(np.float32))
        return Free(self._tensor(values), self._tensor(unit_of(values, axis)), zeros)

    def _biases(self) -> dict[Tensor, Free]:
        parts: dict[Tensor, Free] = {}
        for layer in self.layers:
            if layer.bias is not None and layer.bias not in parts:
                values = real_bias(layer).astype(np.float32)
                size = float(np.sqrt((values.astype(np.float64) ** 2).mean())) or 1.0
                parts[layer.bias] = Free(self._tensor(values), torch.tensor(size), None)
        return parts

    def _tensor(self, values: Array) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(values)).to(self.device)

    @torch.no_grad()
    def mask_by(self, masks: Masks, progress: float) -> None:
        """Sets weights to zero as a schedule says."""
        free = {t: part for t, part in self.weights.items() if isinstance(part, Free)}
        now = {tensor: part().cpu().numpy() for tensor, part in free.items()}
        for tensor, wanted in masks(progress, now).items():
            mask = free[tensor].mask
            assert mask is not None
            mask.copy_(self._tensor(wanted.astype(np.float32)))

    # Back into a model.

    @torch.no_grad()
    def written(self) -> Model:
        """The model with what was learned."""
        moved = self.forms.moved()
        graph = rewrite(self.model.main, tensors=moved)
        replaced: dict[Op, Op] = {}
        for ours, layer in zip(self.layers, layers_of(graph).values(), strict=True):
            replaced |= rebuilt(layer, *self._parts(ours, layer))
        graph = regraph(graph, ops=[replaced.get(op, op) for op in graph.ops])
        return with_graphs(self.model, (graph, *self.model.graphs[1:]), moved)

    def _parts(self, ours: Layer, layer: Layer) -> tuple[Tensor, Array | None]:
        """A layer's weight as a tensor, and its bias in real numbers."""
        part = self.weights[ours.weight]
        value, scales = part().cpu().numpy(), part.scales()
        bias = None if ours.bias is None else self.biases[ours.bias]().cpu().numpy()
        quant = ours.weight.quant
        if quant is None or scales is None:
            data = value.astype(np.float32)
            data.setflags(write=False)
            return replace(ours.weight, dtype="float32", data=data), bias
        steps = scales.cpu().numpy().astype(np.float64)
        if bias is not None and layer.data.dtype == "int8" and layer.data.quant is not None:
            most = most_bias(ours.weight.dtype)
            steps = keep_bias_inside(steps, bias, float(layer.data.quant.scale[0]), most)
        real = replace(ours.weight, dtype="float32", data=value.astype(np.float32), quant=None)
        return coded_weight(real, ours.weight.dtype, steps, quant.axis), bias


def _is_8_bit(weight: Tensor) -> bool:
    return weight.quant is None or weight.dtype == "int8"


def _inside(of_float: Array, of_codes: Array, quant: Quant) -> Array:
    """The float weights, moved no farther than into the cells of their codes."""
    shape = [-1 if place == quant.axis else 1 for place in range(of_codes.ndim)]
    steps = quant.scale if quant.scale.size == 1 else quant.scale.reshape(shape)
    cell = (_INSIDE * steps).astype(np.float32)
    return np.clip(of_float, of_codes - cell, of_codes + cell)
