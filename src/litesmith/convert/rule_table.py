"""All rules by the operator's name."""

from litesmith.convert.lowering import Rule
from litesmith.convert.rules import (
    layers,
    recurrent,
    reductions,
    resampling,
    shapes,
    values,
)

RULES: dict[str, Rule] = {
    **values.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **layers.RULES,
    **recurrent.RULES,
    **resampling.RULES,
}
