"""Times for steps that ask for them: of the ops of a model, and of two models in turns."""

from collections.abc import Sequence

from litesmith.ir.types import Model
from litesmith.passes.core.step import Clock
from litesmith.precision.op_costs import op_times
from litesmith.run.core.target import Target
from litesmith.timing.latency import Rule, list_contenders, measure

# Seconds that two models take turns for.
_SECONDS = 1.5


def _op_times(model: Model, on: str) -> Sequence[float]:
    found = op_times(model, Target.parse(on))
    return (*found.ops, found.rest)


def _times_as_fast(before: Model, after: Model, on: str) -> float:
    group = list_contenders([before, after], Target.parse(on))
    done = measure(group, Rule(seconds=_SECONDS, look_seconds=0), memory=False)
    return 1 / done.comparisons[0].ratio.value


CLOCK = Clock(_op_times, _times_as_fast)
