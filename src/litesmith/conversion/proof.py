"""The proof of a conversion: source and result on the same inputs; the first op that differs."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from litesmith.ir.edit import exposing
from litesmith.ir.types import Array, Model
from litesmith.passes.tidy.axis_order import first, last
from litesmith.run.session import Session

# What float32 may lose in any case, of an output's largest value.
_LEAST = 1e-4
# How much more than a change of the inputs in their last digits a difference may be.
_TIMES = 50.0
_LAST_DIGITS = 1e-6
# The same where the model computes in integers: of a change of the inputs by half a code, and of
# the codes of an output. Two kernels may round one sum to either side.
_TIMES_ROUNDED = 2.0
_CODES = 2.0

Inputs = Mapping[str, Array]

# The outputs of a source by name, and further values that are asked for.
Run = Callable[[Inputs, Sequence[str]], Mapping[str, Array]]


class Difference(NamedTuple):
    """How far an output of the result is from the source's.

    largest  the largest difference
    share    the same, of the largest value of the source's output
    allowed  the share that float arithmetic explains
    """

    output: str
    largest: float
    share: float
    allowed: float

    @property
    def is_float_error(self) -> bool:
        return self.share <= self.allowed


def made_inputs(model: Model, turned: frozenset[str], seed: int = 0) -> dict[str, Array]:
    """Inputs of the kinds that a model takes, in the order of the source."""
    random = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for tensor in model.main.inputs:
        shape = tensor.shape
        if tensor.name in turned:
            shape = tuple(shape[a] for a in first(len(shape)))
        if tensor.dtype == "float32":
            made[tensor.name] = random.normal(0, 1, shape).astype(np.float32)
        elif tensor.dtype == "bool":
            made[tensor.name] = random.integers(0, 2, shape).astype(bool)
        else:
            made[tensor.name] = random.integers(0, 10, shape).astype(tensor.dtype)
    return made


def differences(
    model: Model, turned: frozenset[str], samples: Sequence[Inputs], run: Run
) -> tuple[Difference, ...]:
    """The largest difference of each output over all samples."""
    worst: dict[str, Difference] = {}
    steps = code_steps(model)
    names = [name for name, _ in model.signatures[0].outputs]
    for inputs in samples:
        wanted = run(inputs, ())
        near = run(_jittered(inputs, steps), ())
        found = run_model(model, turned, inputs)
        for name in names:
            one = _difference(name, found[name], wanted[name], near[name], steps)
            if name not in worst or one.share > worst[name].share:
                worst[name] = one
    return tuple(worst.values())


class CodeSteps(NamedTuple):
    """How far apart two codes are, by the names of inputs that are rounded to codes first, and of
    outputs that are codes."""

    inputs: Mapping[str, float]
    outputs: Mapping[str, float]


def code_steps(model: Model) -> CodeSteps:
    """The steps of a model's codes; none in a float model."""
    taken, given = dict[str, float](), dict[str, float]()
    names = {t: name for name, t in model.signatures[0].outputs}
    for op in model.main.ops:
        source, target = op.inputs[0] if op.inputs else None, op.outputs[0] if op.outputs else None
        if op.kind == "QUANTIZE" and source in model.main.inputs and target and target.quant:
            assert source is not None
            taken[source.name] = float(target.quant.scale[0])
        if op.kind == "DEQUANTIZE" and target in names and source and source.quant:
            given[names[target]] = float(source.quant.scale[0])
    codes = {t: name for t, name in names.items() if t.dtype in ("int8", "uint8")}
    return CodeSteps(taken, given | dict.fromkeys(codes.values(), 1.0))


def _jittered(inputs: Inputs, steps: CodeSteps) -> dict[str, Array]:
    """The inputs with other last digits; those that are rounded, by up to half a code away."""
    random = np.random.default_rng(1)
    made: dict[str, Array] = {}
    for name, a in inputs.items():
        if a.dtype.kind == "f":
            noise = random.uniform(-1, 1, a.shape)
            size = steps.inputs[name] / 2 if name in steps.inputs else _LAST_DIGITS * a
            made[name] = (a + size * noise).astype(a.dtype)
        else:
            made[name] = a
    return made


_NO_STEPS = CodeSteps({}, {})


def _difference(
    name: str, found: Array, wanted: Array, near: Array, steps: CodeSteps = _NO_STEPS
) -> Difference:
    if found.shape != wanted.shape:
        return Difference(name, np.inf, np.inf, _LEAST)
    size = float(np.max(np.abs(wanted.astype(np.float64)), initial=0, where=np.isfinite(wanted)))
    apart = _apart(found, wanted)
    times = _TIMES_ROUNDED if steps.inputs else _TIMES
    explained = max(times * _apart(near, wanted), _CODES * steps.outputs.get(name, 0.0))
    allowed = max(_LEAST, explained / size if size else explained)
    return Difference(name, apart, apart / size if size else apart, allowed)


def _apart(a: Array, b: Array) -> float:
    """The largest difference; NaN beside NaN and an infinity beside its like are none."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    same = (a == b) | ((a != a) & (b != b))
    apart = np.where(same, 0, apart)
    return float(np.max(np.where(np.isnan(apart), np.inf, apart), initial=0))


def run_model(model: Model, turned: frozenset[str], inputs: Inputs) -> dict[str, Array]:
    """The outputs of a converted model, in the order of the source."""
    with Session(model, guarded=True) as session:
        for name, array in session.inputs.items():
            given = inputs[name]
            array[...] = given.transpose(last(given.ndim)) if name in turned else given
        session.run()
        found = {name: np.array(array) for name, array in session.outputs.items()}
    return {name: a.transpose(first(a.ndim)) if name in turned else a for name, a in found.items()}


def first_difference(lowered: Model, values: Sequence[str], inputs: Inputs, run: Run) -> str:
    """The first value of the source, in the order of its nodes, that the lowered model does not
    give; "" where it gives all of them."""
    tensors = {t.name: t for op in lowered.main.ops for t in op.outputs}
    names = [name for name in values if name in tensors]
    low, high = 0, len(names)
    while low < high:  # all before `low` are right, one before `high` is wrong or nothing is
        middle = (low + high) // 2
        name = names[middle]
        wanted = run(inputs, [name]).get(name)
        if wanted is None:  # a value on the way, which the source does not have
            del names[middle]
            high -= 1
            continue
        model = exposing(lowered, [tensors[name]])
        with Session(model, guarded=True) as session:
            for given, array in session.inputs.items():
                array[...] = inputs[given]
            session.run()
            found = np.array(next(iter(session.outputs.values())))
        if _difference(name, found, wanted, wanted).share > 10 * _LEAST:
            high = middle
        else:
            low = middle + 1
    return names[low] if low < len(names) else ""
