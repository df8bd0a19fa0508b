"""Weights in small numbers while data stays float."""

from typing import Any

import numpy as np
import pytest

from litesmith.errors import CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.check import problems
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.layers import layers_of, real_values
from litesmith.passes.core.recipe import apply
from litesmith.tflite.write import to_bytes
from tests.quantized import TARGETS, results, snr
from tests.zoo import noise
from tests.zoo_float import FLOATS, dense, few

BITS = {
    "float16": 16,
    "dynamic": 8,
    "dynamic-int4": 4,
    "weight-int8": 8,
    "weight-int4": 4,
}

UNPACKED = ("float16", "weight-int8", "weight-int4")


def big(outputs: int = 64, inputs: int = 128, scale: float = 0.1) -> Model:
    b = Builder()
    x = b.input("x", (1, inputs))
    weight = noise(outputs, inputs, scale=scale)
    return b.model(b.op("FULLY_CONNECTED", x, weight, noise(outputs)))


def stored(model: Model, recipe: str) -> Model:
    """After a recipe that needs no data."""
    result = apply(model, recipe).model
    assert not list(problems(result))
    return result


@pytest.mark.parametrize("to", BITS)
def test_the_file_shrinks_by_the_bits(to: str) -> None:
    model = big()
    small = len(to_bytes(stored(model, f"quantize(to={to})")))
    weights = 64 * 128
    assert small <= len(to_bytes(model)) - weights * (32 - BITS[to]) // 8 + 1500


@pytest.mark.parametrize("to", BITS)
@pytest.mark.parametrize("per_channel", ["true", "false"])
def test_every_weight_is_within_half_a_step(to: str, per_channel: str) -> None:
    model = big()
    wanted = next(iter(layers_of(model.main).values())).weight.values()
    after = stored(model, f"quantize(to={to}, per_channel={per_channel})")
    (layer,) = layers_of(after.main).values()
    error = np.abs(real_values(layer.weight) - wanted)
    if to == "float16":
        assert (error <= np.abs(wanted) * 2**-11 + 2**-25).all()
        return
    most = 2 ** (BITS[to] - 1) - 1
    peaks = np.abs(wanted).max(axis=1, keepdims=True)
    peak = peaks if per_channel == "true" else peaks.max()
    assert layer.weight.quant is not None
    assert layer.weight.quant.scale.size == (64 if per_channel == "true" else 1)
    assert (error <= 0.5001 * peak / most).all()


@pytest.mark.parametrize("to", UNPACKED)
def test_a_shared_weight_is_stored_and_unpacked_once(to: str) -> None:
    model = FLOATS["shared_weights"]()
    after = stored(model, f"quantize(to={to})")
    assert [op.kind for op in after.main.ops].count("DEQUANTIZE") == 1


@pytest.mark.parametrize("to", BITS)
def test_a_weight_that_an_op_left_alone_reads_stays_for_it(to: str) -> None:
    model = FLOATS["shared_weights"]()
    after = stored(model, f"quantize(to={to}, only=[0])")
    first, second = (op for op in after.main.ops if op.kind == "CONV_2D")
    assert second.inputs[1] is model.main.ops[2].inputs[1]
    assert first.inputs[1] is not second.inputs[1]


@pytest.mark.parametrize("to", BITS)
def test_small_weights_stay(to: str) -> None:
    b = Builder()
    x = dense(b, b.input("x", (1, 40)), 40)
    model = b.model(dense(b, x, 2))
    change = apply(model, f"quantize(to={to})")
    assert layers_of(change.model.main).keys() >= {model.main.ops[1]}
    assert any("too few" in skip.why for skip in change.skipped)
    assert {skip.kind for skip in change.skipped} <= {op.label for op in change.model.main.ops}


def test_one_number_is_told_as_one() -> None:
    b = Builder()
    x = b.op("ADD", dense(b, b.input("x", (1, 40)), 40), np.float32([0.1]))
    change = apply(b.model(x), "quantize(to=float16)")
    assert "it has one number, too few to gain anything" in {s.why for s in change.skipped}


@pytest.mark.parametrize("to", BITS)
def test_a_weight_that_is_an_output_stays(to: str) -> None:
    b = Builder()
    weight = b.const(noise(64, 128), name="w")
    y = b.op("FULLY_CONNECTED", b.input("x", (1, 128)), weight, None)
    model = b.model(y, weight)
    with pytest.raises(CannotApply, match="output of the graph"):
        apply(model, f"quantize(to={to})")


def test_what_float16_cannot_hold_stays() -> None:
    model = big(scale=1e6)
    with pytest.raises(CannotApply, match="float16"):
        apply(model, "quantize(to=float16)")


def test_what_is_next_to_nothing_is_nothing_in_float16() -> None:
    model = big(scale=1e-12)
    after = stored(model, "quantize(to=float16)")
    for target in TARGETS:
        np.testing.assert_allclose(
            results(after, few(model), target)[0], results(model, few(model))[0], atol=1e-6
        )


@pytest.mark.parametrize("to", BITS)
def test_graphs_of_control_flow_are_stored_too(to: str) -> None:
    body, condition, b = Builder("body"), Builder("condition"), Builder()
    i = condition.input("i", (1,), "int32")
    condition.input("x", (1, 32))
    j, x = body.input("i", (1,), "int32"), body.input("x", (1, 32))
    outputs = body.op("ADD", j, np.ones(1, np.int32)), dense(body, x, 32)
    start = b.const(np.zeros(1, np.int32))
    places: dict[str, Any] = {"cond_subgraph_index": 1, "body_subgraph_index": 2}
    b.op("WHILE", start, b.input("x", (1, 32)), shape=[(1,), (1, 32)], **places)
    ends = condition.graph(condition.op("LESS", i, np.array([2], np.int32)))
    model = b.model(b.last.outputs[1], graphs=(ends, body.graph(*outputs)))
    after = stored(model, f"quantize(to={to})")
    data = few(model)
    for target in TARGETS:
        assert snr(results(model, data)[0], results(after, data, target)[0]) > 10


@pytest.mark.parametrize("block", [32, 64])
def test_blocks(block: int) -> None:
    """A scale a block is nearer than a scale a channel where blocks differ."""
    b = Builder()
    weight = noise(16, 128) * np.repeat(np.array([1, 0.01, 0.1, 0.02], np.float32), 32)
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 128)), weight, noise(16)))
    data = few(model)
    with_blocks = stored(model, f"quantize(to=dynamic-int4, block={block})")
    without = stored(model, "quantize(to=dynamic-int4)")
    for target in TARGETS:
        wanted = results(model, data)[0]
        gained = snr(wanted, results(with_blocks, data, target)[0])
        assert gained > snr(wanted, results(without, data, target)[0]) > 10
    with pytest.raises(CannotApply, match="multiple of 48"):
        apply(model, "quantize(to=dynamic-int4, block=48)")


def test_blocks_are_for_fully_connected_layers() -> None:
    with pytest.raises(CannotApply, match="fully connected"):
        apply(FLOATS["padded"](), "quantize(to=dynamic-int4, block=32)")


def state(*shape: int) -> Tensor:
    return Tensor("state", shape, variable=True)


def gates(units: int, inputs: int, seed: int = 0) -> list[np.ndarray | None]:
    """What an LSTM without peepholes and projection is given beside its data and its states."""
    weights = [noise(units, inputs, seed=seed + s, scale=0.2) for s in range(4)]
    recurrent = [noise(units, units, seed=seed + 4 + s, scale=0.2) for s in range(4)]
    return [*weights, *recurrent, None, None, None, *(noise(units, seed=s) for s in range(4))]


LSTM = (*gates(24, 24), None, None, state(1, 24), state(1, 24))
RNN = (noise(24, 24, scale=0.2), noise(24, 24, seed=1, scale=0.2), noise(24), state(1, 24))
ONE_AFTER_ANOTHER = {"shape": (1, 3, 24), "fused_activation_function": "TANH"}
AT_ONCE = {"shape": (1, 24), "fused_activation_function": "TANH"}

RECURRENT: dict[str, tuple[tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = {
    "BIDIRECTIONAL_SEQUENCE_LSTM": (
        (1, 3, 24),
        (*(*gates(24, 24), None, None) * 2, *(state(1, 24) for _ in range(4)), *[None] * 9),
        {**ONE_AFTER_ANOTHER, "shape": (1, 3, 48), "merge_outputs": True, "time_major": False},
    ),
    "LSTM": ((1, 24), LSTM, AT_ONCE),
    "RNN": ((1, 24), RNN, AT_ONCE),
    "SVDF": (
        (1, 24),
        (noise(48, 24), noise(48, 5), noise(24), state(1, 240)),
        {"rank": 2, "shape": (1, 24)},
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ((1, 3, 24), LSTM, ONE_AFTER_ANOTHER),
    "UNIDIRECTIONAL_SEQUENCE_RNN": ((1, 3, 24), RNN, ONE_AFTER_ANOTHER),
}


def recurrent(kind: str, given: tuple[int, ...], *inputs: Any, **options: Any) -> Model:
    b = Builder()
    return b.model(b.op(kind, b.input("x", given), *inputs, **options))


@pytest.mark.parametrize("kind", RECURRENT)
def test_recurrent_weights(kind: str) -> None:
    """The kernel takes all weights as they are stored, so that nothing is unpacked at each run."""
    given, inputs, options = RECURRENT[kind]
    model = recurrent(kind, given, *inputs, **options)
    data = few(model)
    for to in BITS:
        after = stored(model, f"quantize(to={to})")
        assert (len(after.main.ops) == 1) == (to in ("dynamic", "dynamic-int4"))
        for target in TARGETS:
            bits = 4 if to == "weight-int4" else 8
            assert snr(results(model, data)[0], results(after, data, target)[0]) > 3 * bits, to


def test_weights_of_a_recurrence_that_are_computed_are_left_alone() -> None:
    b = Builder()
    inputs = list(LSTM)
    inputs[2] = b.op("ABS", b.input("w", (24, 24)))
    b.op("UNIDIRECTIONAL_SEQUENCE_LSTM", b.input("x", (1, 3, 24)), *inputs, **ONE_AFTER_ANOTHER)
    after = stored(b.model(b.last.outputs[0]), "quantize(to=dynamic)")
    assert after.main.ops[-1].version == 1


def test_gains_of_layer_norms_stay_float() -> None:
    """As the kernel wants them, beside weights and peepholes in int8."""
    inputs = [*LSTM, *(1 + noise(24, seed=s) for s in range(4))]
    inputs[8:11] = [noise(24, seed=s) for s in range(3)]
    model = recurrent("UNIDIRECTIONAL_SEQUENCE_LSTM", (1, 3, 24), *inputs, **ONE_AFTER_ANOTHER)
    after, data = stored(model, "quantize(to=dynamic)"), few(model)
    dtypes = [None if t is None else t.dtype for t in after.main.ops[0].inputs]
    assert set(dtypes[1:12]) == {"int8"} and set(dtypes[12:16] + dtypes[20:]) == {"float32"}
    for target in TARGETS:
        assert snr(results(model, data)[0], results(after, data, target)[0]) > 24


@pytest.mark.parametrize("to", BITS)
def test_embeddings(to: str) -> None:
    b = Builder()
    model = b.model(b.op("EMBEDDING_LOOKUP", b.input("ids", (3,), "int32"), noise(40, 16)))
    data = few(model)
    after = stored(model, f"quantize(to={to})")
    for target in TARGETS:
        assert snr(results(model, data)[0], results(after, data, target)[0]) > 12, target


def test_a_float16_model_is_taken_apart_first() -> None:
    half = stored(big(), "quantize(to=float16)")
    after = stored(half, "quantize(to=dynamic)")
    assert [op.kind for op in after.main.ops] == ["FULLY_CONNECTED"]
    assert len(to_bytes(after)) < len(to_bytes(half))
