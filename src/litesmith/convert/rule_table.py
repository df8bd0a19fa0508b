"""All rules by the operator's name."""

from litesmith.convert.lowering import Rule
from litesmith.convert.rules import (
    control,
    layers,
    own,
    recurrent,
    reductions,
    resampling,
    shapes,
    values,
)

RULES: dict[str, Rule] = {
    **control.RULES,
    **values.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **layers.RULES,
    **recurrent.RULES,
    **resampling.RULES,
    **own.RULES,
}
