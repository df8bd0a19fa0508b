"""The laws of `sparsify`: the same results in fewer bytes; and what ARM would skip."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.edit import with_ops
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.shrinking.arm_sparse import arm_sparse
from litesmith.passes.shrinking.sparsify import with_zeros, without_zeros
from litesmith.run.session import Session
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from tests.draws import draws
from tests.runtime import run
from tests.zoo import noise, sparse_filter
from tests.zoo_float import context


def blocks(outputs: int, inputs: int, zeros: float, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    mask = random.random((outputs, inputs // 4)) >= zeros
    mask[0, 0] = True
    return noise(outputs, inputs, seed=seed) * np.repeat(mask, 4, axis=1)


def layer(weight: np.ndarray, batch: int = 1, bias: bool = True, **options) -> Model:
    b = Builder()
    x = b.input("x", (batch, weight.shape[1]))
    added = noise(weight.shape[0], seed=3) if bias else None
    return b.model(b.op("FULLY_CONNECTED", x, weight, added, **options))


@draws(25)
@given(st.integers(1, 40), st.integers(1, 80), st.floats(0, 1), st.integers(1, 5), st.booleans())
def test_the_runtime_gives_the_same(
    outputs: int, quarter: int, zeros: float, batch: int, bias: bool
) -> None:
    model = layer(blocks(outputs, 4 * quarter, zeros), batch, bias)
    change = apply(model, "sparsify(least=0.0)")
    assert change.touched or "all its weights" in change.skipped[0].why
    reread = read(memoryview(to_bytes(change.model)))
    assert to_bytes(reread) == to_bytes(change.model)
    for reference in (False, True):
        (wanted,) = run(model, reference=reference)
        (got,) = run(reread, reference=reference)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize("target", ["cpu:1", "cpu:2", "cpu:1:builtin"])
@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU6", "RELU_N1_TO_1"])
def test_on_every_target_with_every_activation(target: str, activation: str) -> None:
    model = layer(blocks(200, 400, 0.9), 2, fused_activation_function=activation)
    sparse = apply(model, "sparsify").model
    assert len(to_bytes(sparse)) < 0.2 * len(to_bytes(model))
    results: list[np.ndarray] = []
    for each in (model, sparse):
        with Session(each, target) as session:
            session.runner.inputs[0].array[...] = noise(2, 400, seed=5)
            session.run()
            results.append(np.array(session.runner.outputs[0].array))
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)


@draws(30)
@given(st.integers(1, 30), st.integers(1, 300), st.floats(0, 1), st.integers(0, 9))
def test_there_and_back(outputs: int, quarter: int, zeros: float, seed: int) -> None:
    values = blocks(outputs, 4 * quarter, zeros, seed)
    weight = Tensor("w", values.shape, data=values)
    np.testing.assert_array_equal(with_zeros(without_zeros(weight)).values(), values)


def test_pruned_in_blocks_and_stored_without() -> None:
    b = Builder()
    x = b.op("FULLY_CONNECTED", b.input("x", (1, 256)), noise(256, 256), noise(256))
    model = b.model(b.op("FULLY_CONNECTED", x, noise(256, 256, seed=1), noise(256)))
    given = context(model)
    pruned = apply(model, "prune(sparsity=0.9, block=1x4)", given).model
    change = apply(model, "prune(sparsity=0.9, block=1x4) | sparsify", given)
    assert sum("stored" in line for line in change.touched) == 2
    for a, b_ in zip(run(pruned), run(change.model), strict=True):
        np.testing.assert_allclose(a, b_, rtol=1e-4, atol=1e-5 * np.abs(a).max())
    again = apply(change.model, "sparsify")
    assert not again.touched


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (layer(blocks(200, 400, 0.5)), "of its blocks of 4 weights are zero, of 85.0 %"),
        (layer(blocks(16, 16, 0.9)), "256 weights, too few"),
        (layer(noise(300, 402)), "its 402 inputs are no multiple of 4"),
        (layer(np.zeros((200, 400), np.float32)), "all its weights are zero"),
        (
            layer(blocks(200, 400, 0.9), fused_activation_function="TANH"),
            "no sparse kernel has the activation TANH",
        ),
    ],
)
def test_what_stays_dense_has_a_reason(model: Model, why: str) -> None:
    change = apply(model, "sparsify")
    assert change.model is model
    assert why in change.skipped[0].why


def test_int8_stays_dense() -> None:
    model = layer(blocks(200, 400, 0.95))
    change = apply(model, "quantize | sparsify", context(model))
    assert any("slower than dense" in skip.why for skip in change.skipped)


def test_other_steps_leave_sparse_weights_alone() -> None:
    model = layer(blocks(200, 400, 0.95))
    sparse = apply(model, "sparsify").model
    for recipe in ("prune", "cluster"):
        with pytest.raises(CannotApply, match="no layer of the model can be"):
            apply(sparse, recipe)
    assert to_bytes(apply(sparse, "cleanup | fold | fuse").model) == to_bytes(sparse)


def test_least_is_a_share() -> None:
    with pytest.raises(BadInput, match="a share from 0 to 1"):
        apply(layer(noise(4, 4)), "sparsify(least=1.5)")


def mobile(zeros: float, *, stem: bool = True, end: bool = True, same: bool = False) -> Model:
    """A stem, a depthwise layer between two 1×1 ones, a mean."""
    b = Builder()
    x = b.input("image", (1, 16, 16, 3))
    if stem:
        x = b.op("PAD", x, [[0, 0], [1, 1], [1, 1], [0, 0]])
        x = b.op("CONV_2D", x, noise(8, 3, 3, 3), noise(8), padding="VALID", stride_h=2, stride_w=2)
    x = pointwise(b, x, zeros)
    if not same:
        x = b.op("PAD", x, [[0, 0], [1, 1], [1, 1], [0, 0]])
    how = {"padding": "SAME", "stride_h": 2, "stride_w": 2} if same else {"padding": "VALID"}
    x = b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, 16), noise(16), **how)
    x = b.op("RELU6", pointwise(b, x, zeros))
    x = b.op("MEAN", x, [1, 2]) if end else b.op("RESHAPE", x, [1, -1], shape=(1, 1024))
    return b.model(b.op("FULLY_CONNECTED", x, noise(4, x.shape[1]), noise(4)))


def pointwise(b: Builder, x: Tensor, zeros: float) -> Tensor:
    weight = blocks(16, max(x.shape[-1], 4), zeros)[:, : x.shape[-1]]
    return b.op("CONV_2D", x, weight.reshape(16, 1, 1, -1), noise(16))


def reasons(model: Model) -> list[str]:
    return list(arm_sparse(model.main).values())


def test_arm_takes_a_whole_part_or_nothing() -> None:
    dense = "stored dense: the runtime looks for sparse ones behind DENSIFY"
    stem, *inner = reasons(mobile(0.9))
    assert "kernel is 3×3" in stem and all(dense in why for why in inner)
    assert all("of the weights of the 1×1 conv" in why for why in reasons(mobile(0.5))[1:])
    assert all("no 3×3 stem" in why for why in reasons(mobile(0.9, stem=False)))
    assert all("RESHAPE" in why for why in reasons(mobile(0.9, end=False))[1:])
    assert all("DEPTHWISE_CONV_2D" in why for why in reasons(mobile(0.9, same=True))[1:])


def test_arm_takes_no_convolution_without_options() -> None:
    model = mobile(0.9)
    bare = {op: replace(op, options=None) for op in model.main.ops if op.kind == "CONV_2D"}
    assert all(reasons(with_ops(model, bare)))


def test_arm_takes_only_float() -> None:
    model = mobile(0.9)
    assert all("int8" in why for why in reasons(apply(model, "quantize", context(model)).model))


def behind_densify(middle: str = "", end: str = "MEAN", zeros: float = 0.9) -> Model:
    """A stem, two convolutions of 1×1 that are stored without their zeros, an end."""
    b = Builder()
    x = b.op("PAD", b.input("image", (1, 16, 16, 3)), [[0, 0], [1, 1], [1, 1], [0, 0]])
    x = b.op("CONV_2D", x, noise(8, 3, 3, 3), noise(8), padding="VALID", stride_h=2, stride_w=2)
    x = b.op("CONV_2D", x, sparse_filter(b, blocks(16, 8, zeros)), noise(16))
    if middle == "depthwise":
        x = b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, 16), noise(16), padding="SAME")
    elif middle == "excited":
        y = b.op("MEAN", x, [1, 2], keep_dims=True)
        y = b.op("CONV_2D", y, sparse_filter(b, blocks(16, 16, zeros)), noise(16))
        x = b.op("MUL", x, b.op("LOGISTIC", y))
    elif middle == "pad":
        x = b.op("PAD", x, [[0, 0], [1, 1], [1, 1], [0, 0]])
    elif middle == "plus":
        x = b.op("ADD", x, noise(1, 1, 1, 16))
    elif middle == "plus, turned":
        x = b.op("ADD", noise(1, 1, 1, 16), x)
    x = b.op("CONV_2D", x, sparse_filter(b, blocks(16, 16, zeros)), noise(16))
    return b.model(b.op(end, x, [1, 2]))


@pytest.mark.parametrize(
    ("middle", "end", "is_sparse"),
    [
        ("", "MEAN", True),
        ("", "SUM", True),
        ("", "REDUCE_MAX", False),
        ("depthwise", "MEAN", True),
        ("excited", "MEAN", True),
        ("pad", "MEAN", False),
        ("plus", "MEAN", False),
        ("plus, turned", "MEAN", True),
    ],
)
def test_weights_behind_densify_are_skipped_on_arm(middle: str, end: str, is_sparse: bool) -> None:
    """As XNNPACK did on emulated AArch64: `bench/arm_sparse.py`."""
    stem, *inner = reasons(behind_densify(middle, end))
    assert "kernel is 3×3" in stem
    assert [not why for why in inner] == [is_sparse] * len(inner)
    assert all(reasons(behind_densify(middle, end, 0.5)))
