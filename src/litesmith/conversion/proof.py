"""The proof of a conversion: source and result on the same inputs; the first op that differs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from litesmith.ir.edit import exposing, rewrite, with_main
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.passes.tidy.axis_order import first, last
from litesmith.run.guarded import can_share_memory
from litesmith.run.session import Session

# The loss that float32 is always allowed, relative to an output's largest value.
_LEAST = 1e-4
# How many times larger a difference may be than the effect of changing the inputs' last digits.
_TIMES = 50.0
_LAST_DIGITS = 1e-6
_HALF_DIGITS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
# The same for a change of the constants, all of which take part, as each sum's rounding does.
_TIMES_NUDGED = 10.0
_NUDGE = 2e-7
# The same where the model computes in integers: of a change of the inputs by half a code, and of
# the codes of an output. Two kernels may round one sum to either side.
_TIMES_ROUNDED = 2.0
_CODES = 2.0

Inputs = Mapping[str, Array]

# The outputs of a source by name for each of some inputs, and further values that are asked for.
Run = Callable[[Sequence[Inputs], Sequence[str]], Sequence[Mapping[str, Array]]]


class OutputDifference(NamedTuple):
    """How far an output of the result is from the source's.

    largest  the largest difference
    share    the same, of the largest value of the source's output
    allowed  the share that float arithmetic explains
    sample   the number of the inputs that it is largest on
    """

    output: str
    largest: float
    share: float
    allowed: float
    sample: int = 0

    @property
    def is_float_error(self) -> bool:
        return self.share <= self.allowed


def made_inputs(
    model: Model, turned: frozenset[str], seed: int = 0, example: Inputs | None = None
) -> dict[str, Array]:
    """Inputs of the kinds that a model takes, in the order of the source. Whole numbers are those
    of the example, or lie between them: they may be places in a table."""
    random = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    rows = _table_rows(model)
    for tensor in model.main.inputs:
        shape = tensor.shape
        if tensor.name in turned:
            shape = tuple(shape[a] for a in first(len(shape)))
        if tensor.dtype == "float32":
            made[tensor.name] = random.normal(0, 1, shape).astype(np.float32)
        elif tensor.dtype == "bool":
            made[tensor.name] = random.integers(0, 2, shape).astype(bool)
        elif (given := _told(example, tensor, shape)) is not None:
            drawn = random.integers(given.min(), given.max() + 1, shape)
            made[tensor.name] = (drawn if seed else given).astype(tensor.dtype)
        else:
            most = min(1000, rows[tensor]) if tensor in rows else (2, 10)[seed % 2]  # a mask first
            made[tensor.name] = random.integers(0, most, shape).astype(tensor.dtype)
    return made


def _told(example: Inputs | None, tensor: Tensor, shape: Sequence[int]) -> Array | None:
    """The example's values for an input, unless they are all equal, which proves nothing."""
    given = (example or {}).get(tensor.name)
    if given is None or given.shape != tuple(shape) or not given.size:
        return None
    return given if given.min() < given.max() else None


def _table_rows(model: Model) -> dict[Tensor, int]:
    """The number of rows in the smallest table that each input, or integers computed from it,
    indexes: larger indices are errors of the source."""
    origins = {tensor: {tensor} for tensor in model.main.inputs if _is_whole(tensor)}
    rows: dict[Tensor, int] = {}
    for op in model.main.ops:
        found = {o for t in op.inputs if t in origins for o in origins[t]}
        origins.update({t: found for t in op.outputs if _is_whole(t)})
        indices, size = _looked_up(op)
        for tensor in origins.get(indices, ()) if indices else ():
            rows[tensor] = min(size, rows.get(tensor, size))
    return rows


def _is_whole(tensor: Tensor) -> bool:
    return tensor.dtype.startswith(("int", "uint", "bool"))


def _looked_up(op: Op) -> tuple[Tensor | None, int]:
    """The indices of an op that takes rows out of a table, and how many rows there are."""
    if op.kind == "EMBEDDING_LOOKUP":
        indices, table, axis = op.inputs[0], op.inputs[1], 0
    elif op.kind == "GATHER":
        axis = op.option("axis")
        indices, table, axis = op.inputs[1], op.inputs[0], axis if isinstance(axis, int) else 0
    else:
        return None, 0
    return indices, max(1, table.shape[axis]) if table is not None else 1


def differences(
    model: Model, turned: frozenset[str], samples: Sequence[Inputs], run: Run, half: str = ""
) -> tuple[OutputDifference, ...]:
    """The largest difference of each output over all samples; `half` is the type of less precision
    that the source computes in, if it does."""
    worst: dict[str, OutputDifference] = {}
    steps, sizes = code_steps(model), _full_sizes(model)
    names = [name for name, _ in model.signatures[0].outputs]
    digits = _HALF_DIGITS.get(half, _LAST_DIGITS)
    told = run([*samples, *(_jittered(inputs, steps, digits) for inputs in samples)], ())
    results = run_model(model, turned, samples)
    for number, (inputs, found) in enumerate(zip(samples, results, strict=True)):
        wanted, near = told[number], told[len(samples) + number]
        seen = [_difference(n, found[n], wanted[n], near[n], steps, sizes[n]) for n in names]
        seen = [one._replace(allowed=max(one.allowed, _least(half))) for one in seen]
        if not all(one.is_float_error for one in seen):
            (nudged,) = run_model(_nudged(model), turned, [inputs])
            seen = [_allow(one, found, nudged, sizes) for one in seen]
        for one in seen:
            if one.output not in worst or one.share > worst[one.output].share:
                worst[one.output] = one._replace(sample=number)
    return tuple(worst.values())


def _least(half: str) -> float:
    """The loss that is always allowed to a source that rounds every value to its own digits."""
    return 4 * _HALF_DIGITS[half] if half in _HALF_DIGITS else _LEAST


def _full_sizes(model: Model) -> dict[str, float]:
    """The largest values that outputs of a fixed range are meant to have, by name: a probability
    is as far off beside 1 whatever the other ones are. 0 where there is no such range."""
    bounded: set[Tensor | None] = set()
    for op in model.main.ops:
        row = OPS.get(op.kind)
        passes_on = row is not None and (row.reshapes or row.transposes) and op.inputs[0] in bounded
        if row is not None and (row.scale == "fixed" or passes_on):
            bounded.update(op.outputs)
    return {name: float(tensor in bounded) for name, tensor in model.signatures[0].outputs}


def _nudged(model: Model) -> Model:
    """The model with other last digits in its constants. Inputs that are whole numbers have none to
    change, and a softmax of far apart values answers to those inside."""
    random = np.random.default_rng(1)
    constants = {
        tensor: replace(tensor, data=_nudge(tensor.data, random))
        for op in model.main.ops
        for tensor in op.inputs
        if tensor is not None and tensor.data is not None and tensor.dtype == "float32"
    }
    return with_main(model, rewrite(model.main, tensors=constants))


def _nudge(values: Array, random: np.random.Generator) -> Array:
    noise = random.uniform(-_NUDGE, _NUDGE, values.shape)
    return np.ascontiguousarray(values * (1 + noise), np.float32)


def _allow(
    one: OutputDifference,
    found: Mapping[str, Array],
    nudged: Mapping[str, Array],
    sizes: Mapping[str, float],
) -> OutputDifference:
    """The difference, with the allowance that other last digits inside the model explain."""
    ours = found[one.output]
    moved = _relative(_apart(nudged[one.output], ours), ours, sizes[one.output])
    return one._replace(allowed=max(one.allowed, _TIMES_NUDGED * moved))


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


def _jittered(inputs: Inputs, steps: CodeSteps, digits: float) -> dict[str, Array]:
    """The inputs with other last digits; rounded inputs change by up to half a code."""
    random = np.random.default_rng(1)
    made: dict[str, Array] = {}
    for name, a in inputs.items():
        if a.dtype.kind == "f":
            noise = random.uniform(-1, 1, a.shape)
            size = steps.inputs[name] / 2 if name in steps.inputs else digits * a
            made[name] = (a + size * noise).astype(a.dtype)
        else:
            made[name] = a
    return made


_NO_STEPS = CodeSteps({}, {})


def _difference(
    name: str,
    found: Array,
    wanted: Array,
    near: Array,
    steps: CodeSteps = _NO_STEPS,
    size: float = 0.0,
) -> OutputDifference:
    if found.shape != wanted.shape:
        return OutputDifference(name, np.inf, np.inf, _LEAST)
    apart = _apart(found, wanted)
    times = _TIMES_ROUNDED if steps.inputs else _TIMES
    explained = max(times * _apart(near, wanted), _CODES * steps.outputs.get(name, 0.0))
    allowed = max(_LEAST, _relative(explained, wanted, size))
    return OutputDifference(name, apart, _relative(apart, wanted, size), allowed)


def _relative(apart: float, wanted: Array, size: float = 0.0) -> float:
    """A difference as a share of the largest value, which is `size` at least; as it is where all
    values are 0."""
    largest = np.max(np.abs(wanted.astype(np.float64)), initial=size, where=np.isfinite(wanted))
    return apart / float(largest) if largest else apart


def _apart(a: Array, b: Array) -> float:
    """The largest difference; NaN beside NaN and an infinity beside its like are none."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
    same = (a == b) | ((a != a) & (b != b))
    apart = np.where(same, 0, apart)
    return float(np.max(np.where(np.isnan(apart), np.inf, apart), initial=0))


def run_model(
    model: Model, turned: frozenset[str], samples: Sequence[Inputs]
) -> list[dict[str, Array]]:
    """The outputs of a converted model for each of some inputs, in the order of the source."""
    made: list[dict[str, Array]] = []
    with Session(model, guarded=can_share_memory()) as session:
        for inputs in samples:
            for name, array in session.inputs.items():
                given = inputs[name]
                array[...] = given.transpose(last(given.ndim)) if name in turned else given
            session.run()
            found = {name: np.array(array) for name, array in session.outputs.items()}
            made.append(
                {n: a.transpose(first(a.ndim)) if n in turned else a for n, a in found.items()}
            )
    return made


def first_difference(lowered: Model, values: Sequence[str], inputs: Inputs, run: Run) -> str:
    """The first value of the source, in the order of its nodes, that the lowered model does not
    give; "" where it gives all of them."""
    tensors = {t.name: t for op in lowered.main.ops for t in op.outputs}
    names = [name for name in values if name in tensors]
    low, high = 0, len(names)
    while low < high:  # all before `low` are right, one before `high` is wrong or nothing is
        middle = (low + high) // 2
        name = names[middle]
        wanted = run([inputs], [name])[0].get(name)
        if wanted is None:  # a value on the way, which the source does not have
            del names[middle]
            high -= 1
            continue
        model = exposing(lowered, [tensors[name]])
        with Session(model, guarded=can_share_memory()) as session:
            for given, array in session.inputs.items():
                array[...] = inputs[given]
            session.run()
            found = np.array(next(iter(session.outputs.values())))
        if _difference(name, found, wanted, wanted).share > 10 * _LEAST:
            high = middle
        else:
            low = middle + 1
    return names[low] if low < len(names) else ""
