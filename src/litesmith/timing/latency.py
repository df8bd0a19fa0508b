"""How long a model takes on a target, and which of several models is faster."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from time import perf_counter
from typing import cast

import numpy as np

from litesmith.arguments import argument
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.evidence.bench_record import BenchTrial, ComparedTimes, LatencyRow, ThreadsRow
from litesmith.evidence.codec import encode_fields
from litesmith.evidence.measurement import Interval, Measurement, Trial
from litesmith.ir.types import Model
from litesmith.phrases import join, phrase
from litesmith.progress import Progress, Status, silent
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address, is_address, parse
from litesmith.run.session import Source
from litesmith.tflite.file import digest
from litesmith.tflite.write import to_bytes
from litesmith.timing.copies import Copies
from litesmith.timing.host import LOOK_SECONDS, Host, host, noise
from litesmith.timing.loaded_models import Devices
from litesmith.timing.memory import peak_bytes
from litesmith.timing.statistics import (
    UNCLEAR,
    Ratio,
    Row,
    TurnTimes,
    percentile,
    relative_width,
    spread,
)
from litesmith.timing.turns import Contender, Load, Quota, one_load, times_of
from litesmith.units import time_interval_text, time_text

# An interval needs six values. A single contender yields one value per load, a pair of contenders
# one value per two loads of mirrored order. Twelve values are usual: fewer make intervals wide.
_LEAST, _USUAL = 6, 12

Json = dict[str, object]


@dataclass(frozen=True)
class Rule:
    """When to stop: after some runs, after some seconds, or once the 95 % interval is narrow.

    The interval is that of the ratio where there are several contenders, and that of the median
    where there is one; its width is relative to the value. Before the first run, the machine is
    observed for `look_seconds`, to tell how busy other programs keep it. Before each load, up to
    `cool_seconds` in all pass while a core is held below its highest clock. `cores` are those that
    devices run on.
    """

    runs: int | None = None
    seconds: float | None = None
    warmup_runs: int | None = None
    width: float = 0.02
    least_seconds: float = 2.0
    most_seconds: float = 20.0
    seed: int = 0
    look_seconds: float = LOOK_SECONDS
    cool_seconds: float = 0.0
    cores: str | None = None

    def __post_init__(self) -> None:
        if self.runs is not None and self.seconds is not None:
            raise BadInput(
                "give {runs} or {seconds}, not both", argument("runs"), argument("seconds")
            )
        if self.runs is not None and not 1 <= self.runs <= 10_000_000:
            given = argument("runs", self.runs)
            raise BadInput("{runs}: give a number from 1 to 10000000", given)
        if self.seconds is not None and not 0 < self.seconds <= 86_400:
            given = argument("seconds", self.seconds)
            raise BadInput("{seconds}: give a number above 0, at most 86400", given)
        if self.warmup_runs is not None and not 0 <= self.warmup_runs <= 1_000_000:
            given = argument("warmup_runs", self.warmup_runs)
            raise BadInput("{warmup_runs}: give a number from 0 to 1000000", given)
        if not 0 <= self.cool_seconds <= 86_400:
            given = argument("cool", self.cool_seconds)
            raise BadInput("{cool}: give a number of seconds from 0 to 86400", given)


@dataclass(frozen=True, repr=False)
class Result:
    """One contender, with its times on each of its loads.

    times  the times of all contenders of the run, among which this one is at `place`
    """

    contender: Contender
    loads: tuple[Load, ...]
    host: Host
    times: TurnTimes
    place: int = 0
    peak_bytes: int | None = None

    def __repr__(self) -> str:
        return f"<Result: {self.sentence}>"

    @property
    def sentence(self) -> str:
        """The model, its target and its usual time in a few words."""
        time = time_interval_text(self.percentile_us(50), *self.interval_us)
        return phrase("{name} on {target}: {time}", Path(self.model).name, self.target, time)

    @property
    def model(self) -> str:
        return self.contender.name

    @property
    def target(self) -> str:
        return str(self.contender.target)

    @property
    def note(self) -> str:
        return self.loads[0].note

    @property
    def samples_us(self) -> tuple[float, ...]:
        return tuple(sample for load in self.loads for sample in load.samples_us)

    @property
    def runs(self) -> int:
        """The number of counted runs, including those whose samples are not kept."""
        return sum(len(turn.times_us) for load in self.loads for turn in load.turns)

    def percentile_us(self, rank: float) -> float:
        """A percentile of the time. The median comes from the calm turns, like the comparisons;
        other percentiles come from all samples, and are no less than the median."""
        usual = self.times.us(self.place)
        return usual if rank == 50 else max(usual, percentile(self.samples_us, rank))

    @property
    def interval_us(self) -> Interval:
        """The 95 % interval of p50."""
        return self.times.interval_us(self.place)

    @property
    def cpu_us(self) -> float:
        """CPU time of a run, summed over threads."""
        used = [turn.cpu_us for load in self.loads for turn in load.turns]
        return median(used) or fmean(used)  # a clock of 16 ms shows nothing in most turns

    @property
    def joules(self) -> float | None:
        """The energy of a run in joules, for the whole machine; None where there is no counter to
        read."""
        used = [t.joules for load in self.loads for t in load.turns if t.joules is not None]
        return sum(used) / len(used) if used else None

    @property
    def numbers(self) -> LatencyRow:
        """All numbers, without the samples."""
        low, high = self.interval_us
        return LatencyRow(
            model=self.model,
            target=self.target,
            p50_us=self.percentile_us(50),
            p90_us=self.percentile_us(90),
            p95_us=self.percentile_us(95),
            p99_us=self.percentile_us(99),
            p50_low_us=low,
            p50_high_us=high,
            create_us=median(load.create_us for load in self.loads),
            first_us=median(load.first_us for load in self.loads),
            cpu_us=self.cpu_us,
            joules=self.joules,
            peak_bytes=self.peak_bytes,
            runs=self.runs,
            loads=len(self.loads),
            digest=self.contender.digest,
            note=self.note,
        )

    def row(self) -> Row:
        """The numbers by name, without the samples."""
        return encode_fields(self.numbers)

    def to_json(self) -> Json:
        """The numbers and the samples."""
        return {**self.row(), "samples_us": self.samples_us}

    def trial(self) -> Trial[BenchTrial]:
        """The evidence: the samples, thinned evenly to a thousand per load, and their place."""
        samples = {
            "latency": self.samples_us,
            "latency_by_load": tuple(load.median_us for load in self.loads),
            "latency_by_block": self.times.blocks[self.place],
            "create": tuple(load.create_us for load in self.loads),
            "first": tuple(load.first_us for load in self.loads),
        }
        made = [self._measurement(metric, "us", values) for metric, values in samples.items()]
        if self.peak_bytes is not None:
            made.append(self._measurement("peak_memory", "bytes", (float(self.peak_bytes),)))
        return Trial(
            recipe="",
            parent_digest="",
            model_digest=self.contender.digest,
            measurements=tuple(made),
            reason="bench",
            details=BenchTrial(self.model, self.host.facts()),
        )

    def _measurement(self, metric: str, unit: str, values: tuple[float, ...]) -> Measurement:
        return Measurement(metric, unit, values, self.target, self.contender.digest, str(self.host))


@dataclass(frozen=True)
class Comparison:
    """Two contenders of one interleaved run; the ratio is time of b / time of a."""

    a: Contender
    b: Contender
    ratio: Ratio

    @property
    def sentence(self) -> str:
        """Whether b is faster, and by how much, in words."""
        return phrase(
            "{name} on {target}: {speed} ({times})",
            Path(self.b.name).name,
            self.b.target,
            self.ratio.words,
            self.ratio.times_words,
        )

    @property
    def numbers(self) -> ComparedTimes:
        """The numbers, with the ratios of the blocks, from which the interval can be computed."""
        low, high = self.ratio.interval
        a_us, b_us = self.ratio.us or (None, None)
        return ComparedTimes(
            a=self.a.name,
            b=self.b.name,
            a_target=str(self.a.target),
            b_target=str(self.b.target),
            ratio=self.ratio.value,
            low=low,
            high=high,
            verdict=self.ratio.verdict,
            blocks=len(self.ratio.blocks),
            a_us=a_us,
            b_us=b_us,
            block_ratios=self.ratio.blocks,
        )

    def row(self) -> Row:
        return encode_fields(replace(self.numbers, block_ratios=()))

    def to_json(self) -> Json:
        return encode_fields(self.numbers)


@dataclass(frozen=True)
class Situation:
    """A model at several thread counts, beside some busy processes.

    bench    the thread counts, in turns
    threads  the recommended count, with reasons
    """

    competitors: int
    bench: "Bench"
    threads: int
    reasons: tuple[str, ...]

    @property
    def name(self) -> str:
        if not self.competitors:
            return phrase("alone")
        if self.competitors == 1:
            return phrase("beside 1 busy process")
        return phrase("beside {competitors} busy processes", self.competitors)

    def rows(self) -> list[Row]:
        """One row per thread count; joules are of the whole machine."""
        return [
            encode_fields(
                ThreadsRow(
                    threads=result.contender.target.threads,
                    p50_us=result.percentile_us(50),
                    p95_us=result.percentile_us(95),
                    variability=spread(result.samples_us),
                    cpu_us=result.cpu_us,
                    joules=result.joules,
                )
            )
            for result in self.bench.results
        ]

    def to_json(self) -> Json:
        return {
            "situation": self.name,
            "competitors": self.competitors,
            "recommended": self.threads,
            "reasons": self.reasons,
            "counts": self.rows(),
        }


@dataclass(frozen=True, repr=False)
class Bench:
    """The results of one interleaved run.

    comparisons  each of the other contenders against the first
    situations   the thread counts, alone and beside other programs, where requested
    copies       the cost of feeding and reading by each way, where requested
    """

    results: tuple[Result, ...]
    comparisons: tuple[Comparison, ...]
    host: Host
    warnings: tuple[str, ...]
    situations: tuple[Situation, ...] = ()
    copies: tuple[Copies, ...] = ()

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        """The result in one line."""
        if not self.comparisons:
            return join((result.sentence for result in self.results), "; ")
        return join((comparison.sentence for comparison in self.comparisons), "; ")

    def to_rows(self) -> list[Row]:
        """One row per contender, for a data frame."""
        return [result.row() for result in self.results]

    def to_json(self) -> Json:
        """The results as `--json` prints them."""
        shown: Json = {
            "schema": 1,
            "results": [result.to_json() for result in self.results],
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
            "host": self.host.facts(),
            "warnings": self.warnings,
        }
        if self.situations:
            shown["threads"] = [situation.to_json() for situation in self.situations]
        if self.copies:
            shown["copies"] = [one.row() for one in self.copies]
        return shown


def list_contenders(
    models: Source | Sequence[Source], on: str | Target | Sequence[str | Target] = "cpu:1"
) -> tuple[Contender, ...]:
    """Pairs every model with every target."""
    alone = isinstance(models, str | os.PathLike | bytes | bytearray | memoryview | Model)
    sources = cast(Sequence[Source], [models] if alone else models)
    texts = on.split(",") if isinstance(on, str) else [on] if isinstance(on, Target) else on
    targets = [parse_place(text) for text in texts]
    if not sources or not targets:
        raise BadInput("nothing to time: give at least one model and one target")
    return tuple(
        _contender(source, target, number)
        for target in targets
        for number, source in enumerate(sources, 1)
    )


def parse_place(text: str | Target) -> Target | Address:
    """Parses the place where a model runs: here, or on a device."""
    if isinstance(text, str) and is_address(text):
        return parse(text)
    return Target.parse(text)


def _contender(source: Source, target: Target | Address, number: int) -> Contender:
    if isinstance(source, Model):
        source = to_bytes(source)
    if isinstance(source, bytes | bytearray | memoryview):
        content = bytes(source)
        return Contender(f"model {number}", content, target, hashlib.sha256(content).hexdigest())
    path = Path(source)
    if not path.is_file():
        what = phrase("is not a plain file") if path.exists() else phrase("no such file")
        raise BadInput(
            "{path}: {what}; give a .tflite file",
            path,
            phrase("is a folder") if path.is_dir() else what,
        )
    return Contender(str(path), str(path), target, digest(path))


def measure(
    group: Sequence[Contender], rule: Rule, progress: Progress = silent, memory: bool = True
) -> Bench:
    """Times a group of contenders in turns until the rule stops it."""
    machine = host(rule.look_seconds)
    here = [one.target for one in group if isinstance(one.target, Target)]
    peaks = [
        peak_bytes(one.source, one.target) if memory and isinstance(one.target, Target) else None
        for one in group
    ]
    loads, warnings = _loads(group, rule, progress)
    results = results_of(group, loads, machine, peaks)
    comparisons = tuple(
        Comparison(group[0], result.contender, ratio(results[0], result)) for result in results[1:]
    )
    return Bench(results, comparisons, machine, (*noise(machine, here), *warnings))


def with_advice(done: Bench) -> Bench:
    """Adds a warning to the bench where the machine was too busy for a verdict."""
    if all(one.ratio.verdict != UNCLEAR for one in done.comparisons):
        return done
    return replace(done, warnings=(*done.warnings, busy_advice()))


def busy_advice() -> str:
    """Advice for a machine that is too busy."""
    return phrase(
        "the machine was busy, so the times are unclear: close other programs and measure "
        "again, or for longer, as with {seconds}",
        argument("seconds", 60),
    )


def results_of(
    group: Sequence[Contender],
    loads: Sequence[tuple[Load, ...]],
    machine: Host,
    peaks: Sequence[int | None],
) -> tuple[Result, ...]:
    """The result of each contender of one interleaved run."""
    times = times_of(group, loads)
    return tuple(
        Result(group[place], own, machine, times, place, peaks[place])
        for place, own in enumerate(zip(*loads, strict=True))
    )


Loads = list[tuple[Load, ...]]


def _loads(
    group: Sequence[Contender], rule: Rule, progress: Progress
) -> tuple[Loads, tuple[str, ...]]:
    """The loads, and what made the times of devices unsteady."""
    random = np.random.default_rng(rule.seed)
    loads: Loads = []
    start, rested = perf_counter(), 0.0
    order: list[int] = []
    places = [one.target for one in group]
    with Devices(rule.cores) as devices:
        while not _is_enough(group, loads, rule, perf_counter() - start - rested):
            rested += devices.rest(places, rule.cool_seconds - rested)
            order = order[::-1] if len(loads) % 2 else random.permutation(len(group)).tolist()
            quota = _quota(rule, len(group), len(loads))
            loads.append(one_load(group, order, quota, random, devices))
            progress(
                Status(
                    phrase(
                        "load {count}, {time}",
                        len(loads),
                        time_text(1e6 * (perf_counter() - start)),
                    ),
                    len(loads),
                )
            )
        devices.rest(places, 0)  # how hot they are in the end
        warnings = devices.warnings(places)
    if rested:
        waited = phrase("waited {time} for cores to cool", time_text(1e6 * rested))
        warnings = (*warnings, waited)
    return loads, warnings


def _values_to_loads(group_size: int) -> int:
    """The number of loads behind one value of the interval."""
    return 1 if group_size == 1 else 2


def _quota(rule: Rule, group_size: int, number: int) -> Quota:
    """The quota of the load with this number."""
    usual = _USUAL * _values_to_loads(group_size)
    if rule.runs is not None:
        among = min(usual, rule.runs)
        share = rule.runs // among + (number < rule.runs % among)
        return Quota(runs=share, warmup_runs=rule.warmup_runs)
    seconds = 0.1 * group_size if rule.seconds is None else rule.seconds / usual
    return Quota(seconds=seconds, warmup_runs=rule.warmup_runs)


def _is_enough(group: Sequence[Contender], loads: Loads, rule: Rule, elapsed: float) -> bool:
    if not loads:
        return False
    step = _values_to_loads(len(group))
    if rule.runs is not None:
        return len(loads) >= min(_USUAL * step, rule.runs)
    if len(loads) % step or len(loads) < _LEAST * step:
        return False
    if rule.seconds is not None:
        return elapsed >= rule.seconds
    if elapsed >= rule.most_seconds:
        return True
    usual = len(loads) >= _USUAL * step and elapsed >= rule.least_seconds
    return usual and _width(times_of(group, loads)) <= rule.width


def _width(times: TurnTimes) -> float:
    """The width of the widest interval that still matters, relative to its value."""
    if len(times.blocks) == 1:
        return relative_width(times.blocks[0])
    others = range(1, len(times.blocks))
    return max(relative_width(times.ratio(0, other).blocks) for other in others)


def ratio(a: Result, b: Result, rank: float = 50) -> Ratio:
    """Time of b / time of a at a percentile, for two contenders of one interleaved run."""
    if rank == 50:
        return a.times.ratio(a.place, b.place)
    logs = [
        log(percentile(late.samples_us, rank) / percentile(early.samples_us, rank))
        for early, late in zip(a.loads, b.loads, strict=True)
    ]
    pairs = [logs[start : start + 2] for start in range(0, len(logs), 2)]
    return Ratio(tuple(exp(sum(pair) / len(pair)) for pair in pairs))
