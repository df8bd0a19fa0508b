"""Models with channels removed: fewer multiply-accumulates, the same interface."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.anatomy.footprint import footprint
from litesmith.calibration.observe import tools
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.check import check
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.model_text import type_text
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Change, Context
from litesmith.passes.shrinking.remove_channels import remove_channels
from litesmith.tflite.write import to_bytes
from tests.draws import draws
from tests.passes.shrinking.test_channel_rules import assert_removed
from tests.random_graphs import graphs
from tests.runtime import run
from tests.zoo import noise
from tests.zoo_float import FLOATS, context, conv, dense, few, image

NO_DATA = Context()


def removed(model: Model, sparsity: float, given: Context = NO_DATA) -> Change:
    return remove_channels(model, sparsity, given, set(model.main.ops))


def interface(model: Model) -> list[object]:
    graph = model.main
    tensors = [(t.name, type_text(t)) for t in (*graph.inputs, *graph.outputs)]
    signatures = [
        (s.key, [n for n, _ in s.inputs], [n for n, _ in s.outputs]) for s in model.signatures
    ]
    return [*tensors, *signatures]


def removed_or_refused(model: Model, sparsity: float, given: Context = NO_DATA) -> Model | None:
    """The law of every call: enough work is gone and the model runs, or one line says why not."""
    try:
        small = removed(model, sparsity, given).model
    except CannotApply as error:
        assert "\n" not in str(error) and str(error).startswith("prune: ")
        return None
    check(small)
    assert footprint(small).macs <= (1 - sparsity) * footprint(model).macs
    assert interface(small) == interface(model)
    assert to_bytes(small) == to_bytes(removed(model, sparsity, given).model)
    for a, b in zip(run(small), run(model), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert (
            not np.isfinite(b.astype(np.float64)).all() or np.isfinite(a.astype(np.float64)).all()
        )
    return small


# Models that can lose channels; in all others each is an input or an output, or somebody needs all.
LOSE = {
    *("activations", "computed_shape", "convnet", "described", "free_dimension", "no_bias"),
    *("one_fixed_scale", "residual", "upsampled", "weighted_by_input"),
}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("data", [False, True], ids=["weights", "data"])
def test_every_float_model(name: str, data: bool) -> None:
    model = FLOATS[name]()
    small = removed_or_refused(model, 0.3, context(model) if data else NO_DATA)
    assert (small is not None) == (name in LOSE)


@draws(25)
@given(graphs(), st.sampled_from([0.1, 0.4, 0.8]), st.booleans())
def test_random_graphs(model: Model, sparsity: float, data: bool) -> None:
    removed_or_refused(model, sparsity, context(model, 3) if data else NO_DATA)


def squeezed(b: Builder, x: Tensor, seed: int) -> Tensor:
    """Squeeze and excite: channels weighted by what the whole image holds."""
    mean = b.op("MEAN", x, [1, 2], keep_dims=True)
    gate = conv(b, conv(b, mean, 4, seed, 1, fused_activation_function="RELU"), x.shape[3], seed, 1)
    return b.op("MUL", x, b.op("LOGISTIC", gate))


def depthwise(b: Builder, x: Tensor, seed: int) -> Tensor:
    weight = noise(1, 3, 3, x.shape[3], seed=seed, scale=0.3)
    return b.op("DEPTHWISE_CONV_2D", x, weight, noise(x.shape[3], seed=seed), depth_multiplier=1)


def residual(b: Builder, x: Tensor, seed: int) -> Tensor:
    y = conv(b, conv(b, x, 12, seed, fused_activation_function="RELU"), x.shape[3], seed + 1)
    return b.op("ADD", x, y, fused_activation_function="RELU")


def joined(b: Builder, x: Tensor, seed: int) -> Tensor:
    return b.op("CONCATENATION", x, conv(b, x, 4, seed, fused_activation_function="RELU6"), axis=3)


def padded(b: Builder, x: Tensor, seed: int) -> Tensor:
    """A shortcut without weights into more channels."""
    wide = b.op("PAD", x, [[0, 0], [0, 0], [0, 0], [1, 3]])
    return b.op("ADD", wide, conv(b, x, wide.shape[3], seed))


def parted(b: Builder, x: Tensor, seed: int) -> Tensor:
    size = [1, x.shape[1], x.shape[2], x.shape[3] - 2]
    left = b.op("SLICE", x, [0, 0, 0, 2], size)
    right = b.op("STRIDED_SLICE", x, [0, 0, 0, 0], size, [1, 1, 1, 1])
    return b.op("CONCATENATION", left, right, axis=3)


def shuffled(b: Builder, x: Tensor, seed: int) -> Tensor:
    rows, columns, channels = x.shape[1:]
    if channels % 2:
        return x
    parts = b.op("RESHAPE", x, [1, rows, columns, 2, channels // 2])
    return b.op("RESHAPE", b.op("TRANSPOSE", parts, [0, 1, 2, 4, 3]), [-1, *x.shape[1:]])


BLOCKS = (squeezed, depthwise, residual, joined, padded, parted, shuffled)


@st.composite
def networks(draw: st.DrawFn) -> Model:
    """A convolutional network that ends in two layers on everything it saw."""
    b = Builder()
    x = conv(b, image(b, 4, 3), draw(st.sampled_from([5, 8, 16])), fused_activation_function="RELU")
    for seed, block in enumerate(draw(st.lists(st.sampled_from(BLOCKS), max_size=4))):
        x = block(b, x, 7 * seed)
    x = b.op("RESHAPE", x, [1, -1] if draw(st.booleans()) else [1, x.elements])
    return b.model(dense(b, dense(b, x, 9, 3), 3, 5), signature="serve")


@draws(12)
@given(networks(), st.sampled_from([0.2, 0.5, 0.7]), st.booleans())
def test_networks_of_usual_blocks(model: Model, sparsity: float, data: bool) -> None:
    removed_or_refused(model, sparsity, context(model, 3) if data else NO_DATA)


@draws(12)
@given(networks(), st.integers(0, 99))
def test_usual_blocks_without_any_of_their_channels(model: Model, seed: int) -> None:
    assert assert_removed(model, seed)


@pytest.mark.parametrize("block", BLOCKS)
def test_every_usual_block_lets_channels_go(block: Callable[..., Tensor]) -> None:
    b = Builder()
    x = block(b, conv(b, image(b, 4, 3), 16), 7)
    flat = b.op("RESHAPE", x, [1, x.elements])
    assert removed_or_refused(b.model(dense(b, flat, 9)), 0.5)


def without_some(model: Model, every: int) -> Model:
    """A model in which every so manyth filter is zero, and with it what its readers see."""
    changed: dict[Tensor, Tensor] = {}
    for op in model.main.ops:
        for place, axis in ((1, 3 if op.kind == "DEPTHWISE_CONV_2D" else 0), (2, 0)):
            if op.kind in ("CONV_2D", "DEPTHWISE_CONV_2D"):
                tensor = op.inputs[place]
                assert tensor is not None and tensor.data is not None
                data = np.moveaxis(tensor.data.copy(), axis, 0)
                data[::every] = 0
                changed[tensor] = replace(
                    tensor, data=np.ascontiguousarray(np.moveaxis(data, 0, axis))
                )
    return with_graphs(model, [rewrite(model.main, tensors=changed)])


@draws(8)
@given(st.lists(st.sampled_from((depthwise, residual)), max_size=3), st.booleans())
def test_what_is_zero_goes_first_and_is_not_missed(
    blocks: list[Callable[..., Tensor]], data: bool
) -> None:
    b = Builder()
    x = conv(b, image(b, 4, 3), 8, fused_activation_function="RELU")
    for seed, block in enumerate(blocks):
        x = block(b, x, 7 * seed)
    y = dense(b, b.op("MEAN", x, [1, 2]), 3)
    model = without_some(b.model(y), 2)
    small = removed(model, 0.25, context(model) if data else NO_DATA).model
    assert footprint(small).macs <= 0.75 * footprint(model).macs
    for a, b_ in zip(run(model), run(small), strict=True):
        np.testing.assert_allclose(a, b_, rtol=1e-4, atol=1e-4)


def correlated() -> Model:
    """Eight channels that are two, each with a factor and an offset of its own."""
    b = Builder()
    weight = np.repeat(noise(2, 1, 1, 3, scale=1), 4, axis=0)
    weight *= np.linspace(1, 2, 8, dtype=np.float32).reshape(8, 1, 1, 1)
    x = b.op("CONV_2D", image(b, 6, 3), weight, noise(8, scale=3))
    return b.model(b.op("CONV_2D", x, noise(5, 1, 1, 8, seed=4), noise(5)))


def test_what_others_hold_is_made_up_for() -> None:
    """Without data the same cut costs half of the output."""
    model = correlated()
    wanted = run(model)[0]
    spread = wanted.std(axis=(0, 1, 2))

    def error(given: Context) -> float:
        got = run(removed(model, 0.5, given).model)[0]
        return float((np.abs(got - wanted) / spread).max())

    assert error(context(model)) < 0.05 < error(NO_DATA)


def test_a_layer_without_a_bias_gets_one() -> None:
    b = Builder()
    x = dense(b, b.input("x", (4, 3)), 8)
    model = b.model(b.op("FULLY_CONNECTED", x, noise(4, 8), None))
    small = removed(model, 0.3, context(model)).model
    assert small.main.ops[1].inputs[2] is not None
    assert removed(model, 0.3).model.main.ops[1].inputs[2] is None


def test_a_constant_goes_into_the_bias() -> None:
    b = Builder()
    weight = noise(4, 1, 1, 3)
    weight[:2] = 0
    x = b.op("CONV_2D", image(b, 6, 3), weight, np.array([5, -3, 0, 1], np.float32))
    model = b.model(b.op("CONV_2D", x, noise(5, 3, 3, 4), noise(5), padding="VALID"))
    small = removed(model, 0.5, context(model)).model
    np.testing.assert_allclose(run(small)[0], run(model)[0], rtol=1e-3, atol=1e-3)


def test_the_order_of_samples_changes_no_byte() -> None:
    model = FLOATS["residual"]()
    data = few(model)
    turned = replace(data, rows=data.rows[::-1])
    one, two = (removed(model, 0.3, Context(tools(d, threads=1))).model for d in (data, turned))
    assert to_bytes(one) == to_bytes(two)


def test_little_more_than_asked_for_goes() -> None:
    b = Builder()
    x = conv(b, image(b, 8, 3), 64, fused_activation_function="RELU")
    for seed in range(3):
        x = conv(b, x, 64, seed, fused_activation_function="RELU")
    model = b.model(conv(b, x, 4))
    for sparsity in (0.1, 0.25, 0.5, 0.75):
        left = footprint(removed(model, sparsity).model).macs / footprint(model).macs
        assert 1 - sparsity - 0.1 < left <= 1 - sparsity


def test_widths_suit_kernels() -> None:
    b = Builder()
    x = conv(b, conv(b, image(b, 8, 3), 64), 16)
    model = b.model(conv(b, x, 4))
    first, second, _ = removed(model, 0.4).model.main.ops
    assert first.outputs[0].shape[3] % 8 == 0 and second.outputs[0].shape[3] % 4 == 0


def test_what_is_not_allowed_stays() -> None:
    b = Builder()
    x = conv(b, conv(b, image(b, 8, 3), 16), 16, 2)
    model = b.model(conv(b, x, 16, 4))
    first, second, third = model.main.ops
    small = remove_channels(model, 0.3, NO_DATA, {second, third}).model
    assert small.main.ops[0] is first
    assert small.main.ops[1].outputs[0].shape[3] < 16
    with pytest.raises(CannotApply, match="is to stay as it is"):
        remove_channels(model, 0.3, NO_DATA, {third})


def test_zeros_stay() -> None:
    """Weights that were made zero are not filled by what makes up for lost channels."""
    b = Builder()
    x = conv(b, image(b, 8, 3), 16, fused_activation_function="RELU")
    weight = noise(16, 3, 3, 16) * (noise(16, 3, 3, 16, seed=5) > 0)
    model = b.model(b.op("CONV_2D", x, weight.astype(np.float32), noise(16)))
    small = removed(model, 0.4, context(model)).model
    data = small.main.ops[1].inputs[1]
    assert data is not None and data.data is not None
    assert 0.4 < (data.data == 0).mean() < 0.6


def test_channels_in_groups_stay() -> None:
    b = Builder()
    x = conv(b, image(b, 8, 3), 16, fused_activation_function="RELU")
    x = conv(b, x, 8, 2)
    x = b.op("CONV_2D", x, noise(8, 3, 3, 4, scale=0.3), noise(8), shape=(1, 8, 8, 8))
    model = b.model(conv(b, conv(b, x, 8, 3), 4, 4))
    small = removed_or_refused(model, 0.3, context(model, 64))
    assert small is not None
    assert [op.outputs[0].shape[3] for op in small.main.ops][1:3] == [8, 8]


def test_a_free_batch_stays_free() -> None:
    b = Builder()
    x = b.input("x", (-1, 4, 4, 3))
    y = replace(conv(b, x, 8), dynamic=(-1, 4, 4, 8))
    b.ops[-1] = replace(b.ops[-1], outputs=(y,))
    rows = b.op("STRIDED_SLICE", b.op("SHAPE", y), [0], [1], [1], shrink_axis_mask=1)
    shape = b.op("PACK", rows, np.int32(128), values_count=2, shape=(2,), dtype="int32")
    flat = replace(b.op("RESHAPE", y, shape, shape=(1, 128)), dynamic=(-1, 128))
    b.ops[-1] = replace(b.ops[-1], outputs=(flat,))
    model = b.model(dense(b, flat, 5))
    small = removed_or_refused(model, 0.4)
    assert small is not None
    reshape = next(op for op in small.main.ops if op.kind == "RESHAPE")
    assert reshape.outputs[0].dynamic == (-1, reshape.outputs[0].shape[1])


def test_why_nothing_can_go() -> None:
    b = Builder()
    x = b.op("CUSTOM", conv(b, image(b), 8), custom="Odd", shape=(1, 6, 6, 8), dtype="float32")
    with pytest.raises(CannotApply, match=r"no channel can go.*Odd.* needs all of them"):
        removed(b.model(conv(b, x, 8)), 0.3)
    b = Builder()
    with pytest.raises(CannotApply, match="no layer"):
        removed(b.model(b.op("RELU", image(b))), 0.3)


def test_more_than_there_is() -> None:
    b = Builder()
    model = b.model(conv(b, conv(b, image(b), 8), 8))
    with pytest.raises(CannotApply, match=r"at most .* ask for a lower sparsity"):
        removed(model, 0.99)


@pytest.mark.parametrize("sparsity", [0.0, 1.0, -0.5, 7.0])
def test_a_share_is_a_share(sparsity: float) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        removed(FLOATS["residual"](), sparsity)


def test_quantized_models_are_refused() -> None:
    model = FLOATS["residual"]()
    small = apply(model, "quantize", context(model)).model
    with pytest.raises(CannotApply, match="prune the float model, then quantize"):
        removed(small, 0.3)


def test_data_that_is_not_a_number() -> None:
    model = FLOATS["residual"]()
    data = few(model, 2)
    data.rows[0][0][:] = np.nan
    with pytest.raises(BadInput, match="not a number"):
        removed(model, 0.3, Context(tools(data, threads=1)))
