"""What only a run decides is left alone: sizes that depend on values, and states."""

import numpy as np
import pytest

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.tflite.write import to_bytes
from tests.runtime import run
from tests.zoo import noise

RECIPES = ("cleanup", "fold", "fold(shapes=true)", "fuse", "cleanup | fold | fuse")


def found(b: Builder, shape: tuple[int, ...] = (1, 1)) -> Tensor:
    """Places of positive values; how many there are, the file only guesses."""
    return b.op(
        "WHERE", b.op("GREATER", b.input("x", (4,)), np.float32(0)), shape=shape, dtype="int64"
    )


def shape_of_found() -> Model:
    b = Builder()
    return b.model(b.op("ADD", b.op("SHAPE", found(b)), [1, 1]))


def shape_behind_found() -> Model:
    b = Builder()
    return b.model(
        b.op("ADD", b.op("SHAPE", b.op("NEG", b.op("CAST", found(b), dtype="float32"))), [0, 0])
    )


def twice(b: Builder) -> Tensor:
    """The number 2, computed from an input, so that no one can know it."""
    one = b.op(
        "CAST", b.op("SUM", b.op("MUL", b.input("y", (1,)), np.float32(0)), [0]), dtype="int32"
    )
    return b.op("RESHAPE", b.op("ADD", one, [2]), [1])


def tiled() -> Model:
    b = Builder()
    count = b.op("CONCATENATION", b.const([1]), twice(b))
    return b.model(b.op("NEG", b.op("TILE", b.input("x", (1, 4)), count, shape=(1, 4))))


def reshaped() -> Model:
    b = Builder()
    shape = b.op("CONCATENATION", twice(b), b.const([2]))
    return b.model(b.op("NEG", b.op("RESHAPE", b.input("x", (1, 4)), shape, shape=(1, 4))))


def state_read_before_it_changes() -> Model:
    b = Builder()
    x, h = b.input("x", (1, 3)), Tensor("h", (1, 2), variable=True)
    before = b.op("RESHAPE", b.op("RESHAPE", h, [2]), [1, 2])
    after = b.op("RNN", x, noise(2, 3), noise(2, 2), noise(2), h, shape=(1, 2))
    return b.model(b.op("SUB", before, after))


def state_in_a_layer() -> Model:
    b = Builder()
    x, h = b.input("x", (1, 2)), Tensor("h", (1, 2), variable=True)
    scaled = b.op("FULLY_CONNECTED", h, noise(2, 2), noise(2))
    after = b.op("RNN", x, noise(2, 2), noise(2, 2), noise(2), h, shape=(1, 2))
    return b.model(b.op("SUB", b.op("RELU", b.op("ADD", scaled, noise(2))), after))


MODELS = (
    shape_of_found,
    shape_behind_found,
    tiled,
    reshaped,
    state_read_before_it_changes,
    state_in_a_layer,
)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_results_stay(make, recipe: str) -> None:
    model = make()
    tidy = apply(model, recipe).model
    for seed in range(4):
        for a, b in zip(run(model, seed, runs=3), run(tidy, seed, runs=3), strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_the_sign_of_zero_stays() -> None:
    def model(constant: float) -> Model:
        b = Builder()
        x = b.op("MUL", b.input("x", (1,)), np.float32(-0.0))
        return b.model(b.op("DIV", np.ones(1, np.float32), b.op("ADD", x, np.float32(constant))))

    for constant, left in ((0.0, 3), (-0.0, 2)):
        tidy = apply(model(constant), "cleanup").model
        assert len(tidy.main.ops) == left
        np.testing.assert_array_equal(run(tidy), run(model(constant)))


def test_joined_reshapes_still_resize() -> None:
    b = Builder()
    y = b.op("RESHAPE", b.op("RESHAPE", b.input("x", (1, 4, 2)), [-1, 8]), [-1, 2, 4])
    tidy = apply(b.model(b.op("NEG", y)), "cleanup").model
    assert [op.kind for op in tidy.main.ops] == ["RESHAPE", "NEG"]
    shape = tidy.main.ops[0].inputs[1]
    assert shape is not None
    assert shape.values().tolist() == [-1, 2, 4]


def test_folding_counts_bytes_that_others_share() -> None:
    weight = noise(64, 64)
    b = Builder()
    x = b.input("x", (64, 64))
    for _ in range(4):
        x = b.op("ADD", x, b.op("TRANSPOSE", Tensor("w", (64, 64), data=weight), [1, 0]))
    model = b.model(x)
    assert len(to_bytes(apply(model, "fold").model)) <= len(to_bytes(model))


def test_a_long_chain_is_fused_whole() -> None:
    b = Builder()
    y = b.op("CONV_2D", b.input("x", (1, 2, 2, 1)), noise(2, 1, 1, 1), noise(2))
    for number in range(40):
        y = b.op("MUL", y, np.float32(1 + number / 100))
    assert len(apply(b.model(y), "fuse").model.main.ops) == 1


def legacy(kind: str, *, scale: float, **options) -> Model:
    b = Builder()
    x = b.input("x", (1, 4, 4, 2), "uint8", Quant.of(0.1, 128))
    inputs = {"RESHAPE": (x, [1, 32]), "MAXIMUM": (x, x)}.get(kind, (x,))
    return b.model(b.op(kind, *inputs, quant=Quant.of(scale, 120), **options))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("RESHAPE", {}),
        ("MAXIMUM", {}),
        ("AVERAGE_POOL_2D", {"filter_height": 2, "filter_width": 2}),
    ],
)
def test_upgrade_does_not_rescale_what_was_copied(kind: str, options: dict) -> None:
    for scale in (0.1, 0.2):
        model = legacy(kind, scale=scale, **options)
        upgraded = apply(model, "upgrade").model
        for seed in range(3):
            old, new = run(model, seed)[0].astype(int), run(upgraded, seed)[0].astype(int)
            assert np.abs(old - new).max() <= 1


def test_upgrade_leaves_float_data_with_uint8_weights() -> None:
    b = Builder()
    w = b.const(np.arange(20, dtype=np.uint8).reshape(5, 4), quant=Quant.of(0.01, 0))
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 4)), w, None, dtype="float32"))
    upgraded = apply(model, "upgrade").model
    weight = upgraded.main.ops[0].inputs[1]
    assert weight is not None
    assert weight.dtype == "uint8"


def test_upgrade_leaves_a_state() -> None:
    b = Builder()
    state = Tensor("h", (1, 4), "uint8", quant=Quant.of(0.1, 128), variable=True)
    x = b.input("x", (1, 4), "uint8", Quant.of(0.1, 128))
    y = b.op("ADD", x, state, quant=Quant.of(0.2, 128))
    change = apply(b.model(y), "upgrade")
    assert not any(op.kind == "QUANTIZE" and op.outputs[0].variable for op in change.model.main.ops)
    assert "keeps a state" in change.skipped[0].why
