"""The end of a search: the choice proven on held-out samples, timed precisely, and explained."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from litesmith.accuracy.disagreement import disagreements
from litesmith.accuracy.metrics import choose_metric, metric_for
from litesmith.calibration.context import CALIBRATION_SAMPLES
from litesmith.calibration.quantize_effort import tidying
from litesmith.data.sample_splits import take_some
from litesmith.diagnosis.all_targets import takers
from litesmith.diagnosis.float_pairs import find_twins
from litesmith.diagnosis.op_losses import decibels, losses
from litesmith.errors import LitesmithError
from litesmith.evidence.measurement import DisagreementRow
from litesmith.evidence.records import Speed, Taker
from litesmith.evidence.tune_record import (
    FITS,
    FLOAT,
    MISSES,
    NEAR,
    SET_ASIDE,
    TIMED,
    LayerRow,
    OpRow,
    ProofTimes,
    TargetTime,
    TunedInside,
)
from litesmith.operating_system import usable_cores
from litesmith.passes.core.recipe import apply, parse, text_of
from litesmith.phrases import phrase
from litesmith.profiling.op_times import profile_ops
from litesmith.progress import Status
from litesmith.run.core.placement import MEASURED
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.run.session import Source
from litesmith.search.trial.budget import KEPT, MISSED, PROVEN, UNSURE, Room, at_look, verdict
from litesmith.search.trial.measured_values import cycles_of, speed_of, taken_of
from litesmith.search.trial.target_place import Place
from litesmith.search.trial.tried_model import (
    TIE,
    TriedModel,
    find_front,
    find_nearest,
    is_better,
    rank,
)
from litesmith.search.tuning.tune_trials import TuneTrials
from litesmith.tflite.file import load
from litesmith.timing.cluster_timing import Timed, measure_on, run_alone
from litesmith.timing.latency import Bench, Result, Rule, ratio
from litesmith.timing.statistics import FASTER
from litesmith.timing.turns import Contender
from litesmith.workers.engine import Lost

# The proof's own run: long enough for a narrow interval.
_PATIENT = Rule(width=0.02, least_seconds=3.0, most_seconds=9.0)

# The largest number of models judged on the held-out samples: each further model makes a lucky pass
# likelier.
_MOST_VERIFIED = 4

# A near miss is verified where it costs at most this share of the cheapest fitting model.
_FAR_LESS = 0.9

# Models in the proof's run besides the best; samples for comparing layers; samples among which the
# most different answers are sought.
_MOST_TIMED, _LOOKED_AT, _COMPARED = 3, 16, 64

# The number of runs for the times of single ops.
_PROFILED_RUNS = 60

_THREADED = ("cpu", "openvino")


class Proof(NamedTuple):
    """The outcome of a search.

    shipped   the trial of the model to ship; None where nothing fits
    verified  the same model on held-out samples; where nothing fits, the nearest miss
    verdict   proven, likely, unclear, keep or missed; "" where there was nothing to judge
    front     the names of the models that no other beats
    target    where the model is fastest
    times     its times beside the float model's, from the proof's own run; None where nothing ran
    """

    shipped: TriedModel | None
    verified: TriedModel | None
    verdict: str
    front: tuple[str, ...]
    target: str
    times: ProofTimes | None = None

    @property
    def speed(self) -> Speed | None:
        return self.times.speed if self.times else None

    @property
    def threads(self) -> tuple[TargetTime, ...]:
        """The times of both models on every target."""
        return self.times.threads if self.times else ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the times, one sentence each."""
        return self.times.warnings if self.times else ()


def prove(trials: TuneTrials, targets: Sequence[Place]) -> Proof:
    """Verifies candidates, cheapest first, until one holds; times the winner."""
    known = trials.records.values()
    seen: list[TriedModel] = []

    def verify(record: TriedModel) -> TriedModel:
        seen.append(trials.verify(record))
        return seen[-1]

    limits, kept = trials.goal.limits, None
    asked = find_provable(known, trials.goal.minimize)
    for record, held in find_holding(asked, verify):
        times = _times(trials, held, targets)
        if limits.misses(held.details, times.speed and times.speed.p50_us):
            continue
        better = is_better(record, trials.records[FLOAT], trials.goal.minimize, times.speed)
        if better is None:
            return times._replace(shipped=record, verdict=UNSURE)
        if better:
            best = times._replace(shipped=record, verdict=verdict(_proven_room(held)))
            return _quicker(trials, targets, best, asked, verify) or best
        kept = kept or times._replace(verdict=KEPT)
    if kept is not None or (not seen and has_no_better(known)):
        return kept or _find_none(trials, targets)._replace(verdict=KEPT)
    close = find_nearest(seen, limits) or find_nearest(known, limits)
    if close is None:
        return _find_none(trials, targets)
    return _times(trials, trials.verify(close), targets)._replace(verdict=MISSED)


def _quicker(
    trials: TuneTrials,
    targets: Sequence[Place],
    best: Proof,
    asked: Sequence[TriedModel],
    verify: Callable[[TriedModel], TriedModel],
) -> Proof | None:
    """A candidate that holds too and that the proof's run found faster than the best one: each
    trial has a run of its own, and the machine is not the same in all of them."""
    if trials.goal.minimize != "latency":
        return None
    for record, held in find_holding(find_quicker(best.threads, asked), verify):
        times = _times(trials, held, targets)
        if trials.goal.limits.misses(held.details, times.speed and times.speed.p50_us):
            continue
        if is_better(record, trials.records[FLOAT], trials.goal.minimize, times.speed):
            return times._replace(shipped=record, verdict=verdict(_proven_room(held)))
    return None


def find_quicker(times: Sequence[TargetTime], asked: Sequence[TriedModel]) -> list[TriedModel]:
    """The candidates that took less time than the best in the same run, beyond a tie and beyond the
    noise, the fastest first."""
    first = {time.model: time for time in times if time.target == times[0].target}
    best = first.get("best")
    if best is None or best.p50_us is None or best.low_us is None:
        return []
    least: dict[str, float] = {}
    for record in asked:
        time = first.get(record.name)
        if time is None or time.p50_us is None or time.high_us is None:
            continue
        if time.high_us < best.low_us and time.p50_us * (1 + TIE) < best.p50_us:
            least[record.name] = time.p50_us
    return sorted((one for one in asked if one.name in least), key=lambda one: least[one.name])


def find_holding(
    asked: Iterable[TriedModel], verify: Callable[[TriedModel], TriedModel]
) -> Iterator[tuple[TriedModel, TriedModel]]:
    """Yields the candidates that fit the budget on held-out samples too, each with its trial there.

    A near miss of the search comes before the candidates that fitted only where it is proven.
    Otherwise one part of the data speaks for it and the other against it: it comes last."""
    last: list[tuple[TriedModel, TriedModel]] = []
    for record in asked:
        held = verify(record)
        if held.status != FITS:
            continue
        if record.status == NEAR and verdict(_proven_room(held)) != PROVEN:
            last.append((record, held))
        else:
            yield record, held
    yield from last


def _proven_room(held: TriedModel) -> Room:
    return at_look(held.room, held.details.look or 1)


def _find_none(trials: TuneTrials, targets: Sequence[Place]) -> Proof:
    """The outcome of a search without a result."""
    front = find_front(trials.records.values())
    return Proof(None, None, "", tuple(one.name for one in front), str(targets[0]))


def has_no_better(records: Iterable[TriedModel]) -> bool:
    """True where some candidates fit the budget, or were set aside unscored and nothing missed it;
    asked where no candidate is worth verifying."""
    found = {record.status for record in records if record.name != FLOAT}
    return FITS in found or (SET_ASIDE in found and found.isdisjoint((MISSES, NEAR)))


def find_provable(records: Iterable[TriedModel], minimize: str) -> list[TriedModel]:
    """Finds the candidates to verify on held-out samples: the cheapest that cost less than the
    original. One place is for the candidate with most room, in case the cheaper ones fail. A
    candidate that may have missed the budget by chance comes first, where it costs far less than
    the others or leaves fewer ops to a CPU."""
    known = list(records)
    original = next((record for record in known if record.name == FLOAT), None)

    def is_worthy(record: TriedModel) -> bool:
        told = original and is_better(record, original, minimize, record.latency)
        return told is not False

    fitting = takewhile(lambda record: record.name != FLOAT, rank(known, minimize))
    cheaper = [record for record in fitting if is_worthy(record)]
    near = [record for record in known if record.status == NEAR and is_worthy(record)]
    far_less = [one for one in near if not cheaper or _costs_far_less(one, cheaper[0], minimize)]
    asked = sorted(far_less, key=lambda one: -one.room.estimate)[:1]
    places = _MOST_VERIFIED - len(asked) - 1
    surest = sorted(cheaper[places:], key=lambda record: -record.room.estimate)[:1]
    return [*asked, *cheaper[:places], *surest]


def _costs_far_less(record: TriedModel, other: TriedModel, minimize: str) -> bool:
    """Compares the ops that are left to a CPU before any cost, as `rank` does."""
    if record.left != other.left:
        return record.left < other.left
    own, least = record.cost(minimize), other.cost(minimize)
    return own is not None and least is not None and own < _FAR_LESS * least


def _times(trials: TuneTrials, held: TriedModel, targets: Sequence[Place]) -> Proof:
    """Times one model for the proof, or reads its times from the records."""
    front, everywhere = find_front(trials.records.values()), _places(targets)
    texts = (*map(str, everywhere), *(record.digest for record in front))

    def measure(key: str) -> ProofTimes:
        return _measure_times(trials, held, front, everywhere, key)

    timed = trials.time_proof(held, texts, measure)
    return Proof(None, held, "", tuple(one.name for one in front), timed.target, timed)


def _measure_times(
    trials: TuneTrials,
    best: TriedModel,
    others: Iterable[TriedModel],
    everywhere: Sequence[Place],
    key: str,
) -> ProofTimes:
    """Times the models on every place that runs them and estimates the rest; the first place
    decides."""
    timed = _bench(trials, best, others, everywhere)
    bench = timed.bench if timed else None
    threads = [_target_time(result) for result in (bench.results if bench else ())]
    for place in everywhere:
        if place.times is None:
            threads += _estimates(trials, best, place)
    if everywhere[0].times is None or bench is None:
        speed, target = best.latency, str(everywhere[0])
    else:
        speed, target = speed_of(bench.results[1], bench.results[0]), _fastest(bench).target
    assert speed is not None  # what was verified has been timed
    return ProofTimes(
        name=best.name,
        kind=TIMED,
        branch=best.branch,
        key=key,
        speed=speed,
        target=target,
        threads=tuple(threads),
        warnings=bench.warnings if bench else (),
        device=timed.device if timed else "",
    )


def _bench(
    trials: TuneTrials, best: TriedModel, others: Iterable[TriedModel], everywhere: Sequence[Place]
) -> Timed | None:
    """Times all models in turns: the float model and the best on every target, the others on the
    first."""
    targets = [place.times for place in everywhere if place.times is not None]
    if not targets:
        return None
    pairs = [(name, record, t) for t in targets for name, record in ((FLOAT, None), ("best", best))]
    beside = [r for r in others if r.name not in (FLOAT, best.name)][:_MOST_TIMED]
    group = [_contender(trials, name, record, t) for name, record, t in pairs]
    group += [_contender(trials, record.name, record, targets[0]) for record in beside]
    rule = trials.goal.rule(_PATIENT)
    return measure_on(trials.engine, group, rule, trials.progress, memory=False)


def _fastest(bench: Bench) -> Result:
    """The result where the best model is fastest beyond doubt; otherwise the result on the first
    target."""
    own = [r for r in bench.results if r.model == "best"]
    fastest = own[0]
    for result in own[1:]:
        if ratio(fastest, result).verdict == FASTER:
            fastest = result
    return fastest


def _estimates(trials: TuneTrials, best: TriedModel, place: Place) -> Iterator[TargetTime]:
    """A row for the best model on a place that only estimates times; the float model has none
    there."""
    found = place.placed(load(trials.file(best)))
    if found is not None and found.latency_us is not None:
        yield TargetTime(str(place), "best", found.latency_us, found.latency_how)


def _places(asked: Sequence[Place]) -> list[Place]:
    """The requested places; a single place with threads also with other numbers of threads."""
    target = asked[0].runs
    if len(asked) > 1 or not isinstance(target, Target) or target.kind not in _THREADED:
        return list(asked)
    counts = (1, 2, 4, usable_cores())
    more = (Place.parse(replace(target, threads=n)) for n in counts if n <= usable_cores())
    return list(dict.fromkeys((asked[0], *more)))


def _contender(
    trials: TuneTrials, name: str, record: TriedModel | None, target: Target | Address
) -> Contender:
    path = trials.source if record is None else trials.file(record)
    return Contender(name, str(path), target, record.digest if record else trials.digest)


def _target_time(result: Result) -> TargetTime:
    low, high = result.interval_us
    return TargetTime(result.target, result.model, result.percentile_us(50), MEASURED, low, high)


def look_into(trials: TuneTrials, record: TriedModel | None, front: Sequence[str] = ()) -> None:
    """Writes what explains the result: the time of each op of the original and of the result, what
    layers lose, and which accelerators take them. Accelerators are also listed for the rest of the
    front."""
    wanted = [(FLOAT, trials.digest, trials.source)]
    if record is not None:
        wanted.append((record.name, record.digest, trials.file(record)))
    place = trials.goal.place
    about = (*trials.runner.place, str(place), trials.split.calibration.digest)
    for name, digest, path in wanted:
        trials.progress(Status(phrase("the ops of {name}, one by one", name)))
        kept = trials.folder.evidence(TunedInside, digest)
        if kept is None or kept.about != about or kept.accelerators is None:
            inside = _op_times(trials, path)
            inside = replace(
                inside,
                name=name,
                about=about,
                layers=_layers(trials, path) if name != FLOAT else (),
                disagreements=_disagreements(trials, path) if name != FLOAT else (),
                accelerators=_takers(path, compiled=name != FLOAT),
            )
            trials.folder.write_evidence(digest, inside)
    trials.progress(Status(phrase("what accelerators take")))
    for other in (trials.records[name] for name in front):
        kept = trials.folder.evidence(TunedInside, other.digest) or TunedInside(1, other.name)
        if kept.accelerators is None:
            found = _takers(trials.file(other), compiled=False)
            trials.folder.write_evidence(other.digest, replace(kept, accelerators=found))


def find_whole(trials: TuneTrials, record: TriedModel) -> tuple[str, ...]:
    """The accelerators that take the whole of a model that `look_into` has examined."""
    kept = trials.folder.evidence(TunedInside, record.digest)
    rows = (kept.accelerators if kept else None) or ()
    return tuple(row.placed.target for row in rows if not row.placed.left)


def _takers(path: Path, *, compiled: bool) -> tuple[Taker, ...]:
    """What every accelerator takes of a model, by rules or by the compilers installed here."""
    return tuple(
        Taker(taken_of(found), found.latency_us, found.latency_how, cycles_of(found))
        for found in takers(load(path), compiled=compiled)
    )


def _op_times(trials: TuneTrials, path: Path) -> TunedInside:
    """The op times on a CPU; nothing for other places, which report no times of single ops."""
    target, runs = trials.goal.place.cpu, trials.goal.runs
    if target is None:
        return TunedInside(1, "")
    try:
        what = phrase("profiling {stem}", path.stem)
        return run_alone(trials.engine, what, op_times, path, target, runs)
    except Lost:
        raise
    except LitesmithError:  # a model whose ops the runtime does not tell apart
        return TunedInside(1, "")


def op_times(source: Source, target: Target, runs: int | None = None) -> TunedInside:
    """The time of a run, and of each of its ops."""
    found = profile_ops(source, target, runs=_PROFILED_RUNS if runs is None else runs)
    ops = tuple(
        OpRow(op.index, op.kind, op.name, op.us, op.macs)
        for op in found.ops
        if op.graph == found.entry
    )
    return TunedInside(1, "", run_us=found.run_us, ops=ops)


def _disagreements(trials: TuneTrials, path: Path) -> tuple[DisagreementRow, ...]:
    """Held-out items that the model answers differently from the original."""
    data, target = trials.split.held_out, trials.goal.place.cpu
    if data.items.scorer is None or target is None:
        return ()
    few = take_some(data, _COMPARED)
    name, _ = choose_metric(
        trials.model, few, next(iter(few)), trials.goal.metric, has_reference=True
    )
    return disagreements(path, trials.model, few, metric_for(name, few), target)


def _layers(trials: TuneTrials, path: Path) -> tuple[LayerRow, ...]:
    """The error of each layer's output, as a signal-to-noise ratio."""
    few = take_some(take_some(trials.split.calibration, CALIBRATION_SAMPLES), _LOOKED_AT)
    try:
        tidy = parse(f"{text_of(tidying(trials.model, ()))} | fold(float16=true)")
        model, reference = load(path), apply(trials.model, tidy).model
        found = find_twins(model, reference)
        return tuple(
            LayerRow(
                index=loss.twin.place,
                kind=loss.twin.op.kind if loss.twin.op else "input",
                name=loss.twin.theirs.name,
                snr_db=decibels(1.0, loss.noise("total")),
            )
            for loss in losses(model, reference, found, few)
        )
    except LitesmithError:  # control flow, or a graph that is too different to compare
        return ()
