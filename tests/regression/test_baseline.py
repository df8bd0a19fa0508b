"""The file of a baseline: what is written is read, and what is not one is refused in one line."""

import base64
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from litesmith.errors import BadInput
from litesmith.evidence.codec import Malformed, decode, dump
from litesmith.regression.baseline import (
    Baseline,
    Delegation,
    PackedRows,
    Scores,
    Timing,
    baseline_to_update,
    pack_rows,
    read_baseline,
    unpack_rows,
    write_baseline,
)
from litesmith.regression.comparison import Size
from litesmith.regression.gate_rules import QUANTITIES, Allowed
from litesmith.run.core.target import Target
from tests.draws import draws

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 4))


def baseline() -> Baseline:
    rows = np.array([[1.0], [0], [1], [1]])
    scores = Scores("top1", "share", 1, 0.75, 0.3, 0.95, 4, "val", "d", "raw", "", rows)
    return Baseline(
        model="a model.tflite",
        digest="ab" * 32,
        target=Target.parse("cpu:2"),
        size=Size(1000, 700),
        peak_bytes=4096,
        delegations=(Delegation("cpu:2", "measured", 3, 1, 0.9, 2, {"CUMSUM": 1}),),
        workload="",
        timing=Timing({"wall": (1.0, 1.01, 0.99)}, 10.0, 9.9),
        scores=scores,
        allowed={name: Allowed.parse(name, row.usual) for name, row in QUANTITIES.items()},
        host={"cpu": "a cpu", "cores": 2},
    )


@given(SHAPES.flatmap(lambda shape: arrays(bool, shape)))
def test_right_and_wrong_take_a_bit_each(rows: np.ndarray) -> None:
    packed = pack_rows(rows.astype(np.float64))
    assert packed.form == "bits"
    assert (unpack_rows(packed) == rows).all()


@given(SHAPES.flatmap(lambda shape: arrays(np.float32, shape)))
def test_numbers_are_kept_as_they_are(rows: np.ndarray) -> None:
    packed = decode(PackedRows, json.loads(dump(pack_rows(rows.astype(np.float64)))))
    assert np.array_equal(unpack_rows(packed), rows.astype(np.float64), equal_nan=True)


def test_more_results_than_memory_are_refused_before_they_are_unpacked() -> None:
    """32 KB of a baseline took 8 GB and a minute."""
    count = 1 << 40
    squeezed = zstandard.ZstdCompressor().compressobj(size=count // 8).compress(bytes(1 << 20))
    text = base64.b64encode(squeezed).decode()
    with pytest.raises(Malformed, match="has more results than there is memory for"):
        unpack_rows(PackedRows("bits", (count, 1), text))


@pytest.mark.parametrize("change", [{}, {"scores": None, "unscored": "no data was given"}])
@pytest.mark.parametrize("more", [{}, {"timing": None, "untimed": "why", "peak_bytes": None}])
def test_what_is_written_is_read(tmp_path: Path, change: dict, more: dict) -> None:
    path, made = tmp_path / "b.json", replace(baseline(), **change, **more)
    write_baseline(path, made)
    found = read_baseline(path)
    plain = {name: value for name, value in vars(made).items() if name != "scores"}
    assert plain == {name: getattr(found, name) for name in plain}
    assert (found.scores is None) == (made.scores is None)
    if made.scores is not None and found.scores is not None:
        kept = {**vars(made.scores), "rows": made.scores.rows.tolist()}
        assert {**vars(found.scores), "rows": found.scores.rows.tolist()} == kept


def test_a_metric_that_is_infinite_is_kept(tmp_path: Path) -> None:
    scores = baseline().scores
    assert scores is not None
    rows = np.full((4, 1), np.inf)
    write_baseline(
        tmp_path / "b.json", replace(baseline(), scores=replace(scores, value=np.inf, rows=rows))
    )
    found = read_baseline(tmp_path / "b.json").scores
    assert found is not None and found.value == np.inf and np.isinf(found.rows).all()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no json", "is no JSON, so no baseline"),
        ("[1]", "is no baseline of `litesmith gate`"),
        ('{"schema": 1}', "is no baseline of `litesmith gate`"),
        ('{"kind": "litesmith gate baseline", "schema": 2}', "has the schema 2"),
        ('{"kind": "litesmith gate baseline", "schema": 1}', 'is damaged .has no "model"'),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=told):
        read_baseline(path)


ON_CPU_2 = {"target": "cpu:2", "how": "", "ops": 3, "left": 1, "macs": 0.9, "partitions": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"delegation": []},
        {"delegation": [{**ON_CPU_2, "kinds": {}, "why": "", "left": -1}]},
        {"delegation": [{**ON_CPU_2, "kinds": {}, "why": "", "left": 4}]},
        {"delegation": [{**ON_CPU_2, "kinds": {}, "why": "", "macs": 1.5}]},
        {"delegation": [{**ON_CPU_2, "kinds": {"ADD": "x"}, "why": ""}]},
        {"delegation": [{**ON_CPU_2, "kinds": None, "why": ""}]},
        {"target": "cpu:1"},
        {"host": 3},
        {"bytes": 10**400},
        {"peak_bytes": -5},
        {"latency": {"us": 0, "reference_us": 1, "block_ratios": {"wall": [1.0]}}},
        {"latency": {"us": 1, "reference_us": 1, "block_ratios": {"wall": [1e999]}}},
    ],
)
def test_numbers_that_cannot_be_are_damage_and_an_update_begins_anew(
    tmp_path: Path, change: dict[str, object]
) -> None:
    path = tmp_path / "b.json"
    write_baseline(path, baseline())
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **change}))
    with pytest.raises(BadInput, match=r"is damaged \(.*\); write it anew with --update"):
        read_baseline(path)
    assert baseline_to_update(path) is None


def test_an_update_goes_on_from_a_baseline_and_writes_over_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    assert baseline_to_update(path) is None
    write_baseline(path, baseline())
    kept = baseline_to_update(path)
    assert kept is not None and kept.target == baseline().target
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "schema": 2}))
    assert baseline_to_update(path) is None
    for other in ("<<<<<<< ours", "", "{}"):
        path.write_text(other)
        with pytest.raises(BadInput, match="is no baseline of `litesmith gate`; name another"):
            baseline_to_update(path)


def test_any_name_of_a_file_is_kept(tmp_path: Path) -> None:
    path, made = tmp_path / "b.json", replace(baseline(), model="bytes\udcff, µ.tflite")
    write_baseline(path, made)
    assert read_baseline(path).model == made.model


def test_a_missing_file_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; `litesmith gate --update` writes one"):
        read_baseline(tmp_path / "none.json")
    with pytest.raises(BadInput, match="is a folder"):
        read_baseline(tmp_path)


WRONG = st.one_of(
    st.none(), st.integers(-5, 5), st.text(max_size=4), st.just([]), st.just({}), st.floats(-2, 2)
)


@draws(200, HealthCheck.function_scoped_fixture)
@given(st.data(), WRONG)
def test_a_damaged_file_is_one_line_or_still_a_baseline(
    tmp_path: Path, data: st.DataObject, wrong: object
) -> None:
    path = tmp_path / "b.json"
    write_baseline(path, baseline())
    shown = json.loads(path.read_text("utf-8"))
    place, names = shown, data.draw(st.sampled_from(["", "latency", "accuracy", "allow"]))
    place = shown[names] if names else shown
    key = data.draw(st.sampled_from(sorted(place)))
    if data.draw(st.booleans()):
        del place[key]
    else:
        place[key] = wrong
    path.write_text(json.dumps(shown))
    try:
        assert isinstance(read_baseline(path), Baseline)
    except BadInput as error:
        assert str(error).startswith(str(path))
