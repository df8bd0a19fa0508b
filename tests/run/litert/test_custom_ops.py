"""Custom ops: numpy is what they mean, in Python and compiled, wherever they stand in a model."""

import gc
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import ops
from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.ir.build import Builder
from litesmith.ir.types import Graph, Model, Op, Quant, Signature, Tensor
from litesmith.ops import native
from litesmith.ops.registry import VARIABLE, meaning
from litesmith.profiling.op_times import profile_ops
from litesmith.run.accelerators.targets import with_custom
from litesmith.run.litert.delegated_ops import delegate_ops
from litesmith.run.session import Session
from litesmith.run.trial_run import probe
from litesmith.tflite.file import load, save
from tests import runtime, zoo
from tests.platforms import has_proc

CPUS = ("cpu:1", "cpu:2", "cpu:1:builtin")
TARGETS = (*CPUS, "numpy")
VALUES = np.float32([[-3, -1, 0.5], [1, 2, 3]])
HARD_MISH = VALUES / 2 * np.clip(VALUES + 2, 0, 2)


@pytest.fixture(autouse=True)
def _scope(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(VARIABLE, "")
    with ops.scope():
        yield


@pytest.fixture
def hard_mish() -> ops.Operator:
    @litesmith.op("HardMish")
    def hard_mish(x):
        return x / 2 * np.clip(x + 2, 0, 2)

    return hard_mish


def compiled(operator: ops.Operator) -> None:
    """Gives HardMish loops of its own."""
    pytest.importorskip("numba")

    @operator.native
    def _(x, out):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = x[i, j] / 2 * min(max(x[i, j] + 2, 0), 2)


def one(operator: ops.Operator, *inputs, shape=(2, 3), dtype="float32", quant=None, **options):
    """A model of one op, with an input `x` before the other ones."""
    b = Builder()
    x = b.input("x", shape, dtype, quant=quant)
    return b.model(operator.add(b, x, *inputs, name="y", quant=quant, **options))


def computed(model: Model | Path, target: str = "cpu:1", x=VALUES, **options) -> list[np.ndarray]:
    with Session(model, target, **options) as session:
        session.inputs["x"] = x
        session.run()
        return [array.copy() for array in session.outputs.values()]


@pytest.mark.parametrize("target", TARGETS)
def test_numpy_is_what_an_op_means(hard_mish: ops.Operator, target: str) -> None:
    np.testing.assert_array_equal(computed(one(hard_mish), target)[0], HARD_MISH)


@pytest.mark.parametrize("target", CPUS)
def test_loops_are_compiled(hard_mish: ops.Operator, target: str) -> None:
    compiled(hard_mish)
    hard_mish.reference = None  # type: ignore[assignment]
    hard_mish.shape = lambda x: x
    b = Builder()
    model = b.model(b.op("CUSTOM", b.input("x", (2, 3)), custom="HardMish", shape=(2, 3)))
    hard_mish.reference = lambda x: 1 / 0  # only machine code computes
    np.testing.assert_allclose(computed(model, target)[0], HARD_MISH, rtol=1e-6)


def test_the_file_is_a_plain_custom_op(hard_mish: ops.Operator, tmp_path: Path) -> None:
    save(one(hard_mish), tmp_path / "m.tflite")
    (op,) = load(tmp_path / "m.tflite").main.ops
    assert (op.kind, op.custom, len(op.inputs)) == ("CUSTOM", "HardMish", 1)
    np.testing.assert_array_equal(computed(tmp_path / "m.tflite")[0], HARD_MISH)


@pytest.mark.parametrize(
    ("target", "native"), [*((target, False) for target in TARGETS), ("cpu:1", True)]
)
def test_options_constants_and_what_is_left_out(target: str, native: bool) -> None:
    @litesmith.op("Scaled")
    def scaled(x, w, b=None, *, by=2.0, sizes=()):
        return x * w * by + (len(sizes) if b is None else b)

    if native:
        pytest.importorskip("numba")

        @scaled.native
        def _(x, w, b, out, by, sizes):
            for i in range(x.shape[0]):
                for j in range(x.shape[1]):
                    out[i, j] = x[i, j] * w[j] * by + len(sizes)

    weight = np.float32([1, 2, 3])
    for options in ({}, {"by": 0.5, "sizes": [1, 2]}):
        expected = scaled(VALUES, weight, **options)
        model = one(scaled, weight, None, **options)
        np.testing.assert_array_equal(computed(model, target)[0], expected)


def test_several_outputs_and_a_number_without_dimensions() -> None:
    @litesmith.op("Split")
    def split(x):
        return x[:, :1], np.argmax(x, axis=1).astype(np.int32), x.sum()

    b = Builder()
    split.add(b, b.input("x", (2, 3)))
    model = b.model(*b.last.outputs)
    assert [(t.shape, t.dtype) for t in model.main.outputs] == [
        ((2, 1), "float32"),
        ((2,), "int32"),
        ((), "float32"),
    ]
    for target in TARGETS:
        first, second, third = computed(model, target)
        np.testing.assert_array_equal(first, VALUES[:, :1])
        np.testing.assert_array_equal(second, [2, 2])
        assert third == VALUES.sum()


def test_an_op_of_constants_alone(hard_mish: ops.Operator) -> None:
    b = Builder()
    x = b.input("x", (2, 3))
    model = b.model(b.op("ADD", x, hard_mish.add(b, VALUES)))
    np.testing.assert_array_equal(computed(model)[0], VALUES + HARD_MISH)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "bool", "float16"])
def test_element_types(dtype: str) -> None:
    @litesmith.op("Turned")
    def turned(x):
        return x[:, ::-1]

    x = (np.arange(6).reshape(2, 3) % 2).astype(dtype)
    for target in TARGETS:
        (y,) = computed(one(turned, dtype=dtype), target, x)
        assert y.dtype == dtype
        np.testing.assert_array_equal(y, x[:, ::-1])


# Quantized tensors.

STEP = Quant.of(0.5, 3)


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_sees_real_numbers(hard_mish: ops.Operator, target: str) -> None:
    x = np.int8([[-3, 1, 4], [5, 7, 9]])
    real = hard_mish((x.astype(np.float32) - 3) * 0.5)
    (y,) = computed(one(hard_mish, dtype="int8", quant=STEP), target, x)
    assert y.dtype == np.int8
    np.testing.assert_allclose((y.astype(np.float32) - 3) * 0.5, real, atol=0.25)


@pytest.mark.parametrize("target", TARGETS)
def test_a_function_with_op_sees_integers_and_their_scales(target: str) -> None:
    @litesmith.op("Raised")
    def raised(x, *, op):
        assert x.dtype == np.int8
        return x + op.outputs[0].quant.zero_point[0].astype(np.int8) if op.outputs else x

    x = np.int8([[-3, 1, 4], [5, 7, 9]])
    np.testing.assert_array_equal(
        computed(one(raised, dtype="int8", quant=STEP), target, x)[0], x + 3
    )


def test_loops_take_scales_or_leave_integers_to_the_function(hard_mish: ops.Operator) -> None:
    compiled(hard_mish)
    model = one(hard_mish, dtype="int8", quant=STEP)
    with Session(model) as session:
        assert "runs in Python: it is quantized" in session.note

    @hard_mish.native
    def _(x, out, scales, zero_points):
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                real = (x[i, j] - zero_points[0]) * scales[0]
                y = real / 2 * min(max(real + 2, 0), 2)
                out[i, j] = round(y / scales[1]) + zero_points[1]

    x = np.int8([[-3, 1, 4], [5, 7, 9]])
    with Session(model) as session:
        assert not session.note
    np.testing.assert_array_equal(computed(model, x=x)[0], computed(model, "numpy", x)[0])


def test_options_as_they_are() -> None:
    @litesmith.op("Foreign")
    def foreign(x, *, raw):
        return x + len(raw)

    b = Builder()
    x = b.input("x", (2, 3))
    y = b.op("CUSTOM", x, custom="Foreign", custom_options=b"\1\2\3", shape=(2, 3))
    for target in TARGETS:
        np.testing.assert_array_equal(computed(b.model(y), target)[0], VALUES + 3)


# What goes wrong.


def failing(error: BaseException, *, only_if: float = 3.0) -> ops.Operator:
    @litesmith.op("Failing", shape=lambda x: x, replace=True)
    def fails(x):
        if x.max() >= only_if:
            raise error
        return x

    return fails


@pytest.mark.parametrize("target", TARGETS)
def test_an_exception_is_the_runs_and_the_session_goes_on(target: str) -> None:
    error = ZeroDivisionError("in the\nmiddle")
    b = Builder()
    y = b.op("NEG", failing(error).add(b, b.op("NEG", b.op("NEG", b.input("x", (2, 3))))))
    with Session(b.model(y), target) as session:
        for _ in range(2):
            session.inputs["x"] = VALUES
            with pytest.raises(CannotRun, match=r"Failing.*ZeroDivisionError: in the middle") as e:
                session.run()
            assert e.value.__cause__ is error
            session.inputs["x"] = VALUES - 1
            session.run()
            np.testing.assert_array_equal(*session.outputs.values(), 1 - VALUES)


def test_an_interruption_stays_one() -> None:
    with Session(one(failing(KeyboardInterrupt()))) as session:
        session.inputs["x"] = VALUES
        with pytest.raises(KeyboardInterrupt):
            session.run()


def test_an_exception_of_machine_code() -> None:
    pytest.importorskip("numba")
    operator = failing(ValueError("never called"))

    @operator.native
    def _(x, out):
        if x[1, 2] >= 3.0:
            raise ValueError("too large")
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                out[i, j] = x[i, j]

    with Session(one(operator)) as session:
        session.inputs["x"] = VALUES
        with pytest.raises(CannotRun, match=r"CUSTOM Failing 'y': its native kernel raised"):
            session.run()
        session.inputs["x"] = VALUES - 1
        session.run()
        np.testing.assert_array_equal(*session.outputs.values(), VALUES - 1)


RESULTS = {
    "its function gave the shape \\(3, 2\\)": lambda x: x.T,
    "its function gave complex128, and the model has float32": lambda x: x.astype(complex),
    "its function gave 2 arrays for 1 outputs": lambda x: (x, x),
    "returned None": lambda x: None,
    "output array is read-only": lambda x: np.negative(x, out=x),
}


@pytest.mark.parametrize("message", RESULTS)
def test_a_wrong_result_is_said(message: str) -> None:
    litesmith.op("Wrong", shape=lambda x: x)(RESULTS[message])
    b = Builder()
    y = b.op("CUSTOM", b.input("x", (2, 3)), custom="Wrong", shape=(2, 3))
    with Session(b.model(y)) as session, pytest.raises(CannotRun, match=message):
        session.run()


def test_results_of_the_same_sort_are_converted() -> None:
    litesmith.op("Wide", shape=lambda x: x)(lambda x: x.astype(np.float64))
    b = Builder()
    y = b.op("CUSTOM", b.input("x", (2, 3)), custom="Wide", shape=(2, 3))
    np.testing.assert_array_equal(computed(b.model(y))[0], VALUES)


MISFITS = {
    "has the option 'by' in the model, and its function has no parameter": (lambda x: x, 1),
    "has no option 'scale' in the model": (lambda x, *, by, scale: x, 1),
    "has 2 inputs in the model: too many positional arguments": (lambda x, *, by: x, 2),
    "missing a required argument: 'w'": (lambda x, w, *, by: x, 1),
    "ValueError: no zeros please .*give litesmith.op a shape": (lambda x, *, by: never(x), 1),
}


def never(x: np.ndarray) -> np.ndarray:
    raise ValueError("no zeros please")


@pytest.mark.parametrize("message", MISFITS)
@pytest.mark.parametrize("target", CPUS)
def test_a_misfit_is_said_when_the_session_opens(message: str, target: str) -> None:
    function, count = MISFITS[message]
    litesmith.op("Misfit")(function)
    b = Builder()
    x = b.input("x", (2, 3))
    given = ops.op("Other")(lambda *x, by: x[0])
    given.add(b, *[x] * count, by=1)
    b.ops[-1] = Op("CUSTOM", b.last.inputs, b.last.outputs, custom="Misfit", rest=b.last.rest)
    with pytest.raises(CannotRun, match=message):
        Session(b.model(*b.last.outputs), target)


def test_loops_that_do_not_compile_are_said(hard_mish: ops.Operator) -> None:
    pytest.importorskip("numba")
    hard_mish.native(lambda x, out: x.no_such_thing())
    with pytest.raises(CannotRun, match=r"numba cannot compile it: .*no_such_thing") as e:
        Session(one(hard_mish))
    assert "\n" not in str(e.value)
    hard_mish.native(lambda x: None)
    with pytest.raises(CannotRun, match="takes x, and the call has 1 inputs and 1 outputs"):
        Session(one(hard_mish))


def test_colours_of_numba_are_left_out() -> None:
    errors = pytest.importorskip("numba.core.errors")
    told = "\x1b[1mFailed in nopython mode\x1b[0m\n\x1b[1m\x1b[31mUnknown attribute 'a'\x1b[0m"
    assert native.cause(errors.TypingError(told)) == "Unknown attribute 'a'"


def test_without_numba_the_function_runs(
    hard_mish: ops.Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard_mish.native(lambda x, out: None)
    monkeypatch.setitem(sys.modules, "numba", None)
    with Session(one(hard_mish)) as session:
        assert session.note == f"op 'HardMish' runs in Python: {install_command('jit')}"
        session.inputs["x"] = VALUES
        session.run()
        np.testing.assert_array_equal(*session.outputs.values(), HARD_MISH)


def test_the_classic_interpreter_has_no_such_kernels(hard_mish: ops.Operator) -> None:
    with pytest.raises(CannotRun, match=r"takes no kernels of ours.*'HardMish'; use numpy"):
        Session(one(hard_mish), "cpu:1:reference")


# Many of them.


def chain(operator: ops.Operator, count: int, shape=(1, 4)) -> Model:
    b = Builder()
    y = b.input("x", shape)
    for _ in range(count):
        y = operator.add(b, y)
    return b.model(y)


@has_proc
@pytest.mark.parametrize("native", [False, True])
def test_memory_does_not_grow(hard_mish: ops.Operator, native: bool) -> None:
    if native:
        compiled(hard_mish)
    with Session(chain(hard_mish, 50)) as session:
        for _ in range(100):
            session.run()
        gc.collect()
        before = resident()
        for _ in range(10_000 if native else 1_000):
            session.run()
        assert resident() - before < 2_000_000


def resident() -> int:
    pages = Path("/proc/self/statm").read_text("utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_each_place_has_its_own_options_and_memory() -> None:
    @litesmith.op("Plus")
    def plus(x, *, n):
        return x + n

    b = Builder()
    y = x = b.input("x", (2, 3))
    for n in range(5):
        y = plus.add(b, y, n=10.0**n)
    z = plus.add(b, x, n=-1.0)
    for target in TARGETS:
        first, second = computed(b.model(y, z), target)
        np.testing.assert_allclose(first, VALUES + 11111)
        np.testing.assert_allclose(second, VALUES - 1)


@pytest.mark.parametrize("native", [False, True])
def test_two_sessions_in_two_threads(hard_mish: ops.Operator, native: bool) -> None:
    if native:
        compiled(hard_mish)
    wrong: list[str] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).normal(size=(2, 3)).astype(np.float32)
        expected = hard_mish(hard_mish(hard_mish(x)))
        with Session(chain(hard_mish, 3, (2, 3))) as session:
            session.inputs["x"] = x
            for _ in range(200):
                session.run()
                (y,) = session.outputs.values()
                if not np.allclose(y, expected, rtol=1e-5):
                    wrong.append(f"{y} is not {expected}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("native", [False, True])
def test_a_free_batch(hard_mish: ops.Operator, native: bool) -> None:
    if native:
        compiled(hard_mish)
    with Session(chain(hard_mish, 2, (-1, 3))) as session:
        for count in (1, 7, 2):
            x = np.random.default_rng(count).normal(size=(count, 3)).astype(np.float32)
            session.resize(x=(count, 3))
            session.inputs["x"] = x
            session.run()
            (y,) = session.outputs.values()
            np.testing.assert_allclose(y, hard_mish(hard_mish(x)), rtol=1e-5)


def test_a_resize_that_an_op_refuses_leaves_the_session_as_it_was() -> None:
    @litesmith.op("Small")
    def small(x):
        if x.shape[0] > 3:
            raise ValueError("too many rows")
        return x + 1

    with Session(chain(small, 2, (-1, 3))) as session:
        session.resize(x=(2, 3))
        session.inputs["x"] = VALUES
        with pytest.raises(BadInput, match=r"cannot resize to .*Small.*too many rows"):
            session.resize(x=(4, 3))
        session.inputs["x"] = VALUES
        session.run()
        np.testing.assert_array_equal(*session.outputs.values(), VALUES + 2)


def test_every_signature_has_its_ops(hard_mish: ops.Operator) -> None:
    graphs: list[Graph] = []
    signatures: list[Signature] = []
    for number, name in enumerate(("first", "second")):
        b = Builder(name)
        x = b.input("x", (2, 3))
        y = hard_mish.add(b, x)
        for _ in range(number):
            y = hard_mish.add(b, y)
        graphs.append(b.graph(y))
        signatures.append(Signature(name, number, (("x", x),), (("y", y),)))
    model = Model(tuple(graphs), tuple(signatures))
    for target in TARGETS:
        np.testing.assert_array_equal(computed(model, target, signature="first")[0], HARD_MISH)
        twice = computed(model, target, signature="second")[0]
        np.testing.assert_array_equal(twice, hard_mish(HARD_MISH))


def test_a_profile_has_its_time(hard_mish: ops.Operator) -> None:
    b = Builder()
    y = b.op("EXP", hard_mish.add(b, b.input("x", (64, 64))))
    seen = profile_ops(b.model(y), "cpu:1", runs=5)
    (custom,) = [op for op in seen.ops if op.kernel == "custom"]
    assert custom.index == 0 and custom.us > 0


# Names.


def test_names_are_taken_once(hard_mish: ops.Operator) -> None:
    def other(x):
        return x

    with pytest.raises(BadInput, match=r"op 'HardMish' is .*hard_mish already; .*replace=True"):
        litesmith.op("HardMish")(other)
    assert litesmith.op("HardMish", replace=True)(other).reference is other
    litesmith.op("HardMish")(other)  # the same function may come again
    ops.unregister("HardMish")
    with pytest.raises(BadInput, match="no op 'HardMish'; there are none"):
        ops.unregister("HardMish")
    with pytest.raises(CannotRun, match="the custom operator 'HardMish', and no kernel is reg"):
        Session(one(hard_mish))


def test_a_function_must_tell_its_parameters() -> None:
    for wrong in (3, min):
        with pytest.raises(BadInput, match=r"op 'Wrong': .* does not tell its parameters"):
            litesmith.op("Wrong")(wrong)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="a name is needed"):
        litesmith.op("")


def test_a_scope_forgets() -> None:
    with ops.scope():
        litesmith.op("Inner")(lambda x: x)
        litesmith.delegate("inner")(Runtime)
    with pytest.raises(BadInput, match="no op 'Inner'"):
        ops.unregister("Inner")
    with pytest.raises(BadInput, match="no delegate 'inner'; there are none"):
        Session(zoo.convnet(), "custom:inner")


FILE = """
import litesmith

@litesmith.op("FromFile")
def from_file(x):
    return x + 1
"""


def test_a_file_of_ops_is_loaded_in_child_processes(tmp_path: Path) -> None:
    (tmp_path / "my_ops.py").write_text(FILE)
    ops.load(str(tmp_path / "my_ops.py"))
    b = Builder()
    y = b.op("CUSTOM", b.input("x", (2, 3)), custom="FromFile", shape=(2, 3))
    save(b.model(y), tmp_path / "m.tflite")
    probe(tmp_path / "m.tflite")
    np.testing.assert_array_equal(computed(tmp_path / "m.tflite")[0], VALUES + 1)


def test_another_function_is_another_meaning(tmp_path: Path) -> None:
    b = Builder()
    y = b.op("CUSTOM", b.input("x", (2, 3)), custom="FromFile", shape=(2, 3))
    seen = {meaning(b.model(y)), meaning(zoo.convnet())}
    assert seen == {""}
    for number in range(2):
        (tmp_path / f"{number}.py").write_text(FILE.replace("1", str(number)))
        with ops.scope():
            ops.load(str(tmp_path / f"{number}.py"))
            seen |= {meaning(b.model(y)), meaning(b.model(y))}
    assert len(seen) == 3


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(BadInput, match=r"--ops .*broken.py: ZeroDivisionError: division by zero"):
        ops.load(str(tmp_path / "broken.py"))
    with pytest.raises(BadInput, match=r"--ops .*absent.py: no such file"):
        ops.load(str(tmp_path / "absent.py"))
    with pytest.raises(BadInput, match="--ops no_such_module: ModuleNotFoundError"):
        ops.load("no_such_module")


# Checks.


def test_loops_are_checked_against_the_function(hard_mish: ops.Operator) -> None:
    compiled(hard_mish)
    found = ops.check(hard_mish, VALUES)
    assert found and found.largest < 1e-6

    @hard_mish.native
    def _(x, out):
        out[0, 0] = x[0, 0]

    found = ops.check(hard_mish, VALUES)
    assert not found and found.largest == np.inf, "what is not written must be seen"

    @hard_mish.native
    def outside(x, out):
        out[x.shape[0], 0] = x[0, 0]

    with pytest.raises(CannotRun, match=r"native kernel of 'HardMish': IndexError"):
        ops.check(hard_mish, VALUES)


# Delegates.


class Runtime:
    """Runs every second sort of op in a session of its own."""

    def claims(self, op: Op) -> bool | str:
        return sum(op.kind.encode()) % 2 == 0 or "its name is odd"

    def program(self, graph: Graph):
        session = Session(Model((graph,)))

        def run(inputs, outputs):
            for name, array in zip(session.inputs, inputs, strict=True):
                session.inputs[name] = array
            session.run()
            for array, result in zip(outputs, session.outputs.values(), strict=True):
                array[...] = result

        return run


RUNNABLE = [name for name in zoo.MODELS if name not in zoo.NOT_RUNNABLE]


# What no delegate takes, and why.
NOT_DELEGATED = {
    "nothing": "an output is an input or a constant; use cpu",
    "resizable": "the size of what RESHAPE .* makes depends on values; use cpu",
    "stateful": "SVDF .* keeps a state in variable tensors; use cpu",
    "strings": "has no plain element type; use cpu",
}


@pytest.mark.parametrize("name", NOT_DELEGATED)
def test_what_no_delegate_takes_is_refused(name: str) -> None:
    litesmith.delegate("odd", replace=True)(Runtime)
    with pytest.raises(CannotRun, match=f"^target custom:odd: .*{NOT_DELEGATED[name]}$"):
        Session(zoo.MODELS[name](), "custom:odd")


@pytest.mark.parametrize("name", sorted({*RUNNABLE} - {*NOT_DELEGATED}))
def test_a_delegate_changes_no_result(name: str) -> None:
    litesmith.delegate("odd", replace=True)(Runtime)
    model = zoo.MODELS[name]()
    expected = runtime.run(model, 5)
    with Session(model, "custom:odd") as session:
        random = np.random.default_rng(5)
        for port, array in session.inputs.items():
            session.inputs[port] = runtime.random_input(random, np.array(array.shape), array.dtype)
        session.run()
        for ours, theirs in zip(session.outputs.values(), expected, strict=True):
            if ours.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(theirs).max())
            else:
                np.testing.assert_array_equal(ours, theirs)


def test_what_a_delegate_takes_is_told() -> None:
    litesmith.delegate("odd", replace=True)(Runtime)
    row = with_custom()[-1]
    assert row.name == "custom:odd"
    assert row.title == "Runs every second sort of op in a session of its own"
    model = zoo.convnet()
    assert row.place is not None
    found = row.place(model)
    kinds = [op.kind for op in model.main.ops]
    assert [home.taken for home in found.homes] == [sum(k.encode()) % 2 == 0 for k in kinds]
    assert {home.why for home in found.homes} <= {"it claims it", "its name is odd"}
    delegated, kernels = delegate_ops(model, Runtime(), "odd")
    assert len(kernels) == found.partitions
    assert sum(op.kind == "CUSTOM" for op in delegated.main.ops) == found.partitions


class Doubler:
    """Takes ADD, at any size."""

    sizes: list[tuple[int, ...]] = []

    def claims(self, op: Op) -> bool:
        return op.kind == "ADD"

    def program(self, graph: Graph):
        self.sizes.append(graph.inputs[0].shape)

        def run(inputs, outputs):
            np.add(inputs[0], inputs[0], out=outputs[0])

        return run


def test_a_delegate_is_asked_again_after_a_resize() -> None:
    litesmith.delegate("doubler")(Doubler)
    b = Builder()
    x = b.input("x", (-1, 3))
    with Session(b.model(b.op("EXP", b.op("ADD", x, x))), "custom:doubler:2") as session:
        session.resize(x=(2, 3))
        session.inputs["x"] = VALUES
        session.run()
        np.testing.assert_allclose(*session.outputs.values(), np.exp(2 * VALUES), rtol=1e-5)
        assert [op.label for op in session.model.main.ops] == ["CUSTOM doubler:0", "EXP"]
    assert Doubler.sizes[-1] == (2, 3)


def test_a_profile_has_the_time_of_a_part() -> None:
    litesmith.delegate("doubler")(Doubler)
    b = Builder()
    x = b.input("x", (64, 64))
    seen = profile_ops(b.model(b.op("EXP", b.op("ADD", x, x))), "custom:doubler", runs=5)
    assert [op.kernel for op in seen.ops] == ["custom", "xnnpack"]


class Failing(Doubler):
    def claims(self, op: Op):
        if op.kind == "EXP" and op.outputs[0].shape == (9,):
            raise ZeroDivisionError
        return {"ADD": True, "EXP": False}.get(op.kind, 3)

    def program(self, graph: Graph):
        if graph.inputs[0].shape == (1,):
            raise ValueError("no program")

        def run(inputs, outputs):
            raise RuntimeError("at work")

        return run


def test_failures_of_a_delegate_are_named() -> None:
    litesmith.delegate("failing")(Failing)

    def model(kind: str, size: int) -> Model:
        b = Builder()
        x = b.input("x", (size,))
        return b.model(b.op(kind, *[x] * (2 if kind == "ADD" else 1)))

    with pytest.raises(CannotRun, match=r"ADD 'add_1' and 0 more ops: ValueError: no program"):
        Session(model("ADD", 1), "custom:failing")
    with pytest.raises(CannotRun, match=r"claims\(EXP 'exp_1'\): ZeroDivisionError"):
        Session(model("EXP", 9), "custom:failing")
    with pytest.raises(BadInput, match="gave 3; give True, or a reason"):
        Session(model("NEG", 9), "custom:failing")
    with (
        Session(model("ADD", 2), "custom:failing") as session,
        pytest.raises(CannotRun, match=r"CUSTOM failing:0 'add_1': RuntimeError: at work"),
    ):
        session.run()
    with Session(model("EXP", 2), "custom:failing") as session:
        assert session.note == "custom:failing takes no op of the model"


def test_a_delegate_has_its_methods() -> None:
    with pytest.raises(BadInput, match="delegate 'x': Tensor has no method claims"):
        litesmith.delegate("x")(Tensor)
    with pytest.raises(BadInput, match="letters, digits"):
        litesmith.delegate("a:b")
    litesmith.delegate("x")(Runtime)
    with pytest.raises(BadInput, match=r"delegate 'x' is .*Runtime already"):
        litesmith.delegate("x")(Doubler)
