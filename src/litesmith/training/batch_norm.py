"""Batch normalization for a network without any: there while it is trained, folded in behind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch.nn import functional

from litesmith.ir.edit import regraph, rewrite, with_graphs
from litesmith.ir.softmax_scores import scores_of
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.numeric.affine import rows_of
from litesmith.passes.core.layers import Layer, layers_of, real_bias, real_values
from litesmith.training.ops.lift import Lift, constants_of
from litesmith.training.ops.op_values import activated
from litesmith.training.weight_parameters import Free, unit_of

# What is added to a variance, so that a channel that says nothing is not blown up.
_EPSILON = 1e-3

Inputs = Sequence[torch.Tensor | Array]


class Normed:
    """A float network that is trained with its maps normalised, batch by batch.

    Every layer that makes a map gives each channel a mean and a deviation that are learned,
    whatever its weights: random ones learn fast so. A batch has two samples or more. `settled` and
    `written` put what some samples give for both into weights and biases: the same network again.
    """

    def __init__(self, model: Model, device: torch.device | str = "cpu") -> None:
        self.model, self.device = model, torch.device(device)
        self._layers = list(layers_of(model.main).values())
        self._normed = {x.op.outputs[0]: x for x in self._layers if _makes_map(x)}
        wanted = [scores_of(model.main, tensor) for tensor in model.main.outputs]
        self._plain = Lift(model, wanted)
        self._bare = Lift(_without_activations(model, self._normed), wanted)
        self._fixed = constants_of(model, self.device)
        self._weights = {layer.weight: self._weight(layer) for layer in self._layers}
        self._biases = {
            layer.bias: self._part(real_bias(layer))
            for layer in self._layers
            if layer.bias is not None and layer.op.outputs[0] not in self._normed
        }
        self._gains = {t: self._part(_gain(layer)) for t, layer in self._normed.items()}
        self._means = {t: self._part(np.zeros(x.channels)) for t, x in self._normed.items()}
        self._settled: dict[Tensor, torch.Tensor] | None = None

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        kinds = (self._weights, self._biases, self._gains, self._means)
        return [p for parts in kinds for part in parts.values() for p in part.parameters()]

    def __call__(self, inputs: Inputs) -> list[torch.Tensor]:
        """The scores of a batch: by its own means and deviations, or by those of `settled`."""
        if self._settled is not None:
            return self._plain(inputs, self._settled)
        return self._bare(inputs, self._constants(), self._normalised)

    @contextmanager
    def settled(self, inputs: Inputs) -> Iterator[None]:
        """Inside, these samples say what is normal, not each batch for itself."""
        self._settled = self._folded(inputs)
        try:
            yield
        finally:
            self._settled = None

    def written(self, inputs: Inputs) -> Model:
        """The network with what was learned; these samples say what is normal."""
        folded = self._folded(inputs)
        parts = [t for x in self._layers for t in (x.weight, x.bias) if t is not None]
        now = {tensor: _filled(tensor, folded[tensor].cpu().numpy()) for tensor in parts}
        return with_graphs(self.model, [rewrite(self.model.main, tensors=now)], now)

    def _constants(self) -> dict[Tensor, torch.Tensor]:
        trained = (*self._weights.items(), *self._biases.items())
        return {**self._fixed, **{tensor: part() for tensor, part in trained}}

    def _normalised(self, op: Op, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
        """A map after normalization by its own batch, and the activation that comes behind it."""
        del op
        if tensor not in self._normed:
            return value
        rows = value.reshape(-1, value.shape[-1])
        gain, mean = self._gains[tensor](), self._means[tensor]()
        made = functional.batch_norm(rows, None, None, gain, mean, True, eps=_EPSILON)
        return activated(self._normed[tensor].op, made.reshape(value.shape))

    @torch.no_grad()
    def _folded(self, inputs: Inputs) -> dict[Tensor, torch.Tensor]:
        """The constants of the network without normalization that does the same to any sample."""
        constants = self._constants()
        folded = dict(constants)

        def through(op: Op, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
            if tensor in self._normed:
                layer = self._normed[tensor]
                rows = value.reshape(-1, layer.channels)
                factor = self._gains[tensor]() / (rows.var(0, correction=0) + _EPSILON).sqrt()
                along = [-1 if at == layer.axis else 1 for at in range(len(layer.weight.shape))]
                folded[layer.weight] = constants[layer.weight] * factor.reshape(along)
                assert layer.bias is not None
                shift = (constants[layer.bias].reshape(-1) - rows.mean(0)) * factor
                folded[layer.bias] = self._means[tensor]() + shift
            return self._normalised(op, tensor, value)

        self._bare(inputs, constants, through)
        return folded

    def _weight(self, layer: Layer) -> Free:
        values = real_values(layer.weight)
        return self._part(values, unit_of(values, layer.axis))

    def _part(self, values: Array, unit: Array | None = None) -> Free:
        given, units = (
            torch.from_numpy(np.array(a, np.float32)).to(self.device)
            for a in (values, np.ones(()) if unit is None else unit)
        )
        return Free(given, units, None)


def _makes_map(layer: Layer) -> bool:
    return layer.bias is not None and len(layer.op.outputs[0].shape) == 4


def _without_activations(model: Model, normed: dict[Tensor, Layer]) -> Model:
    """The same graph, but layers that are normalised give what comes before their activation."""
    ops = [_without_activation(op) if op.outputs[0] in normed else op for op in model.main.ops]
    return with_graphs(model, [regraph(model.main, ops=ops)])


def _without_activation(op: Op) -> Op:
    assert op.options is not None
    return replace(op, options=op.options.set(fused_activation_function="NONE"))


def _gain(layer: Layer) -> Array:
    """The deviation that random weights were made for: less at the end of a branch that is added
    to its own input, 1 elsewhere, also where more makes up for an activation."""
    squares = (rows_of(real_values(layer.weight), layer.axis) ** 2).sum(axis=1)
    return np.full(layer.channels, min(1.0, float(np.sqrt(squares.mean()))))


def _filled(tensor: Tensor, values: Array) -> Tensor:
    data = np.ascontiguousarray(values.reshape(tensor.shape), np.float32)
    data.setflags(write=False)
    return replace(tensor, data=data)
