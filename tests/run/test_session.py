"""Sessions: the runtime's own results, in memory that is shared, whatever the order of events."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Signature
from litesmith.operating_system import libc
from litesmith.run.core.runner import port_names
from litesmith.run.core.target import Target
from litesmith.run.litert.capi import installed_version, why_not
from litesmith.run.litert.compiled_model import one_cause
from litesmith.run.litert.interpreter import InterpreterRunner
from litesmith.run.litert.numpy_walker import walk
from litesmith.run.session import Session, fill_inputs
from litesmith.run.trial_run import probe
from litesmith.tflite.file import save
from litesmith.tflite.write import to_bytes
from litesmith.timing.clock import pause_collection
from tests import runtime, zoo
from tests.draws import draws
from tests.platforms import posix

TARGETS = ("cpu:1", "cpu:2", "cpu:1:builtin", "cpu:1:reference")
RUNNABLE = [name for name in zoo.MODELS if name not in zoo.NOT_RUNNABLE]


def outputs(
    model: Model | bytes | Path, target: str = "cpu:1", seed: int = 0, runs: int = 1
) -> list[np.ndarray]:
    """What a session gives for the inputs that `runtime.run` feeds."""
    with Session(model, target) as session:
        random = np.random.default_rng(seed)
        for name, array in session.inputs.items():
            session.inputs[name] = runtime.random_input(
                random, np.array(array.shape), array.dtype.type
            )
        for _ in range(runs):
            session.run()
        return [array.copy() for array in session.outputs.values()]


@pytest.mark.parametrize("name", RUNNABLE)
@pytest.mark.parametrize("target", ["cpu:1", "cpu:1:reference"])
def test_results_are_those_of_the_stock_interpreter(name: str, target: str) -> None:
    model = zoo.MODELS[name]()
    expected = runtime.run(model, 5, reference=target.endswith("reference"), runs=2)
    for ours, theirs in zip(outputs(model, target, 5, runs=2), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# What numpy cannot compute, and why.
NOT_IN_NUMPY = {
    "blockwise": "blockwise scales are not computed here",
    "sparse": "tensor 'w' holds no array of numbers",
    "stateful": "tensor 'state' holds no array of numbers",
    "strings": "is of type string",
    "variables": "CALL_ONCE has no kernel",
}


@pytest.mark.parametrize("name", NOT_IN_NUMPY)
def test_numpy_says_what_it_cannot_compute(name: str) -> None:
    with pytest.raises(CannotRun, match=f"^target numpy.*{NOT_IN_NUMPY[name]}"):
        outputs(zoo.MODELS[name](), "numpy")


@pytest.mark.parametrize("name", ["branches", "loop"])
@pytest.mark.parametrize("side", ["inputs", "outputs"])
@pytest.mark.parametrize("place", [1, 2])
def test_numpy_names_a_graph_that_does_not_fit_its_call(name: str, side: str, place: int) -> None:
    model = zoo.MODELS[name]()
    graph = model.graphs[place]
    tensors = getattr(graph, side)
    odd = replace(graph, **{side: (*tensors, tensors[0])})
    graphs = tuple(odd if one is graph else one for one in model.graphs)
    given = [np.ones(tensor.shape, tensor.dtype) for tensor in model.main.inputs]
    with pytest.raises(CannotRun, match=f"^target numpy: .* for the graph '{graph.name}', which"):
        walk(replace(model, graphs=graphs), model.main, given)


def test_numpy_names_a_loop_with_other_outputs_than_inputs() -> None:
    model = zoo.MODELS["loop"]()
    (op,) = model.main.ops
    odd = replace(model.main, ops=(replace(op, outputs=op.outputs[:1]),))
    given = [np.ones(tensor.shape, tensor.dtype) for tensor in model.main.inputs]
    with pytest.raises(CannotRun, match="has 1 outputs, and 2 were computed"):
        walk(replace(model, graphs=(odd, *model.graphs[1:])), odd, given)


@pytest.mark.parametrize("name", sorted({*RUNNABLE} - {*NOT_IN_NUMPY}))
def test_numpy_agrees(name: str) -> None:
    model = zoo.MODELS[name]()
    results = outputs(model, "numpy")
    for ours, theirs in zip(results, runtime.run(model, reference=True), strict=True):
        assert ours.dtype == theirs.dtype
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, atol=0.03 * np.abs(theirs).max(), rtol=1e-5)
        else:
            assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 2


def test_the_arrays_are_the_tensors() -> None:
    """No copy: what is written into a view is what runs, and the next run changes a view."""
    with Session(zoo.convnet()) as session:
        image, scores = session.inputs["image"], session.outputs["scores"]
        session.run()
        before = scores.copy()
        image[...] = 1
        session.run()
        assert not np.array_equal(scores, before)
        assert session.inputs["image"] is image
        assert session.outputs["scores"] is scores
        assert not session.copies
        assert image.ctypes.data % 64 == 0


def test_from_a_path_bytes_and_a_model(tmp_path: Path) -> None:
    save(zoo.convnet(), tmp_path / "m.tflite")
    first = outputs(zoo.convnet())
    np.testing.assert_array_equal(first, outputs(tmp_path / "m.tflite"))
    np.testing.assert_array_equal(first, outputs(to_bytes(zoo.convnet())))


@pytest.mark.parametrize("dtype", ["bool", "float32", "int16", "int32", "int64", "int8", "uint8"])
def test_element_types(dtype: str) -> None:
    b = Builder()
    model = b.model(b.op("CONCATENATION", b.input("x", (2,), dtype), b.input("y", (2,), dtype)))
    with Session(model) as session:
        session.inputs["x"] = np.array([1, 0], dtype)
        session.inputs["y"] = np.array([0, 1], dtype)
        session.run()
        (joined,) = session.outputs.values()
        assert str(joined.dtype) == dtype
        assert joined.tolist() == [1, 0, 0, 1]


def test_signatures() -> None:
    model = zoo.two_signatures()
    for key, expected in (("", np.exp(1)), ("up", np.exp(1)), ("down", -1)):
        for target in ("cpu:1", "cpu:1:reference", "numpy"):
            with Session(model, target, signature=key) as session:
                session.inputs["in"] = np.ones(3)
                session.run()
                np.testing.assert_allclose(session.outputs["out"], expected, rtol=1e-6)
    with pytest.raises(BadInput, match="no signature 'sideways'; the model has 'up', 'down'"):
        Session(model, signature="sideways")


def test_repeated_names_are_numbered() -> None:
    assert port_names(["t", "x", "t", "t"]) == ["t", "x", "t#2", "t#3"]
    b = Builder()
    model = b.model(b.op("SUB", b.input("t", (1,)), b.input("t", (1,)), name="d"))
    for target in TARGETS:
        with Session(model, target) as session:
            session.inputs["t"] = [3]
            session.inputs["t#2"] = [1]
            session.run()
            assert session.outputs["d"].tolist() == [2]


@pytest.mark.parametrize("target", [*TARGETS, "numpy"])
def test_resize(target: str) -> None:
    with Session(zoo.resizable(), target) as session:
        session.resize(x=(3, 4))
        session.inputs["x"] = np.arange(12).reshape(3, 4)
        session.run()
        (result,) = session.outputs.values()
        assert result.shape == (3, 2, 2)
        assert result.ravel().tolist() == list(range(12))


@pytest.mark.parametrize("target", TARGETS)
def test_a_size_that_values_decide(target: str) -> None:
    b = Builder()
    model = b.model(
        b.op(
            "WHERE", b.op("GREATER", b.input("x", (4,)), np.float32(0)), shape=(4, 1), dtype="int64"
        )
    )
    with Session(model, target) as session:
        for values, found in (([1, -1, 1, -1], [0, 2]), ([1, 1, 1, -1], [0, 1, 2])):
            session.inputs["x"] = np.array(values, np.float32)
            session.run()
            (places,) = session.outputs.values()
            assert places.ravel().tolist() == found
        assert session.copies
        assert "depends on values" in session.note or target.endswith("reference")


@pytest.mark.parametrize("guess", [(6, 1), (1, 1)])
@pytest.mark.parametrize("target", TARGETS)
def test_a_size_that_values_decide_further_up(target: str, guess: tuple[int, int]) -> None:
    b = Builder()
    places = b.op(
        "WHERE", b.op("GREATER", b.input("x", (6,)), np.float32(0)), shape=guess, dtype="int64"
    )
    model = b.model(b.op("NEG", b.op("CAST", places, dtype="float32")))
    with Session(model, target) as session:
        session.inputs["x"] = np.array([1, -1, 1, -1, 1, 1], np.float32)
        session.run()
        (result,) = session.outputs.values()
        assert result.ravel().tolist() == [0, -2, -4, -5]


def test_a_refused_size_leaves_the_session_as_it_was() -> None:
    with Session(zoo.convnet()) as session:
        session.inputs["image"] = np.ones((1, 8, 8, 3))
        session.run()
        before = session.outputs["scores"].copy()
        with pytest.raises(BadInput, match="cannot resize"):
            session.resize(image=(1, 8, 8, 4))
        session.inputs["image"] = np.ones((1, 8, 8, 3))
        session.run()
        np.testing.assert_array_equal(session.outputs["scores"], before)


def run_at_once(work: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_calls_of_threads_take_turns() -> None:
    random = np.random.default_rng(0)
    images = random.normal(0, 1, (3, 1, 8, 8, 3)).astype(np.float32)
    wrong: list[int] = []
    with Session(zoo.convnet()) as session:
        expected = [session(image)["scores"] for image in images]

        def work(number: int) -> None:
            for _ in range(300):
                if not np.array_equal(session(images[number])["scores"], expected[number]):
                    wrong.append(number)

        run_at_once(work)
        assert not wrong and not np.array_equal(expected[0], expected[1])
        for given in ((), (images[0], images[1])):
            with pytest.raises(BadInput, match="give each input once: 'image'"):
                session(*given)
        with pytest.raises(BadInput, match="give each input once"):
            session(images[0], image=images[1])


def test_a_run_that_meets_another_is_refused_and_closing_waits() -> None:
    session = Session(zoo.convnet())
    session.run()
    expected = session.outputs["scores"].copy()
    scores = session.outputs["scores"]
    failures: list[str] = []

    def work(number: int) -> None:
        for turn in range(2000):
            try:
                session.run()
            except CannotRun as error:
                failures.append(str(error))
            if number == 0 and turn == 1000:
                session.close()

    run_at_once(work)
    assert all("closed" in text or "another thread runs" in text for text in failures)
    np.testing.assert_array_equal(scores, expected)


def test_numbers_that_do_not_fit_are_refused() -> None:
    with Session(zoo.residual_int8()) as session:
        with pytest.raises(BadInput, match="values from -200 to 0 do not fit"):
            session.inputs["x"] = np.full((1, 4, 4, 4), 0) - np.eye(4, dtype=int) * 200
        session.inputs["x"] = np.full((1, 4, 4, 4), -128)


def test_a_signature_that_leaves_an_input_out() -> None:
    b = Builder()
    x, y = b.input("x", (2,)), b.input("y", (2,))
    z = b.op("ADD", x, y, name="z")
    graph = b.graph(z)
    model = Model((graph,), (Signature("partly", 0, (("x", x),), (("z", z),)),))
    with Session(model) as session:
        session.inputs["x"] = [1, 2]
        session.run()
        assert session.outputs["z"].tolist() == [1, 2]


def test_an_output_listed_twice_is_there_twice() -> None:
    b = Builder()
    y = b.op("ABS", b.input("x", (2,)), name="y")
    with Session(b.model(y, y)) as session:
        session.inputs["x"] = [-1, -2]
        session.run()
        assert {name: a.tolist() for name, a in session.outputs.items()} == {
            "y": [1, 2],
            "y#2": [1, 2],
        }


def test_weight_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for _ in range(2):
        with Session(zoo.convnet(), weight_cache=str(cache)) as session:
            session.run()
            np.testing.assert_array_equal(list(session.outputs.values()), _zeros_through_convnet())


def test_a_weight_cache_is_never_taken_for_another_models(tmp_path: Path) -> None:
    """Two layers of one shape: the runtime would take the first one's weights for the second's."""
    results = []
    for seed in (1, 2, 1):
        b = Builder()
        y = b.op(
            "FULLY_CONNECTED", b.input("x", (1, 64)), zoo.noise(64, 64, seed=seed), zoo.noise(64)
        )
        with Session(b.model(y), weight_cache=tmp_path / "cache") as session:
            session.inputs["x"] = np.ones((1, 64))
            session.run()
            results.append([array.copy() for array in session.outputs.values()])
    np.testing.assert_array_equal(results[0], results[2])
    assert not np.array_equal(results[0], results[1])
    with pytest.raises(BadInput, match="does not exist"):
        Session(zoo.convnet(), weight_cache=tmp_path / "no" / "cache")


def _zeros_through_convnet() -> list[np.ndarray]:
    with Session(zoo.convnet()) as session:
        session.run()
        return [array.copy() for array in session.outputs.values()]


def test_what_does_not_fit() -> None:
    with Session(zoo.convnet()) as session:
        assert "image" in session.inputs
        assert "picture" not in session.inputs
        with pytest.raises(BadInput, match="no input 'picture'; there are 'image'"):
            session.inputs["picture"]
        with pytest.raises(BadInput, match=r"has shape \(1, 8, 8, 3\); \(8, 8, 3\) was given"):
            session.inputs["image"] = np.zeros((8, 8, 3))
        with pytest.raises(BadInput, match="no input 'x'"):
            session.resize(x=(1,))
        with pytest.raises(BadInput, match="cannot resize"):
            session.resize(image=(1, 8, 8, 4))
    with (
        Session(zoo.residual_int8()) as session,
        pytest.raises(BadInput, match="is int8; float64 was"),
    ):
        session.inputs["x"] = np.zeros((1, 4, 4, 4))


@pytest.mark.parametrize("target", TARGETS)
def test_an_unknown_custom_op_is_named_when_the_session_opens(target: str) -> None:
    with pytest.raises(CannotRun, match=r"custom operator 'Mystery'"):
        Session(zoo.custom(), target)


def test_the_runtimes_reason_becomes_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    b = Builder()
    broken = b.model(
        b.op(
            "CONV_2D",
            b.input("x", (1, 4, 4, 3)),
            zoo.noise(2, 3, 3, 5),
            zoo.noise(2),
            shape=(1, 4, 4, 2),
        )
    )
    for target in TARGETS:
        with pytest.raises(CannotRun, match=r"op 0 \(CONV_2D\)") as caught:
            outputs(broken, target)
        assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_causes() -> None:
    assert one_cause("") == ""
    told = "a.cc:3 x != y\nNode number 4 (ADD) failed to prepare.\nFailed to allocate tensors\n"
    assert one_cause(told) == "op 4 (ADD): a.cc:3 x != y"
    assert one_cause("no runtimeNode number 1 (X) failed to prepare.") == "op 1 (X): no runtime"
    flex = one_cause("Select ops, for Android …\nNode number 0 (FlexMul) failed to prepare.")
    assert flex.startswith("op 0 (FlexMul)") and "TFLITE_BUILTINS" in flex
    assert "--on micro" in one_cause("Encountered unresolved custom op: SignalWindow.\nSee")


def test_a_profile_of_outputs_that_are_larger_than_the_file_says() -> None:
    """The runtime wrote them into memory of the size in the file, and ended the process."""
    with Session(zoo.sized_late(), profile=True) as session:
        fill_inputs(session)
        session.run()
        session.start_profile()
        session.run()
        assert session.stop_profile()


@pytest.mark.parametrize("kind", ["int32", "float32"])
def test_rows_are_picked_by_numbers_that_a_table_has(kind: str) -> None:
    """Numbers of words that come as floats were drawn as floats, also below 0."""
    b = Builder()
    words = b.op(
        "CAST", b.op("RESHAPE", b.input("words", (1, 6), kind), [6]), out_data_type="INT32"
    )
    model = b.model(b.op("GATHER", zoo.noise(9, 4), words))
    with Session(model) as session:
        fill_inputs(session)
        session.run()
        assert set(session.inputs["words"].ravel().tolist()) == {0, 1}


def test_versions_that_the_binding_does_not_know() -> None:
    assert why_not(installed_version()) == ""
    assert why_not("2.3.9") == ""
    assert "9.9.9" in why_not("9.9.9")


def test_the_fallback_for_such_versions_computes_the_same() -> None:
    names = (["image"], ["scores"])
    runner = InterpreterRunner(to_bytes(zoo.convnet()), Target.parse("cpu:1"), names=names)
    runner.run()
    with Session(zoo.convnet()) as session:
        session.run()
        np.testing.assert_array_equal(runner.outputs[0].array, session.outputs["scores"])


def test_gpu_is_used_or_refused_in_one_line() -> None:
    try:
        Session(zoo.convnet(), "gpu").close()
    except CannotRun as error:
        assert "target gpu" in str(error) or "on gpu" in str(error)
        assert "\n" not in str(error)


def test_a_refused_size_leaves_the_model_as_it_was() -> None:
    with Session(zoo.stateful()) as session:
        with pytest.raises(BadInput, match="cannot resize"):
            session.resize(x=(2, 4))
        session.run()


def test_closing() -> None:
    session = Session(zoo.convnet())
    kept = session.inputs["image"]
    session.close()
    session.close()
    kept[...] = 1  # memory of ours: still there, no longer a model's
    with pytest.raises(CannotRun, match="closed"):
        session.run()
    with pytest.raises(CannotRun, match="closed"):
        session.inputs["image"]
    with pytest.raises(CannotRun, match="closed"):
        session.resize(image=(1, 8, 8, 3))
    del session
    gc.collect()


@pytest.mark.parametrize("target", [*TARGETS, "numpy"])
def test_a_session_goes_without_the_garbage_collector(target: str) -> None:
    """Timing keeps it away, and each load would keep a copy of the model."""
    with pause_collection():
        session = Session(zoo.convnet(), target)
        fill_inputs(session)
        session.run()
        seen = weakref.ref(session)
        session.close()
        del session
        assert seen() is None


class Sessions(RuleBasedStateMachine):
    """Open, run, resize, close and forget sessions in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[Session] = []
        self.views: list[np.ndarray] = []

    @rule(name=st.sampled_from(("convnet", "resizable", "residual_int8", "stateful", "loop")))
    def open_one(self, name: str) -> None:
        if len(self.open) < 6:
            self.open.append(Session(zoo.MODELS[name]()))

    @rule(pick=st.integers(0, 5))
    def run_one(self, pick: int) -> None:
        for session in self.open[pick : pick + 1]:
            session.run()
            self.views.extend(session.outputs.values())

    @rule(pick=st.integers(0, 5), rows=st.integers(1, 4))
    def resize_one(self, pick: int, rows: int) -> None:
        for session in self.open[pick : pick + 1]:
            if "x" in session.inputs and session.inputs["x"].shape[1:] == (4,):
                try:
                    session.resize(x=(rows, 4))
                    session.run()
                except (BadInput, CannotRun) as error:
                    assert "\n" not in str(error)

    @rule(pick=st.integers(0, 5))
    def close_one(self, pick: int) -> None:
        for session in self.open[pick : pick + 1]:
            session.close()
            with pytest.raises(CannotRun):
                session.run()
            self.open.remove(session)

    @rule(pick=st.integers(0, 5))
    def forget_one(self, pick: int) -> None:
        del self.open[pick : pick + 1]
        gc.collect()

    @invariant()
    def views_can_be_read(self) -> None:
        for view in self.views[-8:]:
            view.sum()


TestSessions = Sessions.TestCase
TestSessions.settings = settings(draws(25), stateful_step_count=25)


@pytest.mark.skipif(libc().mallopt is None, reason="another C library than glibc")
def test_a_model_that_is_profiled_anew_takes_no_new_memory() -> None:
    """The profiler's buffer alone has 17,000 pages: taking them lasted longer than most runs."""
    import resource  # which Windows has not

    model = zoo.convnet()
    for _ in range(3):
        Session(model, profile=True).close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        Session(model, profile=True).close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 17_000


@posix
def test_thousands_of_sessions_leave_nothing_behind() -> None:
    script = """
import resource
from litesmith.run.session import Session
from litesmith.tflite.write import to_bytes
from tests.zoo import convnet
data = to_bytes(convnet())
def cycle(count):
    for _ in range(count):
        with Session(data) as session:
            session.run()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = cycle(300)
print(cycle(1500) - before)
"""
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) * 1024 < 10e6


def test_probe(tmp_path: Path) -> None:
    save(zoo.convnet(), tmp_path / "good.tflite")
    probe(tmp_path / "good.tflite")
    save(zoo.custom(), tmp_path / "custom.tflite")
    with pytest.raises(CannotRun, match="'Mystery'"):
        probe(tmp_path / "custom.tflite")


def test_probe_survives_a_crash_of_native_code_and_names_the_op(tmp_path: Path) -> None:
    """A RESHAPE whose shape input is marked as absent passes every check and kills the runtime."""
    b = Builder()
    negative = b.op("NEG", b.input("x", (4,)), name="negative")
    crashing = b.op("RESHAPE", negative, None, shape=(2, 2), name="square")
    save(b.model(b.op("ABS", crashing)), tmp_path / "crash.tflite")
    with pytest.raises(CannotRun, match=r"RESHAPE 'square' crashes the runtime on cpu:1 \(.+\)"):
        probe(tmp_path / "crash.tflite")


def test_a_name_that_is_no_text_is_told_as_such() -> None:
    """The classic interpreter, which a state needs, hands names on as texts."""
    model = zoo.stateful()
    (x,) = model.main.inputs
    named = replace(x, name="x\udced")
    op = replace(model.main.ops[0], inputs=(named, *model.main.ops[0].inputs[1:]))
    tensors = tuple(named if tensor is x else tensor for tensor in model.main.tensors)
    graph = replace(model.main, inputs=(named,), ops=(op,), tensors=tensors)
    with pytest.raises(CannotRun, match="not UTF-8"):
        Session(replace(model, graphs=(graph,)))
