"""Turns a quantized model back into float: the same ops on real numbers, without conversions.
Timing that model shows how fast its ops would be in float when the original is not at hand."""

from dataclasses import replace

import numpy as np

from litesmith.errors import CannotApply
from litesmith.ir.edit import regraph, substitute, with_main
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op, Tensor, frozen
from litesmith.passes.core.layers import real_values


def float_form(model: Model) -> Model:
    """Returns the float model; raises CannotApply where there are several graphs, custom ops or
    packed constants."""
    if len(model.graphs) > 1:
        raise CannotApply("a model of several graphs has no float form")
    graph = model.main
    reals = {t: _real(t) for t in graph.tensors if t.quant is not None}
    ops: list[Op] = []
    for op in graph.ops:
        if op.is_custom:
            raise CannotApply("{op_name}: a custom op has no float form", op_name(op))
        source = op.inputs[0] if op.inputs else None
        if OPS[op.kind].rescales and source is not None:
            reals[op.outputs[0]] = reals.get(source, source)
        else:
            ops.append(substitute(op, reals))
    inputs, outputs = ([reals.get(t, t) for t in some] for some in (graph.inputs, graph.outputs))
    if len(set(outputs)) < len(outputs) or set(inputs) & set(outputs):
        raise CannotApply("outputs that are the same in float")
    plain = replace(model, signatures=(), metadata=())
    return with_main(plain, regraph(graph, ops=ops, inputs=inputs, outputs=outputs))


def _real(tensor: Tensor) -> Tensor:
    """The tensor with the real values that its codes represent."""
    if not tensor.is_const:
        return replace(tensor, dtype="float32", quant=None)
    is_plain = tensor.sparsity is None and tensor.quant is not None and tensor.quant.block is None
    if not is_plain:
        raise CannotApply("{name!r}: a packed constant has no float form", tensor.name)
    data = frozen(real_values(tensor).astype(np.float32))
    return replace(tensor, dtype="float32", data=data, quant=None)
