"""The data of a page: valid for every model, of every name, and no longer than it must be."""

import json
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith.graph_view.gather_view import GraphView
from litesmith.ir.types import Model
from litesmith.pages.graph.graph_json import data_element, graph_json
from tests import zoo
from tests.draws import draws
from tests.pages.graph.views import HOSTILE, blocks, int8_of, rename

MODELS = [zoo.convnet, zoo.loop, zoo.custom, zoo.strings, zoo.nothing, zoo.sparse, zoo.variables]


def view_of(*models: Model) -> GraphView:
    return litesmith.view(*models, predict=True).view


def read(view: GraphView) -> dict[str, object]:
    text = data_element(view).text
    found = re.fullmatch(
        r'<script type="application/json" class="graph-data">([^<>&]*)</script>', text
    )
    assert found is not None, "nothing in the data could end it"
    return json.loads(found[1])


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_every_model_is_written_whole(make: Callable[[], Model]) -> None:
    model = make()
    found = read(view_of(model, model))
    for ops in found["ops"]:  # type: ignore[attr-defined]
        assert len(ops) == sum(len(graph.ops) for graph in model.graphs)
    assert len(found["graphs"]) == len(model.graphs)  # type: ignore[arg-type]


@draws(15)
@given(st.text(max_size=30))
def test_any_name_is_data(name: str) -> None:
    view = view_of(rename(zoo.convnet(), name))
    assert read(view)["strings"] == graph_json(view)["strings"]


def test_hostile_names_are_data() -> None:
    found = read(view_of(rename(zoo.convnet(), HOSTILE)))
    assert any(HOSTILE in text for text in found["strings"])  # type: ignore[attr-defined]


def test_rows_edges_and_strings_point_at_what_is_there() -> None:
    model = blocks()
    found = graph_json(view_of(model, int8_of(model)))
    strings, ops = found["strings"], found["ops"]
    for graph in found["graphs"]:  # type: ignore[attr-defined]
        rows = graph["rows"]
        for kind, a, b, _, fused in rows:
            if not kind:
                assert a < len(ops[0]) and b < len(ops[1]) and max(a, b) >= 0  # type: ignore[index]
            assert fused < len(rows)
        assert all(start < end < len(rows) for start, end, _ in graph["edges"])
    for side in ops:  # type: ignore[attr-defined]
        for op in side:
            assert all(op[key] < len(strings) for key in "knfpry" if key in op)  # type: ignore[arg-type]
            for reason in op.get("a", ()):
                assert -len(strings) <= reason < len(strings)  # type: ignore[arg-type]
