"""A graph of both models as rows from top to bottom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from litesmith.graph_view.op_pairs import ADDED, GraphPairs
from litesmith.graph_view.row_blocks import Block, find_blocks, name_paths, shared_levels
from litesmith.graph_view.row_order import OP, GraphRow, RowEdge, order_rows
from litesmith.ir.types import Graph
from litesmith.units import plain

_Paths = Sequence[Sequence[tuple[str, ...]]]


@dataclass(frozen=True)
class GraphRows:
    """A graph of one model or two.

    changes  the change of each row; "" where there is one model, and for inputs and outputs
    fused    a removed row -> the row that does its work
    """

    name: str
    rows: tuple[GraphRow, ...]
    edges: tuple[RowEdge, ...]
    blocks: tuple[Block, ...]
    changes: tuple[str, ...]
    fused: Mapping[int, int]


def graph_rows(graphs: Sequence[Graph], known: GraphPairs) -> GraphRows:
    """One graph, or the graphs of two models with their pairs."""
    paths = _paths(graphs)
    second = graphs[1] if len(graphs) == 2 else None
    ordered = order_rows(graphs[0], second, known.pairs, partial(_nearness, paths))
    rows = ordered.rows
    return GraphRows(
        name=plain(next((graph.name for graph in graphs if graph.name), "")),
        rows=rows,
        edges=ordered.edges,
        blocks=find_blocks(
            [_kind(graphs, row) for row in rows], [_path(paths, row) for row in rows]
        ),
        changes=tuple("" if second is None else _change(row, known) for row in rows),
        fused=_fused_rows(rows, known),
    )


def _paths(graphs: Sequence[Graph]) -> list[list[tuple[str, ...]]]:
    """The path of every op of every graph; the names of all ops decide."""
    names = [plain(op.outputs[0].name) if op.outputs else "" for g in graphs for op in g.ops]
    paths = name_paths(names)
    first = len(graphs[0].ops)
    return [paths[:first], paths[first:]][: len(graphs)]


def _path(paths: _Paths, row: GraphRow) -> tuple[str, ...]:
    if row.kind != OP:
        return ()
    return paths[0][row.a] if row.a is not None else paths[-1][row.b or 0]


def _nearness(paths: _Paths, last: GraphRow, other: GraphRow) -> int:
    return shared_levels(_path(paths, last), _path(paths, other))


def _kind(graphs: Sequence[Graph], row: GraphRow) -> str:
    if row.kind != OP:
        return row.kind
    graph, index = (graphs[0], row.a) if row.a is not None else (graphs[-1], row.b or 0)
    return plain(graph.ops[index].label)


def _change(row: GraphRow, known: GraphPairs) -> str:
    if row.kind != OP:
        return ""
    return ADDED if row.a is None else known.before[row.a]


def _fused_rows(rows: Sequence[GraphRow], known: GraphPairs) -> dict[int, int]:
    ops = [(place, row) for place, row in enumerate(rows) if row.kind == OP]
    before = {row.a: place for place, row in ops if row.a is not None}
    after = {row.b: place for place, row in ops if row.b is not None}
    return {before[index]: after[other] for index, other in known.fused.items()}
