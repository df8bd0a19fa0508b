"""A search in words and numbers: what is in its summary, and the one sentence that matters."""

from collections.abc import Iterator
from dataclasses import asdict
from shlex import quote
from typing import cast

from litesmith._version import VERSION
from litesmith.data.sample_splits import items
from litesmith.phrases import phrase
from litesmith.run.litert.own_kernels import own_kernels
from litesmith.search.trial.budget import LIKELY, PROVEN
from litesmith.search.trial.target_place import left_text
from litesmith.search.trial.trial_facts import Json, evaluation_of, told
from litesmith.search.trial.trial_record import FLOAT, Record
from litesmith.search.tuning.proof import Proof, whole_on
from litesmith.search.tuning.tree_walk import LEAST_TO_TRAIN, Search
from litesmith.tflite.file import load
from litesmith.timing.statistics import FASTER, SLOWER
from litesmith.training.recipe_context import has_torch
from litesmith.units import factor_text, plain, time_text, total_text

RUNNING, STOPPED, DONE = "running", "stopped", "done"

_SIZES = ("bytes", "gzip_bytes", "peak_bytes", "is_integer", "placed")


def summary(search: Search, state: str, proof: Proof | None = None) -> Json:
    """Where a search stands."""
    request, records = search.request, search.workshop.records
    best = proof.shipped if proof else search.best
    first = records.get(FLOAT)
    return {
        "schema": 1,
        "model": request.model.name,
        "model_digest": search.workshop.digest,
        "version": VERSION,
        "command": request.command,
        "state": state,
        "request": search.wanted,
        "data": _data(search),
        "verdict": proof.verdict or None if proof else None,
        "sentence": sentence(search, proof),
        "best": {**_model(best, proof), **_whole_on(search, best, proof)} if best else None,
        "nearest": _model(proof.verified, proof)
        if proof and proof.verified and not proof.shipped
        else None,
        "float": _float(first, proof) if first else None,
        "front": list(proof.front) if proof else [],
        "keys": search.workshop.keys,
        "warnings": [*proof.warnings, *_needed_kernels(search, proof)] if proof else [],
        "path": [step._asdict() for step in search.path],
        "threads": list(proof.threads) if proof else [],
        "next": next_steps(search, proof),
        "environment": search.environment,
        "seconds": search.seconds,
    }


def _needed_kernels(search: Search, proof: Proof) -> Iterator[str]:
    """What the time hangs on, where that is more than the runtime."""
    taken = _own_ops(search, proof)
    if taken:
        yield (
            phrase(
                "{taken} ops of it run on Litesmith's kernels: where a stock runtime runs the "
                "file, int16 data and sparse layers take their usual time",
                taken,
            )
        )


def _own_ops(search: Search, proof: Proof) -> int:
    """Ops of the model to ship that kernels of this package run, where these were asked for."""
    if proof.shipped is None or not search.workshop.asked.place.has_own_kernels:
        return 0
    return own_kernels().place(load(search.workshop.file(proof.shipped))).taken


def _data(search: Search) -> Json:
    split, data = search.split, search.request.data
    other = search.request.calibration
    preparation = data.items.preparation
    return {
        "source": data.source,
        "calibration_source": None if other is None else other.source,
        "calibration": items(split.calibration),
        "search": items(split.search),
        "held_out": items(split.held_out),
        "preparation": "" if preparation is None else preparation.text,
        "notes": list(data.notes),
    }


def _model(record: Record, proof: Proof | None) -> Json:
    details = record.trial.details
    found: Json = {
        "name": record.name,
        "recipe": record.trial.recipe,
        "digest": record.digest,
        **{key: details.get(key) for key in _SIZES},
        "accuracy": record.accuracy,
        "latency": record.latency,
    }
    if proof is not None and proof.verified is not None:
        found |= {"accuracy": proof.verified.accuracy, "latency": proof.speed}
        found |= {"target": proof.target, "scored_on": proof.verified.scored_on}
    if proof is not None and proof.shipped is not None:
        found["file"] = "best.tflite"
    return found


def _whole_on(search: Search, best: Record, proof: Proof | None) -> Json:
    """Which accelerators take the model to ship whole, once that was looked into."""
    return {} if proof is None else {"whole_on": whole_on(search.workshop, best)}


def _float(first: Record, proof: Proof | None) -> Json:
    """The model as it came; its score on held-out samples, once these were asked."""
    found = _model(first, None)
    held = proof.verified.accuracy if proof and proof.verified else None
    if held is not None and held.get("reference") is not None:
        same = {key: held[key] for key in ("metric", "title", "unit", "n")}
        ends = {end: held.get(f"reference_{end}") for end in ("low", "high")}
        found["accuracy"] = {**same, "value": held["reference"], **ends}
    return found


def sentence(search: Search, proof: Proof | None) -> str:
    """What came out."""
    budget = search.request.budget.text
    if proof is None:
        best = search.best
        if best is None:
            return phrase("nothing within {budget} so far", budget)
        return phrase("{name} is the best so far; not yet proven on held-out samples", best.name)
    if proof.verified is None and search.is_over:
        return phrase(
            "the time was over before anything was tried that stays within {budget}", budget
        )
    if proof.verified is None:
        return phrase("nothing could be made of this model that stays within {budget}", budget)
    accuracy = evaluation_of(proof.verified.accuracy or {})
    score = told(accuracy, proof.verified.room)
    samples = phrase("{count} held-out samples", total_text(accuracy.n))
    over = _over(search, proof.verified)
    if proof.shipped is None and over:
        within = ", ".join((budget, *search.request.limits.texts))
        near = f"{proof.verified.name}: {score}, {samples}; {'; '.join(over)}"
        return phrase("nothing stays within {within}; nearest is {near}", within, near)
    if proof.shipped is None:
        return phrase(
            "nothing stays within {budget}; nearest is {name}: {score}, {samples}",
            budget,
            proof.verified.name,
            score,
            samples,
        )
    by = phrase("{samples}{kernels}", samples, _kernels(search, proof.verified))
    judged = {
        PROVEN: phrase("{score}, proven to be within {budget} ({by})", score, budget, by),
        LIKELY: phrase("{score}, likely within {budget} ({by})", score, budget, by),
    }
    gains = ", ".join(_gains(search, proof))
    left = left_text(cast("Json | None", proof.shipped.trial.details.get("placed")))
    return "; ".join(
        filter(
            None,
            (phrase("{name} is {gains}", proof.shipped.name, gains), left, judged[proof.verdict]),
        )
    )


def _kernels(search: Search, verified: Record) -> str:
    """Whose kernels gave the answers, where that is not where the model is to run."""
    place = search.workshop.asked.place
    same = verified.scored_on == str(place.proves) and place.runs is not None
    return "" if place.cpu is not None or same else phrase(" by the CPU's kernels")


def _over(search: Search, record: Record) -> tuple[str, ...]:
    """The ceilings that a model misses."""
    size, latency = record.cost("size"), record.latency or {}
    return search.request.limits.misses(int(size or 0), cast("float | None", latency.get("p50_us")))


def _gains(search: Search, proof: Proof) -> list[str]:
    """How much faster and smaller; nothing inside the noise."""
    assert proof.shipped is not None
    own = phrase("Litesmith's kernels") if _own_ops(search, proof) else ""
    gains = list(_time_gains(search, proof.speed, own))
    first = search.workshop.records[FLOAT]
    for kind, word in (("size", phrase("smaller")), ("download", phrase("smaller to download"))):
        before, after = first.cost(kind), proof.shipped.cost(kind)
        if before and after and before / after > 1.02:
            gains.append(factor_text(before / after, word))
    return gains or [phrase("no smaller")]


def _time_gains(search: Search, speed: Json, own: str) -> Iterator[str]:
    """How much faster than the float model; or, where nothing ran, what is estimated."""
    place = search.workshop.asked.place
    ratio, us = (cast("float | None", speed.get(key)) for key in ("ratio", "p50_us"))
    if ratio is None:
        if us is not None:
            yield phrase("estimated to take {time} on {place}", time_text(us), place)
        return
    low, high = (cast("float | None", speed[key]) for key in ("low", "high"))
    on = own if place.cpu is not None else str(place)
    if speed["verdict"] == FASTER and low and high:
        gain = factor_text(1 / ratio, phrase("faster"), 1 / high, 1 / low)
        yield phrase("{gain} on {on}", gain, on) if on else gain
    elif speed["verdict"] == SLOWER and low and high:
        loss = factor_text(ratio, phrase("slower"), low, high)
        yield phrase("{loss} on {on}", loss, on) if on else loss
    else:
        where = phrase(" on {on}", on) if on else ""
        yield phrase("as fast{where}, as far as can be told", where)


def next_steps(search: Search, proof: Proof | None) -> list[str]:
    """What to do now, in sentences with the command."""
    request = search.request
    model, data = (quote(plain(text)) for text in (str(request.model), request.data.source))
    if proof is None:
        return [
            phrase(
                "{command}: goes on where it stopped", request.command or phrase("the same call")
            )
        ]
    if proof.shipped is not None:
        best = quote(str(search.folder.best))
        if search.workshop.asked.place.runs is None:
            return [
                phrase(
                    "litesmith targets {best} --compile: what every accelerator makes of it", best
                )
            ]
        return [
            phrase(
                "litesmith bench {best} --on {target}: the times again, on any machine",
                best,
                proof.target,
            )
        ]
    if search.is_over:
        return [
            phrase(
                "{command} with more --minutes: it was not done",
                request.command or phrase("the same call"),
            )
        ]
    if proof.verified is not None and proof.verified.room.estimate >= 0:
        return _over_the_ceiling(search)
    steps: list[str] = [
        phrase("litesmith doctor {model} --data {data}: which layers lose it, and why", model, data)
    ]
    if not has_torch():
        steps.append(phrase("pip install 'litesmith[train]': training may win back what is lost"))
    elif items(search.split.calibration) < LEAST_TO_TRAIN:
        steps.append(
            phrase(
                "{least_to_train} samples to calibrate on, with --calibrate: training needs so "
                "many",
                LEAST_TO_TRAIN,
            )
        )
    steps.append(phrase("more samples to calibrate on, with --calibrate, or a larger budget"))
    return steps


def _over_the_ceiling(search: Search) -> list[str]:
    """Where nothing is lost, and yet nothing fits."""
    if not search.request.limits.texts:
        return [phrase("the model as it came is the best there is: nothing that fits costs less")]
    steps: list[str] = [phrase("higher ceilings, or a smaller model to begin with")]
    if search.request.minimize == "latency" and search.request.limits.max_bytes is not None:
        steps.insert(0, phrase("--minimize size: tries whatever makes the file smaller"))
    return steps


def recipe_facts(search: Search, record: Record, opened: Json | None) -> Json:
    """How the best was made, so that it can be made again."""
    training = search.workshop.asked.training
    return {
        "schema": 1,
        "recipe": record.trial.recipe,
        "input_digest": search.workshop.digest,
        "digest": record.digest,
        "command": f"litesmith apply {quote(str(search.request.model))} "
        f"{quote(str(search.folder.recipe))} -o OUT.tflite",
        "version": VERSION,
        "calibration_digest": search.split.calibration.digest,
        "opened": opened,
        "training": None if training is None else asdict(training),
    }
