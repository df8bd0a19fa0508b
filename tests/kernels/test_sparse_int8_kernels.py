"""Sparse int8 layers give the runtime's bits; no block is lost when they are packed."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import Builder, CannotApply, Model, Quant
from litesmith.ir.types import Array
from litesmith.kernels.programs.pack_weights import (
    BLOCK,
    LANES,
    WINDOW,
    pack_blocks,
    pack_rounds,
)
from litesmith.kernels.programs.prepare_sparse import sparse_layer
from litesmith.kernels.programs.program import Program
from litesmith.kernels.programs.sparse_parts import FEW, break_even, gain, sparse_facts
from litesmith.operating_system import arm_products, is_x86
from tests.draws import draws
from tests.kernels.one_op import needs_float_codes, needs_numba, numbers, runtime, seeds

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def pruned(rng: np.random.Generator, shape: tuple[int, int], zeros: float) -> Array:
    """Weights of which that share of blocks is zero."""
    channels, inputs = shape
    blocks = np.clip(numbers(rng, (channels, inputs // BLOCK, BLOCK), "int8"), -127, 127)
    kept = rng.random((channels, inputs // BLOCK, 1)) >= zeros
    return (blocks * kept).astype(np.int8).reshape(shape)


def layer(kind: str, rows: int, weights: Array, rng: np.random.Generator) -> Model:
    """With scales, zero points, a bias and an activation of any sort."""
    channels, inputs = weights.shape
    step = float(10 ** rng.uniform(-3, 0))
    count = channels if rng.integers(2) else 1
    steps = (0.01 * rng.uniform(0.5, 1.5, count)).astype(np.float32)
    out = step * float(10 ** rng.uniform(-2, 1.5))
    zero, out_zero = (int(zero) for zero in rng.integers(-128, 128, 2))
    b = Builder()
    shape = (1, 1, rows, inputs) if kind == "CONV_2D" else (rows, inputs)
    x = b.input("x", shape, "int8", Quant.of(step, zero))
    shaped = weights.reshape(channels, 1, 1, inputs) if kind == "CONV_2D" else weights
    w = b.const(shaped, "w", quant=Quant.of(steps, axis=0))
    factor = step * float(steps.max()) / out
    reach = int(rng.choice([100, 20_000, 2**31]) if factor < 0.9 else 2**29 / factor)
    numbers_of_bias = rng.integers(-reach, reach, channels).astype(np.int32)
    bias = b.const(numbers_of_bias, "b", quant=Quant.of(np.float32(step) * steps, axis=0))
    more = {"stride_h": 1, "stride_w": 1} if kind == "CONV_2D" else {}
    given = [x, w, bias] if kind == "CONV_2D" or rng.integers(4) else [x, w]
    activation = str(rng.choice(ACTIVATIONS))
    quant = Quant.of(out, out_zero)
    y = b.op(kind, *given, dtype="int8", quant=quant, fused_activation_function=activation, **more)
    return b.model(y)


def assert_bits(kind: str, rows: int, shape: tuple[int, int], zeros: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    model = layer(kind, rows, pruned(rng, shape, zeros), rng)
    program = Program((sparse_layer(model.main.ops[0]),), model.main.inputs, model.main.outputs)
    x = numbers(rng, program.inputs[0].shape, "int8")
    (expected,) = runtime(model, [x])
    for threads in (1, 3):
        np.testing.assert_array_equal(program.run([x], threads=threads)[0], expected)


shapes = st.tuples(st.integers(16, 90), st.integers(0, 60).map(lambda n: BLOCK * n))
shares = st.sampled_from([0.0, 0.5, 0.9, 1.0])
kinds = st.sampled_from(["CONV_2D", "FULLY_CONNECTED"])


@needs_numba
@needs_float_codes
@draws(80)
@given(kinds, st.integers(1, 15) | st.integers(16, 200), shapes, shares, seeds)
def test_the_bits_are_the_runtimes(kind, rows, shape, zeros, seed) -> None:
    least = 128 if rows < FEW else 64
    assert_bits(kind, rows, (shape[0], shape[1] + least), zeros, seed)


# Processors without an instruction for four bytes, and without AVX-512; with less than SVE.
OTHERS = (
    {
        "skylake-avx512": "+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx2,+fma,+sse4.2",
        "haswell": "+avx2,+fma,+sse4.2",
        "alderlake": "+avxvnni,+avx2,+fma,+sse4.2",
        "x86-64": "+sse2",
    }
    if is_x86()
    else {"cortex-a53": "+neon", "neoverse-n1": "+neon,+dotprod", "neoverse-n2": "+neon,+i8mm"}
)
LAW = (
    "from tests.kernels.test_sparse_int8_kernels import assert_bits\n"
    "for seed in range(4):\n"
    "    assert_bits('CONV_2D', 16 + 30 * seed, (20, 100), 0.5, seed)\n"
    "    assert_bits('FULLY_CONNECTED', 1 + seed, (40, 200), 0.5, seed)\n"
)
COMPILED = (
    "from litesmith.kernels.compiled import kernel_address\n"
    "assert kernel_address('sparse_int8') and kernel_address('sparse_int8_row')\n"
)


def has_features(text: str) -> bool:
    """Whether this machine can run code for a processor with these."""
    from llvmlite import binding  # pyright: ignore[reportMissingImports]

    here = {**binding.get_host_cpu_features(), **dict.fromkeys(arm_products(), True)}
    return all(here.get(word[1:], False) for word in text.split(","))


@needs_numba
@needs_float_codes
@pytest.mark.parametrize("name", OTHERS)
def test_other_processors_give_the_same_bits(name: str) -> None:
    """What this machine cannot run is compiled for at least."""
    code = LAW if has_features(OTHERS[name]) else COMPILED
    settings = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": OTHERS[name]}
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@given(st.integers(16, 60), st.integers(32, 80), shares, seeds)
def test_rounds_have_every_block_once(channels: int, blocks: int, zeros: float, seed: int) -> None:
    weights = pruned(np.random.default_rng(seed), (channels, BLOCK * blocks), zeros)
    offsets, places, chosen, begins = pack_rounds(weights)
    assert places.max() < WINDOW and offsets.max() <= BLOCK * (blocks - WINDOW)
    firsts = np.minimum(np.arange(0, channels, LANES), channels - LANES)
    found = np.zeros((len(firsts), LANES, blocks, BLOCK), np.int64)
    groups = np.repeat(np.arange(len(firsts)), np.diff(begins))[:, None]
    np.add.at(found, (groups, np.arange(LANES), offsets[:, None] // BLOCK + places), chosen)
    wanted = [weights[first : first + LANES] for first in firsts]
    np.testing.assert_array_equal(found.reshape(len(firsts), LANES, -1), wanted)


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 8]), shares, seeds)
def test_channels_have_every_block_once(channels, blocks, group, zeros, seed) -> None:
    weights = pruned(np.random.default_rng(seed), (channels, BLOCK * blocks), zeros)
    offsets, packed, begins = pack_blocks(weights, 64, group)
    found = np.zeros((channels, blocks, BLOCK), np.int64)
    of_channel = np.repeat(np.arange(channels), np.diff(begins))
    np.add.at(found, (of_channel, offsets // (64 * BLOCK)), packed)
    np.testing.assert_array_equal(found.reshape(weights.shape), weights)
    assert np.diff(begins).min() >= group and not (np.diff(begins) % group).any()


def one_layer(weight: Quant, out: float, bias: Quant | None, offset: int = 0) -> Model:
    b = Builder()
    x = b.input("x", (20, 64), "int8", Quant.of(0.1))
    w = b.const(np.ones((16, 64), np.int8), "w", quant=weight)
    offsets = b.const(np.full(16, offset, np.int32), "b", quant=bias)
    return b.model(b.op("FULLY_CONNECTED", x, w, offsets, dtype="int8", quant=Quant.of(out)))


STEP = Quant.of(0.01)


@needs_float_codes
@pytest.mark.parametrize(
    ("weight", "out", "bias", "why"),
    [
        (Quant.of(0.1, 3), 0.1, STEP, "'w' has zero points"),
        (Quant.of(0.1), 1e-5, STEP, "too large"),
        (Quant.of(0.0), 0.1, STEP, "'w' has a scale that is too small"),
        (Quant.of(0.1), 0.1, Quant.of(1e-40), "'b' has a scale that is too small"),
        (Quant.of(0.1), 0.1, None, "'b' has no scale"),
        (Quant.of(0.1), 0.1, Quant.of(0.01, 1), "'b' has zero points"),
        (Quant.of(np.full(64, 0.1, np.float32), axis=1), 0.1, STEP, "64 scales for 16 channels"),
    ],
)
def test_what_xnnpack_does_not_take_is_refused(weight, out, bias, why) -> None:
    with pytest.raises(CannotApply, match=why):
        sparse_facts(one_layer(weight, out, bias).main.ops[0])


@needs_float_codes
def test_sums_that_leave_int32_when_they_are_rescaled_are_refused() -> None:
    op = one_layer(Quant.of(2.0), 0.1, STEP, -1_500_000_000).main.ops[0]
    with pytest.raises(CannotApply, match="too large for int32"):
        sparse_facts(op)
    sparse_facts(one_layer(Quant.of(1.0), 0.1, STEP, -1_500_000_000).main.ops[0])


@given(st.integers(1, 5000), st.integers(64, 4096), st.integers(16, 4096))
def test_break_even_is_where_the_gain_is_one(rows: int, inputs: int, channels: int) -> None:
    share = break_even(rows, inputs, channels, "int8")
    most = gain(rows, inputs, channels, 1.0, "int8")
    assert (share is None) == (most < 1)
    if share:
        assert gain(rows, inputs, channels, share, "int8") == pytest.approx(1, rel=1e-6)
