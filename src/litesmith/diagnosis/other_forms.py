"""What a model would take in another form: a quantized one with its slow ops in float, a float one
quantized. Each form is made here, with ranges from random numbers, and timed beside the model."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from litesmith.anatomy.findings import TIDY
from litesmith.calibration.context import RandomSamples, context_of
from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply, parse
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.precision.fastest_forms import (
    FastestForms,
    SlowKind,
    find_fastest,
    form_costs,
    slow_kinds,
)
from litesmith.run.core.target import Target
from litesmith.timing.latency import Rule, list_contenders, measure
from litesmith.timing.statistics import FASTER, SAME, SLOWER, Ratio

# Random samples that ranges come from: times do not depend on them.
_SAMPLES = 4

DYNAMIC, FLOAT16, INT8 = "dynamic", "float16", "int8"


class OtherForm(NamedTuple):
    """A model in another form.

    scheme  as `quantize` names it; float16 stands for float
    kinds   what is slower in integers than in float
    """

    scheme: str
    model: Model
    kinds: tuple[SlowKind, ...] = ()


class Faster(NamedTuple):
    """The fastest of some forms, and its time beside that of the model as it is."""

    form: OtherForm
    ratio: Ratio

    @property
    def saved_us(self) -> float:
        before, after = self.ratio.us or (0.0, 0.0)
        return max(before - after, 0.0) if self.ratio.verdict == FASTER else 0.0


def int8_form(reference: Model, target: Target, runs: int | None = None) -> OtherForm:
    """A float model in int8, but for the ops that are faster in float; the float model itself
    where nothing would be left to gain."""
    start = apply(reference, TIDY.replace("fold", "fold(float16=true)")).model
    context = context_of(RandomSamples(start, _SAMPLES))
    quantized = apply(start, "quantize", context).model
    costs = form_costs(start, quantized, target, runs)
    found, kinds = find_fastest(start, costs), slow_kinds(start, costs)
    if _is_better_float(found):
        return OtherForm(FLOAT16, start, kinds)
    if not found.keep:
        return OtherForm(INT8, quantized, kinds)
    recipe = tuple(replace(step, keep=found.keep) for step in _quantize_alone())
    return OtherForm(INT8, apply(start, recipe, context).model, kinds)


def _is_better_float(found: FastestForms) -> bool:
    return not found.keep and found.float_us < found.integer_us


def _quantize_alone() -> list[Quantize]:
    return [step for step in parse("quantize") if isinstance(step, Quantize)]


def quantized_forms(model: Model, target: Target, runs: int | None = None) -> list[OtherForm]:
    """What `quantize` makes of a float model by the schemes that may be faster."""
    found: list[OtherForm] = []
    for make in (_dynamic_form, int8_form):
        try:
            found.append(make(model, target, runs))
        except LitesmithError:  # a scheme that is not for this model
            continue
    return [form for form in found if form.scheme != FLOAT16]


def _dynamic_form(model: Model, target: Target, runs: int | None) -> OtherForm:
    return OtherForm(DYNAMIC, apply(model, "quantize(to=dynamic)").model)


def fastest_of(
    model: Model, forms: Sequence[OtherForm], target: Target, seconds: float
) -> Faster | None:
    """The form that takes least time, unless none is faster than the model; all take turns. Where
    the machine is too busy to tell, the one that seems to."""
    if not forms:
        return None
    group = list_contenders([model, *(form.model for form in forms)], target)
    try:
        done = measure(group, Rule(seconds=seconds, look_seconds=0), memory=False)
    except CannotRun:
        return None
    pairs = [Faster(form, one.ratio) for form, one in zip(forms, done.comparisons, strict=True)]
    best = min(pairs, key=lambda pair: pair.ratio.value)
    is_vain = best.ratio.verdict in (SAME, SLOWER) or best.ratio.value >= 1
    return None if is_vain else best
