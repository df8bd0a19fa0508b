"""What the ops of a model take where nothing was measured."""

from litesmith.anatomy.known_times import is_integer, known_us
from litesmith.ir.types import Model
from litesmith.precision.op_costs import OpTimes


def estimated_times(model: Model) -> OpTimes:
    """Of each op of the main graph, what its kind takes."""
    times = (known_us(op, is_integer=is_integer(op)) for op in model.main.ops)
    return OpTimes(tuple(times), 0.0)
