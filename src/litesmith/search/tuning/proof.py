"""The end of a search: the choice proven on held-out samples, timed in earnest, and looked into."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, cast

from litesmith.calibration.context import CALIBRATION_SAMPLES
from litesmith.calibration.quantize_effort import tidying
from litesmith.data.sample_splits import take_some
from litesmith.diagnosis.all_targets import takers
from litesmith.diagnosis.float_pairs import twins
from litesmith.diagnosis.loss import decibels, losses
from litesmith.errors import LitesmithError
from litesmith.passes.core.recipe import apply, parse, text_of
from litesmith.phrases import phrase
from litesmith.profiling.op_times import profile_ops
from litesmith.run.core.placement import MEASURED
from litesmith.run.core.target import Target, usable_cores
from litesmith.run.devices.address import Address
from litesmith.run.session import Source
from litesmith.search.trial.budget import MISSED, at_look, verdict
from litesmith.search.trial.target_place import Place, placed_facts
from litesmith.search.trial.trial_facts import Json, known, latency_facts
from litesmith.search.trial.trial_record import FLOAT, MISSES, Record, front, nearest, ranked
from litesmith.search.trial.trial_runner import Workshop
from litesmith.tflite.file import load
from litesmith.timing.cluster_timing import Timed, measure_on, run_alone
from litesmith.timing.latency import Bench, Result, Rule, ratio
from litesmith.timing.statistics import FASTER
from litesmith.timing.turns import Contender
from litesmith.workers.engine import Lost

# The proof's own run: long enough for a narrow interval.
_PATIENT = Rule(width=0.02, least_seconds=3.0, most_seconds=15.0)

# The held-out samples are asked about so many models at most: each one more makes it likelier
# that one passes by luck.
_MOST_VERIFIED = 4

# Models that take part in the proof's run beside the best, and samples that layers are compared on.
_MOST_TIMED, _LOOKED_AT = 3, 16

_THREADED = ("cpu", "openvino")
_ACCELERATORS = "accelerators"  # the key of evidence


class Proof(NamedTuple):
    """What a search ends with.

    shipped   the trial of the model to ship; None where nothing fits
    verified  the same on held-out samples; where nothing fits, of the nearest
    verdict   proven, likely or missed; "" where there was nothing to judge
    speed     its time beside the float model's, in the proof's own run
    target    where it is fastest
    threads   the times of both on every target
    front     the names of the models that no other beats
    warnings  what is to be said of the times, a sentence each
    """

    shipped: Record | None
    verified: Record | None
    verdict: str
    speed: Json
    target: str
    threads: tuple[Json, ...]
    front: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def prove(workshop: Workshop, targets: Sequence[Place]) -> Proof:
    """Verifies candidates in the order of their cost until one holds; its time too."""
    seen: list[Record] = []
    limits = workshop.asked.limits
    for record in candidates(workshop.records.values(), workshop.asked.minimize):
        held = workshop.verified(record)
        seen.append(held)
        if held.status == MISSES:
            continue
        times = _times(workshop, held, targets)
        p50_us = cast("float | None", times.speed["p50_us"])
        if not limits.misses(int(held.cost("size") or 0), p50_us):
            return times._replace(shipped=record, verdict=verdict(at_look(held.room, held.look)))
    close = nearest(seen, limits) or nearest(workshop.records.values(), limits)
    if close is None:
        return Proof(None, None, "", {}, str(targets[0]), (), _front_names(workshop))
    return _times(workshop, workshop.verified(close), targets)._replace(verdict=MISSED)


def candidates(records: Iterable[Record], minimize: str) -> list[Record]:
    """Whom the held-out samples are asked about: those that cost least, and cost less than the
    model as it came; one of them may be who has most room, lest nothing holds."""
    cheaper = list(takewhile(lambda record: record.name != FLOAT, ranked(records, minimize)))
    first, rest = cheaper[: _MOST_VERIFIED - 1], cheaper[_MOST_VERIFIED - 1 :]
    return first + sorted(rest, key=lambda record: -record.room.estimate)[:1]


def _front(workshop: Workshop) -> list[Record]:
    return front([r for r in workshop.records.values() if r.value is not None])


def _front_names(workshop: Workshop) -> tuple[str, ...]:
    return tuple(record.name for record in _front(workshop))


def _times(workshop: Workshop, held: Record, targets: Sequence[Place]) -> Proof:
    """The proof's own run of one model, or the records of it."""
    others, everywhere = _front(workshop), _places(targets)
    texts = (*map(str, everywhere), *(record.digest for record in others))
    timed = workshop.once(held, texts, lambda: _timed(workshop, held, others, everywhere))
    speed, threads = cast(Json, timed["speed"]), cast(list[Json], timed["threads"])
    warnings = tuple(cast(list[str], timed.get("warnings", [])))
    target, names = str(timed["target"]), _front_names(workshop)
    return Proof(None, held, "", speed, target, tuple(threads), names, warnings)


def _timed(
    workshop: Workshop, best: Record, others: Iterable[Record], everywhere: Sequence[Place]
) -> Json:
    """What runs in turns, and what is compiled for only by estimates; the first place decides."""
    timed = _bench(workshop, best, others, everywhere)
    bench = timed.bench if timed else None
    estimates = [
        facts
        for place in everywhere
        if place.runs is None
        for facts in _estimates(workshop, best, place)
    ]
    threads = [*map(_row, bench.results if bench else ()), *estimates]
    if everywhere[0].runs is None or bench is None:
        speed, target = best.latency or {}, str(everywhere[0])
    else:
        speed = latency_facts(bench.results[1], bench.results[0])
        target = _fastest(bench).target
    warnings = list(bench.warnings) if bench else []
    facts: Json = {"speed": speed, "target": target, "threads": threads, "warnings": warnings}
    return facts | ({"device": timed.device} if timed and timed.device else {})


def _bench(
    workshop: Workshop, best: Record, others: Iterable[Record], everywhere: Sequence[Place]
) -> Timed | None:
    """All in turns: the float model and the best wherever they run, others on the first."""
    targets = [place.runs for place in everywhere if place.runs is not None]
    if not targets:
        return None
    pairs = [(name, record, t) for t in targets for name, record in ((FLOAT, None), ("best", best))]
    beside = [r for r in others if r.name not in (FLOAT, best.name)][:_MOST_TIMED]
    group = [_contender(workshop, name, record, t) for name, record, t in pairs]
    group += [_contender(workshop, record.name, record, targets[0]) for record in beside]
    return measure_on(workshop.engine, group, workshop.asked.rule(_PATIENT), memory=False)


def _fastest(bench: Bench) -> Result:
    """The best model where it is fastest beyond doubt; else on the first target."""
    own = [r for r in bench.results if r.model == "best"]
    fastest = own[0]
    for result in own[1:]:
        if ratio(fastest, result).verdict == FASTER:
            fastest = result
    return fastest


def _estimates(workshop: Workshop, best: Record, place: Place) -> Iterator[Json]:
    """A row for the best model where a time is estimated; the float model has none there."""
    found = place.placed(load(workshop.file(best)))
    if found is not None and found.latency_us is not None:
        us = {"p50_us": found.latency_us, "how": found.latency_how}
        yield {"target": str(place), "model": "best", **us}


def _places(asked: Sequence[Place]) -> list[Place]:
    """Those asked for; of a single one with threads, also with other numbers of them."""
    target = asked[0].runs
    if len(asked) > 1 or not isinstance(target, Target) or target.kind not in _THREADED:
        return list(asked)
    counts = (1, 2, 4, usable_cores())
    more = (Place.parse(replace(target, threads=n)) for n in counts if n <= usable_cores())
    return list(dict.fromkeys((asked[0], *more)))


def _contender(
    workshop: Workshop, name: str, record: Record | None, target: Target | Address
) -> Contender:
    path = workshop.source if record is None else workshop.file(record)
    return Contender(name, str(path), target, record.digest if record else workshop.digest)


def _row(result: Result) -> Json:
    low, high = result.interval_us
    return known(
        {
            "target": result.target,
            "model": result.model,
            "p50_us": result.percentile_us(50),
            "low_us": low,
            "high_us": high,
            "how": MEASURED,
        }
    )


def look_into(workshop: Workshop, record: Record | None, front: Sequence[str] = ()) -> None:
    """Writes the time of each op of the model as it came and of another, what layers lose, and
    which accelerators take them; that also of others on the front."""
    wanted = [(FLOAT, workshop.digest, workshop.source)]
    if record is not None:
        wanted.append((record.name, record.digest, workshop.file(record)))
    place = workshop.asked.place
    about = [*workshop.place, str(place), workshop.split.calibration.digest]
    for name, digest, path in wanted:
        kept = workshop.folder.evidence(digest) or {}
        if kept.get("about") != about or _ACCELERATORS not in kept:
            facts: Json = {"schema": 1, "name": name, "about": about, **_op_times(workshop, path)}
            if name != FLOAT:
                facts |= _layers(workshop, path)
            facts[_ACCELERATORS] = _takers(path, compiled=name != FLOAT)
            workshop.folder.write_evidence(digest, facts)
    for other in (workshop.records[name] for name in front):
        kept = workshop.folder.evidence(other.digest) or {}
        if _ACCELERATORS not in kept:
            facts = {"schema": 1, "name": other.name, **kept}
            facts[_ACCELERATORS] = _takers(workshop.file(other), compiled=False)
            workshop.folder.write_evidence(other.digest, facts)


def whole_on(workshop: Workshop, record: Record) -> list[str]:
    """The accelerators that take a model whole, of one that was looked into."""
    kept = workshop.folder.evidence(record.digest) or {}
    rows = cast(list[Json], kept.get(_ACCELERATORS, []))
    return [str(row["target"]) for row in rows if row["taken"] == row["ops"]]


def _takers(path: Path, *, compiled: bool) -> list[Json]:
    """What every accelerator makes of a model: by rules, or by the compilers that are here."""
    return [
        {
            **placed_facts(found),
            "latency_us": found.latency_us,
            "latency_how": found.latency_how,
            "cycles": found.facts.get("cycles"),
        }
        for found in takers(load(path), compiled=compiled)
    ]


def _op_times(workshop: Workshop, path: Path) -> Json:
    """Of a CPU; nothing of other places, which tell no time of single ops."""
    target, runs = workshop.asked.place.cpu, workshop.asked.runs
    if target is None:
        return {}
    try:
        what = phrase("profiling {stem}", path.stem)
        return run_alone(workshop.engine, what, op_times, path, target, runs)
    except Lost:
        raise
    except LitesmithError:  # a model whose ops the runtime does not tell apart
        return {}


def op_times(source: Source, target: Target, runs: int | None = None) -> Json:
    """The time of a run, and of each op of it."""
    found = profile_ops(source, target, runs=runs)
    keys = ("index", "kind", "name", "us", "macs")
    rows = (op.row() for op in found.ops if op.graph == found.entry)
    return {"run_us": found.run_us, "ops": [{key: row[key] for key in keys} for row in rows]}


def _layers(workshop: Workshop, path: Path) -> Json:
    """The error of each layer's output, as a ratio of signal and noise."""
    few = take_some(take_some(workshop.split.calibration, CALIBRATION_SAMPLES), _LOOKED_AT)
    try:
        tidy = parse(f"{text_of(tidying(workshop.model, ()))} | fold(float16=true)")
        model, reference = load(path), apply(workshop.model, tidy).model
        found = twins(model, reference)
        rows = [
            {
                "index": loss.twin.place,
                "kind": loss.twin.op.kind if loss.twin.op else "input",
                "name": loss.twin.theirs.name,
                "snr_db": decibels(1.0, loss.noise("total")),
            }
            for loss in losses(model, reference, found, few)
        ]
    except LitesmithError:  # control flow, or a graph that is too different to compare
        return {}
    return {"layers": rows}
