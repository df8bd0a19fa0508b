"""Candidates in mixed precision, found from what each op loses; the same ones after a restart."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.data.sample_splits import take_some
from litesmith.errors import LitesmithError
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import Recipe, apply, parse, step_name, text_of
from litesmith.phrases import phrase
from litesmith.search.trial.tried_model import TriedModel
from litesmith.search.tuning.decision_tree import EIGHT_BITS, Candidate, State
from litesmith.search.tuning.mixed_precision import Mixture, TriedMixture, mixtures, next_mixture
from litesmith.search.tuning.op_sensitivity import sensitivities
from litesmith.search.tuning.tune_trials import TuneTrials
from litesmith.workers.engine import Lost

# What telling the ops apart may take.
_SECONDS = 60.0


class Mixtures(NamedTuple):
    """evidence/mixtures-KEY.json: the mixtures of one recipe that are worth a try."""

    schema: Literal[1]
    recipe: str
    mixtures: tuple[Mixture, ...]


def mixed_candidates(trials: TuneTrials, state: State) -> Iterator[Candidate]:
    """Ever more ops in float until it fits, then as few as will do."""
    base = _base(state)
    if base is None:
        return
    try:
        ladder = _ladder(trials, base, slower=state.is_small_wanted)
    except Lost:
        raise
    except LitesmithError:  # control flow, or a target without profiles: nothing can be told apart
        return
    tried: list[TriedMixture] = []
    while (mixture := next_mixture(ladder, tried)) is not None:
        name = f"mixed-{len(mixture.ops)}"
        why = phrase("{count} ops that int8 ruins stay float", len(mixture.ops))
        yield Candidate(name, "mixed", mixture.recipe(base), why)
        tried.append(TriedMixture(mixture.ops, state.records[name].room.estimate >= 0))
    fitting = [one for one in ladder if TriedMixture(one.ops, True) in tried]
    is_fast = trials.goal.place.has_own_kernels
    is_wanted = bool(fitting) and (state.is_small_wanted or is_fast)
    if is_wanted and fitting[0].can_be_wide(_front_of(trials, base)[0]):
        name = f"mixed-{len(fitting[0].ops)}-int16"
        how = phrase("fast in Litesmith's kernels") if is_fast else phrase("small, but slow")
        why = phrase("where the range is what int8 lacks, 16 bits may do: {how}", how)
        yield Candidate(name, "mixed", fitting[0].wide_recipe(base), why)


def _base(state: State) -> str | None:
    """The recipe of the int8 model that loses least; training cannot be mixed."""
    found = [r for r in state.records.values() if r.branch in EIGHT_BITS and r.value is not None]
    made = [r for r in found if any(step_name(s) == "quantize" for s in parse(r.recipe))]
    return max(made, key=_room).recipe if made else None


def _room(record: TriedModel) -> float:
    return record.room.estimate


def _ladder(trials: TuneTrials, base: str, *, slower: bool) -> tuple[Mixture, ...]:
    """The mixtures worth a try, kept in the folder: they come from times, which never repeat."""
    calibration, place = trials.split.calibration.digest, str(trials.goal.place)
    parts = (trials.runner.place, trials.digest, calibration, place, base, slower)
    name = f"mixtures-{trials.runner.key(*parts)}"
    known = trials.folder.evidence(Mixtures, name)
    if known is None:
        known = Mixtures(1, base, _find_mixtures(trials, base, slower))
        trials.folder.write_evidence(name, known)
    return known.mixtures


def _find_mixtures(trials: TuneTrials, base: str, slower: bool) -> tuple[Mixture, ...]:
    reference, front = _front_of(trials, base)
    few = take_some(trials.split.calibration, CALIBRATION_SAMPLES)
    alone = tuple(step for step in front if step_name(step) == "quantize")
    quantized = apply(reference, alone, context_of(few)).model
    on = trials.goal.place.cpu or trials.goal.place.scores
    found = sensitivities(
        reference,
        quantized,
        few,
        seconds=_SECONDS,
        runs=trials.goal.runs,
        on=on,
        engine=trials.engine,
    )
    return mixtures(reference, found, slower=slower)


def _front_of(trials: TuneTrials, base: str) -> tuple[Model, Recipe]:
    """The float model that the recipe quantizes, and the rest of the recipe."""
    recipe = parse(base)
    place = next(n for n, step in enumerate(recipe) if step_name(step) == "quantize")
    few = take_some(trials.split.calibration, CALIBRATION_SAMPLES)
    before = apply(trials.model, parse(text_of(recipe[:place])), context_of(few)).model
    return before, recipe[place:]
