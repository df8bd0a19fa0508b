"""The clock that steps use: it profiles the ops of a model, and times two models in turns."""

from collections.abc import Sequence

from litesmith.ir.types import Model
from litesmith.passes.core.step import Clock
from litesmith.precision.op_costs import op_times
from litesmith.run.core.target import Target
from litesmith.timing.latency import Rule, list_contenders, measure

# How long two models take turns, in seconds.
_SECONDS = 1.5


def _op_times(model: Model, on: str) -> Sequence[float]:
    found = op_times(model, Target.parse(on))
    return (*found.ops, found.rest)


def _times_as_fast(before: Model, after: Model, on: str) -> float:
    group = list_contenders([before, after], Target.parse(on))
    done = measure(group, Rule(seconds=_SECONDS, look_seconds=0), memory=False)
    return 1 / done.comparisons[0].ratio.value


CLOCK = Clock(_op_times, _times_as_fast)
