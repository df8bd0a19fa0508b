"""All rules by the operator's name."""

from litesmith.conversion.lowering import Rule
from litesmith.conversion.rules import layers, reductions, resampling, shapes, values

RULES: dict[str, Rule] = {
    **values.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **layers.RULES,
    **resampling.RULES,
}
