"""What a retraining leaves on record: enough to rebuild its report from the record alone."""

from litesmith._version import VERSION
from litesmith.accuracy.paired import Estimate
from litesmith.evidence import Measurement, Trial
from litesmith.phrases import phrase
from litesmith.tflite.file import digest
from litesmith.timing.host import host
from litesmith.training.retrain_request import NO_TUNING, Retrained
from litesmith.transfer.confusion import Confusion
from litesmith.units import number_text

Json = dict[str, object]

_TARGET = "cpu:1"


def result_facts(result: Retrained) -> Json:
    """What a program wants to know: the same in the record and with --json."""
    return {
        "out": str(result.out),
        **_estimate(result.found.value),
        "n": result.n,
        "classes": list(result.classes),
        "metric": "top1",
        "per_class": per_class(result.found),
        "confusion": result.found.table.tolist(),
        "learned": sum(result.learned.counts),
        "embedding": {
            "tensor": result.embedding.tensor.name,
            "size": result.embedding.tensor.shape[-1],
            "how": result.embedding.how,
        },
        "preparation": result.learned.data.preparation.text,
        "strength": None if result.head is None else result.head.strength,
        "fine_tuned": _tuned_facts(result),
        "from_scratch": _scratch_facts(result),
        "digest": result.digest,
        "seconds": round(result.seconds, 3),
        "notes": list(result.notes),
    }


def record_facts(result: Retrained, command: str) -> Json:
    """The record of a folder."""
    request = result.request
    return {
        "schema": 1,
        "version": VERSION,
        "command": command,
        "model": result.out.name,
        "backbone": result.scratch.name if result.scratch else request.backbone.name,
        "backbone_digest": _backbone_digest(result),
        "data": {
            "learned": result.learned.data.source,
            "judged": result.proof.data.source,
            "is_part": result.proof.data.source == result.learned.data.source,
            "learned_counts": list(result.learned.counts),
            "judged_counts": list(result.proof.counts),
        },
        "head": [
            {"strength": one.strength, "loss": one.loss, "accuracy": one.accuracy}
            for one in (() if result.head is None else result.head.tried)
        ],
        "environment": host().facts(),
        **result_facts(result),
    }


def evidence_facts(result: Retrained) -> Json:
    """The bulky part: the mistakes with their pictures."""
    return {"mistakes": [vars(mistake) for mistake in result.found.mistakes]}


def trials_of(result: Retrained) -> tuple[Trial, ...]:
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


def _scratch_facts(result: Retrained) -> Json | None:
    made = result.scratch
    if made is None:
        return None
    return {"network": made.name, "first": made.first, "best": made.best, "told": made.told}


def _trial(
    found: Confusion | None, own: str, parent: str, recipe: str, name: str, reason: str = ""
) -> Trial:
    measured: tuple[Measurement, ...] = ()
    if found is not None:
        hits = tuple(found.right.tolist())
        measured = (Measurement("top1", "share", hits, _TARGET, own, str(host())),)
    return Trial(
        recipe, parent, own, measured, reason=reason, details={"name": name, "kind": "retrained"}
    )


def per_class(found: Confusion) -> list[Json]:
    """How each class fares."""
    counts = found.table.sum(axis=1).tolist()
    told: list[Json] = []
    for place, name in enumerate(found.names):
        value = found.of_class(place)
        numbers = _estimate(value) if value is not None else {}
        told.append({"class": name, "n": counts[place], **numbers})
    return told


def _estimate(value: Estimate) -> Json:
    return {"value": value.value, "low": value.low, "high": value.high}


def _tuned_facts(result: Retrained) -> Json | None:
    tuned = result.tuned
    if tuned is None:
        return None
    alone = result.head_alone or result.found
    return {
        "layers": result.request.fine_tune,
        "is_kept": tuned.model is not None,
        "before": tuned.before,
        "after": tuned.after,
        "held_out": tuned.held,
        "told": tuned.told,
        "head_alone": _estimate(alone.value),
    }
