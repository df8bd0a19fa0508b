"""Plans: never larger than stock's own, never below what lives, proven, and right when poisoned."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import litesmith
from litesmith.errors import BadModel
from litesmith.ir.build import Builder
from litesmith.ir.edit import OVERLAP_NOTE
from litesmith.ir.types import Model, Op, Quant, Tensor
from litesmith.micro.arena import DEVICE, HOST, add_up_arena, list_requests
from litesmith.micro.buffers import Buffer, list_buffers, live_bytes
from litesmith.micro.greedy_plan import MemoryPlan, plan_greedily
from litesmith.micro.memory_report import draw_plan, report_memory
from litesmith.micro.offline_plan import read_offsets, write_offsets
from litesmith.micro.op_order import peak_bytes, reorder_ops
from litesmith.micro.overlap import shared_distance
from litesmith.micro.plan_file import check_file, follow_plan, plan_model
from litesmith.micro.plan_proof import run_poisoned
from litesmith.micro.structures import layout
from litesmith.micro.tight_plan import find_clashes, list_shared, plan_tightly
from litesmith.run.accelerators.tflite_micro import read_arena
from litesmith.run.session import Session
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests import zoo

needs_wheel = pytest.mark.skipif(
    find_spec("tflite_micro") is None, reason="tflite-micro is not installed"
)

spans = st.tuples(st.integers(0, 12), st.integers(0, 5), st.integers(1, 400))
buffer_lists = st.lists(spans, min_size=1, max_size=14).map(
    lambda rows: [Buffer(16 * size, first, first + more) for first, more, size in rows]
)


@given(buffer_lists)
def test_plans_are_proven_between_the_bound_and_stock_s_own(buffers: list[Buffer]) -> None:
    stock, ours = plan_greedily(buffers), plan_tightly(buffers)
    assert find_clashes(stock) == find_clashes(ours) == []
    assert max(live_bytes(buffers).values()) <= ours.bytes <= stock.bytes


@given(buffer_lists, st.data())
def test_a_plan_that_lets_values_meet_is_found_out(
    buffers: list[Buffer], data: st.DataObject
) -> None:
    plan = plan_tightly(buffers)
    moved = data.draw(st.integers(0, len(buffers) - 1))
    offsets = list(plan.offsets)
    offsets[moved] = 16 * data.draw(st.integers(0, 60))
    changed = MemoryPlan(plan.buffers, tuple(offsets))
    at, one = offsets[moved], plan.buffers[moved]
    meets = any(
        n != moved and one.meets(other) and at < there + other.bytes and there < at + one.bytes
        for n, (other, there) in enumerate(zip(plan.buffers, offsets, strict=True))
    )
    assert bool(find_clashes(changed)) is meets


@st.composite
def int8_graphs(draw: st.DrawFn) -> Model:
    """A network of int8 convolutions, pools, sums and joins, with branches that live long."""
    b = Builder()
    quant = Quant.of(0.05, 3)
    depth = draw(st.integers(1, 4))
    live = [b.input("x", (1, 6, 6, depth), "int8", quant)]
    for number in range(draw(st.integers(1, 7))):
        x = draw(st.sampled_from(live))
        kind = draw(st.sampled_from(["conv", "depthwise", "pool", "add", "join", "relu"]))
        seeded = np.random.default_rng(number)
        if kind == "conv":
            made = draw(st.integers(1, 6))
            w = seeded.integers(-9, 9, (made, 3, 3, x.shape[3])).astype(np.int8)
            x = b.op("CONV_2D", x, *weights(b, w, made), quant=quant, version=3)
        elif kind == "depthwise":
            w = seeded.integers(-9, 9, (1, 3, 3, x.shape[3])).astype(np.int8)
            bias = weights(b, w, x.shape[3], axis=3)
            x = b.op("DEPTHWISE_CONV_2D", x, *bias, quant=quant, version=3, depth_multiplier=1)
        elif kind == "pool":
            size = {"filter_height": 3, "filter_width": 3, "padding": "SAME"}
            x = b.op("MAX_POOL_2D", x, quant=quant, version=2, **size)
        elif kind == "relu":
            x = b.op("RELU", x, quant=quant, version=2)
        else:
            others = [t for t in live if t.shape[:3] == x.shape[:3]]
            other = draw(st.sampled_from(others))
            if kind == "add" and other.shape == x.shape:
                x = b.op("ADD", x, other, quant=quant, version=2)
            else:
                x = b.op("CONCATENATION", x, other, axis=3, quant=quant, version=2)
        live.append(x)
    return b.model(live[-1])


def weights(b: Builder, w: np.ndarray, made: int, axis: int = 0) -> tuple[Tensor, Tensor]:
    scales = np.full(made, 0.02, np.float32)
    bias = b.const(np.arange(made, dtype=np.int32), quant=Quant.of(scales * np.float32(0.05)))
    return b.const(w, quant=Quant.of(scales, 0, axis)), bias


def run_numpy(op: Op, values: list[np.ndarray | None]) -> list[np.ndarray]:
    """One op alone, by the kernels of the target numpy."""
    return run_alone(op, values, "numpy")


def run_alone(op: Op, values: list[np.ndarray | None], target: str) -> list[np.ndarray]:
    fed = [t for t in dict.fromkeys(op.inputs) if t is not None and not t.is_const]
    by_tensor = dict(zip(op.inputs, values, strict=True))
    names = {t: replace(t, name=f"in{n}") for n, t in enumerate(fed)}
    builder = Builder()
    builder.inputs = list(names.values())
    inputs = tuple(names.get(t, t) if t is not None else None for t in op.inputs)
    builder.ops = [replace(op, inputs=inputs)]
    with Session(builder.model(*op.outputs), target) as session:
        return list(session(*(by_tensor[t] for t in fed)).values())


@settings(max_examples=12, deadline=None)
@given(int8_graphs(), st.integers(0, 99))
def test_a_poisoned_arena_gives_the_same_answer(model: Model, seed: int) -> None:
    planned = plan_model(model)
    buffers = list_buffers(planned.model, list_requests(planned.model))
    offsets = read_offsets(planned.model) or {}
    fixed = {b: offsets[b.tensor] for b in buffers if b.tensor in offsets}
    plan = plan_greedily(buffers, fixed)
    random = np.random.default_rng(seed)
    x = random.integers(-128, 128, model.main.inputs[0].shape).astype(np.int8)
    with Session(model, "numpy") as session:
        wanted = list(session(x).values())
    found = run_poisoned(planned.model, plan, [x], run_numpy, seed=seed)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_poison_finds_a_plan_that_is_wrong() -> None:
    model = zoo.residual_int8()
    buffers = list_buffers(model)
    wrong = MemoryPlan(buffers, tuple(0 for _ in buffers))
    x = np.arange(64).reshape(1, 4, 4, 4).astype(np.int8)
    with Session(model, "numpy") as session:
        (wanted,) = session(x).values()
    (found,) = run_poisoned(model, wrong, [x], run_numpy)
    assert not np.array_equal(found, wanted)


@settings(max_examples=25, deadline=None)
@given(int8_graphs())
def test_orders_and_plans_are_never_worse(model: Model) -> None:
    ordered = reorder_ops(model)
    assert peak_bytes(ordered) <= peak_bytes(model)
    assert sorted(map(id, ordered.main.ops)) == sorted(map(id, model.main.ops))
    for overlap in ("none", "reference"):
        planned = plan_model(model, overlap)
        assert planned.bytes <= planned.own
        check_file(planned.model)
        assert add_up_arena(planned.model).planned_bytes == planned.bytes
        if planned.overlap == "none":
            assert planned.bound <= planned.bytes
            assert OVERLAP_NOTE not in dict(planned.model.metadata)


@needs_wheel
@pytest.mark.parametrize("overlap", ["none", "reference"])
def test_the_interpreter_obeys_the_plan_and_gives_the_same_bits(overlap: str) -> None:
    b = Builder()
    quant = Quant.of(0.05, 3)
    x = b.input("x", (1, 24, 24, 4), "int8", quant)
    random = np.random.default_rng(3)
    y = x
    for _ in range(3):
        w = random.integers(-9, 9, (1, 3, 3, 4)).astype(np.int8)
        y = b.op("DEPTHWISE_CONV_2D", y, *weights(b, w, 4, 3), quant=quant, version=3)
        w = random.integers(-9, 9, (4, 1, 1, 4)).astype(np.int8)
        y = b.op("CONV_2D", y, *weights(b, w, 4), quant=quant, version=3)
    model = b.model(y)
    planned = plan_model(model, overlap)
    content = to_bytes(planned.model)
    assert read_arena(load(content), content).head == planned.bytes
    assert (planned.bytes < 0.7 * planned.own) is (overlap == "reference")
    given_pixels = random.integers(-128, 128, x.shape).astype(np.int8)
    answers = []
    for one in (model, planned.model):
        with Session(one, "micro") as session:
            answers.append(next(iter(session(given_pixels).values())))
    np.testing.assert_array_equal(*answers)


def brute_distance(op: Op) -> int:
    """By writing and reading byte by byte in the kernel's order."""
    source, made = op.inputs[0], op.outputs[0]
    assert source is not None
    window = int(op.option("filter_height"))  # type: ignore[arg-type]
    step = int(op.option("stride_h"))  # type: ignore[arg-type]
    size, out, depth = source.shape[1], made.shape[1], source.shape[3]
    before = max(0, (out - 1) * step + window - size) // 2
    events: list[tuple[int, set[int]]] = []
    for y in range(out):
        for x in range(out):
            rows = [
                r for r in range(y * step - before, y * step - before + window) if 0 <= r < size
            ]
            cols = [
                c for c in range(x * step - before, x * step - before + window) if 0 <= c < size
            ]
            read = {(r * size + c) * depth + d for r in rows for c in cols for d in range(depth)}
            events += [((y * out + x) * depth + d, read) for d in range(depth)]
    return max(
        (at + 1 - min(set().union(*(reads for _, reads in events[n + 1 :])), default=at + 1))
        for n, (at, _) in enumerate(events)
    )


@pytest.mark.parametrize(("size", "window", "stride"), [(5, 3, 1), (6, 3, 2), (4, 1, 1), (5, 2, 2)])
def test_the_distance_is_what_the_kernel_s_order_needs(size: int, window: int, stride: int) -> None:
    b = Builder()
    x = b.input("x", (1, size, size, 2), "int8", Quant.of(0.1))
    options = {"filter_height": window, "filter_width": window, "padding": "SAME"}
    b.op("MAX_POOL_2D", x, quant=Quant.of(0.1), stride_h=stride, stride_w=stride, **options)
    found = shared_distance(b.last, 0)
    assert found is not None
    assert found >= max(0, brute_distance(b.last))
    assert found <= max(0, brute_distance(b.last)) + 2 + 16  # a pixel's channels and alignment


def test_a_plan_in_a_file_that_clashes_is_refused() -> None:
    model = zoo.residual_int8()
    plan = dict.fromkeys((b.tensor for b in list_buffers(model) if b.tensor is not None), 0)
    with pytest.raises(BadModel, match=r"^the plan lets '.*' and '.*' share memory"):
        check_file(write_offsets(model, plan))
    short = replace(model, metadata=(("OfflineMemoryAllocation", np.zeros(8, np.uint8)),))
    with pytest.raises(BadModel, match="it is not a plan of the"):
        check_file(short)


@needs_wheel
@pytest.mark.parametrize(
    "make", [zoo.convnet, zoo.residual_int8, zoo.branches, zoo.variables, zoo.stateful]
)
def test_our_account_adds_up_to_the_interpreter_s(make: object) -> None:
    model = make()  # type: ignore[operator]
    try:
        told = read_arena(model, to_bytes(model))
    except Exception as refused:
        pytest.skip(str(refused))
    ours = add_up_arena(model, HOST)
    assert ours.planned_bytes == told.head
    assert abs(ours.total - told.total) <= 0.01 * told.total
    assert sum(ours.by_kind().values()) == ours.lasting_bytes
    assert add_up_arena(model, DEVICE).total < ours.total


def test_a_step_that_changes_the_graph_drops_the_plan() -> None:
    model = zoo.careless()
    planned = write_offsets(model, {model.main.inputs[0]: 0})
    assert read_offsets(planned) == {planned.main.inputs[0]: 0}
    tidied = litesmith.apply(planned, "cleanup").model
    assert tidied is not None and read_offsets(tidied) is None


def test_structures_are_laid_out_as_by_a_compiler() -> None:
    assert layout("bi", 4) == (8, 4)
    assert layout("[bp]h", 8) == (24, 8)
    assert layout("ppi", 4) == (12, 4)


@given(buffer_lists)
def test_following_a_plan_keeps_every_offset(buffers: list[Buffer]) -> None:
    tensors = [replace(b, tensor=Tensor(str(n), (1,))) for n, b in enumerate(buffers)]
    plan = plan_tightly(tensors)
    assert follow_plan(plan).offsets == plan.offsets


def test_shared_memory_is_for_inputs_that_die() -> None:
    model = zoo.residual_int8()  # x is read again by the last op
    buffers = list_buffers(model)
    shared = list_shared(model, buffers)
    x = model.main.inputs[0]
    first = model.main.ops[0].outputs[0]
    assert not any(made.tensor is first and source.tensor is x for made, source in shared)


def test_an_output_of_the_model_is_never_written_over() -> None:
    b = Builder()
    x = b.op("RELU", b.input("x", (1, 8, 8, 2)))
    y = b.op("LOGISTIC", x)
    model = b.model(x, y)
    shared = list_shared(model, list_buffers(model))
    assert [made.tensor for made, _ in shared] == [x]  # over the input, which nobody reads again


def test_the_drawn_plan_and_the_sentence_name_the_same_op() -> None:
    for model in (zoo.convnet(), zoo.branches()):
        told = report_memory("m", model, 1000)
        (marked,) = [line for line in draw_plan(told) if "◀" in line]
        number, label = marked.split()[0], marked.split()[-1]
        assert told.peak_place == f"op {number}, {label}"
        assert model.main.ops[int(number)].label == label
