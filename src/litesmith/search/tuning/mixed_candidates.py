"""Candidates in mixed precision, found from what each op loses; the same ones after a restart."""

import json
from collections.abc import Iterator
from hashlib import sha256
from typing import cast

from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.data.sample_splits import take_some
from litesmith.errors import LitesmithError
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import Recipe, apply, parse, step_name, text_of
from litesmith.phrases import phrase
from litesmith.search.trial.candidate import Candidate
from litesmith.search.trial.trial_record import Record
from litesmith.search.trial.trial_runner import Workshop
from litesmith.search.tuning.decision_tree import EIGHT_BITS, State
from litesmith.search.tuning.mixed_precision import Mixture, Tried, mixtures, next_mixture
from litesmith.search.tuning.op_sensitivity import sensitivities
from litesmith.workers.engine import Lost

# What telling the ops apart may take.
_SECONDS = 60.0


def mixed_candidates(workshop: Workshop, state: State) -> Iterator[Candidate]:
    """Ever more ops in float until it fits, then as few as will do."""
    base = _base(state)
    if base is None:
        return
    try:
        ladder = _ladder(workshop, base, slower=state.is_small_wanted)
    except Lost:
        raise
    except LitesmithError:  # control flow, or a target without profiles: nothing can be told apart
        return
    tried: list[Tried] = []
    while (mixture := next_mixture(ladder, tried)) is not None:
        name = f"mixed-{len(mixture.ops)}"
        why = phrase("{count} ops that int8 ruins stay float", len(mixture.ops))
        yield Candidate(name, "mixed", mixture.recipe(base), why)
        tried.append(Tried(mixture.ops, state.records[name].room.estimate >= 0))
    fitting = [one for one in ladder if Tried(one.ops, True) in tried]
    is_fast = workshop.asked.place.has_own_kernels
    is_wanted = bool(fitting) and (state.is_small_wanted or is_fast)
    if is_wanted and fitting[0].can_be_wide(_front_of(workshop, base)[0]):
        name = f"mixed-{len(fitting[0].ops)}-int16"
        how = phrase("fast in Litesmith's kernels") if is_fast else phrase("small, but slow")
        why = phrase("where the range is what int8 lacks, 16 bits may do: {how}", how)
        yield Candidate(name, "mixed", fitting[0].wide_recipe(base), why)


def _base(state: State) -> str | None:
    """The recipe of the int8 model that loses least; training cannot be mixed."""
    found = [r for r in state.records.values() if r.branch in EIGHT_BITS and r.value is not None]
    made = [r for r in found if any(step_name(s) == "quantize" for s in parse(r.trial.recipe))]
    return max(made, key=_room).trial.recipe if made else None


def _room(record: Record) -> float:
    return record.room.estimate


def _ladder(workshop: Workshop, base: str, *, slower: bool) -> tuple[Mixture, ...]:
    """The mixtures worth a try, kept in the folder: they come from times, which never repeat."""
    calibration = workshop.split.calibration.digest
    parts = (workshop.place, workshop.digest, calibration, str(workshop.asked.place), base, slower)
    key = sha256(repr(parts).encode()).hexdigest()
    known = workshop.folder.evidence(f"mixtures-{key}")
    if known is None:
        rows = [mixture._asdict() for mixture in _found(workshop, base, slower)]
        known = {"schema": 1, "recipe": base, "mixtures": rows}
        workshop.folder.write_evidence(f"mixtures-{key}", known)
        known = json.loads(json.dumps(known))
    rows = cast(list[dict[str, object]], known["mixtures"])
    return tuple(_mixture(row) for row in rows)


def _mixture(row: dict[str, object]) -> Mixture:
    ops = tuple(cast(list[int], row["ops"]))
    return Mixture(ops, cast(float, row["damage"]), cast(float, row["us"]), bool(row["is_range"]))


def _found(workshop: Workshop, base: str, slower: bool) -> tuple[Mixture, ...]:
    reference, front = _front_of(workshop, base)
    few = take_some(workshop.split.calibration, CALIBRATION_SAMPLES)
    alone = tuple(step for step in front if step_name(step) == "quantize")
    quantized = apply(reference, alone, context_of(few)).model
    on = workshop.asked.place.cpu or workshop.asked.place.scores
    found = sensitivities(
        reference,
        quantized,
        few,
        seconds=_SECONDS,
        runs=workshop.asked.runs,
        on=on,
        engine=workshop.engine,
    )
    return mixtures(reference, found, slower=slower)


def _front_of(workshop: Workshop, base: str) -> tuple[Model, Recipe]:
    """The float model that the recipe quantizes, and the rest of the recipe."""
    recipe = parse(base)
    place = next(n for n, step in enumerate(recipe) if step_name(step) == "quantize")
    few = take_some(workshop.split.calibration, CALIBRATION_SAMPLES)
    before = apply(workshop.model, parse(text_of(recipe[:place])), context_of(few)).model
    return before, recipe[place:]
