"""Static costs, against counts made by hand."""

import gzip

import numpy as np
import pytest

from litesmith.anatomy.findings import findings, scheme
from litesmith.anatomy.footprint import footprint, gzip_bytes, peak_bytes
from litesmith.ir.build import Builder
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from tests import zoo
from tests.zoo import noise
from tests.zoo_float import context, conv


def test_parameters_macs_and_bytes_by_hand() -> None:
    facts = footprint(zoo.convnet())
    assert facts.parameters == 4 * 27 + 4 + 36 + 4 + 5 * 64 + 5
    assert facts.macs == 16 * 4 * 27 + 16 * 4 * 9 + 5 * 64
    assert facts.bytes_by_dtype == {"float32": 4 * facts.parameters, "int32": 8}
    assert facts.bytes_by_kind["CONV_2D"] == 4 * (4 * 27 + 4)
    assert facts.ops["SOFTMAX"] == 1


def test_shared_bytes_count_once() -> None:
    facts = footprint(zoo.same_names())
    assert facts.bytes_by_dtype["float32"] == 16


def test_peak_of_a_chain_is_its_largest_pair() -> None:
    """Input and output live throughout; of the others, an op's input and output at a time."""
    b = Builder()
    x = b.input("x", (10,))
    a = b.op("TILE", x, [4])
    c = b.op("TILE", a, [2])
    d = b.op("SUM", c, [0], keep_dims=True)
    assert peak_bytes(b.model(d)) == 4 * (10 + 1 + 40 + 80)


def test_peak_frees_what_is_read_for_the_last_time() -> None:
    b = Builder()
    x = b.input("x", (1,))
    y = b.op("ABS", b.op("ABS", b.op("ABS", b.op("ABS", b.op("ABS", x)))))
    assert peak_bytes(b.model(y)) == 4 * (2 + 2)


def test_peak_counts_a_result_that_nobody_reads_only_once() -> None:
    b = Builder()
    x = b.input("x", (1,))
    b.op("TILE", x, [100])
    b.op("TILE", x, [100])
    assert peak_bytes(b.model(b.op("ABS", x))) == 4 * (2 + 100)


def test_peak_includes_called_graphs() -> None:
    assert peak_bytes(zoo.loop()) == 2 * (4 + 12) + max(2 * (4 + 12), 4 + 12 + 1)


@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_model_has_a_footprint(name: str) -> None:
    facts = footprint(zoo.MODELS[name]())
    assert facts.peak_activation_bytes >= 0
    assert sum(facts.macs_by_kind.values()) == facts.macs


def test_gzip_is_what_gzip_gives() -> None:
    data = np.random.default_rng(0).integers(0, 4, 50_000).astype(np.uint8).tobytes()
    pieces = [data[i : i + 999] for i in range(0, len(data), 999)]
    assert abs(gzip_bytes(pieces) - len(gzip.compress(data, 6))) < 32


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("convnet", "float32"),
        ("half_weights", "float16 weights, float32 activations"),
        ("hybrid", "int8 weights, float activations (dynamic range or weight only)"),
        ("residual_int8", "int8 activations, int8 weights"),
        ("legacy_uint8", "uint8 activations, uint8 weights"),
        ("int4_weights", "int8 activations, int4 weights"),
    ],
)
def test_scheme(name: str, words: str) -> None:
    assert scheme(zoo.MODELS[name]()) == words


@pytest.mark.parametrize(
    ("name", "what", "command"),
    [
        ("legacy_uint8", "quantized as uint8", '"upgrade"'),
        ("careless", "can go without a change", '"cleanup | fold | fuse"'),
        ("half_weights", "float16", '"fold(float16=true) | fuse"'),
        ("resizable", "free dimension", '"fold(shapes=true) | cleanup"'),
        ("custom", "Mystery", "inspect MODEL --ops"),
    ],
)
def test_findings(name: str, what: str, command: str) -> None:
    found = [f for f in findings(zoo.MODELS[name]()) if what in f.what]
    assert len(found) == 1
    assert command in found[0].command
    assert " OUT" not in found[0].command or found[0].command.endswith("-o OUT.tflite")
    assert found[0].why


def test_one_op_is_no_plural() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    (found,) = findings(b.model(b.op("ADD", b.op("RESHAPE", x, [1, 4]), x)))
    assert found.what.startswith("1 op and ")


def test_four_bits_in_convolutions_of_one_place_are_told_with_the_cure() -> None:
    b = Builder()
    x = conv(b, conv(b, b.input("x", (1, 6, 5, 8)), 32, size=3), 32, size=1)
    model = b.model(x)
    coarse = apply(model, "quantize(to=w4a8)", context(model)).model
    (found,) = findings(coarse)
    assert found.what == "1 CONV_2D with int4 weights leave XNNPACK"
    assert findings(apply(coarse, found.recipe).model) == []
    assert findings(apply(model, "quantize", context(model)).model) == []


def test_a_tidy_model_has_no_findings() -> None:
    assert findings(zoo.residual_int8()) != []  # its RELU can be fused
    assert findings(apply(zoo.residual_int8(), "fuse").model) == []
    assert findings(zoo.hybrid()) == []


@pytest.mark.parametrize("options", [{"stride_h": 2, "stride_w": 2}, {"depth": 4}])
def test_four_bits_without_a_cure_are_not_told(options: dict[str, int]) -> None:
    """Windows that skip places, and groups of channels, are no fully connected layers."""
    b = Builder()
    weight = noise(32, 1, 1, options.pop("depth", 8))
    model = b.model(b.op("CONV_2D", b.input("x", (1, 6, 5, 8)), weight, noise(32), **options))
    coarse = apply(model, "quantize(to=w4a8)", context(model)).model
    assert [layer.weight.dtype for layer in layers_of(coarse.main).values()] == ["int4"]
    assert not findings(coarse)
