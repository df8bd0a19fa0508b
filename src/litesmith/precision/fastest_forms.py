"""Finds the ops of a model that are faster left in float; accuracy plays no part here."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, NoReturn

import numpy as np

from litesmith.errors import CannotApply, CannotRun
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Tensor
from litesmith.numeric.ranges import Seen
from litesmith.passes.core.layers import layer_of
from litesmith.passes.core.recipe import Recipe, apply, parse
from litesmith.passes.core.schemes import Names
from litesmith.passes.core.step import Context, Step, Tools
from litesmith.passes.quantizing.qat import Qat
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.precision.assignment import Costs, Flow, assign
from litesmith.precision.form_costs import FormCosts, estimated_costs, form_costs
from litesmith.precision.op_costs import time_run
from litesmith.run.core.target import Target
from litesmith.workers.engine import Engine

FLOAT, INTEGER = "float", "integer"

# Keeping ops in float must gain more than this share of the time, and more than these microseconds.
_LEAST_GAIN, _LEAST_US = 0.03, 3.0

# A choice predicted to be this many times as slow as the best one may still win: conversions are
# timed alone, and are cheaper right after the op that has just written what they read.
_NEARLY = 1.2

# Rewrites of ops that lack a fast integer kernel into ops that have one; exact or nearly so.
_REWRITES = (
    "ABS:MAXIMUM",
    "AVERAGE_POOL_2D:DEPTHWISE_CONV_2D",
    "AVERAGE_POOL_2D:MEAN",
    "HARD_SWISH",
    "PRELU:LEAKY_RELU",
    "PRELU:MAXIMUM",
    "RELU6:MAX_POOL_2D",
    "RELU:MAX_POOL_2D",
    "RELU_N1_TO_1:MAX_POOL_2D",
    "RESIZE_NEAREST_NEIGHBOR:CONCATENATION",
    "SOFTMAX:LOGISTIC",
    "SQUARED_DIFFERENCE",
)


class SlowKind(NamedTuple):
    """All ops of one kind: their number, and their total time in each form."""

    kind: str
    ops: int
    integer_us: float
    float_us: float


class FastestForms(NamedTuple):
    """The ops that should stay float when a model is quantized, and the run times to expect.

    keep          the ops, in the form that the argument `keep` of `quantize` has
    predicted_us  time of a run with these ops in float
    integer_us    time of a run with every op in integers that can be
    float_us      time of a run of the float model
    kept          the ops to keep, summed up by kind
    slow          the kinds that are slower in integers than in float, the worst first
    rewrites      rewrites to apply first, in the form that the argument `ops` of `rewrite` has
    by_kind_us    time of a run with exactly the slow kinds in float; None where that would leave
                  no layer to quantize
    stored        kinds of recurrences that should compute on float data with int8 weights
    is_all        True where no other op has weights, so that `quantize` has nothing left to do
    by_runs       True where the times come from whole runs, not from single ops
    """

    keep: Names
    predicted_us: float
    integer_us: float
    float_us: float
    kept: tuple[SlowKind, ...] = ()
    slow: tuple[SlowKind, ...] = ()
    rewrites: tuple[str, ...] = ()
    by_kind_us: float | None = None
    stored: tuple[str, ...] = ()
    is_all: bool = False
    by_runs: bool = False

    @property
    def by_kind(self) -> "FastestForms | None":
        """An alternative worth timing: exactly the slow kinds in float. None where it is the same
        choice, is predicted to be far slower, or would gain nothing even if conversions were
        free."""
        kinds = tuple(sorted(row.kind for row in self.slow))
        near = self.by_kind_us is not None and self.by_kind_us <= _NEARLY * self.predicted_us
        gain = sum(row.integer_us - row.float_us for row in self.slow)
        is_same = bool(self.rewrites) or kinds == self.keep
        if is_same or not near or gain < _LEAST_GAIN * self.predicted_us:
            return None
        return self._replace(keep=kinds, predicted_us=self.by_kind_us or 0.0, kept=self.slow)

    @property
    def is_other(self) -> bool:
        """True where the choice differs from what the scheme alone would do."""
        return bool(self.keep or self.rewrites or self.stored)


def fastest_forms(
    model: Model,
    recipe: Recipe,
    target: Target,
    runs: int | None = None,
    engine: Engine | None = None,
) -> FastestForms | None:
    """Finds the ops that the recipe's step `quantize` should keep in float, and the rewrites that
    should precede it; None where ops cannot be timed."""

    def measured(reference: Model, quantized: Model) -> FormCosts:
        return form_costs(reference, quantized, target, runs, engine)

    found = _find_best(model, recipe, measured)
    if found is None and recurrent_kinds(model):
        return _find_by_runs(model, recipe, lambda one: time_run(one, target, runs, engine))
    return found


def estimate_forms(model: Model, recipe: Recipe) -> FastestForms | None:
    """Estimates the same without a run, from times of each kind of op on another machine."""
    return _find_best(model, recipe, estimated_costs)


def quantize_place(recipe: Recipe) -> int:
    """The position of the step `quantize`, or `qat`, in a recipe."""
    return next(number for number, step in enumerate(recipe) if isinstance(step, Quantize | Qat))


def apply_forms(recipe: Recipe, found: FastestForms) -> Recipe:
    """Returns the recipe with these ops kept in float, and the rewrites before `quantize`."""
    place = quantize_place(recipe)
    step = recipe[place]
    assert isinstance(step, Quantize | Qat)
    kept = replace(step, keep=tuple(dict.fromkeys((*step.keep, *found.keep))))
    return (
        *recipe[:place],
        *_rewriting(found.rewrites),
        *(() if found.is_all else (kept,)),
        *((Quantize(to="dynamic", only=found.stored),) if found.stored else ()),
        *recipe[place + 1 :],
    )


def _rewriting(ways: Sequence[str]) -> Recipe:
    return parse(f"rewrite(ops=[{', '.join(ways)}])") if ways else ()


Cost = Callable[[Model, Model], FormCosts]


def _find_best(model: Model, recipe: Recipe, cost: Cost) -> FastestForms | None:
    """Finds the best choice of forms; a rewrite is added to it where that gains more time."""
    place = quantize_place(recipe)
    front, step = recipe[:place], recipe[place]
    assert isinstance(step, Quantize | Qat)
    try:
        reference = before_quantize(model, front)
        best = _best(reference, step, cost)
        # A rewrite renumbers the ops, so `keep` would name other ops.
        for way in _list_promising(reference, step) if not step.keep else ():
            ways = (*best.rewrites, way)
            other = _best(before_quantize(model, (*front, *_rewriting(ways))), step, cost)
            if other.predicted_us < best.predicted_us * (1 - _LEAST_GAIN):
                best = other._replace(slow=best.slow, rewrites=ways)
    except (CannotApply, CannotRun):
        return None
    return best


def _find_by_runs(
    model: Model, recipe: Recipe, whole: Callable[[Model], float]
) -> FastestForms | None:
    """Finds the best choice for a model with a state, whose ops cannot be timed one by one: times
    whole runs of the choices that the kinds of its ops suggest. One of these gives recurrences that
    stay float int8 weights."""
    place = quantize_place(recipe)
    try:
        float_us, plain_us = (
            whole(before_quantize(model, recipe[:end])) for end in (place, place + 1)
        )
    except (CannotApply, CannotRun):
        return None
    best = FastestForms((), plain_us, plain_us, float_us, by_runs=True)
    for forms in _list_suggested(model, recipe, best):
        end = len(apply_forms(recipe, forms)) - len(recipe) + place + 1
        with suppress(CannotApply, CannotRun):
            us = whole(before_quantize(model, apply_forms(recipe, forms)[:end]))
            # Int8 weights make the file smaller, so they may cost as much time as others must gain.
            least = max(_LEAST_GAIN * best.predicted_us, _LEAST_US)
            least = -_LEAST_GAIN * best.predicted_us if forms.stored and best.keep else least
            if best.predicted_us - us > least:
                best = forms._replace(predicted_us=us)
    return best


def _list_suggested(model: Model, recipe: Recipe, plain: FastestForms) -> Iterator[FastestForms]:
    suspected = estimate_forms(model, recipe) or plain
    times = {"integer_us": plain.integer_us, "float_us": plain.float_us, "by_runs": True}
    if suspected.is_other:
        yield suspected._replace(**times)
    if isinstance(recipe[quantize_place(recipe)], Quantize):
        kinds = recurrent_kinds(model)
        is_all = not any(map(layer_of, model.main.ops))
        stored = [
            k for k in kinds if is_all or k in suspected.keep or "int8" not in OPS[k].versions
        ]
        if stored:
            yield suspected._replace(stored=tuple(stored), is_all=is_all, **times)


def recurrent_kinds(model: Model) -> tuple[str, ...]:
    """The kinds of recurrences that the runtime computes on float data with int8 weights."""
    kinds = dict.fromkeys(op.kind for op in model.main.ops)
    return tuple(sorted(kind for kind in kinds if "float32:tensor8" in OPS[kind].versions))


def _list_promising(reference: Model, step: Step) -> Iterator[str]:
    """The rewrites that should save time, estimated from the kinds of the ops."""
    kinds = {op.kind for op in reference.main.ops}
    ways = [way for way in _REWRITES if way.partition(":")[0] in kinds]
    plain_us = _best(reference, step, estimated_costs).predicted_us if ways else 0.0
    for way in ways:
        change = apply(reference, _rewriting((way,)))
        if change.touched and _best(change.model, step, estimated_costs).predicted_us < plain_us:
            yield way


def before_quantize(model: Model, front: Recipe) -> Model:
    """The model that the step `quantize` receives. It has the right ops; constants that depend on
    calibration data are arbitrary."""
    return apply(model, front, Context(ANY_RANGES)).model


def _best(reference: Model, step: Step, cost: Cost) -> FastestForms:
    quantized = apply(reference, (step,), Context(ANY_RANGES)).model
    return find_fastest(reference, cost(reference, quantized))


def _no_samples(_: Model) -> NoReturn:
    raise CannotApply("no data is looked at")


def _any_ranges(_: Model, tensors: Sequence[Tensor], what: frozenset[str]) -> dict[Tensor, Seen]:
    found = {tensor: Seen(what) for tensor in tensors}
    for tensor, seen in found.items():
        channels = max((1, *tensor.shape[-1:]))
        seen.add(np.stack([np.full(channels, end, np.float32) for end in (-1, 1)]))
    return found


# Stands in for observed ranges: the time of a kernel does not depend on them.
ANY_RANGES = Tools(_no_samples, _any_ranges, _no_samples)


def find_fastest(reference: Model, costs: FormCosts) -> FastestForms:
    """Finds the choice that takes least time, and keeps nothing where the gain is negligible. Where
    float is faster everywhere, the layers still become integers, because the user asked for a
    quantized model."""
    graph = reference.main
    problem = costs_of(graph, costs)
    free = [op for op, us in enumerate(costs.integers) if us is not None]
    layers = {op for op in free if layer_of(graph.ops[op])}
    layers = layers or {op for op in free if OPS[graph.ops[op].kind].weight is not None}
    whole, forms = problem.of(forms_of(problem, ())), assign(problem)
    if all(forms[op] == FLOAT for op in layers):
        rows = enumerate(problem.ops)
        fixed = [{INTEGER: row[INTEGER]} if op in layers else row for op, row in rows]
        forms = assign(replace(problem, ops=fixed))
    kept, best = [op for op in free if forms[op] == FLOAT], problem.of(forms)
    if best > whole - max(_LEAST_GAIN * whole, _LEAST_US):
        kept, best = [], whole
    real = problem.of(forms_of(problem, free)) + costs.float_rest
    share = len(kept) / max(1, len(free))
    # Ops take a different time together than alone. Both extremes, all float and all integers, are
    # measured; the error of the sum at the integer end is shared among the ops that stay integers.
    integer_us = costs.integer_us or whole + costs.integer_rest
    drift = (integer_us - whole - costs.integer_rest) * min(1.0, best / max(whole, 1e-9))
    rest = share * costs.float_rest + (1 - share) * (costs.integer_rest + drift)
    times = (best + rest, integer_us, real)
    slow = _slow_kinds(graph, costs)
    of_slow = [op for op in free if graph.ops[op].kind in {row.kind for row in slow}]
    is_left = not layers.issubset(of_slow)  # something for `quantize` to do
    by_kind_us = problem.of(forms_of(problem, of_slow)) + rest if is_left else None
    kinds = _by_kind(graph, costs, kept), slow
    return FastestForms(names_of(graph, kept), *times, *kinds, by_kind_us=by_kind_us)


def slower_kinds(
    model: Model, recipe: Recipe, quantized: Model, target: Target, runs: int | None = None
) -> tuple[SlowKind, ...]:
    """The kinds of ops that became slower when the step `quantize` of this recipe quantized them,
    the worst first; none where ops cannot be timed."""
    place = quantize_place(recipe)
    try:
        reference = before_quantize(model, recipe[:place])
        return _slow_kinds(reference.main, form_costs(reference, quantized, target, runs))
    except (CannotApply, CannotRun):
        return ()


def _slow_kinds(graph: Graph, costs: FormCosts) -> tuple[SlowKind, ...]:
    free = [op for op, us in enumerate(costs.integers) if us is not None]
    kinds = _by_kind(graph, costs, free)
    return tuple(kind for kind in kinds if kind.integer_us > kind.float_us)


def _by_kind(graph: Graph, costs: FormCosts, ops: Sequence[int]) -> tuple[SlowKind, ...]:
    """Sums up the times of ops by kind; the kind that gains most from float comes first."""
    kinds: dict[str, list[int]] = {}
    for op in ops:
        kinds.setdefault(graph.ops[op].kind, []).append(op)
    rows = [
        SlowKind(
            kind,
            len(own),
            sum(costs.integers[op] or 0.0 for op in own),
            sum(costs.floats[op] for op in own),
        )
        for kind, own in kinds.items()
    ]
    return tuple(sorted(rows, key=lambda row: row.float_us - row.integer_us))


def forms_of(problem: Costs, kept: Collection[int]) -> list[str]:
    """Integers for every op that can have them, except the kept ops."""
    rows = enumerate(problem.ops)
    return [INTEGER if INTEGER in row and op not in kept else FLOAT for op, row in rows]


def costs_of(graph: Graph, costs: FormCosts) -> Costs:
    """The costs of a graph as `assign` takes them. After the ops come one row for each input of the
    model and a last row for the caller, who reads the outputs; these rows are always float."""
    count = len(graph.ops)
    rows = [
        {FLOAT: us} if integer is None else {FLOAT: us, INTEGER: integer}
        for us, integer in zip(costs.floats, costs.integers, strict=True)
    ]
    rows += [{FLOAT: 0.0}] * (len(graph.inputs) + 1)
    writers = {t: count + place for place, t in enumerate(graph.inputs)}
    writers |= {t: place for place, op in enumerate(graph.ops) for t in op.outputs}
    readers = readers_of(graph)
    for tensor in graph.outputs:
        readers.setdefault(tensor, []).append(len(rows) - 1)
    flows = [
        Flow(writers[tensor], tuple(dict.fromkeys(some)), costs.conversion.get(tensor, 0.0))
        for tensor, some in readers.items()
        if tensor in writers and tensor.dtype == "float32"
    ]
    return Costs(rows, flows)


def readers_of(graph: Graph) -> dict[Tensor, list[int]]:
    """The positions of the ops that read the values of each tensor."""
    readers: dict[Tensor, list[int]] = {}
    for place, op in enumerate(graph.ops):
        for tensor in op.inputs if not OPS[op.kind].reads_shape_only else ():
            if tensor is not None and not tensor.is_const:
                readers.setdefault(tensor, []).append(place)
    return readers


def names_of(graph: Graph, kept: Sequence[int]) -> Names:
    """Names ops as `keep` takes them: by kind where all ops of a kind are kept, else by number."""
    every, some = (
        Counter(graph.ops[n].kind for n in numbers) for numbers in (range(len(graph.ops)), kept)
    )
    kinds = [kind for kind in some if some[kind] == every[kind]]
    return (*sorted(kinds), *(n for n in kept if graph.ops[n].kind not in kinds))
