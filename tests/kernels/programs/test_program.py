"""Programs: whole models bit by bit, on any number of threads, from any number of callers."""

import gc
import os
import threading

import numpy as np
import pytest

import litesmith
from litesmith import BadInput, Builder, CannotApply, Model, Quant
from litesmith.ir.types import Array
from litesmith.kernels.programs.program import Program
from tests.kernels.one_op import image, needs_numba, numbers, program_of, runtime, weight, whole

pytestmark = needs_numba


def network() -> Model:
    """A bit of everything: a stem, two paths that join, a head."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 1 / np.sqrt(np.prod(shape[1:])), shape).astype(np.float32)

    b = Builder()
    x = b.input("image", (1, 24, 24, 3))
    x = b.op(
        "CONV_2D",
        x,
        normal(24, 3, 3, 3),
        normal(24),
        stride_h=2,
        stride_w=2,
        fused_activation_function="RELU6",
    )
    y = b.op(
        "DEPTHWISE_CONV_2D",
        x,
        normal(1, 3, 3, 24),
        normal(24),
        stride_h=1,
        stride_w=1,
        depth_multiplier=1,
        fused_activation_function="RELU6",
    )
    y = b.op("CONV_2D", y, normal(24, 1, 1, 24), normal(24), stride_h=1, stride_w=1)
    x = b.op("ADD", x, y)
    gate = b.op("MEAN", x, np.array([1, 2], np.int32), keep_dims=True)
    gate = b.op(
        "LOGISTIC", b.op("CONV_2D", gate, normal(24, 1, 1, 24), normal(24), stride_h=1, stride_w=1)
    )
    x = b.op("MUL", x, gate)
    pooled = [
        b.op(kind, x, filter_height=2, filter_width=2, stride_h=2, stride_w=2, padding="VALID")
        for kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D")
    ]
    x = b.op("CONCATENATION", *pooled, axis=3)
    x = b.op("RESHAPE", x, [1, 6 * 6 * 48])
    x = b.op("FULLY_CONNECTED", x, normal(10, 6 * 6 * 48), normal(10))
    return b.model(b.op("SOFTMAX", x))


@pytest.fixture(scope="module")
def quantized() -> Model:
    data = np.random.default_rng(1).normal(0, 1, (8, 24, 24, 3)).astype(np.float32)
    return litesmith.apply(network(), "quantize(to=int16x8)", data).model


@pytest.fixture(scope="module")
def pairs(quantized: Model) -> list[tuple[Array, Array]]:
    """Inputs, and the runtime's outputs for them."""
    rng = np.random.default_rng(2)
    inputs = [rng.normal(0, spread, (1, 24, 24, 3)).astype(np.float32) for spread in (0.1, 1, 9)]
    return [(x, runtime(quantized, [x])[0]) for x in inputs]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_a_whole_model_has_the_runtimes_bits(quantized: Model, pairs, threads: int) -> None:
    program = whole(quantized.main)
    for x, expected in pairs * 3:
        np.testing.assert_array_equal(program.run([x], threads=threads)[0], expected)


def test_buffers_are_used_again(quantized: Model) -> None:
    program = whole(quantized.main)
    flowing = sum(t.nbytes for op in quantized.main.ops for t in op.outputs)
    assert program.arena_bytes < flowing / 2


def test_many_callers_of_one_program(quantized: Model, pairs) -> None:
    program = whole(quantized.main)
    wrong: list[int] = []

    def call(number: int) -> None:
        x, expected = pairs[number % len(pairs)]
        for _ in range(10):
            if not np.array_equal(program.run([x], threads=1 + number % 3)[0], expected):
                wrong.append(number)

    callers = [threading.Thread(target=call, args=(number,)) for number in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_a_program_may_go_while_its_threads_wake(quantized: Model, pairs) -> None:
    x, expected = pairs[0]
    for _ in range(8):
        (result,) = whole(quantized.main).run([x], threads=3)
        gc.collect()
        np.testing.assert_array_equal(result, expected)


def test_threads_end_with_their_program(quantized: Model, pairs) -> None:
    before = set(threading.enumerate())
    program = whole(quantized.main)
    program.run([pairs[0][0]], threads=3)
    workers = set(threading.enumerate()) - before
    assert len(workers) == 2
    program.run([pairs[0][0]])  # waits for the helpers of the run before
    del program
    gc.collect()
    for worker in workers:
        worker.join(10)
    assert not any(worker.is_alive() for worker in workers)


def test_a_part_of_a_graph(quantized: Model) -> None:
    """Between two tensors inside: what flows in and out is int16."""
    ops = quantized.main.ops[2:4]
    program = program_of(ops, [ops[0].inputs[0]], [ops[-1].outputs[0]])
    assert [t.dtype for t in (*program.inputs, *program.outputs)] == ["int16", "int16"]
    x = numbers(np.random.default_rng(0), program.inputs[0].shape)
    (together,) = program.run([x])
    for op in ops:
        (x,) = program_of([op], [op.inputs[0]], op.outputs).run([x])
    np.testing.assert_array_equal(together, x)


def test_an_output_that_only_has_another_shape() -> None:
    b = Builder()
    x = image(b, (2, 6), 0.5)
    y = b.op("RESHAPE", x, [3, 4], dtype="int16", quant=Quant.of(0.5))
    given = np.arange(12, dtype=np.int16).reshape(2, 6)
    (result,) = whole(b.model(y).main).run([given])
    np.testing.assert_array_equal(result, given.reshape(3, 4))


def small() -> Program:
    b = Builder()
    w = weight(b, np.ones((4, 8), np.int8), np.ones(4), 0)
    y = b.op("FULLY_CONNECTED", image(b, (1, 8), 1.0), w, None, dtype="int16", quant=Quant.of(1.0))
    return whole(b.model(y).main)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.zeros((1, 8), np.int8), "an array of int8"),
        (np.zeros((8,), np.int16), r"an array of int16 \(8,\)"),
        (np.zeros((1, 16), np.int16)[:, ::2], "in another order"),
    ],
)
def test_other_arrays_are_refused(given: np.ndarray, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        small().run([given])


def test_less_than_one_thread_is_refused() -> None:
    with pytest.raises(BadInput, match="threads=0"):
        small().run([np.zeros((1, 8), np.int16)], threads=0)


def test_the_op_without_a_kernel_is_named() -> None:
    b = Builder()
    y = b.op("NEG", b.input("x", (3,)), name="gone")
    with pytest.raises(CannotApply, match="NEG"):
        whole(b.model(y).main)


def test_an_output_that_no_op_makes_is_refused() -> None:
    b = Builder()
    x = image(b, (1, 4), 0.5)
    y = b.op("TANH", image(b, (1, 4), 0.3, "y"), dtype="int16", quant=Quant.of(1 / 32768))
    with pytest.raises(CannotApply, match="'x' is made by none"):
        program_of(b.model(y).main.ops, [x], [y, x])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_has_threads_of_its_own(quantized: Model, pairs) -> None:
    program = whole(quantized.main)
    x, expected = pairs[0]
    program.run([x], threads=2)
    child = os.fork()
    if child == 0:
        right = all(np.array_equal(program.run([x], threads=2)[0], expected) for _ in range(3))
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
