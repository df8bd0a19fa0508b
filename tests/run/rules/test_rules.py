"""Predictions by rules: what single documents say, and how models split."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Op, Quant, Tensor
from litesmith.phrases import phrase
from litesmith.run.accelerators.targets import BY_NAME
from litesmith.run.core.placement import MEASURED, Home, Placement
from litesmith.run.rules.all_rules import RULES, Rules, place_by_rules
from litesmith.run.rules.op_conditions import reads
from litesmith.run.rules.rule_row import partitions, takes
from litesmith.tflite.file import load
from tests import zoo
from tests.test_assets import FILES
from tests.test_every_target import count_runs, laws

SCALE = Quant.of(0.05)


def place(name: str, model: Model) -> Placement:
    return place_by_rules(name, RULES[name], model)


def reason(name: str, model: Model, number: int = 0) -> str:
    """Why an op is left; "" where it is taken."""
    home = place(name, model).homes[number]
    return "" if home.taken else home.why


def conv_int(
    b: Builder, x: Tensor, *, dtype: str = "int8", kind: str = "CONV_2D", **options: Any
) -> Tensor:
    channels = x.shape[3]
    shape = (channels, 1, 1, channels) if kind == "CONV_2D" else (1, 1, 1, channels)
    weight = b.const(np.ones(shape, np.int8), quant=Quant.of(np.full(channels, 0.1, np.float32)))
    wide = np.int64 if dtype == "int16" else np.int32
    bias = b.const(np.zeros(channels, wide), quant=Quant.of(np.full(channels, 0.005, np.float32)))
    return b.op(kind, x, weight, bias, quant=SCALE, version=3, **options)


def conv_model(shape: Sequence[int] = (1, 8, 8, 4), dtype: str = "int8", **options: Any) -> Model:
    b = Builder()
    return b.model(conv_int(b, b.input("x", shape, dtype, SCALE), dtype=dtype, **options))


LAYERS = {
    "CONV_2D": (6, 3, 3, 4),
    "DEPTHWISE_CONV_2D": (1, 3, 3, 4),
    "FULLY_CONNECTED": (6, 4),
    "TRANSPOSE_CONV": (6, 3, 3, 4),
}


def layer(kind: str, stored: str, *, by_channel: bool, flows: str = "int8") -> Model:
    """A layer whose weights are stored in a type, with a scale for all or for each channel."""
    b, shape = Builder(), LAYERS[kind]
    axis = 3 if kind == "DEPTHWISE_CONV_2D" else 0
    channels, is_float = shape[axis], flows == "float32"
    scales = np.full(channels if by_channel else 1, 0.01, np.float32)
    x = b.input("x", (1, 8, 8, 4), flows, None if is_float else SCALE)
    w = b.const(np.ones(shape, np.int8), dtype=stored, quant=Quant.of(scales, 0, axis))
    bias = b.const(np.zeros(channels, np.float32 if is_float else np.int32))
    if not is_float:
        bias = b.const(np.zeros(channels, np.int32), quant=Quant.of(scales * np.float32(0.05)))
    inputs = ([1, 16, 16, channels], w, x, bias) if kind == "TRANSPOSE_CONV" else (x, w, bias)
    options: dict[str, Any] = {
        "CONV_2D": {},
        "DEPTHWISE_CONV_2D": {"depth_multiplier": 1},
        "FULLY_CONNECTED": {"keep_num_dims": True},
        "TRANSPOSE_CONV": {"stride_w": 2, "stride_h": 2, "padding": "SAME"},
    }[kind]
    return b.model(b.op(kind, *inputs, quant=None if is_float else SCALE, **options))


def hybrid_conv() -> Model:
    b = Builder()
    weight = b.const(np.ones((4, 1, 1, 4), np.int8), quant=Quant.of(0.1))
    x = b.input("x", (1, 4, 4, 4))
    return b.model(b.op("CONV_2D", x, weight, np.zeros(4, np.float32), version=2))


def chain(*kinds: str, dtype: str = "int8") -> Model:
    """Ops in a row on one tensor."""
    b = Builder()
    quant = SCALE if dtype == "int8" else None
    x = b.input("x", (1, 4, 4, 4), dtype, quant)
    for kind in kinds:
        x = b.op(kind, x, quant=quant)
    return b.model(x)


@st.composite
def split_graphs(draw: st.DrawFn) -> tuple[Model, list[bool]]:
    """A graph with branches and joins, and which of its ops are taken."""
    b = Builder()
    pool = [b.input("x", (4,)), b.input("y", (4,))]
    for _ in range(draw(st.integers(1, 14))):
        one, two = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        pool.append(b.op("ADD", one, two))
    model = b.model(pool[-1])
    count = len(model.main.ops)
    return model, draw(st.lists(st.booleans(), min_size=count, max_size=count))


@given(split_graphs())
def test_partitions_hold_what_is_taken_and_can_run_one_after_the_other(
    drawn: tuple[Model, list[bool]],
) -> None:
    model, taken = drawn
    graph = model.main
    pieces = partitions(graph, taken)
    assert sorted(place for piece in pieces for place in piece) == [
        place for place, is_taken in enumerate(taken) if is_taken
    ]
    homes = [Home(n, "ADD", is_taken, "drawn") for n, is_taken in enumerate(taken)]
    assert len(pieces) <= count_runs(homes)
    made_by = {t: n for n, op in enumerate(graph.ops) for t in op.outputs}
    needs = {n: {made_by[t] for t in op.inputs if t in made_by} for n, op in enumerate(graph.ops)}
    done: set[int] = set()
    for piece in [*pieces, []]:
        ready = True
        while ready:  # the CPU does what it can before each piece
            ready = [n for n, t in enumerate(taken) if not t and n not in done and needs[n] <= done]
            done |= set(ready)
        for place_of_op in piece:
            assert needs[place_of_op] <= done
            done.add(place_of_op)
    assert done == set(range(len(taken)))


def test_neighbours_that_do_not_need_each_other_are_one_partition() -> None:
    b = Builder()
    x, y = b.input("x", (4,)), b.input("y", (4,))
    first, other, second = b.op("NEG", x), b.op("ABS", y), b.op("EXP", x)
    model = b.model(first, other, second)
    assert partitions(model.main, [True, False, True]) == [[0, 2]]


@pytest.mark.parametrize("name", ["edgetpu", "ethos"])
def test_integer_accelerators_refuse_floats_and_say_how_to_fit(name: str) -> None:
    placed = place(name, zoo.convnet())
    assert not placed.taken
    assert "int8" in placed.refused
    assert "float32" in placed.refused
    assert str(placed.facts["way_out"]).startswith("litesmith quantize MODEL --to int8")
    assert place(name, zoo.residual_int8()).is_whole
    assert place(name, zoo.legacy_uint8()).is_whole


def test_core_ml_takes_floats_only() -> None:
    placed = place("coreml", zoo.residual_int8())
    assert not placed.taken
    assert placed.refused == "it takes float32 and float16 models; this one is int8"
    assert place("coreml", zoo.convnet()).taken


def test_the_edge_tpu_has_one_partition_from_the_start() -> None:
    placed = place("edgetpu", chain("RELU", "TANH", "EXP", "RELU", "TANH"))
    assert [home.taken for home in placed.homes] == [True, True, False, False, False]
    assert "not in its list" in placed.homes[2].why
    assert "behind op 2, EXP" in placed.homes[3].why
    assert placed.partitions == 1


def test_a_conversion_of_the_input_does_not_end_the_edge_tpu_partition() -> None:
    b = Builder()
    x = b.op("QUANTIZE", b.input("x", (1, 8)), dtype="int8", quant=SCALE)
    y = b.op("TANH", b.op("RELU", x, quant=SCALE), quant=SCALE)
    placed = place("edgetpu", b.model(b.op("DEQUANTIZE", y, dtype="float32")))
    assert [home.taken for home in placed.homes] == [False, True, True, False]


@pytest.mark.parametrize(
    ("name", "model", "why"),
    [
        ("edgetpu", conv_model((2, 8, 8, 4)), "three innermost dimensions"),
        ("edgetpu", conv_model(dilation_h_factor=2), "dilated unevenly"),
        ("ethos", conv_model(stride_h=4, stride_w=4), "stride 4"),
        ("hexagon", conv_model(dtype="int16"), "CONV_2D in int16"),
        ("hexagon", hybrid_conv(), "one kind of numbers"),
        ("hexagon", zoo.blockwise(), "a scale a block"),
        ("coreml", chain("EXP", dtype="float32"), "EXP is not in its list of ops"),
        ("coreml", chain("RELU", dtype="float32"), "under 2 ops"),
        ("nnapi", conv_model(dtype="int16"), "reads int16"),
        ("gpu", conv_model(dtype="int16"), "reads int16"),
    ],
)
def test_an_op_is_left_for_a_reason(name: str, model: Model, why: str) -> None:
    assert why in reason(name, model)


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("kind", LAYERS)
def test_integer_machines_take_weights_of_8_bits_only(kind: str, by_channel: bool) -> None:
    for name in ("edgetpu", "ethos"):
        assert "are int4; it takes int8" in reason(name, layer(kind, "int4", by_channel=by_channel))
        assert "weights" not in reason(name, layer(kind, "int8", by_channel=by_channel))


# Weights in fewer bits that Qualcomm's HTP library takes beside int8: kind, type, by channel.
HTP_TAKES = {
    *((kind, "int4", False) for kind in LAYERS),
    ("DEPTHWISE_CONV_2D", "int4", True),
    ("FULLY_CONNECTED", "int4", True),
    ("FULLY_CONNECTED", "int2", True),
}


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("stored", ["int8", "int4", "int2"])
@pytest.mark.parametrize("kind", LAYERS)
def test_the_hexagon_takes_few_layers_of_few_bits(kind: str, stored: str, by_channel: bool) -> None:
    taken = not reason("hexagon", layer(kind, stored, by_channel=by_channel))
    assert taken == (stored == "int8" or (kind, stored, by_channel) in HTP_TAKES)
    hybrid = not reason("hexagon", layer(kind, stored, by_channel=by_channel, flows="float32"))
    assert hybrid == ((kind, stored) == ("FULLY_CONNECTED", "int8"))


def test_a_free_batch_is_fine_and_another_free_dimension_is_not() -> None:
    for name in ("edgetpu", "ethos", "hexagon"):
        assert not reason(name, conv_model((-1, 8, 8, 4)))
        assert "free dimension" in reason(name, conv_model((1, -1, 8, 4)))


def test_a_depthwise_convolution_in_int16_goes_to_the_hexagon() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 4, 4), "int16", SCALE)
    y = conv_int(b, x, dtype="int16", kind="DEPTHWISE_CONV_2D", depth_multiplier=1)
    assert place("hexagon", b.model(y)).is_whole


@pytest.mark.parametrize(("factor", "taken"), [(1, True), (2, True), (3, False), (4, True)])
def test_ethos_doubles_sizes_only(factor: int, taken: bool) -> None:
    b = Builder()
    x = b.input("x", (1, 5, 5, 2), "int8", SCALE)
    size = [5 * factor, 5 * factor]
    model = b.model(b.op("RESIZE_NEAREST_NEIGHBOR", x, size, quant=SCALE))
    assert place("ethos", model).homes[0].taken is taken


def test_nnapi_takes_the_three_largest_partitions() -> None:
    kinds = ["RELU"] * 3 + ["GELU"] + ["RELU"] * 2 + ["GELU"] + ["RELU"] + ["GELU"] + ["RELU"] * 4
    placed = place("nnapi", chain(*kinds, dtype="float32"))
    assert placed.partitions == 3
    assert placed.taken == 3 + 2 + 4
    assert placed.homes[7].why == "it takes the 3 largest partitions only"


def test_openvino_reads_a_model_wholly_or_not_at_all() -> None:
    assert place("openvino", zoo.resizable()).is_whole
    placed = place("openvino", zoo.custom())
    assert not placed.taken
    assert all("CUSTOM Mystery" in home.why for home in placed.homes)


def test_half_precision_constants_count_as_constants() -> None:
    for name in ("coreml", "gpu", "hexagon", "nnapi"):
        assert place(name, zoo.half_weights()).is_whole, name
    b = Builder()
    x, w = b.input("x", (1, 4)), b.input("w", (2, 4))
    computed = b.model(b.op("FULLY_CONNECTED", x, w, None))
    assert "computed" in reason("coreml", computed)


@pytest.mark.parametrize("name", RULES)
def test_a_size_that_depends_on_values_is_for_those_who_compile_for_it(name: str) -> None:
    b = Builder()
    x, shape = b.input("x", (1, 4)), b.input("shape", (2,), "int32")
    model = b.model(b.op("RELU", b.op("RESHAPE", x, shape, shape=(2, 2))))
    assert ("depends on values" in reason(name, model, 1)) is (name not in ("hexagon", "openvino"))


def by_its_own_size() -> Model:
    """What is reshaped to as many rows as it has, of which the file states one."""
    b = Builder()
    x = b.input("x", (-1, 4), "int8", SCALE)
    rows = b.op("STRIDED_SLICE", b.op("SHAPE", x), [0], [1], [1], shrink_axis_mask=1)
    size = b.op("PACK", rows, np.int32(2), np.int32(2), values_count=3)
    return b.model(b.op("RESHAPE", x, size, shape=(1, 2, 2), quant=SCALE))


def test_sizes_are_final_for_who_compiles_them_in() -> None:
    model = by_its_own_size()
    ruled = place("ethos", model)
    assert [home.taken for home in ruled.homes] == [True] * 4
    assert ruled.homes[0].why == "its result is known when the model is compiled"
    assert not place("edgetpu", model).taken
    vela = BY_NAME["ethos-u55-128"]
    if vela.probe().usable and vela.place is not None:
        assert [home.taken for home in vela.place(model).homes] == [True] * 4


@pytest.mark.parametrize("kind", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize("name", RULES)
def test_a_layer_of_unknown_shape_is_left(name: str, kind: str) -> None:
    """The file does not tell the shape of what is computed as the model runs."""
    b = Builder()
    x = b.op("ABS", b.input("x", (1, 8, 8, 4)), shape=())
    out = b.op(kind, x, b.op("ABS", b.input("w", LAYERS[kind]), shape=()), shape=(1, 8, 8, 4))
    assert reason(name, b.model(out), 2)


def test_names_of_foreign_ops_cannot_break_the_line() -> None:
    model = zoo.custom()
    evil = replace(model.main.ops[0], custom="a\nb")
    graph = replace(model.main, ops=(evil, *model.main.ops[1:]))
    homes = place("gpu", replace(model, graphs=(graph,))).homes
    assert all("\n" not in home.why for home in homes)


SMALL = [path for path in FILES if path.stat().st_size < 1_000_000]


@pytest.mark.skipif(not FILES, reason="no real models beside the checkout")
@pytest.mark.parametrize("name", ["ethos-u55-128", "hexagon", "openvino"])
@pytest.mark.parametrize("files", [SMALL, pytest.param(FILES, marks=pytest.mark.full)])
def test_rules_predict_what_the_compiler_takes(name: str, files: list[Path]) -> None:
    delegate = BY_NAME[name]
    found = delegate.probe()
    if not found.usable:
        pytest.skip(f"{found.why}; {found.how}")
    assert delegate.place is not None and delegate.predict is not None
    ops, others = 0, list[str]()
    for path in files:
        model = load(path)
        real, ruled = delegate.place(model), delegate.predict(model)
        assert real.how == MEASURED
        assert [*laws(real, [op.kind for op in model.main.ops])] == []
        ops += len(real.homes)
        others += [
            f"{path.stem}: op {seen.place}, {seen.kind}: {seen.why}; the rules: {said.why}"
            for seen, said in zip(real.homes, ruled.homes, strict=True)
            if seen.taken != said.taken
        ]
    print(f"{name}: the rules are wrong about {len(others)} of {ops} ops")
    assert others == []


def test_the_rules_of_the_guide_work() -> None:
    guide = Path(__file__).parents[3] / "docs" / "add-a-target.md"
    (block,) = re.findall(r"```python\n(.+?)```", guide.read_text("utf-8"), re.DOTALL)
    names = {"Op": Op, "Rules": Rules, "phrase": phrase, "reads": reads, "takes": takes}
    exec(compile(dedent(block), str(guide), "exec"), names)
    placed = place_by_rules("new", names["NEW"], conv_model((1, 2, 2, 300)))
    assert [home.why for home in placed.homes] == ["CONV_2D of 300 channels; it takes up to 256"]
    assert place_by_rules("new", names["NEW"], conv_model()).is_whole
