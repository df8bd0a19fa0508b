"""Reading and writing lose nothing: by the runtime's own view of the file, and by its results."""

from dataclasses import replace
from types import MappingProxyType

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as official

from litesmith.anatomy.findings import findings
from litesmith.errors import BadModel, CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Record
from litesmith.run.session import Session
from litesmith.tflite.read import read
from litesmith.tflite.write import Node, Packer, to_bytes
from tests.runtime import run
from tests.zoo import MODELS, NOT_RUNNABLE, convnet, custom, described, residual_int8, same_names


def again(data: bytes) -> bytes:
    return to_bytes(read(memoryview(data)))


@pytest.mark.parametrize("name", MODELS)
def test_a_second_copy_has_identical_bytes(name: str) -> None:
    first = to_bytes(MODELS[name]())
    assert again(first) == first


@pytest.mark.parametrize("name", [n for n in MODELS if n not in NOT_RUNNABLE])
def test_the_runtime_computes_the_same_from_a_copy(name: str) -> None:
    original = to_bytes(MODELS[name]())
    for a, b in zip(run(original, seed=3), run(again(original), seed=3), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", MODELS)
def test_a_file_by_the_runtimes_own_writer_survives(name: str) -> None:
    """Unpacked and packed by the flatbuffers object API, then by us: the same object tree."""
    tree = official.ModelT.InitFromPackedBuf(to_bytes(MODELS[name]()), 0)
    builder = flatbuffers.Builder(1024)
    builder.Finish(tree.Pack(builder), b"TFL3")
    ours = official.ModelT.InitFromPackedBuf(again(bytes(builder.Output())), 0)
    assert dump(ours) == dump(tree)


def dump(value: object) -> object:
    """An object tree as plain values; an empty list is an absent one, as it is to the runtime."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [dump(v) for v in value]
    if hasattr(value, "__dict__"):
        items = {k: dump(v) for k, v in vars(value).items()}
        return {k: v for k, v in items.items() if v is not None and v != [] and v != 0}
    return value


def test_constants_are_views_on_the_bytes() -> None:
    data = bytearray(to_bytes(convnet()))
    model = read(memoryview(data))
    constants = [t.data for t in model.main.tensors if t.data is not None]
    base = np.frombuffer(data, np.uint8)
    assert constants
    assert all(np.shares_memory(base, constant) for constant in constants)
    assert not any(
        t.data.flags.writeable
        for t in read(memoryview(bytes(data))).main.tensors
        if t.data is not None
    )


def test_shared_buffers_stay_shared() -> None:
    tree = official.ModelT.InitFromPackedBuf(again(to_bytes(same_names())), 0)
    contents = [bytes(b.data) for b in tree.buffers if b.data is not None and len(b.data)]
    assert len(contents) == len(set(contents))
    sharing = [t.buffer for t in tree.subgraphs[0].tensors if t.buffer]
    assert len(sharing) > len(set(sharing))


def test_large_models_keep_constants_behind_the_flatbuffer() -> None:
    model = described()
    data = to_bytes(model, root_limit=64)
    tree = official.ModelT.InitFromPackedBuf(data, 0)
    outside = [b for b in tree.buffers if b.offset > 1]
    assert outside
    assert all(b.data is None for b in tree.buffers)
    assert to_bytes(read(memoryview(data))) == to_bytes(model)
    np.testing.assert_array_equal(run(data)[0], run(model)[0])


@pytest.mark.parametrize("root_limit", [64, 2**31])
def test_large_custom_options(root_limit: int) -> None:
    options = bytes(range(256)) * 32
    b = Builder()
    y = b.op("CUSTOM", b.input("x", (1,)), custom="Big", custom_options=options, shape=(1,))
    copy = read(memoryview(to_bytes(b.model(y), root_limit)))
    assert bytes(copy.main.ops[0].rest["custom_options"]) == options  # type: ignore[arg-type]


def test_custom_options_are_kept() -> None:
    op = read(memoryview(to_bytes(custom()))).main.ops[0]
    assert (op.kind, op.custom) == ("CUSTOM", "Mystery")
    assert bytes(op.rest["custom_options"]) == b"\x01\x02\x03"  # type: ignore[arg-type]


def test_names_that_are_not_utf8_survive() -> None:
    b = Builder()
    model = b.model(b.op("ABS", b.input("\udcff\udc80", (1,)), name="\x1b[31m"))
    copy = read(memoryview(to_bytes(model)))
    assert copy.main.inputs[0].name == "\udcff\udc80"
    assert b"\xff\x80" in to_bytes(model)


def test_unknown_enum_numbers_survive() -> None:
    b = Builder()
    x = b.op("ADD", b.input("x", (1,)), np.float32(1), fused_activation_function=77)
    copy = read(memoryview(to_bytes(b.model(x))))
    assert copy.main.ops[0].option("fused_activation_function") == 77


def test_fields_newer_than_the_schema_are_named_and_not_dropped() -> None:
    model = read(memoryview(from_the_future()))
    assert model.lost == ("Model field 10",)
    with pytest.raises(CannotApply, match=r"Model field 10.*upgrade"):
        to_bytes(model)


def test_the_only_axis_of_a_tensor_is_put_right_and_told() -> None:
    """Older converters number a bias's axis as that of the weights, which LiteRT refuses."""
    data = with_bias_axis(3)
    copy = read(memoryview(data))
    (name,) = copy.mended
    assert to_bytes(copy) == with_bias_axis(0)
    assert any(name in finding.what for finding in findings(copy))
    with pytest.raises(ValueError, match="quantized_dimension"):
        run(data, seed=3)
    with Session(data) as session:
        session.run()
        assert session.outputs


def with_bias_axis(axis: int) -> bytes:
    model = residual_int8()
    bias = next(t for t in model.main.tensors if t.dtype == "int32")
    assert bias.quant is not None
    other = replace(bias, quant=replace(bias.quant, axis=axis))
    return to_bytes(with_graphs(model, [rewrite(model.main, tensors={bias: other})], {}))


def from_the_future() -> bytes:
    """A file whose root table has one field more than today's schema."""
    tree = official.ModelT.InitFromPackedBuf(to_bytes(convnet()), 0)
    builder = flatbuffers.Builder(1024)
    vectors = {}
    for slot, items in ((1, tree.operatorCodes), (2, tree.subgraphs), (4, tree.buffers)):
        packed = [item.Pack(builder) for item in items]
        builder.StartVector(4, len(packed), 4)
        for offset in reversed(packed):
            builder.PrependUOffsetTRelative(offset)
        vectors[slot] = builder.EndVector()
    builder.StartObject(11)
    builder.PrependUint32Slot(0, 3, 0)
    for slot, offset in vectors.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    builder.PrependInt32Slot(10, 42, 0)
    builder.Finish(builder.EndObject(), b"TFL3")
    return bytes(builder.Output())


def test_a_model_bound_to_its_file_is_refused() -> None:
    b = Builder()
    y = b.op("CUSTOM", b.input("x", (1,)), custom="DISPATCH_OP", shape=(1,))
    with pytest.raises(CannotApply, match="before compilation"):
        to_bytes(b.model(y))


def test_the_wrong_version_is_refused() -> None:
    packer = Packer(b"TFL3")
    packer.root(Node("Model", {"version": 4}))
    with pytest.raises(BadModel, match="schema version 4"):
        read(memoryview(b"".join(packer.chunks())))


def test_fields_we_only_carry_along_survive() -> None:
    b = Builder()
    y = b.op("ABS", b.input("x", (1,)))
    rest = MappingProxyType({"mutating_variable_inputs": np.array([True, False])})
    b.ops[0] = replace(b.ops[0], rest=rest)
    kept = read(memoryview(to_bytes(b.model(y)))).main.ops[0].rest
    np.testing.assert_array_equal(kept["mutating_variable_inputs"], [True, False])  # type: ignore[arg-type]


def test_an_options_table_keeps_what_is_not_default() -> None:
    b = Builder()
    y = b.op(
        "CONV_2D",
        b.input("x", (1, 4, 4, 1)),
        np.ones((1, 1, 1, 1), np.float32),
        np.zeros(1, np.float32),
    )
    options = read(memoryview(to_bytes(b.model(y)))).main.ops[0].options
    assert options == Record("Conv2DOptions", {"stride_w": 1, "stride_h": 1})
    assert options is not None
    assert options["dilation_h_factor"] == 1


def test_a_file_without_buffers_has_no_constants() -> None:
    """The runtime opens it: buffer 0 stands for no content."""
    b = Builder()
    x = b.input("x", (1, 4))
    tree = official.ModelT.InitFromPackedBuf(to_bytes(b.model(b.op("ADD", x, x))), 0)
    tree.buffers, tree.metadata = [], []
    builder = flatbuffers.Builder(1024)
    builder.Finish(tree.Pack(builder), b"TFL3")
    (op,) = read(memoryview(bytes(builder.Output()))).main.ops
    assert op.kind == "ADD" and not op.outputs[0].is_const
