"""Makes, times and scores the models to choose from, and reuses what is on record."""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from math import inf, isfinite
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, TypeVar, cast

import numpy as np

from litesmith.accuracy.evaluate import preparation_text
from litesmith.accuracy.metrics import metric_named
from litesmith.calibration.context import CALIBRATION_SAMPLES, RandomSamples
from litesmith.calibration.observe import Spread
from litesmith.calibration.quantize_effort import carry_out, plan
from litesmith.data.sample_splits import scored_digest, take_some
from litesmith.data.samples import Data
from litesmith.data.shipping import Content, load_content
from litesmith.errors import CannotRun
from litesmith.evidence.choose_record import (
    CHOOSE_KINDS,
    MADE,
    SCORED,
    TIMED,
    MadeModel,
    ScoredModel,
    ScoresBySample,
    TimedModel,
)
from litesmith.evidence.folder import Folder
from litesmith.evidence.measurement import Measurement, Trial
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.operating_system import usable_cores
from litesmith.passes.core.recipe import text_of
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.progress import Progress, silent
from litesmith.regression.comparison import measure_size
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.run.trial_run import probe
from litesmith.search.choosing.candidates import ModelCandidate
from litesmith.search.trial.measured_values import score_of
from litesmith.search.trial.remote_build import Order, Pieces, RemoteBuilds, join_pieces, look_at
from litesmith.search.trial.trial_runner import TrialRunner
from litesmith.tflite.file import digest, load, save, write_whole
from litesmith.tflite.write import to_bytes
from litesmith.timing.cluster_timing import measure_on
from litesmith.timing.latency import Bench, Result, Rule, ratio
from litesmith.timing.statistics import UNCLEAR
from litesmith.timing.turns import Contender
from litesmith.workers.engine import Engine

# Models that this process has already run: digest of the file, and target.
_RAN: set[tuple[str, str]] = set()

_INT8 = Quantize()

# Writes a file; returns the recipe and the decisions made for the user.
Make = Callable[[Path], tuple[str, tuple[str, ...]]]
Details = MadeModel | TimedModel | ScoredModel
D = TypeVar("D", MadeModel, TimedModel, ScoredModel)

# The number of letters of a name that go into a file name: file systems limit its length.
_MOST_LETTERS = 50


class Quantized(NamedTuple):
    """The int8 version of a model, and how it was made."""

    content: Content
    recipe: str


def quantize(
    model: Model,
    few: Data,
    effort: str,
    target: Target | None = None,
    spread: Spread | None = None,
) -> Quantized:
    """Makes the int8 version of a model; raises where that is impossible or the outputs are not
    numbers. Ops that are faster in float on the target stay float."""
    todo = plan(model, _INT8, effort, has_data=True)
    done = carry_out(model, todo, few, target=target, spread=spread)
    check(done.change.model)
    made = np.frombuffer(to_bytes(done.change.model), np.uint8)
    claims = look_at(made, model, few, done.change.skipped)
    if claims.is_useless:
        raise CannotRun(claims.failure or phrase("what it gives are no numbers"))
    return Quantized(made, text_of(done.recipe))


def quantize_there(effort: str, given: tuple[Pieces], content: Content) -> Quantized:
    """Runs `quantize` on a worker."""
    data = join_pieces(given[0])
    return quantize(load_content(content), data.few, effort, spread=data.spread)


class ChooseTrials:
    """The trials of one choice."""

    def __init__(
        self,
        folder: Folder,
        target: Target | Address,
        given: Collection[Path] = (),
        engine: Engine | None = None,
    ) -> None:
        """Never overwrites the user's `given` files; leaves the work to `engine`."""
        self.folder, self.target = folder, target
        self.runner = TrialRunner(folder, CHOOSE_KINDS, target, engine)
        self._builds = RemoteBuilds(engine, quantize_there)
        self._calibration: dict[str, Data] = {}
        self._places = {_one_case(path): "" for path in given}

    # Files.

    def place(self, name: str) -> Path:
        """The path for a model made here: never a user's file, never shared by two models."""
        folder = self.folder.path / "models"
        folder.mkdir(exist_ok=True)
        letters = (letter if letter.isalnum() or letter in "._-" else "-" for letter in name)
        stem = "".join(letters)[:_MOST_LETTERS]
        for number in count(1):
            path = folder / f"{stem}{f'-{number}' if number > 1 else ''}.tflite"
            if self._places.setdefault(_one_case(path), name) == name:
                return path
        raise AssertionError  # numbers do not end

    def make(
        self, parent: ModelCandidate, name: str, how: tuple[object, ...], make: Make
    ) -> ModelCandidate:
        """Makes a model from another with `make`, unless the same model was made before and still
        exists.

        A model that takes its parent's name lies beside the parent.
        """
        place = self.place(name if name != parent.name else f"{name}-retrained")
        key = self._key(MADE, parent.digest, how)
        known = self._find(key, MadeModel)
        is_here = known is not None and place.is_file() and digest(place) == known.model_digest

        def made() -> Trial[Details]:
            started = perf_counter()
            recipe, notes = make(place)
            details = MadeModel(name, MADE, key, notes, perf_counter() - started)
            return Trial(recipe, parent.digest, digest(place), reason="made", details=details)

        self.runner.run(key, made, again=not is_here)
        found = self._find(key, MadeModel)
        assert found is not None
        return replace(
            parent,
            name=name,
            model=load(place),
            path=place,
            digest=found.model_digest,
            parent=parent.name if parent.name != name else "",
            recipe=found.recipe,
            is_taught=parent.is_taught or found.recipe == "retrain",
            published=None,  # which was of what it was made of
            notes=found.details.notes,
        )

    def write(self, candidate: ModelCandidate) -> ModelCandidate:
        """Writes the file of a catalogue candidate."""
        if candidate.path is not None:
            return candidate
        place = self.place(candidate.name)
        if not place.is_file() or digest(place) != candidate.digest:
            save(candidate.model, place)
        return replace(candidate, path=place)

    def quantize(
        self, parent: ModelCandidate, name: str, calibration: Data | None, effort: str
    ) -> ModelCandidate:
        """Makes the int8 version of a candidate; raises where that is impossible or the outputs are
        not numbers."""
        few = self._few(parent, calibration)

        def make(place: Path) -> tuple[str, tuple[str, ...]]:
            self.begin([(parent, calibration)], effort)
            here = self.target if isinstance(self.target, Target) else None
            done = self._builds.finish(parent.digest)
            done = done or quantize(parent.model, few, effort, here)
            write_whole(place, [done.content.data])
            return done.recipe, ()

        return self.make(parent, name, (few.digest, effort), make)

    def begin(self, parents: Iterable[tuple[ModelCandidate, Data | None]], effort: str) -> None:
        """Has the workers make the int8 versions of all candidates at once, each with its
        own data."""
        for parent, calibration in parents if self.runner.engine is not None else ():
            few = self._few(parent, calibration)
            if self._key(MADE, parent.digest, (few.digest, effort)) in self.runner.known:
                continue
            words = phrase("making the int8 form of {name}", parent.name)
            order = Order(effort, few, parent.file, parent.digest, words)
            self._builds.begin(parent.digest, order)

    def _few(self, parent: ModelCandidate, calibration: Data | None) -> Data:
        if parent.digest not in self._calibration:
            data = RandomSamples(parent.model, 16) if calibration is None else calibration
            self._calibration[parent.digest] = take_some(cast(Data, data), CALIBRATION_SAMPLES)
        return self._calibration[parent.digest]

    # Times.

    def time(
        self, group: Sequence[ModelCandidate], rule: Rule, progress: Progress = silent
    ) -> dict[str, TimedModel]:
        """Times all candidates in one interleaved run; the result is by name."""
        keys = {c.name: self._time_key(c, group, rule) for c in group}
        if not self.knows_times(group, rule):
            contenders = [Contender(c.name, str(c.path), self.target, c.digest) for c in group]
            bench, device = measure_on(self.runner.engine, contenders, rule, progress)
            for candidate, result in zip(group, bench.results, strict=True):
                trial = _timed_trial(candidate, keys[candidate.name], result, bench, device)
                self.runner.run(trial.details.key, lambda made=trial: made, again=True)
        found = {name: self._find(key, TimedModel) for name, key in keys.items()}
        return {name: trial.details for name, trial in found.items() if trial is not None}

    def try_out(self, candidates: Sequence[ModelCandidate]) -> None:
        """Runs each file once, several at a time; raises where a file does not run here."""
        target = self.target
        if not isinstance(target, Target):
            return

        def run_once(candidate: ModelCandidate) -> None:
            if (candidate.digest, str(target)) not in _RAN:
                probe(candidate.file, target)
                _RAN.add((candidate.digest, str(target)))

        unknown = [c for c in candidates if c.path is not None and not self._has_run(c)]
        with ThreadPoolExecutor(usable_cores()) as pool:
            list(pool.map(run_once, unknown))

    def _has_run(self, candidate: ModelCandidate) -> bool:
        """True where the candidate was timed here before."""
        return any(
            trial.model_digest == candidate.digest
            and isinstance(trial.details, TimedModel)
            and trial.details.target == str(self.target)
            for trial in self.runner.known.values()
        )

    def knows_times(self, group: Sequence[ModelCandidate], rule: Rule) -> bool:
        """True where clear times of all candidates are on record."""
        found = [self._find(self._time_key(c, group, rule), TimedModel) for c in group]
        return all(one is not None and not one.details.is_unclear for one in found)

    def _time_key(
        self, candidate: ModelCandidate, group: Sequence[ModelCandidate], rule: Rule
    ) -> str:
        """The key of a time, which includes every model that took turns in the run."""
        everyone = sorted(c.digest for c in group)
        return self._key(TIMED, candidate.digest, (everyone, str(self.target), rule.seconds))

    # Scores.

    def score(
        self, candidate: ModelCandidate, data: Data, metric: str, progress: Progress = silent
    ) -> tuple[ScoredModel, tuple[float, ...]]:
        """Scores a candidate; returns its score and its result on each sample."""
        key = self._score_key(candidate, data, metric)
        kept = self.folder.evidence(ScoresBySample, candidate.digest)
        scores = dict(kept.scores) if kept else {}
        known = self._find(key, ScoredModel)
        if known is None or key not in scores:
            started = perf_counter()
            path, on = candidate.file, self.scoring_target
            found = self.runner.score(path, data, metric, on, progress=progress)
            scores[key] = tuple(s if isfinite(s) else None for s in found.measurement.samples)
            self.folder.write_evidence(candidate.digest, ScoresBySample(1, candidate.name, scores))
            better = metric_named(found.metric).better
            details = ScoredModel(
                accuracy=replace(score_of(found), better=better),
                notes=found.notes,
                name=candidate.name,
                kind=SCORED,
                key=key,
                preparation=preparation_text(data),
                seconds=perf_counter() - started,
            )
            place = (found.target, candidate.digest, self.runner.machine)
            value = Measurement(found.metric, found.unit, (found.value,), *place)
            measured = (value,) if isfinite(found.value) else ()  # JSON has no word for others
            known = trial = Trial(
                "", "", candidate.digest, measured, reason="scored", details=details
            )
            self.runner.run(key, lambda: trial, again=True)
        return known.details, tuple(inf if s is None else s for s in scores[key])

    def knows_score(self, candidate: ModelCandidate, data: Data, metric: str) -> bool:
        return self._score_key(candidate, data, metric) in self.runner.known

    def _score_key(self, candidate: ModelCandidate, data: Data, metric: str) -> str:
        return self._key(
            SCORED, candidate.digest, (scored_digest(data), metric, str(self.scoring_target))
        )

    @property
    def scoring_target(self) -> str | Target:
        """The target for scoring: this machine, one sample at a time on each core."""
        if not isinstance(self.target, Target):
            return "cpu:1"
        return replace(self.target, threads=1) if self.target.kind == "cpu" else self.target

    # Records.

    def _key(self, kind: str, model: str, what: tuple[object, ...]) -> str:
        return self.runner.key(self.runner.place, kind, model, what)

    def _find(self, key: str, kind: type[D]) -> Trial[D] | None:
        known = self.runner.known.get(key)
        if known is None or not isinstance(known.details, kind):
            return None
        return known.with_details(known.details)


def _one_case(path: Path) -> str:
    """A form of the path that is equal for paths which differ only in case, where the file system
    ignores case."""
    return os.path.realpath(path).casefold()


def _timed_trial(
    candidate: ModelCandidate, key: str, own: Result, bench: Bench, device: str
) -> Trial[Details]:
    numbers, sizes = own.numbers, measure_size(candidate.file)
    pairs = {one.contender.digest: ratio(one, own) for one in bench.results if one is not own}
    ratios = {other: (found.value, *found.interval) for other, found in pairs.items()}
    details = TimedModel(
        name=candidate.name,
        kind=TIMED,
        key=key,
        target=own.target,
        p50_us=numbers.p50_us,
        p50_low_us=numbers.p50_low_us,
        p50_high_us=numbers.p50_high_us,
        p95_us=numbers.p95_us,
        first_us=numbers.first_us,
        peak_bytes=numbers.peak_bytes,
        runs=numbers.runs,
        bytes=sizes.bytes,
        gzip_bytes=sizes.gzip_bytes,
        ratios=ratios,
        note=own.note,
        warnings=bench.warnings,
        device=device,
        is_unclear=any(found.verdict == UNCLEAR for found in pairs.values()),
    )
    kept = tuple(m for m in own.trial().measurements if m.metric != "latency")
    return Trial("", "", candidate.digest, kept, reason=phrase("timed in turns"), details=details)
