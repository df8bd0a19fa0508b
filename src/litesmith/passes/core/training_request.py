"""Steps that choose a structure and have what is left tuned to it, where that can be done."""

from litesmith.errors import CannotApply
from litesmith.ir.types import Model
from litesmith.passes.core.step import Context, Masks, Skip, Tuned
from litesmith.phrases import phrase


def may_tune(step: str, wanted: bool | None, context: Context) -> bool:
    """True where weights are to be tuned; raises where they must be and cannot."""
    if wanted and context.tune is None:
        raise CannotApply("{step}(tune=true): {why_fixed}", step, context.why_fixed)
    return wanted is not False and context.tune is not None


def why_not_tuned(step: str, wanted: bool | None, context: Context) -> list[Skip]:
    """The reason that a report gives where nobody said no and nothing was tuned."""
    if wanted is not None or context.tune is not None:
        return []
    return [Skip(step, phrase("the weights were not tuned to it: {why_fixed}", context.why_fixed))]


def tuned(model: Model, context: Context, masks: Masks | None = None) -> Tuned:
    assert context.tune is not None
    return context.tune(model, masks=masks)
