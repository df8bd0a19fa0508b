"""TensorFlow Lite Micro as a runner: the reference kernels' own bits, or one line why not."""

import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.run.accelerators.probes import micro
from litesmith.run.accelerators.targets import BY_NAME, placed
from litesmith.run.accelerators.tflite_micro import LARGEST_MODEL, MicroRunner, read_arena
from litesmith.run.core.target import Target
from litesmith.run.session import Session, fill_inputs
from litesmith.tflite.file import save
from litesmith.tflite.write import to_bytes
from tests import test_kernels, zoo
from tests.op_cases import Case
from tests.op_cases_shaping import CASES
from tests.op_models import build, run

needs_wheel = pytest.mark.skipif(
    find_spec("tflite_micro") is None, reason="tflite-micro is not installed"
)


def outputs(model: Model, target: str) -> list[np.ndarray]:
    with Session(model, target) as session:
        fill_inputs(session, seed=7)
        session.run()
        return [array.copy() for array in session.outputs.values()]


@needs_wheel
@pytest.mark.parametrize("make", [zoo.residual_int8, zoo.convnet], ids=["int8", "float"])
def test_its_bits_are_those_of_the_reference_kernels(make: object) -> None:
    model = make()  # type: ignore[operator]
    for here, there in zip(outputs(model, "micro"), outputs(model, "cpu:1:reference"), strict=True):
        if here.dtype == np.float32:
            np.testing.assert_allclose(here, there, rtol=0, atol=1e-6)
        else:
            np.testing.assert_array_equal(here, there)


@needs_wheel
def test_the_arena_is_told_by_kind_and_adds_up() -> None:
    arena = read_arena(zoo.residual_int8(), to_bytes(zoo.residual_int8()))
    assert arena.total == arena.head + arena.tail
    assert 0 < sum(arena.kinds.values()) <= arena.tail
    placement = placed(BY_NAME["micro"], zoo.residual_int8())
    assert placement is not None and placement.is_whole
    assert placement.facts["arena_bytes"] == arena.total


@needs_wheel
def test_an_arena_that_is_too_small_is_one_line_with_what_is_missing() -> None:
    model = zoo.residual_int8()
    content = to_bytes(model)
    used = read_arena(model, content).total
    names = (["x"], ["y"])
    MicroRunner(model, content, model.main, names=names, arena_bytes=2 * used).close()
    with pytest.raises(CannotRun, match=r"^target micro: an arena of .* is too small; it lacks"):
        MicroRunner(model, content, model.main, names=names, arena_bytes=used // 2)


@needs_wheel
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (zoo.hybrid, r"op 0: FULLY_CONNECTED of "),
        (zoo.custom, r"has no kernel for the custom op '"),
        (zoo.strings, r"is of type string, which cannot be handed"),
        (zoo.half_weights, r"op 0: DEQUANTIZE reads float16"),
    ],
)
def test_what_it_does_not_run_is_refused_in_one_line(make: object, told: str) -> None:
    with pytest.raises(CannotRun, match=f"^target micro: .*{told}") as refused:
        Session(make(), "micro")  # type: ignore[operator]
    assert "\n" not in str(refused.value)


@needs_wheel
def test_an_op_without_a_kernel_is_named() -> None:
    b = Builder()
    model = b.model(b.op("POW", b.input("x", (2, 3)), b.input("y", (2, 3))))
    with pytest.raises(CannotRun, match=r"^target micro: .* has no kernel for POW; use cpu$"):
        Session(model, "micro")


@needs_wheel
def test_inputs_are_not_resized_and_other_signatures_not_run() -> None:
    with Session(zoo.convnet(), "micro") as session, pytest.raises(BadInput, match="resize"):
        session.resize(image=(1, 16, 16, 3))
    model = zoo.branches()
    with pytest.raises(CannotRun, match="the main graph only"):
        MicroRunner(model, to_bytes(model), model.graphs[1], names=([], []))


@needs_wheel
def test_a_model_of_100_megabytes_is_one_line() -> None:
    model, content = zoo.convnet(), memoryview(bytearray(100 << 20))
    assert len(content) > LARGEST_MODEL
    with pytest.raises(CannotRun, match=r"^target micro: the model has 105 MB, and no micro"):
        read_arena(model, content)


@needs_wheel
def test_a_crash_of_the_interpreter_is_one_line() -> None:
    """SVDF without a bias: the kernel reads it all the same."""
    model = build("SVDF", CASES["SVDF"][0]).model
    with pytest.raises(CannotRun, match=r"^tflite-micro crashes on the model \(SIG"):
        Session(model, "micro")
    assert BY_NAME["micro"].predict is not None
    assert "crashes" in BY_NAME["micro"].predict(model).refused


def test_without_the_wheel_or_on_another_platform_it_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tflite_micro", None)
    with pytest.raises(CannotRun) as refused:
        read_arena(zoo.convnet(), b"")
    assert str(refused.value) == (
        f"target micro: tflite-micro is not installed; {install_command('micro')}"
    )
    monkeypatch.setattr(sys, "platform", "darwin")
    told = micro()
    assert not told.usable
    assert "no wheel for this platform" in told.why


def test_it_is_a_target_by_name() -> None:
    assert str(Target.parse("micro")) == "micro"
    with pytest.raises(BadInput, match="after micro comes nothing"):
        Target.parse("micro:2")


@needs_wheel
def test_eval_and_compare_run_there(tmp_path: Path) -> None:
    model, data = tmp_path / "m.tflite", tmp_path / "d.npz"
    save(zoo.convnet(), model)
    pixels = np.random.default_rng(0).normal(size=(6, 8, 8, 3)).astype("float32")
    np.savez(data, x=pixels, y=np.arange(6) % 5)
    assert litesmith.evaluate(model, data, on="micro").n == 6
    compared = litesmith.compare(model, model, data, on="micro", seconds=0.05)
    assert any("say nothing of a microcontroller" in told for told in compared.warnings)
    assert all(drift.is_equal for drift in compared.drifts.outputs)


# A law of the rules: what they take runs and gives the reference kernels' numbers, what they
# refuse does not. `bench/micro.py` asks it of every call; here a sample of them is run.
SAMPLED = [param for number, param in enumerate(test_kernels.CALLS) if number % 61 == 0]


@needs_wheel
@pytest.mark.parametrize(("kind", "key", "case"), SAMPLED)
def test_rules_say_what_the_interpreter_does(kind: str, key: str, case: Case) -> None:
    made = test_kernels.call(kind, case, key)
    predict = BY_NAME["micro"].predict
    assert predict is not None
    why = predict(made.model).refused
    try:
        with Session(made.model, "micro") as session:
            found = list(session(*made.fed).values())
    except CannotRun:
        assert why
        return
    wanted = run(made.model, made.fed)
    steps = [np.abs(a.astype(float) - b).max() for a, b in zip(found, wanted, strict=True)]
    assert bool(max(steps) <= 1) is (not why), why
