"""Claims: each is made only where the written file bears it out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith import Builder, Model
from litesmith.calibration.claims import Claims, check_claims
from litesmith.calibration.context import RandomSamples
from litesmith.data.sources import open_data
from litesmith.ir.edit import regraph, with_graphs
from tests.zoo import branches, convnet, custom, noise


def images(count: int = 12) -> np.ndarray:
    return noise(count, 8, 8, 3, seed=3, scale=2)


def checked(recipe: str, place: Path, model: Model | None = None) -> Claims:
    model = convnet() if model is None else model
    data = open_data(images(), model)
    change = litesmith.apply(model, recipe, data)
    litesmith.save(change.model, place / "out.tflite")
    return check_claims(place / "out.tflite", model, data, change.skipped)


@pytest.mark.parametrize("io", ["float", "int8", "uint8"])
def test_a_fully_integer_file(tmp_path: Path, io: str) -> None:
    claims = checked(f"quantize(io={io})", tmp_path)
    assert claims.is_integer and not claims.float_ops and not claims.conversions
    assert claims.worst is not None and claims.worst.snr_db is not None
    assert 15 < claims.worst.snr_db < 80
    assert not claims.is_useless and claims.tried == 8


def test_a_float_op_is_named_with_its_reason(tmp_path: Path) -> None:
    b = Builder()
    x = b.op("CONV_2D", b.input("x", (1, 8, 8, 3)), noise(4, 3, 3, 3), noise(4))
    x = b.op("CONV_2D", b.op("COS", x), noise(4, 3, 3, 4), noise(4))
    claims = checked("quantize", tmp_path, b.model(x))
    assert not claims.is_integer
    (group,) = claims.float_ops
    assert (group.kind, group.ops) == ("COS", 1) and "no int8 kernel" in group.why
    assert claims.conversions == 2
    assert claims.facts()["fully_integer"] is False


def test_an_op_that_was_kept_makes_it_partly_float(tmp_path: Path) -> None:
    claims = checked("quantize(keep=[FULLY_CONNECTED])", tmp_path)
    assert [group.kind for group in claims.float_ops] == ["FULLY_CONNECTED"]
    assert claims.float_ops[0].why == ""


def test_the_original_is_not_integer_and_has_not_drifted(tmp_path: Path) -> None:
    claims = checked("", tmp_path)
    assert not claims.is_integer and claims.in_xnnpack
    assert claims.worst is not None and claims.worst.snr_db == 200
    assert claims.facts()["in_xnnpack"] is True


def test_what_xnnpack_leaves_is_named(tmp_path: Path) -> None:
    claims = checked("quantize(to=int16x8)", tmp_path)
    assert claims.is_integer and not claims.in_xnnpack
    outside = {group.kind: group.ops for group in claims.outside or ()}
    assert outside["CONV_2D"] == outside["DEPTHWISE_CONV_2D"] == 1


def test_ops_of_other_graphs_count(tmp_path: Path) -> None:
    model = branches()
    litesmith.save(model, tmp_path / "out.tflite")
    claims = check_claims(tmp_path / "out.tflite", model, None)
    assert {"ADD", "MUL", "IF"} <= {group.kind for group in claims.float_ops}


def test_a_broken_result_is_found(tmp_path: Path) -> None:
    model = convnet()
    for factor, lost in ((-1.0, False), (np.nan, True)):
        ops = [
            replace(op, inputs=(op.inputs[0], _scaled(op.inputs[1], factor), *op.inputs[2:]))
            if op.kind == "FULLY_CONNECTED"
            else op
            for op in model.main.ops
        ]
        broken = with_graphs(model, [regraph(model.main, ops=ops)])
        litesmith.save(broken, tmp_path / "out.tflite")
        claims = check_claims(tmp_path / "out.tflite", model, open_data(images(), model))
        assert claims.worst is not None and claims.worst.is_broken
        assert claims.is_useless == claims.worst.is_lost == lost


def _scaled(tensor: litesmith.Tensor | None, factor: float) -> litesmith.Tensor:
    assert tensor is not None
    return replace(tensor, data=tensor.values() * np.float32(factor))


def test_zeros_are_no_reason_for_alarm(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (1, 8, 8, 3))
    y = b.op("CONV_2D", x, noise(4, 1, 1, 3), noise(4))
    dead = b.op("CONV_2D", x, noise(4, 1, 1, 3), np.full(4, -99, np.float32))
    model = b.model(y, b.op("RELU", dead, name="dead"))
    claims = checked("quantize", tmp_path, model)
    by_name = {drift.output: drift for drift in claims.drift}
    assert by_name["dead"].snr_db is None and not by_name["dead"].is_broken
    assert claims.worst is not None and claims.worst.output != "dead"


def test_a_file_that_does_not_run_is_useless(tmp_path: Path) -> None:
    litesmith.save(custom(), tmp_path / "out.tflite")
    claims = check_claims(tmp_path / "out.tflite", custom(), None)
    assert claims.is_useless and "Mystery" in claims.failure
    assert claims.outside is None and not claims.in_xnnpack


def test_data_that_does_not_fit_is_a_failure_with_a_report(tmp_path: Path) -> None:
    model = convnet()
    litesmith.save(model, tmp_path / "out.tflite")
    claims = check_claims(tmp_path / "out.tflite", model, RandomSamples(branches(), 3))
    assert claims.is_useless and claims.failure and claims.facts()["runs"] is False
