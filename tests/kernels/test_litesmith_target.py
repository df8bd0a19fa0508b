"""`cpu:N:litesmith`: the runtime's bits on int16x8, its numbers on sparse layers, on any model."""

import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith import BadInput, Builder, Model, Quant, Session
from litesmith.installing import install_command
from litesmith.ir.types import Array
from litesmith.kernels.litesmith_target import KernelRunner
from litesmith.run.litert.compiled_model import CompiledRunner
from litesmith.run.trial_run import probe
from tests import zoo
from tests.draws import draws
from tests.kernels.one_op import needs_float_codes, needs_numba

OURS = "cpu:1:litesmith"


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)


def network(rng: np.random.Generator, more: str = "") -> Model:
    """A few layers of random sizes; `more` is an op in their midst that has no kernel of ours."""
    channels, size = int(rng.integers(3, 40)), int(rng.integers(6, 14))
    b = Builder()
    x = b.input("image", (1, size, size, 3))
    stride = int(rng.integers(1, 3))
    x = b.op(
        "CONV_2D",
        x,
        normal(rng, channels, 3, 3, 3),
        normal(rng, channels),
        stride_h=stride,
        stride_w=stride,
        fused_activation_function="RELU6",
    )
    y = b.op("DEPTHWISE_CONV_2D", x, normal(rng, 1, 3, 3, channels), normal(rng, channels))
    if more:
        y = b.op(more, y)
    weights = normal(rng, channels, 1, 1, channels)
    y = b.op("CONV_2D", y, weights, normal(rng, channels), stride_h=1, stride_w=1)
    x = b.op("ADD", x, y)
    x = b.op("MEAN", x, np.array([1, 2], np.int32), keep_dims=True)
    x = b.op("RESHAPE", x, [1, channels])
    return b.model(b.op("FULLY_CONNECTED", x, normal(rng, 7, channels), normal(rng, 7)))


def quantized(model: Model, recipe: str) -> Model:
    shape = model.main.inputs[0].shape
    data = np.random.default_rng(1).normal(0, 1, (4, *shape[1:])).astype(np.float32)
    return litesmith.apply(model, recipe, data).model


def outputs(session: Session, seed: int = 0) -> list[Array]:
    rng = np.random.default_rng(seed)
    for array in session.inputs.values():
        array[...] = rng.normal(0, 2, array.shape).astype(array.dtype)
    session.run()
    return [array.copy() for array in session.outputs.values()]


def assert_bits(model: Model, target: str, runner: type) -> str:
    """A session there gives the bits of `cpu:1`, on that runner; its note."""
    with Session(model, "cpu:1") as theirs, Session(model, target) as ours:
        assert isinstance(ours.runner, runner)
        for seed in range(3):
            for a, b in zip(outputs(ours, seed), outputs(theirs, seed), strict=True):
                np.testing.assert_array_equal(a, b)
        return ours.note


seeds = st.integers(0, 2**32 - 1)


@needs_numba
@draws(8)
@given(seeds, st.sampled_from([1, 2, 3]))
def test_whole_models_run_as_one_program(seed: int, threads: int) -> None:
    model = quantized(network(np.random.default_rng(seed)), "quantize(to=int16x8)")
    note = assert_bits(model, f"cpu:{threads}:litesmith", KernelRunner)
    assert note == f"all {len(model.main.ops)} ops on Litesmith's kernels, without LiteRT"


@needs_numba
@draws(6)
@given(seeds, st.sampled_from(["HARD_SWISH", "ABS", "LEAKY_RELU"]), st.sampled_from([1, 2]))
def test_other_ops_stay_with_the_runtime(seed: int, more: str, threads: int) -> None:
    model = quantized(network(np.random.default_rng(seed), more), "quantize(to=int16x8)")
    note = assert_bits(model, f"cpu:{threads}:litesmith", CompiledRunner)
    assert "ops on Litesmith's kernels; not " in note and not note.startswith("none")


@needs_numba
@draws(6)
@given(seeds, st.sets(st.sampled_from([1, 3, 4, 5]), min_size=1), st.sampled_from([1, 2]))
def test_models_of_int8_and_int16(seed: int, wide: set[int], threads: int) -> None:
    only = ", ".join(map(str, sorted(wide)))
    recipe = f"quantize(to=int16x8, only=[{only}]) | quantize(to=int8)"
    model = quantized(network(np.random.default_rng(seed)), recipe)
    assert_bits(model, f"cpu:{threads}:litesmith", object)


def sparse_model(zeros: float, channels: int = 64, size: int = 12) -> Model:
    """Two 1×1 layers around a depthwise one; in blocks of four, that share of weights is zero."""
    rng = np.random.default_rng(0)

    def pruned(outputs: int, inputs: int) -> Array:
        kept = rng.random((outputs, inputs // 4, 1)) >= zeros
        blocks = normal(rng, outputs, inputs // 4, 4) * kept
        return blocks.astype(np.float32).reshape(outputs, 1, 1, inputs)

    b = Builder()
    x = b.input("x", (1, size, size, channels))
    x = b.op(
        "CONV_2D",
        x,
        pruned(2 * channels, channels),
        normal(rng, 2 * channels),
        stride_h=1,
        stride_w=1,
    )
    x = b.op("DEPTHWISE_CONV_2D", x, normal(rng, 1, 3, 3, 2 * channels), normal(rng, 2 * channels))
    x = b.op(
        "CONV_2D", x, pruned(channels, 2 * channels), normal(rng, channels), stride_h=1, stride_w=1
    )
    return b.model(x)


@needs_numba
@pytest.mark.parametrize("threads", [1, 2])
def test_sparse_layers_are_taken_where_they_are_faster(threads: int) -> None:
    model = sparse_model(0.95, 128, 16)
    with Session(model, "cpu:1") as theirs, Session(model, f"cpu:{threads}:litesmith") as ours:
        assert ours.note.startswith("2 of 3 ops on Litesmith's kernels")
        for seed in range(3):
            (a,), (b,) = outputs(ours, seed), outputs(theirs, seed)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


@needs_numba
@pytest.mark.parametrize(("size", "is_taken"), [(512, True), (128, False)])
def test_weights_that_are_stored_sparse(size: int, is_taken: bool) -> None:
    rng = np.random.default_rng(0)
    kept = rng.random((size, size // 4, 1)) >= 0.8
    weights = (normal(rng, size, size // 4, 4) * kept).astype(np.float32).reshape(size, size)
    b = Builder()
    y = b.op("FULLY_CONNECTED", b.input("x", (1, size)), weights, normal(rng, size))
    model = litesmith.apply(b.model(y), "sparsify(least=0.5)").model
    with Session(model, "cpu:1") as theirs, Session(model, OURS) as ours:
        assert isinstance(ours.runner, KernelRunner) == is_taken
        assert is_taken or "its own sparse form" in ours.note
        for seed in range(3):
            (a,), (b,) = outputs(ours, seed), outputs(theirs, seed)
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


@needs_numba
@needs_float_codes
@pytest.mark.parametrize("threads", [1, 2])
def test_sparse_int8_layers_have_the_runtimes_bits(threads: int) -> None:
    model = quantized(sparse_model(0.95, 128, 16), "quantize(to=int8)")
    note = assert_bits(model, f"cpu:{threads}:litesmith", CompiledRunner)
    assert note.startswith("2 of 5 ops on Litesmith's kernels")


@needs_numba
def test_what_many_threads_compute_as_fast_stays_with_them() -> None:
    note = assert_bits(sparse_model(0.8), "cpu:4:litesmith", CompiledRunner)
    assert note.startswith("none of 3 ops") and "as fast on 4 threads" in note


@needs_numba
def test_dense_layers_stay_with_the_runtime() -> None:
    note = assert_bits(sparse_model(0.2), OURS, CompiledRunner)
    assert note.startswith("none of 3 ops") and "too few blocks" in note


@needs_numba
def test_an_input_is_resized() -> None:
    """On one program, and with parts of a model as custom ops."""
    for model in (
        quantized(sparse_model(0.0, 16, 6), "quantize(to=int16x8)"),
        sparse_model(0.95),
        quantized(sparse_model(0.95), "quantize(to=int8)"),
    ):
        with Session(model, "cpu:1") as theirs, Session(model, OURS) as ours:
            shape = ours.inputs["x"].shape
            for size in (9, 17, shape[1]):
                for session in (theirs, ours):
                    session.resize(x=(2, size, size, shape[3]))
                (a,), (b,) = outputs(ours), outputs(theirs)
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


@needs_numba
@needs_float_codes
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_taken_stays_right_where_another_size_is_slower_or_needs_threads(threads) -> None:
    """A part that was opened as machine code may become one that threads share, and back."""
    one = sparse_layer_alone(64)
    for model in (
        one,
        sparse_model(0.95, 128),
        quantized(sparse_model(0.95, 128), "quantize(to=int8)"),
    ):
        target = f"cpu:{threads}:litesmith"
        with Session(model, "cpu:1") as theirs, Session(model, target) as ours:
            assert not ours.note.startswith("none")
            shape = ours.inputs["x"].shape
            for size in (1, 4, 60, 1):
                for session in (theirs, ours):
                    session.resize(x=(2, size, size, shape[3]) if len(shape) == 4 else (size, 512))
                (a,), (b,) = outputs(ours), outputs(theirs)
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


def sparse_layer_alone(rows: int) -> Model:
    """One layer of int8, which is a program without the runtime."""
    rng = np.random.default_rng(0)
    kept = rng.random((256, 128, 1)) >= 0.9
    weights = (rng.integers(-127, 128, (256, 128, 4)) * kept).astype(np.int8).reshape(256, 512)
    b = Builder()
    x = b.input("x", (rows, 512), "int8", Quant.of(0.1, 3))
    w = b.const(weights, "w", quant=Quant.of(0.01))
    y = b.op("FULLY_CONNECTED", x, w, None, dtype="int8", quant=Quant.of(0.1, 3))
    return b.model(y)


@needs_numba
@needs_float_codes
def test_a_size_without_a_kernel_is_refused_and_changes_nothing() -> None:
    """The runtime fails for another reason after it; what is told is the first one, and once."""
    model = quantized(sparse_model(0.95), "quantize(to=int8)")
    with Session(model, OURS) as session:
        before = outputs(session)
        with pytest.raises(BadInput, match=r"cannot resize to .*64 inputs and 128 channels"):
            session.resize(x=(1, 2, 3, 64))
        np.testing.assert_array_equal(outputs(session), before)


@needs_numba
def test_a_shape_that_does_not_fit_is_refused_and_changes_nothing() -> None:
    model = quantized(network(np.random.default_rng(0)), "quantize(to=int16x8)")
    with Session(model, OURS) as session:
        before = outputs(session)
        shape = session.inputs["image"].shape
        with pytest.raises(BadInput, match="cannot resize"):
            session.resize(image=(2, *shape[1:]))  # which its RESHAPE does not follow
        np.testing.assert_array_equal(outputs(session), before)


@needs_numba
def test_many_sessions_in_many_threads() -> None:
    rng = np.random.default_rng(3)
    models = [
        quantized(network(rng), "quantize(to=int16x8)"),
        quantized(network(rng, "HARD_SWISH"), "quantize(to=int16x8)"),
        sparse_model(0.95, 128, 16),
        quantized(sparse_model(0.95, 128, 16), "quantize(to=int8)"),
    ]
    expected = []
    for model in models:
        with Session(model, OURS) as session:
            expected.append([outputs(session, seed) for seed in range(3)])
    wrong: list[int] = []

    def work(number: int) -> None:
        kind = number % len(models)
        for _ in range(3):
            with Session(models[kind], f"cpu:{1 + number % 3}:litesmith") as session:
                for seed in range(9):
                    made = outputs(session, seed % 3)
                    same = map(np.array_equal, made, expected[kind][seed % 3])
                    if not all(same):
                        wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@needs_numba
def test_inputs_and_outputs_are_memory_that_stays() -> None:
    model = quantized(network(np.random.default_rng(5)), "quantize(to=int16x8)")
    with Session(model, OURS) as session:
        (x,), (y,) = session.inputs.values(), session.outputs.values()
        assert not session.copies
        first = outputs(session, 1)[0]
        outputs(session, 2)
        assert x is session.inputs["image"]
        assert not np.array_equal(y, first)
        outputs(session, 1)
        np.testing.assert_array_equal(y, first)


@needs_numba
def test_a_profile_has_a_time_for_every_op() -> None:
    model = quantized(network(np.random.default_rng(6)), "quantize(to=int16x8)")
    found = litesmith.profile(model, on=OURS, runs=4)
    assert {op.kernel for op in found.ops if op.kind != "RESHAPE"} == {"litesmith"}
    assert len(found.ops) == len(model.main.ops)
    parts = litesmith.profile(sparse_model(0.95), on=OURS, runs=4)
    assert [op.kernel for op in parts.ops] == ["litesmith", "xnnpack", "litesmith"]
    assert "each CUSTOM litesmith:N" in parts.note


@pytest.mark.parametrize("name", [n for n in zoo.MODELS if n not in zoo.NOT_RUNNABLE])
def test_any_model_gives_what_it_gives_on_the_cpu(name: str) -> None:
    model = zoo.MODELS[name]()
    with Session(model, "cpu:1") as theirs, Session(model, OURS) as ours:
        for session in (theirs, ours):
            session.run()
        for a, b in zip(ours.outputs.values(), theirs.outputs.values(), strict=True):
            np.testing.assert_array_equal(a, b)
        assert ours.note


@needs_numba
def test_scales_that_no_kernel_is_made_for_are_named() -> None:
    b = Builder()
    x = b.input("x", (1, 8), "int16", Quant.of(1 / 4096))
    y = b.op("TANH", x, dtype="int16", quant=Quant.of(1 / 32768))
    note = assert_bits(b.model(y), OURS, CompiledRunner)
    assert note.startswith("none of 1 ops") and "another way" in note


def test_it_survives_a_trial_in_a_child_process(tmp_path) -> None:
    path = tmp_path / "model.tflite"
    litesmith.save(quantized(network(np.random.default_rng(7)), "quantize(to=int16x8)"), path)
    probe(path, OURS)


def test_without_numba_the_bits_are_the_same_and_a_note_says_why(tmp_path) -> None:
    path = tmp_path / "model.tflite"
    model = quantized(network(np.random.default_rng(8)), "quantize(to=int16x8)")
    litesmith.save(model, path)
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np, litesmith\n"
        f"s = litesmith.Session({str(path)!r}, {OURS!r})\n"
        "s.inputs['image'][...] = np.random.default_rng(0).normal(0, 2, s.inputs['image'].shape)\n"
        "s.run(); print(s.note); print(next(iter(s.outputs.values())).tobytes().hex())\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    note, hexed = made.stdout.split("\n")[:2]
    assert note.startswith("runs on the runtime's kernels") and install_command("jit") in note
    with Session(model, "cpu:1") as session:
        assert outputs(session)[0].tobytes().hex() == hexed
