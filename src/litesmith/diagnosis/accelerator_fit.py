"""What keeps a model from running entirely on an accelerator, and the recipe that changes that."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from litesmith.calibration.context import RandomSamples, context_of
from litesmith.diagnosis.slowness import NOT_MEASURED, Diagnosis
from litesmith.errors import BadInput, LitesmithError
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply, parse, text_of
from litesmith.passes.core.step import Change, Step
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.rewriting.rewrite import WAYS, Rewrite, ways_for
from litesmith.passes.tidy.borders import Borders
from litesmith.phrases import join, phrase
from litesmith.run.accelerators.targets import BY_NAME, FAMILIES, placed
from litesmith.run.core.placement import PREDICTED, Home, Placement
from litesmith.run.rules.all_rules import RULES, place_by_rules
from litesmith.tflite.write import to_bytes

# Targets that take every op, and hence are no accelerators.
_EVERYTHING = ("cpu", "numpy")

# Targets that compute in float16, however the weights are stored.
_HALF = ("gpu",)
_TO_HALF = "quantize(to=float16)"

_MOST_NAMED, _MOST_KINDS = 8, 4

# A recipe is useless if the target then takes less of the model than this: the CPU would run most.
_LEAST_SHARE = 0.5

_COSTS = phrase(
    "{not_measured}: what the accelerator leaves, and each way there and back", NOT_MEASURED
)

_MOST_COMPILED = 4
_TIDY = "cleanup | fold | fuse"

# The number of random samples for trying recipes: only the ops count here, not their ranges.
_TRIED_WITH = 1


def known_target(name: str) -> str:
    """The accelerator with this name."""
    name = FAMILIES.get(name, name)
    known = [one for one in BY_NAME if one not in _EVERYTHING]
    if name not in known:
        raise BadInput(
            "--for {name}: no such accelerator; there are {known}", name, ", ".join(known)
        )
    return name


def place_on(model: Model, name: str) -> Placement:
    """The placement of a model on an accelerator, by its compiler where that is installed."""
    found = placed(BY_NAME[known_target(name)], model)
    assert found is not None  # raised for targets that take every op
    return found


def obstacles(placement: Placement) -> list[Diagnosis]:
    """One finding for each reason why ops stay on the CPU. Ops of several kinds that stay because
    of the same other op share a finding.
    """
    if placement.refused:
        way_out = str(placement.facts.get("way_out", ""))
        every = phrase("all {count} ops", len(placement.homes))
        return [
            Diagnosis(phrase("the model is not taken"), every, placement.refused, _COSTS, way_out)
        ]
    groups: dict[str, list[Home]] = {}
    for home in placement.homes:
        if not home.taken:
            groups.setdefault(home.why, []).append(home)
    return [
        Diagnosis(
            phrase("{counted} on the CPU", _count_words(homes)), _where(homes), why, _COSTS, ""
        )
        for why, homes in sorted(groups.items(), key=lambda pair: -len(pair[1]))
    ]


def _count_words(homes: list[Home]) -> str:
    """The number of ops in words, as in `2 ADD` or `5 ops (ADD, MUL)`."""
    kinds = [kind for kind, _ in Counter(home.kind for home in homes).most_common()]
    if len(kinds) == 1:
        return f"{len(homes)} {kinds[0]}"
    more = (
        [phrase("{count} more kinds", len(kinds) - _MOST_KINDS)] if len(kinds) > _MOST_KINDS else []
    )
    return phrase("{count} ops ({what})", len(homes), join((*kinds[:_MOST_KINDS], *more), ", "))


def _where(homes: list[Home]) -> str:
    named = ", ".join(phrase("op {place}", home.place) for home in homes[:_MOST_NAMED])
    return (
        phrase("{named} and {count} more", named, len(homes) - _MOST_NAMED)
        if len(homes) > _MOST_NAMED
        else named
    )


@dataclass(frozen=True)
class Fit:
    """The recipe that leaves the fewest ops of a model on the CPU, as trying it showed.

    recipe  "" where the target already takes the whole model, or no recipe helps
    hint    a recipe that is useful on this target but brings no op to it
    vain    the placement after the best recipe, where it is not worth it
    """

    recipe: str
    before: Placement
    after: Placement
    hint: str = ""
    vain: Placement | None = None

    @property
    def needs_data(self) -> bool:
        return any(isinstance(step, Quantize) and step.to == "int8" for step in parse(self.recipe))

    @property
    def notes(self) -> tuple[str, ...]:
        """The changes that callers of the model will see, and the rewrites in the recipe; one line
        each."""
        return tuple(note for step in parse(self.recipe) for note in _notes(step))


def _notes(step: Step) -> Iterator[str]:
    if isinstance(step, Rewrite):
        yield from (phrase("{name} becomes {says}", name, WAYS[name].says) for name in step.ops)
        if step.unpack:
            yield phrase("weights in small numbers become float32 first")
    if isinstance(step, Quantize) and step.io != "float":
        yield phrase("the model's own inputs and outputs become {io}", step.io)
    if isinstance(step, Borders):
        if step.fixed:
            yield phrase("the sizes in the file become final; the model can no longer be resized")
        if step.int32:
            yield phrase("int64 inputs and outputs of the model become int32")
        if step.io:
            yield phrase("quantized inputs and outputs of the model become {io}", step.io)


@dataclass(frozen=True)
class _Plan:
    """The settings of the steps to try."""

    fixed: bool = False
    tidies: bool = False
    ops: tuple[str, ...] = ()
    int32: bool = False
    unpack: bool = False
    quantizes: bool = False
    io: str = ""
    int32_ends: bool = False

    def recipe(self, *, corrects: bool = False) -> tuple[Step, ...]:
        ways = Rewrite(self.ops, self.int32, self.unpack)
        ends = Borders(self.io, self.int32_ends)
        steps: list[Step] = [Borders(fixed=True)] if self.fixed else []
        steps += parse(_TIDY) if self.tidies else ()
        steps += [ways] if ways != Rewrite() else []
        steps += parse("quantize(io=int8)") if self.quantizes else ()
        steps += parse("correct") if self.quantizes and corrects else ()
        steps += [ends] if ends != Borders() else []
        return tuple(steps)


@dataclass(frozen=True)
class _Attempt:
    """The result of a plan, and what the rules leave of it on the CPU, op by op."""

    plan: _Plan
    left: Counter[str]
    ops: int

    @property
    def cost(self) -> tuple[int, int]:
        return self.left.total(), self.ops


def recipe_for(model: Model, name: str) -> Fit:
    """Finds a recipe by the rules, and then asks the compiler about the ops that are left."""
    target = known_target(name)
    before = place_on(model, target)
    bench = _Workbench(model, target)
    if before.is_whole:
        return Fit("", before, before, bench.hint((), before))
    trial = bench.improve(bench.start())
    recipe, after = bench.finish(trial.plan) or ((), before)
    if after.left and after.how != PREDICTED:
        recipe, after = bench.add_for_compiler(trial, recipe, after)
    if after.left >= before.left or after.taken < _LEAST_SHARE * len(after.homes):
        return Fit("", before, before, vain=after if recipe else None)
    return Fit(text_of(recipe), before, after, bench.hint(recipe, after))


class _Workbench:
    """One model and one target; carries out plans and inspects the results."""

    def __init__(self, model: Model, target: str) -> None:
        self._model, self._target = model, target
        rules = RULES.get(target) or RULES[target.partition("-")[0]]
        # Judges each op without regard to the others, so that every step forward shows.
        self._rules = replace(rules, stops=False, whole=False, most=0, least=1)
        self._wants_integers = "int8" in self._rules.wants

    def start(self) -> _Attempt:
        """The first attempt: quantized where the target wants integers, unless that is
        impossible."""
        first = self._try_plan(_Plan(quantizes=True)) if self._wants_integers else None
        found = first or self._try_plan(_Plan())
        assert found is not None  # the empty recipe is always possible
        return found

    def improve(self, trial: _Attempt) -> _Attempt:
        """Switches settings on one after the other, and keeps those that help."""
        for switch in self._switches():
            found = self._try_plan(replace(trial.plan, **switch))
            trial = found if found is not None and found.cost < trial.cost else trial
        while True:
            further = self._one_way_further(trial) or self._two_ways_further(trial)
            if further is None:
                return trial
            trial = further

    def _switches(self) -> Iterator[dict[str, bool | str]]:
        """Settings that may help this kind of model."""
        tensors = [t for graph in self._model.graphs for t in graph.tensors]
        is_quantized = any(t.quant is not None for t in tensors)
        if is_quantized:
            yield {"unpack": True, "quantizes": self._wants_integers}
        yield {"tidies": True}
        if any(t.dynamic is not None for t in tensors):
            yield {"fixed": True}
            yield {"fixed": True, "tidies": True}
        if any(t.dtype == "int64" for t in tensors):
            yield {"int32": True}
            yield {"int32": True, "int32_ends": True}
        if is_quantized and self._wants_integers:
            yield {"io": "int8"}
            yield {"io": "uint8"}

    def _one_way_further(self, trial: _Attempt) -> _Attempt | None:
        """The best attempt with one more rewrite, where that leaves fewer ops on the CPU."""
        found = [
            t for t in self._with_more(trial, trial.left) if t.left.total() < trial.left.total()
        ]
        return min(found, key=lambda one: one.cost, default=None)

    def _two_ways_further(self, trial: _Attempt) -> _Attempt | None:
        """The best attempt with two more rewrites: the second removes what the first leaves."""
        for first in self._with_more(trial, trial.left):
            new = first.left - trial.left
            if first.left.total() <= trial.left.total() + new.total() and new:
                for second in self._with_more(first, new):
                    if second.left.total() < trial.left.total():
                        return second
        return None

    def _with_more(self, trial: _Attempt, kinds: Iterable[str]) -> Iterator[_Attempt]:
        """The attempt with one more way of removing one of these kinds, for each such way."""
        used = trial.plan.ops
        prepared = self._apply(replace(trial.plan, quantizes=False, io="", int32_ends=False))
        for way in (way for kind in kinds for way in ways_for(kind) if way not in used):
            if prepared is not None and not apply(prepared.model, (Rewrite((way,)),)).touched:
                continue
            found = self._try_plan(replace(trial.plan, ops=(*used, way)))
            if found is not None:
                yield found

    def _try_plan(self, plan: _Plan) -> _Attempt | None:
        """Carries out a plan; None where that is impossible."""
        change = self._apply(plan)
        if change is None:
            return None
        homes = place_by_rules(self._target, self._rules, change.model).homes
        return _Attempt(plan, Counter(h.kind for h in homes if not h.taken), len(homes))

    def _apply(self, plan: _Plan, *, corrects: bool = False) -> Change | None:
        data = RandomSamples(self._model, _TRIED_WITH)
        context = context_of(data if plan.quantizes else None)
        try:
            return apply(self._model, plan.recipe(corrects=corrects), context)
        except LitesmithError:
            return None

    def finish(self, plan: _Plan) -> tuple[tuple[Step, ...], Placement] | None:
        """Carries out the whole recipe as it will be shown; returns it with the placement of its
        result."""
        for corrects in (True, False) if plan.quantizes else (False,):
            change = self._apply(plan, corrects=corrects)
            if change is not None:
                return plan.recipe(corrects=corrects), place_on(change.model, self._target)
        return None

    def add_for_compiler(
        self, trial: _Attempt, recipe: tuple[Step, ...], after: Placement
    ) -> tuple[tuple[Step, ...], Placement]:
        """Adds ways of removing what the compiler leaves although the rules do not."""
        kinds = dict.fromkeys(home.kind for home in after.homes if not home.taken)
        new = [kind for kind in kinds if kind not in trial.left]
        for tries, further in enumerate(self._with_more(trial, new)):
            found = self.finish(further.plan) if tries < _MOST_COMPILED else None
            if found is not None and found[1].left < after.left:
                recipe, after = found
        return recipe, after

    def hint(self, recipe: tuple[Step, ...], after: Placement) -> str:
        """Suggests float16 weights, where the target computes in float16 and the file becomes
        smaller."""
        if self._target not in _HALF or after.left:
            return ""
        try:
            model = apply(self._model, recipe).model
            half = apply(model, _TO_HALF).model
        except LitesmithError:
            return ""
        smaller = len(to_bytes(half)) < len(to_bytes(model))
        is_whole = place_on(half, self._target).is_whole
        return text_of((*recipe, *parse(_TO_HALF))) if smaller and is_whole else ""
