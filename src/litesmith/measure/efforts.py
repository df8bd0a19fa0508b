"""How much work `quantize` puts into accuracy: recipes by effort and scheme."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from math import inf
from typing import NamedTuple

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.types import Model, Op, Tensor
from litesmith.measure.accuracy import evaluate_all
from litesmith.measure.calibrate import context_of
from litesmith.measure.findings import TIDY
from litesmith.measure.samples import Data, Sample
from litesmith.passes.correct import Correct
from litesmith.passes.equalize import Equalize
from litesmith.passes.quantize import Quantize
from litesmith.passes.recipe import Recipe, apply, parse, step_name
from litesmith.passes.round import Round
from litesmith.passes.schemes import SCHEMES, Names
from litesmith.passes.step import Change, Context
from litesmith.units import score_text

EFFORTS = ("quick", "default", "best")

_ALONE = "quantize"

# What is done by default. Four bits are lost without rounding that looks at the data; eight need
# no more than the means put back.
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

# One sample in so many is held out, and no choice is made by fewer than this.
_HELD_OUT, _FEWEST = 4, 8

# A choice needs no more samples than this to be tried on; what is chosen is made with all.
_MOST_TRIED = 64

# At 8 bits rounding gains little, and nothing by more samples.
_FINER = Round(samples=64)

_SOFTMAX = frozenset({"LOG_SOFTMAX", "SOFTMAX"})
_SAME_VALUES = frozenset({"DEQUANTIZE", "QUANTIZE", "RESHAPE", "SQUEEZE"})


class Plan(NamedTuple):
    """The recipes to choose from, the surest first, and what is to be said about them."""

    recipes: tuple[Recipe, ...]
    notes: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """The recipe that was used, what it gave, and what is to be said about it."""

    recipe: Recipe
    change: Change
    notes: tuple[str, ...]


def plan(model: Model, step: Quantize, effort: str, *, has_data: bool) -> Plan:
    """What an effort means for a model and a scheme."""
    if effort not in EFFORTS:
        raise BadInput(f"no effort {effort!r}; there are {', '.join(EFFORTS)}")
    if step.to not in SCHEMES:
        raise BadInput(f"no scheme {step.to!r} to quantize to; there are {', '.join(SCHEMES)}")
    if effort == "quick":
        return Plan((_with(step, _ALONE),))
    usual = _DEFAULT[step.to]
    texts = (usual, f"equalize | {usual}") if effort == "best" and usual != _ALONE else (usual,)
    notes: tuple[str, ...] = ()
    if not has_data and usual != _ALONE:
        texts = (_ALONE,)
        notes = (f"without data {usual.replace('quantize | ', '')} is left out; --data gains some",)
    front = _tidying(model, (*step.keep, *step.only))
    return Plan(tuple((*front, *_with(step, text)) for text in texts), notes)


def _tidying(model: Model, names: Names) -> Recipe:
    """What comes first; nothing where ops are named by their number in the file, which it would
    change. Float16 weights are unpacked: they are stored anew."""
    if any(isinstance(name, int) for name in names):
        return ()
    is_half = any(t.is_const and t.dtype == "float16" for g in model.graphs for t in g.tensors)
    return parse(TIDY.replace("fold", "fold(float16=true)") if is_half else TIDY)


def _with(step: Quantize, text: str) -> Recipe:
    return tuple(step if isinstance(one, Quantize) else one for one in parse(text))


def carry_out(model: Model, plan: Plan, data: Data | None) -> Outcome:
    """The result of a plan's recipe; of several, the one that stays nearest to the float model."""
    surest = plan.recipes[0]
    if len(plan.recipes) > 1 and data is not None and len(data) >= _FEWEST * _HELD_OUT:
        found = _nearest(model, plan.recipes, data)
        if found is not None:
            return found._replace(notes=(*plan.notes, *found.notes))
    try:
        return Outcome(surest, apply(model, surest, context_of(data)), plan.notes)
    except CannotApply as error:
        return _without_tuning(model, plan, data, error)


def _without_tuning(model: Model, plan: Plan, data: Data | None, error: CannotApply) -> Outcome:
    """The same without the steps after `quantize`, which do not fit every model."""
    recipe = plan.recipes[0]
    end = next(n for n, step in enumerate(recipe, 1) if isinstance(step, Quantize))
    if end == len(recipe):
        raise error
    change = apply(model, recipe[:end], context_of(data))
    return Outcome(recipe[:end], change, (*plan.notes, f"left out: {error}"))


def _nearest(model: Model, recipes: tuple[Recipe, ...], data: Data) -> Outcome | None:
    """The recipe whose result differs least from the float model, before SOFTMAX, on samples that
    were held out, with all samples; None where no recipe fits.

    The better of the recipes is also tried with `round` in place of `correct`.
    """
    fitting, judging = _Part(data, held_out=False), _Part(data, held_out=True)
    worth = [recipe for recipe in recipes if _is_worth_trying(model, recipe, context_of(data))]
    snr = {recipe: _snr(model, recipe, fitting, judging) for recipe in worth}
    best = max(snr, key=lambda recipe: snr[recipe])
    finer = tuple(_FINER if isinstance(step, Correct) else step for step in best)
    if finer not in snr:
        snr[finer] = _snr(model, finer, fitting, judging)
    best = max(snr, key=lambda recipe: snr[recipe])
    if snr[best] == -inf:
        return None
    told = ", ".join(f"{_short(recipe)} {score_text(db, 'dB')}" for recipe, db in snr.items())
    counts = f"tried on {len(fitting)} samples, judged by the other {len(judging)}"
    return Outcome(best, apply(model, best, context_of(data)), (f"{counts}: {told}",))


def _snr(model: Model, recipe: Recipe, fitting: Data, judging: Data) -> float:
    """How near a recipe's result is to the float model, in dB; −∞ where it does not fit it."""
    try:
        change = apply(model, recipe, context_of(fitting))
    except CannotApply:
        return -inf
    ours, original = _before_softmax(change.model), _before_softmax(model)
    return evaluate_all([ours], judging, against=original, metric="snr")[0].value


def _is_worth_trying(model: Model, recipe: Recipe, context: Context) -> bool:
    """False where a step before `quantize` finds nothing to do, so that another is the same."""
    for number, step in enumerate(recipe):
        if isinstance(step, Equalize):
            before = apply(model, recipe[:number], context).model
            return bool(step.apply(before, context).touched)
    return True


def _short(recipe: Recipe) -> str:
    """A recipe by the steps that make the difference."""
    common = (*TIDY.split(" | "), _ALONE)
    return " | ".join(name for name in map(step_name, recipe) if name not in common)


@dataclass(frozen=True, eq=False)
class _Part:
    """The samples of some data that are held out, or the others."""

    data: Data
    held_out: bool

    @property
    def source(self) -> str:
        return self.data.source

    @property
    def digest(self) -> str:
        return f"{self.data.digest} {'one' if self.held_out else 'all but one'} in {_HELD_OUT}"

    @property
    def notes(self) -> tuple[str, ...]:
        return self.data.notes

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Sample]:
        for place, sample in enumerate(self.data):
            if place in self._places:
                yield sample

    @cached_property
    def _places(self) -> frozenset[int]:
        """Chosen by what the samples hold, so that their order does not matter."""
        digests = [sha256(b"".join(a.tobytes() for a in s.inputs)).digest() for s in self.data]
        by_digest = sorted(range(len(digests)), key=lambda place: digests[place])
        count = len(digests) // _HELD_OUT
        return frozenset(by_digest[:count] if self.held_out else by_digest[count:][:_MOST_TRIED])


def _before_softmax(model: Model) -> Model:
    """The model with the scores that SOFTMAX is made of as its outputs, where it ends in one.

    SOFTMAX hides how far scores have moved wherever one class is sure to win.
    """
    makers = {tensor: op for op in model.main.ops for tensor in op.outputs}
    outputs = [_scores(tensor, makers) for tensor in model.main.outputs]
    graph = regraph(model.main, outputs=outputs)
    return replace(with_graphs(model, (graph, *model.graphs[1:])), signatures=(), metadata=())


def _scores(tensor: Tensor, makers: dict[Tensor, Op]) -> Tensor:
    op = makers.get(tensor)
    while op is not None and op.kind in _SAME_VALUES and op.inputs[0] is not None:
        op = makers.get(op.inputs[0])
    found = op.inputs[0] if op is not None and op.kind in _SOFTMAX else None
    return tensor if found is None or found.is_const else found
