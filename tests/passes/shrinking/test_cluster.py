"""The laws of `cluster`: at most k values, kept to the very codes of int8; zeros stay zeros."""

from dataclasses import replace

import numpy as np
import pytest

from litesmith.calibration.observe import tools
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Model
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context, Masks, Tuned
from litesmith.passes.core.weight_structure import codebook_of
from litesmith.tflite.write import to_bytes
from tests.passes.shrinking.test_prune import network, weights
from tests.quantized import worst
from tests.zoo import noise
from tests.zoo_float import FLOATS, Few, context, dense, few


def books(model: Model, per_channel: bool = True) -> list[int]:
    found = [
        codebook_of(layer.weight.values(), layer.axis if per_channel else None)
        for layer in layers_of(model.main).values()
    ]
    return [0 if book is None else book.book.size for book in found]


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("k", [2, 3, 8, 32, 256])
def test_every_weight_has_at_most_k_values(k: int, per_channel: bool) -> None:
    settings = f"k={k}, per_channel={str(per_channel).lower()}"
    change = apply(network(), f"cluster({settings})")
    for size in books(change.model, per_channel):
        assert 2 <= size <= k


@pytest.mark.parametrize("k", [3, 5, 16, 32])
@pytest.mark.parametrize("recipe", ["cluster(k={})", "prune | cluster(k={})"])
def test_int8_keeps_the_very_codes(recipe: str, k: int) -> None:
    model = network()
    given = context(model)
    before = apply(model, recipe.format(k), given).model
    after = apply(model, f"{recipe.format(k)} | quantize", given).model
    layers = zip(layers_of(before.main).values(), layers_of(after.main).values(), strict=True)
    for real, stored in layers:
        codes = stored.weight.values()
        assert np.unique(codes).size <= k
        book = codebook_of(real.weight.values(), real.axis)
        assert book is not None
        np.testing.assert_array_equal(codes, book.book[book.codes])
        assert not codes[real.weight.values() == 0].any()


def test_zeros_of_pruned_weights_stay_and_no_others_come() -> None:
    model = network()
    pruned = apply(model, "prune(sparsity=0.75)").model
    clustered = apply(model, "prune(sparsity=0.75) | cluster(k=4)").model
    for layer, a, b in zip(
        layers_of(pruned.main), weights(pruned), weights(clustered), strict=True
    ):
        assert not b[a == 0].any(), layer.kind


@pytest.mark.parametrize("recipe", ["cluster(k=8)", "prune | cluster(k=8)"])
@pytest.mark.parametrize("data", [0, 8])
def test_clustering_what_is_clustered_changes_nothing(recipe: str, data: int) -> None:
    model = network()
    given = context(model, data) if data else Context()
    once = apply(model, recipe, given).model
    assert to_bytes(apply(once, "cluster(k=8)", given).model) == to_bytes(once)
    assert to_bytes(apply(once, "cluster(k=20)", given).model) == to_bytes(once)


def test_more_values_are_nearer() -> None:
    model = network()
    data = few(model, 8)
    near = [worst(model, apply(model, f"cluster(k={k})").model, data) for k in (4, 16, 64)]
    assert near == sorted(near) and near[2] > 20


def test_the_largest_weight_of_a_channel_stays() -> None:
    before, after = network(), apply(network(), "cluster(k=4)").model
    for layer, new in zip(
        layers_of(before.main).values(), layers_of(after.main).values(), strict=True
    ):
        axes = tuple(n for n in range(len(layer.weight.shape)) if n != layer.axis)
        peaks = [np.abs(each.weight.values()).max(axis=axes) for each in (layer, new)]
        np.testing.assert_array_equal(*peaks)


def test_layers_with_a_k_of_their_own() -> None:
    change = apply(network(), "cluster(k=32, own=[FULLY_CONNECTED:4, 0:8])")
    sizes = books(change.model)
    assert sizes[4] <= 4 and 4 < sizes[0] <= 8 and 16 < sizes[1] <= 32


def test_dead_channels_and_shared_weights() -> None:
    for name in ("dead_channel", "shared_weights"):
        model = FLOATS[name]()
        change = apply(model, "cluster(k=6) | quantize", context(model))
        first = next(iter(layers_of(change.model.main).values()))
        assert np.isfinite(first.weight.values()).all()


def test_k_that_cannot_hold_zero_and_both_ends() -> None:
    b = Builder()
    weight = noise(16, 32)
    weight[:, ::2] = 0
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 32)), weight, None))
    with pytest.raises(CannotApply, match="3 values are needed for its zeros"):
        apply(model, "cluster(k=2)")


@pytest.mark.parametrize(
    ("recipe", "why"),
    [
        ("cluster(k=1)", "k from 2 to 256 is needed"),
        ("cluster(k=257)", "k from 2 to 256 is needed"),
        ("cluster(own=[CONV_2D:0])", "k from 2 to 256 is needed"),
        ("cluster(own=[CONV_2D])", "a name and its k are needed"),
        ("cluster(own=[nothing:4])", "no op is of kind or writes a tensor"),
    ],
)
def test_settings_that_cannot_be(recipe: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        apply(network(), recipe)


def test_quantized_models_are_refused() -> None:
    model = network()
    given = context(model)
    with pytest.raises(CannotApply, match="cluster the float model, then quantize it"):
        apply(apply(model, "quantize", given).model, "cluster", given)


def test_the_order_of_samples_does_not_matter() -> None:
    model = network()
    data = few(model, 12)
    results = [
        to_bytes(apply(model, "cluster(k=4)", Context(tools(Few(rows), threads=1))).model)
        for rows in (data.rows, data.rows[::-1])
    ]
    assert results[0] == results[1]


def moved(factor: float, model: Model) -> Tuned:
    """As after a training that moved all values of a weight."""
    new = {
        layer.weight: replace(
            layer.weight,
            data=(layer.weight.values() * factor ** layer.weight.values()).astype(np.float32),
        )
        for layer in layers_of(model.main).values()
    }
    return Tuned(with_graphs(model, (rewrite(model.main, tensors=new), *model.graphs[1:])))


def test_tuning_must_keep_the_codes() -> None:
    def same(model: Model, *, origin: Model | None = None, masks: Masks | None = None) -> Tuned:
        return Tuned(model, ("it was trained",))

    def lost(model: Model, *, origin: Model | None = None, masks: Masks | None = None) -> Tuned:
        return moved(1.01, model)

    change = apply(network(), "cluster", Context(tune=same))
    assert change.notes[-1] == "it was trained"
    with pytest.raises(CannotApply, match="lost its codebook in tuning"):
        apply(network(), "cluster", Context(tune=lost))
    with pytest.raises(CannotApply, match=r"cluster\(tune=true\): there is no data"):
        apply(network(), "cluster(tune=true)")


def test_a_small_weight_has_few_values() -> None:
    """So that its codes are shared, and found again."""
    b = Builder()
    model = b.model(dense(b, b.input("x", (1, 16)), 8))
    (size,) = books(apply(model, "cluster(k=64)").model)
    assert 16 < size <= 32
