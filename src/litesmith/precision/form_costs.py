"""The times of a model's ops in float and in integers, profiled or estimated from their kinds."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from litesmith.anatomy.known_times import (
    KNOWN_CONVERSIONS,
    ConversionTimes,
    is_integer,
    known_us,
)
from litesmith.errors import CannotRun
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Tensor
from litesmith.precision.op_costs import OpTimes, conversion_times, op_times
from litesmith.run.core.target import Target
from litesmith.workers.engine import Engine


class FormCosts(NamedTuple):
    """The times of a model's ops in both forms, in microseconds.

    floats        time of each op in the float model
    integers      time of each op in the quantized model; None where the op stays float there
    conversion    time to convert each input, and each tensor that an op writes
    float_rest    time of a run of the float model that is spent outside its ops
    integer_rest  the same for the quantized model
    integer_us    time of a whole run of the quantized model with its conversions; None if not
                  measured
    """

    floats: tuple[float, ...]
    integers: tuple[float | None, ...]
    conversion: dict[Tensor, float]
    float_rest: float = 0.0
    integer_rest: float = 0.0
    integer_us: float | None = None


def form_costs(
    reference: Model,
    quantized: Model,
    target: Target,
    runs: int | None = None,
    engine: Engine | None = None,
) -> FormCosts:
    """Profiles both models; `quantized` is the reference after the step `quantize` and no other."""
    times = [op_times(model, target, runs, engine) for model in (reference, quantized)]
    found = _form_costs(reference, quantized, times, conversion_times(target, runs, engine))
    return found._replace(integer_us=times[1].whole)


def estimated_costs(reference: Model, quantized: Model) -> FormCosts:
    """Estimates the same from times of each kind of op on another machine."""
    times = [_estimated_times(model) for model in (reference, quantized)]
    return _form_costs(reference, quantized, times, KNOWN_CONVERSIONS)


def _form_costs(
    reference: Model, quantized: Model, times: Sequence[OpTimes], converting: ConversionTimes
) -> FormCosts:
    before, after = times
    is_converted = any(t.quant is not None for t in quantized.main.tensors if not t.is_const)
    tensors = [*reference.main.inputs, *(t for op in reference.main.ops for t in op.outputs)]
    return FormCosts(
        before.ops,
        tuple(_integer_us(reference, quantized, after)),
        {t: converting.of(t.elements) if is_converted else 0.0 for t in tensors},
        before.rest,
        after.rest,
    )


def _integer_us(reference: Model, quantized: Model, times: OpTimes) -> Iterator[float | None]:
    """The time that each op of the float model takes in the quantized one, which has the same ops
    in the same order, with conversions between them."""
    pairs = zip(quantized.main.ops, times.ops, strict=True)
    own = [(op, us) for op, us in pairs if not OPS[op.kind].rescales]
    kinds = [op.kind for op in reference.main.ops if not OPS[op.kind].rescales]
    if kinds != [op.kind for op, _ in own]:
        raise CannotRun("the ops of the two models are not the same in the same order")
    left = iter(own)
    for op in reference.main.ops:
        if OPS[op.kind].rescales:
            yield None
        else:
            other, us = next(left)
            yield us if is_integer(other) else None


def _estimated_times(model: Model) -> OpTimes:
    """Estimated times of the ops of the main graph, by their kinds."""
    times = (known_us(op, is_integer=is_integer(op)) for op in model.main.ops)
    return OpTimes(tuple(times), 0.0)
