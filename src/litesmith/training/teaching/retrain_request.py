"""The request of `retrain`, its result, and its record, which suffices to rebuild the report."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from litesmith._version import VERSION
from litesmith.accuracy.paired import Estimate
from litesmith.data.preparation import UNTOUCHED, Preparation
from litesmith.data.sources import Given
from litesmith.display import show_html, show_line
from litesmith.evidence.codec import encode_fields
from litesmith.evidence.measurement import Measurement, Trial
from litesmith.evidence.retrain_record import (
    ClassShare,
    EmbeddingRow,
    FineTuning,
    FromScratch,
    HeadTried,
    MistakeRow,
    RetrainData,
    RetrainInside,
    RetrainResult,
    RetrainSummary,
    RetrainTrial,
    ShareRight,
    WordRow,
)
from litesmith.ir.types import Model
from litesmith.known_networks import is_network
from litesmith.phrases import phrase
from litesmith.tflite.file import digest
from litesmith.timing.host import host
from litesmith.timing.statistics import Row
from litesmith.training.settings import Training, TrainingRecord
from litesmith.training.teaching.picture_tasks import PICTURE_TASKS
from litesmith.transfer.confusion import Confusion
from litesmith.transfer.embedding import Embedding
from litesmith.transfer.head import Head
from litesmith.transfer.labelled_data import Labelled
from litesmith.units import number_text, plain, score_text, total_text

# One item in this many of every class is held out, where no separate data is given to judge by.
HELD_OUT = 5

NO_TUNING = "none"


def is_scratch(backbone: Path) -> bool:
    return is_network(str(backbone)) and not backbone.exists()


@dataclass(frozen=True)
class RetrainRequest:
    """What to learn, from what and how.

    backbone   a file; otherwise the name of a catalogue network, which learns from random weights
    at         the tensor to learn from; "" for the one before the head
    val        data to judge by; None for a part of the data
    balance    True where every class has the same weight, however many items it has
    fine_tune  none; last, all, or the number of layers to train behind the head
    shape      sizes of the backbone's inputs, as the step `resize` takes them; otherwise its own
    raw        True where a detector outputs its head's predictions, and boxes are selected
               elsewhere
    """

    backbone: Path
    data: Given
    out: Path
    val: Given | None = None
    at: str = ""
    preparation: Preparation = UNTOUCHED
    samples: int | None = None
    balance: bool = False
    fine_tune: str = NO_TUNING
    training: Training = field(default_factory=Training)
    record: TrainingRecord = field(default_factory=TrainingRecord)
    shape: tuple[str, ...] = ()
    raw: bool = False

    @property
    def is_scratch(self) -> bool:
        """True where a network of the catalogue is meant; a file of that name comes first."""
        return is_scratch(self.backbone)

    @property
    def trains(self) -> bool:
        """True where torch is needed, and a record of the training."""
        is_taught = self.preparation.task in PICTURE_TASKS
        return self.is_scratch or is_taught or self.fine_tune != NO_TUNING


class FineTuned(NamedTuple):
    """The result of fine-tuning.

    model     the trained model; None where it is no better, and the head alone stays
    told      the course of the training in a sentence
    before    the head's share of right answers on samples held out from the training
    after     the trained model's share
    """

    model: Model | None
    told: str
    before: float
    after: float
    held: int


class Trained(NamedTuple):
    """A network trained from random weights.

    name       its catalogue name, with its size
    told       the course of the training in a sentence
    first      the loss on held-out samples before the training
    best       the least loss reached
    """

    model: Model
    name: str
    told: str
    first: float
    best: float


@dataclass(frozen=True, eq=False, repr=False)
class Retrained:
    """A retrained model and how good it is on items that it has not seen.

    value, low, high, n  the share of them that it has right, its 95 % interval, how many they are
    head       the solved head; None where a whole network was trained from scratch
    report     the page of the folder with the evidence; None where none was asked for
    """

    request: RetrainRequest
    embedding: Embedding
    learned: Labelled
    proof: Labelled
    head: Head | None
    found: Confusion
    notes: tuple[str, ...]
    seconds: float
    tuned: FineTuned | None = None
    head_alone: Confusion | None = None
    scratch: Trained | None = None
    report: Path | None = None

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        """The result in one line."""
        value = score_text(self.value, "share", self.low, self.high)
        return phrase(
            "{name}: top-1 {value} on {count} items not learned from",
            plain(self.out.name),
            value,
            total_text(self.n),
        )

    def to_rows(self) -> list[Row]:
        """One row a class, for a data frame."""
        counts = self.found.table.sum(axis=1).tolist()
        shares = map(self.found.of_class, range(len(self.classes)))
        return [
            {"class": name, "n": count} | ({} if share is None else share._asdict())
            for name, count, share in zip(self.classes, counts, shares, strict=True)
        ]

    def to_json(self) -> dict[str, object]:
        """Everything that a program wants to know, as `--json` prints it."""
        page = None if self.report is None else str(self.report)
        return {"schema": 1, **encode_fields(retrain_result(self)), "report": page}

    @property
    def out(self) -> Path:
        return self.request.out

    @property
    def value(self) -> float:
        return self.found.value.value

    @property
    def low(self) -> float:
        return self.found.value.low

    @property
    def high(self) -> float:
        return self.found.value.high

    @property
    def n(self) -> int:
        return len(self.found.labels)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.learned.names

    @property
    def digest(self) -> str:
        return digest(self.out)


_TARGET = "cpu:1"


def retrain_result(result: Retrained) -> RetrainResult:
    """The result as a program needs it; the record and --json share these fields."""
    made = result.scratch
    return RetrainResult(
        out=str(result.out),
        right=_share(result.found.value),
        n=result.n,
        classes=tuple(result.classes),
        metric="top1",
        per_class=tuple(_class_shares(result.found)),
        confusion=tuple(tuple(row) for row in result.found.table.tolist()),
        learned=sum(result.learned.counts),
        embedding=EmbeddingRow(
            tensor=result.embedding.tensor.name,
            size=result.embedding.tensor.shape[-1],
            how=result.embedding.how,
        ),
        preparation=result.learned.data.preparation.text,
        strength=None if result.head is None else result.head.strength,
        fine_tuned=_fine_tuning(result),
        from_scratch=made and FromScratch(made.name, made.first, made.best, made.told),
        digest=result.digest,
        seconds=round(result.seconds, 3),
        notes=result.notes,
    )


def retrain_summary(result: Retrained, command: str) -> RetrainSummary:
    """The record of a folder."""
    learned, judged = result.learned, result.proof
    tried = () if result.head is None else result.head.tried
    return RetrainSummary(
        schema=1,
        version=VERSION,
        command=command,
        model=result.out.name,
        backbone=result.scratch.name if result.scratch else result.request.backbone.name,
        backbone_digest=_backbone_digest(result),
        data=RetrainData(
            learned=learned.data.source,
            judged=judged.data.source,
            is_part=judged.data.source == learned.data.source,
            learned_counts=tuple(learned.counts),
            judged_counts=tuple(judged.counts),
        ),
        head=tuple(HeadTried(one.strength, one.loss, one.accuracy) for one in tried),
        environment=host().facts(),
        result=retrain_result(result),
    )


def retrain_inside(result: Retrained) -> RetrainInside:
    """The bulky part: the mistakes with their pictures."""
    return RetrainInside(
        tuple(
            MistakeRow(
                one.name,
                one.true,
                one.said,
                one.confidence,
                one.thumbnail,
                tuple(WordRow(word.word, word.weight) for word in one.words),
            )
            for one in result.found.mistakes
        )
    )


def list_trials(result: Retrained) -> tuple[Trial[RetrainTrial], ...]:
    """The head alone, and the result of fine-tuning it where that was requested; or the network
    trained from scratch."""
    parent, own, made = _backbone_digest(result), result.digest, result.scratch
    if made is not None or result.head is None:
        told = "" if made is None else made.told
        training = result.request.training
        settings = f"epochs={number_text(training.epochs)}, seed={training.seed}"
        recipe = f"train({result.request.backbone}, {settings})"
        return (_trial(result.found, own, parent, recipe, phrase("from scratch"), told),)
    recipe = f"retrain(strength={number_text(result.head.strength)})"
    alone = result.head_alone or result.found
    trials = [_trial(alone, "" if result.head_alone else own, parent, recipe, "head alone")]
    tuned = result.tuned
    if result.request.fine_tune != NO_TUNING and tuned is not None:
        found = result.found if tuned.model is not None else None
        more = f"{recipe[:-1]}, fine_tune={result.request.fine_tune})"
        trials.append(_trial(found, own if found else "", parent, more, "fine-tuned", tuned.told))
    return tuple(trials)


def _backbone_digest(result: Retrained) -> str:
    """The digest of the given file; "" where there is none."""
    return "" if result.scratch is not None else digest(result.request.backbone)


def _trial(
    found: Confusion | None, own: str, parent: str, recipe: str, name: str, reason: str = ""
) -> Trial[RetrainTrial]:
    measured: tuple[Measurement, ...] = ()
    if found is not None:
        hits = tuple(found.right.tolist())
        measured = (Measurement("top1", "share", hits, _TARGET, own, str(host())),)
    return Trial(recipe, parent, own, measured, reason=reason, details=RetrainTrial(name))


def _class_shares(found: Confusion) -> Iterator[ClassShare]:
    """The result for each class."""
    counts = found.table.sum(axis=1).tolist()
    for place, name in enumerate(found.names):
        value = found.of_class(place)
        yield ClassShare(name, counts[place], None if value is None else _share(value))


def _share(value: Estimate) -> ShareRight:
    return ShareRight(value.value, value.low, value.high)


def _fine_tuning(result: Retrained) -> FineTuning | None:
    tuned = result.tuned
    if tuned is None:
        return None
    alone = result.head_alone or result.found
    return FineTuning(
        layers=result.request.fine_tune,
        is_kept=tuned.model is not None,
        before=tuned.before,
        after=tuned.after,
        held_out=tuned.held,
        told=tuned.told,
        head_alone=_share(alone.value),
    )
