"""All rules by the operator's name."""

from litesmith.convert.lowering import Rule
from litesmith.convert.rules import (
    control,
    layers,
    quantized,
    recurrent,
    reductions,
    resampling,
    shapes,
    values,
)

_ALL: dict[str, Rule] = {
    **control.RULES,
    **values.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **layers.RULES,
    **recurrent.RULES,
    **resampling.RULES,
    **quantized.RULES,
}
RULES = quantized.with_codes(_ALL)
