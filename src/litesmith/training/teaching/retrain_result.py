"""The result of `retrain`, and its record, which suffices to rebuild the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from litesmith._version import VERSION
from litesmith.accuracy.evaluate import Evaluation
from litesmith.accuracy.paired import Estimate
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
from litesmith.phrases import phrase
from litesmith.tflite.file import digest
from litesmith.timing.host import host
from litesmith.timing.statistics import Row
from litesmith.training.teaching.retrain_request import (
    NO_TUNING,
    FineTuned,
    RetrainRequest,
    Trained,
)
from litesmith.transfer.confusion import Confusion
from litesmith.transfer.embedding import Embedding
from litesmith.transfer.head import Head
from litesmith.transfer.labelled_data import Labelled
from litesmith.units import number_text, plain, score_text, total_text


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
        return class_rows(self.classes, _counts(self.found), self.found.of_class)

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
        right=share_right(result.found.value),
        n=result.n,
        classes=tuple(result.classes),
        metric="top1",
        per_class=class_shares(result.found.names, _counts(result.found), result.found.of_class),
        confusion=tuple(tuple(row) for row in result.found.table.tolist()),
        learned=sum(result.learned.counts),
        embedding=EmbeddingRow(
            tensor=result.embedding.tensor.name,
            size=result.embedding.tensor.shape[-1],
            how=result.embedding.how,
        ),
        preparation=result.learned.data.preparation.text,
        strength=None if result.head is None else result.head.strength,
        fine_tuned=result.tuned
        and describe_fine_tuning(
            result.request, result.tuned, (result.head_alone or result.found).value
        ),
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


def _counts(found: Confusion) -> list[int]:
    """The number of judged items of each class."""
    return found.table.sum(axis=1).tolist()


def class_shares(
    names: Sequence[str], counts: Sequence[int], of_class: Callable[[int], Estimate | None]
) -> tuple[ClassShare, ...]:
    """The result for each class, as a record keeps it."""
    values = map(of_class, range(len(names)))
    return tuple(
        ClassShare(name, count, None if value is None else share_right(value))
        for name, count, value in zip(names, counts, values, strict=True)
    )


def class_rows(
    names: Sequence[str], counts: Sequence[int], of_class: Callable[[int], Estimate | None]
) -> list[Row]:
    """One row a class, for a data frame."""
    rows: list[Row] = []
    for place, (name, count) in enumerate(zip(names, counts, strict=True)):
        value = of_class(place)
        row: Row = {"class": name, "n": count}
        rows.append(row if value is None else row | value._asdict())
    return rows


def share_right(value: Estimate | Evaluation) -> ShareRight:
    return ShareRight(value.value, value.low, value.high)


def describe_fine_tuning(
    request: RetrainRequest, tuned: FineTuned, alone: Estimate | Evaluation
) -> FineTuning:
    """What fine-tuning changed, beside the score of the head alone."""
    return FineTuning(
        layers=request.fine_tune,
        is_kept=tuned.model is not None,
        before=tuned.before,
        after=tuned.after,
        held_out=tuned.held,
        told=tuned.told,
        head_alone=share_right(alone),
    )
