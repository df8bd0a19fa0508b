"""uint8 to int8: the same numbers, stored otherwise."""

import numpy as np
import pytest

from litesmith.anatomy.findings import findings
from litesmith.errors import CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.tidy.upgrade import legacy_tensors
from tests.runtime import run
from tests.zoo import convnet, legacy_uint8


def real(tensor: Tensor) -> np.ndarray:
    assert tensor.quant is not None
    shape = [1] * len(tensor.shape)
    if tensor.quant.per_channel:
        shape[tensor.quant.axis] = -1
    scale, zero = tensor.quant.scale.reshape(shape), tensor.quant.zero_point.reshape(shape)
    return (tensor.values().astype(np.int64) - zero) * scale.astype(np.float64)


def layer(low: int, high: int, zero: int) -> Model:
    """One convolution whose stored weights span low to high."""
    random = np.random.default_rng(1)
    stored = random.integers(low, high, (4, 1, 1, 8), endpoint=True).astype(np.uint8)
    b = Builder()
    x = b.input("x", (1, 3, 3, 8), "uint8", Quant.of(0.02, 120))
    w = b.const(stored, quant=Quant.of(0.01, zero))
    bias = b.const(random.integers(-900, 900, 4).astype(np.int32), quant=Quant.of(0.0002))
    return b.model(b.op("CONV_2D", x, w, bias, quant=Quant.of(0.05, 128)))


def conv(model: Model):
    return next(op for op in model.main.ops if op.kind == "CONV_2D")


def test_weights_that_fit_are_moved_exactly() -> None:
    before = layer(low=1, high=250, zero=125)
    after = apply(before, "upgrade").model
    old, new = conv(before), conv(after)
    assert new.inputs[1].dtype == "int8"
    assert (new.inputs[1].quant.zero_point == 0).all()
    np.testing.assert_array_equal(real(old.inputs[1]), real(new.inputs[1]))
    np.testing.assert_array_equal(old.inputs[2].values(), new.inputs[2].values())


def test_channels_that_do_not_fit_are_rescaled_and_listed() -> None:
    before = layer(low=0, high=255, zero=10)
    change = apply(before, "upgrade")
    weight, bias = conv(change.model).inputs[1:3]
    assert any("rescaled" in text and "channels" in text for text in change.touched)
    assert weight.quant.per_channel
    step = weight.quant.scale.reshape(-1, 1, 1, 1)
    error = np.abs(real(conv(before).inputs[1]) - real(weight))
    assert (error <= step / 2 + 1e-9).all()
    assert (
        np.abs(real(conv(before).inputs[2]) - real(bias)).max() <= bias.quant.scale.max() / 2 + 1e-9
    )
    np.testing.assert_allclose(bias.quant.scale, weight.quant.scale * np.float32(0.02), rtol=1e-5)


@pytest.mark.parametrize("io", ["uint8", "int8"])
def test_outputs_differ_by_rounding_only(io: str) -> None:
    """One layer by one step; a chain that ends in a softmax, which stretches, by a few."""
    cases = ((layer(1, 250, 125), 1), (layer(0, 255, 10), 1), (legacy_uint8(), 6))
    for before, most in cases:
        after = apply(before, f"upgrade(io={io})").model
        assert after.main.inputs[0].dtype == io
        for seed in range(5):
            old = run(before, seed)[0].astype(int)
            new = run(after, seed)[0].astype(int) if io == "uint8" else _int8_run(after, seed)
            assert np.abs(old - new).max() <= most


def _int8_run(model: Model, seed: int) -> np.ndarray:
    """Runs an int8 model on the numbers that `run` gives its uint8 original."""
    from ai_edge_litert.interpreter import Interpreter

    from litesmith.tflite.write import to_bytes
    from tests.runtime import random_input

    interpreter = Interpreter(model_content=to_bytes(model))
    interpreter.allocate_tensors()
    (detail,) = interpreter.get_input_details()
    pixels = random_input(np.random.default_rng(seed), detail["shape"], np.uint8)
    interpreter.set_tensor(detail["index"], (pixels.astype(int) - 128).astype(np.int8))
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).astype(int) + 128


def test_nothing_between_the_ends_stays_uint8() -> None:
    model = apply(legacy_uint8(), "upgrade").model
    inner = [t for op in model.main.ops if op.kind != "QUANTIZE" for t in (*op.inputs, *op.outputs)]
    assert {t.dtype for t in inner if t is not None and t.quant} == {"int8", "int32"}
    assert [t.dtype for t in (*model.main.inputs, *model.main.outputs)] == ["uint8", "uint8"]
    assert model.signatures[0].key == "classify"


def test_a_concatenation_of_other_scales_is_rescaled_first() -> None:
    model = apply(legacy_uint8(), "upgrade").model
    joined = next(op for op in model.main.ops if op.kind == "CONCATENATION")
    scales = {float(t.quant.scale[0]) for t in (*joined.inputs, *joined.outputs) if t and t.quant}
    assert scales == {np.float32(0.05)}


def test_an_op_without_an_int8_kernel_stays_between_conversions() -> None:
    b = Builder()
    x = b.input("x", (1, 4), "uint8", Quant.of(0.1, 128))
    y = b.op("ADD", x, x, quant=Quant.of(0.2, 128))
    y = b.op("CUSTOM", y, custom="Odd", shape=(1, 4), dtype="uint8", quant=Quant.of(0.2, 128))
    change = apply(b.model(b.op("ADD", y, y, quant=Quant.of(0.4, 128))), "upgrade")
    kinds = [op.kind for op in change.model.main.ops]
    assert kinds == ["QUANTIZE", "ADD", "QUANTIZE", "CUSTOM", "QUANTIZE", "ADD", "QUANTIZE"]
    assert "no int8 kernel" in change.skipped[0].why


def test_a_model_without_uint8_is_refused() -> None:
    with pytest.raises(CannotApply, match="nothing to do"):
        apply(convnet(), "upgrade")
    with pytest.raises(CannotApply, match="io='float'"):
        apply(legacy_uint8(), "upgrade(io=float)")


def test_what_is_only_converted_stays() -> None:
    """An int8 model that is called with uint8 computes nothing in it; conversions were added."""
    b = Builder()
    x = b.op("QUANTIZE", b.input("x", (1, 4), "uint8", Quant.of(0.1, 128)), quant=Quant.of(0.1))
    y = b.op("ADD", x, x, quant=Quant.of(0.2))
    model = b.model(b.op("QUANTIZE", y, dtype="uint8", quant=Quant.of(0.2, 128)))
    assert not legacy_tensors(model) and not any("uint8" in f.what for f in findings(model))
    with pytest.raises(CannotApply, match="no op of the model computes in uint8"):
        apply(model, "upgrade")
    assert {t.dtype for t in apply(model, "upgrade(io=int8)").model.main.inputs} == {"int8"}
