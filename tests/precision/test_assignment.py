"""The form of every op: the cheapest there is, held against every choice there is."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from litesmith.precision.assignment import Costs, Flow, Penalty, assign
from tests.draws import draws

FORMS = ("float", "int8", "int16")


@st.composite
def problems(draw: st.DrawFn, names: tuple[str, ...], most: int) -> Costs:
    """Ops that read what ops before them write; the first and the last are float."""
    count = draw(st.integers(2, most))
    price = st.integers(0, 40).map(float)
    ops = [dict.fromkeys(["float"], 0.0)]
    for _ in range(count - 2):
        some = draw(st.sets(st.sampled_from(names), min_size=1))
        ops.append({name: draw(price) for name in names if name in some})
    ops.append({"float": 0.0})
    flows = [
        Flow(op, tuple(sorted(readers)), draw(price))
        for op in range(count - 1)
        if (readers := draw(st.sets(st.integers(op + 1, count - 1), max_size=3)))
    ]
    penalties = [
        Penalty(draw(st.frozensets(st.integers(0, count - 1), min_size=1)), name, draw(price))
        for name in draw(st.lists(st.sampled_from(names[1:]), max_size=3))
    ]
    return Costs(ops, flows, penalties)


def least(costs: Costs) -> float:
    """By trying all."""
    return min(costs.of(forms) for forms in product(*costs.ops))


@given(problems(FORMS[:2], 10))
@draws(150)
def test_two_forms_are_chosen_at_the_least_cost(costs: Costs) -> None:
    assert abs(costs.of(assign(costs)) - least(costs)) < 1e-6


@given(problems(FORMS, 7))
@draws(150)
def test_three_forms_are_near_it_and_never_worse_than_one_form(costs: Costs) -> None:
    found = costs.of(assign(costs))
    assert found >= least(costs) - 1e-6
    for name in FORMS:
        if all(name in row for row in costs.ops):
            assert found <= costs.of([name] * len(costs.ops)) + 1e-6


def test_a_slow_integer_op_stays_float_where_two_conversions_cost_less() -> None:
    convolution, activation = {"float": 100.0, "int8": 40.0}, {"float": 5.0, "int8": 90.0}
    ends = {"float": 0.0}
    ops = [ends, convolution, activation, convolution, activation, ends]
    flows = [Flow(op, (op + 1,), 10.0) for op in range(len(ops) - 1)]
    forms = ("float", "int8", "float", "int8", "float", "float")
    assert assign(Costs(ops, flows)) == forms
    dear = [flow._replace(cost=50.0) for flow in flows]
    assert assign(Costs(ops, dear)) == ("float",) * 6


def test_two_thousand_ops_are_no_trouble() -> None:
    """Exact for what can be checked: no op alone does better."""
    ops = [{"float": 10.0 + n % 7, "int8": 4.0 + (n * 7) % 23} for n in range(2000)]
    flows = [Flow(n, tuple({n + 1, min(n + 5, 1999)}), 3.0) for n in range(1999)]
    costs = Costs(ops, flows)
    forms = list(assign(costs))
    found = costs.of(forms)
    assert set(forms) == {"float", "int8"}
    for op in range(0, 2000, 40):
        other = "float" if forms[op] == "int8" else "int8"
        assert costs.of([*forms[:op], other, *forms[op + 1 :]]) >= found
