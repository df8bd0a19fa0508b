"""Which ops of a model are better left float, by time alone."""

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
from litesmith.precision.op_costs import whole_us
from litesmith.run.core.target import Target
from litesmith.workers.engine import Engine

FLOAT, INTEGER = "float", "integer"

# A choice that gains less than this share of the time, or fewer microseconds, is not worth its
# conversions.
_LEAST_GAIN, _LEAST_US = 0.03, 3.0

# A choice that looks this many times as slow as the best may be the best in truth: conversions are
# timed alone, and cost less beside ops that have just made what they read.
_NEARLY = 1.2

# Ops without a fast integer kernel, said with ops that have one; each exact or nearly so.
_WAYS = (
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
    """Ops of one kind, how many they are, and what they take together in either form."""

    kind: str
    ops: int
    integer_us: float
    float_us: float


class FastestForms(NamedTuple):
    """The ops of a float model that stay float in its quantized one, and what comes of it.

    keep          these ops as `quantize` takes them
    predicted_us  of a run of the model with these ops in float
    integer_us    of the model with every op in integers that can be
    float_us      of the float model
    kept          these ops by kind
    slow          the kinds that take longer in integers than in float, the worst first
    rewrites      what is said with other ops first, as `rewrite` takes it
    by_kind_us    of a run with every op of the slow kinds in float and no other; None where those
                  are all layers
    stored        kinds of recurrences that compute on float data with int8 weights
    is_all        True where these are all that has weights, so that nothing is left for integers
    by_runs       True where these are times of whole runs, not of single ops
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
        """The slow kinds in float and nothing else, where that is another choice, simple enough to
        be faster than it looks, and would gain if conversions took no time."""
        kinds = tuple(sorted(row.kind for row in self.slow))
        near = self.by_kind_us is not None and self.by_kind_us <= _NEARLY * self.predicted_us
        gain = sum(row.integer_us - row.float_us for row in self.slow)
        is_same = bool(self.rewrites) or kinds == self.keep
        if is_same or not near or gain < _LEAST_GAIN * self.predicted_us:
            return None
        return self._replace(keep=kinds, predicted_us=self.by_kind_us or 0.0, kept=self.slow)

    @property
    def is_other(self) -> bool:
        """True where something is not as the scheme alone would have it."""
        return bool(self.keep or self.rewrites or self.stored)


def fastest_forms(
    model: Model,
    recipe: Recipe,
    target: Target,
    runs: int | None = None,
    engine: Engine | None = None,
) -> FastestForms | None:
    """The ops that the recipe's step `quantize` had better keep, and what had better be said with
    other ops before it; None where ops cannot be timed."""

    def measured(reference: Model, quantized: Model) -> FormCosts:
        return form_costs(reference, quantized, target, runs, engine)

    found = _found(model, recipe, measured)
    if found is None and recurrent_kinds(model):
        return _by_runs(model, recipe, lambda one: whole_us(one, target, runs, engine))
    return found


def suspected_forms(model: Model, recipe: Recipe) -> FastestForms | None:
    """The same by what kinds of ops took elsewhere, without a run."""
    return _found(model, recipe, estimated_costs)


def quantize_place(recipe: Recipe) -> int:
    """Where the step `quantize`, or `qat`, stands."""
    return next(number for number, step in enumerate(recipe) if isinstance(step, Quantize | Qat))


def with_forms(recipe: Recipe, found: FastestForms) -> Recipe:
    """The recipe with what was found in it."""
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


def _found(model: Model, recipe: Recipe, cost: Cost) -> FastestForms | None:
    """The best choice of forms; each way to say an op otherwise is taken where it gains more."""
    place = quantize_place(recipe)
    front, step = recipe[:place], recipe[place]
    assert isinstance(step, Quantize | Qat)
    try:
        reference = before_quantize(model, front)
        best = _best(reference, step, cost)
        # Ops that are kept by their numbers have others where ops are said otherwise.
        for way in _promising(reference, step) if not step.keep else ():
            ways = (*best.rewrites, way)
            other = _best(before_quantize(model, (*front, *_rewriting(ways))), step, cost)
            if other.predicted_us < best.predicted_us * (1 - _LEAST_GAIN):
                best = other._replace(slow=best.slow, rewrites=ways)
    except (CannotApply, CannotRun):
        return None
    return best


def _by_runs(model: Model, recipe: Recipe, whole: Callable[[Model], float]) -> FastestForms | None:
    """The best choice for a model that keeps a state, of which nobody can time single ops: what the
    kinds suggest, by whole runs; also with int8 weights for what is recurrent and stays float."""
    place = quantize_place(recipe)
    try:
        float_us, plain_us = (
            whole(before_quantize(model, recipe[:end])) for end in (place, place + 1)
        )
    except (CannotApply, CannotRun):
        return None
    best = FastestForms((), plain_us, plain_us, float_us, by_runs=True)
    for forms in _suggested(model, recipe, best):
        end = len(with_forms(recipe, forms)) - len(recipe) + place + 1
        with suppress(CannotApply, CannotRun):
            us = whole(before_quantize(model, with_forms(recipe, forms)[:end]))
            # Int8 weights are smaller too, which is worth what a gain would have to be.
            least = max(_LEAST_GAIN * best.predicted_us, _LEAST_US)
            least = -_LEAST_GAIN * best.predicted_us if forms.stored and best.keep else least
            if best.predicted_us - us > least:
                best = forms._replace(predicted_us=us)
    return best


def _suggested(model: Model, recipe: Recipe, plain: FastestForms) -> Iterator[FastestForms]:
    suspected = suspected_forms(model, recipe) or plain
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


def _promising(reference: Model, step: Step) -> Iterator[str]:
    """The ways to say ops otherwise that may gain, by what kinds of ops took elsewhere."""
    kinds = {op.kind for op in reference.main.ops}
    ways = [way for way in _WAYS if way.partition(":")[0] in kinds]
    plain_us = _best(reference, step, estimated_costs).predicted_us if ways else 0.0
    for way in ways:
        change = apply(reference, _rewriting((way,)))
        if change.touched and _best(change.model, step, estimated_costs).predicted_us < plain_us:
            yield way


def before_quantize(model: Model, front: Recipe) -> Model:
    """The model that the step `quantize` is handed: its ops, whatever the data would make of their
    constants."""
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


# Kernels take the same time whatever the ranges are.
ANY_RANGES = Tools(_no_samples, _any_ranges, _no_samples)


def find_fastest(reference: Model, costs: FormCosts) -> FastestForms:
    """The choice that takes least time; nothing is kept where that gains next to nothing. Where
    float is faster throughout, layers are integers all the same: that was asked for."""
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
    # Ops take another time beside others than alone: both ends of the choice are measured, and what
    # the integer end is off by belongs to its ops, of which some are gone.
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
    """The kinds of ops that take longer in a quantized model than in the float one that the step
    `quantize` of this recipe was handed, the worst first; none where ops cannot be timed."""
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
    """What ops take, by kind; the kind that gains most by float first."""
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
    """Integers wherever they can be, but for the ops that are kept."""
    rows = enumerate(problem.ops)
    return [INTEGER if INTEGER in row and op not in kept else FLOAT for op, row in rows]


def costs_of(graph: Graph, costs: FormCosts) -> Costs:
    """The choice as a problem. Behind the ops stand the model's inputs and, last, its caller, who
    reads the outputs; both are float."""
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
    """The numbers of the ops that read the values of each tensor."""
    readers: dict[Tensor, list[int]] = {}
    for place, op in enumerate(graph.ops):
        for tensor in op.inputs if not OPS[op.kind].reads_shape_only else ():
            if tensor is not None and not tensor.is_const:
                readers.setdefault(tensor, []).append(place)
    return readers


def names_of(graph: Graph, kept: Sequence[int]) -> Names:
    """Ops as `keep` takes them: by kind where all of a kind are kept, else by number."""
    every, some = (
        Counter(graph.ops[n].kind for n in numbers) for numbers in (range(len(graph.ops)), kept)
    )
    kinds = [kind for kind in some if some[kind] == every[kind]]
    return (*sorted(kinds), *(n for n in kept if graph.ops[n].kind not in kinds))
