"""The laws of steps, for every step on every sort of model."""

import re
from dataclasses import replace

import numpy as np
import pytest

from litesmith.errors import BadInput, CannotApply, CannotRun
from litesmith.ir.check import problems
from litesmith.ir.edit import drop_plan
from litesmith.ir.model_text import type_text
from litesmith.ir.types import Model
from litesmith.passes import STEPS
from litesmith.passes.core.recipe import apply, parse, step_class, text_of
from litesmith.passes.core.step import Change
from litesmith.passes.rewriting.rewrite import WAYS
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from litesmith.training.recipe_context import training_context
from litesmith.training.settings import Training
from tests.pairwise import sampled
from tests.refusals import fitting, refused
from tests.runtime import run
from tests.zoo import MODELS, NOT_RUNNABLE
from tests.zoo_float import FLOATS, context, few

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
    "equalize(strength=0.5)",
    "equalize(absorb=false)",
    "equalize(relu6=true)",
    "quantize(to=int16x8)",
    "quantize(to=w4a8)",
    "quantize(to=dynamic)",
    "quantize(to=dynamic-int4)",
    "quantize(to=dynamic-int4, block=32)",
    "quantize(to=float16)",
    "quantize(to=weight-int8)",
    "quantize(to=weight-int4)",
    "quantize(keep=[0])",
    "quantize(only=[0])",
    "quantize(ranges=mse)",
    "quantize(per_channel=false)",
    "quantize | correct",
    "quantize(to=w4a8) | round",
    "quantize | round(bits=4)",
    "quantize(to=w4a8) | round(search=false)",
    "prune(sparsity=0.25)",
    "prune(block=1x4)",
    "prune(block=2:4)",
    "prune(block=channels)",
    "prune(schedule=gradual)",
    "prune(keep=[0])",
    "prune(only=[0])",
    "prune(tune=false)",
    "cluster(k=4)",
    "cluster(own=[0:8])",
    "cluster(per_channel=false)",
    "cluster(keep=[0])",
    "cluster(only=[0])",
    "cluster(tune=false)",
    f"rewrite(ops=[{', '.join(WAYS)}])",
    "replace(ops=[0], op=Another)",
    'replace(find="ADD(x, y)", op=Another)',
    "rewrite(int32=true)",
    "rewrite(unpack=true)",
    "sparsify(least=0.5)",
    "prune(sparsity=0.75, block=1x4) | sparsify(least=0.5)",
    "prune | cluster(k=8) | quantize",
    "cleanup | fold(float16=true) | fuse | equalize | quantize | correct",
)

# Those that are to change nothing: the results stay to the bit, or to the rounding of floats.
TIDYING = tuple(
    r
    for r in RECIPES
    if all(s.split("(")[0] in ("cleanup", "fold", "fuse") for s in r.split(" | "))
)

EVERY = {**MODELS, **FLOATS}
PAIRS = [
    *((recipe, name) for recipe in RECIPES for name in MODELS),
    *((recipe, name) for recipe in (RECIPES[-1], *STEPS) for name in FLOATS if name not in MODELS),
]

# Other steps round in other places; their own tests bound by how much.
EXACT_PAIRS = [
    *((recipe, name) for recipe in TIDYING for name in MODELS if name not in NOT_RUNNABLE),
    *((TIDYING[-1], name) for name in FLOATS if name not in MODELS),
]


def interface(model: Model) -> list[object]:
    """Everything that a caller of the model relies on."""
    return [
        [(t.name, type_text(t)) for t in (*model.main.inputs, *model.main.outputs)],
        [(s.key, [n for n, _ in (*s.inputs, *s.outputs)]) for s in model.signatures],
        [(name, content.tobytes()) for name, content in drop_plan(model).metadata],
        model.attached,
    ]


def steps_of(recipe: str) -> str:
    """The names of the steps, without their settings."""
    return re.sub(r"\(.*?\)", "", recipe)


def sort_of(name: str) -> tuple[bool, bool, bool]:
    """Whether it runs, has several graphs, and has integers that stand for numbers."""
    model = EVERY[name]()
    is_quantized = any(t.quant is not None for t in model.main.tensors)
    return name in NOT_RUNNABLE, len(model.graphs) > 1, is_quantized


SORTS = {name: sort_of(name) for name in EVERY}
VIEWS = (lambda pair: (steps_of(pair[0]), pair[1]), lambda pair: (pair[0], SORTS[pair[1]]))


@pytest.mark.parametrize(("recipe", "name", "words"), sampled(refused(PAIRS), *VIEWS))
def test_what_does_not_fit_is_refused_in_a_line(recipe: str, name: str, words: str) -> None:
    model = EVERY[name]()
    before = to_bytes(model)
    with pytest.raises((BadInput, CannotApply, CannotRun), match=re.escape(words)) as caught:
        apply(model, recipe, context(model, 3))
    assert not isinstance(caught.value, CannotRun) or name in NOT_RUNNABLE
    assert not isinstance(caught.value, BadInput) or not model.main.ops, "there is an op 0"
    assert "\n" not in str(caught.value)
    assert to_bytes(model) == before


@pytest.mark.parametrize(("recipe", "name"), sampled(fitting(PAIRS), *VIEWS))
def test_laws(recipe: str, name: str) -> None:
    model = EVERY[name]()
    before = to_bytes(model)
    change = apply(model, recipe, context(model, 3))
    assert to_bytes(model) == before, "the input was changed"
    assert not list(problems(change.model))
    assert interface(change.model) == interface(model)
    again = apply(EVERY[name](), recipe, context(model, 3)).model
    assert to_bytes(again) == to_bytes(change.model), "not deterministic"
    assert all(skip.where and skip.why for skip in change.skipped)
    assert all(isinstance(text, str) and text for text in change.touched)
    reread = read(memoryview(to_bytes(change.model)))
    assert to_bytes(reread) == to_bytes(change.model)


@pytest.mark.parametrize(("recipe", "name"), EXACT_PAIRS)
def test_results_stay(recipe: str, name: str) -> None:
    """In the runtime: floats to 1e-5 of the largest value, integers to the bit."""
    model = EVERY[name]()
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
    model = MODELS["legacy_uint8" if name == "upgrade" else "convnet"]()
    given = replace(context(model, 3), reference=model)
    if name in ("correct", "round"):  # they go on from a quantized model
        model = apply(model, "quantize", given).model
    if name == "qat":
        pytest.importorskip("torch")
        given = training_context(model, few(model, 16), (step,), Training(epochs=1))
    assert isinstance(step.apply(model, given), Change)


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipe_text_round_trips(recipe: str) -> None:
    assert text_of(parse(recipe)) == recipe
    assert parse(text_of(parse(recipe))) == parse(recipe)
