"""The page of every target: what was measured comes first, and decides."""

from pathlib import Path

import pytest

from litesmith.evidence.bench_record import BenchedModel, TargetRow
from litesmith.evidence.codec import salvage
from litesmith.pages.bench_page import base_of, timed_rows, verdict_of, winner_of
from litesmith.pages.folder_kinds import write_report
from litesmith.timing.statistics import UNCLEAR
from tests.pages.test_folder_kinds import benched

CPU = {"target": "cpu:1", "how": "measured", "latency_us": 100.0, "runs": 40}
FAST = {**CPU, "target": "fast", "latency_us": 50.0, "ratio": 0.5, "low": 0.48, "high": 0.52}
SAME = {**CPU, "target": "same", "latency_us": 99.0, "ratio": 0.99, "low": 0.9, "high": 1.1}
SLOW = {**CPU, "target": "slow", "latency_us": 9e5, "runs": 2, "is_alone": True}
BUSY = {**SAME, "target": "busy", "verdict": UNCLEAR}
ESTIMATED = {"target": "npu", "how": "estimated", "latency_us": 1.0, "taken": 3, "ops": 3}


def model_of(*rows: dict[str, object]) -> BenchedModel:
    return salvage(BenchedModel, {"model": "m", "targets": list(rows)}).value


@pytest.mark.parametrize(
    ("rows", "winner", "kind"),
    [
        ((CPU, FAST, SAME), "fast", "proven"),
        ((CPU, SAME, SLOW), "cpu:1", "proven"),
        ((CPU, BUSY), "cpu:1", "unclear"),
        ((CPU, BUSY, FAST), "fast", "proven"),
        ((CPU, ESTIMATED), "cpu:1", "proven"),
        ((ESTIMATED,), None, "none"),
        ((), None, "none"),
    ],
    ids=str,
)
def test_only_what_was_measured_wins(
    rows: tuple[dict[str, object], ...], winner: str | None, kind: str
) -> None:
    """An estimate is of nothing that ran, and a run beside a busy machine decides nothing."""
    model = model_of(*rows)
    found = winner_of(model)
    assert (found.target if found else None) == winner
    assert verdict_of(model)[0] == kind


def test_the_fastest_is_first_and_the_cpu_is_what_others_are_held_against() -> None:
    model = model_of(CPU, SLOW, FAST, ESTIMATED)
    assert [row.target for row in timed_rows(model)] == ["fast", "cpu:1", "slow"]
    base = base_of(model)
    assert isinstance(base, TargetRow) and base.target == "cpu:1"


def test_measured_times_stand_before_predictions(tmp_path: Path) -> None:
    page = write_report(benched(tmp_path / "made")).read_text(encoding="utf-8")
    order = ("Run it on cpu:1", "<h2>How long a run takes", "coreml")
    places = [page.index(words) for words in order]
    assert places == sorted(places)
    assert page.index("Measured here") < page.index("Not run here") < page.index("coreml</b>")


def test_targets_that_answer_alike_share_a_row(tmp_path: Path) -> None:
    page = write_report(benched(tmp_path / "made")).read_text(encoding="utf-8")
    assert page.count("<b>coreml</b>") == 1
