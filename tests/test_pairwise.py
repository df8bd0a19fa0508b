"""The sample of a grid: it has every pair of values, far fewer rows, and is always the same."""

from itertools import combinations, product

from tests.pairwise import covering, pairwise

AXES = ("abcd", range(5), (False, True), "xyz")


def is_full(param) -> bool:
    return any(mark.name == "full" for mark in param.marks)


def test_every_pair_of_values_is_met_by_default() -> None:
    params = pairwise(*AXES)
    assert [param.values for param in params] == [*product(*AXES)], "all can be run"
    kept = [param.values for param in params if not is_full(param)]
    for a, b in combinations(range(len(AXES)), 2):
        assert {(row[a], row[b]) for row in kept} == {*product(AXES[a], AXES[b])}
    assert len(kept) < 2 * 4 * 5, "near to the product of the two longest axes"


def test_the_sample_is_the_same_each_time() -> None:
    assert [is_full(a) for a in pairwise(*AXES)] == [is_full(b) for b in pairwise(*AXES)]


def test_rows_of_a_list_cover_what_is_looked_at() -> None:
    rows = [(number, number % 3, number // 50) for number in range(100)]
    places = covering(rows, lambda row: row[1], lambda row: row[2])
    assert {rows[place][1] for place in places} == {0, 1, 2}
    assert {rows[place][2] for place in places} == {0, 1}
    assert len(places) == 3
    assert covering([]) == []
