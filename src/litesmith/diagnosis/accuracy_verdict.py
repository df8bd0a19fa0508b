"""Where a quantized model loses accuracy: the verdict, then the causes by the damage they do."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.anatomy.footprint import op_macs
from litesmith.calibration.context import problems as calibration_problems
from litesmith.calibration.mixed_outputs import MixedOutput, makers, mixed_outputs, try_cures
from litesmith.calibration.observe import tools
from litesmith.data.guess_norm import class_count
from litesmith.data.lint import Problem, lint
from litesmith.data.samples import Data, Sample, WatchedData
from litesmith.diagnosis.causes import CAUSES, Blame, Cause, find_blames
from litesmith.diagnosis.float_pairs import (
    Pair,
    Twin,
    find_twins,
    inseparable,
    renumber,
    scheme_of,
    scores,
)
from litesmith.diagnosis.op_losses import Drift, DriftJudge, TwinPart, losses
from litesmith.diagnosis.other_forms import Race, race
from litesmith.diagnosis.slowness import Diagnosis
from litesmith.diagnosis.without_reference import diagnose_without_reference
from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model
from litesmith.operating_system import quote
from litesmith.passes.core.recipe import Recipe, apply, is_float, parse, text_of
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import join, phrase
from litesmith.precision.fastest_forms import apply_forms, estimate_forms, fastest_forms
from litesmith.run.core.target import Target
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from litesmith.units import (
    gain_text,
    number_text,
    percent_text,
    score_text,
    time_text,
    total_text,
)

# The number of samples for trying single layers and remedies; accuracy is measured on all samples.
MOST_SAMPLES, _LEAST_SAMPLES = 64, 16
_MOST_MACS = 10**10  # for one try: half a second

# A cause with a smaller share of the damage is not worth mentioning; usual causes need a larger
# one.
_WORTH, _WORTH_IF_USUAL = 0.1, 0.3
_MOST_FINDINGS, _MOST_NAMED, _MOST_ALONE = 5, 3, 6

# Damage that has never changed a score by labels: in nats of class probabilities, or as noise (20
# dB).
HARMLESS_NATS, HARMLESS_NOISE = 0.02, 0.01
# Scores this noisy (15 dB) are examined whatever the probabilities say, unless labels show no loss.
_NOISY = 0.03

# If more than this share of all ranges cut values, the data is at fault rather than a range.
_OTHER_DATA = 1 / 3


# A recipe with this step starts from the float file, any other recipe from the quantized file.
QUANTIZE = "quantize"
# The recipe that shows what int8 costs a float model.
OURS = "quantize(to=int8)"
# Recipes tried besides those made for a cause, and the last resort.
_DYNAMIC, _LAST = "quantize(to=dynamic)", "quantize(to=int16x8)"

# How long the helpful recipes take turns, in seconds: the fastest is recommended.
RACE_SECONDS = 0.3

# A recipe helps where it leaves at most this share of the damage, and less noise.
_BETTER = 0.9
_MOST_TRIED, _MOST_KEPT = 7, 3


@dataclass(frozen=True)
class AccuracyVerdict:
    """What quantization costs a model, in a sentence, and why.

    drift       the distance of the answers from the float model's; None without a float model
    evaluation  the accuracy beside the float model's, where it could be measured
    notes       how these were measured, one sentence each
    pair        the models whose ops can be compared; None where they cannot
    """

    sentence: str
    findings: tuple[Diagnosis, ...]
    drift: Drift | None = None
    evaluation: Evaluation | None = None
    notes: tuple[str, ...] = ()
    pair: Pair | None = field(default=None, repr=False)


# Wraps data so that a pass over it reports its progress and purpose.
Watch = Callable[[Data, str], Data]


def _ignore_progress(data: Data, what: str) -> Data:
    return data


def examine(
    model: Model,
    data: Data,
    *,
    against: Model | None = None,
    target: Target | None = None,
    seconds: float = RACE_SECONDS,
    watch: Watch = _ignore_progress,
) -> AccuracyVerdict:
    """Finds where accuracy is lost: in a quantized model beside its float one, or in a float model
    after quantizing it to int8 here. Among the remedies that help, recommends the fastest on the
    target, by times in turns for the given seconds.
    """
    few = spread(data, MOST_SAMPLES)
    is_ours = is_float(model) and against is None
    if against is None and not is_ours:
        watched = watch(few, phrase("looking at the codes"))
        return _without_float(model, watched, _diagnose_problems(lint(data, model), data.source))
    file = against or model
    reference = Fold(float16=True).apply(file, Context()).model
    if is_ours:
        calibration = tools(watch(few, "calibrating"))
        model = load(to_bytes(apply(file, OURS, Context(calibration)).model))
    pair = Pair(model, reference, file, is_ours)
    evaluation, notes = _evaluate(pair, data, watch)
    problems = _diagnose_problems(lint(data, file), data.source)
    refused = _diagnose_problems(calibration_problems(data, file), data.source) if problems else ()
    is_scored = evaluation and evaluation.against and evaluation.against.difference is not None
    chooses = any(OPS[op.kind].is_softmax for op in reference.main.ops)
    if not is_scored and not chooses:  # problems of the labels do not matter then
        problems = refused
    why_not = inseparable(model) or inseparable(reference)
    mixed = _diagnose_mixed(pair, few, watch, is_refused=bool(refused))
    problems = (*problems, *mixed)
    if why_not:
        return _as_a_whole(pair, evaluation, problems, (*notes, why_not))
    timing = _Timing(target or Target(), seconds)
    examination = _Examination(pair, few, watch, bool(refused), timing)
    found = (*problems, *examination.findings(_is_harmless(evaluation)))
    sentence = examination.sentence(evaluation, found, mixed)
    return AccuracyVerdict(
        sentence, found[:_MOST_FINDINGS], examination.drift, evaluation, notes, pair
    )


def _diagnose_mixed(
    pair: Pair, data: Data, watch: Watch, *, is_refused: bool
) -> tuple[Diagnosis, ...]:
    """Findings for outputs whose small numbers share one scale with large ones, each with the
    remedy that preserved most in a trial."""
    try:
        found = mixed_outputs(pair.model, pair.file, data, pair.file)
        keep = makers(pair.file, found)
        if not keep or scheme_of(pair.model) != "int8":
            return ()
        recipe: Recipe = (Quantize(keep=keep),)
        watched = watch(data, phrase("trying {recipe}", text_of(recipe)))
        kept = apply(pair.file, recipe, Context(tools(watched))).model
        cured, step = try_cures(found, kept, pair.file, data)
    except LitesmithError:  # the recipe does not run, or only this op would be quantized
        return ()
    recipes = {"": (), "float": recipe, "int16": (*recipe, step)}
    return tuple(_describe_mixed(one, recipes[one.lost_least], is_refused) for one in cured)


def _describe_mixed(one: MixedOutput, recipe: Recipe, is_refused: bool) -> Diagnosis:
    top, rest = (number_text(float(f"{number:.3g}")) for number in (one.reach, one.rest))
    after = {
        phrase("the op that makes it in float"): one.cured_db,
        phrase("that op in int16"): one.int16_db,
    }
    tried = [
        phrase("{ratio} ({way})", score_text(db, "dB"), way)
        for way, db in after.items()
        if db is not None
    ]
    command = _command_for(text_of(recipe), " --trust-data" if is_refused else "")
    return Diagnosis(
        phrase("an output holds numbers of several sizes"),
        one.output,
        phrase(
            "one scale serves all: {small} of {channels} channels reach {reach}, the others {rest}",
            one.small,
            one.channels,
            top,
            rest,
        ),
        phrase(
            "the small ones have {before}; {after}",
            score_text(one.snr_db, "dB"),
            join(tried, ", "),
        ),
        command if recipe else "",
    )


def _command_for(recipe: str, trust: str) -> str:
    """The command that applies a recipe to the float model, or to the quantized one."""
    out = f"--data DATA{trust} -o OUT.tflite"
    words = quote(recipe) if {*recipe} & {*'"$`\\!'} else f'"{recipe}"'
    if QUANTIZE not in recipe:
        return f"litesmith apply MODEL {words} --reference FLOAT {out}"
    return f"litesmith apply FLOAT {words} {out}"


def _as_a_whole(
    pair: Pair,
    evaluation: Evaluation | None,
    found: tuple[Diagnosis, ...],
    notes: tuple[str, ...],
) -> AccuracyVerdict:
    """The verdict on a model that cannot be examined part by part."""
    drift = evaluation.against.snr_db if evaluation and evaluation.against else None
    if drift is None:
        raise CannotRun(notes[-1])
    sentence = phrase(
        "{told}: {loss}output SNR {score}", pair.origin, _loss(evaluation), score_text(drift, "dB")
    )
    return AccuracyVerdict(sentence, found, None, evaluation, notes)


def _without_float(model: Model, data: Data, problems: Sequence[Diagnosis]) -> AccuracyVerdict:
    found = (*problems, *diagnose_without_reference(model, data))
    first = phrase("nothing stands out") if not found else found[0].what
    sentence = phrase(
        "{scheme_of}: {told} (from the file and the data alone; --against FLOAT.tflite "
        "tells what quantization costs, and where)",
        scheme_of(model),
        first,
    )
    return AccuracyVerdict(sentence, found[:_MOST_FINDINGS])


def spread(data: Data, most: int) -> Data:
    """Picks at most `most` samples, from all over the data."""
    stored = data.items.stored
    return data if stored is None else stored.spread(most)


def _diagnose_problems(problems: Sequence[Problem], source: str) -> tuple[Diagnosis, ...]:
    """Findings for data that cannot show anything."""
    return tuple(
        Diagnosis(
            problem.what,
            phrase("the data {source}", source),
            problem.why,
            phrase("what is measured with this data"),
            f"litesmith eval MODEL --data DATA  # {problem.fix}",
        )
        for problem in problems
        if problem.serious
    )


def _evaluate(pair: Pair, data: Data, watch: Watch) -> tuple[Evaluation | None, tuple[str, ...]]:
    """Measures the accuracy by the labels, or, where the model does not know these classes, the
    drift of the answers."""
    watched = watch(data, "evaluating")
    notes: tuple[str, ...] = ()
    try:
        found = evaluate_all([pair.model], watched, against=pair.reference)[0]
        if _knows_classes(pair.reference, data, found):
            return found, tuple(note for note in found.notes if note not in data.notes)
        notes = (
            phrase("the labels are ignored: the float model does not distinguish these classes"),
        )
    except LitesmithError as error:  # no metric fits the labels or outputs
        notes = (phrase("the labels are ignored: {error}", error),)
    unlabelled = WatchedData(watched, _without_labels)
    try:
        return evaluate_all([pair.model], unlabelled, against=pair.reference)[0], notes
    except LitesmithError:
        return None, ()


def _without_labels(samples: Iterable[Sample]) -> Iterator[Sample]:
    return (replace(sample, label=None) for sample in samples)


def _knows_classes(reference: Model, data: Data, found: Evaluation) -> bool:
    """Whether class numbers can be classes of the model: the model has at least as many, and is
    right more often than by chance."""
    classes = data.items.classes
    if found.metric != "top1" or classes is None or found.against is None:
        return True
    count = class_count(reference)
    if count is not None and int(classes.max()) >= count:
        return False
    usual = float(np.unique(classes, return_counts=True)[1].max() / classes.size)
    chance = usual + 2 * float(np.sqrt(usual * (1 - usual) / classes.size))
    # Where one class dominates the data, a good model may be right less often than a constant
    # guess.
    return usual > 1 / 2 or (found.against.value or 0.0) > chance


def _is_harmless(evaluation: Evaluation | None) -> bool | None:
    """Whether the labels show no loss; None where that is unknown."""
    against = evaluation.against if evaluation else None
    if against is None or against.difference_low is None or against.difference_high is None:
        return None
    return against.difference_low <= 0 <= against.difference_high


class _Group(NamedTuple):
    """The ops that share a cause, each with its share of the damage where that was tried."""

    cause: Cause
    share: float
    worst: list[tuple[float, Blame]]


class _Tried(NamedTuple):
    """The result of a recipe, and the drift of its answers."""

    drift: Drift
    model: Model


class _Timing(NamedTuple):
    """Where and for how long the helpful recipes are timed."""

    target: Target
    seconds: float


class _Examination:
    """A quantized model and its float one, examined part by part on a few samples."""

    def __init__(
        self, pair: Pair, data: Data, watch: Watch, is_refused: bool, timing: _Timing
    ) -> None:
        self._pair, self._data, self._watch, self._timing = pair, data, watch, timing
        found = find_twins(pair.model, pair.reference)
        self._twins = renumber(found, pair.file) if pair.is_ours else found
        self._scores = scores(pair.reference, self._twins)
        macs = sum(op_macs(op) or 0 for op in pair.reference.main.ops)
        count = min(max(_MOST_MACS // max(macs, 1), _LEAST_SAMPLES), MOST_SAMPLES)
        self._judge = DriftJudge(pair.reference, self._scores, spread(data, count))
        self.drift = self._judge.drift(pair.model, [twin.ours for twin in self._scores])
        self._harmless = HARMLESS_NATS if self._judge.chooses else HARMLESS_NOISE
        self._trust = " --trust-data" if is_refused else ""
        self._known: dict[str, _Tried | None] = {}
        if pair.is_ours:
            self._known[OURS] = _Tried(self.drift, pair.model)
        self._races: dict[tuple[str, ...], Race | None] = {}
        self._is_harmless = True

    def findings(self, is_harmless: bool | None) -> list[Diagnosis]:
        is_slight = self.drift.damage < self._harmless
        is_quiet = self.drift.noise < _NOISY
        self._is_harmless = is_slight and (is_quiet if is_harmless is None else is_harmless)
        if self._is_harmless:
            return []
        watched = self._watch(self._data, phrase("looking at the layers"))
        found = losses(self._pair.model, self._pair.reference, self._before_scores(), watched)
        return list(self._diagnose_problems(self._rank_causes(find_blames(found))))

    def _diagnose_problems(self, groups: Sequence[_Group]) -> Iterator[Diagnosis]:
        """A finding for each cause, with the share of the damage that it adds to the causes before,
        so that all shares add up to at most the whole."""
        parts: list[TwinPart] = []
        told = 0.0
        for group in groups:
            parts += [(blame.loss.twin, blame.cause.part) for _, blame in group.worst]
            together = group.share if not told else self._damage_share(parts)
            added = min(max(together, told), 1.0) - told
            yield self._diagnosis(group, added)
            told += added

    def _before_scores(self) -> list[Twin]:
        """The twins that can still change the scores."""
        last = max(self._twins.index(twin) for twin in self._scores)
        return [t for t in self._twins[: last + 1] if t.op is None or not OPS[t.op.kind].moves_data]

    def _rank_causes(self, blames: Sequence[Blame]) -> list[_Group]:
        """The causes that matter, with the share of the damage that each does alone."""
        groups: list[_Group] = []
        for cause in CAUSES:
            group = [blame for blame in blames if blame.cause is cause]
            share = self._share(group) if group else 0.0
            if share >= (_WORTH_IF_USUAL if cause.is_usual else _WORTH):
                groups.append(_Group(cause, share, self._worst(group, share)))
        return sorted(groups, key=lambda group: (group.cause.is_usual, -group.share))

    def _share(self, group: Sequence[Blame]) -> float:
        return self._damage_share([(blame.loss.twin, blame.cause.part) for blame in group])

    def _damage_share(self, parts: Sequence[TwinPart]) -> float:
        """The share of the whole damage that some parts do alone."""
        return self._judge.alone(parts).damage / max(self.drift.damage, 1e-12)

    def _worst(self, blames: Sequence[Blame], share: float) -> list[tuple[float, Blame]]:
        """The ops of a cause, most damaging first; only the noisiest are tried."""
        if len(blames) == 1:
            return [(share, blames[0])]
        noisy = sorted(blames, key=lambda blame: -blame.noise)
        tried = [(self._share([blame]), blame) for blame in noisy[:_MOST_ALONE]]
        tried.sort(key=lambda pair: -pair[0])
        return tried + [(0.0, blame) for blame in noisy[_MOST_ALONE:]]

    def _diagnosis(self, group: _Group, added: float) -> Diagnosis:
        """The finding for a cause; `added` is the share of the damage that no cause before
        it has."""
        named = [
            f"{blame.loss.twin.where} {percent_text(min(share, 1.0))}"
            for share, blame in group.worst[:_MOST_NAMED]
        ]
        more = len(group.worst) - len(named)
        worst = group.worst[0][1]
        twins_at_fault = [blame.loss.twin for _, blame in group.worst]
        command, told = self._remedy(group.cause, twins_at_fault)
        alone = percent_text(min(group.share, 1.0))
        share = phrase("{share} of the error", alone)
        if added < min(group.share, 1.0):
            share = phrase(
                "{share} of the error alone, {added} beside what is above",
                alone,
                percent_text(added),
            )
        return Diagnosis(
            self._title(group),
            ", ".join(named) + (phrase(" and {more} more", more) if more else ""),
            f"{group.cause.why}; {worst.loss.twin.number}: {worst.seen}",
            phrase("{share}; {told}", share, told),
            command,
            share=added,
        )

    def _title(self, group: _Group) -> str:
        forms = [twin for twin in self._before_scores() if twin.quant]
        count = len(group.worst)
        if group.cause is CAUSES[0] and count > _OTHER_DATA * len(forms):
            return phrase(
                "ranges of other data: {count} of {count2} cut values off", count, len(forms)
            )
        return group.cause.what

    def _try_recipe(self, recipe: str) -> "_Tried | None":
        """Applies a recipe to the file that its command would start from, and measures the drift;
        None where the recipe does not suit the model."""
        pair = self._pair
        watched = self._watch(self._data, phrase("trying {recipe}", recipe))
        start = pair.file if QUANTIZE in recipe else pair.model
        try:
            change = apply(start, recipe, Context(tools(watched), pair.file))
            made = load(to_bytes(change.model))
            ours = {twin.theirs: twin.ours for twin in find_twins(made, pair.reference)}
            drift = self._judge.drift(made, [ours[twin.theirs] for twin in self._scores])
            return _Tried(drift, made)
        except (LitesmithError, KeyError):
            return None

    # Remedies.

    def _remedy(self, cause: Cause, found: Sequence[Twin]) -> tuple[str, str]:
        """The command of the fastest recipe that removes the damage, or nearly as much of it as the
        best does, and the outcome. Recipes made for the cause and those for any cause compete; the
        last resort is tried where none of them helps."""
        keep, scheme = self._keep(found[:_MOST_KEPT]), scheme_of(self._pair.model)
        recipes = [self._complete(r.format(to=scheme, keep=keep)) for r in cause.remedies]
        tried = {
            r: self._after(r) for r in recipes if r in self._known or len(self._known) < _MOST_TRIED
        }
        tried |= {recipe: self._after(recipe) for recipe in self._for_any}
        if not self._better(tried):
            tried[_LAST] = self._after(_LAST)
        better = self._better(tried)
        if not better:
            outcomes: list[str] = []
            for recipe, outcome in tried.items():
                unfit = phrase("not for this model")
                came = unfit if outcome is None else score_text(outcome.drift.decibels, "dB")
                outcomes.append(f"{recipe} ({came})")
            return "", phrase("tried in vain: {outcomes}", join(outcomes, ", "))
        least = min(outcome.drift.damage for outcome in better.values())
        enough = max(self._harmless, 2 * least)
        fitting = {r: outcome for r, outcome in better.items() if outcome.drift.damage <= enough}
        recipe, told = self._fastest_recipe(fitting)
        drifts = self.drift, fitting[recipe].drift
        before, after = (score_text(drift.decibels, "dB") for drift in drifts)
        return _command_for(recipe, self._trust), phrase(
            "{before}, {after} with the command", before, after
        ) + told

    @cached_property
    def _for_any(self) -> list[str]:
        """Recipes tried whatever the cause: int8 for the weights alone, and int8 except for ops
        that are faster in float."""
        recipe = parse(OURS)
        forms = estimate_forms(self._pair.file, recipe)
        if forms is not None and forms.is_other:
            forms = fastest_forms(self._pair.file, recipe, self._timing.target)
        found = [_DYNAMIC]
        if forms is not None and forms.is_other:
            found.append(text_of(apply_forms(parse("quantize"), forms)))
        return found

    def _fastest_recipe(self, fitting: Mapping[str, "_Tried"]) -> tuple[str, str]:
        """The recipe with the fastest model, in turns with the file and the float model, and the
        times in words; the first recipe where times cannot be measured."""
        recipes = [*fitting]
        models = [fitting[recipe].model for recipe in recipes]
        known = tuple(recipes)
        if known not in self._races:
            own = self._pair.model, self._pair.reference
            self._races[known] = race(models, own, *self._timing)
        found = self._races[known]
        if found is None:
            return recipes[0], ""
        picked = found.us[found.picked]
        before, real = found.us[-2:]
        times = phrase("; {time} a run, {time2} with it", time_text(before), time_text(picked))
        if picked > real:
            times += phrase(", {time} in float", time_text(real))
        return recipes[found.picked], times

    def _better(self, tried: Mapping[str, "_Tried | None"]) -> dict[str, "_Tried"]:
        most = _BETTER * self.drift.damage
        return {
            recipe: outcome
            for recipe, outcome in tried.items()
            if outcome is not None
            and outcome.drift.damage < most
            and outcome.drift.noise < self.drift.noise
        }

    def _complete(self, recipe: str) -> str:
        """Puts `quantize` first, where the model was quantized here."""
        needs = self._pair.is_ours and QUANTIZE not in recipe
        return f"{OURS} | {recipe}" if needs else recipe

    def _keep(self, found: Sequence[Twin]) -> str:
        """The numbers of the float file's ops that write and read these tensors."""
        tensors = {twin.theirs for twin in found}
        ops = self._pair.reference.main.ops
        touching = [op for op in ops if tensors & {*op.inputs, *op.outputs}]
        written = {tensor for op in touching for tensor in op.outputs}
        places = [n for n, op in enumerate(self._pair.file.main.ops) if written & {*op.outputs}]
        return f"[{', '.join(map(str, places))}]"

    def _after(self, recipe: str) -> "_Tried | None":
        if recipe not in self._known:
            self._known[recipe] = self._try_recipe(recipe)
        return self._known[recipe]

    # The sentence.

    def sentence(
        self,
        evaluation: Evaluation | None,
        found: Sequence[Diagnosis],
        mixed: Sequence[Diagnosis],
    ) -> str:
        drift = score_text(self.drift.decibels, "dB")
        told = phrase(
            "{told}: {loss}output SNR {drift}", self._pair.origin, _loss(evaluation), drift
        )
        named = [one for one in found if one.share is not None]
        if named:
            return phrase(
                "{told}; {share} of the error: {what}",
                told,
                percent_text(named[0].share or 0.0),
                named[0].what,
            )
        if mixed:
            return phrase("{told}; {what}", told, mixed[0].what)
        if self._is_harmless:
            return phrase("{told}: no loss beyond the noise", told)
        return phrase("{told}: spread over the model, with no cause that stands out", told)


def _loss(evaluation: Evaluation | None) -> str:
    against = evaluation.against if evaluation else None
    if evaluation is None or against is None or against.difference is None:
        if against is not None and against.agreement is not None:
            return phrase(
                "top-1 agreement {score} with float; ", score_text(against.agreement, "share")
            )
        return ""
    ends = against.difference_low or 0.0, against.difference_high or 0.0
    gain = gain_text(against.difference, evaluation.unit, *ends)
    return phrase(
        "{title} {gain} against float on {count} samples; ",
        evaluation.title,
        gain,
        total_text(evaluation.n),
    )
