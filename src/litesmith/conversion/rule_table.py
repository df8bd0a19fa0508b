"""All rules by the operator's name."""

from litesmith.conversion.core.lowering import Rule
from litesmith.conversion.rules import (
    attention,
    bits,
    control,
    fused,
    layers,
    losses,
    own,
    pools,
    products,
    quantized,
    random_numbers,
    recurrent,
    reductions,
    refused,
    resizing,
    sampling,
    scattering,
    selection,
    shapes,
    signals,
    values,
)

_ALL: dict[str, Rule] = {
    **control.RULES,
    **recurrent.RULES,
    **quantized.RULES,
    **own.RULES,
    **refused.RULES,
    **values.RULES,
    **bits.RULES,
    **shapes.RULES,
    **scattering.RULES,
    **selection.RULES,
    **reductions.RULES,
    **products.RULES,
    **layers.RULES,
    **pools.RULES,
    **resizing.RULES,
    **sampling.RULES,
    **signals.RULES,
    **attention.RULES,
    **losses.RULES,
    **fused.RULES,
    **random_numbers.RULES,
}

RULES = quantized.with_codes(_ALL)
