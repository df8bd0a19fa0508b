"""The folder of a search: one writer, whole files, records that a kill leaves readable."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from litesmith.errors import BadInput
from litesmith.evidence.codec import salvage
from litesmith.evidence.folder import Folder
from litesmith.evidence.retrain_record import HeadTried
from litesmith.evidence.tune_record import TUNE_KINDS, OpRow, TunedInside, TuneSummary
from litesmith.pages.records.salvage_folder import read_optional
from litesmith.phrases import phrase
from litesmith.tflite.file import digest, load, save
from litesmith.units import factor_text
from tests.platforms import links, posix
from tests.search.choosing.taught import record, taught
from tests.zoo_float import residual

RUNNING = salvage(TuneSummary, {"state": "running"}).value

HOLDING = """
import sys, time
from pathlib import Path
from litesmith.evidence.folder import Folder
with Folder(Path(sys.argv[1])).hold():
    print("held", flush=True)
    time.sleep(60)
"""


def holder(path: Path) -> subprocess.Popen[bytes]:
    """Another process that is at work in the folder."""
    child = subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None and child.stdout.readline().rstrip() == b"held"
    return child


def refused(path: Path) -> str:
    """The one line that keeps this process out of a folder."""
    with pytest.raises(BadInput) as no, Folder(path).hold():
        pass
    assert "\n" not in str(no.value)
    return str(no.value)


# One writer.


@posix
def test_a_second_run_is_refused_in_one_line_and_let_in_after_a_kill(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        assert "another run is at work in it; choose another -o" in refused(tmp_path)
        child.send_signal(signal.SIGKILL)
    with Folder(tmp_path).hold():
        pass


def test_the_same_process_is_kept_out_too(tmp_path: Path) -> None:
    with Folder(tmp_path).hold():
        assert "at work" in refused(tmp_path)
    with Folder(tmp_path).hold():
        pass


def test_an_error_inside_lets_go_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Folder(tmp_path).hold():
        raise KeyboardInterrupt
    with Folder(tmp_path).hold():
        pass


def test_who_is_refused_sweeps_nothing(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        part = tmp_path / ".litesmith-1.part"
        part.touch()
        refused(tmp_path)
        assert part.exists()
        child.kill()


def test_what_a_killed_run_left_half_written_is_swept(tmp_path: Path) -> None:
    parts = [tmp_path / ".litesmith-x.part", tmp_path / "front" / ".litesmith-y.part"]
    mine = tmp_path / "notes.part"
    Folder(tmp_path).write_summary(RUNNING)
    (tmp_path / "front").mkdir()
    for path in (*parts, mine):
        path.touch()
    with Folder(tmp_path).hold():
        assert not any(path.exists() for path in parts)
        assert mine.exists()


def test_a_folder_that_cannot_be_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "inside", Path("/proc/search")):
        assert "choose another -o" in refused(path)


# Records.


def test_trials_come_back_in_their_order(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.trials(TUNE_KINDS) == () and not folder.is_used
    for name in ("float", "int8"):
        folder.add(record(name).trial)
    assert [trial.details.name for trial in folder.trials(TUNE_KINDS)] == ["float", "int8"]
    assert folder.is_used


def test_a_summary_survives_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    assert folder.summary(TuneSummary) is None
    told = replace(RUNNING, sentence=phrase("{factor} faster", factor_text(1.5, "")))
    folder.write_summary(told)
    assert folder.summary(TuneSummary) == told
    path = tmp_path / "tune.json"
    for change, why in (({"state": 3}, "state: is 3, not a text"), ({"x": 1}, '"x" is unknown')):
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
        with pytest.raises(BadInput, match=rf"tune\.json: .*{why}.*; choose another -o"):
            folder.summary(TuneSummary)
        folder.write_summary(told)
    path.write_bytes(b'{"state": "run')
    with pytest.raises(BadInput, match=r"tune\.json: is not what .* \(it is not JSON\)"):
        folder.summary(TuneSummary)


def test_numbers_without_a_word_in_json_are_never_written(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write_summary(RUNNING)
    with pytest.raises(ValueError, match="JSON"):
        folder.write_summary(HeadTried(1.0, float("nan"), 1.0))
    assert folder.summary(TuneSummary) == RUNNING


def test_evidence_that_is_damaged_or_missing_is_none(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    inside = TunedInside(1, "a", ops=(OpRow(0, "ADD", "x", None, 0),))
    assert folder.evidence(TunedInside, "abc") is None
    folder.write_evidence("abc", inside)
    assert folder.evidence(TunedInside, "abc") == inside
    assert folder.evidence(HeadTried, "abc") is None
    (tmp_path / "evidence" / "abc.json").write_text("{")
    assert folder.evidence(TunedInside, "abc") is None


# Models.


def test_a_model_is_found_by_its_name_only_while_it_is_the_one_on_record(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    place = folder.keep(taught(), "int8")
    wanted = digest(place)
    assert folder.found("int8", wanted) == place
    assert folder.found("float16", wanted) is None
    save(residual(), place)
    assert folder.found("int8", wanted) is None
    place.unlink()
    assert folder.found("int8", wanted) is None


@links
def test_of_a_folder_that_is_none_of_ours_only_the_names_are_read(tmp_path: Path) -> None:
    """With `-o ~` every file of a home was looked at first."""
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "link").symlink_to(tmp_path)
    with pytest.raises(BadInput, match="holds other files, as 'letters'"), Folder(tmp_path).hold():
        pass


def test_the_best_is_found_under_its_old_name_when_all_else_is_gone(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    place = folder.keep(taught(), "int8")
    folder.ship(place)
    folder.tidy()
    assert not (tmp_path / "work").exists()
    assert folder.found("int8", digest(folder.best)) == folder.best


def test_shipping_the_same_again_leaves_the_file_alone(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    place = folder.keep(taught(), "a")
    folder.ship(place)
    before = folder.best.stat()
    time.sleep(0.01)
    folder.ship(place)
    assert folder.best.stat().st_mtime_ns == before.st_mtime_ns
    folder.ship(folder.keep(residual(), "b"))
    assert len(load(folder.best).main.ops) == len(residual().main.ops)


def test_without_a_best_there_is_no_recipe_either(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.unship()
    folder.ship(folder.keep(taught(), "a"))
    folder.write_recipe(HeadTried(1.0, 2.0, 3.0))
    assert json.loads(folder.recipe.read_bytes())["loss"] == 2.0
    folder.unship()
    assert not folder.best.exists() and not folder.recipe.exists()


def test_the_front_has_the_given_models_and_no_others(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    a, b = folder.keep(taught(), "a"), folder.keep(residual(), "b")
    folder.write_front({"a": a, "b": b})
    folder.write_front({"b": b})
    assert [path.name for path in (tmp_path / "front").iterdir()] == ["b.tflite"]
    again = tmp_path / "front" / "b.tflite"
    folder.write_front({"b": again})  # from its own place, after the work is gone
    assert digest(again) == digest(b)


def test_a_folder_of_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="holds other files, as 'work'"), Folder(tmp_path).hold():
        pass
    assert [p.name for p in tmp_path.rglob("*")] == ["work", "thesis.txt"]


def test_a_summary_that_is_none_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text("[]")
    with pytest.raises(BadInput, match=r"tune\.json: is not what `litesmith tune` writes"):
        Folder(tmp_path).summary(TuneSummary)


@posix
def test_a_pipe_is_no_record(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tune.json")
    with pytest.raises(BadInput, match="no regular file"):
        Folder(tmp_path).summary(TuneSummary)
    (tmp_path / "evidence").mkdir()
    os.mkfifo(tmp_path / "evidence" / "a.json")
    assert Folder(tmp_path).evidence(TunedInside, "a") is None
    assert read_optional(TunedInside, tmp_path / "evidence" / "a.json").value is None


@posix
@pytest.mark.parametrize("name", ["best.tflite", "work/a-0123.training/pipe"])
def test_a_folder_with_a_pipe_is_refused(tmp_path: Path, name: str) -> None:
    """Asking whether the best is another one waited for good."""
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "tune.json").touch()
    os.mkfifo(tmp_path / name)
    with pytest.raises(BadInput, match=f"holds other files, as '{name}'"), Folder(tmp_path).hold():
        pass
