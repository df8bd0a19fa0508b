"""What quantizing each op does to the model's answers, and what keeping it float would cost.

An op does damage in two ways: through the form of its output and through its weights. Each is tried
alone in the float model, with everything else exact. Many are first tried together, and are told
apart only where the group as a whole does damage that matters.
"""

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.calibration.observe import tools
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data
from litesmith.diagnosis.accuracy_verdict import HARMLESS_NATS, HARMLESS_NOISE
from litesmith.diagnosis.float_pairs import Twin, find_twins, has_stored_weights, scores
from litesmith.diagnosis.op_losses import FORM, WEIGHTS, DriftJudge, TwinPart
from litesmith.errors import CannotApply, CannotRun
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op, Tensor
from litesmith.passes.core.layers import Layer, real_bias, real_values
from litesmith.passes.core.schemes import data_places
from litesmith.passes.quantizing.integer_graph import conversions
from litesmith.passes.quantizing.paired_walk import mean_output
from litesmith.phrases import phrase
from litesmith.precision.form_costs import FormCosts, estimated_costs, form_costs
from litesmith.progress import Progress, Status, silent
from litesmith.run.core.target import Target
from litesmith.units import plain
from litesmith.workers.engine import Engine, Lost

# A group with less damage than this share of the harmless amount, or of the total, is not split.
_LEAST = 0.03

# The damage of answers that are infinite or not numbers.
_RUINED = 1e6

_SECONDS = 30.0
_FEWEST_SAMPLES, _MOST_SAMPLES, _MOST_VALUES = 8, 32, 20_000_000
_OPENING_SECONDS = 0.05  # what a try costs before its first sample


class Sensitivity(NamedTuple):
    """One op of a float model, or one of its inputs.

    place       the op's number in the main graph; −1 for the first input, −2 for the second
    name        the name of the output
    is_integer  whether the op computes with integers in the quantized model
    form        the damage done by the form of the output; 1 is hardly noticed by labels. An op that
                only moves values has no damage of its own: the op that made them has it
    weights     the damage done by the weights
    float_us    the time in the float model
    integer_us  the time in the quantized model
    border_us   the time of one conversion of the output
    """

    place: int
    name: str
    is_integer: bool = False
    form: float = 0.0
    weights: float = 0.0
    float_us: float = 0.0
    integer_us: float = 0.0
    border_us: float = 0.0

    @property
    def damage(self) -> float:
        return self.form + self.weights


class _Unit(NamedTuple):
    """What is tried alone: the form or the weights of one op; `place` is that of `Sensitivity`."""

    place: int
    what: str
    parts: tuple[TwinPart, ...]


def sensitivities(
    reference: Model,
    quantized: Model,
    data: Data,
    *,
    seconds: float | None = None,
    runs: int | None = None,
    on: str | Target = "cpu:1",
    engine: Engine | None = None,
    progress: Progress = silent,
) -> tuple[Sensitivity, ...]:
    """Measures what quantization does to each input and op of a float model, in order of execution.

    `quantized` is the result of `quantize` alone: `correct` would charge the weights for errors
    that it makes up for elsewhere. What `correct` does for the weights themselves is taken into
    account. The work takes about `seconds`; the worst parts are told apart first. Ops are timed in
    `runs` runs. With an engine, the times come from its devices.
    """
    start = perf_counter()
    found = _with_forms(find_twins(quantized, reference), quantized)
    units = _units(reference, found)
    rows = _rows(reference, _costs(reference, quantized, Target.parse(on), runs, engine))
    if not units:
        return rows
    budget = _SECONDS if seconds is None else seconds
    left = max(budget - (perf_counter() - start), budget / 2)
    end = perf_counter() + left
    few = take_some(data, _sample_count(rows, reference, left / (2 * len(units))))
    units = _units(reference, _corrected(reference, found, few))
    judge = DriftJudge(reference, scores(reference, found), few)
    harmless = HARMLESS_NATS if judge.chooses else HARMLESS_NOISE
    damages = _damages(units, judge, harmless, end, progress)
    done = {(u.place, u.what): damage for u, damage in zip(units, damages, strict=True)}
    return tuple(
        row._replace(
            form=done.get((row.place, FORM), 0.0), weights=done.get((row.place, WEIGHTS), 0.0)
        )
        for row in rows
    )


def passes_on(op: Op) -> bool:
    """True for an op that passes on the values of one tensor unchanged, in the same form."""
    if OPS[op.kind].scale != "same":
        return False
    given = {op.inputs[place] for place in data_places(op)}
    return sum(t is not None and not t.is_const for t in given) == 1


# The parts that are tried.


def _with_forms(found: Sequence[Twin], quantized: Model) -> list[Twin]:
    """The twins; a float tensor read by integer ops gets the form in which they read it."""
    forms = {real: made for (real, _), made in conversions(quantized.main).forms.items()}
    return [
        replace(twin, ours=forms[twin.ours]) if twin.quant is None and twin.ours in forms else twin
        for twin in found
    ]


def _units(reference: Model, found: Sequence[Twin]) -> list[_Unit]:
    places = _places(reference)
    by_place: dict[int, list[Twin]] = {}
    for twin in found:
        by_place.setdefault(places[twin.theirs], []).append(twin)
    units: list[_Unit] = []
    for place, own in by_place.items():
        moves = place >= 0 and passes_on(reference.main.ops[place])
        formed = [(twin, FORM) for twin in own if twin.quant is not None and not moves]
        stored = [twin for twin in own if twin.layers and has_stored_weights(twin.layers[0])]
        parts: dict[str, list[TwinPart]] = {FORM: formed, WEIGHTS: [(t, WEIGHTS) for t in stored]}
        units += [_Unit(place, what, tuple(some)) for what, some in parts.items() if some]
    return units


def _places(reference: Model) -> dict[Tensor, int]:
    """The origin of each tensor: the number of an op, or −1 and below for the inputs."""
    inputs = {tensor: -1 - number for number, tensor in enumerate(reference.main.inputs)}
    ops = enumerate(reference.main.ops)
    return inputs | {tensor: place for place, op in ops for tensor in op.outputs}


def _corrected(reference: Model, found: Sequence[Twin], data: Data) -> list[Twin]:
    """The twins with biases that compensate for their rounded weights, as `correct` makes them."""
    layers = [t.layers for t in found if t.layers and has_stored_weights(t.layers[0])]
    inputs = list(dict.fromkeys(theirs.data for _, theirs in layers))
    try:
        seen = tools(data).observe(reference, inputs, frozenset({"mean"}))
    except ValueError:  # tensors that have another size on every sample have no mean
        return list(found)
    better = {ours.op: _with_bias(ours, theirs, seen[theirs.data].mean) for ours, theirs in layers}
    return [
        replace(twin, layers=(better.get(twin.layers[0].op, twin.layers[0]), twin.layers[1]))
        if twin.layers
        else twin
        for twin in found
    ]


def _with_bias(ours: Layer, theirs: Layer, mean: NDArray[np.float64]) -> Layer:
    stored = real_values(ours.weight), real_bias(ours)
    try:
        wanted = mean_output(theirs, mean, real_values(theirs.weight), real_bias(theirs))
        bias = stored[1] + wanted - mean_output(theirs, mean, *stored)
    except CannotApply:
        return ours
    name = f"{ours.weight.name}/bias"
    made = Tensor(name, (ours.channels,), "float32", bias.astype(np.float32))
    return ours._replace(op=ours.with_parts(ours.weight, made))


# Damage.


def _sample_count(rows: Sequence[Sensitivity], reference: Model, seconds: float) -> int:
    """The largest number of samples that fits into the time for a try and keeps all answers in
    memory."""
    run_seconds = max(sum(row.float_us for row in rows), 1.0) / 1e6
    values = max(1, sum(tensor.elements for tensor in reference.main.outputs))
    most = min(_MOST_SAMPLES, max(_FEWEST_SAMPLES, _MOST_VALUES // values))
    return min(max(int((seconds - _OPENING_SECONDS) / run_seconds), _FEWEST_SAMPLES), most)


def _damages(
    units: Sequence[_Unit],
    judge: DriftJudge,
    harmless: float,
    deadline: float,
    progress: Progress,
) -> Sequence[float]:
    """The damage of each unit alone. The worst group is halved first; a group that does little
    damage, or for which there is no time, shares its damage among its units."""

    def damage(start: int, end: int) -> float:
        parts = [part for unit in units[start:end] for part in unit.parts]
        done = judge.alone(parts).damage / harmless
        return min(done, _RUINED) if done == done else _RUINED

    whole = damage(0, len(units))
    least = _LEAST * min(whole, 1.0)
    found = [0.0] * len(units)
    waiting = [(-whole, 0, len(units))]
    settled = 0
    while waiting:
        progress(Status(phrase("finding the ops that int8 ruins"), settled, len(units)))
        negative, start, end = heappop(waiting)
        is_small = -negative <= least or perf_counter() > deadline
        if end - start == 1 or is_small:
            found[start:end] = [-negative / (end - start)] * (end - start)
            settled += end - start
            continue
        middle = (start + end) // 2
        for half in ((start, middle), (middle, end)):
            heappush(waiting, (-damage(*half), *half))
    return found


# Times.


def _rows(reference: Model, costs: FormCosts) -> tuple[Sensitivity, ...]:
    """A row for every input and op, with times and no damage yet."""
    rows = [
        Sensitivity(-1 - number, plain(tensor.name), border_us=costs.conversion[tensor])
        for number, tensor in enumerate(reference.main.inputs)
    ]
    for place, op in enumerate(reference.main.ops):
        us, integer_us = costs.floats[place], costs.integers[place]
        border = sum(costs.conversion[t] for t in op.outputs)
        own = us if integer_us is None else integer_us
        is_integer = integer_us is not None
        rows.append(Sensitivity(place, _name(op), is_integer, 0.0, 0.0, us, own, border))
    return tuple(rows)


def _name(op: Op) -> str:
    return plain(op.outputs[0].name) if op.outputs else ""


def _costs(
    reference: Model, quantized: Model, target: Target, runs: int | None, engine: Engine | None
) -> FormCosts:
    """Measures the times, or estimates them where the runtime does not report every op."""
    try:
        return form_costs(reference, quantized, target, runs, engine)
    except Lost:
        raise
    except CannotRun:
        return estimated_costs(reference, quantized)
