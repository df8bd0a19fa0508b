"""Candidates made and measured: each once, with the reason for whatever came of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from litesmith.data.sources import open_data
from litesmith.evidence.folder import Folder
from litesmith.evidence.records import Speed
from litesmith.evidence.tune_record import FITS, MISSES, REFUSED, SET_ASIDE, TUNE_KINDS, ProofTimes
from litesmith.run.session import Session
from litesmith.search.trial.budget import Budget, Goal, Limits
from litesmith.search.trial.data_split import split
from litesmith.search.trial.target_place import Place
from litesmith.search.tuning.search_state import Candidate, float_candidate
from litesmith.search.tuning.tune_trials import TuneTrials
from litesmith.tflite.file import digest, load
from tests.search.choosing.taught import BLINK, examples, opened, written

INT8 = Candidate("int8", "int8", "cleanup | fold | fuse | quantize | correct", "small")
HALF = Candidate("float16", "float16", "cleanup | quantize(to=float16)", "half the size")
SPEED = Speed("cpu:1", "measured", None, None, None, None, None, "")
USUAL = Goal("latency", Budget.parse("5pt"), Limits(), Place.parse("cpu:1"), "top1", runs=BLINK)


def workshop(place: Path, asked: Goal = USUAL, wrong_from: int | None = None) -> TuneTrials:
    """As a run would have it that starts now; held-out labels are wrong where it is said so."""
    source = place / "in" / "model.tflite"
    if not source.exists():
        written(place / "in")
    model, folder = load(source), Folder(place / "out")
    folder.path.mkdir(exist_ok=True)
    parts = split(opened(model))
    if wrong_from is not None:
        given = examples(60, seed=5)
        wrong = {"x": given["x"], "y": (given["y"] + wrong_from) % 4}
        parts = parts._replace(held_out=open_data(wrong, model))
    return TuneTrials(folder, source, model, parts, asked)


def lines(made: TuneTrials) -> int:
    return len(made.folder.trials(TUNE_KINDS))


def test_what_is_on_record_is_not_measured_again(tmp_path: Path) -> None:
    first = workshop(tmp_path)
    before = [first.try_candidate(float_candidate()), first.try_candidate(INT8)]
    before += [first.verify(before[1])]
    assert first.fresh == 3
    again = workshop(tmp_path)
    after = [again.try_candidate(float_candidate()), again.try_candidate(INT8)]
    after += [again.verify(after[1])]
    assert again.fresh == 0
    assert [r.trial for r in after] == [r.trial for r in before]
    assert lines(again) == 3


def test_another_budget_judges_the_same_measurements_anew(tmp_path: Path) -> None:
    first = workshop(tmp_path)
    fitting = first.try_candidate(INT8)
    assert fitting.status == FITS
    strict = workshop(tmp_path, replace(USUAL, limits=Limits(max_bytes=10)))
    missing = strict.try_candidate(INT8)
    assert strict.fresh == 0
    assert (missing.status, missing.accuracy) == (MISSES, fitting.accuracy)
    assert missing.latency == fitting.latency
    assert "that a file may have" in missing.trial.reason
    again = workshop(tmp_path).try_candidate(INT8)
    assert (again.status, again.trial.reason) == (FITS, fitting.trial.reason)


def test_another_budget_judges_the_proof_anew_too(tmp_path: Path) -> None:
    first = workshop(tmp_path)
    held = first.verify(first.try_candidate(INT8))
    assert held.status == FITS
    strict = workshop(tmp_path, replace(USUAL, limits=Limits(max_bytes=10)))
    again = strict.verify(strict.try_candidate(INT8))
    assert (again.status, again.accuracy, strict.fresh) == (MISSES, held.accuracy, 0)


@pytest.mark.parametrize(
    "other",
    [
        replace(USUAL, place=Place.parse("cpu:2")),
        replace(USUAL, metric="agreement", budget=Budget.parse(None, "90%")),
    ],
)
def test_what_changes_the_measurements_measures_again(tmp_path: Path, other: Goal) -> None:
    workshop(tmp_path).try_candidate(HALF)
    made = workshop(tmp_path, other)
    made.try_candidate(HALF)
    assert made.fresh == 1


def test_what_a_trial_on_record_lacks_is_measured(tmp_path: Path) -> None:
    assert workshop(tmp_path).try_candidate(HALF).cost("memory") is None
    asked = replace(USUAL, minimize="memory")
    made = workshop(tmp_path, asked)
    assert (made.try_candidate(HALF).cost("memory") or 0) > 0
    assert made.fresh == 1
    again = workshop(tmp_path, asked)
    again.try_candidate(HALF)
    assert again.fresh == 0


def test_a_trial_says_what_it_is_and_what_it_costs(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    first, found = made.try_candidate(float_candidate()), made.try_candidate(INT8)
    path = made.file(found)
    assert found.digest == digest(path)
    assert found.trial.parent_digest == made.digest == first.digest
    assert found.cost("size") == path.stat().st_size
    assert 0 < (found.cost("download") or 0) < path.stat().st_size
    assert found.details.is_integer and not first.details.is_integer
    assert found.details.seconds > 0
    (ratios,) = found.trial.measurements
    assert ratios.metric == "latency_ratio" and len(ratios.samples) > 1
    assert (first.ratio, first.trial.measurements) == (1.0, ())
    assert found.accuracy is not None and found.accuracy.n == len(made.split.search)


def test_what_cannot_be_made_is_recorded_with_the_reason(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    impossible = Candidate("upgraded", "clean-up", "upgrade", "")
    found = made.try_candidate(impossible)
    assert found.status == REFUSED and found.digest == ""
    assert "nothing to do" in found.trial.reason
    again = workshop(tmp_path)
    assert again.try_candidate(impossible).trial == found.trial
    assert (again.fresh, lines(again)) == (0, 1)


def test_the_same_file_twice_is_set_aside(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    made.try_candidate(INT8)
    twin = made.try_candidate(INT8._replace(name="twin", recipe="fold | " + INT8.recipe))
    assert twin.status == SET_ASIDE
    assert twin.trial.reason == "the same file as int8"
    assert twin.accuracy is None and twin.latency is None


def test_the_proof_is_on_held_out_samples_alone(tmp_path: Path) -> None:
    """All labels of the held-out part are wrong, and no other is."""
    made = workshop(tmp_path, wrong_from=1)
    found = made.try_candidate(HALF)
    held = made.verify(found)
    assert found.value == 1.0
    assert held.value == 0.0
    assert held.accuracy is not None and held.accuracy.n == len(made.split.held_out)
    assert held.trial.reason.startswith("on held-out samples")
    assert made.records[HALF.name] is found


def test_other_held_out_samples_are_another_proof(tmp_path: Path) -> None:
    for wrong in (1, 2, 2):
        made = workshop(tmp_path, wrong_from=wrong)
        made.verify(made.try_candidate(HALF))
    kinds = [trial.details.kind for trial in made.folder.trials(TUNE_KINDS)]
    assert kinds == ["candidate", "verified", "verified"]


def test_a_file_that_is_gone_is_made_again(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    found = made.try_candidate(INT8)
    made.folder.tidy()
    again = workshop(tmp_path)
    path = again.file(again.try_candidate(INT8))
    assert digest(path) == found.digest
    with Session(path) as session:
        session.run()


def test_a_file_that_is_made_again_is_the_one_on_record(tmp_path: Path) -> None:
    """Data in another order counts as the same, so that what it makes has to be the same."""
    made = workshop(tmp_path)
    given = examples(1500)
    order = np.random.default_rng(0).permutation(1500)
    for arrays in (given, {name: array[order] for name, array in given.items()}):
        parts = split(open_data(arrays, made.model))
        run = TuneTrials(made.folder, made.source, made.model, parts, USUAL)
        found = run.try_candidate(INT8)
        assert digest(run.file(found)) == found.digest
        made.folder.tidy()


def test_what_is_made_of_a_model_is_made_once(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    found = made.try_candidate(HALF)
    calls: list[int] = []

    def make(key: str) -> ProofTimes:
        calls.append(1)
        speed = replace(SPEED, ratio=float(len(calls)))
        return ProofTimes(HALF.name, "timed", HALF.branch, key, speed, "cpu:1", ())

    assert made.time_proof(found, ("cpu:1",), make).speed.ratio == 1
    again = workshop(tmp_path)
    assert again.time_proof(again.try_candidate(HALF), ("cpu:1",), make).speed.ratio == 1
    assert again.time_proof(again.try_candidate(HALF), ("cpu:1", "cpu:2"), make).speed.ratio == 2
    assert len(calls) == 2
    assert list(again.records) == [HALF.name]


@pytest.mark.parametrize(
    ("minimize", "low", "vain"), [("latency", 1.1, True), ("latency", 0.9, False)]
)
def test_only_what_is_slower_beyond_doubt_is_in_vain(minimize: str, low: float, vain: bool) -> None:
    asked = replace(USUAL, minimize=minimize)
    assert asked.is_in_vain(replace(SPEED, low=low)) == vain
    assert not asked.is_in_vain(SPEED)
    assert not replace(asked, minimize="size").is_in_vain(replace(SPEED, low=low))


def test_the_source_is_never_changed(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    before = made.source.read_bytes()
    made.try_candidate(float_candidate())
    made.try_candidate(INT8)
    assert made.source.read_bytes() == before
