"""One model on every target: each has an answer and a reason."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from litesmith.diagnosis.all_targets import TargetResult, _Look, bench_everywhere
from litesmith.evidence.bench_record import TargetTrial
from litesmith.evidence.log import Log
from litesmith.run.accelerators.targets import BY_NAME, DELEGATES
from litesmith.run.core.placement import Home, Placement
from litesmith.tflite.file import save
from litesmith.timing.latency import Rule
from litesmith.timing.statistics import Ratio
from tests import zoo

HOWS = {"measured", "estimated", "predicted", "refused"}


@cache
def reached() -> dict[str, TargetResult]:
    """A float model; `tests/front/test_bench.py` has an integer one. Each target is timed in two
    runs: an accelerator may take a second to open."""
    with TemporaryDirectory() as folder:
        save(zoo.convnet(), Path(folder, "model.tflite"))
        found = bench_everywhere(Path(folder, "model.tflite"), Rule(runs=2, warmup_runs=0))
    assert found.bench.results[0].target == "cpu:1"
    return {row.target: row for row in found.rows}


def test_every_target_has_an_answer_and_a_reason() -> None:
    found = reached()
    kinds = {target.partition(":")[0] for target in found} - {"custom"}
    assert kinds == {delegate.name for delegate in DELEGATES} - {"numpy"}
    assert not found["cpu:1:litesmith"].samples_us  # it leaves a dense model to the CPU
    assert ("gpu:full" in found) == BY_NAME["gpu"].probe().usable
    for row in found.values():
        assert row.how in HOWS and row.verdict and "\n" not in row.verdict
        assert row.placement is None or len(row.placement.homes) == len(zoo.convnet().main.ops)
        assert (row.latency_us is None) == (row.how in ("predicted", "refused")) or row.placement


def test_what_is_timed_is_compared_with_the_cpu() -> None:
    found = reached()
    assert found["cpu:1"].ratio is None and found["cpu:1"].latency_us
    for row in found.values():
        if row.samples_us and row.target != "cpu:1":
            assert row.is_alone == (row.ratio is None)
            assert row.difference is not None and row.difference < 1e-2


def test_a_float_model_is_told_how_to_fit() -> None:
    found = reached()
    way_out = "needs int8 first: litesmith doctor MODEL --for"
    for target in ("edgetpu", "ethos-u55-128", "ethos-u65-512"):
        assert found[target].verdict == f"{way_out} {target}"


def placement(taken: int, **facts: float | str) -> Placement:
    homes = tuple(Home(n, "ADD", n < taken, "a reason") for n in range(4))
    return Placement("npu", "predicted", homes, min(taken, 2), facts=facts)


def timed(ratio: float | None, taken: int = 4, **more: Any) -> TargetResult:
    blocks = None if ratio is None else Ratio((ratio,) * 8)
    samples = {"samples_us": (1e4,) * 3, "here_us": 100.0, **more}
    return TargetResult("npu", "measured", "", placement(taken), 1e4, blocks, 1e-6, **samples)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (timed(0.5), "worth it: 2.00 × faster [2.00, 2.00] than the CPU"),
        (timed(2.0, here_us=9e3), "not worth it: 2.00 × slower [2.00, 2.00] than the CPU"),
        (timed(1.0, here_us=9e3), "not worth it: no faster than the CPU"),
        (
            timed(2.0, taken=3),
            "not worth it: 2.00 × slower [2.00, 2.00] than the CPU; "
            "it takes only 3 of 4 ops in 2 parts: a reason",
        ),
        (
            timed(1.0),
            "not worth it: no faster than the CPU; the model is so small that the CPU needs 100 µs",
        ),
        (
            timed(None, device="llvmpipe"),
            "not worth it: about 100 × slower than the CPU; here it is llvmpipe",
        ),
        (
            TargetResult("npu", "measured", "", None, 9.0, Ratio((0.5,)), 0.0, (9.0,), 18.0),
            "not known: too few runs to tell it from the CPU",
        ),
        (TargetResult("npu", "predicted", "", placement(4)), "takes the whole model"),
        (
            TargetResult("npu", "predicted", "", placement(3)),
            "takes 3 of 4 ops in 2 parts: a reason",
        ),
        (TargetResult("npu", "predicted", "", placement(0)), "not worth it: a reason"),
        (
            TargetResult("npu", "predicted", "", placement(0, way_out="use the float model")),
            "not as it is: a reason; use the float model",
        ),
        (TargetResult("npu", "refused", "no such driver"), "no such driver"),
    ],
)
def test_a_verdict_has_its_reason(row: TargetResult, verdict: str) -> None:
    assert row.verdict == verdict


def test_outputs_that_are_far_off_are_said_to_be() -> None:
    assert replace(timed(0.5), difference=0.2).verdict.endswith("differ by 2.0e-01 of the largest")


@pytest.mark.parametrize(
    "row", [timed(0.5, taken=3), timed(None), TargetResult("npu", "refused", "no")]
)
def test_the_evidence_has_the_samples_and_what_stays_behind(
    row: TargetResult, tmp_path: Path
) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.append(row.trial("model.tflite", "ab12", "a host"))
    (trial,) = log.read({"": TargetTrial})
    samples = {one.metric: one.samples for one in trial.measurements}
    assert samples.get("latency", ()) == row.samples_us
    assert ("latency_ratio" in samples) == (row.ratio is not None)
    left = row.placement.left if row.placement else 0
    assert sum(int(where.split()[0]) for where, _ in trial.skipped) == left
    assert trial.details.row.verdict == row.verdict
    assert trial.details.row.runs == len(row.samples_us)


def test_whoever_is_hopelessly_slow_takes_no_turns() -> None:
    here = _Look((1e3,), 0.01, [])
    assert _Look((1e6,), 0.5, []).is_hopeless(here)
    assert not _Look((1e4,), 0.01, []).is_hopeless(here)  # slow, but soon over
    assert not _Look((2e3,), 5.0, []).is_hopeless(here)  # opens slowly, and may yet be worth it
