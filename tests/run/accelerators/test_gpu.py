"""The GPU through LiteRT: what it computes, what it takes, what it says where it cannot."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from litesmith.errors import CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.run.accelerators import probes
from litesmith.run.accelerators.gpu import gpu_place, try_out
from litesmith.run.accelerators.targets import BY_NAME
from litesmith.run.core.placement import MEASURED
from litesmith.run.core.target import Target
from litesmith.run.litert.capi import overheard
from litesmith.run.litert.compiled_model import CompiledRunner, NeedsInterpreter
from litesmith.run.litert.gpu_messages import LEFT_OUT, Share, cause, share, taken_nodes
from litesmith.run.rules.gpu import flaw
from litesmith.run.session import Session, fill_inputs, random_values
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.test_every_op import CASES, build

FOUND = probes.gpu()
needs_gpu = pytest.mark.skipif(not FOUND.usable, reason=FOUND.why)


def split() -> Model:
    """Two ops for a GPU, one that it does not know, and one more."""
    b = Builder()
    x = b.op("RELU", b.op("NEG", b.input("x", (1, 1, 4))))
    return b.model(b.op("TANH", b.op("SQUEEZE", x, squeeze_dims=(1,))))


def difference(model: Model, target: str) -> tuple[float, str]:
    """From the CPU's outputs, as a share of the largest value; and the note."""
    results: list[list[np.ndarray]] = []
    note = ""
    for place in ("cpu:1", target):
        with Session(model, place) as session:
            fill_inputs(session)
            session.run()
            results.append([np.array(array, np.float64) for array in session.outputs.values()])
            note = session.note
    pairs = zip(*results, strict=True)
    return max(np.abs(a - b).max() / max(np.abs(a).max(), 1e-9) for a, b in pairs), note


@needs_gpu
@pytest.mark.parametrize(("target", "bar"), [("gpu", 1e-2), ("gpu:full", 1e-5)])
def test_floats_are_near_the_cpu_and_nearer_in_full(target: str, bar: float) -> None:
    far, note = difference(zoo.convnet(), target)
    assert far <= bar
    assert note == ""


@needs_gpu
def test_8_bit_models_run() -> None:
    far, _ = difference(zoo.residual_int8(), "gpu:full")
    assert far <= 0.05


@needs_gpu
def test_what_the_gpu_does_not_take_runs_on_the_cpu_and_is_told() -> None:
    far, note = difference(split(), "gpu:full")
    assert far <= 1e-5
    assert note.startswith("2 of 4 ops run on the GPU, the rest on the CPU: SQUEEZE")


@needs_gpu
def test_the_placement_is_what_the_accelerator_took() -> None:
    placed = gpu_place(split())
    assert placed.how == MEASURED
    assert [home.taken for home in placed.homes] == [True, True, False, False]
    assert "SQUEEZE" in placed.homes[2].why
    assert "largest group" in placed.homes[3].why
    assert placed.partitions == 1
    rules = BY_NAME["gpu"].predict
    assert rules is not None
    assert [home.taken for home in rules(split()).homes] == [home.taken for home in placed.homes]


def empty() -> Model:
    b = Builder()
    return b.model(b.op("SLICE", b.input("x", (6,), "bool"), [2], [0]))


DEADLY = (zoo.blockwise, empty)


@needs_gpu
@pytest.mark.parametrize("make", DEADLY)
def test_what_the_accelerator_dies_of_is_refused(make: Callable[[], Model]) -> None:
    with pytest.raises(CannotRun, match=r"^target gpu: op 0, .*; LiteRT dies of it .*; use cpu$"):
        Session(make(), "gpu")
    placed = gpu_place(make())
    assert not placed.taken
    assert "dies of it" in placed.refused


@needs_gpu
@pytest.mark.parametrize("make", DEADLY)
def test_an_unknown_crash_stays_in_a_child(make: Callable[[], Model]) -> None:
    line = r"^target gpu: LiteRT crashes on the model \(SIG\w+\), which is a bug .*; use cpu$"
    for _ in range(2):  # what died once is not remembered as sound
        with pytest.raises(CannotRun, match=line):
            try_out(to_bytes(make()), Target("gpu"), 0)


@needs_gpu
@pytest.mark.parametrize(("text", "way_out"), [("gpu", "gpu:full or cpu"), ("gpu:full", "cpu")])
def test_unknown_wrong_results_are_refused(text: str, way_out: str) -> None:
    line = rf"^target {text}: on random inputs its results are \S+ % .* the CPU's; use {way_out}$"
    with pytest.raises(CannotRun, match=line):
        try_out(to_bytes(flat_softmax()), Target.parse(text), 0)


@needs_gpu
def test_results_beyond_half_precision_are_refused() -> None:
    b = Builder()
    x = b.op("MUL", b.input("x", (1, 2, 2, 4)), np.float32(1e6))
    model = b.model(b.op("MUL", b.op("ABS", x), np.float32(1e-6)))
    with pytest.raises(CannotRun, match="not finite where the CPU's are; use gpu:full"):
        Session(model, "gpu")
    Session(model, "gpu:full").close()


@needs_gpu
def test_a_model_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, unseen = (one("MUL", (1, 2), zoo.noise(2, seed=seed)) for seed in (77, 78))
    Session(model, "gpu").close()
    monkeypatch.setattr(sys, "executable", "/no/such/python")  # no child can be started any more
    Session(model, "gpu").close()
    with pytest.raises(FileNotFoundError):
        Session(unseen, "gpu")


@needs_gpu
@pytest.mark.parametrize("make", [zoo.strings, zoo.stateful, zoo.custom, zoo.loop, zoo.resizable])
def test_what_cannot_go_there_is_one_line(make: Callable[[], Model]) -> None:
    with pytest.raises(CannotRun, match=r"gpu") as raised:
        Session(make(), "gpu").close()
    assert "\n" not in str(raised.value)


def flat_softmax() -> Model:
    b = Builder()
    return b.model(b.op("SOFTMAX", b.input("x", (7,)), beta=1.0))


def one(kind: str, shape: tuple[int, ...], *others: ArrayLike) -> Model:
    """A model of one op that reads an input and constants."""
    b = Builder()
    return b.model(b.op(kind, b.input("x", shape), *map(np.asarray, others)))


WRONG = {
    "CONV_2D in groups": lambda: one("CONV_2D", (1, 4, 4, 4), zoo.noise(6, 3, 3, 2), zoo.noise(6)),
    "SOFTMAX of one dimension": flat_softmax,
    "ADD with a constant for each of a batch": lambda: one("ADD", (2, 3), zoo.noise(2, 3)),
    "FULLY_CONNECTED that flattens": lambda: one("FULLY_CONNECTED", (2, 2, 3), zoo.noise(4, 6)),
    "TOPK_V2 of values": lambda: one("TOPK_V2", (3, 9), np.int32(4)),
    "PAD of the first dimension": lambda: one(
        "PAD", (1, 2, 2, 4), [(1, 0), (0, 0), (0, 0), (0, 0)]
    ),
    "FULLY_CONNECTED with sparse weights": zoo.sparse,
    "ADD with a constant": zoo.branches,  # in a graph that is called
}


@needs_gpu
@pytest.mark.parametrize("what", WRONG)
def test_what_the_accelerator_computes_wrongly_is_refused(what: str) -> None:
    line = f"^target gpu: op 0, {what}.*; LiteRT computes it wrongly on the GPU; use cpu$"
    with pytest.raises(CannotRun, match=line):
        Session(WRONG[what](), "gpu")


@pytest.mark.parametrize("what", WRONG)
def test_rules_leave_what_is_computed_wrongly(what: str) -> None:
    model = WRONG[what]()
    assert any(flaw(op).startswith(what) for _, _, op in model.ops())
    rules = BY_NAME["gpu"].predict
    assert rules is not None
    for home, op in zip(rules(model).homes, model.main.ops, strict=True):
        assert not (home.taken and flaw(op))


def judge_one_op_models() -> None:
    """In a process of its own, because a crash of the accelerator would be its end: each name is
    told before what the GPU makes of it."""
    for kind, cases in CASES.items():
        for number, case in enumerate(cases):
            print(json.dumps(f"{kind}#{number}"), flush=True)
            print(json.dumps(judged(build(kind, case).model)), flush=True)


def judged(model: Model) -> str:
    if any(flaw(op) for op in model.main.ops):
        return "refused"
    results: list[list[np.ndarray]] = []
    try:
        for place in (Target("gpu", kernels="full"), Target()):
            runner = CompiledRunner(to_bytes(model), place)
            random = np.random.default_rng(0)
            for port in runner.inputs:
                values = random_values(random, port.array)
                port.array[...] = np.abs(values) if values.dtype.kind in "fi" else values
            runner.run()
            results.append([port.array.astype(np.float64) for port in runner.outputs])
    except (CannotRun, NeedsInterpreter) as error:
        return "left" if "\n" not in str(error) else "left in many lines"
    # A unit in the last place of float16, to which CAST rounds otherwise, is under 1e-3.
    near = all(np.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(*results, strict=True))
    return "right" if near else "wrong"


# Shifts by what is no number of bits have no result to compare.
UNDEFINED = {"RIGHT_SHIFT#1"}


@needs_gpu
def test_every_op_is_right_left_or_refused() -> None:
    program = "from tests.run.accelerators.test_gpu import judge_one_op_models as j; j()"
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", program]
    child = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    told = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, f"a crash on {told[-1]}: {child.stderr[-300:]}"
    verdicts = dict(zip(told[::2], told[1::2], strict=True))
    assert {n for n, v in verdicts.items() if v not in ("right", "left", "refused")} <= UNDEFINED
    assert sum(v == "right" for v in verdicts.values()) > 200


@needs_gpu
def test_sizes_can_change() -> None:
    b = Builder()
    model = b.model(b.op("TANH", b.input("x", (1, 2, 2, 3))))
    with Session(model, "gpu:full") as session:
        session.resize(x=(1, 4, 5, 3))
        session.inputs["x"] = zoo.noise(1, 4, 5, 3)
        session.run()
        (made,) = session.outputs.values()
        np.testing.assert_allclose(made, np.tanh(zoo.noise(1, 4, 5, 3)), atol=1e-5)


@needs_gpu
def test_sessions_live_beside_each_other_and_in_threads() -> None:
    model, fed = zoo.convnet(), [zoo.noise(1, 8, 8, 3, seed=n) for n in range(4)]

    def ran(place: str, value: np.ndarray) -> np.ndarray:
        with Session(model, place) as session:
            name = next(iter(session.inputs))
            session.inputs[name] = value
            for _ in range(3):
                session.run()
            return next(iter(session.outputs.values())).copy()

    with ThreadPoolExecutor(4) as pool:
        both = [[*pool.map(partial(ran, place), fed)] for place in ("gpu:full", "cpu:1")]
    np.testing.assert_allclose(both[0], both[1], atol=1e-5)


@needs_gpu
def test_no_profile_is_one_line() -> None:
    with pytest.raises(CannotRun, match="profile on cpu:1"):
        Session(zoo.convnet(), "gpu", profile=True)


@needs_gpu
def test_nothing_is_said_aloud(capfd: pytest.CaptureFixture[str]) -> None:
    with Session(zoo.convnet(), "gpu") as session:
        session.run()
    with pytest.raises(CannotRun):
        Session(zoo.custom(), "gpu")
    assert capfd.readouterr() == ("", "")


def test_a_machine_without_a_driver_says_what_is_missing(tmp_path: Path) -> None:
    program = "from litesmith.run.accelerators import probes; print(probes.gpu().why)"
    away = {"VK_DRIVER_FILES": str(tmp_path / "no.json"), "VK_ICD_FILENAMES": str(tmp_path / "no")}
    command = [sys.executable, "-c", program]
    told = subprocess.run(command, env={**os.environ, **away}, capture_output=True, text=True)
    assert told.stdout.strip() in ("Vulkan finds no driver", "Vulkan finds no GPU") or (
        "no Vulkan loader" in told.stdout
    )
    assert told.stderr == ""


MESSAGES = (
    "Following operations are not supported by GPU delegate:\nGATHER: Only support 1D indices\n"
    "RANK: Operation is not supported.\n4 operations will run on the GPU, and the remaining 2 "
    "operations will run on the CPU.\n"
)


def test_shares() -> None:
    assert share("") is None
    assert share(MESSAGES) == Share(
        4, 2, ("GATHER: Only support 1D indices", "RANK: Operation is not supported")
    )
    nothing = MESSAGES.replace("4 operations", "No operations").replace("the remaining 2", "all 6")
    told = share(nothing)
    assert told is not None
    assert (told.taken, told.left) == (0, 6)


def test_the_main_graph_is_told_first() -> None:
    lines = [f"I0000 x] {LEFT_OUT} set to 0,1", "I0000 x] Excluding node 1 (0 in ops_to_replace)"]
    other = [lines[0], "I0000 x] Excluding node 0 (0 in ops_to_replace)"]
    assert taken_nodes("\n".join(lines + other)) == (1,)
    assert taken_nodes("") == ()


def test_causes() -> None:
    line = "E0000 00:00:1794781845.999214   18587 a.cc:531] UNIMPLEMENTED: Not there yet.\ntrace\n"
    assert cause(line) == "Not there yet"
    assert cause("I0000 00:00:17   1 a.cc:5] fine") == ""


def test_remarks_of_native_code_are_kept_and_others_are_not_lost(
    capfd: pytest.CaptureFixture[str],
) -> None:
    print("before")
    with overheard() as heard:
        os.write(1, b"out ")
        os.write(2, b"err")
    print("after")
    assert heard.text == "out err"
    assert capfd.readouterr() == ("before\nafter\n", "")
