"""A search from a model and a budget to the best file, and everything that it leaves behind."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from types import FrameType
from typing import cast

import numpy as np
import pytest

import litesmith
from litesmith.data.preparation import UNTOUCHED
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from litesmith.evidence.log import Log
from litesmith.evidence.tune_record import CANDIDATE, TUNE_KINDS, VERIFIED, ProofTimes, Tried
from litesmith.pages.records.tune_folder import read_search
from litesmith.search.trial.budget import Budget, Limits
from litesmith.search.trial.data_split import split
from litesmith.search.trial.tried_model import TriedModel, find_front
from litesmith.search.tuning.decision_tree import BRANCHES
from litesmith.search.tuning.replay import remember
from litesmith.search.tuning.tree_walk import TuneTask, TuneView
from litesmith.search.tuning.tune_search import Found, carry_out
from litesmith.tflite.file import digest, load
from tests.search.choosing.taught import BLINK, examples, integer, opened, taught, written
from tests.training.small import classifier

Json = dict[str, object]

SUMMARY = (
    "schema model model_digest version command state request data verdict sentence best float "
    "front path threads next environment seconds"
)
BEST = "name file recipe target accuracy latency bytes gzip_bytes"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its data, and the folder `out` of a search for the smallest file."""
    place = tmp_path_factory.mktemp("tune")
    written(place)
    smallest(place)
    return place


def smallest(place: Path, **more: object) -> Found:
    return carry_out(request_in(place, **more))


def request_in(place: Path, **more: object) -> TuneTask:
    """For the smallest file, which does not depend on times: the same each time."""
    model, data = place / "model.tflite", place / "data.npz"
    usual = TuneTask(
        model,
        open_data(data, load(model)),
        place / "out",
        Budget.parse("5pt"),
        "size",
        opened=remember(data, None, UNTOUCHED),
        runs=BLINK,
    )
    return replace(usual, **more)  # pyright: ignore[reportArgumentType]


def summary(place: Path) -> Json:
    return json.loads((place / "out" / "tune.json").read_bytes())


def records(place: Path, kind: str = CANDIDATE) -> list[TriedModel]:
    found = Log(place / "out" / "trials.jsonl").read(TUNE_KINDS)
    return [
        TriedModel(trial.with_details(trial.details))
        for trial in found
        if isinstance(trial.details, Tried) and trial.details.kind == kind
    ]


def proofs(place: Path) -> int:
    """How often the best was timed in earnest."""
    found = Log(place / "out" / "trials.jsonl").read(TUNE_KINDS)
    return sum(isinstance(trial.details, ProofTimes) for trial in found)


@pytest.fixture
def copied(place: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return copytree(place, tmp_path / "copy")


# What a search leaves.


def test_the_best_is_the_file_on_record_and_runs(place: Path) -> None:
    told, best = summary(place), place / "out" / "best.tflite"
    facts = cast(Json, told["best"])
    assert told["state"] == "done" and told["verdict"] == "proven"
    assert digest(best) == facts["digest"]
    assert facts["bytes"] == best.stat().st_size
    assert best.stat().st_size == min(r.cost("size") or 0 for r in records(place) if r.value)
    with litesmith.Session(best) as session:
        session.run()


def test_the_summary_has_what_readers_look_for(place: Path) -> None:
    told = summary(place)
    assert set(SUMMARY.split()) <= set(told)
    assert set(BEST.split()) <= set(cast(Json, told["best"]))
    assert {"minimize", "budget", "limits", "targets"} <= set(cast(Json, told["request"]))
    data = cast(Json, told["data"])
    assert {"source", "calibration", "search", "held_out", "preparation", "notes"} <= set(data)
    assert [data[key] for key in ("calibration", "search", "held_out")] == [40, 53, 107]
    path = cast(list[Json], told["path"])
    assert [step["branch"] for step in path] == [branch.name for branch in BRANCHES]
    assert all(step["question"] and step["answer"] for step in path)
    tried = [name for step in path for name in cast(list[str], step["trials"])]
    assert tried == [record.name for record in records(place)][1:]
    models = {row["model"] for row in cast(list[Json], told["threads"])}
    assert {"float", "best"} <= models
    assert told["sentence"] and told["next"]


def test_accuracy_is_that_of_the_held_out_part(place: Path) -> None:
    told = summary(place)
    accuracy = cast(Json, cast(Json, told["best"])["accuracy"])
    assert accuracy["n"] == cast(Json, told["data"])["held_out"]
    keys = "metric title unit value low high n reference difference difference_low"
    assert {*keys.split(), "difference_high", "agreement"} <= set(accuracy)
    latency = cast(Json, cast(Json, told["best"])["latency"])
    assert {"target", "p50_us", "float_us", "ratio", "low", "high"} <= set(latency)


def test_the_front_lies_in_its_folder(place: Path) -> None:
    told = summary(place)
    found = {r.name: r for r in find_front(records(place))}
    assert set(cast(list[str], told["front"])) == set(found)
    files = {path.stem: digest(path) for path in (place / "out" / "front").iterdir()}
    assert set(files) == {*found, cast(Json, told["best"])["name"]}
    known = {r.name: r.digest for r in records(place)}
    assert all(known[name] == made for name, made in files.items())


def test_every_trial_is_on_record_once_with_a_reason(place: Path) -> None:
    found = records(place)
    assert len({r.name for r in found}) == len(found)
    assert all(r.trial.reason and r.status for r in found)
    assert [r.name for r in found][:2] == ["float", "cleaned"]
    assert len(records(place, VERIFIED)) == 1 and proofs(place) == 1


def test_bulky_details_are_kept_by_digest(place: Path) -> None:
    best = cast(Json, summary(place)["best"])
    for made in (str(best["digest"]), digest(place / "model.tflite")):
        facts = json.loads((place / "out" / "evidence" / f"{made}.json").read_bytes())
        assert facts["schema"] == 1 and facts["name"]
        assert {"index", "kind", "name", "us", "macs"} == set(facts["ops"][0])
    assert facts["name"] == "float"


def test_nothing_else_is_left_and_the_input_is_untouched(place: Path) -> None:
    names = {path.name for path in (place / "out").iterdir()} - {".lock"}
    files = {"best.tflite", "recipe.json", "trials.jsonl", "tune.json", "evidence", "front"}
    assert names == files
    assert load(place / "model.tflite").main.ops[0].kind == taught().main.ops[0].kind
    with np.load(place / "data.npz") as data:
        assert np.array_equal(data["x"], examples()["x"])


def test_the_recipe_says_how_to_make_it_again(place: Path) -> None:
    recipe = json.loads((place / "out" / "recipe.json").read_bytes())
    best = cast(Json, summary(place)["best"])
    assert recipe["schema"] == 1
    assert recipe["recipe"] == best["recipe"]
    assert recipe["digest"] == best["digest"]
    assert recipe["input_digest"] == digest(place / "model.tflite")
    assert str(recipe["command"]).startswith("litesmith apply ")


# The same folder again.


def test_the_same_search_again_measures_nothing_and_adds_no_line(copied: Path) -> None:
    before = (copied / "out" / "trials.jsonl").read_bytes()
    wanted = digest(copied / "out" / "best.tflite")
    found = smallest(copied, resume=True)
    assert found.fresh == 0
    assert found.best is not None and digest(found.best) == wanted
    assert (copied / "out" / "trials.jsonl").read_bytes() == before
    assert not (copied / "out" / "work").exists()


def test_a_lost_file_comes_back_from_the_records(copied: Path) -> None:
    wanted = digest(copied / "out" / "best.tflite")
    (copied / "out" / "best.tflite").unlink()
    for path in (copied / "out" / "front").iterdir():
        path.unlink()
    found = smallest(copied)
    assert found.fresh == 0
    assert found.best is not None and digest(found.best) == wanted


def test_a_kill_before_the_first_summary_can_be_gone_on_from(copied: Path) -> None:
    """The best is written before the summary: a kill may come between the two."""
    (copied / "out" / "tune.json").unlink()
    for resume in (True, False):
        assert smallest(copied, resume=resume).fresh == 0
        (copied / "out" / "tune.json").unlink()


def test_no_time_at_all_keeps_what_is_on_record(copied: Path) -> None:
    wanted = digest(copied / "out" / "best.tflite")
    found = smallest(copied, minutes=1e-6)
    assert found.best is not None and digest(found.best) == wanted


def test_the_folder_of_another_model_is_refused(copied: Path) -> None:
    written(copied, classifier())
    with pytest.raises(BadInput, match=r"another model, model\.tflite"):
        carry_out(request_in(copied, data=opened(taught()), budget=Budget.parse(None, "90%")))


def test_going_on_where_nothing_was_is_refused(copied: Path) -> None:
    with pytest.raises(BadInput, match="holds no search to go on with; leave out --resume"):
        smallest(copied, out=copied / "new", resume=True)


def test_a_folder_with_models_of_ones_own_is_refused(copied: Path) -> None:
    with pytest.raises(BadInput, match="holds other files"):
        smallest(copied, out=copied)
    assert not (copied / "tune.json").exists()


# Stopped.


class Stop:
    """Ctrl-C as the work on a certain candidate begins."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, view: TuneView) -> None:
        self.left -= bool(view.records) and view.status is None
        if self.left == 0:
            raise KeyboardInterrupt


class StopUnkept(Stop):
    """Ctrl-C once the trial that a view begins is on record, and nothing else knows of it."""

    def __call__(self, view: TuneView) -> None:
        self.left -= bool(view.records) and view.status is None
        if self.left == 0:
            sys.settrace(self._look)

    def _look(self, frame: FrameType, event: str, arg: object) -> None:
        if frame.f_code.co_name == "_keep":
            sys.settrace(None)
            raise KeyboardInterrupt


@pytest.mark.parametrize(("at", "stop"), [(1, Stop), (4, Stop), (7, StopUnkept)])
def test_whenever_it_is_stopped_it_goes_on_to_the_same_best(
    place: Path, tmp_path: Path, at: int, stop: type[Stop]
) -> None:
    written(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        carry_out(request_in(tmp_path), stop(at))
    told = summary(tmp_path)
    assert told["state"] == "stopped"
    best = cast("Json | None", told["best"])
    shipped = tmp_path / "out" / "best.tflite"
    assert shipped.exists() == (best is not None) == (at > 2)
    if best is not None:
        assert digest(shipped) == best["digest"]
    before = len(records(tmp_path))
    found = smallest(tmp_path, resume=True)
    assert found.facts["state"] == "done"
    assert found.best is not None and digest(found.best) == digest(place / "out" / "best.tflite")
    assert len(records(tmp_path)) == len(records(place)) >= before


def test_a_ctrl_c_as_the_best_is_put_in_its_place_leaves_file_and_summary_alike(
    tmp_path: Path,
) -> None:
    written(tmp_path)
    shipped, left = tmp_path / "out" / "best.tflite", [2]

    def interrupt(event: str, told: tuple[object, ...]) -> None:
        if event == "os.rename" and Path(str(told[1])) == shipped:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

    sys.addaudithook(interrupt)  # which knows this folder only, and nothing once it has spoken
    with pytest.raises(KeyboardInterrupt):
        carry_out(request_in(tmp_path))
    best = cast(Json, summary(tmp_path)["best"])
    assert left == [-1] and digest(shipped) == best["digest"]


@pytest.mark.parametrize("at", [1, 3, 5])
def test_a_finished_search_that_is_begun_again_and_stopped_keeps_its_best(
    copied: Path, at: int
) -> None:
    wanted = digest(copied / "out" / "best.tflite")
    with pytest.raises(KeyboardInterrupt):
        carry_out(request_in(copied, resume=True), Stop(at))
    recipe = json.loads((copied / "out" / "recipe.json").read_bytes())
    assert digest(copied / "out" / "best.tflite") == recipe["digest"] == wanted
    assert cast(Json, summary(copied)["best"])["digest"] == wanted


def test_the_work_on_each_candidate_is_followed(tmp_path: Path) -> None:
    """A view that stands still looks like a program that hangs."""
    written(tmp_path)
    views: list[TuneView] = []
    carry_out(request_in(tmp_path), views.append)
    told = [str(view.status.what) for view in views if view.status is not None]
    assert any(what.startswith("load ") for what in told)  # timing
    assert {"scoring", "looking at the data", "the ops of float, one by one"} <= {*told}
    assert views[0].doing == "the model as it is" and not views[0].records


def test_another_budget_that_is_stopped_leaves_no_best_of_the_old_one(copied: Path) -> None:
    """What lies there as the best is what the summary says is the best, with its own recipe."""
    strict = request_in(copied, budget=Budget.parse(min_snr="300"))
    with pytest.raises(KeyboardInterrupt):
        carry_out(strict, Stop(3))
    assert summary(copied)["best"] is None
    assert not (copied / "out" / "best.tflite").exists()
    assert not (copied / "out" / "recipe.json").exists()


# Other budgets.


def test_where_nothing_fits_the_nearest_is_named_and_nothing_shipped(copied: Path) -> None:
    found = smallest(copied, budget=Budget.parse(min_snr="250"))
    told = summary(copied)
    assert found.best is None and found.verdict == told["verdict"] == "missed"
    assert not (copied / "out" / "best.tflite").exists()
    assert not (copied / "out" / "recipe.json").exists()
    near = cast(Json, told["nearest"])
    assert str(near["name"]) in found.sentence and "250 dB" in found.sentence
    assert told["best"] is None and told["next"]


def test_where_only_a_ceiling_is_missed_the_sentence_says_so(copied: Path) -> None:
    found = smallest(copied, limits=Limits.parse("1kB"))
    assert found.best is None
    assert "1.00 kB" in found.sentence or "1.00 KB" in found.sentence


def test_agreement_needs_no_labels(tmp_path: Path) -> None:
    model, _ = written(tmp_path)
    items = examples()["x"]
    found = litesmith.tune(
        model, items, min_agreement="90%", minimize="size", runs=BLINK, out=tmp_path / "out"
    )
    assert found.best is not None and found.verdict in ("proven", "likely")
    accuracy = cast(Json, cast(Json, found.facts["best"])["accuracy"])
    assert accuracy["metric"] == "agreement"
    assert float(cast(float, accuracy["value"])) >= 0.9


def test_an_snr_is_kept(tmp_path: Path) -> None:
    model, _ = written(tmp_path)
    found = litesmith.tune(
        model, examples()["x"], min_snr="50dB", minimize="size", runs=BLINK, out=tmp_path / "out"
    )
    accuracy = cast(Json, cast(Json, found.facts["best"])["accuracy"])
    assert accuracy["metric"] == "snr"
    assert float(cast(float, accuracy["value"])) >= 50
    missing = [r.name for r in found.records if r.status == "misses"]
    assert "int8" in missing


def test_no_time_still_ends_in_order(tmp_path: Path) -> None:
    model, data = written(tmp_path)
    found = litesmith.tune(
        model, data, max_drop="5pt", minutes=1e-6, runs=BLINK, out=tmp_path / "out"
    )
    assert found.facts["state"] == "done" and found.best is None
    answers = [step["answer"] for step in cast(list[Json], found.facts["path"])]
    assert answers == ["not asked: the time is over"] * len(BRANCHES)
    names = ", ".join(branch.name for branch in BRANCHES)
    assert found.sentence.endswith(f"; not tried for lack of time: {names}")
    assert found.facts["untried"] == [branch.name for branch in BRANCHES]


def test_what_there_was_no_time_for_is_gone_on_with(tmp_path: Path) -> None:
    written(tmp_path)
    typed = "litesmith tune model.tflite --data data.npz --minutes 1e-06 -o out"
    found = smallest(tmp_path, minutes=1e-6, command=typed)
    (step,) = found.summary.next
    wanted = "litesmith tune model.tflite --data data.npz -o out --resume --minutes 2e-06"
    assert (step.command, step.purpose) == (wanted, "tries what there was no time for")


def test_where_nothing_is_better_the_model_is_kept(tmp_path: Path) -> None:
    """A search for the smallest file of a model that nothing makes smaller."""
    model, data = written(tmp_path, integer(taught()))
    found = litesmith.tune(
        model, data, max_drop="5pt", minimize="size", runs=BLINK, out=tmp_path / "out"
    )
    assert (found.best, found.verdict, found.is_as_asked) == (None, "keep", False)
    assert found.sentence.startswith("nothing better was found; keep yours")
    assert found.report is not None
    page = found.report.read_text(encoding="utf-8")
    assert '<p class="word">Keep yours</p>' in page
    assert "Proven" not in page


def test_every_time_of_a_search_is_on_one_scale(place: Path) -> None:
    """Headline, cards, graph, tooltip and table showed three different times of one model."""
    record = read_search(place / "out")
    best, first = record.summary.best, record.summary.first
    assert best is not None and best.latency is not None and first is not None
    speed, float_us = best.latency, best.latency.float_us
    assert float_us and first.latency and first.latency.p50_us == float_us
    entry = record.entry(best.name)
    assert entry is not None and entry.speed == speed
    for one in record.entries:
        if one.speed is not None and one.speed.ratio is not None:
            assert one.speed.p50_us == pytest.approx(one.speed.ratio * float_us)
            assert one.speed.float_us == float_us
    rows = {row.model: row.p50_us for row in record.summary.threads if row.target == speed.target}
    assert (rows["float"], rows["best"]) == (float_us, speed.p50_us)


def test_a_quantized_model_is_not_quantized_again(tmp_path: Path) -> None:
    model, data = written(tmp_path, integer(taught()))
    found = litesmith.tune(model, data, max_drop="5pt", runs=BLINK, out=tmp_path / "out")
    assert {r.branch for r in found.records} == {"float", "clean-up"}


def test_the_proof_sees_samples_that_the_search_does_not(tmp_path: Path) -> None:
    """The held-out part has wrong labels only."""
    model, _ = written(tmp_path)
    given = examples()
    parts = split(open_data(given, load(model)))
    hidden = {sample.inputs[0].tobytes() for sample in parts.held_out}
    labels = [
        (label + (item[None].tobytes() in hidden)) % 4
        for item, label in zip(given["x"], given["y"], strict=True)
    ]
    found = litesmith.tune(
        model,
        {"x": given["x"], "y": np.array(labels)},
        max_drop="5pt",
        minimize="size",
        runs=BLINK,
        out=tmp_path / "out",
    )
    assert all(r.value in (None, 1.0) for r in found.records)
    assert cast(Json, cast(Json, found.facts["best"])["accuracy"])["value"] == 0.0


def test_copies_prove_nothing(tmp_path: Path) -> None:
    """60 samples, each there 15 times: 480 are held out, of which 32 are independent."""
    arrays = examples(60)
    model, data = written(tmp_path)
    np.savez(data, x=np.repeat(arrays["x"], 15, axis=0), y=np.repeat(arrays["y"], 15))
    asked = request_in(tmp_path, budget=Budget.parse("1pt"))
    with pytest.raises(BadInput, match=r"32 samples \(480 with copies.*needs 385"):
        carry_out(asked)
    parts = split(open_data(data, load(model)))
    assert [len(part) for part in parts] == [180, 240, 480]
    found = carry_out(request_in(tmp_path, out=tmp_path / "other", budget=Budget.parse("20pt")))
    assert "480 held-out samples, 32 independent" in found.sentence
    assert found.summary.best is not None and found.summary.best.accuracy is not None
    assert found.summary.best.accuracy.independent == 32
