"""`qat`: quantizes, and trains the weights and scales to recover the loss."""

from dataclasses import dataclass, replace

from litesmith.errors import BadInput, CannotApply
from litesmith.ir.types import Model
from litesmith.passes.core.schemes import SCHEMES, Names
from litesmith.passes.core.step import Change, Context
from litesmith.passes.quantizing.correct import Correct
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.quantizing.round import Round
from litesmith.passes.tidy.fold import Fold

_TRAINED = tuple(name for name, scheme in SCHEMES.items() if scheme.weights != "float16")


@dataclass(frozen=True)
class Qat:
    """Quantize as `quantize` does, then train on the data with the rounding of the very file that
    comes out; it begins at the best that needs no training, and never ends behind it.

    to, io, keep, only, per_channel   as in `quantize`
    """

    to: str = "int8"
    io: str = "float"
    keep: Names = ()
    only: Names = ()
    per_channel: bool = True

    def apply(self, model: Model, context: Context) -> Change:
        if self.to not in _TRAINED:
            raise BadInput("qat(to={to}): there are {known}", self.to, ", ".join(_TRAINED))
        held = integer_tensors(model)
        if held:
            raise CannotApply(
                "qat: the model is quantized already ({held}); give the float model", held
            )
        if context.tune is None:
            raise CannotApply("qat: {why_fixed}", context.why_fixed)
        model = Fold(float16=True).apply(model, context).model
        context = replace(context, reference=model)
        step = Quantize(self.to, self.io, self.keep, self.only, per_channel=self.per_channel)
        first = step.apply(model, context)
        begun = self._begun().apply(first.model, context)
        assert context.tune is not None
        tuned = context.tune(begun.model, origin=model)
        return Change(tuned.model, notes=tuned.notes, steps=tuned.steps).after(begun.after(first))

    def _begun(self) -> Correct | Round:
        """The step before the training: careful rounding, which fine steps do not need."""
        is_fine = SCHEMES[self.to].weights == "int8" and self.per_channel
        return Correct() if is_fine else Round()
