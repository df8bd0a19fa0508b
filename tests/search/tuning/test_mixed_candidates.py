"""Mixtures of float and integers that a search asks for, and asks for again after a restart."""

from functools import partial
from pathlib import Path

import numpy as np

from litesmith.data.sources import open_data
from litesmith.evidence.folder import Folder
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import parse, step_name
from litesmith.search.trial.budget import Budget, Goal, Limits
from litesmith.search.trial.data_split import split
from litesmith.search.trial.target_place import Place
from litesmith.search.tuning.decision_tree import BRANCHES
from litesmith.search.tuning.mixed_precision import mixed_candidates, recipe_by_blocks
from litesmith.search.tuning.search_state import Candidate, FromTrials, State
from litesmith.search.tuning.tune_trials import TuneTrials
from litesmith.tflite.file import load, save
from tests.search.choosing.taught import BLINK, record
from tests.zoo import noise
from tests.zoo_blocks import tokens, transformer

WIDE = 192
BASE = "cleanup | fold | fuse | quantize | correct"


def loud() -> Model:
    """Layers in a row; what the second one writes has a channel far beyond all others."""
    b = Builder()
    x = b.input("x", (1, WIDE))
    for number in range(10):
        weight = noise(WIDE, WIDE, seed=number, scale=WIDE**-0.5)
        weight[0] *= 3000 if number == 1 else 1
        weight[:, 0] /= 3000 if number == 2 else 1
        x = b.op("FULLY_CONNECTED", x, weight, noise(WIDE, seed=number + 50, scale=0.1))
    return b.model(x)


def samples_of(model: Model) -> np.ndarray | dict[str, np.ndarray]:
    """Sentences for a transformer, noise for what takes one vector."""
    if len(model.main.inputs) == 1:
        return noise(90, WIDE, seed=3)
    rows = tokens(90)
    return {
        tensor.name: np.concatenate([row[place] for row in rows])
        for place, tensor in enumerate(model.main.inputs)
    }


def workshop(place: Path) -> TuneTrials:
    """On a target whose ops cannot be timed: their times are estimated, the same each time."""
    source = place / "model.tflite"
    if not source.exists():
        save(loud(), source)
    model = load(source)
    folder = Folder(place / "out")
    folder.path.mkdir(exist_ok=True)
    data = split(open_data(samples_of(model), model))
    asked = Goal(
        "latency", Budget.parse(min_snr="15"), Limits(), Place.parse("numpy"), "snr", runs=BLINK
    )
    return TuneTrials(folder, source, model, data, asked)


def state_of(made: TuneTrials) -> State:
    return State(made.model, "latency", records=made.records)


def tried(made: TuneTrials) -> list[Candidate]:
    """What is asked for, each measured in its turn."""
    made.try_candidate(Candidate("int8", "int8", BASE, ""))
    found: list[Candidate] = []
    for candidate in mixed_candidates(made, state_of(made)):
        found.append(candidate)
        made.try_candidate(candidate)
    return found


def test_mixtures_save_what_int8_ruins_and_are_the_same_after_a_restart(tmp_path: Path) -> None:
    first = workshop(tmp_path)
    asked = tried(first)
    assert first.records["int8"].status == "misses"
    assert asked and any(first.records[one.name].status == "fits" for one in asked)
    assert len({one.name for one in asked}) == len(asked)
    for one in asked:
        assert one.branch == "mixed"
        assert [step_name(step) for step in parse(one.recipe)][-1] == "correct"
    again = workshop(tmp_path)
    assert tried(again) == asked
    assert again.fresh == 0


def test_a_transformer_is_spared_by_its_blocks_and_has_its_masks_cut(tmp_path: Path) -> None:
    save(transformer(1, stretch=300), tmp_path / "model.tflite")
    made = workshop(tmp_path)
    state = state_of(made)
    state.from_trials = FromTrials(blocks=partial(recipe_by_blocks, made))
    for name in ("int8", "blocks", "ranges"):
        (branch,) = (one for one in BRANCHES if one.name == name)
        for candidate in branch.candidates(state):
            assert "masks" in [step_name(step) for step in parse(candidate.recipe)]
            made.try_candidate(candidate)
    assert "keep=" in made.records["int8-blocks"].recipe
    snr = [made.records[name].value for name in ("int8", "int8-blocks")]
    assert snr[0] is not None and snr[1] is not None and snr[1] > snr[0] + 6


def test_a_network_of_layers_has_no_blocks_to_spare(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    state = state_of(made)
    state.from_trials = FromTrials(blocks=partial(recipe_by_blocks, made))
    (branch,) = (one for one in BRANCHES if one.name == "blocks")
    made.try_candidate(Candidate("int8", "int8", BASE, ""))
    assert branch.why_not(state) == "the model is no transformer and no recurrent network"
    assert list(branch.candidates(state)) == []


def test_without_a_scored_int8_model_there_is_nothing_to_mix(tmp_path: Path) -> None:
    made = workshop(tmp_path)
    assert list(mixed_candidates(made, state_of(made))) == []
    made.records["int8"] = record("int8", status="refused", accuracy=None)
    assert list(mixed_candidates(made, state_of(made))) == []
    assert not (made.folder.path / "evidence").exists()


def test_a_model_that_int8_does_not_harm_has_no_mixture(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (1, WIDE))
    save(b.model(b.op("RELU", x)), tmp_path / "model.tflite")
    made = workshop(tmp_path)
    made.try_candidate(Candidate("int8", "int8", BASE, ""))
    found = list(mixed_candidates(made, state_of(made)))
    assert found == []
