"""Data for judging several models: the same samples for all, prepared for each; and candidates that
learn the data first."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from litesmith.accuracy import scoring
from litesmith.accuracy.chance import at_chance
from litesmith.accuracy.metrics import choose_metric, difference_of, metric_named
from litesmith.accuracy.paired import Groups
from litesmith.data.guess_norm import class_count
from litesmith.data.preparation import Preparation
from litesmith.data.sample_splits import split_data
from litesmith.data.samples import Data
from litesmith.data.sources import Given, open_data
from litesmith.errors import BadInput, LitesmithError
from litesmith.ir.types import Array, Model
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.progress import Note, Status
from litesmith.search.choosing.candidates import ModelCandidate
from litesmith.search.trial.data_split import refuse_shared
from litesmith.tflite.read_metadata import metadata
from litesmith.training.teaching.retrain_request import HELD_OUT, RetrainRequest
from litesmith.training.teaching.retraining import teach_classes
from litesmith.transfer.embedding import embedding_of
from litesmith.transfer.labelled_data import open_beside, open_labelled, sources_of, split_by_class
from litesmith.units import plain, total_text

# Calibration samples are not scored.
CALIBRATION_SHARE = 1 / 5

_WAY_OUT = phrase(
    "choose among models that were made for these classes, or teach them with --retrain"
)


Tell = Callable[[str, float], None]  # what is going on, and the share of it that is done
IsTrusted = Callable[[ModelCandidate, Data, str], bool]  # a model on data by a metric


class GivenData(NamedTuple):
    """Data as it was given."""

    given: Given
    preparation: Preparation
    samples: int | None = None

    @property
    def name(self) -> str:
        return str(self.given) if isinstance(self.given, str) else phrase("the given data")


class JudgingData(NamedTuple):
    """The data that judges a candidate, and the data that calibrates its int8 version."""

    data: Data
    calibration: Data | None


def find_judges(
    candidates: Sequence[ModelCandidate],
    source: GivenData,
    other: Given | None,
    *,
    calibrates: bool,
) -> dict[str, JudgingData]:
    """Opens the data for each candidate; raises where candidates would get different samples."""
    if isinstance(source.given, Iterator):
        raise BadInput("a generator is used up by the first model; give a function that makes one")
    opened = {c.name: _open(c, source) for c in candidates}
    refuse_others(opened)
    opened = _in_same_groups(opened)
    found: dict[str, JudgingData] = {}
    for candidate in candidates:
        data = opened[candidate.name]
        if other is not None:
            beside = _open(candidate, source._replace(given=other, samples=None))
            refuse_shared(beside, data)
            found[candidate.name] = JudgingData(data, beside)
        elif calibrates:
            few, rest = split_data(data, (CALIBRATION_SHARE, 1 - CALIBRATION_SHARE))
            found[candidate.name] = JudgingData(rest, few)
        else:
            found[candidate.name] = JudgingData(data, None)
    return found


def _open(candidate: ModelCandidate, source: GivenData) -> Data:
    """Opens the data for a candidate; errors name the candidate."""
    try:
        return open_data(
            source.given,
            candidate.model,
            preparation=source.preparation,
            samples=source.samples,
        )
    except LitesmithError as error:
        raise type(error)(f"{plain(candidate.name)}: {error}") from None


def refuse_others(opened: dict[str, Data]) -> None:
    """Raises where models would be judged by different samples, for example because of another
    batch size."""
    first, *rest = opened
    for name in rest:
        if item_names(opened[name]) != item_names(opened[first]):
            raise BadInput(
                "{name} and {first} would be given different samples, as models with a "
                "batch of their own are; leave one out, or give --samples that every batch "
                "divides",
                name,
                first,
            )


def _in_same_groups(opened: dict[str, Data]) -> dict[str, Data]:
    """Gives all data the groups of the first, since the input size of a model must not change
    groups."""
    first = next(iter(opened.values())).items.stored
    if first is None:
        return opened
    return {
        name: data
        if data.items.stored is None
        else replace(data.items.stored, grouping=first.grouping)
        for name, data in opened.items()
    }


def item_names(data: Data) -> tuple[str, ...]:
    """Names that identify the items of the data."""
    stored = data.items.stored
    return (data.digest,) if stored is None else stored.names


def common_metric(
    candidates: Sequence[ModelCandidate],
    found: dict[str, JudgingData],
    asked: str,
    *,
    trusted: IsTrusted,
) -> str:
    """The metric for all candidates; raises where the metric does not fit the labels of one.

    With `trusted`, a model may do no better than guessing.
    """
    names = {c.name: _metric(c, found[c.name].data, asked) for c in candidates}
    first = candidates[0].name
    for name, metric in names.items():
        if metric != names[first]:
            raise BadInput(
                "{name} is judged by {metric} and {first} by {names}, which cannot be "
                "compared; name one with --metric",
                name,
                metric,
                first,
                names[first],
            )
    if names[first] in ("top1", "top5"):
        _refuse_other_labels(candidates)
    for candidate in candidates if names[first] == "top1" else ():
        data = found[candidate.name].data
        if not trusted(candidate, data, names[first]):
            _refuse_chance(candidate, data)
    return names[first]


def _metric(candidate: ModelCandidate, data: Data, asked: str) -> str:
    first = next(iter(data), None)
    if first is None:
        raise BadInput("data {source}: there is no sample", data.source)
    if first.label is None and asked == "auto":
        raise BadInput(
            "data {source}: has no labels, so that no accuracy can be told; give folders by "
            "class or y in an .npz, or leave out --data to compare time, size and memory",
            data.source,
        )
    try:
        return choose_metric(candidate.model, data, first, asked, has_reference=False)[0]
    except LitesmithError as error:
        raise type(error)(
            phrase("{name}: {error}; {way_out}", candidate.name, error, _WAY_OUT)
        ) from None


def _refuse_other_labels(candidates: Sequence[ModelCandidate]) -> None:
    """Raises where models distinguish different classes: their shares of right answers cannot be
    ranked."""
    first = candidates[0]
    for other in candidates[1:]:
        counts = [class_count(one.model) for one in (first, other)]
        names = [{*map(str.casefold, metadata(one.model).labels)} for one in (first, other)]
        one, two = (0 if count is None else count for count in counts)
        strange = all(names) and not names[0] & names[1]
        if (None not in counts and abs(one - two) > 1) or strange:
            raise BadInput(
                "{first} tells {count} classes apart and {other} {count2}, which are not the same; "
                "right answers among different classes cannot be compared; {way_out}",
                first.name,
                total_text(one),
                other.name,
                total_text(two),
                _WAY_OUT,
            )


def _refuse_chance(candidate: ModelCandidate, data: Data) -> None:
    told = at_chance(candidate.model, data)
    if told:
        raise BadInput("{name}: {told}; or go on anyway with --trust-data", candidate.name, told)


def worse_beyond_noise(
    metric: str, own: Sequence[float], other: Sequence[float], groups: Groups = None
) -> bool | None:
    """Whether the first model is worse than the second, by their scores on each sample and by the
    groups of the samples. None where the scores cannot tell: the metric is no mean over samples, or
    the samples differ."""
    row = metric_named(metric)
    is_mean = row.finish is scoring.first and row.whole is None
    if not is_mean or len(own) != len(other) or not own:
        return None
    groups = groups if groups is not None and len(groups) == len(own) else None
    found = difference_of(row, _column(own), _column(other), groups)
    return found.high < 0 if row.better >= 0 else found.low > 0


def _column(scores: Sequence[float]) -> Array:
    return cast(Array, np.array(scores, np.float64)[:, None])


# Models that learn the data first.


class LessonData(NamedTuple):
    """The data to learn from, and separate data to judge by where there is some."""

    source: GivenData
    val: Given | None = None

    def open(self, candidate: ModelCandidate) -> JudgingData:
        """Opens the data of a candidate that has not learned yet; raises where the candidate could
        not learn or the data teaches nothing."""
        try:
            _refuse_unable(candidate.model)
            asked = self.source.preparation
            return self.judge(candidate, asked if asked.is_chosen else replace(asked, norm="raw"))
        except LitesmithError as error:
            raise type(error)(f"{candidate.name}: {error}") from None

    def key(self, judge: JudgingData) -> tuple[str, ...]:
        """A key that is equal where a candidate would learn the same."""
        assert judge.calibration is not None
        return judge.calibration.digest, judge.data.digest, self.source.preparation.text

    def judge(
        self, candidate: ModelCandidate, preparation: Preparation | None = None
    ) -> JudgingData:
        """Divides the data of a candidate into samples kept out of its training, which judge it,
        and the training samples."""
        given, proof, _ = sources_of(self.source.given, self.val)
        asked = self.source.preparation if preparation is None else preparation
        found = open_labelled(given, candidate.model, asked, self.source.samples)
        if proof is None:
            learned, beside = split_by_class(found, 1 / HELD_OUT)
        else:
            beside = open_beside(proof, candidate.model, found)
            known = {*beside.data.digests}
            digests = found.data.digests
            learned = found.at(row for row, one in enumerate(digests) if one not in known)
        return JudgingData(beside.data, learned.data)

    def teach(
        self, candidate: ModelCandidate, place: Path, tell: Tell
    ) -> tuple[str, tuple[str, ...]]:
        """Writes the candidate with a head for the classes of the data; returns the recipe and the
        decisions made for the user."""
        request = RetrainRequest(
            candidate.file,
            self.source.given,
            place,
            self.val,
            preparation=self.source.preparation,
            samples=self.source.samples,
        )

        def progress(event: Status | Note) -> None:
            if isinstance(event, Status):
                what = phrase("retraining {name}: {what}", candidate.name, event.what)
                tell(what, event.done / event.of if event.of else 0.0)

        notes = teach_classes(request, progress).notes
        if not candidate.is_taught:
            notes = (
                *notes,
                phrase("only its head has learned: the weights before it are random numbers"),
            )
        return "retrain", notes


def _refuse_unable(model: Model) -> None:
    """Raises where no layer of a model could feed a head."""
    if integer_tensors(Fold(float16=True).apply(model, Context()).model):
        raise BadInput(
            "is quantized, and only float models learn; leave it out, and --quantized makes int8 "
            "forms of the others"
        )
    try:
        embedding_of(model)
    except BadInput:
        raise BadInput(
            "has no vector before a classifier that could be seen; leave it out, or make a "
            "candidate of it with `litesmith retrain --at`"
        ) from None
