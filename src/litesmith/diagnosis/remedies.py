"""What helps against a cause of lost accuracy: recipes that were tried, and the command for one."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from litesmith.diagnosis.causes import Cause
from litesmith.diagnosis.float_pairs import Twin
from litesmith.diagnosis.single_op_error import Drift
from litesmith.ir.types import Model, Op, Tensor
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.schemes import SCHEMES
from litesmith.phrases import join, phrase
from litesmith.units import score_text

# A recipe with this step starts from the float file, another one from the quantized file.
QUANTIZE = "quantize"
# What is done to a float model to see what int8 costs it.
OURS = "quantize(to=int8)"
# What is tried where nothing that was made for the cause helps.
_LAST = ("quantize(to=int16x8)", "quantize(to=dynamic)")

# A recipe helps where it leaves no more of the damage than this, and less noise.
_BETTER = 0.9
_MOST_TRIED, _MOST_KEPT = 5, 3


class Pair(NamedTuple):
    """A quantized model and the float one that it is held against.

    reference  the float model, its constants unpacked
    file       the float model as the user's file has it, whose ops a command numbers
    is_ours    True where the quantized model was made here, so that the user has the float one only
    """

    model: Model
    reference: Model
    file: Model
    is_ours: bool

    @property
    def told(self) -> str:
        """How the quantized model came about."""
        if self.is_ours:
            without = phrase("without the correction that litesmith quantize adds")
            return phrase("quantized to int8 here (ranges only, {without})", without)
        return scheme_of(self.model)


class Remedy(NamedTuple):
    """A command, "" where nothing helps, and what came of the tries in words."""

    command: str
    told: str


class Remedies:
    """The recipes that were tried on a pair, each once.

    tried  the drift of what a recipe makes; None where it is not for this model
    """

    def __init__(
        self,
        pair: Pair,
        tried: Callable[[str], Drift | None],
        before: Drift,
        harmless: float,
        is_refused: bool,
    ) -> None:
        self._pair, self._try, self._before, self._harmless = pair, tried, before, harmless
        self._trust = " --trust-data" if is_refused else ""
        self._known: dict[str, Drift | None] = {OURS: before} if pair.is_ours else {}

    def best(self, cause: Cause, found: Sequence[Twin]) -> Remedy:
        """The first recipe that leaves no damage, or hardly more than the best; of those made for
        the cause, and where none helps, of the last ones."""
        keep, scheme = self._keep(found[:_MOST_KEPT]), scheme_of(self._pair.model)
        recipes = [self._complete(r.format(to=scheme, keep=keep)) for r in cause.remedies]
        tried = {r: self._after(r) for r in recipes if self._is_affordable(r)}
        if not self._better(tried):
            tried |= {recipe: self._after(recipe) for recipe in _LAST}
        better = self._better(tried)
        if not better:
            outcomes = [_outcome(recipe, drift) for recipe, drift in tried.items()]
            return Remedy("", phrase("tried in vain: {outcomes}", join(outcomes, ", ")))
        enough = max(self._harmless, 2 * min(drift.damage for drift in better.values()))
        recipe = next(recipe for recipe, drift in better.items() if drift.damage <= enough)
        before, after = (score_text(d.decibels, "dB") for d in (self._before, better[recipe]))
        return Remedy(
            self._command(recipe), phrase("{before}, {after} with the command", before, after)
        )

    def _better(self, tried: Mapping[str, Drift | None]) -> dict[str, Drift]:
        most = _BETTER * self._before.damage
        return {
            recipe: drift
            for recipe, drift in tried.items()
            if drift is not None and drift.damage < most and drift.noise < self._before.noise
        }

    def _complete(self, recipe: str) -> str:
        """What was quantized here is quantized first."""
        needs = self._pair.is_ours and QUANTIZE not in recipe
        return f"{OURS} | {recipe}" if needs else recipe

    def _keep(self, found: Sequence[Twin]) -> str:
        """The ops of the float file that write and read some tensors, by their numbers there."""
        tensors = {twin.theirs for twin in found}
        touching = [op for op in self._pair.reference.main.ops if _touches(op, tensors)]
        written = {tensor for op in touching for tensor in op.outputs}
        places = [n for n, op in enumerate(self._pair.file.main.ops) if written & {*op.outputs}]
        return f"[{', '.join(map(str, places))}]"

    def _is_affordable(self, recipe: str) -> bool:
        return recipe in self._known or len(self._known) < _MOST_TRIED

    def _after(self, recipe: str) -> Drift | None:
        if recipe not in self._known:
            self._known[recipe] = self._try(recipe)
        return self._known[recipe]

    def _command(self, recipe: str) -> str:
        out = f"--data DATA{self._trust} -o OUT.tflite"
        if QUANTIZE not in recipe:
            return f'litesmith apply MODEL "{recipe}" --reference FLOAT {out}'
        return f'litesmith apply FLOAT "{recipe}" {out}'


def _outcome(recipe: str, drift: Drift | None) -> str:
    came = phrase("not for this model") if drift is None else score_text(drift.decibels, "dB")
    return f"{recipe} ({came})"


def _touches(op: Op, tensors: set[Tensor]) -> bool:
    return any(t in tensors for t in (*op.inputs, *op.outputs) if t is not None)


def scheme_of(model: Model) -> str:
    """The scheme that most layers of a model follow."""
    counts: dict[str, int] = {}
    for layer in layers_of(model.main).values():
        data = "int8" if layer.data.dtype == "uint8" else layer.data.dtype
        weights = "int8" if layer.weight.dtype == "uint8" else layer.weight.dtype
        for name, scheme in SCHEMES.items():
            if scheme == (data, weights, layer.unpack is not None):
                counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else "int8"
