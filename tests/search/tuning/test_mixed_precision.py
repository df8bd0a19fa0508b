"""Sensitivity of ops, and mixtures of float and int8 that grow from it."""

import json
from itertools import pairwise
from math import log2

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject
from hypothesis import strategies as st

from litesmith.calibration.observe import tools
from litesmith.errors import BadInput, CannotApply, CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.integer_graph import conversions
from litesmith.precision.fastest_forms import costs_of, forms_of
from litesmith.precision.form_costs import estimated_costs
from litesmith.search.tuning.mixed_precision import Mixture, TriedMixture, mixtures, next_mixture
from litesmith.search.tuning.op_sensitivity import Sensitivity, sensitivities
from tests.draws import draws
from tests.random_graphs import graphs
from tests.zoo import noise
from tests.zoo_float import FLOATS, Few, dense, few, residual, split

BASE = "cleanup | quantize(ranges=mse) | correct"


WIDE = 320


def loud(at: int | None, layers: int = 5) -> Model:
    """Layers in a row; what one of them writes has a channel far beyond all others."""
    b = Builder()
    x = b.input("x", (1, WIDE))
    for number in range(layers):
        weight = noise(WIDE, WIDE, seed=number, scale=WIDE**-0.5)
        weight[0] *= 3000 if number == at else 1
        weight[:, 0] /= 3000 if at is not None and number == at + 1 else 1
        x = b.op("FULLY_CONNECTED", x, weight, noise(WIDE, seed=number + 50, scale=0.1))
    return b.model(b.op("SOFTMAX", dense(b, x, 8, 99)))


def gaussian(model: Model, count: int = 12) -> Few:
    shape = model.main.inputs[0].shape
    return Few(tuple((noise(*shape, seed=900 + n),) for n in range(count)))


def found_in(model: Model, seconds: float = 10.0, on: str = "numpy") -> tuple[Sensitivity, ...]:
    """Of a target whose ops cannot be timed: their times are estimated, the same each time."""
    data = gaussian(model)
    quantized = apply(model, "quantize", Context(tools(data, threads=1))).model
    return sensitivities(model, quantized, data, seconds=seconds, on=on)


# What quantizing an op alone does.


@pytest.mark.parametrize("at", [0, 1, 2])
def test_the_op_that_int8_ruins_is_found(at: int) -> None:
    found = found_in(loud(at))
    worst = max(found, key=lambda row: row.damage)
    assert (worst.place, worst.is_integer) == (at, True)
    others = [row.damage for row in found if row is not worst]
    assert worst.form > 5 * max(others)


def test_every_input_and_op_has_a_row_in_order() -> None:
    model = loud(None)
    places = [row.place for row in found_in(model)]
    assert places == [-1, *range(len(model.main.ops))]


def test_a_row_survives_as_plain_numbers() -> None:
    rows = found_in(loud(None, layers=2), on="cpu:1")
    assert [Sensitivity(*values) for values in json.loads(json.dumps(rows))] == list(rows)
    assert all(row.border_us > 0 for row in rows)
    assert rows[1].float_us > 0 and rows[1].integer_us > 0


def test_without_time_the_damage_is_shared_not_lost() -> None:
    model = loud(1)
    hasty, thorough = found_in(model, seconds=0.0), found_in(model)
    assert sum(row.damage for row in hasty) > 0
    assert len({row.form for row in hasty if row.form}) == 1
    assert max(row.form for row in thorough) > max(row.form for row in hasty)


def test_a_float_model_is_not_sensitive() -> None:
    model = loud(None)
    found = sensitivities(model, model, gaussian(model), on="numpy")
    assert not any(row.is_integer or row.damage for row in found)
    assert mixtures(model, found) == ()


def test_answers_that_are_no_numbers_count_as_ruin() -> None:
    """The logarithm of what int8 rounds to nothing is infinite."""
    b = Builder()
    x = dense(b, b.input("x", (1, 16)), 8)
    tiny = b.op("ADD", b.op("MUL", x, x), np.full(8, 1e-4, np.float32))
    large = b.op("ADD", tiny, np.array([0] * 7 + [500], np.float32))
    model = b.model(b.op("LOG", large))
    assert max(row.damage for row in found_in(model)) > 100


# Mixtures.


def row(place: int, form: float = 0.0, weights: float = 0.0, cost: float = 10.0) -> Sensitivity:
    return Sensitivity(place, "", place >= 0, form, weights, 10.0 + cost, 10.0, 1.0)


def chain(length: int) -> Model:
    b = Builder()
    x = b.input("x", (1, 8))
    for number in range(length):
        x = dense(b, x, 8, number)
    return b.model(x)


def test_nothing_to_keep_gives_no_mixtures() -> None:
    model = chain(4)
    assert mixtures(model, [row(place) for place in range(-1, 4)]) == ()
    assert mixtures(model, []) == ()


def test_damaged_weights_need_their_op_and_a_form_its_readers_too() -> None:
    model = chain(6)
    rows = [row(place) for place in range(-1, 6)]
    rows[3] = row(2, weights=5.0)
    assert mixtures(model, rows)[0].ops == (2,)
    rows[3] = row(2, form=5.0)
    assert mixtures(model, rows)[0].ops == (2, 3)
    rows = [row(-1, form=5.0), *(row(place) for place in range(6))]
    assert mixtures(model, rows)[0].ops == (0,)


def test_a_form_is_followed_through_ops_that_only_move_it() -> None:
    b = Builder()
    x = b.op("RESHAPE", dense(b, b.input("x", (1, 8)), 8), [2, 4])
    model = b.model(dense(b, dense(b, x, 4, 1), 4, 2))
    rows = [row(-1), row(0, form=5.0), row(1, cost=0.0), row(2), row(3)]
    assert mixtures(model, rows)[0].ops == (0, 1, 2)


def test_a_mixture_leaves_a_layer_to_quantize() -> None:
    """And is faster than float, unless size is what counts."""
    model = chain(3)
    rows = [row(-1), row(0, weights=5.0), row(1, weights=5.0), row(2, weights=5.0)]
    assert [len(mixture.ops) for mixture in mixtures(model, rows)] == [1, 2]
    slow = [row._replace(float_us=row.integer_us) for row in rows]
    assert mixtures(model, slow) == ()
    assert [len(mixture.ops) for mixture in mixtures(model, slow, slower=True)] != []


def test_a_cheap_hole_is_filled_and_a_dear_one_is_not() -> None:
    model = chain(7)
    for cost, kept in ((0.5, (1, 2, 3)), (30.0, (1, 3))):
        rows = [row(place) for place in range(-1, 7)]
        rows[2], rows[4] = row(1, weights=5.0), row(3, weights=5.0)
        rows[3] = row(2, cost=cost)
        assert kept in [mixture.ops for mixture in mixtures(model, rows)]


def test_what_is_cheap_comes_before_what_is_dear() -> None:
    model = chain(6)
    rows = [row(place, cost=50.0) for place in range(-1, 6)]
    rows[2], rows[5] = row(1, weights=5.0, cost=100.0), row(4, weights=5.0, cost=5.0)
    assert [mixture.ops for mixture in mixtures(model, rows)][:2] == [(4,), (1, 4)]


DAMAGE = st.sampled_from([0.0, 0.0, 0.01, 0.5, 3.0, 40.0])
NUMBERS = st.tuples(DAMAGE, DAMAGE, st.floats(-2, 40))


@draws(40, HealthCheck.too_slow)
@given(graphs(), st.data())
def test_mixtures_grow_in_ops_and_time_while_damage_falls(
    model: Model, data: st.DataObject
) -> None:
    places = range(-len(model.main.inputs), len(model.main.ops))
    ladder = mixtures(model, [row(place, *data.draw(NUMBERS)) for place in places])
    for small, large in pairwise(ladder):
        assert set(small.ops) < set(large.ops)
        assert small.us < large.us
        assert small.damage >= large.damage
    for mixture in ladder:
        assert set(mixture.ops) <= set(range(len(model.main.ops)))


@draws(25, HealthCheck.too_slow)
@given(st.data())
def test_conversions_are_counted_as_they_are_made(data: st.DataObject) -> None:
    """Of models without ops that share scales: these may want a conversion between integers."""
    model = data.draw(st.sampled_from([residual(), loud(1), split(), diamond()]))
    ops = range(len(model.main.ops))
    kept = data.draw(st.lists(st.sampled_from(ops), max_size=4, unique=True))
    context = Context(tools(few(model, 4), threads=1))
    try:
        made = apply(model, f"quantize(keep={kept})", context).model
    except CannotApply as error:
        assert "no layer of the model" in str(error)
        reject()
    quantized = apply(model, "quantize", context).model
    problem = costs_of(model.main, estimated_costs(model, quantized))
    forms = forms_of(problem, kept)
    counted = sum(flow.conversions(forms) for flow in problem.flows)
    assert counted == len(conversions(made.main).ops)


def diamond() -> Model:
    """A tensor with three readers, and an output that is read as well."""
    b = Builder()
    x = dense(b, b.input("x", (1, 8)), 8)
    parts: list[Tensor] = [dense(b, x, 8, seed) for seed in (1, 2)]
    y = b.op("ADD", *parts)
    return b.model(b.op("MUL", y, x), y)


# Recipes.


def test_recipes_keep_what_the_base_says_besides() -> None:
    mixture = Mixture((3, 5), 0.0, 0.0, True)
    text = mixture.recipe("cleanup | quantize(keep=[SOFTMAX], ranges=mse) | correct")
    assert text == "cleanup | quantize(keep=[SOFTMAX, 3, 5], ranges=mse) | correct"
    with pytest.raises(BadInput, match="has no step quantize"):
        mixture.recipe("cleanup | fold")


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_mixture_is_as_good_as_float(at: int) -> None:
    """And so is the one with 16 bits in place of float."""
    model = loud(at)
    ladder = mixtures(model, found_in(model))
    first = next(mixture for mixture in ladder if mixture.damage <= 1)
    assert first.can_be_wide(model)
    context = Context(tools(gaussian(model), threads=1))
    plain = drift(model, apply(model, BASE, context).model)
    for text in (first.recipe(BASE), first.wide_recipe(BASE)):
        assert drift(model, apply(model, text, context).model) < 0.01 < 0.1 < plain


# Models without a layer, or whose ops cannot be told apart.
NO_MIXTURES = {
    "branches": "no layer of the model",
    "branching": "IF 'if_8' runs another graph; the errors of single layers cannot be separated",
    "looping": "WHILE .while_5. runs another graph; the errors of single layers cannot be",
    "recurrent": "keeps a state; the errors of single layers cannot be separated",
}


def told_apart(name: str) -> tuple[Model, Context, tuple[Sensitivity, ...]]:
    data = few(FLOATS[name](), 4)
    context = Context(tools(data, threads=1))
    model = apply(FLOATS[name](), "cleanup | fold | fuse", context).model
    quantized = apply(model, "quantize", context).model
    return model, context, sensitivities(model, quantized, data, seconds=0.5, on="numpy")


@pytest.mark.parametrize("name", NO_MIXTURES)
def test_where_there_are_no_mixtures_a_line_says_so(name: str) -> None:
    with pytest.raises((CannotApply, CannotRun), match=NO_MIXTURES[name]) as caught:
        told_apart(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", sorted({*FLOATS} - {*NO_MIXTURES}))
def test_every_mixture_of_every_model_can_be_made(name: str) -> None:
    model, context, found = told_apart(name)
    for mixture in mixtures(model, found, slower=True):
        made = apply(model, mixture.recipe(BASE), context).model
        real = {op.outputs[0].name for op in made.main.ops if op.outputs[0].quant is None}
        kept = {model.main.ops[place].outputs[0].name for place in mixture.ops}
        assert kept <= {name.removesuffix("/float32") for name in real}
        if mixture.can_be_wide(model):
            apply(model, mixture.wide_recipe(BASE), context)


def drift(model: Model, made: Model) -> float:
    """The power of the error as a share of the signal's."""
    data = gaussian(model)
    total = np.zeros(2)
    with tools(data).opened(model) as run, tools(data).opened(made) as again:
        for sample in data:
            a, b = (answer(sample.inputs)[0] for answer in (run, again))
            total += np.square(a - b).sum(), np.square(a - a.mean()).sum()
    return float(total[0] / total[1])


# Which one to try next.


def ladder_of(count: int, harmless: int) -> list[Mixture]:
    return [
        Mixture(tuple(range(n + 1)), 0.5 if n >= harmless else 2.0, float(n), True)
        for n in range(count)
    ]


@given(st.integers(1, 200), st.data())
def test_the_first_that_fits_is_found_in_few_tries(count: int, data: st.DataObject) -> None:
    ladder = ladder_of(count, data.draw(st.integers(0, count)))
    first = data.draw(st.integers(0, count))
    tried: list[TriedMixture] = []
    while (mixture := next_mixture(ladder, tried)) is not None:
        assert mixture.ops not in [one.ops for one in tried]
        tried.append(TriedMixture(mixture.ops, len(mixture.ops) > first))
    assert len(tried) <= 2 * log2(count + 1) + 2
    fitting = [one.ops for one in tried if one.fits]
    assert min(fitting, key=len, default=None) == (ladder[first].ops if first < count else None)


@given(st.permutations(range(6)), st.integers(0, 6))
def test_the_order_of_what_was_tried_and_strangers_do_not_matter(
    order: list[int], first: int
) -> None:
    ladder = ladder_of(6, 3)
    tried: list[TriedMixture] = []
    while (mixture := next_mixture(ladder, tried)) is not None:
        tried.append(TriedMixture(mixture.ops, len(mixture.ops) > first))
    mixed_up = [tried[place] for place in order if place < len(tried)]
    assert next_mixture(ladder, [TriedMixture((99,), True), *mixed_up]) is None


def test_an_empty_ladder_has_nothing_to_try() -> None:
    assert next_mixture((), ()) is None
