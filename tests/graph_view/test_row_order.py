"""Rows of two graphs in one order: everything is made before it is read, on both sides."""

from hypothesis import given
from hypothesis import strategies as st

from litesmith.graph_view.row_order import INPUT, OP, OUTPUT, OrderedRows, order_rows
from litesmith.ir.types import Graph, Op, Tensor
from tests.draws import draws

Links = list[list[int]]  # of each op, the values that it reads: 0 is the input, n the op n − 1


def chain(links: Links) -> Graph:
    """A graph whose ops read what they are told to."""
    values = [Tensor("x", (1,))]
    ops: list[Op] = []
    for place, read in enumerate(links):
        made = Tensor(f"t{place}", (1,))
        ops.append(Op("ADD", tuple(values[n % len(values)] for n in read), (made,)))
        values.append(made)
    return Graph("main", (values[0],), (values[-1],), tuple(ops), tuple(values))


LINKS = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), min_size=1, max_size=14)


def no_nearness(_: object, __: object) -> int:
    return 0


def assert_orders(found: OrderedRows, a: Graph, b: Graph | None) -> None:
    for side, graph in enumerate([a] if b is None else [a, b]):
        own = [(row.kind, row.on(side)) for row in found.rows if row.on(side) is not None]
        wanted = [(OP, n) for n in range(len(graph.ops))] + [(INPUT, 0), (OUTPUT, 0)]
        assert sorted(own) == sorted(wanted)
    assert all(edge.start < edge.end for edge in found.edges)


@draws(60)
@given(LINKS)
def test_one_graph_keeps_its_order_of_values(links: Links) -> None:
    graph = chain(links)
    assert_orders(order_rows(graph, None, {}, no_nearness), graph, None)


@draws(150)
@given(LINKS, LINKS, st.randoms(use_true_random=False))
def test_pairs_in_contrary_order_are_parted_rather_than_put_in_a_circle(
    first: Links, second: Links, random: object
) -> None:
    a, b = chain(first), chain(second)
    theirs = list(range(len(b.ops)))
    random.shuffle(theirs)  # type: ignore[attr-defined]
    pairs = dict(zip(range(len(a.ops)), theirs, strict=False))
    found = order_rows(a, b, pairs, no_nearness)
    assert_orders(found, a, b)
    kept = {(row.a, row.b) for row in found.rows if row.kind == OP and None not in (row.a, row.b)}
    assert kept <= set(pairs.items())


def test_equal_graphs_stand_row_by_row() -> None:
    graph = chain([[0], [1], [1, 2], [3]])
    found = order_rows(graph, graph, {n: n for n in range(4)}, no_nearness)
    assert all(row.a == row.b for row in found.rows)


def test_rows_that_are_alike_stand_together() -> None:
    graph = chain([[0], [0], [1], [2]])  # two branches whose ops take turns
    groups = [0, 1, 0, 1]

    def near(last: object, other: object) -> int:
        places = [getattr(row, "a", None) for row in (last, other)]
        kinds = [getattr(row, "kind", "") for row in (last, other)]
        return int(kinds == [OP, OP] and groups[places[0]] == groups[places[1]])

    order = [row.a for row in order_rows(graph, None, {}, near).rows if row.kind == OP]
    assert order == [0, 2, 1, 3]
