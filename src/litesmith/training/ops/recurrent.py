"""Torch ops of recurrent networks. Their states, kept by the runtime, are zeros at each start."""

# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch.nn import functional

from litesmith.ir.types import Op
from litesmith.passes.core.lstm import STATE
from litesmith.phrases import phrase
from litesmith.training.ops.elementwise_ops import ACTIVATIONS, TorchOp, options_of

Weight = torch.Tensor | None
# The runtime adds it to a variance before it divides (kernels/internal/tensor_utils.h).
_LEAST_VARIANCE = 1e-8
# The limit of the sums in the gates of an integer LSTM: int16 with 12 fractional bits.
_MOST_SUM = 8.0


class _Gate(NamedTuple):
    """One gate's weights: of the input, of the last output, of the cell; bias and layer norm."""

    weight: torch.Tensor
    recurrent: torch.Tensor
    peephole: Weight
    bias: torch.Tensor
    norm: Weight

    def preactivation(self, x: torch.Tensor, cell: torch.Tensor | None) -> torch.Tensor:
        """The value before the gate's activation, from the sum of both products."""
        if self.peephole is not None and cell is not None:
            x = x + self.peephole * cell
        if self.norm is None:
            return x + self.bias
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        return (x - mean) * (variance + _LEAST_VARIANCE).rsqrt() * self.norm + self.bias


class _Cell(NamedTuple):
    """The weights of an LSTM; without an input gate, that gate is one minus the forget gate."""

    input: _Gate | None
    forget: _Gate
    update: _Gate
    output: _Gate
    projection: Weight
    projection_bias: Weight


def _cell(weights: Sequence[Weight], norms: Sequence[Weight]) -> _Cell:
    """From the 17 inputs that follow the data, in the file's order."""
    peepholes = (weights[8], weights[9], None, weights[10])
    gates = [
        None if weights[place] is None else _gate(weights, place, peepholes[place], norms[place])
        for place in range(4)
    ]
    first, forget, update, output = gates
    if forget is None or update is None or output is None:
        raise ValueError(phrase("an LSTM without one of its gates"))
    return _Cell(first, forget, update, output, weights[15], weights[16])


def _gate(weights: Sequence[Weight], place: int, peephole: Weight, norm: Weight) -> _Gate:
    weight, recurrent, bias = weights[place], weights[4 + place], weights[11 + place]
    if weight is None or recurrent is None or bias is None:
        raise ValueError(phrase("an LSTM gate without its weights"))
    return _Gate(weight, recurrent, peephole, bias, norm)


def _clip(x: torch.Tensor, limit: float) -> torch.Tensor:
    return x.clamp(-limit, limit) if limit > 0 else x


def _lstm_steps(op: Op, cell: _Cell, x: torch.Tensor) -> torch.Tensor:
    """(time, batch, inputs) -> (time, batch, outputs)."""
    options = options_of(op)
    activate = ACTIVATIONS[options.word("fused_activation_function")] or (lambda value: value)
    clip, projection_clip = options.number("cell_clip"), options.number("proj_clip")
    gates = [gate for gate in (cell.input, cell.forget, cell.update, cell.output) if gate]
    held = _state_rounding(op)
    inner = functional.linear(x, torch.cat([gate.weight for gate in gates]))
    recurrent = torch.cat([gate.recurrent for gate in gates])
    units = cell.forget.weight.shape[0]
    state = x.new_zeros(x.shape[1], units)
    result = x.new_zeros(x.shape[1], recurrent.shape[1])
    results: list[torch.Tensor] = []
    for step in inner.unbind(0):
        sums = list(held.sums(step + functional.linear(result, recurrent)).split(units, -1))
        last, update, forget = sums.pop(), sums.pop(), sums.pop()
        kept = torch.sigmoid(cell.forget.preactivation(forget, state))
        new = 1 - kept
        if cell.input is not None:
            new = torch.sigmoid(cell.input.preactivation(sums.pop(), state))
        state = _clip(kept * state + new * activate(cell.update.preactivation(update, None)), clip)
        result = torch.sigmoid(cell.output.preactivation(last, state)) * activate(state)
        if cell.projection is not None:
            result = functional.linear(result, cell.projection, cell.projection_bias)
            result = _clip(result, projection_clip)
        result = held.output(result)
        results.append(result)
    return torch.stack(results)


class _StateRounding(NamedTuple):
    """How an integer LSTM rounds its state: the step of its output, which is int8; None where it is
    float. The steps of its sums and of its cell are too fine to matter.
    """

    step: float | None

    def sums(self, value: torch.Tensor) -> torch.Tensor:
        return value if self.step is None else value.clamp(-_MOST_SUM, _MOST_SUM)

    def output(self, value: torch.Tensor) -> torch.Tensor:
        """The output rounded to its step; the gradient passes unrounded."""
        if self.step is None:
            return value
        codes = (value / self.step).clamp(-128, 127)
        return (codes + (codes.round() - codes).detach()) * self.step


def _state_rounding(op: Op) -> _StateRounding:
    state = op.inputs[STATE] if len(op.inputs) > STATE else None
    quant = None if state is None or not state.variable else state.quant
    return _StateRounding(None if quant is None else float(quant.scale[0]))


def _norms(inputs: Sequence[Weight]) -> list[Weight]:
    return [*inputs, *[None] * (4 - len(inputs))]


def lstm(op: Op, x: torch.Tensor, *inputs: Weight) -> torch.Tensor:
    """One step."""
    if len(op.inputs) < 20:
        raise ValueError(phrase("the basic LSTM kernel"))
    return _lstm_steps(op, _cell(inputs[:17], _norms(inputs[19:])), x[None])[0]


def _swap_time(op: Op, x: torch.Tensor) -> torch.Tensor:
    """Swaps time and batch, so that time comes first; applied again, it swaps them back."""
    return x if options_of(op)["time_major"] else x.transpose(0, 1)


def sequence_lstm(op: Op, x: torch.Tensor, *inputs: Weight) -> torch.Tensor:
    cell = _cell(inputs[:17], _norms(inputs[19:]))
    return _swap_time(op, _lstm_steps(op, cell, _swap_time(op, x)))


def bidirectional_lstm(
    op: Op, x: torch.Tensor, *inputs: Weight
) -> torch.Tensor | list[torch.Tensor]:
    _refuse_auxiliary(inputs[38:])
    steps = _swap_time(op, x)
    none = _norms(())
    forward = _lstm_steps(op, _cell(inputs[:17], none), steps)
    backward = _lstm_steps(op, _cell(inputs[17:34], none), steps.flip(0)).flip(0)
    return _both(op, forward, backward)


def _refuse_auxiliary(inputs: Sequence[Weight]) -> None:
    if any(value is not None for value in inputs):
        raise ValueError(phrase("an auxiliary input"))


def _both(
    op: Op, forward: torch.Tensor, backward: torch.Tensor
) -> torch.Tensor | list[torch.Tensor]:
    both = [_swap_time(op, forward), _swap_time(op, backward)]
    return torch.cat(both, -1) if options_of(op)["merge_outputs"] else both


def _rnn_steps(op: Op, weights: Sequence[torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """(time, batch, inputs) -> (time, batch, outputs)."""
    weight, recurrent, bias = weights
    activate = ACTIVATIONS[options_of(op).word("fused_activation_function")]
    result = x.new_zeros(x.shape[1], weight.shape[0])
    results: list[torch.Tensor] = []
    for step in functional.linear(x, weight, bias).unbind(0):
        result = step + functional.linear(result, recurrent)
        result = result if activate is None else activate(result)
        results.append(result)
    return torch.stack(results)


def rnn(op: Op, x: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
    """One step."""
    return _rnn_steps(op, inputs[:3], x[None])[0]


def sequence_rnn(op: Op, x: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
    return _swap_time(op, _rnn_steps(op, inputs[:3], _swap_time(op, x)))


def bidirectional_rnn(
    op: Op, x: torch.Tensor, *inputs: torch.Tensor
) -> torch.Tensor | list[torch.Tensor]:
    _refuse_auxiliary(inputs[8:])
    steps = _swap_time(op, x)
    forward = _rnn_steps(op, inputs[:3], steps)
    backward = _rnn_steps(op, inputs[4:7], steps.flip(0)).flip(0)
    return _both(op, forward, backward)


RECURRENT: dict[str, TorchOp] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": bidirectional_lstm,
    "BIDIRECTIONAL_SEQUENCE_RNN": bidirectional_rnn,
    "LSTM": lstm,
    "RNN": rnn,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": sequence_lstm,
    "UNIDIRECTIONAL_SEQUENCE_RNN": sequence_rnn,
}
