"""Every network of the catalogue: its published figures, and that it runs and quantizes."""

from dataclasses import replace

import numpy as np
import pytest

import litesmith
from litesmith.anatomy.footprint import footprint
from litesmith.data.preparation import NORMS
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.types import Model
from litesmith.networks import ROWS, Published, Row, Spec, build, parse
from litesmith.tflite.write import to_bytes
from litesmith.units import typed_number
from tests.runtime import run

PRINTED = [(row, size) for row in ROWS for size in row.published]
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def small(row: Row, extra: int = 0, width: float = 0.5) -> Spec:
    """A network that runs in milliseconds, at a resolution of at least 32."""
    pixels = 0 if row.shape is not None else max(row.stride, 32) + extra
    return Spec(row.name, width, pixels, classes=7)


def counted(row: Row, size: Published) -> tuple[int, int]:
    """Parameters, as its source counts them, and MACs."""
    model = build(Spec(row.name, size.width, size.resolution), seed=None)
    facts = footprint(model)
    biases = sum(t.elements for t in model.main.tensors if t.name.endswith("/bias"))
    leaves_biases_out = row.name == "mobilenet_v2"
    return facts.parameters - (biases if leaves_biases_out else 0), facts.macs


def is_near(count: int, printed: str) -> bool:
    """Within one of the last digit that was printed: authors round, or cut off."""
    number, unit = printed.split()
    scale = {"K": 1e3, "M": 1e6, "G": 1e9}[unit]
    decimals = len(number.partition(".")[2])
    return abs(count - float(number) * scale) < scale / 10**decimals


@pytest.mark.parametrize(("row", "size"), PRINTED, ids=lambda x: getattr(x, "name", "") or x[:2])
def test_counts_are_the_published_ones(row: Row, size: Published) -> None:
    parameters, macs = counted(row, size)
    assert not size.parameters or is_near(parameters, size.parameters), parameters
    assert not size.macs or is_near(macs, size.macs) != bool(size.differs), macs


def test_what_efficientnet_lite_says_of_its_macs() -> None:
    for row in ROWS:
        if row.name.startswith("efficientnet_lite"):
            size = row.published[0]
            graph = build(row.name, seed=None).main
            values = sum(op.outputs[0].elements for op in graph.ops if "CONV_2D" in op.kind)
            printed = typed_number(size.macs, {"m": 1e6, "g": 1e9})
            assert printed is not None
            assert 2.9 < (printed - counted(row, size)[1]) / values < 3.3


@every_row
def test_a_row_is_complete(row: Row) -> None:
    usual = row.published[0]
    assert (usual.width, usual.resolution) == (row.width, row.resolution)
    assert row.title and row.data and row.source
    assert all(0 < float(size.accuracy.removesuffix(" %")) < 100 for size in row.published)
    assert row.norm in NORMS or " " in row.norm
    assert parse(row.name).row is row


@every_row
def test_the_interface(row: Row) -> None:
    model = build(row.name, classes=3, seed=None)
    graph = model.main
    side = row.resolution
    assert [t.shape for t in graph.inputs] == [(1, *(row.shape or (side, side, 3)))]
    assert [t.shape for t in graph.outputs] == [(1, 3)]
    assert [s.key for s in model.signatures] == ["serving_default"]
    names = [t.name for t in graph.tensors if not t.is_const or "/" in t.name]
    assert len(names) == len(set(names))
    logits = next(op for op in graph.ops if op.outputs[0].name == "logits")
    assert logits.inputs[0] is not None and logits.inputs[0].name == "embedding"
    assert graph.outputs[0].name == {"tf": "scores", "torch": "logits"}[row.style]


@every_row
def test_bytes_depend_on_the_seed_alone(row: Row) -> None:
    spec = small(row, width=0.25)
    first = to_bytes(build(spec))
    assert to_bytes(build(str(spec))) == first != to_bytes(build(spec, seed=1))


@every_row
@pytest.mark.parametrize("style", ["tf", "torch"])
@pytest.mark.parametrize("extra", [0, 5])
def test_runs_at_any_resolution(row: Row, style: str, extra: int) -> None:
    model = build(replace(small(row, extra), style=style))
    with litesmith.Session(model) as session:
        for array in session.inputs.values():
            array[...] = np.random.default_rng(extra).uniform(-1, 1, array.shape)
        session.run()
        (result,) = session.outputs.values()
        assert result.shape == (1, 7)
        assert np.isfinite(result).all()
        assert result.std() > 0


def watched(model: Model) -> Model:
    """The model with the output of every layer and sum as an output."""
    kinds = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD")
    made = [op.outputs[0] for op in model.main.ops if op.kind in kinds]
    extra = [t for t in made if t not in model.main.outputs]
    graph = regraph(model.main, outputs=(*model.main.outputs, *extra))
    return replace(with_graphs(model, [graph]), signatures=())


@every_row
def test_random_activations_neither_fade_nor_explode(row: Row) -> None:
    for seed in range(2):
        for values in run(watched(build(small(row), seed=seed)), seed=1)[1:]:
            assert 0.05 < np.sqrt(np.square(values).mean()) < 20


@every_row
def test_what_goes_into_random_weights_reaches_the_logits(row: Row) -> None:
    model = build(replace(small(row), style="torch"))
    image = np.random.default_rng(1).normal(0, 1, model.main.inputs[0].shape)
    logits: list[np.ndarray] = []
    with litesmith.Session(model) as session:
        for sign in (1, -1):
            next(iter(session.inputs.values()))[...] = sign * image
            session.run()
            logits.append(session.outputs["logits"].copy())
    assert (logits[0] - logits[1]).std() > 0.015 * logits[0].std()


@every_row
def test_int8_on_random_data(row: Row) -> None:
    model = build(small(row, extra=8, width=0.25))
    shape = (8, *model.main.inputs[0].shape[1:])
    data = np.random.default_rng(0).normal(0, 1, shape).astype(np.float32)
    integer = litesmith.apply(model, "quantize(to=int8)", data).model
    assert {op.kind for op in integer.main.ops if op.outputs[0].dtype == "float32"} <= {
        "DEQUANTIZE"
    }
    before, after = (
        np.concatenate([run(m, seed=seed)[0] for seed in range(4)]) for m in (model, integer)
    )
    noise = np.square(after - before).sum()
    assert np.square(before).sum() > 20 * noise
    assert np.square(before - before.mean(0)).sum() > 0
