"""If, Loop and Scan give what onnxruntime gives, written out or as LiteRT's IF and WHILE."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.ir.types import Model
from tests.conversion.beside_onnx import converted, onnx, onnx_model, same

F, N, B = np.float32, np.int64, np.bool_
X = np.arange(6, dtype=F).reshape(2, 3) / 3 - 1


def node(kind: str, inputs: str, outputs: str, **settings):
    return onnx.helper.make_node(kind, inputs.split(), outputs.split(), **settings)


def graph(nodes, inputs, outputs, **constants):
    whole = onnx_model(nodes, inputs, outputs, constants)
    return whole.graph


def kinds(model: Model) -> Counter[str]:
    return Counter(op.kind for op in model.main.ops)


def branches(shape=(2, 3)):
    """Two branches that read a value of the graph around them."""
    then = graph([node("Mul", "x x", "a")], [], [("a", F, shape)])
    other = graph([node("Add", "x one", "b")], [], [("b", F, shape)], one=np.array(1, F))
    return {"then_branch": then, "else_branch": other}


@pytest.mark.parametrize("taken", [True, False])
def test_a_known_branch_is_written_out(taken: bool, tmp_path: Path) -> None:
    model = onnx_model(
        [node("If", "c", "y", **branches())],
        [("x", F, (2, 3))],
        [("y", F, (2, 3))],
        {"c": np.array(taken)},
    )
    assert kinds(same(model, {"x": X}, tmp_path)) == {"MUL" if taken else "ADD": 1}


@pytest.mark.parametrize("limit", [-100.0, 100.0])
def test_a_branch_that_a_run_decides_is_an_if(limit: float, tmp_path: Path) -> None:
    nodes = [
        node("ReduceSum", "x", "s", keepdims=0),
        node("Less", "s limit", "c"),
        node("If", "c", "y", **branches()),
    ]
    known = {"limit": np.array(limit, F)}
    model = onnx_model(nodes, [("x", F, (2, 3))], [("y", F, (2, 3))], known)
    made = same(model, {"x": X}, tmp_path)
    assert kinds(made)["IF"] == 1
    litesmith.save(made, tmp_path / "if.tflite")
    with litesmith.Session(tmp_path / "if.tflite") as session:
        session.inputs["x"][...] = X
        session.run()
        np.testing.assert_allclose(session.outputs["y"], X * X if limit > 0 else X + 1)


def test_branches_of_different_shapes_are_named(tmp_path: Path) -> None:
    other = graph([node("ReduceSum", "x", "b", keepdims=0)], [], [("b", F, ())])
    both = {**branches(), "else_branch": other}
    model = onnx_model(
        [node("If", "c", "y", **both)], [("x", F, (2, 3)), ("c", B, ())], [("y", F, None)]
    )
    (left,) = converted(model, tmp_path).left
    assert "'y'" in left.why and "(2, 3)" in left.why and "--fix c=VALUE" in left.why


def sum_body(shape=(2, 3), stop: float | None = None, lists: bool = False):
    """Adds the turn's number times x to a state; ends where the state's sum passes `stop`."""
    nodes = [
        node("Cast", "number", "n", to=1),
        node("Mul", "x n", "part"),
        node("Add", "state part", "after"),
        node("ReduceSum", "after", "sum", keepdims=0),
        node("Less", "sum most", "on") if stop is not None else node("Identity", "onwards", "on"),
    ]
    outputs = [("on", B, ()), ("after", F, shape)]
    if lists:
        outputs.append(("sum", F, ()))
    inputs = [("number", N, ()), ("onwards", B, ()), ("state", F, shape)]
    return graph(nodes, inputs, outputs, most=np.array(stop or 0, F))


def loop_model(turns: int | None, **extra):
    known = {"start": np.array(True)}
    if turns is not None:
        known["turns"] = np.array(turns, N)
    outputs = [("y", F, (2, 3))] + ([("all", F, (turns,))] if extra.get("lists") else [])
    call = node("Loop", "turns start x", " ".join(o[0] for o in outputs), body=sum_body(**extra))
    inputs = [("x", F, (2, 3))] + ([("turns", N, ())] if turns is None else [])
    return onnx_model([call], inputs, outputs, known)


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("turns", [7, 60])
def test_a_loop_of_few_nodes_is_written_out_and_a_longer_one_runs(
    lists: bool, turns: int, tmp_path: Path
) -> None:
    made = same(loop_model(turns, lists=lists), {"x": X}, tmp_path, 1e-3)
    assert kinds(made)["WHILE"] == (turns == 60)


def test_a_loop_ends_where_a_value_says_so(tmp_path: Path) -> None:
    made = same(loop_model(50, stop=20.0), {"x": X + 2}, tmp_path)
    assert kinds(made)["WHILE"] == 1


def test_a_loop_whose_turns_a_run_counts(tmp_path: Path) -> None:
    model = loop_model(None)
    for turns in (0, 1, 9):
        assert same(model, {"x": X, "turns": np.array(turns, N)}, tmp_path)


def test_a_list_whose_length_a_run_decides_is_refused(tmp_path: Path) -> None:
    (left,) = converted(loop_model(None, lists=True), tmp_path).left
    assert "depends on values" in left.why


def test_a_loop_that_grows_is_written_out(tmp_path: Path) -> None:
    body = graph(
        [node("Concat", "state x", "after", axis=0), node("Identity", "onwards", "on")],
        [("number", N, ()), ("onwards", B, ()), ("state", F, (None, 3))],
        [("on", B, ()), ("after", F, (None, 3))],
    )
    known = {"start": np.array(True), "turns": np.array(130, N)}
    call = node("Loop", "turns start x", "y", body=body)
    model = onnx_model([call], [("x", F, (2, 3))], [("y", F, (262, 3))], known)
    assert "WHILE" not in kinds(same(model, {"x": X}, tmp_path))


@pytest.mark.parametrize("settings", [
    {},
    {"scan_input_directions": [1]},
    {"scan_output_directions": [1]},
    {"scan_input_axes": [1]},
    {"scan_output_axes": [1]},
])  # fmt: skip
@pytest.mark.parametrize("steps", [5, 100])
def test_a_scan_gives_what_onnxruntime_gives(settings: dict, steps: int, tmp_path: Path) -> None:
    body = graph(
        [
            node("Mul", "row factor", "scaled"),
            node("Add", "state scaled", "after"),
            node("Identity", "after", "listed"),
        ],
        [("state", F, (4,)), ("row", F, (4,))],
        [("after", F, (4,)), ("listed", F, (4,))],
    )
    shape = (4, steps) if "scan_input_axes" in settings else (steps, 4)
    listed = (4, steps) if "scan_output_axes" in settings else (steps, 4)
    call = node("Scan", "start x", "last all", body=body, num_scan_inputs=1, **settings)
    model = onnx_model(
        [call],
        [("start", F, (4,)), ("x", F, shape), ("factor", F, ())],
        [("last", F, (4,)), ("all", F, listed)],
    )
    fed = {
        "start": np.ones(4, F),
        "x": np.arange(4 * steps, dtype=F).reshape(shape),
        "factor": np.array(0.5, F),
    }
    assert kinds(same(model, fed, tmp_path))["WHILE"] == (steps == 100)
