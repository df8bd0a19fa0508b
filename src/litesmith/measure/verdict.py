"""Where a quantized model loses accuracy: a verdict, then its causes by the damage they do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from litesmith.errors import LitesmithError
from litesmith.ir.types import Model, Op, Tensor
from litesmith.measure.accuracy import Evaluation, evaluate_all
from litesmith.measure.alone import Drift, Judge, Part
from litesmith.measure.causes import CAUSES, Blame, Cause, blamed
from litesmith.measure.data import Samples
from litesmith.measure.doctor import Diagnosis
from litesmith.measure.facts import tools
from litesmith.measure.footprint import op_macs
from litesmith.measure.lint import lint
from litesmith.measure.loss import losses
from litesmith.measure.samples import Data
from litesmith.measure.twins import Twin, scores, twins
from litesmith.measure.unaided import unaided
from litesmith.passes.fold import Fold
from litesmith.passes.layers import layers_of
from litesmith.passes.recipe import apply, is_float
from litesmith.passes.schemes import SCHEMES
from litesmith.passes.step import Context
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from litesmith.units import gain_text, percent_text, score_text, total_text

# Samples that single layers and remedies are tried on; accuracy is told of all.
_MOST_SAMPLES, _LEAST_SAMPLES = 64, 16
_MOST_MACS = 10**10  # for one try: half a second

# A share of the whole damage below which a cause is not worth a word; more for what is usual.
_WORTH, _WORTH_IF_USUAL = 0.1, 0.3
_MOST_FINDINGS, _MOST_NAMED, _MOST_ALONE, _MOST_TRIED, _MOST_KEPT = 5, 3, 6, 5, 3

# Damage that no labels were seen to notice: of class probabilities, in nats; else noise, 20 dB.
_HARMLESS_NATS, _HARMLESS_NOISE = 0.02, 0.01
# Scores this noisy (15 dB) are looked into whatever the probabilities say, unless labels do.
_NOISY = 0.03

# So much of all ranges must cut values before the data, not a range, is at fault.
_OTHER_DATA = 1 / 3

# Ops that give values that they were given.
_MOVING = frozenset({"EXPAND_DIMS", "PAD", "PADV2", "RESHAPE", "SQUEEZE", "TRANSPOSE"})


@dataclass(frozen=True)
class Verdict:
    """What quantization costs a model, in a sentence, and why.

    drift       of the answers from the float model's; None where there is none to compare with
    evaluation  the accuracy beside the float model's, where it could be told
    """

    sentence: str
    findings: tuple[Diagnosis, ...]
    drift: Drift | None = None
    evaluation: Evaluation | None = None


def examine(model: Model, data: Data, *, against: Model | None = None) -> Verdict:
    """Where accuracy is lost: in a quantized model beside its float one, or in a float model once
    it is quantized to int8 here."""
    few = _spread(data, _MOST_SAMPLES)
    problems = list(_problems(model, data))
    is_ours = is_float(model) and against is None
    if against is None and not is_ours:
        return _without_float(model, few, problems)
    reference = Fold(float16=True).apply(against or model, Context()).model
    if is_ours:
        made = apply(model, "quantize(to=int8)", Context(tools(few))).model
        model = load(to_bytes(made))
    examination = _Examination(model, reference, few, is_ours)
    evaluation = _evaluated(model, reference, data)
    found = (*problems, *examination.findings(_is_harmless(evaluation)))
    sentence = examination.sentence(evaluation, found)
    return Verdict(sentence, found[:_MOST_FINDINGS], examination.drift, evaluation)


def _without_float(model: Model, data: Data, problems: Sequence[Diagnosis]) -> Verdict:
    found = (*problems, *unaided(model, data))
    told = "nothing stands out" if not found else found[0].what
    sentence = (
        f"{_scheme(model)}: {told} (from the file and the data alone; --against FLOAT.tflite tells "
        "what quantization costs, and where)"
    )
    return Verdict(sentence, found[:_MOST_FINDINGS])


def _spread(data: Data, most: int) -> Data:
    return cast(Data, data.spread(most)) if isinstance(data, Samples) else data


def _problems(model: Model, data: Data) -> Iterator[Diagnosis]:
    """Data that cannot tell anything."""
    for problem in lint(data, model):
        if problem.serious:
            yield Diagnosis(
                problem.what,
                f"the data {data.source}",
                problem.why,
                "what is measured with this data",
                f"litesmith eval MODEL --data DATA  # {problem.fix}",
            )


def _evaluated(model: Model, reference: Model, data: Data) -> Evaluation | None:
    try:
        return evaluate_all([model], data, against=reference)[0]
    except LitesmithError:  # labels or outputs that no metric is for; the drift is told anyway
        return None


def _is_harmless(evaluation: Evaluation | None) -> bool | None:
    """Whether the labels notice no loss; None where nobody knows."""
    against = evaluation.against if evaluation else None
    if against is None or against.difference_low is None or against.difference_high is None:
        return None
    return against.difference_low <= 0 <= against.difference_high


class _Group(NamedTuple):
    """The ops that share a cause; each with the share of the damage that it does, if tried."""

    cause: Cause
    share: float
    worst: list[tuple[float, Blame]]


class _Examination:
    """A quantized model and the float one it stands for, tried in parts on a few samples."""

    def __init__(self, model: Model, reference: Model, data: Data, is_ours: bool) -> None:
        self._model, self._reference, self._data = model, reference, data
        self._is_ours = is_ours
        self._twins = twins(model, reference)
        self._scores = scores(reference, self._twins)
        macs = sum(op_macs(op) or 0 for op in reference.main.ops)
        count = min(max(_MOST_MACS // max(macs, 1), _LEAST_SAMPLES), _MOST_SAMPLES)
        self._judge = Judge(reference, self._scores, _spread(data, count))
        self.drift = self._judge.drift(model, [twin.ours for twin in self._scores])
        self._places = {op: place for place, op in enumerate(reference.main.ops)}
        self._tried: dict[str, Drift | None] = {}
        self._harmless = _HARMLESS_NATS if self._judge.chooses else _HARMLESS_NOISE
        self._is_harmless = True

    def findings(self, is_harmless: bool | None) -> list[Diagnosis]:
        is_slight = self.drift.damage < self._harmless
        is_quiet = self.drift.noise < _NOISY
        self._is_harmless = is_slight and (is_quiet if is_harmless is None else is_harmless)
        if self._is_harmless:
            return []
        found = losses(self._model, self._reference, self._before_scores(), self._data)
        return [self._diagnosis(group) for group in self._ranked(blamed(found))]

    def _before_scores(self) -> list[Twin]:
        """What can still change the scores."""
        last = max(self._twins.index(twin) for twin in self._scores)
        return [t for t in self._twins[: last + 1] if t.op is None or t.op.kind not in _MOVING]

    def _ranked(self, blames: Sequence[Blame]) -> list[_Group]:
        """The causes that matter, with the share of the damage that each alone would do."""
        groups: list[_Group] = []
        for cause in CAUSES:
            group = [blame for blame in blames if blame.cause is cause]
            share = self._share(group) if group else 0.0
            if share >= (_WORTH_IF_USUAL if cause.is_usual else _WORTH):
                groups.append(_Group(cause, share, self._worst(group, share)))
        return sorted(groups, key=lambda group: (group.cause.is_usual, -group.share))

    def _share(self, group: Sequence[Blame]) -> float:
        parts: list[Part] = [(blame.loss.twin, blame.cause.part) for blame in group]
        return self._judge.alone(parts).damage / max(self.drift.damage, 1e-12)

    def _worst(self, blames: Sequence[Blame], share: float) -> list[tuple[float, Blame]]:
        """The ops of a cause, what does most damage first; those with most noise are tried."""
        if len(blames) == 1:
            return [(share, blames[0])]
        noisy = sorted(blames, key=lambda blame: -blame.noise)
        tried = [(self._share([blame]), blame) for blame in noisy[:_MOST_ALONE]]
        tried.sort(key=lambda pair: -pair[0])
        return tried + [(0.0, blame) for blame in noisy[_MOST_ALONE:]]

    def _diagnosis(self, group: _Group) -> Diagnosis:
        named = [
            f"{blame.loss.twin.where} {percent_text(min(share, 1.0))}"
            for share, blame in group.worst[:_MOST_NAMED]
        ]
        more = len(group.worst) - len(named)
        worst = group.worst[0][1]
        first = " ".join(worst.loss.twin.where.split()[:2])
        recipe, after = self._best(group)
        before = score_text(self.drift.decibels, "dB")
        gain = "no step that was tried lowers it"
        if after:
            gain = f"{before}, {score_text(after.decibels, 'dB')} with the command"
        share = min(group.share, 1.0)
        return Diagnosis(
            self._title(group),
            ", ".join(named) + (f" and {more} more" if more else ""),
            f"{group.cause.why}; {first}: {worst.seen}",
            f"{percent_text(share)} of the error; {gain}",
            self._command(recipe),
            share=share,
        )

    def _title(self, group: _Group) -> str:
        forms = [twin for twin in self._before_scores() if twin.quant]
        count = len(group.worst)
        if group.cause is CAUSES[0] and count > _OTHER_DATA * len(forms):
            return f"ranges of other data: {count} of {len(forms)} cut values off"
        return group.cause.what

    # Remedies.

    def _best(self, group: _Group) -> tuple[str, Drift | None]:
        """The first recipe of a cause that leaves no damage, or hardly more than the best."""
        keep = self._keep([blame.loss.twin for _, blame in group.worst[:_MOST_KEPT]])
        scheme = _scheme(self._model)
        recipes = [self._complete(r.format(to=scheme, keep=keep)) for r in group.cause.remedies]
        tried = [(recipe, self._after(recipe)) for recipe in recipes]
        better = [(r, d) for r, d in tried if d is not None and d.damage < self.drift.damage]
        if not better:
            return recipes[-1], None
        enough = max(self._harmless, 2 * min(drift.damage for _, drift in better))
        return next(pair for pair in better if pair[1].damage <= enough)

    def _complete(self, recipe: str) -> str:
        """What was quantized here is quantized first."""
        needs = self._is_ours and "quantize" not in recipe
        return f"quantize(to=int8) | {recipe}" if needs else recipe

    def _keep(self, found: Sequence[Twin]) -> str:
        """The float model's ops that write and read some tensors."""
        tensors = {twin.theirs for twin in found}
        ops = [op for op in self._reference.main.ops if _touches(op, tensors)]
        return f"[{', '.join(str(self._places[op]) for op in ops)}]"

    def _after(self, recipe: str) -> Drift | None:
        """The drift of the model that a recipe makes; None where it makes none, or one too many."""
        if recipe not in self._tried:
            if len(self._tried) == _MOST_TRIED:
                return None
            self._tried[recipe] = self._try(recipe)
        return self._tried[recipe]

    def _try(self, recipe: str) -> Drift | None:
        context = Context(tools(self._data), self._reference)
        start = self._reference if "quantize" in recipe else self._model
        try:
            made = load(to_bytes(apply(start, recipe, context).model))
            ours = {twin.theirs: twin.ours for twin in twins(made, self._reference)}
            return self._judge.drift(made, [ours[twin.theirs] for twin in self._scores])
        except (LitesmithError, KeyError):  # a step that is not for this model
            return None

    def _command(self, recipe: str) -> str:
        out = "--data DATA -o OUT.tflite"
        if "quantize" not in recipe:
            return f'litesmith apply MODEL "{recipe}" --reference FLOAT {out}'
        return f'litesmith apply FLOAT "{recipe}" {out}'

    # The sentence.

    def sentence(self, evaluation: Evaluation | None, found: Sequence[Diagnosis]) -> str:
        scheme = _scheme(self._model)
        told = f"{scheme}: {_loss(evaluation)}output SNR {score_text(self.drift.decibels, 'dB')}"
        named = [one for one in found if one.share is not None]
        if named:
            return f"{told}; {percent_text(named[0].share or 0.0)} of the error: {named[0].what}"
        if self._is_harmless:
            return f"{told}: no loss beyond the noise"
        return f"{told}: spread over the model, with no cause that stands out"


def _loss(evaluation: Evaluation | None) -> str:
    against = evaluation.against if evaluation else None
    if evaluation is None or against is None or against.difference is None:
        if against is not None and against.agreement is not None:
            return f"top-1 agreement {score_text(against.agreement, 'share')} with float; "
        return ""
    ends = against.difference_low or 0.0, against.difference_high or 0.0
    gain = gain_text(against.difference, evaluation.unit, *ends)
    return f"{evaluation.title} {gain} against float on {total_text(evaluation.n)} samples; "


def _touches(op: Op, tensors: set[Tensor]) -> bool:
    return any(t in tensors for t in (*op.inputs, *op.outputs) if t is not None)


def _scheme(model: Model) -> str:
    """The scheme that most layers of a model follow."""
    counts: dict[str, int] = {}
    for layer in layers_of(model.main).values():
        data = "int8" if layer.data.dtype == "uint8" else layer.data.dtype
        weights = "int8" if layer.weight.dtype == "uint8" else layer.weight.dtype
        for name, scheme in SCHEMES.items():
            if scheme == (data, weights, layer.unpack is not None):
                counts[name] = counts.get(name, 0) + 1
    return max(counts, key=lambda name: counts[name]) if counts else "int8"
