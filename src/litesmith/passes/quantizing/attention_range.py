"""How far down attention scores matter: a softmax gives next to nothing to scores far below the
highest of their row."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from litesmith.blocks.attention import attentions
from litesmith.blocks.wiring import Wiring
from litesmith.ir.edit import regraph, with_main
from litesmith.ir.types import Model, Op, Record, Tensor, frozen
from litesmith.passes.core.step import Observe

# What lies so far below the highest of its row has a share of less than half a step of the
# softmax's own output: 1/256 in int8, 1/32768 in int16.
NO_SHARE = {"int8": 8.0, "int16": 12.0}


def attention_scores(model: Model) -> list[Tensor]:
    """The input of each attention's softmax, where nothing else reads it."""
    wiring = Wiring.of(model.main)
    found = [one.softmax.inputs[0] for one in attentions(wiring)]
    return [t for t in found if t is not None and len(wiring.readers[t]) == 1]


def lowest_peaks(model: Model, scores: Sequence[Tensor], observe: Observe) -> dict[Tensor, float]:
    """Of each tensor of scores, the lowest among the highest scores of its rows; nothing of one
    that a sample made infinite."""
    peaks = {tensor: _peak(tensor) for tensor in scores}
    if not peaks:
        return {}
    made = {op.outputs[0]: tensor for tensor, op in peaks.items()}
    graph = regraph(model.main, ops=(*model.main.ops, *peaks.values()))
    seen = observe(with_main(model, graph), list(made), frozenset({"range"}))
    return {
        tensor: float(seen[peak].low)
        for peak, tensor in made.items()
        if seen[peak].samples and not seen[peak].spoiled
    }


def _peak(tensor: Tensor) -> Op:
    """An op that takes the highest of each row."""
    axis = Tensor(f"{tensor.name}/axis", (1,), "int32", frozen(np.array([-1], np.int32)))
    shape = (*tensor.shape[:-1], 1)
    made = replace(tensor, name=f"{tensor.name}/highest", shape=shape, dynamic=None)
    options = Record("ReducerOptions", {"keep_dims": True})
    return Op("REDUCE_MAX", (tensor, axis), (made,), options)


def raise_lows(
    ranges: Mapping[Tensor, tuple[float, float]], peaks: Mapping[Tensor, float], dtype: str
) -> dict[Tensor, tuple[float, float]]:
    """The ranges of scores without values that get no share of a softmax in any row."""
    far = NO_SHARE[dtype]
    return {
        tensor: (max(ranges[tensor][0], peak - far), ranges[tensor][1])
        for tensor, peak in peaks.items()
        if tensor in ranges
    }
