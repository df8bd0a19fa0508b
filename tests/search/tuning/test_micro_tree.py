"""The questions of the tree for microcontrollers."""

from dataclasses import replace

import pytest

from litesmith.passes.core.recipe import parse, step_name, text_of
from litesmith.search.trial.budget import Limits
from litesmith.search.tuning.micro_tree import MICRO_BRANCHES
from litesmith.search.tuning.search_state import Candidate, PlaceNeeds, State
from tests.search.tuning.test_decision_tree import asked, everything_fits, state_of, walked

ARRANGE = "arrange(ram=9)"


def micro_state(limits: Limits, can_train: bool = False) -> State:
    return replace(
        state_of("ram", can_train=can_train), limits=limits, needs=PlaceNeeds(arrange=ARRANGE)
    )


def test_on_a_microcontroller_nothing_worse_is_tried_once_something_fits() -> None:
    state = micro_state(Limits(max_ram=9))
    tried = walked(state, everything_fits, branches=MICRO_BRANCHES)
    assert [c.name for c in tried] == ["cleaned"]
    reasons = {branch.name: branch.why_not(state) for branch in MICRO_BRANCHES}
    assert reasons["int8"] == "cleaned fits, and loses less"


def test_a_flash_that_is_too_small_asks_for_smaller_weights_and_ram_for_fewer_channels() -> None:
    def judge(_: Candidate) -> str:
        return "misses"

    small = walked(micro_state(Limits(max_ram=9)), judge, loses=False, branches=MICRO_BRANCHES)
    assert asked(small) == ["clean-up", "int8", "channels"]
    flash = walked(micro_state(Limits(max_flash=9)), judge, loses=False, branches=MICRO_BRANCHES)
    assert asked(flash) == ["clean-up", "int8", "int4", "encode", "channels"]
    assert [c.name for c in flash if c.branch == "channels"][:2] == [
        "channels-25",
        "channels-25-int4",
    ]


def test_fewer_channels_end_where_too_much_is_lost() -> None:
    tried = walked(micro_state(Limits(max_ram=9)), lambda _: "misses", branches=MICRO_BRANCHES)
    assert [c.name for c in tried if c.branch == "channels"] == ["channels-25"]
    wanted = ["clean-up", "int8", "int16x8", "ranges", "equalize", "round", "channels"]
    assert asked(tried) == wanted


@pytest.mark.parametrize("can_train", [True, False])
def test_every_recipe_of_a_microcontroller_ends_with_its_memory(can_train: bool) -> None:
    state = replace(
        micro_state(Limits(max_flash=9), can_train), needs=PlaceNeeds(True, arrange=ARRANGE)
    )
    tried = walked(state, lambda _: "misses", loses=False, branches=MICRO_BRANCHES)
    names = [candidate.name for candidate in tried]
    assert len(set(names)) == len(names)
    for candidate in tried:
        recipe = parse(state.fit(candidate).recipe)
        assert step_name(recipe[-1]) == "arrange"
        assert text_of(recipe) == state.fit(candidate).recipe
        assert candidate.name == "cleaned" or "io=int8" in state.fit(candidate).recipe
