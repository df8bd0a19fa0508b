"""Models of every sort the format knows, each built in a few lines. Tests run over all of them."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from litesmith.ir.build import Builder
from litesmith.ir.dtype import pack
from litesmith.ir.types import Block, Model, Quant, Record, Signature, Tensor


def noise(*shape: int, seed: int = 0, scale: float = 0.5) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def convnet() -> Model:
    b = Builder()
    x = b.input("image", (1, 8, 8, 3))
    x = b.op("CONV_2D", x, noise(4, 3, 3, 3), noise(4), stride_h=2, stride_w=2)
    x = b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, 4), noise(4), fused_activation_function="RELU6")
    x = b.op("FULLY_CONNECTED", b.op("RESHAPE", x, [1, 64]), noise(5, 64), noise(5))
    return b.model(b.op("SOFTMAX", x, name="scores"), signature="serving_default")


def careless() -> Model:
    """Everything that clean-up, folding and fusing remove."""
    b = Builder()
    x = b.input("x", (1, 6, 6, 2))
    x = b.op("PAD", x, [[0, 0], [1, 1], [1, 1], [0, 0]])
    x = b.op("CONV_2D", x, noise(3, 3, 3, 2), noise(3), padding="VALID")
    x = b.op("MUL", x, b.op("ADD", noise(3, seed=1), noise(3, seed=2)))
    x = b.op("RELU", b.op("SUB", x, noise(3, seed=3)))
    b.op("EXP", x)  # nobody reads it
    x = b.op("TRANSPOSE", b.op("TRANSPOSE", x, [0, 3, 1, 2]), [0, 2, 3, 1])
    x = b.op("RESHAPE", b.op("RESHAPE", x, [1, 36, 3]), [1, 108])
    y = b.op("ADD", b.op("NEG", x), b.op("NEG", x))
    return b.model(b.op("CAST", y, out_data_type="FLOAT32", in_data_type="FLOAT32"))


def residual_int8() -> Model:
    b = Builder()
    x = b.input("x", (1, 4, 4, 4), "int8", Quant.of(0.05, -3))
    weight = np.random.default_rng(5).integers(-127, 128, (4, 1, 1, 4)).astype(np.int8)
    w = b.const(weight, quant=Quant.of(np.array([0.01, 0.02, 0.03, 0.01], np.float32), 0, 0))
    bias = b.const(np.arange(4, dtype=np.int32), quant=Quant.of(np.full(4, 5e-4, np.float32)))
    y = b.op("CONV_2D", x, w, bias, quant=Quant.of(0.08, 4), version=3)
    y = b.op("RELU", y, quant=Quant.of(0.08, 4), version=2)
    return b.model(b.op("ADD", x, y, quant=Quant.of(0.1, 1), version=2))


def legacy_uint8() -> Model:
    random = np.random.default_rng(6)
    b = Builder()
    x = b.input("x", (1, 6, 6, 3), "uint8", Quant.of(0.02, 128))
    w = b.const(random.integers(0, 256, (4, 3, 3, 3)).astype(np.uint8), quant=Quant.of(0.01, 100))
    bias = b.const(random.integers(-500, 500, 4).astype(np.int32), quant=Quant.of(0.0002))
    y = b.op("CONV_2D", x, w, bias, quant=Quant.of(0.04, 90))
    d = b.const(random.integers(90, 120, (1, 3, 3, 4)).astype(np.uint8), quant=Quant.of(0.02, 105))
    zeros = b.const(np.zeros(4, np.int32), quant=Quant.of(0.0008))
    z = b.op("DEPTHWISE_CONV_2D", y, d, zeros, quant=Quant.of(0.03, 120), depth_multiplier=1)
    joined = b.op("CONCATENATION", y, z, axis=3, quant=Quant.of(0.05, 110))
    window = {"filter_height": 6, "filter_width": 6, "padding": "VALID"}
    pooled = b.op("AVERAGE_POOL_2D", joined, quant=Quant.of(0.05, 110), **window)
    flat = b.op("RESHAPE", pooled, [1, 8], quant=Quant.of(0.05, 110))
    return b.model(b.op("SOFTMAX", flat, quant=Quant.of(1 / 256, 0)), signature="classify")


def half_weights() -> Model:
    b = Builder()
    x = b.input("x", (1, 16))
    w = b.op("DEQUANTIZE", noise(8, 16).astype(np.float16), dtype="float32", version=3)
    bias = b.op("DEQUANTIZE", noise(8).astype(np.float16), dtype="float32", version=3)
    return b.model(b.op("FULLY_CONNECTED", x, w, bias))


def hybrid() -> Model:
    b = Builder()
    x = b.input("x", (1, 16))
    codes = np.random.default_rng(2).integers(-127, 128, (8, 16)).astype(np.int8)
    w = b.const(codes, quant=Quant.of(0.01))
    return b.model(b.op("FULLY_CONNECTED", x, w, noise(8), version=3))


def int4_weights() -> Model:
    b = Builder()
    x = b.input("x", (1, 16), "int8", Quant.of(0.05))
    codes = np.random.default_rng(3).integers(-7, 8, (3, 16))
    w = b.const(codes, dtype="int4", quant=Quant.of(0.1))
    bias = b.const(np.zeros(3, np.int32), quant=Quant.of(0.005))
    return b.model(b.op("FULLY_CONNECTED", x, w, bias, quant=Quant.of(0.2), version=10))


def blockwise() -> Model:
    """Int4 weights with a scale for each block of 32, kept in a tensor of its own."""
    b = Builder()
    x = b.input("x", (1, 64))
    codes = np.random.default_rng(4).integers(-7, 8, (4, 64))
    scales = b.const(np.full((4, 2), 0.05, np.float16), name="scales")
    details = Record("BlockwiseQuantization", {"block_size": 32})
    block = Block(scales, None, details)
    empty = Quant(np.zeros(0, np.float32), np.zeros(0, np.int64), 0, block)
    w = Tensor("w", (4, 64), "int4", pack(codes, "int4"), empty)
    return b.model(b.op("FULLY_CONNECTED", x, w, None, version=13))


def branches() -> Model:
    """IF over two graphs."""

    def branch(name: str, kind: str):
        b = Builder(name)
        x = b.input("x", (4,))
        return b.graph(b.op(kind, x, noise(4)))

    b = Builder()
    x = b.input("x", (4,))
    positive = b.op("GREATER", b.op("SUM", x, [0]), np.float32(0), shape=())
    y = b.op(
        "IF", positive, x, shape=(4,), dtype="float32", then_subgraph_index=1, else_subgraph_index=2
    )
    return b.model(y, graphs=(branch("then", "ADD"), branch("else", "MUL")))


def loop() -> Model:
    """WHILE i < 5: i, x = i + 1, x + x."""
    condition = Builder("condition")
    i = condition.input("i", (1,), "int32")
    condition.input("x", (3,))
    body = Builder("body")
    j = body.input("i", (1,), "int32")
    x = body.input("x", (3,))
    outputs = body.op("ADD", j, np.ones(1, np.int32)), body.op("ADD", x, x)
    b = Builder()
    start, value = b.input("i", (1,), "int32"), b.input("x", (3,))
    b.op("WHILE", start, value, shape=[(1,), (3,)], cond_subgraph_index=1, body_subgraph_index=2)
    graphs = (
        condition.graph(condition.op("LESS", i, np.array([5], np.int32))),
        body.graph(*outputs),
    )
    return b.model(*b.last.outputs, graphs=graphs)


def variables() -> Model:
    """CALL_ONCE sets a variable that each run reads and raises."""
    init = Builder("init")
    handle = init.op("VAR_HANDLE", shape=(), dtype="resource", shared_name="counter")
    init.add("ASSIGN_VARIABLE", handle, noise(2))
    b = Builder()
    x = b.input("x", (2,))
    b.add("CALL_ONCE", init_subgraph_index=1)
    own = b.op("VAR_HANDLE", shape=(), dtype="resource", shared_name="counter")
    total = b.op("ADD", b.op("READ_VARIABLE", own, shape=(2,), dtype="float32"), x)
    b.add("ASSIGN_VARIABLE", own, total)
    return b.model(total, graphs=(init.graph(),))


def stateful() -> Model:
    """SVDF keeps its state in a variable tensor."""
    b = Builder()
    x = b.input("x", (1, 4))
    state = Tensor("state", (1, 6), variable=True)
    return b.model(b.op("SVDF", x, noise(3, 4), noise(3, 2), None, state, rank=1, shape=(1, 3)))


def custom() -> Model:
    b = Builder()
    x = b.input("x", (2, 2))
    y = b.op("CUSTOM", x, custom="Mystery", custom_options=b"\x01\x02\x03", shape=(2, 2))
    return b.model(b.op("ABS", y))


def sized_late() -> Model:
    """An image of a size that is computed, of which the file says nothing."""
    b = Builder()
    x = b.input("x", (1, 40, 40, 3))
    sides = b.op("STRIDED_SLICE", b.op("SHAPE", x), [1], [3], [1], shape=(2,))
    large = b.op("MUL", sides, np.array([20, 20], np.int32))
    y = b.op("RESIZE_NEAREST_NEIGHBOR", x, large, shape=())
    return b.model(b.op("CONV_2D", y, noise(4, 1, 1, 3), noise(4), shape=()))


def strings() -> Model:
    b = Builder()
    x = b.input("pick", (1,), "int32")
    return b.model(b.op("GATHER", b.const(["one", "zwei", "三"]), x, dtype="string"))


def sparse() -> Model:
    """A fully connected weight in compressed sparse rows."""
    b = Builder()
    x = b.input("x", (1, 4))
    dense = np.array([[1, 0, 0, 2], [0, 0, 3, 0]], np.float32)
    rows = Record("DimensionMetadata", {"dense_size": 2})
    columns = Record(
        "DimensionMetadata",
        {
            "format": "SPARSE_CSR",
            "array_segments": Record("Uint8Vector", {"values": np.array([0, 2, 3], np.uint8)}),
            "array_indices": Record("Uint8Vector", {"values": np.array([0, 3, 2], np.uint8)}),
        },
    )
    layout = Record(
        "SparsityParameters", {"traversal_order": (0, 1), "dim_metadata": (rows, columns)}
    )
    w = Tensor("w", (2, 4), "float32", dense[dense != 0], sparsity=layout)
    return b.model(b.op("FULLY_CONNECTED", x, w, None, version=8))


def sparse_filter(b: Builder, weights: np.ndarray) -> Tensor:
    """A filter of 1×1, by its matrix, that is stored without its zeros, behind DENSIFY."""
    used = weights != 0
    ends = np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int32)
    columns = Record("DimensionMetadata").set(
        format="SPARSE_CSR",
        array_segments=Record("Int32Vector").set(values=ends),
        array_indices=Record("Int32Vector").set(values=np.nonzero(used)[1].astype(np.int32)),
    )
    channels, inputs = weights.shape
    rows = (Record("DimensionMetadata").set(dense_size=size) for size in (channels, 1, 1))
    layout = Record("SparsityParameters").set(
        traversal_order=np.arange(4, dtype=np.int32), dim_metadata=(*rows, columns)
    )
    shape = channels, 1, 1, inputs
    stored = Tensor("sparse filter", shape, "float32", weights[used], sparsity=layout)
    return b.op("DENSIFY", stored, shape=shape)


def resizable() -> Model:
    b = Builder()
    x = b.input("x", (-1, 4))
    size = b.op("SHAPE", x, out_type="INT32")
    rows = b.op("STRIDED_SLICE", size, [0], [1], [1], shrink_axis_mask=1)
    shape = b.op("PACK", rows, np.int32(2), np.int32(2), values_count=3, shape=(3,), dtype="int32")
    return b.model(b.op("RESHAPE", x, shape, shape=(1, 2, 2)))


def two_signatures() -> Model:
    def side(name: str, kind: str):
        b = Builder(name)
        return b.graph(b.op(kind, b.input("x", (3,))))

    graphs = side("up", "EXP"), side("down", "NEG")
    signatures = tuple(
        Signature(g.name, i, (("in", g.inputs[0]),), (("out", g.outputs[0]),))
        for i, g in enumerate(graphs)
    )
    return Model(graphs, signatures)


def same_names() -> Model:
    """Every tensor has the same name, and two constants share one buffer."""
    b = Builder()
    shared = noise(4)
    x = b.input("t", (4,))
    a = Tensor("t", (4,), data=shared)
    c = Tensor("t", (2, 2), data=shared.reshape(2, 2))
    y = b.op("ADD", x, a, name="t")
    return b.model(
        b.op(
            "RESHAPE", b.op("MUL", b.op("RESHAPE", y, [2, 2], name="t"), c, name="t"), [4], name="t"
        )
    )


def described() -> Model:
    """Metadata, an attached label file, spare buffers and tensors, fields we only carry along."""
    model = convnet()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        files.writestr(zipfile.ZipInfo("labels.txt"), "cat\ndog\n")  # with no time of day
    spare = Tensor("unused", (2,), data=np.array([1, 2], np.float32))
    graph = replace(
        model.main,
        tensors=(spare, *model.main.tensors),
        rest=MappingProxyType({"debug_metadata_index": 0}),
    )
    extra = np.frombuffer(b"min_runtime 1.5.0", np.uint8)
    return replace(
        model,
        graphs=(graph,),
        metadata=(("min_runtime_version", extra), ("TFLITE_METADATA", extra[:4])),
        attached=archive.getvalue(),
        spare=(np.frombuffer(b"nobody reads this", np.uint8),),
        rest=MappingProxyType(
            {"external_buffer_groups": (Record("ExternalBufferGroup", {"name": "weights.bin"}),)}
        ),
    )


def nothing() -> Model:
    """The least: an input that is the output, and no op."""
    b = Builder()
    return b.model(b.input("x", (2, 3)))


MODELS: dict[str, Callable[[], Model]] = {
    make.__name__: make
    for make in (
        convnet,
        careless,
        residual_int8,
        legacy_uint8,
        half_weights,
        hybrid,
        int4_weights,
        blockwise,
        branches,
        loop,
        variables,
        stateful,
        custom,
        strings,
        sparse,
        resizable,
        two_signatures,
        same_names,
        described,
        nothing,
    )
}

# Models that stock LiteRT does not run here, and why.
NOT_RUNNABLE = {
    "custom": "no kernel is called Mystery",
}
