"""The end of a search: the choice proven on held-out samples, timed in earnest, and looked into."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from litesmith.errors import LitesmithError
from litesmith.measure.calibrate import CALIBRATION_SAMPLES
from litesmith.measure.efforts import tidying
from litesmith.measure.latency import Bench, Result, Rule, measured, ratio
from litesmith.measure.loss import decibels, losses
from litesmith.measure.profile import profile
from litesmith.measure.stats import FASTER
from litesmith.measure.turns import Contender
from litesmith.measure.twins import twins
from litesmith.passes.recipe import apply, parse, text_of
from litesmith.run.target import Target, usable_cores
from litesmith.search.budget import MISSED, verdict
from litesmith.search.facts import Json, known
from litesmith.search.record import FLOAT, MISSES, Record, front, nearest, ranked
from litesmith.search.workshop import Workshop
from litesmith.tflite.file import load
from litesmith.train.apply import some

# The proof's own run: long enough for a narrow interval.
_PATIENT = Rule(width=0.02, least_seconds=3.0, most_seconds=15.0)

# The held-out samples are asked about so many models at most: each one more makes it likelier
# that one passes by luck.
_MOST_VERIFIED = 4

# Models that take part in the proof's run beside the best, and samples that layers are compared on.
_MOST_TIMED, _LOOKED_AT = 3, 16


@dataclass(frozen=True)
class Proof:
    """What a search ends with.

    shipped   the trial of the model to ship; None where nothing fits
    verified  the same on held-out samples; where nothing fits, of the nearest
    verdict   proven, likely or missed; "" where there was nothing to judge
    speed     its time beside the float model's, in the proof's own run
    target    where it is fastest
    threads   the times of both on every target
    front     the names of the models that no other beats
    """

    shipped: Record | None
    verified: Record | None
    verdict: str
    speed: Json
    target: str
    threads: tuple[Json, ...]
    front: tuple[str, ...]


def prove(workshop: Workshop, targets: Sequence[Target]) -> Proof:
    """Verifies candidates in the order of their cost until one holds."""
    minimize = workshop.asked.minimize
    order = [r for r in ranked(workshop.records.values(), minimize) if r.name != FLOAT]
    seen: list[Record] = []
    shipped: Record | None = None
    for record in order[:_MOST_VERIFIED]:
        seen.append(workshop.verified(record))
        if seen[-1].status != MISSES:
            shipped = record
            break
    if shipped is None and not seen:
        close = nearest(workshop.records.values())
        seen += [workshop.verified(close)] if close is not None else []
    held = seen[-1] if shipped is not None else nearest(seen)
    found = verdict(held.room) if held is not None else ""
    if shipped is None and held is not None:
        found = MISSED
    best_of = front([r for r in workshop.records.values() if r.value is not None])
    names = tuple(r.name for r in best_of)
    if held is None:
        return Proof(None, None, found, {}, str(targets[0]), (), names)
    everywhere = _targets(targets)
    texts = (*map(str, everywhere), *names)
    timed = workshop.once(held, texts, lambda: _timed(workshop, held, best_of, everywhere))
    speed, threads = cast(Json, timed["speed"]), cast(list[Json], timed["threads"])
    return Proof(shipped, held, found, speed, str(timed["target"]), tuple(threads), names)


def _timed(
    workshop: Workshop, best: Record, others: Iterable[Record], everywhere: Sequence[Target]
) -> Json:
    """All in turns: the float model and the best on every target, others on the first."""
    first = everywhere[0]
    pairs = [
        (name, record, t) for t in everywhere for name, record in ((FLOAT, None), ("best", best))
    ]
    beside = [r for r in others if r.name not in (FLOAT, best.name)][:_MOST_TIMED]
    group = [_contender(workshop, name, record, t) for name, record, t in pairs]
    group += [_contender(workshop, record.name, record, first) for record in beside]
    bench = measured(group, _PATIENT, memory=False)
    own = [r for r in bench.results if r.model == "best"]
    fastest = own[0]
    for result in own[1:]:
        if ratio(fastest, result).verdict == FASTER:
            fastest = result
    threads = [_row(result) for result in bench.results]
    return {"speed": _speed(bench), "target": fastest.target, "threads": threads}


def _targets(asked: Sequence[Target]) -> list[Target]:
    """Those asked for; of a single one, also with other numbers of threads."""
    if len(asked) > 1:
        return list(asked)
    counts = (1, 2, 4, usable_cores())
    more = (Target("cpu", n, asked[0].kernels) for n in counts if n <= usable_cores())
    return list(dict.fromkeys((asked[0], *more)))


def _contender(workshop: Workshop, name: str, record: Record | None, target: Target) -> Contender:
    path = workshop.source if record is None else workshop.file(record)
    return Contender(name, str(path), target, record.digest if record else workshop.digest)


def _speed(bench: Bench) -> Json:
    """The best beside the float model, on the first target."""
    first, best = bench.results[:2]
    found = ratio(first, best)
    low, high = found.interval
    return known(
        {
            "target": best.target,
            "p50_us": best.percentile_us(50),
            "float_us": first.percentile_us(50),
            "ratio": found.value,
            "low": low,
            "high": high,
            "verdict": found.verdict,
        }
    )


def _row(result: Result) -> Json:
    low, high = result.interval_us
    return known(
        {
            "target": result.target,
            "model": result.model,
            "p50_us": result.percentile_us(50),
            "low_us": low,
            "high_us": high,
        }
    )


def look_into(workshop: Workshop, record: Record | None) -> None:
    """Writes the time of each op of the model as it came and of another, and what layers lose."""
    wanted = [(FLOAT, workshop.digest, workshop.source)]
    if record is not None:
        wanted.append((record.name, record.digest, workshop.file(record)))
    for name, digest, path in wanted:
        if workshop.folder.evidence(digest) is None:
            facts: Json = {"schema": 1, "name": name, **_op_times(path, workshop.asked.target)}
            if name != FLOAT:
                facts |= _layers(workshop, path)
            workshop.folder.write_evidence(digest, facts)


def _op_times(path: Path, target: Target) -> Json:
    try:
        found = profile(path, target)
    except LitesmithError:  # a model whose ops the runtime does not tell apart
        return {}
    keys = ("index", "kind", "name", "us", "macs")
    rows = (op.row() for op in found.ops if op.graph == found.entry)
    return {"run_us": found.run_us, "ops": [{key: row[key] for key in keys} for row in rows]}


def _layers(workshop: Workshop, path: Path) -> Json:
    """The error of each layer's output, as a ratio of signal and noise."""
    few = some(some(workshop.split.calibration, CALIBRATION_SAMPLES), _LOOKED_AT)
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
