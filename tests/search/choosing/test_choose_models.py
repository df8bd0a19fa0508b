"""Choosing among real files: what is measured, kept, picked and refused."""

import json
from collections import Counter
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest

import litesmith
from litesmith import BadInput, Builder, choose
from litesmith.data.opened_samples import OpenedSamples
from litesmith.data.preparation import UNTOUCHED, Preparation
from litesmith.evidence.folder import CHOOSE, Folder
from litesmith.run.core.target import Target
from litesmith.search.choosing.candidates import list_candidates
from litesmith.search.choosing.choose_models import Chosen, carry_out
from litesmith.search.choosing.choose_run import ChooseTask, ChooseView
from litesmith.search.choosing.choose_trials import ChooseTrials
from litesmith.search.choosing.pick import Requirements
from litesmith.search.choosing.shared_data import GivenData, LessonData, find_judges
from litesmith.tflite.file import digest, save
from tests.search.choosing.chosen import QUICK, heavy, mark_times, written_models
from tests.search.choosing.taught import examples, integer, taught, write_data
from tests.training.flowers import classifier, write_pictures


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choose")
    written_models(folder)
    return folder


def chosen(place: Path, out: Path, *names: str, **asked: object) -> Chosen:
    paths = [place / f"{name}.tflite" for name in names or ("good", "poor", "heavy")]
    return choose(paths, place / "data.npz", seconds=QUICK, out=out, **asked)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def found(place: Path) -> Chosen:
    """The three models, chosen from by clear times."""
    mark_times(chosen(place, place / "out").folder, unclear=False)
    return chosen(place, place / "out")


@pytest.fixture
def again(place: Path, found: Chosen, tmp_path: Path) -> Path:
    """A copy of the folder that a choice has left."""
    return copytree(found.folder, tmp_path / "again")


def test_every_number_is_what_the_single_commands_measure(place: Path, found: Chosen) -> None:
    for row in found.candidates:
        path = Path(str(row["file"]))
        score = litesmith.evaluate(path, place / "data.npz")
        assert (row["value"], row["low"], row["high"], row["n"]) == (
            score.value,
            score.low,
            score.high,
            200,
        )
        assert row["bytes"] == path.stat().st_size
        assert 0 < int(str(row["gzip_bytes"])) < path.stat().st_size
        assert isinstance(row["p50_us"], float) and row["p50_us"] > 0
        assert row["digest"] == digest(path)


def test_the_front_and_the_pick_follow_from_the_numbers(found: Chosen) -> None:
    rows = {str(row["model"]): row for row in found.candidates}
    assert rows["good"]["value"] == rows["heavy"]["value"] == 1.0
    assert float(str(rows["poor"]["value"])) < 0.9
    assert rows["good"]["on_front"] and rows["poor"]["on_front"]  # which is the smallest
    assert not rows["heavy"]["on_front"]
    assert found.pick == Path(str(rows["good"]["file"]))
    assert found.facts["pick"] == "good"
    assert found.reason.startswith("good: the most accurate of all 3")


def test_the_folder_holds_the_evidence(found: Chosen) -> None:
    told = json.loads((found.folder / "choose.json").read_bytes())
    assert told["state"] == "done" and told["pick"] == "good"
    lines = (found.folder / "trials.jsonl").read_text("utf-8").splitlines()
    kinds = Counter(json.loads(line)["details"]["kind"] for line in lines)
    assert kinds == {"scored": 3, "timed": 3}
    for row in found.candidates:
        kept = json.loads((found.folder / "evidence" / f"{row['digest']}.json").read_bytes())
        ((_, scores),) = kept["scores"].items()
        assert len(scores) == 200 and np.mean(scores) == row["value"]


def test_what_is_on_record_is_not_measured_again(place: Path, found: Chosen, again: Path) -> None:
    resumed = chosen(place, again)
    assert resumed.fresh == 0
    assert [*resumed.candidates] == [*found.candidates]
    assert resumed.reason == found.reason


def test_times_that_a_busy_machine_left_unclear_are_taken_again(place: Path, again: Path) -> None:
    mark_times(again, unclear=True)
    assert chosen(place, again).fresh == 3


def test_other_bounds_are_answered_from_the_records(place: Path, again: Path) -> None:
    good = (place / "good.tflite").stat().st_size
    small = chosen(place, again, max_size=f"{good - 1}B")
    assert small.fresh == 0 and small.facts["pick"] == "poor"
    assert "good is" in small.reason and "but has" in small.reason
    none = chosen(place, again, max_size="10B")
    assert none.pick is None and none.facts["nearest"] == "poor"
    assert json.loads((again / "choose.json").read_bytes())["pick"] is None


def test_the_order_of_candidates_changes_only_the_order(
    place: Path, found: Chosen, again: Path
) -> None:
    turned = chosen(place, again, "heavy", "good", "poor")
    assert turned.fresh == 0
    by_name = {str(row["model"]): row for row in found.candidates}
    assert {str(row["model"]): row for row in turned.candidates} == by_name
    assert (turned.pick, turned.reason) == (found.pick, found.reason)


def test_with_another_candidate_all_are_timed_anew_and_only_it_is_scored(
    place: Path, again: Path
) -> None:
    save(heavy(3000), place / "heavier.tflite")
    more = chosen(place, again, "good", "heavier")
    assert more.fresh == 2 + 1


def test_a_damaged_record_is_measured_again(place: Path, again: Path, found: Chosen) -> None:
    (again / "evidence" / f"{found.candidates[0]['digest']}.json").write_text("{")
    assert chosen(place, again).fresh == 1


def test_a_stop_leaves_what_there_is(place: Path, again: Path) -> None:
    lines = (again / "trials.jsonl").read_text("utf-8").splitlines(keepends=True)
    times = [line for line in lines if json.loads(line)["details"]["kind"] == "timed"]
    (again / "trials.jsonl").write_text("".join(times))
    request = ChooseTask(
        list_candidates([place / f"{name}.tflite" for name in ("good", "poor", "heavy")]),
        again,
        source=GivenData(place / "data.npz", UNTOUCHED),
        seconds=QUICK,
    )

    def stop(view: ChooseView) -> None:
        if view.doing.startswith("scoring poor"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        carry_out(request, stop)
    assert "the same command resumes" in stopped.value.__notes__[0]
    told = json.loads((again / "choose.json").read_bytes())
    assert told["state"] == "stopped" and told["pick"] is None
    assert [row["value"] for row in told["candidates"]] == [1.0, None, None]
    assert carry_out(request).fresh == 2


def test_int8_forms_are_calibrated_on_samples_that_are_not_judged(place: Path, again: Path) -> None:
    def found() -> Chosen:
        return chosen(place, again, "good", quantized=True, effort="quick")

    mark_times(found().folder, unclear=False)
    both = found()
    assert both.fresh == 0
    assert [row["model"] for row in both.candidates] == ["good", "good int8"]
    assert both.facts["data"] == {
        "source": str(place / "data.npz"),
        "judged": 160,
        "learned": 0,
        "calibration": 40,
        "calibration_source": None,
    }
    for row in both.candidates:
        path = Path(str(row["file"]))
        assert row["n"] == 160
        assert path.is_file() and digest(path) == row["digest"]
        assert (path.parent == again / "models") == ("int8" in str(row["model"]))
    (again / "models" / "good-int8.tflite").unlink()
    made = found()
    assert made.fresh == 1 and [*made.candidates] == [*both.candidates]


def test_backbones_learn_first_and_are_judged_by_what_none_has_seen(
    place: Path, again: Path, tmp_path: Path
) -> None:
    arrays = examples()
    names = np.array([5, 2, 9, 7])  # the classes have other numbers than the models'
    write_data(tmp_path / "own.npz", {"x": arrays["x"], "y": names[arrays["y"]]})
    paths = [place / "good.tflite", place / "heavy.tflite"]

    def found() -> Chosen:
        return choose(paths, tmp_path / "own.npz", retrain=True, seconds=QUICK, out=again)

    mark_times(found().folder, unclear=False)
    first = found()
    assert first.facts["data"]["judged"] == 40  # type: ignore[index]
    for row in first.candidates:
        assert row["n"] == 40 and float(str(row["value"])) > 0.9
        assert Path(str(row["file"])).parent == again / "models"
        assert any("held out to judge by" in note for note in row["notes"])  # type: ignore[union-attr]
    resumed = found()
    assert first.fresh == resumed.fresh == 0 and [*resumed.candidates] == [*first.candidates]


@pytest.mark.parametrize("samples", [None, 90])
def test_what_a_candidate_learns_from_is_not_what_it_is_judged_by(
    place: Path, tmp_path: Path, samples: int | None
) -> None:
    data = place / "data.npz"
    (candidate,) = list_candidates([place / "good.tflite"]).candidates
    made = litesmith.retrain(place / "good.tflite", data, tmp_path / "new.tflite", samples=samples)
    (taught,) = list_candidates([tmp_path / "new.tflite"]).candidates
    lesson = LessonData(GivenData(data, UNTOUCHED, samples))
    for judge in (lesson.open(candidate), lesson.judge(taught)):
        assert isinstance(judge.data, OpenedSamples)
        assert judge.data.digests == made.proof.data.digests
        assert not {*judge.data.digests} & {*made.learned.data.digests}


def test_models_with_nothing_to_learn_from_are_refused_before_others_learn(
    place: Path, tmp_path: Path
) -> None:
    b = Builder()
    x = b.input("x", (1, 4, 4))
    save(b.model(b.op("MUL", x, np.ones(4, np.float32))), tmp_path / "map.tflite")
    (candidate,) = list_candidates([tmp_path / "map.tflite"]).candidates
    lesson = LessonData(GivenData(place / "data.npz", UNTOUCHED))
    with pytest.raises(BadInput, match=r"map: has no vector before a classifier.*--at"):
        lesson.open(candidate)


def test_quantized_files_do_not_learn(place: Path, tmp_path: Path) -> None:
    save(integer(taught()), tmp_path / "int8.tflite")
    refused(
        tmp_path,
        "int8: is quantized, and only float models learn",
        tmp_path / "int8.tflite",
        place / "data.npz",
        retrain=True,
    )
    refused(tmp_path, "--retrain needs data", place / "good.tflite", retrain=True)


def test_without_data_time_and_size_decide(place: Path, found: Chosen, again: Path) -> None:
    paths = [str(row["file"]) for row in found.candidates]
    bare = choose(paths, seconds=QUICK, out=again)
    assert bare.facts["basis"] == "none" and bare.fresh == 0
    assert all(row["value"] is None for row in bare.candidates)
    times = {str(row["model"]): float(str(row["p50_us"])) for row in bare.candidates}
    pick, front = bare.facts["pick"], bare.facts["front"]
    if pick is None:  # the times decide, and a busy machine tells none
        assert "the machine was busy" in bare.reason
    else:
        assert pick == min(times, key=times.__getitem__) != "heavy"
        assert isinstance(front, list) and pick in front and "heavy" not in front


def test_names_of_the_catalogue_have_published_accuracy_only(tmp_path: Path) -> None:
    bare = choose(["ds_cnn_s", "ds_cnn_m"], seconds=QUICK, out=tmp_path / "out")
    assert bare.facts["basis"] == "published"
    assert [row["value"] for row in bare.candidates] == [None, None]
    assert [row["published"]["value"] for row in bare.candidates] == [0.944, 0.949]  # type: ignore[index]
    assert bare.facts["pick"] == "ds_cnn_m"
    assert "published accuracy, which was not measured here" in bare.reason
    assert bare.pick is not None and bare.pick.is_file()


def test_the_same_file_is_measured_once(place: Path, again: Path, tmp_path: Path) -> None:
    twin = tmp_path / "twin.tflite"
    twin.write_bytes((place / "good.tflite").read_bytes())
    names = ("good", "poor", "heavy")
    paths = [*(place / f"{name}.tflite" for name in names), twin, twin]
    once = choose(paths, seconds=QUICK, out=again)
    assert [row["model"] for row in once.candidates] == [*names] and once.fresh == 0
    assert [note.endswith("it is measured once") for note in once.facts["notes"]] == [True] * 2  # type: ignore[union-attr]


def test_every_name_has_a_file_of_its_own(place: Path, tmp_path: Path) -> None:
    given = tmp_path / "models" / "a-b.tflite"
    folder = Folder(tmp_path, CHOOSE)
    trials = ChooseTrials(folder, Target(), [given])
    names = ["a b", "a:b", "A-B", "a-b", "x" * 300, "x" * 301, "ü" * 200]
    paths = [trials.place(name) for name in names]
    assert len({str(path).casefold() for path in (given, *paths)}) == 1 + len(names)
    assert [trials.place(name) for name in names] == paths
    for path in paths:
        save(taught(), path)


# What is refused, before a folder is made.


def refused(tmp_path: Path, match: str, *args: object, **asked: object) -> None:
    with pytest.raises(BadInput, match=match):
        choose(*args, out=tmp_path / "out", seconds=QUICK, **asked)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_bad_candidates_are_named(place: Path, tmp_path: Path) -> None:
    refused(tmp_path, "nothing to choose from", [])
    refused(tmp_path, "nothing.*: no file is so called", str(place / "nothing" / "*.tflite"))
    refused(tmp_path, "gone.tflite: no such file", place / "gone.tflite")
    refused(tmp_path, "is a folder; give its files", place)
    (tmp_path / "broken.tflite").write_bytes(b"no model")
    with pytest.raises(litesmith.BadModel, match=r"broken\.tflite"):
        choose([place / "good.tflite", tmp_path / "broken.tflite"], out=tmp_path / "out")


def test_bad_data_is_named(place: Path, tmp_path: Path) -> None:
    good = place / "good.tflite"
    np.save(tmp_path / "bare.npy", examples()["x"])
    refused(tmp_path, "has no labels", good, tmp_path / "bare.npy")
    arrays = examples()
    write_data(tmp_path / "more.npz", {"x": arrays["x"], "y": arrays["y"] + 3})
    refused(tmp_path, "good: .*outside the model's classes.*--retrain", good, tmp_path / "more.npz")
    random = np.random.default_rng(0).permutation(arrays["y"])
    write_data(tmp_path / "mixed.npz", {"x": arrays["x"], "y": random})
    refused(tmp_path, "good: .*no better than guessing.*--trust-data", good, tmp_path / "mixed.npz")
    refused(tmp_path, "used up by the first model", good, iter([arrays["x"]]))


def test_pictures_that_cannot_be_read_are_said_or_refused(tmp_path: Path) -> None:
    save(classifier(), tmp_path / "model.tflite")
    write_pictures(tmp_path / "data", 8, ["0", "1", "2"])
    (tmp_path / "data" / "0" / "bad.png").write_bytes(b"no picture")
    source = GivenData(tmp_path / "data", Preparation(norm="unit"))
    candidates = list_candidates([tmp_path / "model.tflite"]).candidates
    data = find_judges(candidates, source, None, calibrates=False)["model"].data
    assert len(data) == 24 and any("left out" in note for note in data.notes)
    for file in (tmp_path / "data" / "1").iterdir():
        file.write_bytes(b"no picture")
    refused(
        tmp_path,
        "model: .*images cannot be read",
        tmp_path / "model.tflite",
        tmp_path / "data",
        preparation=source.preparation,
    )


def test_requests_that_make_no_sense_are_refused(place: Path, tmp_path: Path) -> None:
    good, data = place / "good.tflite", place / "data.npz"
    refused(tmp_path, "--min-accuracy needs data", good, min_accuracy="80%")
    refused(tmp_path, "compared on one target", good, data, on="cpu:1,cpu:2")
    refused(tmp_path, "no effort 'much'", good, data, quantized=True, effort="much")
    refused(tmp_path, "--calibrate is for int8", good, data, calibrate=data)
    refused(tmp_path, "of its samples are in", good, data, quantized=True, calibrate=data)


def test_a_folder_of_another_command_is_left_alone(place: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tune.json").write_text("{}")
    with pytest.raises(BadInput, match="litesmith tune"):
        choose([place / "good.tflite"], out=tmp_path / "out", seconds=QUICK)


def test_errors_are_no_shares(tmp_path: Path) -> None:
    save(taught(), tmp_path / "good.tflite")
    arrays = examples()
    floats = np.eye(4, dtype=np.float32)[arrays["y"]] * 0.9
    np.savez(tmp_path / "soft.npz", x=arrays["x"], y=floats)
    refused(
        tmp_path,
        "is a share, and RMSE is none",
        tmp_path / "good.tflite",
        tmp_path / "soft.npz",
        min_accuracy="80%",
    )


def test_a_model_without_numbers_is_not_picked(place: Path, again: Path, tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (1, 16))
    none = b.op("FULLY_CONNECTED", x, np.zeros((4, 16), np.float32), np.zeros(4, np.float32))
    save(b.model(b.op("LOG", none)), tmp_path / "inf.tflite")
    arrays = examples()
    np.savez(tmp_path / "soft.npz", x=arrays["x"], y=np.eye(4, dtype=np.float32)[arrays["y"]] * 0.9)
    found = choose(
        [tmp_path / "inf.tflite", place / "good.tflite"],
        tmp_path / "soft.npz",
        metric="mae",
        seconds=QUICK,
        out=again,
    )
    assert [row["value"] is None for row in found.candidates] == [True, False]
    assert found.facts["pick"] == "good"
    assert [row["on_front"] for row in found.candidates] == [False, True]


def test_the_objective_is_said(place: Path) -> None:
    assert Requirements().goal(knows_accuracy=True) == "accuracy"
    assert Requirements(min_accuracy=0.5).goal(knows_accuracy=True) == "latency"
    assert Requirements({"size": 1.0}, 0.5).goal(knows_accuracy=True) == "accuracy"
    assert Requirements().goal(knows_accuracy=False) == "latency"


def test_models_of_different_classes_are_not_ranked(place: Path, tmp_path: Path) -> None:
    """The same data may have labels that both could have, as 0 to 3."""
    b = Builder()
    x = b.input("x", (1, 16))
    weight = np.random.default_rng(0).normal(size=(40, 16)).astype(np.float32)
    save(b.model(b.op("FULLY_CONNECTED", x, weight)), tmp_path / "forty.tflite")
    paths = [place / "good.tflite", tmp_path / "forty.tflite"]
    with pytest.raises(BadInput, match="good tells 4 classes apart and forty 40"):
        choose(paths, place / "data.npz", out=tmp_path / "out", trust_data=True)


def test_candidates_share_parts_and_groups(place: Path, tmp_path: Path) -> None:
    arrays = examples(60)
    rows, labels = np.repeat(arrays["x"], 5, axis=0), np.repeat(arrays["y"], 5)
    write_data(tmp_path / "data.npz", {"x": rows, "y": labels})
    paths = [place / f"{name}.tflite" for name in ("good", "poor")]
    found = choose(paths, tmp_path / "data.npz", seconds=QUICK, out=tmp_path / "out")
    for row in found.candidates:
        assert row["n"] == 300
        assert any("300 samples, 60 independent" in str(note) for note in row["notes"])  # type: ignore[attr-defined]
