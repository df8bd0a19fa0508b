"""OpenVINO as a runner: the runtime's own results in full precision, or one line why not."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.run.accelerators import openvino
from litesmith.run.accelerators.openvino import OpenVinoRunner, openvino_place
from litesmith.run.core.placement import MEASURED
from litesmith.run.rules.all_rules import RULES, place_by_rules
from litesmith.run.rules.openvino import FLAWS
from litesmith.run.session import Session
from litesmith.tflite.file import save
from tests import op_models, runtime, test_kernels, zoo
from tests.draws import draws
from tests.op_cases_shaping import CASES

pytestmark = pytest.mark.skipif(
    find_spec("openvino") is None, reason="OpenVINO is not installed; pip install openvino"
)

# What its reader has no way to express, in these or other words.
UNREAD = {"blockwise", "branches", "custom", "stateful", "strings", "variables"}
READ = [name for name in zoo.MODELS if name not in UNREAD]


def outputs(runner: OpenVinoRunner, seed: int = 0) -> list[np.ndarray]:
    """What OpenVINO gives for the inputs that `runtime.run` feeds."""
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
    model = zoo.MODELS[name]()
    runner = OpenVinoRunner(model, model.main, threads=threads)
    for seed in range(3):
        for got, wanted in zip(outputs(runner, seed), reference(name, seed), strict=True):
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
@draws(5)
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
    again = OpenVinoRunner(model, model.main)
    np.testing.assert_array_equal(runner.outputs[0].array, outputs(again)[0])


def test_only_the_main_graph() -> None:
    model = zoo.two_signatures()
    with pytest.raises(CannotRun, match="main graph only"):
        OpenVinoRunner(model, model.graphs[1])


def unnamed_squeeze() -> Model:
    """What OpenVINO's reader crashes on."""
    b = Builder()
    return b.model(b.op("SQUEEZE", b.input("x", (1, 2, 1, 3))))


def test_what_it_is_known_to_get_wrong_is_refused_at_once() -> None:
    with pytest.raises(CannotRun, match=r"^target openvino: op 0, SQUEEZE that .*; use cpu$"):
        Session(unnamed_squeeze(), "openvino:1")


def test_a_crash_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    save(unnamed_squeeze(), path)
    line = r"^openvino crashes on the model \(.+\), which is a bug of its own; use cpu$"
    for _ in range(2):  # what died once is not remembered as sound
        with pytest.raises(CannotRun, match=line):
            openvino._survive(path, {"x": (1, 2, 1, 3)}, {})
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    b = Builder()
    model = b.model(b.op("ADD", b.input("x", (3,)), zoo.noise(3, seed=77)))
    Session(model, "openvino:1").close()
    c = Builder()
    unseen = c.model(c.op("ADD", c.input("x", (3,)), zoo.noise(3, seed=78)))
    monkeypatch.setattr(sys, "executable", "/no/such/python")  # no child can be started any more
    Session(model, "openvino:2").close()
    with pytest.raises(FileNotFoundError):
        Session(unseen, "openvino:1")


class OneOp(NamedTuple):
    name: str
    model: Model
    fed: list[np.ndarray]
    wanted: list[np.ndarray]


def one_op_models(*, every: bool) -> Iterator[OneOp]:
    """Every case of every op in floats, and in int8 where LiteRT has it so; or one case each of
    ops that it is not known to compute otherwise."""
    for kind, cases in CASES.items():
        for number, case in enumerate(cases if every or kind in FLAWS else cases[:1]):
            model, _, _, fed = op_models.build(kind, case)
            try:
                wanted = op_models.run(model, fed)
            except (RuntimeError, ValueError):  # not even LiteRT has it
                wanted = []
            yield OneOp(f"{kind}-{number}", model, fed, wanted)
    seen = set[object]()
    for param in test_kernels.CALLS:
        kind, key, case = param.values
        if str(key).startswith("int8") and (every or kind in FLAWS or kind not in seen):
            seen.add(kind)
            yield OneOp(str(param.id), *test_kernels.call(kind, case, key))


def off(result: np.ndarray, wanted: np.ndarray, tensor: Tensor) -> bool:
    """True where a result is not what is wanted, which of integers is in real numbers."""
    if tensor.quant is not None and wanted.dtype.kind == "f":
        stored = test_kernels.store(wanted, tensor.quant, tensor.dtype).stored
        steps = 2
        return bool(np.abs(result.astype(np.int64) - stored).max(initial=0) > steps)
    if (result.shape, result.dtype) != (wanted.shape, wanted.dtype):
        return True
    most = 1e-3 * np.abs(wanted).max(initial=0) if wanted.dtype.kind in "fc" else 0
    return bool(np.abs(result.astype(np.complex128) - wanted).max(initial=0) > most)


def verdict(case: OneOp) -> str:
    """Whether OpenVINO refused, as the rules do, or gave what is wanted."""
    predicted = place_by_rules("openvino", RULES["openvino"], case.model).taken > 0
    try:
        runner = OpenVinoRunner(case.model, case.model.main, trial=False)
    except CannotRun as error:
        return "rules say it is taken" if predicted or "\n" in str(error) else "refused"
    if not predicted:
        return "rules say it is refused"
    for port, array in zip(runner.inputs, case.fed, strict=True):
        port.array[...] = array
    runner.run()
    results = [port.array for port in runner.outputs]
    triples = zip(results, case.wanted, case.model.main.outputs, strict=False)
    return "wrong" if any(off(*triple) for triple in triples) else "right"


def judge_one_op_models(*, every: bool) -> None:
    """In a process of its own: each name is told before its verdict, which may be a crash."""
    for case in one_op_models(every=every):
        print(json.dumps(case.name), flush=True)
        print(json.dumps(verdict(case)), flush=True)


def verdicts_on_one_op_models(*, every: bool) -> dict[str, str]:
    """What becomes of each, by name; raises where OpenVINO crashes on one."""
    program = f"from {__name__} import judge_one_op_models as judge; judge(every={every})"
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    told = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, f"a crash on {told[-1]}: {child.stderr[-300:]}"
    return dict(zip(told[::2], told[1::2], strict=True))


def test_every_op_is_right_or_refused_as_the_rules_say() -> None:
    """`bench/targets.py` does the same on every case there is."""
    verdicts = verdicts_on_one_op_models(every=False)
    assert {n: v for n, v in verdicts.items() if v not in ("right", "refused")} == {}
    assert {name.partition("-")[0] for name in verdicts} >= {*CASES}
    assert {*verdicts.values()} == {"right", "refused"}


_OPEN = """
import sys
from litesmith.run.accelerators.openvino import OpenVinoRunner
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
    with pytest.raises(CannotRun, match=re.escape(install_command("openvino"))):
        openvino_place(zoo.convnet())
