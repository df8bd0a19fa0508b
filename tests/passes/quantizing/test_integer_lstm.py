"""LSTMs that are one op, in the integers of the runtime's kernel."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from litesmith.errors import CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.check import problems
from litesmith.ir.edit import rewrite, with_main
from litesmith.ir.types import Model, Tensor, frozen
from litesmith.passes.core.lstm import CELL, STATE, cells_of
from litesmith.passes.core.recipe import apply
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from tests.quantized import TARGETS, broken_laws, float_inside, results, snr, worst
from tests.zoo import noise
from tests.zoo_float import FLOATS, context, dense, few

INPUTS, UNITS, STEPS = 12, 16, 6


def lstm(
    gates: int = 4,
    *,
    batch: int = 1,
    peepholes: bool = False,
    outputs: int = 0,
    norms: bool = False,
    size: float = 0.5,
    bias: float = 0.0,
    **options,
) -> Model:
    """An LSTM on its own; `outputs` of a projection; 3 gates are without one for the input."""
    b = Builder()
    width = outputs or UNITS
    is_turned = bool(options.get("time_major"))
    x = b.input("x", (STEPS, batch, INPUTS) if is_turned else (batch, STEPS, INPUTS))
    absent = [None] * (4 - gates)
    weights = absent + [noise(UNITS, INPUTS, seed=s, scale=size) for s in range(gates)]
    recurrent = absent + [noise(UNITS, width, seed=9 + s, scale=size) for s in range(gates)]
    looks = [noise(UNITS, seed=20 + s) if peepholes else None for s in range(3)]
    looks = [None, *looks[1:]] if gates == 3 else looks
    biases = absent + [noise(UNITS, seed=30 + s) + np.float32(bias) for s in range(gates)]
    projection = (
        (noise(outputs, UNITS, seed=40), noise(outputs, seed=41)) if outputs else (None,) * 2
    )
    states = [Tensor(name, (batch, n), variable=True) for name, n in (("h", width), ("c", UNITS))]
    given = [1 + noise(UNITS, seed=50 + s) for s in range(4)] if norms else [None] * 4
    inputs = (*weights, *recurrent, *looks, *biases, *projection, *states, *given)
    options = {"fused_activation_function": "TANH", **options}
    b.op("UNIDIRECTIONAL_SEQUENCE_LSTM", x, *inputs, shape=(*x.shape[:2], width), **options)
    return b.model(b.last.outputs[0])


def integer(model: Model, to: str = "int8", io: str = "float") -> Model:
    after = apply(model, f"quantize(to={to}, io={io})", context(model)).model
    assert not broken_laws(after)
    return after


VARIANTS = {
    "plain": lstm(),
    "two in a batch": lstm(batch=2),
    "time first": lstm(batch=2, time_major=True),
    "clipped": lstm(cell_clip=0.3),
    "no input gate": lstm(3),
    "peepholes": lstm(peepholes=True),
    "peepholes and no input gate": lstm(3, peepholes=True),
    "projection": lstm(outputs=7),
    "clipped projection": lstm(outputs=7, proj_clip=0.2),
    "large weights": lstm(size=1.0),
    "small weights": lstm(size=1e-3),
    "cells that grow": lstm(bias=3.0),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", VARIANTS)
def test_integers_stay_near(name: str, target: str) -> None:
    model = VARIANTS[name]
    after = integer(model)
    assert not float_inside(after.main)
    assert worst(model, after, few(model, 8, seed=5), target) > 24


def test_a_layer_on_either_side() -> None:
    """The output has no zero point; whatever it is read with, no conversion stands between."""
    model = FLOATS["recurrent"]()
    after = integer(model)
    kinds = [op.kind for op in after.main.ops]
    layers = ["FULLY_CONNECTED", "UNIDIRECTIONAL_SEQUENCE_LSTM", "FULLY_CONNECTED"]
    assert kinds == ["QUANTIZE", *layers, "DEQUANTIZE"]
    assert worst(model, after, few(model, 8, seed=5)) > 24


@pytest.mark.parametrize("io", ["int8", "float"])
def test_forms_that_the_kernel_wants(io: str) -> None:
    after = read(memoryview(to_bytes(integer(VARIANTS["projection"], io=io))))
    (op,) = [op for op in after.main.ops if op.intermediates]
    state, cell, (output,) = op.inputs[STATE], op.inputs[CELL], op.outputs
    assert state is not None and cell is not None and state.variable and cell.variable
    assert state.quant is not None and cell.quant is not None and output.quant is not None
    assert (state.dtype, cell.dtype, output.dtype) == ("int8", "int16", "int8")
    assert state.quant.scale == output.quant.scale
    assert state.quant.zero_point == output.quant.zero_point == 0
    assert np.frexp(cell.quant.scale)[0] == 0.5
    assert [t.dtype for t in op.intermediates] == ["int16"] * 4 + ["int8"]
    assert not list(problems(after))


def test_a_sample_begins_with_the_state_that_the_last_one_left() -> None:
    """A cell that counts: its range is that of all samples in a row, as in the runtime."""
    model, scales = lstm(bias=4.0), []
    for count in (1, 30):
        after = apply(model, "quantize(to=int8)", context(model, count)).model
        (cell,) = cells_of(after.main)
        assert cell.quant is not None
        scales.append(float(cell.quant.scale[0]))
    assert scales[1] > scales[0]


LEFT = {
    "norms": (lstm(norms=True), "its gates are normalized"),
    "relu": (lstm(fused_activation_function="RELU"), "activation RELU has no integer form"),
    "peepholes": (lstm(peepholes=True, outputs=7), "it has peepholes and a projection"),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_the_kernel_cannot_stays_float(name: str) -> None:
    alone, why = LEFT[name]
    b = Builder()
    made = dense(b, b.input("y", (1, 4)), 3)
    (op,) = alone.main.ops
    b.inputs += alone.main.inputs
    b.ops.append(op)
    model = b.model(made, *op.outputs)
    change = apply(model, "quantize", context(model))
    assert float_inside(change.model.main) == ["UNIDIRECTIONAL_SEQUENCE_LSTM"]
    (skip,) = change.skipped
    assert why in skip.why


@pytest.mark.parametrize("place", [1, 5, 12])
def test_constants_that_are_no_numbers_are_refused(place: int) -> None:
    """Input weights, recurrent weights, a bias."""
    model = lstm()
    (op,) = model.main.ops
    constant = op.inputs[place]
    assert constant is not None and constant.data is not None
    spoiled = np.array(constant.data)
    spoiled.reshape(-1)[0] = np.inf
    inputs = tuple(replace(t, data=frozen(spoiled)) if t is constant else t for t in op.inputs)
    changed = rewrite(model.main, ops={op: (replace(op, inputs=inputs),)})
    with pytest.raises(CannotApply, match="infinite or not numbers"):
        apply(with_main(model, changed), "quantize", context(model))


@pytest.mark.parametrize("to", ["int8", "w4a8"])
def test_weights_of_nothing_but_zeros(to: str) -> None:
    """Only biases are left, and they must not be lost."""
    model = lstm(size=0.0)
    assert worst(model, integer(model, to), few(model, 4)) > 30


@pytest.mark.skipif(find_spec("tflite_micro") is None, reason="tflite-micro is not installed")
@pytest.mark.parametrize("name", ["plain", "clipped", "cells that grow", "large weights"])
def test_tensorflow_lite_micro_takes_the_same_file(name: str) -> None:
    model = VARIANTS[name]
    after, data = integer(model, io="int8"), few(model, 4, seed=5)
    (here,), (there,) = results(after, data), results(after, data, "micro")
    assert snr(here, there) > 40
