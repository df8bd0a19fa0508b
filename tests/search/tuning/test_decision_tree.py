"""The decision tree: what is tried when, in which order, and what is said of what is not."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.evidence.tune_record import FLOAT, RoomLeft
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import parse, step_name, text_of
from litesmith.passes.core.schemes import Names
from litesmith.precision.fastest_forms import FastestForms, SlowKind
from litesmith.search.trial.budget import MINIMIZE, Limits
from litesmith.search.trial.tried_model import TriedModel
from litesmith.search.tuning.decision_tree import BRANCHES, Branch
from litesmith.search.tuning.search_state import (
    EIGHT_BITS,
    Candidate,
    FromTrials,
    PlaceNeeds,
    State,
    float_candidate,
)
from litesmith.training.recipe_context import trainings
from tests.draws import draws
from tests.search.choosing.taught import integer, record, taught
from tests.zoo import half_weights, noise

NAMES = [branch.name for branch in BRANCHES]
FOUR = ["float16", "dynamic", "int8", "int16x8"]
Judge = Callable[[Candidate], str]


def one_mixture(state: State) -> Iterator[Candidate]:
    """What finding mixtures may come to."""
    yield Candidate("mixed-3", "mixed", "quantize(keep=[0])", "")


MIXTURE = FromTrials(one_mixture)


def walked(
    state: State,
    judge: Judge,
    room: float = 0.01,
    *,
    loses: bool = True,
    branches: Sequence[Branch] = BRANCHES,
) -> list[Candidate]:
    """Every candidate that the tree asks for, each judged in its turn; what misses loses too much,
    unless it is said that it does not: then it misses a ceiling."""
    tried: list[Candidate] = []
    for branch in branches:
        if branch.why_not(state):
            continue
        for candidate in branch.candidates(state):
            tried.append(candidate)
            status = judge(candidate)
            left = room if status == "fits" or not loses else -0.01
            state.records[candidate.name] = judged(candidate, status, left)
    return tried


def judged(candidate: Candidate, status: str, room: float) -> TriedModel:
    """What was measured: 8-bit integers throughout cost half of what all others do."""
    cost = 1 if candidate.branch in EIGHT_BITS else 2
    return record(
        candidate.name,
        branch=candidate.branch,
        status=status,
        room=room,
        ratio=0.4 * cost,
        size=1000 * cost,
        peak_bytes=5000 * cost,
        ram_bytes=3000 * cost,
        flash_bytes=4000 * cost,
    )


def asked(tried: list[Candidate]) -> list[str]:
    """The branches that were asked, each once."""
    return list(dict.fromkeys(candidate.branch for candidate in tried))


def everything_fits(_: Candidate) -> str:
    return "fits"


def eight_bits_miss(candidate: Candidate) -> str:
    return "misses" if candidate.branch in EIGHT_BITS else "fits"


def state_of(
    minimize: str = "latency", model: Model | None = None, can_train: bool = False
) -> State:
    why = "" if can_train else "no torch"
    return State(taught() if model is None else model, minimize, why, from_trials=MIXTURE)


# What is tried.


def test_where_int8_fits_no_remedy_is_tried() -> None:
    state = state_of(can_train=True)
    assert asked(walked(state, everything_fits)) == ["clean-up", *FOUR]
    reasons = {branch.name: branch.why_not(state) for branch in BRANCHES}
    for name in ("ranges", "equalize", "round", "mixed"):
        assert reasons[name] == "int8 fits with room to spare on the samples to choose by"
    assert reasons["qat"] == "int8 fits without"
    assert "latency is to be small" in reasons["int4"]


def test_where_int8_misses_remedies_come_in_the_order_of_their_cost() -> None:
    remedies = ["ranges", "equalize", "round", "mixed"]
    state = state_of()
    assert asked(walked(state, eight_bits_miss)) == ["clean-up", *FOUR, *remedies]
    reasons = {branch.name: branch.why_not(state) for branch in BRANCHES}
    assert reasons["qat"] == "no torch"
    trained = asked(walked(state_of(can_train=True), eight_bits_miss))
    assert trained == ["clean-up", *FOUR, *remedies, "qat"]


@pytest.mark.parametrize("saved", ["int8-percentile", "int8-equalized", "int8-rounded"])
def test_once_a_remedy_fits_no_later_one_is_tried(saved: str) -> None:
    def judge(candidate: Candidate) -> str:
        return "fits" if candidate.name == saved else eight_bits_miss(candidate)

    tried = walked(state_of(can_train=True), judge)
    assert tried[-1].name == saved


@pytest.mark.parametrize("minimize", ["latency", "size", "memory"])
def test_int8_is_not_saved_where_it_could_not_win(minimize: str) -> None:
    """Another fits that costs as much as int8 does."""
    state = state_of(minimize, can_train=True)
    state.records["int8"] = judged(Candidate("int8", "int8", "", ""), "misses", -0.01)
    remedies = [b for b in BRANCHES if b.name in ("ranges", "equalize", "round", "mixed", "qat")]
    assert not any(branch.why_not(state) for branch in remedies)
    same = {"ratio": 0.405, "size": 1010, "peak_bytes": 5050}
    state.records["dynamic"] = record("dynamic", status="misses", **same)
    assert not any(branch.why_not(state) for branch in remedies)
    state.records["dynamic"] = record("dynamic", **same)
    told = {branch.why_not(state) for branch in remedies}
    assert told == {"dynamic fits, and costs no more than int8 would"}


def test_a_ceiling_that_int8_misses_asks_for_no_remedy() -> None:
    """Remedies win accuracy, of which there is enough; none makes the file smaller or faster."""
    tried = asked(walked(state_of(can_train=True), lambda _: "misses", loses=False))
    assert tried == ["clean-up", *FOUR]


def test_int8_that_barely_fits_is_made_better_but_not_trained() -> None:
    tried = asked(walked(state_of(can_train=True), everything_fits, room=0.001))
    assert tried == ["clean-up", *FOUR, "ranges", "equalize", "round", "mixed"]


@pytest.mark.parametrize(("rows", "is_tried"), [(1, True), (8, False)])
def test_four_bits_are_tried_where_weights_are_read_for_one_product(
    rows: int, is_tried: bool
) -> None:
    """A classifier of dense layers was left 1.7 times as slow as it could be."""
    b = Builder()
    x = b.input("x", (rows, 512))
    half = b.op("DEQUANTIZE", b.const(noise(512, 512).astype(np.float16)))
    model = b.model(b.op("FULLY_CONNECTED", x, half, noise(512)))
    state = replace(
        state_of(model=model), from_trials=FromTrials(one_mixture, fastest=lambda _: None)
    )
    tried = [one.name for one in walked(state, everything_fits) if one.branch == "int4"]
    assert tried == (["int4-w4a8", "int4-dynamic"] if is_tried else [])
    assert not state_of(model=model).is_read_bound  # where no op can be timed


@pytest.mark.parametrize("minimize", MINIMIZE)
def test_what_makes_files_small_is_tried_where_that_counts(minimize: str) -> None:
    tried = asked(walked(state_of(minimize), everything_fits))
    assert ("int4" in tried) == (minimize in ("size", "download"))
    for branch in ("cluster", "prune"):
        assert (branch in tried) == (minimize == "download")


@pytest.mark.parametrize("can_train", [False, True])
def test_nothing_is_trained_where_nothing_can_be(can_train: bool) -> None:
    for judge in (everything_fits, eight_bits_miss):
        tried = walked(state_of("download", can_train=can_train), judge)
        training = [c.name for c in tried if trainings(parse(c.recipe))]
        assert bool(training) == can_train


@pytest.mark.parametrize("minimize", MINIMIZE)
def test_a_quantized_model_is_cleaned_and_upgraded_only(minimize: str) -> None:
    state = state_of(minimize, integer(taught()), can_train=True)
    tried = walked(state, everything_fits)
    assert [candidate.name for candidate in tried] == ["cleaned", "upgraded"]
    for branch in BRANCHES[1:]:
        assert branch.why_not(state) == "the model is quantized already"


def test_without_mixtures_there_is_nothing_to_mix() -> None:
    state = State(taught(), "latency")
    assert "mixed" not in asked(walked(state, eight_bits_miss))


# What holds of everything that is tried.


@draws(40)
@given(st.sampled_from(MINIMIZE), st.booleans(), st.randoms(use_true_random=False))
def test_names_are_unique_file_names_and_recipes_can_be_read(
    minimize: str, can_train: bool, random: Random
) -> None:
    state = state_of(minimize, can_train=can_train)
    room = random.choice([-0.01, 0.001, 0.01])
    tried = walked(state, lambda _: random.choice(["fits", "misses", "refused"]), room)
    names = [candidate.name for candidate in tried]
    assert len(set(names)) == len(names) and FLOAT not in names
    for candidate in tried:
        assert re.fullmatch(r"[a-z0-9.-]+", candidate.name)
        assert candidate.branch in NAMES
        recipe = parse(candidate.recipe)
        assert recipe and parse(text_of(recipe)) == recipe
        assert candidate.why or candidate.branch == "mixed"


def test_every_recipe_begins_by_tidying() -> None:
    for model in (taught(), half_weights()):
        state = state_of("download", model, can_train=True)
        own = [c for c in walked(state, eight_bits_miss) if c.branch != "mixed"]
        assert all(f"{c.recipe} | ".startswith(state.tidy) for c in own)
    assert "float16=true" in state_of(model=half_weights()).tidy


def test_the_branches_of_eight_bits_are_branches() -> None:
    assert set(EIGHT_BITS) <= set(NAMES)
    assert len(set(NAMES)) == len(NAMES)
    assert all(branch.question.endswith("?") for branch in BRANCHES)


def test_training_tries_what_its_branch_says() -> None:
    tried = walked(state_of("download", can_train=True), eight_bits_miss)
    kinds = {c.branch: [step_name(s) for s in parse(c.recipe)] for c in tried}
    assert "qat" in kinds["qat"] and "qat" in kinds["cluster"] and "prune" in kinds["prune"]


def late(max_us: float, room: float = 0.01) -> State:
    """A search for a time that nothing has reached, int8 the fastest."""
    state = state_of()
    state.limits, state.needs = Limits(max_latency_us=max_us), PlaceNeeds(on="cpu:1")
    for name, us in (("dynamic", 800.0), ("int8", 400.0)):
        made = record(name, status="misses", room=room)
        assert made.latency is not None
        timed = replace(made.details, latency=replace(made.latency, p50_us=us))
        trial = replace(made.trial, details=timed, recipe="cleanup | quantize")
        state.records[name] = TriedModel(trial)
    return state


def branch_named(name: str) -> Branch:
    return next(branch for branch in BRANCHES if branch.name == name)


def test_channels_go_where_a_time_is_missed_and_accuracy_is_to_spare() -> None:
    channels = branch_named("channels")
    state = late(1.0)
    fastest = state.fastest_spare
    assert fastest is not None and fastest.name == "int8" and fastest.p50_us
    state.limits = Limits(max_latency_us=fastest.p50_us / 1.3)
    assert not channels.why_not(state)
    (candidate,) = channels.candidates(state)
    assert candidate.name == "channels-int8"
    steps = {step_name(step): step for step in parse(candidate.recipe)}
    assert 1.3 < getattr(steps["prune"], "speedup") < 1.45  # noqa: B009
    state.limits = Limits(max_latency_us=fastest.p50_us / 10)
    assert "out of reach" in channels.why_not(state)
    assert "no time is asked for" in channels.why_not(state_of())
    assert "nothing has accuracy to spare" in channels.why_not(late(1.0, room=-0.01))


def test_the_float_model_is_the_candidate_that_changes_nothing() -> None:
    first = float_candidate()
    assert (first.name, first.recipe) == (FLOAT, "")
    assert parse(first.recipe) == ()


def test_room_to_spare_is_claimed_of_an_interval_inside_the_budget_only() -> None:
    """[−3.35, +1.48] was likely, beside: int8 fits with room to spare."""
    state = state_of()
    state.records["int8"] = record("int8", room=0.01, allowed=0.01)
    assert state.why_enough == "int8 fits with room to spare on the samples to choose by"
    left = RoomLeft(0.01, -0.0135, 0.0348, "", 0.01)
    found = state.records["int8"]
    details = replace(found.details, room=left)
    state.records["int8"] = TriedModel(found.trial.with_details(details))
    assert "by its estimate" in state.why_enough and "to spare" not in state.why_enough


def test_remedies_of_int8_are_predicted_to_take_as_long() -> None:
    forms = FastestForms((), 3.0, 4.0, 9.0)
    state = replace(state_of(), from_trials=FromTrials(one_mixture, fastest=lambda _: forms))
    tried = walked(state, eight_bits_miss)
    told = {one.name: one.predicted_us for one in tried if one.branch in ("ranges", "equalize")}
    assert told and set(told.values()) == {4.0}


@pytest.mark.parametrize(
    ("keep", "by_kind_us", "names"),
    [
        ((1, 2), 3.3, ["int8-fastest", "int8-by-kind"]),
        ((1, 2), 9.0, ["int8-fastest"]),
        (("PRELU",), 3.0, ["int8-fastest"]),
        ((), 3.3, ["int8", "int8-by-kind"]),
    ],
)
def test_the_plain_choice_of_kinds_is_measured_where_it_looks_nearly_as_fast(
    keep: Names, by_kind_us: float, names: list[str]
) -> None:
    slow = (SlowKind("PRELU", 2, 5.0, 1.0),)
    forms = FastestForms(keep, 3.0, 6.0, 9.0, slow=slow, by_kind_us=by_kind_us)
    state = replace(state_of(), from_trials=FromTrials(one_mixture, fastest=lambda _: forms))
    tried = {one.name: one for one in walked(state, everything_fits) if one.branch == "int8"}
    assert list(tried) == names
    if "int8-by-kind" in names:
        assert "keep=[PRELU]" in tried["int8-by-kind"].recipe
        assert tried["int8-by-kind"].predicted_us == by_kind_us
