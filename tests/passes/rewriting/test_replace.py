"""`replace`: a custom op stands where the ops were, and computes what they did."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith import ops
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.build import Builder
from litesmith.ir.model_text import lines
from litesmith.ir.types import Model, Quant
from litesmith.passes.core.recipe import apply
from litesmith.passes.rewriting.replace import matches, parse
from litesmith.run.session import Session
from tests import zoo

FIND = "MUL(MUL(x, RELU6(ADD(x, 3))), 0.16666667)"


@pytest.fixture(autouse=True)
def _scope() -> Iterator[None]:
    with ops.scope():

        @litesmith.op("HardSwish")
        def hard_swish(x):
            return x * np.clip(x + 3, 0, 6) / 6

        yield


def swishes(*, swapped: bool = False, third: float = 3.0, relu: str = "NONE") -> Model:
    b = Builder()
    y = x = b.input("x", (2, 4))
    for _ in range(2):
        pair = (third, x) if swapped else (x, third)
        added = b.op("ADD", *pair, fused_activation_function=relu)
        six = b.op("RELU6", added)
        y = b.op("MUL", b.op("MUL", *((six, x) if swapped else (x, six))), 1 / 6)
        x = b.op("NEG", y)
    return b.model(x)


def kinds(model: Model) -> list[str]:
    return [op.label for op in model.main.ops]


def results(model: Model, target: str = "cpu:1") -> list[np.ndarray]:
    with Session(model, target) as session:
        for name, array in session.inputs.items():
            values = np.random.default_rng(0).normal(0, 2, array.shape)
            is_float = array.dtype.kind == "f"
            session.inputs[name] = values if is_float else (values * 30).astype(array.dtype)
        session.run()
        return [array.copy() for array in session.outputs.values()]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("target", ["cpu:1", "numpy"])
def test_a_pattern_is_found_wherever_it_is(swapped: bool, target: str) -> None:
    model = swishes(swapped=swapped)
    change = apply(model, f'replace(find="{FIND}", op=HardSwish)')
    assert kinds(change.model) == ["CUSTOM HardSwish", "NEG"] * 2
    assert len(change.touched) == 2
    assert "in place of ADD, RELU6, MUL, MUL" in change.touched[0]
    for a, b in zip(results(model), results(change.model, target), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("other", [{"third": 2.0}, {"relu": "RELU"}])
def test_what_only_looks_alike_stays(other: dict) -> None:
    model = swishes(**other)
    change = apply(model, f'replace(find="{FIND}", op=HardSwish)')
    assert change.model is model
    assert change.skipped[0].why == "no ops of it are as the pattern says"


def test_an_activation_that_is_named_is_found() -> None:
    find = "RELU6(ADD(x, 3, fused_activation_function=RELU))"
    change = apply(swishes(relu="RELU"), f'replace(find="{find}", op=Clipped)')
    assert kinds(change.model).count("CUSTOM Clipped") == 2


def test_what_is_read_elsewhere_stays() -> None:
    b = Builder()
    x = b.input("x", (2, 4))
    inner = b.op("RELU6", x)
    model = b.model(b.op("NEG", inner), b.op("EXP", inner))
    assert apply(model, 'replace(find="NEG(RELU6(x))", op=One)').model is model
    assert kinds(apply(model, 'replace(find="RELU6(x)", op=One)').model)[0] == "CUSTOM One"
    model = b.model(b.op("NEG", inner), inner)
    assert apply(model, 'replace(find="NEG(RELU6(x))", op=One)').model is model


def test_ops_by_number() -> None:
    model = swishes()
    change = apply(model, "replace(ops=[0, 1, 2, 3], op=HardSwish)")
    assert kinds(change.model)[:2] == ["CUSTOM HardSwish", "NEG"]
    assert len(change.model.main.ops[0].inputs) == 1, "its function takes no constants"
    for a, b in zip(results(model), results(change.model), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    unknown = apply(model, "replace(ops=[0, 1, 2, 3], op=Unknown)").model
    assert len(unknown.main.ops[0].inputs) == 3, "constants are inputs too"


def test_a_layer_with_its_weights_and_options() -> None:
    @litesmith.op("Dense")
    def dense(x, w, b, *, times=1.0):
        return (x @ w.T + b) * times

    b = Builder()
    x = b.input("x", (1, 4))
    model = b.model(b.op("FULLY_CONNECTED", x, zoo.noise(3, 4), zoo.noise(3)))
    recipe = 'replace(find="FULLY_CONNECTED(x, w, b)", op="Dense(x, w, b, times=2.0)")'
    changed = apply(model, recipe).model
    for target in ("cpu:1", "numpy"):
        for a, b in zip(results(model), results(changed, target), strict=True):
            np.testing.assert_allclose(2 * a, b, rtol=1e-5)


def test_quantized_ops() -> None:
    step = Quant.of(0.05, 0)
    b = Builder()
    x = b.input("x", (1, 8), "int8", quant=step)
    three = b.const(np.int8([60]), quant=step)
    y = b.op("ADD", x, three, quant=step)
    model = b.model(b.op("RELU6", y, quant=step))

    @litesmith.op("Clipped")
    def clipped(x):
        return np.clip(x + 3, 0, 6)

    changed = apply(model, 'replace(find="RELU6(ADD(x, 3))", op=Clipped)').model
    assert kinds(changed) == ["CUSTOM Clipped"]
    for a, b in zip(results(model), results(changed), strict=True):
        assert np.abs(a.astype(int) - b.astype(int)).max() <= 1


def test_several_outputs() -> None:
    @litesmith.op("Both")
    def both(x):
        return -x, np.exp(x)

    b = Builder()
    x = b.input("x", (2, 4))
    model = b.model(b.op("NEG", x), b.op("EXP", x))
    changed = apply(model, "replace(ops=[0, 1], op=Both)").model
    assert kinds(changed) == ["CUSTOM Both"]
    for a, b in zip(results(model), results(changed), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


REFUSED = {
    "replace(ops=[99], op=A)": "no op 99; the model has 10, from 0",
    "replace(ops=[0])": "op= is missing",
    'replace(ops=[0], find="ADD(x, 3)", op=A)': "give find or ops, not both",
    "replace(ops=[0], op=ADD)": "ADD is no custom op",
    'replace(ops=[0], op="A(x)")': "the inputs are what these read",
    'replace(find="ADD(x", op=A)': "write it as MUL",
    'replace(find="x", op=A)': "it is no op",
    'replace(find="ADD(x, [1])", op=A)': "is no op, no word and no number",
    'replace(find="ADD(x, 3)", op="A(y)")': "inputs of A are words of the pattern: x",
    "replace(ops=[0, 3], op=A)": "reads from these ops and feeds them",
    "replace(ops=[0, 1], op=Narrow)": r"gives the shapes \[\(2, 2\)\], not \[\(2, 4\)\]",
}


@pytest.mark.parametrize("recipe", REFUSED)
def test_what_cannot_be_replaced_is_said(recipe: str) -> None:
    litesmith.op("Narrow")(lambda x: x[:, :2])
    with pytest.raises((BadInput, CannotApply), match=REFUSED[recipe]):
        apply(swishes(), recipe)


def test_a_state_is_not_lost() -> None:
    for name in zoo.MODELS:
        model = zoo.MODELS[name]()
        states = [any(t and t.variable for t in op.inputs) for op in model.main.ops]
        for number in (n for n, keeps in enumerate(states) if keeps):
            with pytest.raises(CannotApply, match="an effect or a state"):
                apply(model, f"replace(ops=[{number}], op=A)")


@given(st.text("ADMUL(x, 3)_=[]{}'\"\\0.-", max_size=25))
def test_any_text_is_a_pattern_or_an_error_of_ours(text: str) -> None:
    try:
        list(matches(swishes().main, parse(text)))
    except LitesmithError as error:
        assert "\n" not in str(error)


def test_the_order_of_other_ops_stays() -> None:
    model = swishes()
    changed = apply(model, "replace(ops=[1], op=Other)").model
    before, after = list(lines(model)), list(lines(changed))
    assert [a for a, b in zip(before, after, strict=True) if a != b] == [before[2]]
