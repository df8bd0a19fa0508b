"""Differences: none between equals, each kind of change named, names alone are no change."""

from dataclasses import replace

import numpy as np
import pytest

from litesmith.anatomy.model_diff import differences
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from tests.zoo import MODELS, careless, convnet, custom, described, legacy_uint8


def net(
    weight: float = 1.0,
    activation: str = "NONE",
    names: str = "a",
    double: bool = False,
    bias: bool = True,
) -> Model:
    b = Builder()
    x = b.input("x", (1, 4))
    y = b.op(
        "FULLY_CONNECTED",
        x,
        np.full((2, 4), weight, np.float32),
        np.zeros(2, np.float32) if bias else None,
        fused_activation_function=activation,
        name=names,
    )
    y = (
        b.op("SOFTMAX", y, name="out")
        if not double
        else b.op("SOFTMAX", b.op("NEG", y), name="out")
    )
    return b.model(y)


@pytest.mark.parametrize("name", MODELS)
def test_a_copy_does_not_differ(name: str) -> None:
    model = MODELS[name]()
    assert differences(model, read(memoryview(to_bytes(model)))) == []


def test_names_inside_are_no_difference() -> None:
    assert differences(net(names="a"), net(names="b")) == []


def test_values() -> None:
    (found,) = differences(net(1.0), net(1.5))
    assert found.kind == "constant"
    assert found.after == "8 of 8 values, by at most 0.5"


def test_options() -> None:
    (found,) = differences(net(), net(activation="RELU"))
    assert (found.before, found.after) == ("", "fused_activation_function=RELU")


def test_an_added_op() -> None:
    found = differences(net(), net(double=True))
    assert [(d.kind, d.where) for d in found][:2] == [("ops", "NEG"), ("op", "op 1")]
    assert found[1].after.startswith("NEG(")


def test_rewired() -> None:
    def pair(swap: bool) -> Model:
        b = Builder()
        x, y = b.input("x", (2,)), b.input("y", (2,))
        return b.model(b.op("SUB", y, x, name="d") if swap else b.op("SUB", x, y, name="d"))

    assert [d.where for d in differences(pair(False), pair(True))] == [
        "op 0 (SUB) input 0",
        "op 0 (SUB) input 1",
    ]


def test_interface_metadata_and_scales() -> None:
    found = differences(convnet(), described())
    assert {d.where for d in found if d.kind == "metadata"} == {
        "min_runtime_version",
        "TFLITE_METADATA",
        "(attached files)",
    }
    found = differences(convnet(), replace(convnet(), signatures=()))
    assert [(d.where, d.before, d.after) for d in found] == [
        ("signatures", "serving_default(image=image) -> scores=scores", "none")
    ]
    upgraded = differences(legacy_uint8(), apply(legacy_uint8(), "upgrade(io=int8)").model)
    assert any("scale" in d.where for d in upgraded)
    assert any(d.where == "inputs" for d in upgraded)


def test_the_small_print() -> None:
    """Versions, custom options, argument names, the description, zero points, what feeds an op."""
    model = custom()
    op = model.main.ops[0]

    def with_op(**changes) -> Model:
        ops = (replace(op, **changes), *model.main.ops[1:])
        return replace(model, graphs=(replace(model.main, ops=ops),))

    assert [d.where for d in differences(model, with_op(version=2))] == [
        "op 0 (CUSTOM Mystery) version"
    ]
    other = with_op(rest={"custom_options": b"other"})
    assert [d.where for d in differences(model, other)] == ["op 0 (CUSTOM Mystery) custom options"]
    assert [d.where for d in differences(model, replace(model, description="new"))] == [
        "description"
    ]
    signature = convnet().signatures[0]
    renamed = replace(signature, inputs=(("picture", signature.inputs[0][1]),))
    assert differences(convnet(), replace(convnet(), signatures=(renamed,)))
    assert differences(net(), net(bias=False))


def test_nan_equals_itself() -> None:
    b = Builder()
    model = b.model(b.op("ADD", b.input("x", (1,)), np.float32("nan")))
    assert differences(model, read(memoryview(to_bytes(model)))) == []


def test_what_a_step_removed_is_listed() -> None:
    found = differences(careless(), apply(careless(), "cleanup").model)
    gone = [d.before for d in found if d.kind == "op" and not d.after and d.before]
    assert any(text.startswith("EXP(") for text in gone)
