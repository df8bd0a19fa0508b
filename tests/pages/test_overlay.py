"""Overlays: every op is called what Model Explorer calls it, and has the value that was found."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litesmith.diagnosis.accuracy_verdict import examine
from litesmith.diagnosis.op_losses import EXACT, MOVES, NO_TWIN, OpError, op_errors
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.operating_system import quote
from litesmith.pages.overlay import (
    Overlay,
    errors_overlay,
    node_data,
    opening_command,
    times_overlay,
    write_overlay,
)
from litesmith.profiling.op_times import Profile, profile_ops
from litesmith.tflite.file import save
from tests import zoo
from tests.diagnosis.test_op_losses import BLINK, as_data, convnet, quantized, with_scale

NAMED = {
    "several graphs": zoo.branches,
    "a loop": zoo.loop,
    "without names": lambda: renamed(zoo.branches(), "", "", ""),
    "with one name": lambda: renamed(zoo.branches(), "g", "g", "g"),
    "signatures": zoo.two_signatures,
    "a custom op": zoo.custom,
    "one name for all tensors": zoo.same_names,
    "numbers as names": lambda: numbered(),
}


def renamed(model: Model, *names: str) -> Model:
    pairs = zip(model.graphs, names, strict=True)
    return replace(model, graphs=tuple(replace(graph, name=name) for graph, name in pairs))


def numbered() -> Model:
    """What op 0 writes is called 1, and what op 1 writes 0."""
    b = Builder()
    y = b.op("ABS", b.input("x", (1, 4)), name="1")
    return b.model(b.op("NEG", b.op("EXP", y, name="0")))


def counted(model: Model) -> Overlay:
    """A different number for every op."""
    places = [(number, op) for number, g in enumerate(model.graphs) for op in range(len(g.ops))]
    return Overlay("numbers", {place: float(n) for n, place in enumerate(places)}, {})


@pytest.fixture(scope="module")
def timed() -> tuple[Model, Profile]:
    model = zoo.careless()
    return model, profile_ops(model, runs=5)


def test_times_are_those_of_the_profile(timed: tuple[Model, Profile]) -> None:
    model, found = timed
    content, notes = node_data(model, times_overlay(model, found))
    results = content["main"]["results"]
    assert not notes
    assert list(results) == [str(index) for index in range(len(model.main.ops))]
    numbers = [one["value"] for one in results.values() if isinstance(one["value"], float)]
    own = sum(op.us or 0.0 for op in found.ops)
    assert sum(numbers) == pytest.approx(own, abs=0.005 * len(numbers) + 1e-9)
    assert len(numbers) == sum(bool(op.kernel) for op in found.ops)
    fused = {op.index: op.fused_into for op in found.ops if op.fused_into is not None}
    assert fused, "the model has ops that run inside others"
    assert all(results[str(op)]["value"] == f"in op {into}" for op, into in fused.items())


def test_a_profile_of_other_ops_is_refused(timed: tuple[Model, Profile]) -> None:
    with pytest.raises(CannotRun, match=r"no overlay on cpu:1: .*; use cpu:N"):
        times_overlay(zoo.convnet(), timed[1])


def test_the_worst_error_is_where_the_fault_was_planted() -> None:
    model = convnet()
    data = as_data(model)
    broken = with_scale(quantized(model, data), 2, 0.1)
    pair = examine(broken, data, against=model, seconds=BLINK).pair
    assert pair is not None
    errors = op_errors(pair, data)
    assert [one.index for one in errors] == list(range(len(broken.main.ops)))
    known = {one.index: one.snr_db for one in errors if one.snr_db is not None}
    worst = min(known, key=lambda index: known[index])
    assert broken.main.ops[worst].kind == "FULLY_CONNECTED"
    assert known.pop(worst) < 10 < min(known.values())
    assert {one.why for one in errors if one.snr_db is None} == {NO_TWIN}  # (DE)QUANTIZE


def test_a_float_file_shows_what_quantizing_it_does_to_its_own_ops() -> None:
    model = convnet()
    pair = examine(model, as_data(model), seconds=BLINK).pair
    assert pair is not None
    errors = op_errors(pair, as_data(model))
    assert len(errors) == len(model.main.ops)
    assert all(20 < one.snr_db < 80 for one in errors if one.snr_db is not None)
    assert sum(one.snr_db is not None for one in errors) >= 4


def test_errors_as_values() -> None:
    b = Builder()
    model = b.model(b.op("RESHAPE", b.op("ABS", b.op("NEG", b.input("x", (1, 4)))), [4]))
    errors = (OpError(0, 31.26), OpError(1, None, EXACT), OpError(2, None, MOVES))
    content, _ = node_data(model, errors_overlay(errors))
    values = {key: one["value"] for key, one in content["main"]["results"].items()}
    assert values == {"0": 31.3, "1": EXACT, "2": MOVES}


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_no_value_is_lost_without_a_word(make) -> None:
    model = make()
    content, notes = node_data(model, counted(model))
    values = [one["value"] for data in content.values() for one in data["results"].values()]
    assert len(values) == len(set(values))
    left_out = sum(
        len(graph.ops)
        for number, graph in enumerate(model.graphs)
        if any(note.startswith(f"graph {number} ") for note in notes)
    ) + sum(note.startswith("op ") for note in notes)
    assert len(values) + left_out == sum(len(graph.ops) for graph in model.graphs)


def test_an_index_that_is_also_the_name_of_a_tensor_is_not_used() -> None:
    model = numbered()
    content, notes = node_data(model, counted(model))
    values = {key: one["value"] for key, one in content["main"]["results"].items()}
    assert values == {"1": 0.0, "0": 1.0, "2": 2.0}
    assert not notes


@pytest.mark.parametrize("make", NAMED.values(), ids=NAMED)
def test_model_explorer_calls_them_so(make, tmp_path: Path) -> None:
    """Each value reaches its op by the rule of the page: the name of a tensor, else the id."""
    adapter = pytest.importorskip(
        "ai_edge_model_explorer_adapter", reason="Model Explorer is not installed"
    )
    model = make()
    save(model, tmp_path / "m.tflite")
    answer = adapter.ConvertFlatbufferDirectlyToJson(
        adapter.VisualizeConfig(), str(tmp_path / "m.tflite")
    )
    graphs = json.loads(answer)[0]["subgraphs"]
    content, notes = node_data(model, counted(model))
    assert set(content) <= {graph["id"] for graph in graphs}
    wanted = counted(model).values
    for graph in graphs:
        number = graph["subgraphIndex"]
        if any(note.startswith(f"graph {number} ") for note in notes):
            continue
        named = {name: node["id"] for node in graph["nodes"] for name in tensor_names(node)}
        for key, one in content[graph["id"]]["results"].items():
            assert one["value"] == wanted[number, int(named.get(key, key))]


def tensor_names(node: dict) -> list[str]:
    attributes = [a for one in node.get("outputsMetadata", []) for a in one["attrs"]]
    return [a["value"] for a in attributes if a["key"] == "tensor_name"]


def test_model_explorer_reads_the_file(timed: tuple[Model, Profile], tmp_path: Path) -> None:
    builder = pytest.importorskip(
        "model_explorer.node_data_builder", reason="Model Explorer is not installed"
    )
    model, found = timed
    content, _ = node_data(model, times_overlay(model, found))
    errors, _ = node_data(model, errors_overlay([OpError(0, 3.0)]))
    for data in (*content.values(), *errors.values()):
        results = {key: builder.NodeDataResult(**one) for key, one in data["results"].items()}
        gradient = [builder.GradientItem(**one) for one in data.get("gradient", [])]
        thresholds = [builder.ThresholdItem(**one) for one in data.get("thresholds", [])]
        known = {**data, "results": results, "gradient": gradient, "thresholds": thresholds}
        again = json.loads(builder.GraphNodeData(**known).to_json_string())
        assert again["results"] == data["results"]


def test_names_that_are_no_text_and_errors_that_are_no_number_are_written(tmp_path: Path) -> None:
    model = renamed(convnet(), "bytes\udcff")
    overlay = errors_overlay([OpError(0, float("nan")), OpError(1, float("-inf"))])
    assert write_overlay(tmp_path / "e.json", model, overlay) == ()
    read = json.loads((tmp_path / "e.json").read_bytes(), parse_constant=pytest.fail)
    assert read["bytes\udcff"]["results"] == {"0": {"value": "nan"}, "1": {"value": "-inf"}}


def test_the_file_is_whole_or_absent(tmp_path: Path) -> None:
    model = zoo.convnet()
    place = tmp_path / "o.json"
    assert write_overlay(place, model, counted(model)) == ()
    assert json.loads(place.read_text("utf-8"))["main"]["name"] == "numbers"
    with pytest.raises(BadInput, match=r"o\.txt: Model Explorer opens \.json files"):
        write_overlay(tmp_path / "o.txt", model, counted(model))
    unreadable = Overlay("broken", {(0, 0): np.float32(1)}, {})  # type: ignore[dict-item]
    with pytest.raises(TypeError):
        write_overlay(place, model, unreadable)
    assert json.loads(place.read_text("utf-8"))["main"]["name"] == "numbers"
    assert [one.name for one in tmp_path.iterdir()] == ["o.json"]


def test_the_command_survives_spaces() -> None:
    command = opening_command(Path("my model.tflite"), Path("a b.json"), Path("c.json"))
    assert (
        command
        == f"model-explorer {quote('my model.tflite')} --node_data_paths={quote('a b.json,c.json')}"
    )
