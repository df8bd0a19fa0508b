"""Chooses the recipes that `quantize` tries, by effort and scheme, and carries them out."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.accuracy.paired import Influence, estimate
from litesmith.anatomy.findings import TIDY
from litesmith.blocks.attention import attentions
from litesmith.blocks.wiring import Wiring
from litesmith.calibration.context import context_of
from litesmith.calibration.four_bits import four_bit_steps
from litesmith.calibration.observe import Spread
from litesmith.calibration.sequence_forms import with_sequence_forms
from litesmith.data.sample_splits import part_of, take_some
from litesmith.data.samples import Data
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.ops import OPS
from litesmith.ir.softmax_scores import scores_of
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import Recipe, apply, parse, step_name
from litesmith.passes.core.schemes import SCHEMES, Names
from litesmith.passes.core.step import Change, Context
from litesmith.passes.quantizing.correct import Correct
from litesmith.passes.quantizing.equalize import Equalize
from litesmith.passes.quantizing.masks import Masks
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.quantizing.round import Round
from litesmith.passes.tidy.fold import Fold
from litesmith.passes.tidy.hoist import Hoist, is_worth_hoisting
from litesmith.phrases import phrase
from litesmith.precision.fastest_forms import (
    FastestForms,
    apply_forms,
    before_quantize,
    estimate_forms,
    fastest_forms,
    quantize_place,
    recurrent_kinds,
)
from litesmith.progress import Progress, silent
from litesmith.run.core.target import Target
from litesmith.units import score_text, time_text

EFFORTS = ("quick", "default", "best")

_ALONE = "quantize"

# The default remedies: 4 bits are useless unless rounding looks at the data; for 8 bits it is
# enough to restore the means.
_DEFAULT = {
    "dynamic": "quantize | correct",
    "dynamic-int4": "quantize | round",
    "float16": _ALONE,
    "int16x8": "quantize | correct",
    "int8": "quantize | correct",
    "w4a8": "quantize | round",
    "weight-int4": "quantize | round",
    "weight-int8": "quantize | correct",
}

# Weights of this many bits need care for each layer.
_FEW_BITS = 4

# One sample in this many is held out; with fewer held-out samples than this, nothing is chosen.
_HELD_OUT, _FEWEST = 4, 8

# Recipes are tried on at most this many samples; the chosen one is then built with all of them.
_MOST_TRIED = 64

# At 8 bits, rounding gains little, and more samples add nothing.
_FINER = Round(samples=64)


class Plan(NamedTuple):
    """The recipes to choose from, the safest first, with notes for the user.

    is_measured  False where nothing should be timed
    is_named     True where the user named ops and thereby settled their forms
    """

    recipes: tuple[Recipe, ...]
    notes: tuple[str, ...] = ()
    is_measured: bool = True
    is_named: bool = False


class Outcome(NamedTuple):
    """The recipe that was used, its result, and notes for the user.

    forms  the ops that stay float to save time; None where that was not asked for
    """

    recipe: Recipe
    change: Change
    notes: tuple[str, ...]
    forms: FastestForms | None = None


def plan(model: Model, step: Quantize, effort: str, *, has_data: bool, on_cpu: bool = True) -> Plan:
    """Plans an effort for a model and a scheme: for a CPU, or for hardware that takes only
    integers."""
    if effort not in EFFORTS:
        raise BadInput("no effort {effort!r}; there are {efforts}", effort, ", ".join(EFFORTS))
    if step.to not in SCHEMES:
        raise BadInput(
            "no scheme {to!r} to quantize to; there are {schemes}", step.to, ", ".join(SCHEMES)
        )
    cured = cures(model, step.to) if has_data else ()
    if effort == "quick":
        return Plan(((*cured, step),), is_measured=False, is_named=bool(step.keep or step.only))
    usual = _DEFAULT[step.to]
    texts = (usual,)
    if effort == "best" and usual != _ALONE:
        texts = (usual, f"equalize | {usual}", _ALONE)
    notes: tuple[str, ...] = ()
    if not has_data and usual != _ALONE:
        texts = (_ALONE,)
        notes = (
            phrase(
                "without data, {usual} is left out; with --data the result is more accurate",
                usual.replace("quantize | ", ""),
            ),
        )
    bits, names = DTYPES[SCHEMES[step.to].weights].bits, (*step.keep, *step.only)
    front = (*tidying(model, names, dense=bits <= 8), *cured)
    steps: Recipe = (step,)
    if bits == _FEW_BITS and not names:
        steps = four_bit_steps(before_quantize(model, front), step, on_cpu=on_cpu)
    recipes = tuple((*front, *_with(steps, text)) for text in texts)
    return Plan(recipes, notes, is_named=bool(names))


def cures(model: Model, to: str) -> Recipe:
    """The steps that attention needs before it is quantized; they neither add nor remove an op."""
    is_masked = any(one.masks for one in attentions(Wiring.of(model.main)))
    return (Masks(),) if SCHEMES[to].is_integer and is_masked else ()


def cured_recipe(model: Model, recipe: Recipe, data: Data) -> tuple[Recipe, tuple[str, ...]]:
    """Adds to a recipe that ends in `qat` the steps that transformers and recurrent networks need
    before they are quantized; returns it with notes for the user."""
    *front, step = recipe
    assert isinstance(step, Qat)
    is_named = step.only or any(isinstance(name, int) for name in step.keep)
    if step.to != "int8" or step.io != "float" or is_named:
        return recipe, ()
    recipe = (*front, *cures(model, step.to), step)
    few = context_of(take_some(data, _MOST_TRIED))
    try:
        (made,), notes = with_sequence_forms(model, (recipe,), few, is_integer=False)
    except CannotApply:
        return recipe, ()
    return made, notes


def tidying(model: Model, names: Names, *, dense: bool = False) -> Recipe:
    """The steps that come first. None where ops are named by number, because tidying would renumber
    them. Float16 weights are unpacked, since they are stored anew; so are sparse weights where
    `dense`, or no step could change their layers. The part of an unrolled recurrence that depends
    only on its inputs is computed at once, unless ops are named: a named op could be among those
    that go."""
    if any(isinstance(name, int) for name in names):
        return ()
    is_half = any(t.is_const and t.dtype == "float16" for g in model.graphs for t in g.tensors)
    is_sparse = dense and any(op.kind == "DENSIFY" for _, _, op in model.ops())
    fold = Fold(float16=is_half, sparse=is_sparse)
    front = tuple(fold if isinstance(step, Fold) else step for step in parse(TIDY))
    # Layers can only be seen to share weights once these are unpacked.
    plain = apply(model, front).model if is_half and not names else model
    return (*front, Hoist()) if not names and is_worth_hoisting(plain) else front


def _with(steps: Recipe, text: str) -> Recipe:
    """Parses a recipe, with `steps` in place of its step `quantize`."""
    parts = (steps if isinstance(one, Quantize) else (one,) for one in parse(text))
    return tuple(step for part in parts for step in part)


def carry_out(
    model: Model,
    plan: Plan,
    data: Data | None,
    *,
    target: Target | None = None,
    spread: Spread | None = None,
    progress: Progress = silent,
) -> Outcome:
    """Carries out a plan. Of several recipes, the result nearest to the float model wins. Ops that
    are faster in float on the target stay float.

    Where the data is spread over workers, they observe it; the parts that only decide between
    recipes stay here.
    """
    forms = None
    plan = _by_structure(model, plan, data, is_integer=target is None)
    if target is not None and target.kind == "cpu" and not plan.is_named:
        plan, forms = _by_kernels(model, plan, target)
    done = _carry_out(model, plan, data, spread, progress)
    return done._replace(forms=forms)


def _quantizing(plan: Plan) -> Quantize:
    """The last step that quantizes; the first one where the others only follow it in 8 bits."""
    steps = [step for step in plan.recipes[0] if isinstance(step, Quantize)]
    return steps[0] if DTYPES[SCHEMES[steps[0].to].weights].bits == _FEW_BITS else steps[-1]


def _by_structure(model: Model, plan: Plan, data: Data | None, *, is_integer: bool) -> Plan:
    """Adds wider forms to the plan where int8 would ruin a transformer or a recurrent network. The
    plan stays as it is where names of ops that the user gave would no longer fit."""
    step = _quantizing(plan)
    is_integer = is_integer or step.io != "float"
    is_named = bool(step.only or (is_integer and step.keep)) or any(
        isinstance(name, int) for name in step.keep
    )
    if step.to != "int8" or is_named or data is None or data.items.is_random:
        return plan
    few = context_of(take_some(data, _MOST_TRIED))
    try:
        recipes, notes = with_sequence_forms(model, plan.recipes, few, is_integer=is_integer)
    except CannotApply:
        return plan
    return plan._replace(recipes=recipes, notes=(*plan.notes, *notes))


def _by_kernels(model: Model, plan: Plan, target: Target) -> tuple[Plan, FastestForms | None]:
    """Keeps the ops in float that are faster there. They are timed only where the model has kinds
    of ops that tend to be; a quick plan goes by kinds alone."""
    recipe, step = plan.recipes[0], _quantizing(plan)
    if step.to == "w4a8" and step.io == "float":
        return with_slow_kinds(model, plan), None
    if step.to != "int8" or step.io != "float":
        return plan, None
    found = estimate_forms(model, recipe)
    is_suspect = found is not None and (found.is_other or bool(recurrent_kinds(model)))
    if is_suspect and plan.is_measured:
        found = fastest_forms(model, recipe, target)
    if found is None or not found.is_other:
        return plan, found
    recipes = tuple(apply_forms(recipe, found) for recipe in plan.recipes)
    return plan._replace(recipes=recipes, notes=(*plan.notes, *_kept_notes(found, plan))), found


def with_slow_kinds(model: Model, plan: Plan) -> Plan:
    """Keeps whole kinds of ops in float, by their times on another machine, in a plan of several
    steps: once a step has changed the graph, numbers would name other ops. Layers never stay float
    here, since quantizing them is the purpose of the plan."""
    place = quantize_place(plan.recipes[0])
    found = estimate_forms(model, (*plan.recipes[0][:place], Quantize()))
    if found is None:
        return plan
    # A rewrite would renumber the ops, so the ops that it would rewrite stay float instead.
    said = {way.partition(":")[0] for way in found.rewrites}
    rows = {row.kind: row for row in (*found.slow, *found.kept)}
    named = [rows[kind] for kind in rows if kind in found.keep or kind in said]
    slow = [row for row in named if not OPS[row.kind].is_layer]
    if not slow:
        return plan
    kinds = tuple(sorted(row.kind for row in slow))
    recipes = tuple(
        tuple(
            replace(step, keep=(*step.keep, *kinds)) if isinstance(step, Quantize) else step
            for step in recipe
        )
        for recipe in plan.recipes
    )
    told = ", ".join(f"{row.ops} {row.kind}" for row in slow)
    note = phrase("{told}, as int8 tends to be slower", phrase("{kinds}: left float", told))
    return plan._replace(recipes=recipes, notes=(*plan.notes, note))


def _kept_notes(found: FastestForms, plan: Plan) -> Iterator[str]:
    stored = ", ".join(found.stored)
    kept = [one for one in found.kept if one.kind not in found.stored]
    kinds = ", ".join(f"{one.ops} {one.kind}" for one in kept)
    told = phrase("{kinds}: left float", kinds) if kinds else ""
    if stored:
        beside = phrase("{kinds}: float data, int8 weights", stored)
        told = phrase("{said}; {told}", told, beside) if told else beside
    if found.rewrites:
        said = phrase("{ways}: said with other ops", ", ".join(found.rewrites))
        told = phrase("{said}; {told}", said, told) if told else said
    if not plan.is_measured:
        yield phrase("{told}, as int8 tends to be slower", told)
        return
    before, after = time_text(found.integer_us), time_text(found.predicted_us)
    if found.by_runs:
        yield phrase("{told}; {time} a run in int8 and {time2} so", told, before, after)
        return
    yield phrase(
        "{told}; {time} a run in int8 and {time2} so, by the times of single ops",
        told,
        before,
        after,
    )


def _carry_out(
    model: Model, plan: Plan, data: Data | None, spread: Spread | None, progress: Progress
) -> Outcome:
    surest = plan.recipes[0]
    if len(plan.recipes) > 1 and data is not None and len(data) >= _FEWEST * _HELD_OUT:
        found = _nearest(model, plan.recipes, data, progress)
        if found is not None:
            return found._replace(notes=(*plan.notes, *found.notes))
    context = context_of(data, spread=spread, progress=progress)
    try:
        return Outcome(surest, apply(model, surest, context), plan.notes)
    except CannotApply as error:
        return _without_tuning(model, plan, context_of(data, progress=progress), error)


def _without_tuning(model: Model, plan: Plan, context: Context, error: CannotApply) -> Outcome:
    """The recipe without the steps after `quantize`, which do not suit every model."""
    recipe = plan.recipes[0]
    end = max(n for n, step in enumerate(recipe, 1) if isinstance(step, Quantize))
    if end == len(recipe):
        raise error
    change = apply(model, recipe[:end], context)
    return Outcome(recipe[:end], change, (*plan.notes, phrase("left out: {error}", error)))


def _nearest(
    model: Model, recipes: tuple[Recipe, ...], data: Data, progress: Progress
) -> Outcome | None:
    """Tries the recipes on held-out samples, and rebuilds the best with all samples: the one whose
    outputs before a softmax are nearest to the float model's. None where the safest recipe does not
    apply.

    If the best one has `correct`, it is also tried with `round` instead.
    """
    fitting = part_of(data, _HELD_OUT, held_out=False, most=_MOST_TRIED)
    judging = part_of(data, _HELD_OUT, held_out=True)
    context = context_of(data, progress=progress)
    worth = [recipe for recipe in recipes if _is_worth_trying(model, recipe, context)]
    tried = _fitting({recipe: _tried(model, recipe, fitting, judging) for recipe in worth})
    if recipes[0] not in tried:
        return None
    corrected = [recipe for recipe in tried if any(isinstance(step, Correct) for step in recipe)]
    if corrected:
        better = _preferred({recipe: tried[recipe] for recipe in corrected})
        finer = tuple(_FINER if isinstance(step, Correct) else step for step in better)
        tried |= _fitting({finer: _tried(model, finer, fitting, judging)})
    best = _preferred(tried)
    told = ", ".join(f"{_short(r)} {score_text(e.value, 'dB')}" for r, e in tried.items())
    counts = phrase(
        "tried on {count} samples, judged by the other {count2}", len(fitting), len(judging)
    )
    is_highest = tried[best].value == max(evaluation.value for evaluation in tried.values())
    why = (
        ""
        if is_highest
        else phrase("; {short} is taken, none is nearer beyond chance", _short(best))
    )
    return Outcome(
        best,
        apply(model, best, context),
        (phrase("{counts}: {told}{why}", counts, told, why),),
    )


def _tried(model: Model, recipe: Recipe, fitting: Data, judging: Data) -> Evaluation | None:
    """How near the result of a recipe is to the float model, in dB; None where the recipe does not
    apply."""
    try:
        change = apply(model, recipe, context_of(fitting))
    except CannotApply:
        return None
    ours, original = _before_softmax(change.model), _before_softmax(model)
    return evaluate_all([ours], judging, against=original, metric="snr")[0]


def _fitting(tried: Mapping[Recipe, Evaluation | None]) -> dict[Recipe, Evaluation]:
    return {recipe: found for recipe, found in tried.items() if found is not None}


def _preferred(tried: Mapping[Recipe, Evaluation]) -> Recipe:
    """The first recipe, unless another is nearer to the float model beyond chance.

    The highest of a few noisy numbers is often not the best: with 10 samples, picking it was worse
    on new samples than not choosing at all, by up to 0.5 dB.
    """
    best, *others = tried
    for recipe in others:
        if _is_nearer(tried[recipe], tried[best]):
            best = recipe
    return best


def _is_nearer(found: Evaluation, than: Evaluation) -> bool:
    """True where the whole interval of the gain per sample, in dB, is above 0."""
    gained = np.subtract(found.measurement.samples, than.measurement.samples)
    mean = float(gained.mean())
    return estimate(Influence(mean, gained - mean, gained.size)).low > 0


def _is_worth_trying(model: Model, recipe: Recipe, context: Context) -> bool:
    """False where a step before `quantize` finds nothing to do, so that the recipe equals another
    one."""
    for number, step in enumerate(recipe):
        if isinstance(step, Equalize):
            before = apply(model, recipe[:number], context).model
            return bool(step.apply(before, context).touched)
    return True


def _short(recipe: Recipe) -> str:
    """A recipe in words, reduced to the steps that distinguish it."""
    common = (*TIDY.split(" | "), _ALONE)
    return " | ".join(name for name in map(step_name, recipe) if name not in common) or _ALONE


def _before_softmax(model: Model) -> Model:
    """The model cut before its last softmax, where it ends in one, so that scores become outputs.

    A softmax hides how far scores have moved when one class is sure to win.
    """
    outputs = [scores_of(model.main, tensor) for tensor in model.main.outputs]
    graph = regraph(model.main, outputs=outputs)
    return replace(with_graphs(model, (graph, *model.graphs[1:])), signatures=(), metadata=())
