"""Channels that are one and the same go together, and what is left computes the same."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.ir.check import check
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.ops import infer_shapes
from litesmith.ir.types import Graph, Model, Tensor
from litesmith.passes.shrinking.channel_cut import without
from litesmith.passes.shrinking.channel_rules import Channels, channel_ids
from tests.draws import draws
from tests.random_graphs import graphs
from tests.runtime import run
from tests.zoo_float import FLOATS

# Layers that mix the channels they read.
MIXING = {"CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}


def removable(channels: Channels) -> list[int]:
    classes = {int(c) for axes in channels.places.values() for axis in axes for c in axis}
    return sorted(classes - channels.pinned.keys())


def some_of(channels: Channels, seed: int) -> set[int]:
    """A random part of what can be removed, such that no tensor loses all it has."""
    random = np.random.default_rng(seed)
    free = random.permutation(removable(channels)).tolist()
    gone: set[int] = set()
    for one in free[: max(len(free) * 2 // 3, 1)]:
        more = {*gone, one}
        axes = (axis for axes in channels.places.values() for axis in axes)
        if not any(len(axis) and more.issuperset(axis.tolist()) for axis in axes):
            gone = more
    return gone


def ignoring(graph: Graph, channels: Channels, gone: Collection[int]) -> Graph:
    """The graph with layers that do not look at some of the channels they read."""
    unpacked = {op.outputs[0]: op.inputs[0] for op in graph.ops if op.kind == "DEQUANTIZE"}
    changed: dict[Tensor, Tensor] = {}
    for op in graph.ops:
        weight = op.inputs[1] if op.kind in MIXING else None
        weight = unpacked.get(weight, weight) if weight is not None else None
        if weight is None or weight.data is None:
            continue
        kept = ~np.isin(channels.last(weight), list(gone))
        data = (weight.data * kept).astype(weight.data.dtype)
        changed[weight] = replace(weight, data=data)
    return rewrite(graph, tensors=changed)


def assert_removed(model: Model, seed: int) -> set[int]:
    """The law: a model without channels computes what it computed without looking at them."""
    channels = channel_ids(model.main)
    gone = some_of(channels, seed)
    smaller = without(model, channels, gone)
    check(smaller)
    for op in smaller.main.ops:
        shapes = infer_shapes(op.kind, op.inputs, op.options)
        assert shapes is None or shapes == tuple(t.shape for t in op.outputs)
    for before, after in zip(model.graphs, smaller.graphs, strict=True):
        assert before.inputs == after.inputs and before.outputs == after.outputs
    blind = with_graphs(model, [ignoring(model.main, channels, gone), *model.graphs[1:]])
    for a, b in zip(run(blind), run(smaller), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * max(np.abs(a).max(initial=0), 1))
    return gone


# Float models in which something can go; in the others, outputs or an op need all channels.
FLEXIBLE = {
    "activations",
    "computed_shape",
    "convnet",
    "described",
    "different_ranges",
    "free_dimension",
    "no_bias",
    "one_fixed_scale",
    "residual",
    "upsampled",
}


@pytest.mark.parametrize("name", FLOATS)
def test_every_float_model(name: str) -> None:
    for seed in range(2):
        assert bool(assert_removed(FLOATS[name](), seed)) == (name in FLEXIBLE)


@draws(40)
@given(graphs(), st.integers(0, 99))
def test_random_graphs(model: Model, seed: int) -> None:
    assert_removed(model, seed)
