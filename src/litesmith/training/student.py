"""A model in training: its graph lifted, its weights as parameters, its values rounded between ops
as the file rounds them; and the way back into a file.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# torch leaves parts of its types open.

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from litesmith.errors import CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.ops import OPS
from litesmith.ir.softmax_scores import judged_outputs, scores_of
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Tensor
from litesmith.numeric.affine import Ends, ends_of, keep_bias_inside
from litesmith.passes.core.layers import (
    Layer,
    coded_bias,
    coded_weight,
    keep_ratio,
    layers_of,
    most_bias,
    real_bias,
    real_values,
    shared_by,
)
from litesmith.passes.core.lstm import lstm_of, products_of
from litesmith.passes.core.schemes import data_places
from litesmith.passes.core.step import Masks, Skip
from litesmith.passes.core.weight_structure import Codebook, codebook_of
from litesmith.training.ops.lift import Lift, constants_of
from litesmith.training.weight_parameters import (
    Coded,
    Free,
    Rounded,
    TrainedValue,
    move_scales,
    round_straight_through,
    round_to_codes,
    unit_of,
)


class Forms:
    """The scale of every computed quantized tensor.

    Tensors that a kernel requires to have equal scales share one parameter. Scales dictated by a
    kernel stay, as do scales of 16 bits, which are fine enough.
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
        """Reads the present scales; called once before every run.

        Scales that stay have no gradient, so that none is computed for the model's inputs.
        """
        now = move_scales(self._first, self._log * self._free).split(1)
        pairs = zip(now, self._is_free, strict=False)  # no scales split into one piece of nothing
        self._now = tuple(scale if free else scale.detach() for scale, free in pairs)

    def scale(self, tensor: Tensor) -> torch.Tensor:
        return self._now[self._place[tensor]]

    def through(self, op: Op, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
        """The result of an op, rounded to what its tensor can hold."""
        if tensor not in self._place or _moves(op):
            return value
        return self.round_value(tensor, value)

    def round_value(self, tensor: Tensor, value: torch.Tensor) -> torch.Tensor:
        """A value as the tensor can hold it; the value itself for a float tensor."""
        if tensor not in self._place:
            return value
        return round_to_codes(
            value.float(), self.scale(tensor), self._zeros[tensor], self._limits[tensor]
        )

    def moved(self) -> Mapping[Tensor, Tensor]:
        """Each tensor whose scale has changed, with its new tensor."""
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
    """Tensors whose scale stays: those of inputs, and scales that are dictated, tied to a constant,
    or fine enough."""
    fixed: set[Tensor] = set(graph.inputs)
    for op in graph.ops:
        row = OPS[op.kind]
        if row.scale == "fixed" or (op.kind == "QUANTIZE" and op.inputs[0] in graph.inputs):
            fixed.update(op.outputs)
        if row.scale == "same" and any(t.is_const for t in _data(op)):
            fixed.update(_data(op))
        fixed.update(t for t in op.outputs if t.dtype not in ("int8", "uint8"))
        if lstm_of(op) is not None:  # its state has the same scale, and is no tensor that flows
            fixed.update(op.outputs)
    return fixed


# A bias moves in steps of at least this share of its channel's output for inputs of size 1.
_LEAST_BIAS = 0.01

# The largest initial distance of a float weight from its code, in steps: at the edge of its cell it
# would change sides with the first steps, and undo a careful choice.
_INSIDE = 0.25

# A clustered weight keeps this share of its codes at the least where it is stored by them.
_SAME_CODES = 0.5


class Student:
    """The differentiable twin of a model, float or quantized.

    `origin` is the float model that a quantized one was made from: each weight begins at its float
    value, as far as that keeps its code. `masked` weights can be set to zero during training.
    `sums` are returned after the scores.
    """

    def __init__(
        self,
        model: Model,
        *,
        origin: Model | None = None,
        masked: bool = False,
        device: torch.device | str = "cpu",
        sums: Sequence[Tensor] = (),
    ) -> None:
        self.model, self.device, self._masked = model, torch.device(device), masked
        self.wanted = [scores_of(model.main, t) for t in judged_outputs(model.main)]
        self._lift = Lift(model, [*self.wanted, *sums])
        self._fixed = constants_of(model, self.device)
        self.forms = Forms(model.main, self.device)
        self.layers = _trained(model.main, masked=masked)
        if not self.layers:
            raise CannotApply("training: the model has no layer with weights of its own")
        self.weights = self._weights(origin)
        self.biases = self._biases()
        for parameter in self.parameters:
            parameter.register_hook(_zero_nonfinite)

    @property
    def parameters(self) -> list[torch.nn.Parameter]:
        parts = [*self.weights.values(), *self.biases.values()]
        return [p for part in parts for p in part.parameters()] + self.forms.parameters()

    @property
    def frozen(self) -> tuple[Skip, ...]:
        """Ops that no gradient passes, and why."""
        return self._lift.frozen

    @property
    def is_quantized(self) -> bool:
        return any(layer.weight.quant is not None for layer in self.layers)

    @property
    def masks(self) -> list[torch.Tensor]:
        """The masks that a schedule of pruning changes."""
        free = (part for part in self.weights.values() if isinstance(part, Free))
        return [part.mask for part in free if part.mask is not None] if self._masked else []

    def __call__(self, inputs: Sequence[torch.Tensor | Array]) -> list[torch.Tensor]:
        """The scores of a batch."""
        self.forms.refresh()
        constants = {**self._fixed, **self._trained()}
        given = [
            self.forms.round_value(tensor, value) if isinstance(value, torch.Tensor) else value
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
        return round_straight_through(value / step) * step

    # What is trained.

    def _weights(self, origin: Model | None) -> dict[Tensor, TrainedValue]:
        before = None if origin is None else _trained(origin.main, masked=self._masked)
        parts: dict[Tensor, TrainedValue] = {}
        for place, layer in enumerate(self.layers):
            if layer.weight not in parts:
                other = None if before is None else before[place]
                parts[layer.weight] = self._weight(layer, other)
        return parts

    def _weight(self, layer: Layer, origin: Layer | None) -> TrainedValue:
        weight, quant = layer.weight, layer.weight.quant
        values = real_values(weight).astype(np.float32)
        of_float = values if origin is None else origin.weight.values()
        found = _book(weight, of_float, layer.axis)
        if found is not None:
            return Coded(found, weight.shape, layer.axis).to(self.device)
        mask = of_float != 0 if np.any(of_float == 0) else None
        if quant is None:
            return self._free(values, layer.axis, mask)
        free = self._free(_inside(of_float, values, quant), layer.axis, mask)
        scales = torch.from_numpy(quant.scale.astype(np.float32)).to(self.device)
        return Rounded(free, scales, quant.axis, _ends(weight))

    def _free(self, values: Array, axis: int, mask: Array | None) -> Free:
        if mask is None and self._masked:
            mask = np.ones_like(values)
        zeros = None if mask is None else self._tensor(mask.astype(np.float32))
        return Free(self._tensor(values), self._tensor(unit_of(values, axis)), zeros)

    def _biases(self) -> dict[Tensor, Free]:
        parts: dict[Tensor, Free] = {}
        for layer in self.layers:
            if layer.bias is not None and layer.bias not in parts:
                values = real_bias(layer)
                reach = (
                    _LEAST_BIAS * np.linalg.norm(real_values(layer.weight)) / layer.channels**0.5
                )
                size = torch.tensor(max(float(np.sqrt((values**2).mean())), float(reach)) or 1.0)
                parts[layer.bias] = Free(self._tensor(values.astype(np.float32)), size, None)
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
        """The model with the trained weights."""
        now = {**self.forms.moved(), **self._stored()}
        graph = rewrite(self.model.main, tensors=now)
        return with_graphs(self.model, (graph, *self.model.graphs[1:]), now)

    def _stored(self) -> dict[Tensor, Tensor]:
        """Every weight and bias as its kernels take it; all that share one share the new one."""
        stored: dict[Tensor, Tensor] = {}
        for weight, sharing in shared_by(self.layers).items():
            stored[weight] = self._stored_weight(weight, sharing)
        for layer in self.layers:
            if layer.bias is not None:
                stored[layer.bias] = self._stored_bias(layer, stored[layer.weight])
        return stored

    def _stored_weight(self, weight: Tensor, sharing: Sequence[Layer]) -> Tensor:
        part, quant = self.weights[weight], weight.quant
        real = _real(weight, part().cpu().numpy())
        scales = part.scales()
        if quant is None or scales is None:
            return real
        steps = scales.cpu().numpy().astype(np.float64)
        for layer in sharing:
            if layer.data.quant is not None:
                steps = self._bound_scales(steps, layer)
        return coded_weight(real, weight.dtype, steps, quant.axis, _ends(weight))

    def _bound_scales(self, steps: Array, layer: Layer) -> Array:
        """The scales of a weight, kept within what the layer's kernel accepts beside its present
        bias and output.
        """
        if layer.data.variable:  # what is added to the products has a scale of its own
            return steps
        data, output = (self.forms.scale(t).item() for t in (layer.data, layer.op.outputs[0]))
        if layer.data.dtype == "int8" and layer.bias is not None:
            most = most_bias(layer.weight.dtype)
            steps = keep_bias_inside(steps, self._real_bias(layer), data, most)
        if lstm_of(layer.op) is not None:
            return steps
        return keep_ratio(steps, layer.data.dtype, data, output)

    def _stored_bias(self, layer: Layer, weight: Tensor) -> Tensor:
        assert layer.bias is not None
        bias = self._real_bias(layer)
        if layer.bias.quant is None or weight.quant is None:
            return _real(layer.bias, bias)
        scale = self.forms.scale(layer.data).item()
        return coded_bias(layer, bias, scale, weight.quant, layer.bias.dtype)

    def _real_bias(self, layer: Layer) -> Array:
        assert layer.bias is not None
        return self.biases[layer.bias]().cpu().numpy()


def _trained(graph: Graph, *, masked: bool) -> list[Layer]:
    """The layers whose weights are trained. Steps neither prune nor cluster weights inside an LSTM,
    so an LSTM counts only where nothing is masked.
    """
    found = [*layers_of(graph).values(), *(() if masked else products_of(graph))]
    places = {op: place for place, op in enumerate(graph.ops)}
    return sorted(found, key=lambda layer: places[layer.op])


def _zero_nonfinite(gradient: torch.Tensor) -> torch.Tensor:
    """Replaces gradients that are not finite, such as those behind LOG of a value rounded to zero,
    by zeros.
    """
    return torch.nan_to_num(gradient, 0.0, 0.0, 0.0)


def _real(tensor: Tensor, values: Array) -> Tensor:
    """A constant of these numbers in place of another."""
    data = values.astype(np.float32) + np.float32(0)  # a negative zero would be packed as another
    data.setflags(write=False)
    return replace(tensor, dtype="float32", data=data, quant=None)


def _ends(weight: Tensor) -> Ends:
    return ends_of(weight.values(), DTYPES[weight.dtype].bits)


def _book(weight: Tensor, of_float: Array, axis: int) -> Codebook | None:
    """The codebook of a clustered weight as it is stored; None where it is not clustered, or where
    it was stored in other codes. Channels that were widened for their bias may be."""
    quant = weight.quant
    if quant is None:
        return codebook_of(of_float, axis) or codebook_of(of_float, None)
    codebook = codebook_of(of_float, axis if quant.per_channel else None)
    stored = weight.values().astype(np.int64)
    if codebook is None or np.mean(codebook.book[codebook.codes] == stored) < _SAME_CODES:
        return None
    book, codes = np.unique(stored, return_inverse=True)
    return Codebook(
        codes.reshape(stored.shape).astype(np.uint8), book, quant.scale.astype(np.float64)
    )


def _inside(of_float: Array, of_codes: Array, quant: Quant) -> Array:
    """The float weights, moved no farther than into the cells of their codes."""
    shape = [-1 if place == quant.axis else 1 for place in range(of_codes.ndim)]
    steps = quant.scale if quant.scale.size == 1 else quant.scale.reshape(shape)
    cell = (_INSIDE * steps).astype(np.float32)
    return np.clip(of_float, of_codes - cell, of_codes + cell)
