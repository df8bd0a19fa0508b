"""A workload is a model's work without what it knows: the same ops on the same sizes."""

import base64

import numpy as np
import pytest
import zstandard

from litesmith import Builder, Model, Session
from litesmith.anatomy.footprint import footprint
from litesmith.errors import BadInput
from litesmith.regression.gate_measures import pack_workload, unpack_workload
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests import zoo


def wide(size: int = 512) -> Model:
    """Two layers that share their weights."""
    b = Builder()
    weight = b.const(np.random.default_rng(0).normal(size=(size, size)).astype(np.float32))
    x = b.op("FULLY_CONNECTED", b.input("x", (1, size)), weight, None)
    return b.model(b.op("FULLY_CONNECTED", x, weight, None))


@pytest.mark.parametrize("make", [wide, zoo.careless], ids=["wide", "careless"])
def test_it_does_the_same_work(make) -> None:
    model = make()
    workload = unpack_workload(pack_workload(model))
    assert footprint(load(workload)) == footprint(load(to_bytes(model)))
    with Session(workload) as session:
        session.run()


def test_it_takes_little_room_and_holds_no_weights() -> None:
    model = wide()
    packed = pack_workload(model)
    assert len(packed) < len(to_bytes(model)) / 500
    (mine, *others) = (op.inputs[1] for op in load(unpack_workload(packed)).main.ops)
    assert mine is not None and mine.data is not None
    assert all(other is mine for other in others)
    weight = model.main.ops[0].inputs[1]
    assert weight is not None and weight.data is not None
    assert np.abs(np.corrcoef(mine.data.ravel(), weight.data.ravel())[0, 1]) < 0.05
    assert mine.data.min() >= weight.data.min() and mine.data.max() <= weight.data.max()


def test_the_same_model_has_the_same_workload() -> None:
    assert pack_workload(wide(64)) == pack_workload(wide(64))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64!",
        base64.b64encode(b"no zstd").decode(),
        base64.b64encode(zstandard.compress(b"no model")).decode(),
    ],
)
def test_what_is_damaged_is_said_to_be(text: str) -> None:
    with pytest.raises(BadInput, match="the reference workload is damaged"):
        unpack_workload(text)


def test_a_workload_that_unpacks_to_more_than_the_memory_is_not_unpacked() -> None:
    """A frame of zstd states its size in its head, whatever follows."""
    whole = (1 << 60).to_bytes(8, "little")
    text = base64.b64encode(bytes.fromhex("28b52ffde0") + whole + b"\1\0\0").decode()
    with pytest.raises(BadInput, match=r"unpacks to .* more than there is memory for"):
        unpack_workload(text)
