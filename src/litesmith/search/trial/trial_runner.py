"""Makes a candidate and measures it: one trial, recorded, and never made twice."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from time import perf_counter
from typing import NamedTuple, cast

from litesmith._version import VERSION
from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.anatomy.footprint import gzip_bytes
from litesmith.calibration.claims import check_claims
from litesmith.calibration.context import CALIBRATION_SAMPLES, context_of
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data
from litesmith.errors import BadInput, CannotApply, LitesmithError
from litesmith.evidence import Measurement, Trial
from litesmith.ir.types import Model
from litesmith.passes.core import recipe as recipes
from litesmith.passes.core.step import Context, Skip
from litesmith.phrases import phrase
from litesmith.run.core.placement import Placement
from litesmith.run.core.target import Target, usable_cores
from litesmith.run.devices.address import Address
from litesmith.run.litert.capi import installed_version
from litesmith.search.trial.candidate import Candidate
from litesmith.search.trial.data_split import Split
from litesmith.search.trial.folder import Folder
from litesmith.search.trial.goal import Asked
from litesmith.search.trial.remote_build import Checked, Making
from litesmith.search.trial.target_place import estimated_facts, placed_facts
from litesmith.search.trial.trial_facts import Json, accuracy_facts, latency_facts
from litesmith.search.trial.trial_record import (
    CANDIDATE,
    FLOAT,
    REFUSED,
    SET_ASIDE,
    TIMED,
    VERIFIED,
    Record,
)
from litesmith.tflite.file import digest, load, pieces, write_whole
from litesmith.timing.cluster_timing import machine_of, measure_on, peak_of, run_alone
from litesmith.timing.latency import Rule
from litesmith.timing.turns import Contender
from litesmith.training.recipe_context import Record as TrainingRecord
from litesmith.training.recipe_context import training_context, trainings
from litesmith.training.settings import Watch
from litesmith.units import ratio_text
from litesmith.workers.engine import Engine, Lost

# How long the two of a pair take turns: enough to tell candidates apart, not yet to prove it. How
# busy the machine is, is told of the proof.
_QUICK = Rule(width=0.04, least_seconds=1.0, most_seconds=6.0, look_seconds=0)

# Enough to know whether scoring takes seconds or minutes.
_GLANCE = Rule(runs=2, warmup_runs=1, look_seconds=0)
_TIMES_OF_BOTH = ("p50_us", "float_us")

# Scoring one model may take so long; a slower one is scored on fewer samples, but not on fewer
# than this. Where time counts, one that is slower than the float model is scored only if quickly.
_MOST_SECONDS, _FEWEST_SCORED, _IN_VAIN_SECONDS = 90.0, 64, 20.0


@dataclass
class Workshop:
    """Makes candidates of one model and measures them on one machine.

    source   the file that came; `model` is what it holds
    watch    is told how far a training has come
    engine   who makes, times and scores; None is this machine
    records  the trials of this search, by name
    fresh    how many were not on record
    """

    folder: Folder
    source: Path
    model: Model
    split: Split
    asked: Asked
    watch: Watch | None = None
    engine: Engine | None = None
    records: dict[str, Record] = field(default_factory=dict[str, Record])
    fresh: int = 0

    def __post_init__(self) -> None:
        self.digest = digest(self.source)
        self._machine = machine_of(self.engine, self.asked.place.runs)
        self._making: Making | None = None
        if self.engine is not None:
            data = self.split.calibration
            self._making = Making(self.engine, self.source, self.digest, data)
        self._known = {record.key: record for record in map(Record, self.folder.trials())}

    @property
    def place(self) -> tuple[str, ...]:
        """What measurements depend on beside the model and the data."""
        return VERSION, installed_version(), self._machine

    @property
    def keys(self) -> list[str]:
        """The records of this search: its candidates, and what was made of them."""
        own = {record.digest for record in self.records.values()}
        parts = [record.key for record in self.records.values()]
        held = self.split.held_out.digest
        return parts + [
            record.key
            for record in self._known.values()
            if record.kind != CANDIDATE and record.digest in own and record.held_out in ("", held)
        ]

    def is_disproven(self, record: Record) -> bool:
        """True where the held-out samples are known to speak against it."""
        known = self._known.get(self._key(record.trial.recipe, VERIFIED))
        return known is not None and self.asked.is_missed(known.evaluation)

    def tried(self, candidate: Candidate) -> Record:
        """The trial of a candidate, made now unless it is on record."""
        key = self._key(candidate.recipe, CANDIDATE)
        known = self._known.get(key)
        if known is None or self._is_short_of(known):
            trial = self._trial(candidate, key)
            self.fresh += 1
        else:
            details, reason = self.asked.judged(dict(known.trial.details), known.trial.reason)
            details |= _names(candidate)
            trial = replace(known.trial, details=details, reason=reason)
        return self._recorded(trial, known)

    def foresee(self, candidates: Iterable[Candidate]) -> None:
        """Has workers make what may be tried next, as many as there are workers."""
        if self._making is not None and self.engine is not None:
            unknown = [c for c in candidates if not self.knows(c)]
            self._making.begin((c.recipe, c.name) for c in unknown[: self.engine.width])

    def close(self) -> None:
        """Ends what was begun and is not wanted any more."""
        if self._making is not None:
            self._making.stop()

    def knows(self, candidate: Candidate) -> bool:
        """True where the trial of a candidate is on record."""
        known = self._known.get(self._key(candidate.recipe, CANDIDATE))
        return known is not None and not self._is_short_of(known)

    def has_some_of(self, branch: str) -> bool:
        """True where something of this branch is on record."""
        return any(r.branch == branch and r.kind == CANDIDATE for r in self._known.values())

    def verified(self, record: Record) -> Record:
        """A trial's model on the held-out samples, which nothing was chosen by."""
        key = self._key(record.trial.recipe, VERIFIED)
        known = self._known.get(key)
        held = self.split.held_out.digest
        details: Json = {**record.trial.details, "kind": VERIFIED, "key": key, "held_out": held}
        before = {r.digest for r in self._known.values() if r.held_out == held}
        details["look"] = len(before - {record.digest}) + 1
        if known is None:
            started = perf_counter()
            on = self._proving(record)
            found = self._scored(self.file(record), self.split.held_out, on)
            details |= {"accuracy": accuracy_facts(found), "scored_on": str(on)}
            details["seconds"] = perf_counter() - started
            self.fresh += 1
        else:
            details |= {"accuracy": known.accuracy, "seconds": known.seconds, "look": known.look}
            details["scored_on"] = known.scored_on
        details, reason = self.asked.judged(details, "")
        told = phrase("on held-out samples {reason}", reason)
        trial = replace(record.trial, measurements=(), skipped=(), reason=told, details=details)
        return self._recorded(trial, known)

    def file(self, record: Record) -> Path:
        """The file of a trial; made anew where it is gone."""
        if record.name == FLOAT:
            return self.source
        found = self.folder.found(record.name, record.digest)
        if found is not None:
            return found
        again = self._made(record.trial.recipe, record.name).path
        if digest(again) != record.digest:
            raise CannotApply(
                "{name}: made again, it is not the file that was measured; choose another "
                "-o, and all is measured anew",
                record.name,
            )
        return again

    def once(self, record: Record, what: tuple[object, ...], make: Callable[[], Json]) -> Json:
        """What is made of a model, from the records where it is on them; `what` tells it apart."""
        key = sha256(repr((self.place, record.digest, what)).encode()).hexdigest()
        known = self._known.get(key)
        if known is None:
            self.fresh += 1
            details: Json = {
                "name": record.name,
                "kind": TIMED,
                "branch": record.branch,
                "key": key,
            }
            trial = replace(
                record.trial,
                measurements=(),
                skipped=(),
                reason=phrase("timed in turns with the float model, on every target"),
                details={**details, **make()},
            )
            known = self._recorded(trial, None)
        return dict(known.trial.details)

    def _recorded(self, trial: Trial, known: Record | None) -> Record:
        record = Record(trial)
        if known is None or known.trial != trial:
            self.folder.add(trial)
        self._known[record.key] = record
        if record.kind == CANDIDATE:
            self.records[record.name] = record
        return record

    def _is_short_of(self, known: Record) -> bool:
        """True where a trial on record lacks what is asked for now, or may go better now."""
        if known.trial.details.get("is_passing"):
            return True
        if known.status == SET_ASIDE and known.latency is not None:
            return not self.asked.is_in_vain(known.latency)
        lacks_peak = known.latency is not None and known.cost("memory") is None
        return self.asked.minimize == "memory" and lacks_peak

    def _key(self, recipe: str, kind: str) -> str:
        """Equal for what would end in the same measurements."""
        asked = self.asked
        data = self.split.search if kind == CANDIDATE else self.split.held_out
        trains = asked.training if trainings(recipes.parse(recipe)) else None
        parts = (
            (self.place, self.digest, recipe, kind),
            (self.split.calibration.digest, data.digest, asked.metric, str(asked.place)),
            trains,
        )
        return sha256(repr(parts).encode()).hexdigest()

    # Making.

    def _trial(self, candidate: Candidate, key: str) -> Trial:
        started = perf_counter()
        details: Json = {**_names(candidate), "kind": CANDIDATE, "key": key}
        skipped: tuple[Skip, ...] = ()
        blocks: tuple[float, ...] = ()
        made = ""
        try:
            file = self._file(candidate)
            made, skipped = digest(file.path), file.skipped
            reason, blocks = self._measured(candidate, file, details)
        except Lost:  # which says nothing about the candidate
            raise
        except LitesmithError as error:
            details["status"], reason = REFUSED, str(error)
            details["is_passing"] = isinstance(error, BadInput)  # a full disk, broken torch
        details, reason = self.asked.judged(details, reason)
        details["seconds"] = perf_counter() - started
        place = (str(self.asked.place), made, self._machine)
        ratios = (Measurement("latency_ratio", "ratio", blocks, *place),) if blocks else ()
        return Trial(
            candidate.recipe, self.digest, made, ratios, _grouped(skipped), reason, details
        )

    def _file(self, candidate: Candidate) -> "_File":
        if candidate.name == FLOAT:
            return _File(self.source)
        return self._made(candidate.recipe, candidate.name)

    def _made(self, text: str, name: str) -> "_File":
        if self._making is not None and self._making.can(text):
            built = self._making.built(text, name)
            place = self.folder.work(name)
            write_whole(place, [built.content.data])
            return _File(place, built.skipped, built.checked)
        recipe = recipes.parse(text)
        change = recipes.apply(self.model, recipe, self._context(recipe, name))
        return _File(self.folder.keep(change.model, name), change.skipped)

    def _checked(self, file: "_File") -> Checked:
        if file.checked is not None:
            return file.checked
        few = take_some(self.split.calibration, CALIBRATION_SAMPLES)
        path, skipped = file.path, file.skipped
        return Checked.of(check_claims(path, self.model, few, skipped, self.source, profiled=False))

    def _context(self, recipe: recipes.Recipe, name: str) -> Context:
        """What steps may use: some of the calibration samples, and all of them to train on."""
        data = self.split.calibration
        if not trainings(recipe) or self.asked.training is None:
            return context_of(take_some(data, CALIBRATION_SAMPLES))
        place = self.folder.training(name, self._key(recipes.text_of(recipe), CANDIDATE))
        record = TrainingRecord(place, resume=True)
        return training_context(
            self.model, data, recipe, self.asked.training, record=record, watch=self.watch
        )

    # Measuring.

    def _measured(
        self, candidate: Candidate, file: "_File", details: Json
    ) -> tuple[str, tuple[float, ...]]:
        """Fills in the details; says what stopped it, and gives the ratios of times by block."""
        path = file.path
        made, is_float = digest(path), candidate.name == FLOAT
        twin = next((r.name for r in self.records.values() if r.digest == made), None)
        if twin is not None:
            details["status"] = SET_ASIDE
            return phrase("the same file as {twin}", twin), ()
        details["bytes"], details["gzip_bytes"] = path.stat().st_size, gzip_bytes(pieces(path))
        if not is_float:
            claims = self._checked(file)
            details["is_integer"] = claims.is_integer
            if claims.is_useless:
                details["status"] = REFUSED
                return claims.failure or phrase(
                    "what it gives are no numbers, or infinite ones"
                ), ()
        placed = self.asked.place.placed(load(path))
        if placed is not None:
            details["placed"] = placed_facts(placed)
            if not placed.taken and not is_float:
                details["status"] = SET_ASIDE
                return phrase(
                    "{target} takes none of it: {main_reason}", placed.target, placed.main_reason
                ), ()
        if self.asked.minimize == "memory" and isinstance(self.asked.place.runs, Target):
            where = self.asked.place.runs
            words = phrase("memory of {name}", candidate.name)
            details["peak_bytes"] = run_alone(self.engine, words, peak_of, path, where)
        latency, blocks, device = self._timed(candidate.name, path, placed)
        details["latency"] = latency
        if device:
            details["device"] = device
        seconds = self._scoring_seconds(path, latency)
        if self.asked.is_in_vain(latency) and seconds > _IN_VAIN_SECONDS:
            details["status"] = SET_ASIDE
            ratio = ratio_text(cast(float, latency["ratio"]))
            return phrase("not scored: it takes {ratio} the time of the float model", ratio), blocks
        data = self.split.search
        if seconds > _MOST_SECONDS:
            data = take_some(data, max(_FEWEST_SCORED, int(len(data) * _MOST_SECONDS / seconds)))
        details["accuracy"] = accuracy_facts(self._scored(path, data, self.asked.place.scores))
        return "", blocks

    def _timed(
        self, name: str, path: Path, placed: Placement | None
    ) -> tuple[Json, tuple[float, ...], str]:
        """Its time beside the float model's, in turns, with the name of the device; an estimate
        where nothing runs there."""
        target = self.asked.place.runs
        if target is None:
            assert placed is not None
            return estimated_facts(placed), (), ""
        group = self._beside_float(name, path, target)
        bench, device = measure_on(self.engine, group, self.asked.rule(_QUICK), memory=False)
        found = bench.comparisons[0] if bench.comparisons else None
        facts = latency_facts(bench.results[-1], bench.results[0])
        return facts, found.ratio.blocks if found else (), device

    def _beside_float(self, name: str, path: Path, target: Target | Address) -> list[Contender]:
        group = [Contender(FLOAT, str(self.source), target, self.digest)]
        if path != self.source:
            group.append(Contender(name, str(path), target, digest(path)))
        return group

    def _scoring_seconds(self, path: Path, latency: Json) -> float:
        """What scoring takes, with the float model beside it."""
        cpu = self.asked.place.cpu
        if cpu is None:
            group = self._beside_float("candidate", path, self.asked.place.scores)
            bench = measure_on(self.engine, group, _GLANCE, memory=False).bench
            latency = latency_facts(bench.results[-1], bench.results[0])
        one = (cast(float, latency["p50_us"]) + cast(float, latency["float_us"])) / 1e6
        threads = 1 if cpu is None else cpu.threads
        cores = usable_cores() if self.engine is None else self.engine.width
        return one * threads * len(self.split.search) / cores

    def _proving(self, record: Record) -> Target:
        """Where the proof is scored: where it is to run, unless that takes too long."""
        place = self.asked.place
        times = [cast("float | None", (record.latency or {}).get(key)) for key in _TIMES_OF_BOTH]
        seconds = sum(us or 0.0 for us in times) / 1e6 * len(self.split.held_out)
        return place.scores if seconds > _MOST_SECONDS and place.cpu is None else place.proves

    def _scored(self, path: Path, data: Data, on: Target) -> Evaluation:
        return evaluate_all(
            [path],
            data,
            against=self.source,
            metric=self.asked.metric,
            on=on,
            engine=self.engine,
        )[0]


class _File(NamedTuple):
    """A candidate's file, what was left alone in it, and what is known of it."""

    path: Path
    skipped: tuple[Skip, ...] = ()
    checked: Checked | None = None


def _grouped(skipped: Sequence[Skip]) -> tuple[tuple[str, str], ...]:
    """What was left alone, by kind and reason: names of every op would fill the records."""
    counts = Counter((skip.where.split()[0] if skip.where else "", skip.why) for skip in skipped)
    return tuple((f"{count} {kind}".strip(), why) for (kind, why), count in counts.items())


def _names(candidate: Candidate) -> Json:
    return {"name": candidate.name, "branch": candidate.branch, "why": candidate.why}
