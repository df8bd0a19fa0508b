"""OpenVINO as a runner: the runtime's own results in full precision, or one line why not."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.run.openvino import OpenVinoRunner, openvino_place
from litesmith.run.placement import MEASURED
from litesmith.run.session import Session
from litesmith.tflite.file import save
from tests import runtime, zoo

pytestmark = pytest.mark.skipif(
    find_spec("openvino") is None, reason="OpenVINO is not installed; pip install openvino"
)

# What its reader has no way to express, in these or other words.
UNREAD = {"blockwise", "branches", "custom", "stateful", "strings", "variables"}
READ = [name for name in zoo.MODELS if name not in UNREAD]


def outputs(model: Model, seed: int = 0, threads: int = 1) -> list[np.ndarray]:
    """What OpenVINO gives for the inputs that `runtime.run` feeds."""
    runner = OpenVinoRunner(model, model.main, threads=threads)
    random = np.random.default_rng(seed)
    for port in runner.inputs:
        shape, dtype = np.array(port.array.shape), port.array.dtype.type
        port.array[...] = runtime.random_input(random, shape, dtype)
    runner.run()
    return [port.array.copy() for port in runner.outputs]


def reference(name: str, seed: int) -> list[np.ndarray]:
    """LiteRT's results, or those of numpy where LiteRT rounds the data of a float model."""
    model = zoo.MODELS[name]()
    if name != "hybrid":
        return runtime.run(model, seed)
    with Session(model, "numpy") as session:
        random = np.random.default_rng(seed)
        for name, array in session.inputs.items():
            shape, dtype = np.array(array.shape), array.dtype.type
            session.inputs[name] = runtime.random_input(random, shape, dtype)
        session.run()
        return list(session.outputs.values())


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", READ)
def test_results_are_the_runtimes(name: str, threads: int) -> None:
    for seed in range(3):
        ours = outputs(zoo.MODELS[name](), seed, threads)
        for got, wanted in zip(ours, reference(name, seed), strict=True):
            assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
            most = 1e-5 * np.abs(wanted).max() if wanted.dtype.kind == "f" else 1
            assert np.abs(got.astype(np.float64) - wanted).max(initial=0) <= most


@pytest.mark.parametrize("name", zoo.MODELS)
def test_placement_is_whole_or_says_why_not(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = zoo.MODELS[name]()
    placement = openvino_place(model)
    assert (placement.target, placement.how) == ("openvino", MEASURED)
    assert [h.kind for h in placement.homes] == [op.kind for op in model.main.ops]
    assert {home.taken for home in placement.homes} <= {name in READ}
    assert all(home.why and "\n" not in home.why for home in placement.homes)
    assert bool(placement.refused) == (name in UNREAD)
    assert tuple(capfd.readouterr()) == ("", "")


def test_refusal_names_the_op() -> None:
    assert openvino_place(zoo.branches()).refused.endswith("it has no translation of IF")
    model = zoo.custom()
    with pytest.raises(CannotRun, match="no translation of Mystery"):
        OpenVinoRunner(model, model.main)


def test_memory_is_shared() -> None:
    model = zoo.convnet()
    runner = OpenVinoRunner(model, model.main)
    given, result = runner.inputs[0].array, runner.outputs[0].array
    for seed in range(3):
        given[...] = zoo.noise(*given.shape, seed=seed)
        runner.run()
        assert runner.outputs[0].array is result
        with Session(model) as session:
            session.inputs["image"] = given
            session.run()
            np.testing.assert_allclose(result, session.outputs["scores"], atol=1e-6)


def test_ports_are_in_the_models_order_and_types() -> None:
    b = Builder()
    x, y = b.input("x", (2,)), b.input("y", (3,), "int32")
    b.input("unused", (4,))
    last = b.op("NEG", x)
    model = b.model(b.op("ADD", y, y), last, b.op("ADD", last, last))
    runner = OpenVinoRunner(model, model.main, names=(("a", "b", "c"), ("p", "q", "r")))
    assert [(p.name, p.array.shape, str(p.array.dtype)) for p in runner.inputs] == [
        ("a", (2,), "float32"),
        ("b", (3,), "int32"),
        ("c", (4,), "float32"),
    ]
    runner.inputs[0].array[...] = [1, 2]
    runner.inputs[1].array[...] = [5, 6, 7]
    runner.run()
    results = [(p.name, p.array.tolist()) for p in runner.outputs]
    assert results == [("p", [10, 12, 14]), ("q", [-1, -2]), ("r", [-2, -4])]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(max_examples=5, deadline=None)
def test_any_size_and_back(sizes: list[int]) -> None:
    b = Builder()
    model = b.model(b.op("TANH", b.input("x", (-1, 3))))
    runner = OpenVinoRunner(model, model.main)
    for size in sizes:
        runner.resize({0: (size, 3)})
        runner.inputs[0].array[...] = values = zoo.noise(size, 3, seed=size)
        runner.run()
        np.testing.assert_allclose(runner.outputs[0].array, np.tanh(values), atol=1e-6)


def test_a_refused_size_leaves_it_as_it_was() -> None:
    model = zoo.convnet()
    runner = OpenVinoRunner(model, model.main)
    random = np.random.default_rng(0)
    runner.inputs[0].array[...] = runtime.random_input(random, np.array((1, 8, 8, 3)), np.float32)
    with pytest.raises(BadInput, match="cannot resize") as refused:
        runner.resize({0: (1, 8, 8, 5)})
    assert "\n" not in str(refused.value)
    runner.run()
    np.testing.assert_array_equal(runner.outputs[0].array, outputs(model)[0])


def test_only_the_main_graph() -> None:
    model = zoo.two_signatures()
    with pytest.raises(CannotRun, match="main graph only"):
        OpenVinoRunner(model, model.graphs[1])


_OPEN = """
import sys
from litesmith.run.openvino import OpenVinoRunner
from litesmith.tflite.file import load
model = load(sys.argv[1])
OpenVinoRunner(model, model.main).run()
print(sorted(name for name in sys.modules if name.startswith("openvino_telemetry")))
"""


def test_nobody_is_told(tmp_path: Path) -> None:
    save(zoo.convnet(), tmp_path / "model.tflite")
    home = tmp_path / "home"
    home.mkdir()
    child = subprocess.run(
        [sys.executable, "-c", _OPEN, str(tmp_path / "model.tflite")],
        env={**os.environ, "HOME": str(home), "USERPROFILE": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (child.stdout.strip(), child.stderr) == ("[]", "")
    assert not list(home.iterdir())


def test_without_openvino(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(CannotRun, match="pip install openvino"):
        openvino_place(zoo.convnet())
