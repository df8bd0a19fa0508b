"""The bench as a Python call: stop rules, results, comparisons. No test looks at speed."""

import os
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest

import litesmith
from litesmith.errors import BadInput, CannotRun
from litesmith.progress import Note, Status
from litesmith.tflite.file import digest, save
from litesmith.timing.latency import Rule, list_contenders, measure, ratio
from litesmith.timing.statistics import UNKNOWN
from tests import zoo

QUICK = Rule(runs=24, warmup_runs=1)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    save(zoo.convnet(), path)
    return path


def test_one_model(model: Path) -> None:
    done = litesmith.bench(model, runs=24)
    (result,) = done.results
    (row,) = done.to_rows()
    assert done.comparisons == ()
    assert len(result.samples_us) == row["runs"] == 24
    assert row["p50_us"] == result.times.us(0)
    ranks = [row[f"p{rank}_us"] for rank in (50, 90, 95, 99)]
    assert all(low <= high for low, high in pairwise(ranks))
    assert row["model"] == str(model)
    assert row["target"] == "cpu:1"
    assert row["digest"] == digest(model)
    assert min(row["create_us"], row["first_us"]) > 0
    assert row["cpu_us"] > 0 or os.name != "posix"  # a clock that moves every 16 ms may stand
    low, high = result.interval_us
    assert 0 < low <= row["p50_us"] <= high < inf


def test_every_model_on_every_target_against_the_first(model: Path) -> None:
    group = list_contenders([model, zoo.convnet()], "cpu:1, cpu:1:builtin")
    done = measure(group, QUICK, memory=False)
    shown = [(result.model, result.target) for result in done.results]
    assert shown == [
        (str(model), "cpu:1"),
        ("model 2", "cpu:1"),
        (str(model), "cpu:1:builtin"),
        ("model 2", "cpu:1:builtin"),
    ]
    rows = [comparison.row() for comparison in done.comparisons]
    assert [(r["b"], r["b_target"]) for r in rows] == shown[1:]
    assert {(r["a"], r["a_target"]) for r in rows} == {shown[0]}
    for row in rows:
        assert row["low"] <= row["ratio"] <= row["high"]
        assert row["blocks"] == 12


def test_a_ratio_turns_round() -> None:
    done = measure(list_contenders([zoo.convnet(), zoo.careless()]), QUICK, memory=False)
    a, b = done.results
    for rank in (50, 95):
        forth, back = ratio(a, b, rank), ratio(b, a, rank)
        assert forth.value * back.value == pytest.approx(1)
        assert ratio(a, a, rank).blocks == (1.0,) * 12
    assert ratio(a, b).blocks == done.comparisons[0].ratio.blocks


@pytest.mark.parametrize(("runs", "loads", "blocks"), [(1, 1, 1), (5, 5, 3), (30, 24, 12)])
def test_runs_are_spread_over_loads(runs: int, loads: int, blocks: int) -> None:
    rule = Rule(runs=runs, warmup_runs=0)
    done = measure(list_contenders([zoo.nothing(), zoo.nothing()]), rule, memory=False)
    assert [len(result.samples_us) for result in done.results] == [runs, runs]
    assert len(done.results[0].loads) == loads
    assert len(done.comparisons[0].ratio.blocks) == blocks
    if blocks < 6:
        assert done.comparisons[0].row()["high"] is None
        assert done.comparisons[0].ratio.verdict == UNKNOWN


def test_seconds_give_at_least_an_interval() -> None:
    done = measure(list_contenders([zoo.nothing()] * 2), Rule(seconds=0.01), memory=False)
    assert len(done.comparisons[0].ratio.blocks) >= 6
    assert done.comparisons[0].row()["high"] is not None


def test_the_width_stops_the_run_and_so_does_the_time() -> None:
    group = list_contenders(zoo.convnet())
    wide = measure(group, Rule(width=inf, least_seconds=0, most_seconds=600), memory=False)
    assert len(wide.results[0].loads) == 12
    short = measure(group, Rule(width=0, most_seconds=0.01), memory=False)
    assert len(short.results[0].loads) == 6


def test_progress_is_told() -> None:
    told: list[Status | Note] = []
    measure(list_contenders(zoo.convnet()), Rule(runs=3), told.append, memory=False)
    states = [one.what for one in told if isinstance(one, Status)]
    assert [text.split(",")[0] for text in states] == ["load 1", "load 2", "load 3"]


def test_the_evidence_holds_every_sample(model: Path) -> None:
    result = measure(list_contenders(model), QUICK).results[0]
    trial = result.trial()
    by_metric = {m.metric: m for m in trial.measurements}
    assert by_metric["latency"].samples == result.samples_us
    low, high = by_metric["latency_by_block"].interval
    assert result.interval_us[0] <= low <= high <= result.interval_us[1]
    assert len(by_metric["create"].samples) == len(result.loads)
    assert by_metric["peak_memory"].samples == (result.peak_bytes,)
    assert {m.model_digest for m in trial.measurements} == {digest(model)}
    assert "litesmith" in by_metric["latency"].host


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"runs": 3, "seconds": 1}, "not both"),
        ({"runs": 0}, "runs=0"),
        ({"seconds": 0}, "seconds=0"),
        ({"seconds": float("nan")}, "seconds=nan"),
        ({"warmup_runs": -1}, "warmup_runs=-1"),
    ],
)
def test_bad_rules(words: dict, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        litesmith.bench(zoo.convnet(), **words)


def test_bad_models_and_targets(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        litesmith.bench(tmp_path / "none.tflite")
    with pytest.raises(BadInput, match="is a folder"):
        litesmith.bench(tmp_path)
    with pytest.raises(BadInput, match="no target 'tpu'"):
        litesmith.bench(zoo.convnet(), on="cpu:1,tpu")
    with pytest.raises(BadInput, match="at least one model"):
        litesmith.bench([])
    with pytest.raises(CannotRun, match="Mystery"):
        litesmith.bench(zoo.MODELS["custom"]())


def test_a_model_that_falls_back_says_why() -> None:
    done = measure(list_contenders(zoo.MODELS["stateful"]()), Rule(runs=2), memory=False)
    assert "state" in done.results[0].note


def test_the_target_without_a_runtime() -> None:
    assert measure(list_contenders(zoo.convnet(), "numpy"), QUICK, memory=False).results[0].target


def test_models_come_as_bytes_and_values(model: Path) -> None:
    group = list_contenders([model, model.read_bytes(), litesmith.load(model)])
    assert len({contender.digest for contender in group}) == 1
