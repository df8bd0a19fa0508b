"""Builds the candidates of `tune`; checks, times and scores each once, and records it."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np

from litesmith.accuracy.evaluate import Evaluation
from litesmith.calibration.claims import Claims, check_claims
from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.data.sample_splits import scored_digest, take_some
from litesmith.data.samples import Data
from litesmith.data.shipping import Content, load_content
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.evidence.folder import Folder
from litesmith.evidence.measurement import Measurement, Skipped, Trial
from litesmith.evidence.records import Speed
from litesmith.evidence.tune_record import (
    CANDIDATE,
    FLOAT,
    REFUSED,
    SET_ASIDE,
    TUNE_KINDS,
    VERIFIED,
    ProofTimes,
    Tried,
)
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.micro.arena import add_up_arena
from litesmith.micro.flash import add_up_flash
from litesmith.operating_system import usable_cores
from litesmith.passes.core import recipe as recipes
from litesmith.passes.core.step import Context, Skip
from litesmith.phrases import phrase
from litesmith.progress import Progress, silent
from litesmith.regression.comparison import measure_size
from litesmith.run.core.placement import Placement
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.search.trial.budget import Goal, speed_and_times
from litesmith.search.trial.data_split import Split
from litesmith.search.trial.measured_values import estimated_speed, score_of, speed_of, taken_of
from litesmith.search.trial.remote_build import Order, Pieces, RemoteBuilds, join_pieces, look_at
from litesmith.search.trial.trial_runner import TrialRunner
from litesmith.search.trial.tried_model import TriedModel
from litesmith.search.tuning.search_state import Candidate
from litesmith.tflite.file import digest, load, write_whole
from litesmith.tflite.write import to_bytes
from litesmith.timing.cluster_timing import measure_on, run_alone
from litesmith.timing.latency import Rule
from litesmith.timing.memory import peak_bytes
from litesmith.timing.statistics import UNCLEAR
from litesmith.timing.turns import Contender
from litesmith.training.recipe_context import lazy_rounding, training_context, trainings
from litesmith.training.settings import TrainingRecord, Watch
from litesmith.workers.engine import Engine, Lost

# How long a candidate and the float model take turns: enough to rank candidates, not to prove a
# ratio. Whether the machine is busy is said about the proof.
_QUICK = Rule(width=0.05, least_seconds=0.5, most_seconds=3.0, look_seconds=0)

# Enough to tell whether scoring takes seconds or minutes.
_GLANCE = Rule(runs=2, warmup_runs=1, look_seconds=0)

# The time limit for scoring one model; a slower model is scored on fewer samples, but not on fewer
# than the second number. Where time counts, a model slower than the float model is scored only if
# that takes less than the third.
_MOST_SECONDS, _FEWEST_SCORED, _IN_VAIN_SECONDS = 90.0, 64, 20.0


class Built(NamedTuple):
    """A candidate built by a worker."""

    content: Content
    skipped: tuple[Skip, ...]
    claims: Claims


class _File(NamedTuple):
    """The file of a candidate, with what its steps skipped and what is known about the file."""

    path: Path
    skipped: tuple[Skip, ...] = ()
    claims: Claims | None = None


@dataclass
class _Finding:
    """What is known of a candidate so far; kept even where the rest cannot be found out.

    blocks  the ratios of its time to the float model's, block by block
    """

    details: Tried
    reason: str = ""
    digest: str = ""
    skipped: tuple[Skip, ...] = ()
    blocks: tuple[float, ...] = ()

    def stop(self, status: str, reason: str) -> None:
        self.details, self.reason = replace(self.details, status=status), reason


@dataclass
class TuneTrials:
    """The trials of one search.

    source   the original file; `model` is its content
    watch    receives the progress of a training
    engine   where candidates are built, timed and scored; None means this machine
    records  the tried candidates, by name
    progress receives the progress on one candidate
    """

    folder: Folder
    source: Path
    model: Model
    split: Split
    goal: Goal
    watch: Watch | None = None
    engine: Engine | None = None
    records: dict[str, TriedModel] = field(default_factory=dict[str, TriedModel])
    progress: Progress = silent

    def __post_init__(self) -> None:
        self.digest = digest(self.source)
        self.runner = TrialRunner(self.folder, TUNE_KINDS, self.goal.place.runs, self.engine)
        self._few = take_some(self.split.calibration, CALIBRATION_SAMPLES)
        self._builds = RemoteBuilds(self.engine, build)

    @property
    def fresh(self) -> int:
        """The number of trials that were not on record."""
        return self.runner.fresh

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of this search's records: its candidates and their proofs."""
        own = {record.digest for record in self.records.values()}
        found = [record.details.key for record in self.records.values()]
        for trial in self.runner.known.values():
            if trial.model_digest in own and self._is_of_proof(trial.details):
                found.append(trial.details.key)
        return tuple(found)

    def _is_of_proof(self, details: Tried | ProofTimes) -> bool:
        if isinstance(details, ProofTimes):
            return True
        return details.kind == VERIFIED and details.held_out == self.split.held_out.digest

    def is_disproven(self, record: TriedModel) -> bool:
        """True where the held-out samples are known to refute the candidate."""
        known = self._find(self._key(record.recipe, VERIFIED))
        found = None if known is None else known.details.accuracy
        return found is not None and self.goal.is_missed(found)

    def try_candidate(self, candidate: Candidate) -> TriedModel:
        """Tries a candidate, unless its trial is on record."""
        key = self._key(candidate.recipe, CANDIDATE)
        known = self._find(key)
        if known is None or self._is_short_of(known.details):
            trial = self._try(candidate, key)
            self.runner.fresh += 1
        else:
            details = replace(
                known.details, name=candidate.name, branch=candidate.branch, why=candidate.why
            )
            details, reason = self.goal.judge(details, known.reason)
            trial = replace(known, details=details, reason=reason)
        self.runner.keep(trial)
        self.records[candidate.name] = TriedModel(trial)
        return self.records[candidate.name]

    def foresee(self, candidates: Iterable[Candidate]) -> None:
        """Has the workers build candidates that may be tried next, one for each worker."""
        if self.engine is not None:
            unknown = [c for c in candidates if not self.knows(c)]
            for candidate in unknown[: self.engine.width]:
                self._begin(candidate.recipe, candidate.name)

    def close(self) -> None:
        """Stops the builds that nobody wants any more."""
        self._builds.stop()

    def knows(self, candidate: Candidate) -> bool:
        """True where the trial of a candidate is on record."""
        known = self._find(self._key(candidate.recipe, CANDIDATE))
        return known is not None and not self._is_short_of(known.details)

    def has_some_of(self, branch: str) -> bool:
        """True where a trial of this branch is on record."""
        found = (trial.details for trial in self.runner.known.values())
        return any(one.kind == CANDIDATE and one.branch == branch for one in found)

    def verify(self, record: TriedModel) -> TriedModel:
        """Scores the model of a trial on the held-out samples, on which no choice depends."""
        key = self._key(record.recipe, VERIFIED)
        known = self._find(key)
        held = self.split.held_out.digest
        details = replace(record.details, kind=VERIFIED, key=key, held_out=held)
        if known is None:
            started = perf_counter()
            on = self._proving_target(record)
            found = self._score(self.file(record), self.split.held_out, on)
            details = replace(
                details,
                accuracy=score_of(found),
                scored_on=str(on),
                look=self._looks(record) + 1,
                seconds=perf_counter() - started,
            )
            self.runner.fresh += 1
        else:
            before = known.details
            details = replace(
                details,
                accuracy=before.accuracy,
                scored_on=before.scored_on,
                look=before.look,
                seconds=before.seconds,
            )
        details, reason = self.goal.judge(details, "")
        told = phrase("on held-out samples {reason}", reason)
        trial = replace(record.trial, measurements=(), skipped=(), reason=told, details=details)
        self.runner.keep(trial)
        return TriedModel(trial)

    def _looks(self, record: TriedModel) -> int:
        """The number of other models that were judged on the held-out samples."""
        held = self.split.held_out.digest
        seen = {
            trial.model_digest
            for trial in self.runner.known.values()
            if isinstance(trial.details, Tried) and trial.details.held_out == held
        }
        return len(seen - {record.digest})

    def file(self, record: TriedModel) -> Path:
        """The file of a trial; rebuilt where it is gone."""
        if record.name == FLOAT:
            return self.source
        found = self.folder.found(record.name, record.digest)
        if found is not None:
            return found
        again = self._make(record.recipe, record.name).path
        if digest(again) != record.digest:
            raise CannotApply(
                "{name}: made again, it is not the file that was measured; choose another "
                "-o, and all is measured anew",
                record.name,
            )
        return again

    def time_proof(
        self,
        record: TriedModel,
        what: tuple[object, ...],
        make: Callable[[str], ProofTimes],
    ) -> ProofTimes:
        """The times of a proof: from the records, or measured by `make`, which receives their key;
        `what` distinguishes them from the times of other proofs."""
        key = self.runner.key(self.runner.place, record.digest, what)

        def measure() -> Trial[Tried | ProofTimes]:
            return replace(
                record.trial,
                measurements=(),
                skipped=(),
                reason=phrase("timed in turns with the float model, on every target"),
                details=make(key),
            )

        known = self.runner.known.get(key)
        speed = known and isinstance(known.details, ProofTimes) and known.details.speed
        again = bool(speed) and self._may_be_clearer(speed)
        found = self.runner.run(key, measure, again=again).details
        assert isinstance(found, ProofTimes)
        return found

    # Records.

    def _find(self, key: str) -> Trial[Tried] | None:
        known = self.runner.known.get(key)
        if known is None or not isinstance(known.details, Tried):
            return None
        return known.with_details(known.details)

    def _is_short_of(self, known: Tried) -> bool:
        """True where a recorded trial lacks a measurement that is needed now, or could be improved
        now."""
        if known.is_passing:
            return True
        if known.latency is None:
            return False
        if self.goal.minimize == "latency" and self._may_be_clearer(known.latency):
            return True
        if known.status == SET_ASIDE:
            return not self.goal.is_in_vain(known.latency)
        return self.goal.minimize == "memory" and known.peak_bytes is None

    def _may_be_clearer(self, speed: Speed) -> bool:
        """True for a time taken on a busy machine, unless the user fixed the number of runs."""
        return speed.verdict == UNCLEAR and self.goal.runs is None

    def _key(self, recipe: str, kind: str) -> str:
        goal = self.goal
        data = self.split.search if kind == CANDIDATE else self.split.held_out
        trains = goal.training if trainings(recipes.parse(recipe)) else None
        return self.runner.key(
            (self.runner.place, self.digest, recipe, kind),
            (self.split.calibration.digest, scored_digest(data), goal.metric, str(goal.place)),
            trains,
        )

    # Making.

    def _try(self, candidate: Candidate, key: str) -> Trial[Tried]:
        started = perf_counter()
        told = (candidate.name, candidate.branch, candidate.why, CANDIDATE, key)
        found = _Finding(Tried(*told, predicted_us=candidate.predicted_us))
        try:
            is_float = candidate.name == FLOAT
            file = _File(self.source) if is_float else self._make(candidate.recipe, candidate.name)
            found.digest, found.skipped = digest(file.path), file.skipped
            self._measure(found, file)
        except Lost:  # which says nothing about the candidate
            raise
        except LitesmithError as error:
            found.stop(REFUSED, str(error))
            is_passing = isinstance(error, BadInput)  # a full disk, broken torch
            found.details = replace(found.details, is_passing=is_passing)
        details, reason = self.goal.judge(found.details, found.reason)
        place = (str(self.goal.place), found.digest, self.runner.machine)
        blocks = found.blocks
        measured = (Measurement("latency_ratio", "ratio", blocks, *place),) if blocks else ()
        return Trial(
            candidate.recipe,
            self.digest,
            found.digest,
            measured,
            _group(found.skipped),
            reason,
            details=replace(details, seconds=perf_counter() - started),
        )

    def _begin(self, recipe: str, name: str) -> None:
        """Has a worker build a candidate. Training happens where the search runs, which has the
        training's records and possibly a GPU."""
        if recipe and not trainings(recipes.parse(recipe)):
            order = Order(
                recipe, self._few, self.source, self.digest, phrase("making {name}", name)
            )
            self._builds.begin(recipe, order)

    def _make(self, text: str, name: str) -> _File:
        self._begin(text, name)
        built = self._builds.finish(text)
        if built is not None:
            place = self.folder.work(name)
            write_whole(place, [built.content.data])
            return _File(place, built.skipped, built.claims)
        recipe = recipes.parse(text)
        change = recipes.apply(self.model, recipe, self._context(recipe, name))
        return _File(self.folder.keep(change.model, name), change.skipped)

    def _context(self, recipe: recipes.Recipe, name: str) -> Context:
        """The context for the steps: some of the calibration samples, and all of them for
        training."""
        if not trainings(recipe) or self.goal.training is None:
            context = context_of(self._few, progress=self.progress)
            return replace(context, learn=lazy_rounding())
        place = self.folder.training(name, self._key(recipes.text_of(recipe), CANDIDATE))
        record = TrainingRecord(place, resume=True)
        data, training = self.split.calibration, self.goal.training
        return training_context(self.model, data, recipe, training, record=record, watch=self.watch)

    # Measuring.

    def _measure(self, found: _Finding, file: _File) -> None:
        """Measures the cost and quality of a candidate, unless something rules it out earlier."""
        path, is_float = file.path, found.details.name == FLOAT
        twin = next((r.name for r in self.records.values() if r.digest == found.digest), None)
        if twin is not None:
            return found.stop(SET_ASIDE, phrase("the same file as {twin}", twin))
        sizes = measure_size(path)
        found.details = replace(found.details, bytes=sizes.bytes, gzip_bytes=sizes.gzip_bytes)
        if not is_float:
            claims = file.claims or check_claims(
                path,
                self.model,
                self._few,
                file.skipped,
                self.source,
                profiled=False,
                # Only a microcontroller's own kernels decode encoded weights; they run the model
                # below.
                tried=not self.goal.place.is_micro,
            )
            found.details = replace(found.details, is_integer=claims.is_integer)
            if claims.is_useless:
                why = claims.failure or phrase("what it gives are no numbers, or infinite ones")
                return found.stop(REFUSED, why)
        placed = self.goal.place.placed(load(path))
        if placed is not None:
            found.details = replace(found.details, placed=taken_of(placed))
            if not placed.taken and not is_float:
                why = phrase(
                    "{target} takes none of it: {main_reason}", placed.target, placed.main_reason
                )
                return found.stop(SET_ASIDE, why)
        self._measure_costs(found, path, placed)
        return self._measure_score(found, path)

    def _measure_costs(self, found: _Finding, path: Path, placed: Placement | None) -> None:
        """Times the candidate in turns with the float model; takes an estimate where
        nothing runs."""
        if self.goal.place.is_micro:
            found.details = _with_memory(found.details, path)
            return
        name, target = found.details.name, self.goal.place.runs
        if self.goal.minimize == "memory" and isinstance(target, Target):
            peak = run_alone(
                self.engine, phrase("memory of {name}", name), peak_bytes, path, target
            )
            found.details = replace(found.details, peak_bytes=peak)
        if target is None:
            assert placed is not None
            found.details = replace(found.details, latency=estimated_speed(placed))
            return
        group = self._beside_float(name, path, target)
        bench, device = measure_on(
            self.engine, group, self.goal.rule(_QUICK), self.progress, memory=False
        )
        latency = speed_of(bench.results[-1], bench.results[0])
        found.details = replace(found.details, latency=latency, device=device)
        found.blocks = bench.comparisons[0].ratio.blocks if bench.comparisons else ()

    def _measure_score(self, found: _Finding, path: Path) -> None:
        latency = found.details.latency
        assert latency is not None
        seconds = self._scoring_seconds(path, latency)
        if self.goal.is_in_vain(latency) and seconds > _IN_VAIN_SECONDS:
            speed, times = speed_and_times(latency)
            told = phrase("not scored: {speed} than the float model ({times})", speed, times)
            return found.stop(SET_ASIDE, told)
        data = self.split.search
        if seconds > _MOST_SECONDS:
            data = take_some(data, max(_FEWEST_SCORED, int(len(data) * _MOST_SECONDS / seconds)))
        score = score_of(self._score(path, data, self.goal.place.scores))
        found.details = replace(found.details, accuracy=score)
        return None

    def _beside_float(self, name: str, path: Path, target: Target | Address) -> list[Contender]:
        group = [Contender(FLOAT, str(self.source), target, self.digest)]
        if path != self.source:
            group.append(Contender(name, str(path), target, digest(path)))
        return group

    def _scoring_seconds(self, path: Path, latency: Speed) -> float:
        """The time for scoring the candidate and the float model."""
        cpu = self.goal.place.cpu
        if cpu is None:
            group = self._beside_float("candidate", path, self.goal.place.scores)
            bench = measure_on(self.engine, group, _GLANCE, memory=False).bench
            latency = speed_of(bench.results[-1], bench.results[0])
        threads = 1 if cpu is None else cpu.threads
        cores = usable_cores() if self.engine is None else self.engine.width
        return _seconds_of_both(latency) * threads * len(self.split.search) / cores

    def _proving_target(self, record: TriedModel) -> Target:
        """Where the proof is scored: on the target, unless that takes too long."""
        place = self.goal.place
        both = _seconds_of_both(record.latency) if record.latency else 0.0
        is_long = both * len(self.split.held_out) > _MOST_SECONDS
        return place.scores if is_long and place.cpu is None else place.proves

    def _score(self, path: Path, data: Data, on: Target) -> Evaluation:
        return self.runner.score(
            path, data, self.goal.metric, on, against=self.source, progress=self.progress
        )


def build(recipe: str, given: tuple[Pieces], content: Content) -> Built:
    """Runs on a worker: applies a recipe and examines the result. Several workers observe the data,
    where it comes in several pieces."""
    data, model = join_pieces(given[0]), load_content(content)
    context = replace(context_of(data.few, spread=data.spread), learn=lazy_rounding())
    change = recipes.apply(model, recipes.parse(recipe), context)
    check(change.model)
    made = np.frombuffer(to_bytes(change.model), np.uint8)
    claims = look_at(made, model, data.few, change.skipped)
    return Built(made, change.skipped, claims)


def _with_memory(details: Tried, path: Path) -> Tried:
    """Adds the memory that a model takes on a microcontroller, where no time is taken."""
    model = load(path)
    ram, flash = add_up_arena(model), add_up_flash(model, path.stat().st_size)
    untimed = Speed("micro", "", *(None,) * 5, verdict="")
    return replace(details, ram_bytes=ram.needed, flash_bytes=flash.total, latency=untimed)


def _seconds_of_both(latency: Speed) -> float:
    """The time of the candidate and the float model for one sample."""
    return ((latency.p50_us or 0.0) + (latency.float_us or 0.0)) / 1e6


def _group(skipped: Sequence[Skip]) -> tuple[Skipped, ...]:
    """Groups what was skipped by kind and reason: a name for every op would fill the records."""
    counts = Counter((skip.kind, skip.why) for skip in skipped)
    return tuple(Skipped(f"{n} {kind}".strip(), why) for (kind, why), n in counts.items())
