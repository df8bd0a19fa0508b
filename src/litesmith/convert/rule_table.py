"""All rules by the operator's name."""

from litesmith.convert.lowering import Rule
from litesmith.convert.rules import (
    attention,
    layers,
    losses,
    reductions,
    resampling,
    sampling,
    scattering,
    selection,
    shapes,
    signals,
    values,
)

RULES: dict[str, Rule] = {
    **values.RULES,
    **shapes.RULES,
    **scattering.RULES,
    **selection.RULES,
    **reductions.RULES,
    **layers.RULES,
    **resampling.RULES,
    **attention.RULES,
    **losses.RULES,
    **sampling.RULES,
    **signals.RULES,
}
