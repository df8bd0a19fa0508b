"""Every integer kernel that the op table claims, run in the stock runtime on real numbers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from litesmith.ir.build import Builder
from litesmith.ir.dtype import DTYPES, pack
from litesmith.ir.edit import rewrite
from litesmith.ir.op_rows import ROWS
from litesmith.ir.ops import OPS
from litesmith.ir.types import Block, Model, Quant, Record, Tensor
from litesmith.ir.versions import VERSIONS
from litesmith.passes.core.lstm import Lstm, lstm_of
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.integer_lstm import integer_lstm
from litesmith.passes.tidy.upgrade import Upgrade
from litesmith.precision.float_form import float_form
from tests.op_cases import Case
from tests.op_cases_shaping import CASES
from tests.op_models import Built, build, run

WORDS = {"int8", "int16", "float32", "int4", "float16", "tensor8", "channel8", "block4"}
TOPS = {"int8": 127, "int16": 32767, "int4": 7, "int32": 2**31 - 1, "int64": 2**62}
WEIGHTS = {"tensor8": "int8"}
BLOCK = 32
STEPS = 2.01  # that an integer result may be off
# Int16 kernels that look up or interpolate with few bits, and the steps they are off.
ROUGH = {"EXP": 110, "GELU": 40, "RESIZE_BILINEAR": 64}
SHARE = 0.03  # of the largest value, that a result may be off where data is quantized as it runs


class Integers(NamedTuple):
    """A call in integers: the tensor's type and scale, its stored and its real values."""

    dtype: str
    quant: Quant | None
    stored: np.ndarray
    real: np.ndarray


class Call(NamedTuple):
    """A model of one op in integers, what is fed, and the real results it should come near."""

    model: Model
    fed: list[np.ndarray]
    wanted: list[np.ndarray]


def along_axis(values: np.ndarray, quant: Quant, ndim: int) -> np.ndarray:
    shape = [1] * ndim
    if quant.per_channel:
        shape[quant.axis] = -1
    return values.reshape(shape) if ndim else values[0]


def store(real: np.ndarray, quant: Quant, dtype: str) -> Integers:
    scale = along_axis(quant.scale.astype(np.float64), quant, real.ndim)
    zero = along_axis(quant.zero_point, quant, real.ndim)
    top = TOPS[dtype]
    low = -top if quant.per_channel else -top - 1
    whole = np.clip(np.rint(real / scale) + zero, low, top)
    stored = np.asarray(whole, DTYPES[dtype].storage if dtype != "int4" else np.int8)
    return Integers(dtype, quant, stored, np.asarray((whole - zero) * scale, np.float32))


def span(values: Sequence[np.ndarray], dtype: str, stretch: float = 1) -> Quant:
    """A scale for such values: with a zero point where the type has one."""
    low = min(0.0, *(float(a.min()) for a in values if a.size), -1e-3)
    high = max(0.0, *(float(a.max()) for a in values if a.size), 1e-3)
    if dtype == "int16":
        return Quant.of(max(-low, high) / TOPS[dtype] * stretch)
    scale = (high - low) / 255 * stretch
    return Quant.of(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


def weight_scale(real: np.ndarray, axis: int | None, dtype: str) -> Quant:
    if axis is None:
        return Quant.of(float(np.abs(real).max()) / TOPS[dtype])
    others = tuple(place for place in range(real.ndim) if place != axis)
    return Quant.of(np.maximum(np.abs(real).max(axis=others), 1e-3) / TOPS[dtype], 0, axis)


def uneven(real: np.ndarray, axis: int) -> np.ndarray:
    """Channels of different sizes, so that a kernel with one scale for all is found out."""
    shape = [1] * real.ndim
    shape[axis] = -1
    return (real * np.linspace(0.1, 1, real.shape[axis]).reshape(shape)).astype(np.float32)


def roles(built: Built) -> list[str]:
    """What each input is for, by its letter."""
    words = OPS[built.op.kind].inputs.split()
    return [w[0] for w in words + words[-1:] * len(built.arrays)][: len(built.arrays)]


def integers(built: Built, key: str) -> dict[int, Integers]:
    """The float inputs of a call in integers, by place."""
    data, _, weights = key.partition(":")
    row, found = OPS[built.op.kind], dict[int, Integers]()
    floats = {
        place: array
        for place, array in enumerate(built.arrays)
        if array is not None and array.dtype == np.float32
    }
    kinds = {place: role for place, role in enumerate(roles(built)) if place in floats}
    if weights and row.weight is None:  # a constant factor serves as the weight
        kinds |= {p: "w" for p in floats if built.op.inputs[p].is_const}  # type: ignore[union-attr]
    xs = [place for place in floats if kinds[place] == "x" and data in TOPS]
    shared = span([floats[p] for p in xs], data) if xs else None
    for count, place in enumerate(xs):
        quant = shared if row.scale == "same" else span([floats[place]], data, 1 + 0.3 * count)
        assert quant is not None
        found[place] = store(floats[place], quant, data)
    for place in [p for p in floats if kinds[p] == "w"]:
        axis = None if weights == "tensor8" or (row.scale == "same" and not weights) else row.axis
        dtype = WEIGHTS.get(weights, weights or "int8")
        real = floats[place] if axis is None else uneven(floats[place], axis)
        found[place] = store(real, weight_scale(real, axis, dtype), dtype)
    for place in [p for p in floats if kinds[p] == "b" and data in TOPS]:
        found[place] = bias(floats[place], found[xs[0]], found[row.weight or 0], data)
    return found


def bias(real: np.ndarray, data: Integers, weight: Integers, dtype: str) -> Integers:
    assert data.quant is not None and weight.quant is not None
    scale = data.quant.scale.astype(np.float64) * weight.quant.scale
    return store(real, Quant.of(scale, 0, 0), "int64" if dtype == "int16" else "int32")


def assemble(built: Built, inputs: dict[int, Integers], outputs: Sequence[Tensor]) -> Call:
    """The call as a model with some inputs replaced; `wanted` is left empty."""
    builder, fed, tensors = Builder(), list[np.ndarray](), list[Tensor | None]()
    for place, (tensor, array) in enumerate(zip(built.op.inputs, built.arrays, strict=True)):
        new = inputs.get(place)
        if tensor is None or array is None:
            tensors.append(tensor)
        elif tensor.is_const:
            const = tensor if new is None else builder.const(new.stored, "", new.dtype, new.quant)
            tensors.append(const)
        else:
            dtype, quant = (tensor.dtype, None) if new is None else (new.dtype, new.quant)
            tensors.append(builder.input(tensor.name, tensor.shape, dtype, quant))
            fed.append(array if new is None else new.stored)
    op = replace(built.op, inputs=tuple(tensors), outputs=tuple(outputs))
    builder.ops.append(op)
    return Call(builder.model(*outputs), fed, [])


def lstm_call(built: Built, lstm: Lstm) -> Call:
    """An LSTM in integers, whose weights, states and intermediate tensors only the step that
    quantizes brings into their forms; beside the float one of the same numbers."""
    data, (output,) = store(built.fed[0], span(built.fed, "int8"), "int8"), built.op.outputs
    builder = Builder()
    x = builder.input("x", data.stored.shape, "int8", data.quant)
    made = replace(output, dtype="int8", quant=Quant.of(1 / TOPS["int8"]))
    builder.ops.append(integer_lstm(lstm, x, made, cell=(-4, 4)))
    model = builder.model(made)
    return Call(model, [data.stored], run(float_form(model), [data.real]))


def call(kind: str, case: Case, key: str) -> Call:
    built, row = build(kind, case), OPS[kind]
    lstm = lstm_of(built.op) if key == "int8" else None
    if lstm is not None:
        return lstm_call(built, lstm)
    found = integers(built, key)
    real = {p: i._replace(dtype="float32", quant=None, stored=i.real) for p, i in found.items()}
    plain = assemble(built, real, built.op.outputs)
    wanted = run(plain.model, plain.fed)
    data = key.partition(":")[0]
    outputs = list(built.op.outputs)
    if data in TOPS:
        first = next(iter(found.values())).quant
        for place, tensor in enumerate(outputs):
            if tensor.dtype == "float32":
                own = span([wanted[place]], data)
                quant = {"same": first, "fixed": Quant.of(*row.fixed.get(data, (1, 0)))}
                outputs[place] = replace(tensor, dtype=data, quant=quant.get(row.scale, own))
    op = replace(built.op, version=max(row.versions[key], case.version))
    return assemble(built._replace(op=op), found, outputs)._replace(wanted=wanted)


def fits(kind: str, case: Case, key: str) -> bool:
    """True for a call of float data, and of constant weights where the key is about them."""
    built = build(kind, case)
    row, weights = OPS[kind], ":" in key
    if not all(t.elements for t in built.op.outputs):
        return False
    floats = [
        (role, tensor)
        for role, tensor in zip(roles(built), built.op.inputs, strict=True)
        if role in "xwb" and tensor is not None
    ]
    if any(tensor.dtype != "float32" for _, tensor in floats):
        return False
    consts = [tensor.is_const for role, tensor in floats if role == "w" or row.weight is None]
    return all(consts) if row.weight is not None else not weights or any(consts)


OWN = {"DEQUANTIZE", "QUANTIZE"}  # they convert, and have a test of their own
CLAIMS = [(kind, key) for kind, row in OPS.items() for key in row.versions if kind not in OWN]
CALLS = [
    pytest.param(kind, key, case, id=f"{kind}-{key}-{n}")
    for kind, key in CLAIMS
    if key != "float32:block4"
    for n, case in enumerate(CASES[kind])
    if fits(kind, case, key)
]


@pytest.mark.parametrize("delegate", [False, True], ids=["builtin", "xnnpack"])
@pytest.mark.parametrize(("kind", "key", "case"), CALLS)
def test_claimed_kernel_gives_the_real_numbers(
    kind: str, key: str, case: Case, delegate: bool
) -> None:
    made = call(kind, case, key)
    results = run(made.model, made.fed, delegate=delegate)
    for tensor, result, want in zip(made.model.main.outputs, results, made.wanted, strict=True):
        if tensor.quant is not None:
            near = store(want, tensor.quant, tensor.dtype).stored.astype(np.int64)
            steps = ROUGH.get(kind, STEPS) if tensor.dtype == "int16" else STEPS
            np.testing.assert_allclose(result.astype(np.int64), near, rtol=0, atol=steps)
        else:
            slack = SHARE * float(np.abs(want).max()) if want.dtype == np.float32 else 0
            np.testing.assert_allclose(result, want, rtol=0, atol=slack)


@pytest.mark.parametrize("delegate", [False, True], ids=["builtin", "xnnpack"])
@pytest.mark.parametrize("block", [BLOCK, 2 * BLOCK])
def test_blockwise_weights_give_the_real_numbers(block: int, delegate: bool) -> None:
    random = np.random.default_rng(block)
    data = random.uniform(-3, 3, (3, 128)).astype(np.float32)
    codes = random.integers(-7, 8, (8, 128))
    scales = random.uniform(0.01, 0.1, (8, 128 // block)).astype(np.float16)
    builder = Builder()
    details = Record("BlockwiseQuantization", {"block_size": block})
    none = np.zeros(0, np.float32), np.zeros(0, np.int64)
    quant = Quant(*none, 0, Block(builder.const(scales, "scales"), None, details))
    weight = Tensor("weight", codes.shape, "int4", pack(codes, "int4"), quant)
    version = OPS["FULLY_CONNECTED"].versions["float32:block4"]
    made = builder.op(
        "FULLY_CONNECTED", builder.input("x", data.shape), weight, None, version=version
    )
    real = codes * scales.astype(np.float32).repeat(block, axis=1)
    want = data @ real.T
    result = run(builder.model(made), [data], delegate=delegate)[0]
    np.testing.assert_allclose(result, want, rtol=0, atol=SHARE * float(np.abs(want).max()))


@pytest.mark.parametrize("delegate", [False, True], ids=["builtin", "xnnpack"])
@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_the_least_int4_code_is_a_code_like_others_beside_int8(kind: str, delegate: bool) -> None:
    random = np.random.default_rng(3)
    data, codes = random.integers(-128, 128, (3, 64)), random.integers(-8, 8, (16, 64))
    codes[:, :8] = -8
    data[0], data[1] = -128, 127
    sums, axis, count = data @ codes.T, 0, 16
    if kind == "DEPTHWISE_CONV_2D":
        codes, sums, axis, count = codes[:1], data * codes[0], 3, 64
    is_flat = kind == "FULLY_CONNECTED"
    shape = codes.shape if is_flat else (len(codes), 1, 1, 64)
    given = data.reshape(3, 64) if is_flat else data.reshape(3, 1, 1, 64)
    each, builder = Quant.of(np.full(count, 0.01, np.float32), 0, axis), Builder()
    weight = Tensor("weight", shape, "int4", pack(codes, "int4"), each)
    products = Quant.of(np.full(count, 0.0002, np.float32))
    bias = builder.const(np.zeros(count, np.int32), "bias", "int32", products)
    source = builder.input("x", given.shape, "int8", Quant.of(0.02))
    version, out = OPS[kind].versions["int8:int4"], Quant.of(0.2)
    made = builder.op(kind, source, weight, bias, version=version, dtype="int8", quant=out)
    result = run(builder.model(made), [given.astype(np.int8)], delegate=delegate)[0]
    want = np.clip(np.rint(sums * 0.0002 / 0.2), -128, 127)
    np.testing.assert_allclose(result.reshape(want.shape), want, rtol=0, atol=1)


HALF = np.random.default_rng(1).uniform(-2, 2, (3, 8)).astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("delegate", [False, True], ids=["builtin", "xnnpack"])
@pytest.mark.parametrize("key", OPS["DEQUANTIZE"].versions)
def test_stored_weights_are_restored(key: str, delegate: bool) -> None:
    dtype = {"channel8": "int8"}.get(key, key)
    builder = Builder()
    if dtype == "float16":
        made, const = HALF, builder.const(HALF.astype(np.float16))
    else:
        made = uneven(HALF, 0)
        stored = store(made, weight_scale(made, 0 if key == "channel8" else None, dtype), dtype)
        made, const = stored.real, builder.const(stored.stored, "", dtype, stored.quant)
    version = OPS["DEQUANTIZE"].versions[key]
    restored = builder.op("DEQUANTIZE", const, version=version)
    zeros = builder.input("x", HALF.shape)
    model = builder.model(builder.op("ADD", zeros, restored))
    result = run(model, [np.zeros_like(HALF)], delegate=delegate)[0]
    np.testing.assert_allclose(result, made, rtol=1e-6)


# Which type turns into which by QUANTIZE; int16 to uint8 is refused.
TURNS = [
    (source, target) for source in ("float32", "int8", "int16") for target in ("int8", "int16")
]


@pytest.mark.parametrize("delegate", [False, True], ids=["builtin", "xnnpack"])
@pytest.mark.parametrize(("source", "target"), TURNS)
def test_scales_and_types_are_converted(source: str, target: str, delegate: bool) -> None:
    own = Integers("float32", None, HALF, HALF)
    if source != "float32":
        own = store(HALF, span([HALF], source), source)
    quant = span([HALF * 1.4], target)
    builder = Builder()
    x = builder.input("x", HALF.shape, own.dtype, own.quant)
    version = OPS["QUANTIZE"].versions[target]
    out = builder.op("QUANTIZE", x, dtype=target, quant=quant, version=version)
    result = run(builder.model(out), [own.stored], delegate=delegate)[0]
    near = store(own.real, quant, target).stored.astype(np.int64)
    np.testing.assert_allclose(result.astype(np.int64), near, rtol=0, atol=1)


def test_every_claim_is_about_a_row_and_is_run() -> None:
    assert list(VERSIONS) == sorted(VERSIONS)
    assert set(VERSIONS) <= set(ROWS)
    run_claims = {param.values[:2] for param in CALLS} | {("FULLY_CONNECTED", "float32:block4")}
    assert set(CLAIMS) <= run_claims
    for kind, row in OPS.items():
        assert {word for key in row.versions for word in key.split(":")} <= WORDS
        if row.scale == "fixed":
            assert {key for key in row.versions if ":" not in key} <= set(row.fixed), kind


def legacy(made: Call) -> Call:
    """The same call in uint8: every stored number and zero point is 128 higher."""
    twins = dict[Tensor, Tensor]()
    graph = made.model.main
    for tensor in graph.tensors:
        if tensor.dtype == "int8" and tensor.quant is not None:
            data = None if tensor.data is None else tensor.data.view(np.uint8) ^ np.uint8(128)
            quant = replace(tensor.quant, zero_point=tensor.quant.zero_point + 128)
            twins[tensor] = replace(tensor, dtype="uint8", data=data, quant=quant)
    fed = [
        array.view(np.uint8) ^ np.uint8(128) if tensor in twins else array
        for tensor, array in zip(graph.inputs, made.fed, strict=True)
    ]
    model = replace(made.model, graphs=(rewrite(graph, tensors=twins),))
    return Call(model, fed, made.wanted)


MOVED = [p for p in CALLS if p.values[1] == "int8" and OPS[str(p.values[0])].weight is None]


@pytest.mark.parametrize(("kind", "key", "case"), MOVED)
def test_upgrade_to_a_claimed_kernel_keeps_the_real_numbers(
    kind: str, key: str, case: Case
) -> None:
    made = legacy(call(kind, case, key))
    change = Upgrade().apply(made.model, Context())
    assert not change.skipped
    results = run(change.model, made.fed)
    for tensor, result, want in zip(made.model.main.outputs, results, made.wanted, strict=True):
        if tensor.quant is not None:
            real = (result.astype(np.int64) - tensor.quant.zero_point) * tensor.quant.scale
            inside = (np.array([0, 255]) - tensor.quant.zero_point) * tensor.quant.scale
            np.testing.assert_allclose(
                real, np.clip(want, *inside), rtol=0, atol=STEPS * tensor.quant.scale[0]
            )
        else:
            np.testing.assert_array_equal(result, want)
