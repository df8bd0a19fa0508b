"""What a retraining leaves on record: enough to rebuild its report from the record alone."""

from collections.abc import Iterator

from litesmith._version import VERSION
from litesmith.accuracy.paired import Estimate
from litesmith.evidence.measurement import Measurement, Trial
from litesmith.evidence.retraining import (
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
)
from litesmith.phrases import phrase
from litesmith.tflite.file import digest
from litesmith.timing.host import host
from litesmith.training.retrain_request import NO_TUNING, Retrained
from litesmith.transfer.confusion import Confusion
from litesmith.units import number_text

_TARGET = "cpu:1"


def retrain_result(result: Retrained) -> RetrainResult:
    """What a program wants to know: the same in the record and with --json."""
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
        from_scratch=_from_scratch(result),
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
            MistakeRow(one.name, one.true, one.said, one.confidence, one.thumbnail)
            for one in result.found.mistakes
        )
    )


def list_trials(result: Retrained) -> tuple[Trial[RetrainTrial], ...]:
    """The head alone, and what fine-tuning made of it, where that was asked for; or the network
    that was trained from scratch."""
    parent, own, made = _backbone_digest(result), result.digest, result.scratch
    if made is not None or result.head is None:
        told = "" if made is None else made.told
        return (_trial(result.found, own, parent, _recipe(result), phrase("from scratch"), told),)
    recipe = f"retrain(strength={number_text(result.head.strength)})"
    alone = result.head_alone or result.found
    trials = [_trial(alone, "" if result.head_alone else own, parent, recipe, "head alone")]
    tuned = result.tuned
    if result.request.fine_tune != NO_TUNING and tuned is not None:
        found = result.found if tuned.model is not None else None
        more = f"{recipe[:-1]}, fine_tune={result.request.fine_tune})"
        trials.append(_trial(found, own if found else "", parent, more, "fine-tuned", tuned.told))
    return tuple(trials)


def _recipe(result: Retrained) -> str:
    network, training = result.request.backbone, result.request.training
    return f"train({network}, epochs={number_text(training.epochs)}, seed={training.seed})"


def _backbone_digest(result: Retrained) -> str:
    """Of the file that was given; "" where there is none."""
    return "" if result.scratch is not None else digest(result.request.backbone)


def _from_scratch(result: Retrained) -> FromScratch | None:
    made = result.scratch
    return None if made is None else FromScratch(made.name, made.first, made.best, made.told)


def _trial(
    found: Confusion | None, own: str, parent: str, recipe: str, name: str, reason: str = ""
) -> Trial[RetrainTrial]:
    measured: tuple[Measurement, ...] = ()
    if found is not None:
        hits = tuple(found.right.tolist())
        measured = (Measurement("top1", "share", hits, _TARGET, own, str(host())),)
    return Trial(recipe, parent, own, measured, reason=reason, details=RetrainTrial(name))


def _class_shares(found: Confusion) -> Iterator[ClassShare]:
    """How each class fares."""
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
