"""Whether the result of a recipe opens, before it is written, and which op is to blame if not."""

from dataclasses import replace

from litesmith.errors import BadInput, CannotApply, CannotRun
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import Recipe, apply
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.precision.fastest_forms import ANY_RANGES, before_quantize, quantize_place
from litesmith.run.session import Session
from litesmith.units import plain


def refuse_dead(made: Model, model: Model, recipe: Recipe) -> None:
    """Raises where a quantized model does not open although the original does."""
    why = _fault(made)
    if why is not None and _fault(model) is None:
        raise dead(model, recipe, str(why))


def dead(model: Model, recipe: Recipe, why: str) -> BadInput | CannotRun:
    """The error for a recipe whose result does not open. It says that the original does not open
    either, or which kind of op to keep, if a single kind is to blame."""
    own = _fault(model)
    if own is not None:
        return own
    place = quantize_place(recipe)
    step = recipe[place]
    assert isinstance(step, Quantize)
    kind = _culprit(model, recipe, place, step)
    if not kind:
        return BadInput(
            "{to}: the runtime does not open the result ({why}); give another scheme",
            step.to,
            plain(why),
        )
    return BadInput(
        "{to}: the runtime does not open {kind} in this form ({why}); keep it float with {keep}",
        step.to,
        kind,
        plain(why),
        f"--keep {kind}",
    )


def _culprit(model: Model, recipe: Recipe, place: int, step: Quantize) -> str:
    try:
        reference = before_quantize(model, recipe[:place])
        whole = apply(reference, (step,), Context(ANY_RANGES)).model
    except CannotApply:
        return ""
    if _fault(whole) is None:  # the observed ranges are to blame, not the form of an op
        return ""
    kinds = dict.fromkeys(op.kind for op in reference.main.ops)
    for kind in kinds:
        kept = replace(step, keep=(*step.keep, kind))
        try:
            other = apply(reference, (kept,), Context(ANY_RANGES)).model
        except CannotApply:
            continue
        if _fault(other) is None:
            return kind
    return ""


def _fault(model: Model) -> CannotRun | None:
    """The reason why a model does not open; None where it does."""
    try:
        with Session(model):
            return None
    except CannotRun as error:
        return error
