"""The laws of steps, for every step on every sort of model."""

import numpy as np
import pytest

from litesmith.errors import CannotApply
from litesmith.ir.check import problems
from litesmith.ir.show import type_text
from litesmith.ir.types import Model
from litesmith.passes import STEPS
from litesmith.passes.recipe import apply, parse, step_class, text_of
from litesmith.passes.step import Change, Context
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from tests.runtime import run
from tests.zoo import MODELS, NOT_RUNNABLE

# Every step at its defaults, and every setting of every step at another value.
RECIPES = (
    *STEPS,
    "fold(float16=true)",
    "fold(shapes=true)",
    "fuse(pad=false)",
    "fuse(scale=false)",
    "fuse(bias=false)",
    "fuse(activation=false)",
    "cleanup | fold(float16=true) | fuse | cleanup",
    "upgrade | cleanup",
)

PAIRS = [(recipe, name) for recipe in RECIPES for name in MODELS]

# Upgrading rounds in other places; its own test bounds by how much.
EXACT_PAIRS = [(r, n) for r, n in PAIRS if "upgrade" not in r and n not in NOT_RUNNABLE]


def interface(model: Model) -> list[object]:
    """Everything that a caller of the model relies on."""
    return [
        [(t.name, type_text(t)) for t in (*model.main.inputs, *model.main.outputs)],
        [(s.key, [n for n, _ in (*s.inputs, *s.outputs)]) for s in model.signatures],
        [(name, content.tobytes()) for name, content in model.metadata],
        model.attached,
    ]


@pytest.mark.parametrize(("recipe", "name"), PAIRS)
def test_laws(recipe: str, name: str) -> None:
    model = MODELS[name]()
    before = to_bytes(model)
    try:
        change = apply(model, recipe)
    except CannotApply:
        assert to_bytes(model) == before
        return
    assert to_bytes(model) == before, "the input was changed"
    assert not list(problems(change.model))
    assert interface(change.model) == interface(model)
    assert to_bytes(apply(MODELS[name](), recipe).model) == to_bytes(change.model), (
        "not deterministic"
    )
    assert all(skip.where and skip.why for skip in change.skipped)
    assert all(isinstance(text, str) and text for text in change.touched)
    reread = read(memoryview(to_bytes(change.model)))
    assert to_bytes(reread) == to_bytes(change.model)


@pytest.mark.parametrize(("recipe", "name"), EXACT_PAIRS)
def test_results_stay(recipe: str, name: str) -> None:
    """In the runtime: floats to 1e-5 of the largest value, integers to the bit."""
    model = MODELS[name]()
    change = apply(model, recipe)
    for seed in range(3):
        expected = run(model, seed, runs=2)
        for a, b in zip(expected, run(change.model, seed, runs=2), strict=True):
            assert a.dtype == b.dtype
            if a.dtype.kind == "f":
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * np.abs(a).max())
            else:
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("recipe", ["cleanup", "fold", "fuse", "cleanup | fold | fuse"])
@pytest.mark.parametrize("name", MODELS)
def test_tidying_twice_is_tidying_once(recipe: str, name: str) -> None:
    once = apply(MODELS[name](), recipe)
    again = apply(once.model, recipe)
    assert to_bytes(again.model) == to_bytes(once.model)


@pytest.mark.parametrize("name", MODELS)
def test_tidying_never_grows_a_file(name: str) -> None:
    tidy = apply(MODELS[name](), "cleanup | fold | fuse").model
    assert len(to_bytes(tidy)) <= len(to_bytes(MODELS[name]()))


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_a_frozen_dataclass_with_a_docstring(name: str) -> None:
    step = step_class(name)()
    assert step_class(name).__doc__
    for field in type(step).__dataclass_fields__:  # type: ignore[attr-defined]
        with pytest.raises(AttributeError):
            setattr(step, field, None)
    assert isinstance(step.apply(MODELS["legacy_uint8"](), Context()), Change)


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_text_round_trips(recipe: str) -> None:
    assert text_of(parse(recipe)) == recipe
    assert parse(text_of(parse(recipe))) == parse(recipe)
