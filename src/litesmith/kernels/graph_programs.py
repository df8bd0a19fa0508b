"""Ops of a graph as programs: which ones have a kernel here, and why others have none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from litesmith.errors import CannotApply
from litesmith.ir.types import Op, Tensor
from litesmith.kernels.programs import prepare_layers as layers
from litesmith.kernels.programs import prepare_values as values
from litesmith.kernels.programs.prepare_sparse import worthwhile_layer
from litesmith.kernels.programs.program import Alias, Kernel, Program
from litesmith.kernels.programs.sparse_parts import may_be_sparse

Steps = Sequence[Kernel | Alias]
Prepare = Callable[[Op], Steps]

PREPARE: dict[str, Prepare] = {
    "ADD": values.two,
    "AVERAGE_POOL_2D": values.average_pool,
    "CONCATENATION": values.concatenation,
    "CONV_2D": layers.conv_2d,
    "DEPTHWISE_CONV_2D": layers.depthwise_conv_2d,
    "DEQUANTIZE": values.dequantize,
    "EXPAND_DIMS": values.same,
    "FULLY_CONNECTED": layers.fully_connected,
    "LOGISTIC": values.logistic,
    "MAX_POOL_2D": values.max_pool,
    "MEAN": values.mean,
    "MUL": values.two,
    "PAD": values.pad,
    "QUANTIZE": values.quantize,
    "RELU": values.relu,
    "RELU6": values.relu,
    "RESHAPE": values.same,
    "SLICE": values.slices,
    "SOFTMAX": values.softmax,
    "SPLIT": values.split,
    "SPLIT_V": values.split,
    "SQUEEZE": values.same,
    "STRIDED_SLICE": values.slices,
    "SUB": values.two,
    "TANH": values.tanh,
    "UNPACK": values.unpack,
}


def prepare_op(op: Op) -> Steps:
    """An op's kernels; raises CannotApply, with the reason, where there are none."""
    if may_be_sparse(op):
        return [worthwhile_layer(op)]
    prepare = PREPARE.get(op.kind)
    if prepare is None:
        raise CannotApply("{kind} has no kernel of ours", op.kind)
    return list(prepare(op))


def assemble(
    prepared_ops: Sequence[Steps], inputs: Sequence[Tensor], outputs: Sequence[Tensor]
) -> Program:
    """A program of ops that are prepared."""
    kernels: list[Kernel] = []
    owners: list[int] = []
    aliases: list[Alias] = []
    for number, steps in enumerate(prepared_ops):
        for step in steps:
            if isinstance(step, Alias) and step.outputs[0] not in outputs:
                aliases.append(step)
                continue
            is_kernel = isinstance(step, Kernel)
            kernels.append(step if is_kernel else values.copied(step.inputs[0], step.outputs[0]))
            owners.append(number)
    made = {tensor for kernel in kernels for tensor in kernel.outputs}
    for tensor in outputs:
        if tensor not in made:
            raise CannotApply("output {name!r} is made by none of these ops", tensor.name)
    ports = tuple(inputs), tuple(outputs)
    return Program(tuple(kernels), *ports, tuple(aliases), tuple(owners))
