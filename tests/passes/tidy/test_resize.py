"""`resize`: other sizes, the same answers as the runtime's own resize; refusals in a line."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

import litesmith
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.check import problems
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply, parse, text_of
from litesmith.passes.core.step import Change
from litesmith.passes.tidy.resize import Resize, shape_text, split_shape
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from tests.runtime import random_input
from tests.zoo import MODELS, NOT_RUNNABLE, branches, loop, noise, resizable, two_signatures
from tests.zoo_float import FLOATS

Shapes = tuple[tuple[int, ...], ...]
EVERY = {
    name: make
    for name, make in {**MODELS, **FLOATS}.items()
    if name not in NOT_RUNNABLE and name != "strings"
}


def resized(model: Model, *texts: str) -> Change:
    return apply(model, (Resize(texts),))


def answers(model: Model, shapes: Sequence[tuple[int, ...]] | None = None) -> list[np.ndarray]:
    """What stock LiteRT gives, its inputs resized first."""
    runtime = Interpreter(model_content=to_bytes(model))
    details = runtime.get_input_details()
    for detail, shape in zip(details, shapes or (), strict=shapes is not None):
        runtime.resize_tensor_input(detail["index"], shape)
    runtime.allocate_tensors()
    random = np.random.default_rng(0)
    for detail in runtime.get_input_details():
        values = random_input(random, detail["shape"], detail["dtype"])
        runtime.set_tensor(detail["index"], values)
    runtime.invoke()
    return [runtime.get_tensor(one["index"]) for one in runtime.get_output_details()]


def other_shapes(model: Model) -> Iterator[Shapes]:
    """Each dimension of each input doubled and raised by one; and all batches doubled."""
    shapes = tuple(tensor.shape for tensor in model.main.inputs)
    for place, shape in enumerate(shapes):
        for axis, size in enumerate(shape):
            for new in (2 * size, size + 1):
                changed = (*shape[:axis], new, *shape[axis + 1 :])
                yield (*shapes[:place], changed, *shapes[place + 1 :])
    yield tuple((2 * shape[0], *shape[1:]) if shape else shape for shape in shapes)


@pytest.mark.parametrize("name", EVERY)
def test_the_answers_are_those_of_the_runtime_resized(name: str) -> None:
    """Whatever is not refused opens, keeps its promises of shapes, and gives the same bits."""
    model = EVERY[name]()
    before = to_bytes(model)
    names = [tensor.name for tensor in model.main.inputs]
    for shapes in other_shapes(model):
        texts = [shape_text(*pair) for pair in zip(names, shapes, strict=True) if pair[1]]
        try:
            change = resized(model, *texts)
        except CannotApply as error:
            assert "\n" not in str(error)
            continue
        new = change.model
        assert [t.shape for t in new.main.inputs] == list(shapes)
        assert not list(problems(new))
        assert to_bytes(read(memoryview(to_bytes(new)))) == to_bytes(new)
        expected, got = answers(model, shapes), answers(new)
        assert [t.shape for t in new.main.outputs] == [a.shape for a in got]
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a, b)
    assert to_bytes(model) == before


@pytest.mark.parametrize("name", ["convnet", "careless", "hybrid", "nothing", "resizable"])
def test_the_sizes_in_the_file_change_no_byte_of_a_fixed_model(name: str) -> None:
    model = MODELS[name]()
    texts = [shape_text(t.name, t.shape) for t in model.main.inputs]
    fixed = apply(model, "borders(fixed=true)").model
    assert to_bytes(resized(fixed, *texts).model) == to_bytes(fixed)


def test_free_dimensions_are_fixed_and_shapes_can_be_folded() -> None:
    change = resized(resizable(), "x=5,4")
    graph = change.model.main
    assert change.touched == ("'x' is float32[5,4]",)
    assert graph.inputs[0].dynamic is None
    assert graph.outputs[0].shape == (5, 2, 2)
    folded = apply(change.model, "fold").model
    assert [op.kind for op in folded.main.ops] == ["RESHAPE"]
    assert [a.shape for a in answers(folded)] == [(5, 2, 2)]


def test_an_input_that_is_not_named_stays_free() -> None:
    b = Builder()
    x, y = b.input("x", (-1, 4)), b.input("y", (-1, 4))
    model = b.model(b.op("NEG", x), b.op("EXP", y))
    new = resized(model, "y=3,4").model.main
    assert [t.dynamic for t in new.inputs] == [(-1, 4), None]
    assert [t.shape for t in new.outputs] == [(1, 4), (3, 4)]


def test_an_empty_constant_needs_no_content() -> None:
    """As converters write the shape of a scalar."""
    b = Builder()
    x = b.input("x", (1, 4))
    size = b.op("SHAPE", x, out_type="INT32")
    rows = b.op("STRIDED_SLICE", size, [0], [1], [1])
    scalar = b.op("RESHAPE", rows, Tensor("empty", (0,), "int32"), shape=())
    shape = b.op("PACK", scalar, np.int32(4), values_count=2, shape=(2,), dtype="int32")
    new = resized(b.model(b.op("RESHAPE", x, shape, shape=(1, 4))), "3,4").model
    assert new.main.outputs[0].shape == (3, 4)


def test_a_custom_op_takes_what_it_took() -> None:
    b = Builder()
    y = b.op("CUSTOM", b.input("y", (-1, 2)), custom="Mystery", shape=(1, 3))
    model = b.model(b.op("ABS", b.input("x", (-1, 2))), y)
    for texts in (["x=3,2"], ["x=3,2", "y=1,2"]):
        new = resized(model, *texts).model.main
        assert [t.shape for t in new.outputs] == [(3, 2), (1, 3)]
    with pytest.raises(CannotApply, match="CUSTOM Mystery"):
        resized(model, "y=2,2")


def test_graphs_that_are_called_follow() -> None:
    new = resized(loop(), "x=7").model
    assert [[t.shape for t in graph.inputs] for graph in new.graphs] == [[(1,), (7,)]] * 3
    with pytest.raises(CannotApply, match="ADD"):
        resized(branches(), "x=7")  # both branches add a constant of four


def test_every_signature_that_has_the_name_follows() -> None:
    for name in ("x", "in"):
        new = resized(two_signatures(), f"{name}=7").model
        assert [graph.outputs[0].shape for graph in new.graphs] == [(7,), (7,)]
        assert [s.inputs[0][1].shape for s in new.signatures] == [(7,), (7,)]
        assert litesmith.Session(new, signature="down").outputs["out"].shape == (7,)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["y=1,4"], "no input 'y'; there are x float32[?,4]"),
        (["x=1,4,1"], "give 2 sizes"),
        (["x=0,4"], "from 1 on"),
        (["x=-1,4"], "from 1 on"),
        (["x=1.5,4"], "from 1 on"),
        (["x=,4"], "from 1 on"),
        (["x="], "from 1 on"),
        (["x=4294967296,4"], "from 1 on"),
        (["x=²,4"], "from 1 on"),
        (["x=1,4", "1,4"], "has a shape already"),
    ],
)
def test_what_is_no_shape_of_an_input_is_refused(texts: list[str], words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        resized(resizable(), *texts)


def test_several_inputs_need_names() -> None:
    with pytest.raises(BadInput, match="no input ''; there are i int32"):
        resized(loop(), "7")


def test_an_op_that_cannot_take_it_is_named() -> None:
    b = Builder()
    model = b.model(b.op("ADD", b.input("x", (1, 4)), noise(4), name="sum"))
    with pytest.raises(CannotApply, match=r"ADD 'sum' cannot take inputs of float32\[1,5\]"):
        resized(model, "1,5")


@pytest.mark.parametrize("name", ["x", "a=b", "serving_default_x:0", "名"])
def test_a_text_tells_the_name_and_the_sizes(name: str) -> None:
    assert split_shape(shape_text(name, (1, 1280))) == (name, (1, 1280))
    step = (Resize((shape_text(name, (1, 1280)),)),)
    assert parse(text_of(step)) == step
