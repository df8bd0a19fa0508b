"""All rules by the operator's name."""

from litesmith.convert.lowering import Rule
from litesmith.convert.rules import layers, own, reductions, resampling, shapes, values

RULES: dict[str, Rule] = {
    **values.RULES,
    **shapes.RULES,
    **reductions.RULES,
    **layers.RULES,
    **resampling.RULES,
    **own.RULES,
}
