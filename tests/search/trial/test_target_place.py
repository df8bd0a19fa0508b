"""Where a result is to run: on a CPU, on an accelerator that runs here, or on one that is compiled
for only."""

import json
from pathlib import Path

import numpy as np
import pytest

from litesmith import tune
from litesmith.errors import CannotRun
from litesmith.evidence.codec import encode
from litesmith.evidence.records import Speed
from litesmith.evidence.tune_record import FLOAT
from litesmith.ir.build import Builder
from litesmith.passes.core.recipe import parse
from litesmith.run.accelerators.targets import BY_NAME, DELEGATES, FAMILIES
from litesmith.run.core.placement import Home, Placement
from litesmith.run.core.target import Target
from litesmith.search.trial.budget import Limits
from litesmith.search.trial.measured_values import estimated_speed, taken_of
from litesmith.search.trial.target_place import (
    Place,
    describe_left,
    refuse_place,
)
from litesmith.search.trial.tried_model import TriedModel, find_front, find_nearest, rank
from litesmith.search.tuning.search_state import Candidate, PlaceNeeds, State
from litesmith.tflite.file import load
from tests import zoo
from tests.search.choosing import taught
from tests.search.choosing.taught import BLINK, record

NPU = "ethos-u55-128"
vela = pytest.mark.skipif(not BY_NAME[NPU].probe().usable, reason=BY_NAME[NPU].probe().why)
openvino = pytest.mark.skipif(
    not BY_NAME["openvino"].probe().usable, reason=BY_NAME["openvino"].probe().why
)


@pytest.mark.parametrize("delegate", DELEGATES, ids=lambda one: one.name)
def test_every_target_is_a_place_and_reads_back(delegate) -> None:
    place = Place.parse(delegate.name)
    assert Place.parse(str(place)) == place
    assert (place.runs is None) == (not delegate.runs)
    assert (place.placed(zoo.convnet()) is None) == (delegate.predict is None)
    assert place.scores.kind in ("cpu", "numpy", "micro") and place.scores.threads == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_one_of_its_members(family: str) -> None:
    place = Place.parse(family)
    assert place == Place.parse(FAMILIES[family])
    assert str(place).startswith(family) and place.runs is None


def test_devices_are_places_too() -> None:
    assert Place.parse("ssh://pi@kitchen/cpu:4").accelerator == ""
    assert Place.parse("adb://R58M12ABCDE/gpu").accelerator == "gpu"
    assert Place.parse("ssh://pi@kitchen/cpu:4").proves == Target()


def test_a_place_that_cannot_run_here_is_refused_with_the_reason() -> None:
    for delegate in DELEGATES:
        if delegate.runs and not delegate.probe().usable:
            with pytest.raises(CannotRun, match=f"target {delegate.name}"):
                refuse_place(Place.parse(delegate.name), "latency", limits_time=False)


def placement(taken: int, us: float | None = None) -> Placement:
    homes = tuple(Home(n, "ADD", n < taken, "a reason") for n in range(4))
    facts = {"npu_us": 9.0, "cycles": 900}
    return Placement(NPU, "measured", homes, 1, us, "estimated" if us else "", facts)


def test_an_estimate_has_no_ratio_and_says_what_it_is() -> None:
    whole, part = estimated_speed(placement(4, 9.0)), estimated_speed(placement(3))
    assert (whole.p50_us, whole.how, whole.ratio) == (9.0, "estimated", None)
    assert (part.p50_us, part.estimate and part.estimate.part_us) == (None, 9.0)
    json.dumps([encode(whole), encode(part)], allow_nan=False)


def test_what_stays_behind_is_said_with_the_reason() -> None:
    assert describe_left(None) == describe_left(taken_of(placement(4))) == ""
    assert describe_left(taken_of(placement(3))) == f"{NPU} takes 3 of 4 ops in 1 part: a reason"
    assert describe_left(taken_of(placement(0))) == f"{NPU} takes none of its ops: a reason"


def placed(name: str, taken: int, ratio: float = 0.5, **details: object) -> TriedModel:
    return record(name, ratio=ratio, placed=taken_of(placement(taken)), **details)


def test_what_is_taken_whole_wins_whatever_it_costs() -> None:
    quick, whole = placed("quick", 3, 0.1), placed("whole", 4, 0.9)
    worse = placed("worse", 1, 0.05)
    order = [one.name for one in rank([quick, whole, worse], "latency")]
    assert order == ["whole", "quick", "worse"]
    assert {one.name for one in find_front([quick, whole])} == {"quick", "whole"}
    same = placed("same", 3, 0.9)
    assert {one.name for one in find_front([same, whole])} == {"whole"}


def test_estimates_are_costs_of_their_own() -> None:
    def estimated(name: str, taken: int, us: float | None):
        return placed(name, taken, latency=estimated_speed(placement(taken, us)))

    slow, fast, part = estimated("a", 4, 9.0), estimated("b", 4, 3.0), estimated("c", 3, None)
    none = placed(FLOAT, 0, latency=Speed(NPU, "", None, None, None, None, None, ""))
    assert [one.name for one in rank([slow, none, part, fast], "latency")] == ["b", "a", "c"]
    assert find_nearest([slow, fast, none], Limits()) == fast
    assert "b" in {one.name for one in find_front([slow, fast, part, none])}
    assert "a" not in {one.name for one in find_front([slow, fast, part])}


def test_inputs_become_integers_where_the_place_wants_them() -> None:
    state = State(taught.taught(), "latency", needs=PlaceNeeds(integer_io=True))
    texts = {
        "quantize | correct": "quantize(io=int8) | correct",
        "quantize(to=int16x8)": "quantize(to=int16x8, io=int16)",
        "quantize(to=float16)": "quantize(to=float16)",
        "qat": "qat(io=int8)",
        "cleanup": "cleanup",
        "": "",
    }
    for text, wanted in texts.items():
        fitted = state.fit(Candidate("a", "a", text, ""))
        assert fitted.recipe == wanted
        assert parse(state.fit(fitted).recipe) == parse(wanted)
    assert State(taught.taught(), "latency").fit(Candidate("a", "a", "qat", "")).recipe == "qat"


@pytest.mark.parametrize("name", [NPU, "edgetpu", "hexagon", "coreml", "cpu:1", "gpu"])
def test_only_integer_machines_ask_for_integers(name: str) -> None:
    assert Place.parse(name).asks_for_integers(zoo.convnet()) == (name in (NPU, "edgetpu"))


@pytest.fixture(scope="module")
def on_edgetpu(tmp_path_factory: pytest.TempPathFactory):
    return searched(tmp_path_factory.mktemp("edgetpu"), on="edgetpu", minimize="size")


def searched(tmp_path: Path, runs: int = BLINK, **asked):
    path, data = taught.written(tmp_path / "in")
    out = tmp_path / "out"
    return tune(path, str(data), max_drop="20pt", runs=runs, out=out, **asked)


def test_what_the_rules_refuse_is_set_aside_and_what_they_take_is_shipped(on_edgetpu) -> None:
    found = on_edgetpu
    states = {one.name: one.status for one in found.records}
    assert states["float16"] == states["cleaned"] == "set aside"
    aside = next(one for one in found.records if one.name == "float16")
    assert aside.trial.reason.startswith("edgetpu takes none of it: it takes int8")
    assert found.best is not None
    shipped = load(found.best).main
    assert {t.dtype for t in (*shipped.inputs, *shipped.outputs)} == {"int8"}
    best = found.facts["best"]
    assert "edgetpu" in best["whole_on"] and best["latency"]["how"] == ""
    assert found.facts["threads"] == [] and "by the CPU's kernels" in found.sentence


@vela
def test_a_time_is_the_compilers_estimate_and_said_to_be(tmp_path: Path) -> None:
    found = searched(tmp_path, on=f"{NPU},cpu:1")
    best = found.facts["best"]
    assert best["latency"]["how"] == "estimated" and best["latency"]["ratio"] is None
    assert best["target"] == NPU and NPU in best["whole_on"]
    assert f"on {NPU}" in found.sentence and "estimated to take" in found.sentence
    hows = {(row["target"], row["model"], row["how"]) for row in found.facts["threads"]}
    assert {(NPU, "best", "estimated"), ("cpu:1", "float", "measured")} <= hows
    again = searched(tmp_path, on=f"{NPU},cpu:1")
    assert again.fresh == 0 and again.facts["best"] == best


@openvino
def test_where_it_runs_it_is_timed_and_proven_there(tmp_path: Path) -> None:
    found = searched(tmp_path, runs=2, on="openvino:1", minimize="size")
    best = found.facts["best"]
    assert best["latency"]["target"] == "openvino:1" and best["latency"]["how"] == "measured"
    assert best["scored_on"] == "openvino:1" and "kernels" not in found.sentence


def test_every_file_of_the_front_says_who_takes_it(on_edgetpu) -> None:
    found = on_edgetpu
    names = [one.name for one in DELEGATES if one.predict is not None]
    kept = {one.name: one.digest for one in found.records}
    for name in {*found.facts["front"], FLOAT}:
        told = json.loads((found.folder / "evidence" / f"{kept[name]}.json").read_bytes())
        assert [row["target"] for row in told["accelerators"]] == names
        count = (
            0 if name == FLOAT else len(load(found.folder / "front" / f"{name}.tflite").main.ops)
        )
        assert all(row["taken"] <= row["ops"] for row in told["accelerators"])
        assert name == FLOAT or {row["ops"] for row in told["accelerators"]} == {count}


def test_a_model_that_is_taken_in_part_can_still_be_shipped(tmp_path: Path) -> None:
    """An op that the rules leave keeps the whole from being taken, not the rest."""
    b = Builder()
    x = b.input("x", (1, taught.WIDE))
    y = b.op("FULLY_CONNECTED", x, np.eye(taught.WIDE, dtype=np.float32) * 2, None)
    cut = b.op("ABS", b.op("FULLY_CONNECTED", y, np.eye(taught.WIDE, dtype=np.float32)[:4], None))
    path, data = taught.written(tmp_path / "in", b.model(cut))
    found = tune(
        path,
        str(data),
        min_snr="5",
        on="edgetpu",
        minimize="size",
        runs=BLINK,
        out=tmp_path / "out",
    )
    shipped = next(one for one in found.records if one.name == found.facts["best"]["name"])
    assert shipped.left > 0 and "edgetpu takes" in found.sentence
    assert "edgetpu" not in found.facts["best"]["whole_on"]
