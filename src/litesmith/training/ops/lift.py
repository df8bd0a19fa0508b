"""A graph as differentiable torch code, on any number of samples at once.

Values are torch tensors where they stand for real numbers, quantized ones included, and numpy
arrays where they do not, so that shapes are computed without a gradient.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

import numpy as np
import torch

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import called_graphs, needed_ops
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Op, Tensor
from litesmith.numeric.arrays import integers
from litesmith.numeric.kernels import KERNELS, evaluate
from litesmith.passes.core.layers import real_values
from litesmith.passes.core.step import Skip
from litesmith.passes.shrinking.sparsify import with_zeros
from litesmith.phrases import phrase
from litesmith.training.ops.elementwise_ops import EACH, TorchOp, Value, numbers, options_of
from litesmith.training.ops.layer_ops import LAYERS
from litesmith.training.ops.recurrent import RECURRENT
from litesmith.training.ops.shape_ops import SHAPE

Inputs = list[Value | None]
Adapt = Callable[[Op, Inputs, int], Inputs]


def _is_batched(op: Op, place: int, value: Value, count: int) -> bool:
    """True where the value's first dimension is that of one sample times the count."""
    tensor = op.inputs[place]
    if tensor is None or not tensor.shape or not value.shape:
        return False
    return value.shape[0] == count * tensor.shape[0]


def _as_integers(value: Value | None) -> list[int]:
    return [] if value is None else list(integers(numbers(value)))


def _sizes(sizes: Sequence[int]) -> Value:
    return np.array(sizes, np.int32)


def reshape(op: Op, inputs: Inputs, count: int) -> Inputs:
    x, shape = inputs[0], inputs[1] if len(inputs) > 1 else None
    asked = _as_integers(shape) or list(options_of(op).integers("new_shape"))
    if x is None or not asked or asked[0] == -1:
        return inputs
    if -1 in asked:
        of_one = op.outputs[0].shape[:1] == (asked[0],) and _is_batched(op, 0, x, count)
    else:
        of_one = prod(asked) * count == prod(x.shape)
    return [x, _sizes([asked[0] * count, *asked[1:]])] if of_one else inputs


def broadcast_to(op: Op, inputs: Inputs, count: int) -> Inputs:
    x, asked = inputs[0], _as_integers(inputs[1])
    if x is None or len(asked) != len(x.shape) or not _is_batched(op, 0, x, count):
        return inputs
    of_one = op.outputs[0].shape[:1] == (asked[0],)
    return [x, _sizes([asked[0] * count, *asked[1:]])] if of_one else inputs


def slice_(op: Op, inputs: Inputs, count: int) -> Inputs:
    """A cut that keeps the whole first dimension keeps it whole."""
    x, begin, size = inputs
    sizes, tensor = _as_integers(size), op.inputs[0]
    if x is None or tensor is None or not _is_batched(op, 0, x, count):
        return inputs
    is_whole = _as_integers(begin)[0] == 0 and sizes[0] == tensor.shape[0]
    return [x, begin, _sizes([-1, *sizes[1:]])] if is_whole else inputs


def strided_slice(op: Op, inputs: Inputs, count: int) -> Inputs:
    x, begin, end, strides = inputs
    options, tensor = options_of(op), op.inputs[0]
    first, last, step = (_as_integers(value)[:1] for value in (begin, end, strides))
    other = ("end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    if x is None or tensor is None or not first or not _is_batched(op, 0, x, count):
        return inputs
    if any(options.integer(mask) & 1 for mask in other):
        return inputs
    starts = first[0] == 0 or options.integer("begin_mask") & 1
    if not starts or step[0] != 1 or last[0] < tensor.shape[0]:
        return inputs
    return [x, begin, _sizes([x.shape[0], *_as_integers(end)[1:]]), strides]


def repeat_shared(op: Op, inputs: Inputs, count: int) -> Inputs:
    """Repeats inputs that all samples share, so that they can be joined with inputs of which every
    sample has its own.
    """
    sizes = [value.shape[0] for value in inputs if value is not None and value.shape]
    most = max(sizes, default=0)
    return [
        _repeat(value, count)
        if value is not None and value.shape and value.shape[0] * count == most
        else value
        for value in inputs
    ]


def _repeat(value: Value, count: int) -> Value:
    times = (count, *(1,) * (len(value.shape) - 1))
    return value.repeat(times) if isinstance(value, torch.Tensor) else np.tile(value, times)


def widen_inputs(op: Op, inputs: Inputs, count: int) -> Inputs:
    """Adds the missing dimensions to inputs of lower rank, behind the samples' dimension."""
    rank = len(op.outputs[0].shape)
    return [
        _widen(value, rank, count)
        if value is not None and len(value.shape) < rank and _is_batched(op, place, value, count)
        else value
        for place, value in enumerate(inputs)
    ]


def _widen(value: Value, rank: int, count: int) -> Value:
    lacking = rank - len(value.shape)
    first, *rest = value.shape
    return value.reshape((count, *(1,) * (lacking - 1), first // count, *rest))


def keep_samples(op: Op, inputs: Inputs, count: int) -> Inputs:
    """Keeps the samples apart where an op removes a first dimension of size 1: the samples then lie
    along the next dimension.
    """
    x, axes = inputs[0], inputs[1]
    tensor = op.inputs[0]
    if x is None or axes is None or tensor is None or len(tensor.shape) < 2:
        return inputs
    goes = {axis % len(tensor.shape) for axis in _as_integers(axes)}
    if tensor.shape[0] != 1 or 0 not in goes or 1 in goes or not _is_batched(op, 0, x, count):
        return inputs
    return [x.reshape((1, count * x.shape[1], *x.shape[2:])), axes]


_WIDE = ("ADD", "DIV", "MAXIMUM", "MINIMUM", "MUL", "POW", "SQUARED_DIFFERENCE", "SUB")
_REDUCED = ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "SUM")

# How ops made for one sample adapt to a batch. `Lift` compares each with single runs before it
# trusts the batch.
ADAPT: dict[str, Adapt] = {
    **dict.fromkeys(_WIDE, widen_inputs),
    **dict.fromkeys(_REDUCED, keep_samples),
    "BROADCAST_TO": broadcast_to,
    "CONCATENATION": repeat_shared,
    "PACK": repeat_shared,
    "RESHAPE": reshape,
    "SELECT": repeat_shared,
    "SLICE": slice_,
    "STRIDED_SLICE": strided_slice,
}


TORCH_OPS: dict[str, TorchOp] = {**EACH, **LAYERS, **RECURRENT, **SHAPE}


# A function applied to each real result of an op, for example to round it to its scale.
Through = Callable[[Op, Tensor, torch.Tensor], torch.Tensor]

_FLOATS = ("float16", "float32", "float64")
# The tolerance between a batch and single runs, which add in different orders; a share of the
# largest value.
_CLOSE = 1e-4
_MOST_NAMED = 3


def is_real(tensor: Tensor) -> bool:
    """True where the tensor stands for real numbers: floats, and integers with a scale."""
    return tensor.dtype in _FLOATS or tensor.quant is not None


class _Call(NamedTuple):
    """One op, resolved: the function that runs it, also on a batch; the tensors that no later op
    reads; and which of its outputs are real."""

    op: Op
    run: TorchOp
    adapt: Adapt | None
    done: tuple[Tensor, ...]
    is_real: tuple[bool, ...]


class Lift:
    """A graph as differentiable torch code, for any number of samples at once.

    Samples follow each other along the first axis. Files are made for one sample, and some of their
    ops mix values along that axis; these ops run sample by sample within the batch.

    frozen  ops that run by their numpy kernels as functions without a gradient, and why
    apart   ops that run sample by sample; None until a call has had several different samples
    """

    def __init__(self, model: Model, wanted: Sequence[Tensor] | None = None) -> None:
        graph = model.main
        self._inputs = graph.inputs
        self._wanted = tuple(graph.outputs if wanted is None else wanted)
        ops = needed_ops(graph.ops, self._wanted, lambda op: False)
        _refuse_unliftable(ops, self._wanted)
        self._calls = _resolve(ops, self._wanted)
        self._constants = tuple(_constants(ops, self._wanted))
        self._settings = {t: t.values() for t in self._constants if not is_real(t)}
        self._varying = _varying(graph, ops)
        self._sizes = frozenset(t for op in ops for t in op.outputs if t not in self._varying)
        why = phrase("it has no differentiable form, so nothing is learned through it")
        frozen = [op for op in ops if _takes_reals(op) and op.kind not in TORCH_OPS]
        self.frozen = tuple(Skip(op_name(op), why) for op in frozen)
        self.apart: frozenset[Op] | None = None

    def __call__(
        self,
        inputs: Sequence[Value],
        constants: Mapping[Tensor, torch.Tensor],
        through: Through | None = None,
    ) -> list[torch.Tensor]:
        """The wanted tensors for samples that stand one behind the other along axis 0.

        `constants` holds all that `constants_of` gives, and decides the device and the precision.
        """
        values = self._values(inputs, constants)
        count = self._count(values)
        values = [_for_each(v, t, count) for v, t in zip(values, self._inputs, strict=True)]
        if count > 1 and self.apart is None:
            self.apart = self._judge(values, constants, count)
        if count == 1 or self._is_one_batch:
            return self._run(values, constants, through, count)
        alone = [
            self._run(self._sample(values, place, count), constants, through, 1)
            for place in range(count)
        ]
        return [_concatenate(parts) for parts in zip(*alone, strict=True)]

    @property
    def _is_one_batch(self) -> bool:
        """False where it is not known how samples run together, or where sizes that are computed
        from the batch's own would reach an op that sees single samples."""
        return self.apart is not None and self._sizes.isdisjoint(
            t for op in self.apart for t in (*op.inputs, *op.outputs) if t is not None
        )

    def _values(
        self, inputs: Sequence[Value], constants: Mapping[Tensor, torch.Tensor]
    ) -> list[Value]:
        if len(inputs) != len(self._inputs):
            raise BadInput(
                "{count} inputs for a model that takes {count2}", len(inputs), len(self._inputs)
            )
        given = (v for v in (*constants.values(), *inputs) if isinstance(v, torch.Tensor))
        like = next((v for v in given if v.is_floating_point()), torch.empty(0))
        return [
            torch.as_tensor(value, dtype=like.dtype, device=like.device)
            if is_real(tensor)
            else np.asarray(numbers(value), tensor.dtype)
            for tensor, value in zip(self._inputs, inputs, strict=True)
        ]

    def _count(self, values: Sequence[Value]) -> int:
        """The number of samples; an input of rank 0 has one number for each, or one for all."""
        counts = {
            value.shape[0] / max(tensor.shape[0] if tensor.shape else 1, 1)
            for tensor, value in zip(self._inputs, values, strict=True)
            if len(value.shape)
        }
        if len(counts) > 1 or not all(count.is_integer() for count in counts):
            shapes = ", ".join(str(tuple(value.shape)) for value in values)
            own = ", ".join(str(tensor.shape) for tensor in self._inputs)
            raise BadInput(
                "inputs of shapes {shapes} are no whole number of samples of {own}", shapes, own
            )
        return int(counts.pop()) if counts else 1

    def _sample(self, values: Sequence[Value], place: int, count: int) -> list[Value]:
        return [
            _part(value, place, count, len(tensor.shape))
            for tensor, value in zip(self._inputs, values, strict=True)
        ]

    def _judge(
        self, values: Sequence[Value], constants: Mapping[Tensor, torch.Tensor], count: int
    ) -> frozenset[Op] | None:
        """The ops whose result for a batch differs from their results one by one; None where all
        samples are equal."""
        samples = [self._sample(values, at, count) for at in sorted({0, count // 2, count - 1})]
        if all(_same(sample, samples[0]) for sample in samples):
            return None
        with torch.no_grad():
            alone = [self._initial_values(sample, constants) for sample in samples]
            batch = self._initial_values(
                [_stack_values(parts) for parts in zip(*samples, strict=True)], constants
            )
            return frozenset(c.op for c in self._calls if not self._agrees(c, alone, batch))

    def _agrees(
        self, call: _Call, alone: Sequence[dict[Tensor, Value]], batch: dict[Tensor, Value]
    ) -> bool:
        """Whether an op gives the same for a batch as for its samples; advances the values of both
        by one op."""
        for values in alone:
            self._step(call, values, None, 1)
        wanted = [_stack_values([values[t] for values in alone]) for t in call.op.outputs]
        tried = dict(batch)
        try:
            self._step(call, tried, None, len(alone))
        except (CannotApply, RuntimeError):
            agrees = False
        else:
            result = [tried[t] for t in call.op.outputs]
            are_sizes = self._sizes.issuperset(call.op.outputs)  # which are those of the batch
            agrees = are_sizes or all(map(_is_close, result, wanted))
            wanted = result if agrees else wanted
        batch |= zip(call.op.outputs, wanted, strict=True)
        for tensor in call.done:
            for values in (*alone, batch):
                values.pop(tensor, None)
        return agrees

    def _run(
        self,
        inputs: Sequence[Value],
        constants: Mapping[Tensor, torch.Tensor],
        through: Through | None,
        count: int,
    ) -> list[torch.Tensor]:
        values = self._initial_values(inputs, constants)
        for call in self._calls:
            if count > 1 and self.apart is not None and call.op in self.apart:
                self._step_apart(call, values, through, count)
            else:
                self._step(call, values, through, count)
            for tensor in call.done:
                values.pop(tensor, None)
        like = _like(values)
        # Values that do not depend on the inputs are the same for every sample.
        return [
            _concatenate([_as_real(values[t], like)] * (1 if t in self._varying else count))
            for t in self._wanted
        ]

    def _initial_values(
        self, inputs: Sequence[Value], constants: Mapping[Tensor, torch.Tensor]
    ) -> dict[Tensor, Value]:
        values: dict[Tensor, Value] = dict(self._settings)
        values.update((t, constants[t]) for t in self._constants if t not in self._settings)
        values.update(zip(self._inputs, inputs, strict=True))
        return values

    def _step(
        self, call: _Call, values: dict[Tensor, Value], through: Through | None, count: int
    ) -> None:
        """One op: its results join the values."""
        arguments = [values.get(t) if t is not None else None for t in call.op.inputs]
        if count > 1 and call.adapt is not None:
            arguments = call.adapt(call.op, arguments, count)
        self._keep(call, _results(call, arguments), values, through)

    def _step_apart(
        self, call: _Call, values: dict[Tensor, Value], through: Through | None, count: int
    ) -> None:
        """One op, sample by sample."""
        given = [values.get(t) if t is not None else None for t in call.op.inputs]
        ranks = [0 if t is None else len(t.shape) for t in call.op.inputs]
        varies = [t is not None and t in self._varying for t in call.op.inputs]
        alone = [
            _results(
                call,
                [
                    _part(value, place, count, rank) if value is not None and varied else value
                    for value, rank, varied in zip(given, ranks, varies, strict=True)
                ],
            )
            for place in range(count)
        ]
        self._keep(
            call, [_stack_values(parts) for parts in zip(*alone, strict=True)], values, through
        )

    def _keep(
        self,
        call: _Call,
        results: Sequence[Value],
        values: dict[Tensor, Value],
        through: Through | None,
    ) -> None:
        like = _like(values)
        for tensor, real, value in zip(call.op.outputs, call.is_real, results, strict=True):
            if real:
                value = _as_real(value, like)
                value = value if through is None else through(call.op, tensor, value)
            values[tensor] = value


def _like(values: Mapping[Tensor, Value]) -> torch.Tensor:
    """A value where, and as precise as, all real numbers are."""
    return next((v for v in values.values() if isinstance(v, torch.Tensor)), torch.empty(0))


def constants_of(model: Model, device: torch.device | str = "cpu") -> dict[Tensor, torch.Tensor]:
    """Every constant of the main graph that stands for real numbers, as float32."""
    graph = model.main
    return {
        tensor: torch.from_numpy(_real_values(tensor)).to(device)
        for tensor in _constants(graph.ops, graph.outputs)
        if is_real(tensor)
    }


def _real_values(tensor: Tensor) -> Array:
    """The real numbers that a constant stands for, in float32; a copy of its own."""
    if tensor.quant is not None and tensor.quant.block is not None:
        raise CannotApply(
            "constant {name!r} cannot be lifted: its scales are blockwise", tensor.name
        )
    dense = tensor if tensor.sparsity is None else with_zeros(tensor)
    return np.array(real_values(dense), np.float32)


def _constants(ops: Sequence[Op], wanted: Sequence[Tensor]) -> Iterator[Tensor]:
    """Every constant that is read or wanted, each once."""
    read = (t for op in ops for t in op.inputs if t is not None)
    yield from dict.fromkeys(t for t in (*read, *wanted) if t.is_const)


def _varying(graph: Graph, ops: Sequence[Op]) -> frozenset[Tensor]:
    """The tensors that depend on the values of the graph's inputs and not only on their sizes."""
    varying = set(graph.inputs)
    for op in ops:
        is_size = OPS[op.kind].reads_shape_only
        if not is_size and any(t in varying for t in op.inputs if t is not None):
            varying.update(op.outputs)
    return frozenset(varying)


def _takes_reals(op: Op) -> bool:
    return any(is_real(t) for t in op.inputs if t is not None)


def _is_differentiable(op: Op) -> bool:
    return op.kind in TORCH_OPS and _takes_reals(op)


def _refuse_unliftable(ops: Sequence[Op], wanted: Sequence[Tensor]) -> None:
    """Raises one line that names the ops that cannot be lifted."""
    for tensor in wanted:
        if not is_real(tensor):
            raise CannotApply(
                "tensor {name!r} is of type {dtype}, which has no gradient; ask for the "
                "real numbers that it is made from",
                tensor.name,
                tensor.dtype,
            )
    problems = [f"{op_name(op)}: {why}" for op in ops if (why := _problem(op))]
    if problems:
        rest = len(problems) - _MOST_NAMED
        more = [phrase("and {rest} more", rest)] if rest > 0 else []
        named = "; ".join([*problems[:_MOST_NAMED], *more])
        raise CannotApply("the model cannot be lifted: {named}", named)


def _problem(op: Op) -> str:
    """Why an op can be computed neither in torch nor in numpy; "" where it can."""
    if op.is_custom:
        return phrase("a custom op's meaning is not known")
    if called_graphs(op):
        return phrase("control flow is not lifted")
    keeps_state = any(t.variable for t in op.inputs if t is not None) or OPS[op.kind].uses_variable
    if keeps_state and op.kind not in RECURRENT:
        return phrase("it keeps a state between runs")
    if not _is_differentiable(op) and op.kind not in KERNELS:
        return phrase("it has neither a differentiable form nor a reference kernel")
    return ""


def _resolve(ops: Sequence[Op], wanted: Sequence[Tensor]) -> tuple[_Call, ...]:
    last = {t: op for op in ops for t in (*op.inputs, *op.outputs) if t is not None}
    ends: dict[Op, list[Tensor]] = {}
    for tensor, op in last.items():
        if tensor not in wanted and not tensor.is_const:
            ends.setdefault(op, []).append(tensor)
    return tuple(
        _Call(
            op,
            TORCH_OPS[op.kind] if _is_differentiable(op) else _numpy_call(op),
            ADAPT.get(op.kind),
            tuple(ends.get(op, ())),
            tuple(is_real(t) for t in op.outputs),
        )
        for op in ops
    )


def _results(call: _Call, arguments: Sequence[Value | None]) -> Sequence[Value]:
    try:
        results = call.run(call.op, *arguments)
    except (IndexError, ValueError) as error:
        first, *_ = str(error).splitlines() or [""]
        raise CannotApply(
            "{op_name} cannot be computed: {first}", op_name(call.op), first
        ) from None
    return results if isinstance(results, list) else [results]


def _numpy_call(op: Op) -> TorchOp:
    """The op by its reference kernel, with real numbers in float32."""
    plain = replace(
        op,
        inputs=tuple(None if t is None else _plain(t) for t in op.inputs),
        outputs=tuple(_plain(t) for t in op.outputs),
    )

    def run(op: Op, *inputs: Value | None) -> list[Value]:
        arrays = [None if value is None else numbers(value) for value in inputs]
        for place, array in enumerate(arrays):
            if array is not None and array.dtype == np.float64:
                arrays[place] = array.astype(np.float32)
        return list(evaluate(plain, arrays))

    return run


def _plain(tensor: Tensor) -> Tensor:
    """The float tensor that a scaled or half-precision one stands for."""
    return replace(tensor, dtype="float32", quant=None, data=None) if is_real(tensor) else tensor


def _for_each(value: Value, tensor: Tensor, count: int) -> Value:
    """The value of an input; a single number that is given for all samples, once for each."""
    if tensor.shape or len(value.shape) or count == 1:
        return value
    return _stack_values([value] * count)


def _part(value: Value, place: int, count: int, rank: int) -> Value:
    """One sample's share of an input."""
    if not len(value.shape):
        return value
    if rank == 0:
        return value[place]
    size = value.shape[0] // count
    return value[place * size : (place + 1) * size]


def _as_real(value: Value, like: torch.Tensor) -> torch.Tensor:
    """A kernel's result where the other real numbers are."""
    return value if isinstance(value, torch.Tensor) else torch.from_numpy(value).to(like)


def _concatenate(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Concatenates along the first dimension; numbers without one get one."""
    if len(parts) == 1:
        return parts[0]
    return torch.cat(list(parts)) if parts[0].ndim else torch.stack(list(parts))


def _stack_values(parts: Sequence[Value]) -> Value:
    """Puts the values of samples one behind the other along the first axis; numbers get a first
    axis.
    """
    reals = [part for part in parts if isinstance(part, torch.Tensor)]
    if len(reals) == len(parts):
        return torch.cat(reals) if reals[0].ndim else torch.stack(reals)
    arrays = [numbers(part) for part in parts]
    return np.concatenate(arrays) if arrays[0].ndim else np.stack(arrays)


def _same(one: Sequence[Value], other: Sequence[Value]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(numbers(a), numbers(b)) for a, b in pairs)


def _is_close(result: Value, wanted: Value) -> bool:
    if tuple(result.shape) != tuple(wanted.shape):
        return False
    if not isinstance(result, torch.Tensor) or not isinstance(wanted, torch.Tensor):
        return bool(np.array_equal(numbers(result), numbers(wanted), equal_nan=False))
    finite = wanted[wanted.isfinite()]
    slack = _CLOSE * float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(result, wanted, rtol=0, atol=slack, equal_nan=True)
