"""`borders`: inputs and outputs in another type stand for the same numbers."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.check import problems
from litesmith.ir.types import Model, Quant, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.run.session import Session
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.zoo_float import context, conv

SMALL = ("int8", "uint8")


def float_model() -> Model:
    b = Builder()
    x = conv(b, b.input("image", (1, 6, 6, 3)), 4, fused_activation_function="RELU")
    return b.model(conv(b, x, 2, 3), signature="serve")


def quantized(io: str) -> Model:
    model = float_model()
    return apply(model, f"quantize(io={io})", context(model)).model


def stored(tensor, values: np.ndarray) -> np.ndarray:
    if tensor.quant is None:
        return values
    codes = np.rint(values / tensor.quant.scale[0]) + tensor.quant.zero_point[0]
    span = np.iinfo(tensor.dtype)
    return np.clip(codes, span.min, span.max).astype(tensor.dtype)


def ends(model: Model) -> list[str]:
    return [t.dtype for t in (*model.main.inputs, *model.main.outputs)]


@pytest.mark.parametrize("before", ["float", *SMALL])
@pytest.mark.parametrize("after", ["float", *SMALL])
def test_any_type_for_any_other(before: str, after: str) -> None:
    model = quantized(before)
    change = apply(model, f"borders(io={after})")
    assert not list(problems(change.model))
    assert ends(change.model) == ["float32" if after == "float" else after] * 2
    assert [t.name for t in change.model.main.inputs] == ["image"]
    assert [t.name for t in change.model.main.outputs] == [t.name for t in model.main.outputs]
    (serve,) = change.model.signatures
    assert [t for _, t in serve.inputs] == list(change.model.main.inputs)
    assert [t for _, t in serve.outputs] == list(change.model.main.outputs)
    values = np.random.default_rng(0).normal(size=(1, 6, 6, 3)).astype(np.float32)
    np.testing.assert_allclose(reals(model, values), reals(change.model, values), atol=1e-6)
    again = apply(change.model, f"borders(io={after})")
    assert not again.touched
    assert to_bytes(again.model) == to_bytes(change.model)


def test_no_conversion_is_left_at_int8_ends() -> None:
    change = apply(quantized("float"), "borders(io=int8)")
    assert Counter(op.kind for op in change.model.main.ops) == {"CONV_2D": 2}
    there_and_back = apply(change.model, "borders(io=float) | borders(io=int8)").model
    assert Counter(op.kind for op in there_and_back.main.ops) == {"CONV_2D": 2}


def test_an_input_that_is_computed_with_in_float_stays_and_says_so() -> None:
    model = float_model()
    change = apply(model, "borders(io=int8)")
    assert not change.touched
    assert [skip.where for skip in change.skipped] == ["input 'image'", "output 'conv_2d_6'"]
    assert "computed with in float; it stays float32" in change.skipped[0].why


def test_an_output_that_others_read_is_still_made() -> None:
    b = Builder()
    x = conv(b, b.input("image", (1, 6, 6, 3)), 4)
    model = b.model(x, conv(b, b.op("RELU", x), 2, 3))
    model = apply(model, "quantize(io=float)", context(model)).model
    change = apply(model, "borders(io=uint8)")
    assert ends(change.model) == ["uint8"] * 3
    assert not list(problems(change.model))


def test_int64_ends_become_int32_where_they_are_inside() -> None:
    b = Builder()
    x = b.input("x", (2,), "int64")
    rows = b.op("GATHER", b.const(zoo.noise(9, 4)), x)
    model = b.model(b.op("ARG_MAX", rows, np.int32(1), output_type="INT64"), signature="serve")
    kept = apply(model, "rewrite(int32=true)").model
    assert ends(kept) == ["int64", "int64"]
    change = apply(kept, "borders(int32=true)")
    assert ends(change.model) == ["int32", "int32"]
    assert Counter(op.kind for op in change.model.main.ops) == {"GATHER": 1, "ARG_MAX": 1}
    with Session(model, "cpu:1") as old, Session(change.model, "cpu:1") as new:
        for session in (old, new):
            next(iter(session.inputs.values()))[...] = [7, 3]
            session.run()
        pair = [next(iter(session.outputs.values())).tolist() for session in (old, new)]
    assert pair[0] == pair[1]


def cast(b: Builder, x: Tensor, dtype: str) -> Tensor:
    return b.op("CAST", x, in_data_type=x.dtype.upper(), out_data_type=dtype.upper())


def handed_on(b: Builder) -> tuple[Tensor, ...]:
    return (cast(b, b.input("x", (2,), "int64"), "int32"),)


def handed_back(b: Builder) -> tuple[Tensor, ...]:
    return (cast(b, b.input("x", (2,), "int32"), "int64"),)


def there_and_back(b: Builder) -> tuple[Tensor, ...]:
    narrow = cast(b, b.input("x", (2,), "int64"), "int32")
    return b.op("ADD", narrow, narrow), cast(b, narrow, "int64")


def in_both_types(b: Builder) -> tuple[Tensor, ...]:
    narrow = b.op("ADD", b.input("x", (2,), "int32"), np.int32([1]))
    return cast(b, narrow, "int64"), narrow


def twice(b: Builder) -> tuple[Tensor, ...]:
    narrow = b.op("ADD", b.input("x", (2,), "int32"), np.int32([1]))
    return cast(b, narrow, "int64"), cast(b, narrow, "int64")


def read_again(b: Builder) -> tuple[Tensor, ...]:
    wide = cast(b, b.op("ADD", b.input("x", (2,), "int32"), np.int32([1])), "int64")
    return wide, cast(b, wide, "float32")


def constant(b: Builder) -> tuple[Tensor, ...]:
    x = b.input("x", (2,), "int32")
    return b.op("ADD", x, x), cast(b, b.const(np.int32([4, 5])), "int64")


def quantized_at_once(b: Builder) -> tuple[Tensor, ...]:
    inside = b.op("QUANTIZE", b.input("x", (2,)), quant=Quant.of(0.5, 3), dtype="int8")
    return inside, b.op("DEQUANTIZE", inside)


def quantized_and_back(b: Builder) -> tuple[Tensor, ...]:
    inside = b.op("QUANTIZE", b.input("x", (2,)), quant=Quant.of(0.5, 3), dtype="int8")
    return (b.op("DEQUANTIZE", inside),)


def in_float_twice(b: Builder) -> tuple[Tensor, ...]:
    inside = b.op("QUANTIZE", b.input("x", (2,)), quant=Quant.of(0.5, 3), dtype="int8")
    sure = b.op("RELU", inside, quant=Quant.of(0.5, 3), dtype="int8")
    return b.op("DEQUANTIZE", sure), b.op("DEQUANTIZE", sure), sure


ODD = [handed_on, handed_back, there_and_back, in_both_types, twice, read_again, constant]
ODD += [quantized_at_once, quantized_and_back, in_float_twice]


@pytest.mark.parametrize("asked", ["int32=true", "io=int8", "io=uint8", "io=float"])
@pytest.mark.parametrize("make", ODD)
def test_ends_that_have_much_in_common_stay_apart(
    make: Callable[[Builder], tuple[Tensor, ...]], asked: str
) -> None:
    b = Builder()
    model = b.model(*make(b), signature="serve")
    change = apply(model, f"borders({asked})")
    graph = change.model.main
    assert not list(problems(change.model))
    assert [t.name for t in graph.outputs] == [t.name for t in model.main.outputs]
    assert len({*graph.inputs, *graph.outputs}) == len(graph.inputs) + len(graph.outputs)
    assert len({t.name for t in graph.tensors}) == len(graph.tensors)
    (serve,) = change.model.signatures
    assert [t for _, t in serve.outputs] == list(graph.outputs)
    values = np.array([3, 1])
    for before, after in zip(reals(model, values), reals(change.model, values), strict=True):
        np.testing.assert_array_equal(before, after)


def reals(model: Model, values: np.ndarray) -> list[np.ndarray]:
    """The outputs of a model for real numbers, as real numbers."""
    with Session(model, "cpu:1") as session:
        next(iter(session.inputs.values()))[...] = stored(model.main.inputs[0], values)
        session.run()
        found = [np.array(array, np.float64) for array in session.outputs.values()]
    return [
        array if t.quant is None else (array - t.quant.zero_point[0]) * t.quant.scale[0]
        for array, t in zip(found, model.main.outputs, strict=True)
    ]


def test_sizes_that_are_final_are_nowhere_free() -> None:
    model = zoo.resizable()
    assert any(t.dynamic for t in model.main.tensors)
    change = apply(model, "borders(fixed=true)")
    assert not any(t.dynamic for g in change.model.graphs for t in g.tensors)
    assert change.touched
    named = [t for s in change.model.signatures for _, t in s.inputs]
    assert all(t in change.model.main.inputs for t in named)


def test_nothing_asked_is_nothing_done() -> None:
    model = quantized("float")
    assert to_bytes(apply(model, "borders").model) == to_bytes(model)


def test_a_type_that_is_not_there_is_named() -> None:
    with pytest.raises(BadInput, match=r"borders\(io=int4\): there are float, int8, uint8"):
        apply(quantized("float"), "borders(io=int4)")


def test_graphs_that_control_flow_runs_keep_their_types() -> None:
    model = zoo.branches()
    change = apply(model, "borders(io=int8, int32=true)")
    assert [[t.dtype for t in g.tensors] for g in change.model.graphs[1:]] == [
        [t.dtype for t in g.tensors] for g in model.graphs[1:]
    ]
