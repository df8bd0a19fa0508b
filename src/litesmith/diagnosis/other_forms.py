"""The time of a model in another form: a quantized model with its slow ops in float, or a float
model quantized. Each form is made here, with ranges from random numbers, and timed beside the
model.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from litesmith.anatomy.findings import TIDY
from litesmith.calibration.context import RandomSamples, context_of
from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import apply
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.precision.fastest_forms import SlowKind, apply_forms, fastest_forms
from litesmith.run.core.target import Target
from litesmith.timing.latency import Result, Rule, list_contenders, measure, ratio
from litesmith.timing.statistics import FASTER, SAME, SLOWER, UNCLEAR, Ratio
from litesmith.timing.turns import Quota, one_load

# The number of random samples behind the ranges: times do not depend on them.
_SAMPLES = 4

# A model whose first run takes this many times as long as the fastest's has lost; where runs are
# longer than the second number, the first runs decide.
_HOPELESS, _MOST_US = 4.0, 5e5

# On a busy machine, a ratio of times that no noise explains.
_FAR = 2 / 3

DYNAMIC, FLOAT16, INT8 = "dynamic", "float16", "int8"


class OtherForm(NamedTuple):
    """A model in another form.

    scheme  the scheme's name in `quantize`; float16 stands for float
    kinds   the kinds of ops that are slower in integers than in float
    """

    scheme: str
    model: Model
    kinds: tuple[SlowKind, ...] = ()


class Faster(NamedTuple):
    """The fastest of some forms, with its time beside that of the model as it is."""

    form: OtherForm
    ratio: Ratio

    @property
    def saved_us(self) -> float:
        before, after = self.ratio.us or (0.0, 0.0)
        return max(before - after, 0.0) if self.ratio.verdict == FASTER else 0.0


def int8_form(reference: Model, target: Target, runs: int | None = None) -> OtherForm | None:
    """The int8 model that `quantize` makes of a float model, with those ops in float that are
    faster in float. The float model itself where int8 gains nothing; None where that is unknown.
    """
    start = apply(reference, TIDY.replace("fold", "fold(float16=true)")).model
    recipe = (Quantize(),)
    found = fastest_forms(start, recipe, target, runs)
    if found is None:
        return None
    if not found.is_other and found.float_us < found.integer_us:
        return OtherForm(FLOAT16, start, found.slow)
    context = context_of(RandomSamples(start, _SAMPLES))
    return OtherForm(INT8, apply(start, apply_forms(recipe, found), context).model, found.slow)


def dynamic_form(model: Model) -> OtherForm | None:
    """A float model with int8 weights only; None where it has no layer for that."""
    try:
        return OtherForm(DYNAMIC, apply(model, "quantize(to=dynamic)").model)
    except LitesmithError:
        return None


def quantized_forms(model: Model, target: Target, runs: int | None = None) -> list[OtherForm]:
    """What `quantize` makes of a float model, by the schemes that may be faster."""
    try:
        integers = int8_form(model, target, runs)
    except LitesmithError:  # the scheme does not suit this model
        integers = None
    forms = dynamic_form(model), integers
    return [form for form in forms if form is not None and form.scheme != FLOAT16]


def fastest_of(
    model: Model, forms: Sequence[OtherForm], target: Target, seconds: float
) -> Faster | None:
    """The form that takes least time, unless none is faster than the model; all take turns. Where
    the machine is too busy to tell, the form that seems fastest."""
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


class Race(NamedTuple):
    """The times of models that took turns.

    us      the time of each, in microseconds; models for comparison only come last
    picked  the first of the candidates, unless a later one is faster beyond the noise
    """

    us: tuple[float, ...]
    picked: int


def race(
    models: Sequence[Model], others: Sequence[Model], target: Target, seconds: float
) -> Race | None:
    """Picks one of some models by time, beside others that serve only for comparison. Models that a
    first run shows to be far slower than the fastest take no turns. None where they cannot be
    timed."""
    count = len(models)
    try:
        group = list_contenders([*models, *others], target)
        once = Quota(runs=1, warmup_runs=0)
        loads = one_load(group, range(len(group)), once, np.random.default_rng(0))
        us = [min(load.first_us, load.median_us) for load in loads]
        first = us.index(min(us[:count]))
        near = [place for place, time in enumerate(us) if time < _HOPELESS * us[first]]
        if len(near) == 1 or us[first] > _MOST_US:
            return Race(tuple(us), first)
        rule = Rule(seconds=seconds, look_seconds=0)
        done = measure([group[place] for place in near], rule, memory=False)
    except LitesmithError:
        return None
    results = dict(zip(near, done.results, strict=True))
    for place, result in results.items():
        us[place] = result.percentile_us(50)
    return Race(tuple(us), _pick({place: results[place] for place in near if place < count}))


def _pick(results: Mapping[int, Result]) -> int:
    """Picks the first, unless a later one is faster beyond the noise."""
    picked, *later = results
    for place in later:
        between = ratio(results[picked], results[place])
        is_far = between.verdict == UNCLEAR and between.value < _FAR
        picked = place if between.verdict == FASTER or is_far else picked
    return picked
