"""Mixed precision: which ops of a quantized model stay float, as few as possible.

A tensor's form stops doing damage once the op that writes the tensor and all its readers are float;
weights stop once their own op is float. The price is the time that these ops lose, plus conversions
at the borders: keeping a neighbour moves a border, and a gap between kept ops may cost more in
conversions than it saves.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, TypeVar

from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.calibration.sequence_forms import with_sequence_forms
from litesmith.data.sample_splits import take_some
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model
from litesmith.passes.core.layers import layer_of
from litesmith.passes.core.recipe import Recipe, apply, parse, text_of
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.precision.assignment import assign
from litesmith.precision.fastest_forms import (
    FLOAT,
    FastestForms,
    apply_forms,
    costs_of,
    fastest_forms,
    forms_of,
    readers_of,
)
from litesmith.precision.form_costs import FormCosts
from litesmith.progress import Status
from litesmith.search.tuning.op_sensitivity import Sensitivity, passes_on, sensitivities
from litesmith.search.tuning.search_state import EIGHT_BITS, Candidate, State
from litesmith.search.tuning.tune_trials import TuneTrials
from litesmith.workers.engine import Lost

Kept = frozenset[int]

# Damage is measured in units that labels hardly notice. A part below this share of the total, or
# below this share of a ruinous amount, starts no mixture; neither does a model with less in total.
_WORTH, _RUINOUS, _LEAST_DAMAGE = 0.005, 10.0, 1e-3

_MOST_SEEDS = 100

# Two mixtures this near in time, as a share of the float model's, are not worth two trials.
_NEAR = 0.01
# A gain below this is not a gain, in microseconds.
_GAIN_US = 0.5

# The time for telling the ops apart.
_SECONDS = 60.0


class Mixture(NamedTuple):
    """A set of ops that stay float.

    ops       their numbers in the model that `quantize` receives
    damage    the damage of all other ops, each measured alone; 1 is hardly noticed by labels
    us        the time of the ops, with the conversions
    is_range  True where the ops need float because of their activations rather than their weights
    """

    ops: tuple[int, ...]
    damage: float
    us: float
    is_range: bool

    def recipe(self, base: str) -> str:
        """The recipe with these ops kept float, besides those that it already keeps."""
        recipe, place, step = _quantize_step(base)
        kept = replace(step, keep=(*step.keep, *self.ops))
        return text_of((*recipe[:place], kept, *recipe[place + 1 :]))

    def wide_recipe(self, base: str) -> str:
        """The recipe with int16 in place of float: integers only and small weights, but slow
        kernels. Useful for size, or for a file without float."""
        recipe, place, step = _quantize_step(base)
        wide = Quantize(to="int16x8", only=self.ops)
        return text_of((*recipe[:place], wide, step, *recipe[place + 1 :]))

    def can_be_wide(self, reference: Model) -> bool:
        """True where more bits for activations would suffice, and every op has a kernel for
        them."""
        kinds = {reference.main.ops[place].kind for place in self.ops}
        return self.is_range and all("int16" in OPS[kind].versions for kind in kinds)


class TriedMixture(NamedTuple):
    """The ops of a tried mixture, and whether its accuracy was within the budget."""

    ops: tuple[int, ...]
    fits: bool


def _quantize_step(base: str) -> tuple[Recipe, int, Quantize]:
    recipe = parse(base)
    for place, step in enumerate(recipe):
        if isinstance(step, Quantize):
            return recipe, place, step
    raise BadInput("recipe {base!r}: has no step quantize that could keep ops", base)


def next_mixture(ladder: Sequence[Mixture], tried: Sequence[TriedMixture]) -> Mixture | None:
    """Picks the next mixture to try; None once the smallest that fits is known, or the last does
    not fit.

    The walk begins with the first mixture whose damage should not matter, goes on in growing
    strides until one fits, and then bisects between that one and the last that does not fit.
    """
    places = {mixture.ops: place for place, mixture in enumerate(ladder)}
    known = {places[one.ops]: one.fits for one in tried if one.ops in places}
    fitting = min((place for place, fits in known.items() if fits), default=len(ladder))
    missing = [place for place, fits in known.items() if not fits and place < fitting]
    last = max(missing, default=-1)
    if fitting - last <= 1:
        return None
    if fitting < len(ladder):
        return ladder[(last + fitting) // 2]
    if not missing:
        return ladder[_promising(ladder)]
    stride = 1 << (len(missing) - 1)
    return ladder[min(last + stride, len(ladder) - 1)]


def _promising(ladder: Sequence[Mixture]) -> int:
    harmless = (place for place, mixture in enumerate(ladder) if mixture.damage <= 1)
    return next(harmless, len(ladder) - 1)


def mixtures(
    reference: Model, found: Sequence[Sensitivity], *, slower: bool = False
) -> tuple[Mixture, ...]:
    """Builds growing mixtures: each keeps all that the one before keeps, takes longer and does less
    damage.

    The next part to keep is the one that removes most damage for its time. Mixtures slower than the
    float model are left out, unless `slower` asks for them for the sake of size; then no op is kept
    only to save conversions.
    """
    choice = _Choice(reference.main, found)
    whole = choice.damage(frozenset())
    if whole < _LEAST_DAMAGE:
        return ()
    worst = sorted(choice.parts, key=lambda part: -part.damage)[:_MOST_SEEDS]
    seeds = [part.needs for part in worst if part.damage >= _WORTH * min(whole, _RUINOUS)]
    rungs = [_rung(choice, kept) for kept in _growing(choice, seeds, settles=not slower)]
    layers = {place for place, op in enumerate(reference.main.ops) if layer_of(op)}
    mixed = [rung for rung in rungs if choice.free & layers - set(rung.ops)]
    if slower:
        return tuple(mixed)
    useful = [rung for rung in mixed if rung.us < choice.float_us]
    return tuple(_apart(useful, choice.float_us))


def _growing(choice: "_Choice", seeds: Sequence[Kept], *, settles: bool) -> Iterator[Kept]:
    kept: Kept = frozenset()
    while True:
        wider = [kept | seed for seed in seeds if not seed <= kept]
        if not wider:
            return
        damage, us = choice.damage(kept), choice.us(kept)

        def worth(more: Kept, damage: float = damage, us: float = us) -> float:
            cost = max(choice.us(more) - us, _NEAR * choice.float_us, _GAIN_US)
            return (damage - choice.damage(more)) / cost

        kept = max(wider, key=worth)
        kept = choice.settle(kept) if settles else kept
        yield kept


def _rung(choice: "_Choice", kept: Kept) -> Mixture:
    taken = [part for part in choice.parts if part.needs <= kept]
    of_weights = sum(part.damage for part in taken if part.is_weights)
    is_range = of_weights <= 0.1 * sum(part.damage for part in taken)
    return Mixture(tuple(sorted(kept)), choice.damage(kept), choice.us(kept), is_range)


def _apart(rungs: Sequence[Mixture], float_us: float) -> list[Mixture]:
    """Drops mixtures that are hardly cheaper than the next one, which does less damage."""
    far: list[Mixture] = []
    for rung in reversed(rungs):
        if not far or far[-1].us - rung.us >= _NEAR * float_us:
            far.append(rung)
    return far[::-1]


class _Damage(NamedTuple):
    """Some damage, and the ops that must all be float to remove it."""

    damage: float
    needs: Kept
    is_weights: bool


class _Choice:
    """The ops of a graph that can be integers or float, with the consequences of a choice."""

    def __init__(self, graph: Graph, found: Sequence[Sensitivity]) -> None:
        self._graph = graph
        self.free = frozenset(row.place for row in found if row.is_integer)
        self._readers = readers_of(graph)
        self._problem = costs_of(graph, _form_costs(graph, found))
        self.parts = [part for row in found for part in self._parts(row)]
        self.float_us = self.us(self.free)

    def damage(self, kept: Kept) -> float:
        """The remaining damage where these ops stay float."""
        return sum(part.damage for part in self.parts if not part.needs <= kept)

    def us(self, kept: Kept) -> float:
        return self._problem.of(forms_of(self._problem, kept))

    def settle(self, kept: Kept) -> Kept:
        """Adds all ops that are cheaper kept than left, given those already kept."""
        rows = [
            {FLOAT: row[FLOAT]} if place in kept else row
            for place, row in enumerate(self._problem.ops)
        ]
        forms = assign(replace(self._problem, ops=rows))
        return frozenset(place for place in self.free if forms[place] == FLOAT)

    def _parts(self, row: Sensitivity) -> Iterator[_Damage]:
        own = frozenset({row.place}) & self.free
        if row.weights > 0 and own:
            yield _Damage(row.weights, own, is_weights=True)
        needs = self._touching(row.place)
        if row.form > 0 and needs:
            yield _Damage(row.form, needs, is_weights=False)

    def _touching(self, place: int) -> Kept:
        """The op and all readers of its output, through ops that only move values."""
        ops = self._graph.ops
        tensors = [self._graph.inputs[-1 - place]] if place < 0 else list(ops[place].outputs)
        found = {place}
        while tensors:
            for reader in set(self._readers.get(tensors.pop(), ())) - found:
                found.add(reader)
                tensors += ops[reader].outputs if passes_on(ops[reader]) else ()
        return frozenset(found) & self.free


def _form_costs(graph: Graph, found: Sequence[Sensitivity]) -> FormCosts:
    rows = {row.place: row for row in found}
    none = Sensitivity(0, "")
    ops = [rows.get(place, none) for place in range(len(graph.ops))]
    made = {t: rows.get(-1 - number, none).border_us for number, t in enumerate(graph.inputs)}
    for place, op in enumerate(graph.ops):
        made |= dict.fromkeys(op.outputs, ops[place].border_us / max(1, len(op.outputs)))
    integers = tuple(row.integer_us if row.is_integer else None for row in ops)
    return FormCosts(tuple(row.float_us for row in ops), integers, made)


# As candidates of the search; the same ones after a restart.


class Fastest(NamedTuple):
    """evidence/fastest-KEY.json: the ops of one recipe that are faster in float; None where ops
    cannot be timed."""

    schema: Literal[1]
    recipe: str
    forms: FastestForms | None


def find_fastest_forms(trials: TuneTrials, base: str) -> FastestForms | None:
    """Finds the ops of a recipe that are faster in float on the target; the folder keeps the
    result."""
    target = trials.goal.place.cpu
    if target is None:
        return None

    def find() -> Fastest:
        trials.progress(Status(phrase("timing ops one by one, in float and in integers")))
        parts = (parse(base), target, trials.goal.runs, trials.engine)
        return Fastest(1, base, fastest_forms(trials.model, *parts))

    return _kept(trials, Fastest, "fastest", (base,), find).forms


class Mixtures(NamedTuple):
    """evidence/mixtures-KEY.json: the mixtures of one recipe that are worth trying."""

    schema: Literal[1]
    recipe: str
    mixtures: tuple[Mixture, ...]


def mixed_candidates(trials: TuneTrials, state: State) -> Iterator[Candidate]:
    """Proposes more and more ops in float until a mixture fits, then as few as suffice."""
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
        yield Candidate(name, "mixed", mixture.recipe(base), why, mixture.us)
        tried.append(TriedMixture(mixture.ops, state.records[name].room.estimate >= 0))
    fitting = [one for one in ladder if TriedMixture(one.ops, True) in tried]
    is_fast = trials.goal.place.has_own_kernels
    is_wanted = bool(fitting) and (state.is_small_wanted or is_fast)
    if is_wanted and fitting[0].can_be_wide(_before_quantizing(trials, base)[0]):
        name = f"mixed-{len(fitting[0].ops)}-int16"
        how = phrase("fast in Litesmith's kernels") if is_fast else phrase("small, but slow")
        why = phrase("where the range is what int8 lacks, 16 bits may do: {how}", how)
        yield Candidate(name, "mixed", fitting[0].wide_recipe(base), why)


def recipe_by_blocks(trials: TuneTrials, base: str) -> str:
    """The recipe with wider forms where int8 ruins a transformer or a recurrent network; "" for
    other networks. The forms follow from the blocks, so no op is measured, and the recipe keeps no
    op by its number."""
    few = take_some(trials.split.calibration, CALIBRATION_SAMPLES)
    try:
        (made,), notes = with_sequence_forms(
            trials.model, (parse(base),), context_of(few), is_integer=False
        )
    except CannotApply:
        return ""
    found = find_fastest_forms(trials, text_of(made)) if notes else None
    made = apply_forms(made, found) if found is not None else made
    return text_of(made) if notes else ""


def _base(state: State) -> str | None:
    """The recipe of the int8 model that loses least; a recipe with training cannot be mixed."""
    found = [r for r in state.records.values() if r.branch in EIGHT_BITS and r.value is not None]
    made = [r for r in found if any(isinstance(s, Quantize) for s in parse(r.recipe))]
    return max(made, key=lambda record: record.room.estimate).recipe if made else None


def _ladder(trials: TuneTrials, base: str, *, slower: bool) -> tuple[Mixture, ...]:
    """The mixtures worth trying. The folder keeps them, because they depend on times, which never
    repeat exactly."""

    def find() -> Mixtures:
        return Mixtures(1, base, _find_mixtures(trials, base, slower))

    return _kept(trials, Mixtures, "mixtures", (base, slower), find).mixtures


Found = TypeVar("Found", Fastest, Mixtures)


def _kept(
    trials: TuneTrials,
    sort: type[Found],
    name: str,
    about: tuple[object, ...],
    find: Callable[[], Found],
) -> Found:
    """Reads evidence of one type from the folder, or finds it now and stores it."""
    calibration, place = trials.split.calibration.digest, str(trials.goal.place)
    key = trials.runner.key(trials.runner.place, trials.digest, calibration, place, *about)
    known = trials.folder.evidence(sort, f"{name}-{key}")
    if known is None:
        known = find()
        trials.folder.write_evidence(f"{name}-{key}", known)
    return known


def _find_mixtures(trials: TuneTrials, base: str, slower: bool) -> tuple[Mixture, ...]:
    reference, step = _before_quantizing(trials, base)
    few = take_some(trials.split.calibration, CALIBRATION_SAMPLES)
    quantized = apply(reference, (step,), context_of(few, progress=trials.progress)).model
    on = trials.goal.place.cpu or trials.goal.place.scores
    found = sensitivities(
        reference,
        quantized,
        few,
        seconds=_SECONDS,
        runs=trials.goal.runs,
        on=on,
        engine=trials.engine,
        progress=trials.progress,
    )
    return mixtures(reference, found, slower=slower)


def _before_quantizing(trials: TuneTrials, base: str) -> tuple[Model, Quantize]:
    """The float model that the recipe quantizes, and the step that quantizes it."""
    recipe, place, step = _quantize_step(base)
    few = take_some(trials.split.calibration, CALIBRATION_SAMPLES)
    return apply(trials.model, recipe[:place], context_of(few)).model, step
