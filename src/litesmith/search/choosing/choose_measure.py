"""Makes, times and scores the models to choose from; what is on record is not done again."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from itertools import count
from math import inf, isfinite
from pathlib import Path
from time import monotonic, perf_counter
from typing import NamedTuple, cast

import numpy as np

from litesmith._version import VERSION
from litesmith.accuracy.evaluate import Evaluation, evaluate_all, preparation_text
from litesmith.accuracy.metrics import metric_named
from litesmith.anatomy.footprint import gzip_bytes
from litesmith.calibration.context import CALIBRATION_SAMPLES, RandomSamples
from litesmith.calibration.observe import Spread
from litesmith.calibration.quantize_effort import carry_out, plan
from litesmith.data.model_shipping import Content, load_content, send_model
from litesmith.data.sample_shipping import Piece, portions
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data, Sample, WatchedData
from litesmith.errors import CannotRun
from litesmith.evidence import Measurement, Trial
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.passes.core.recipe import text_of
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.phrases import phrase
from litesmith.progress import Progress
from litesmith.run.core.target import Target, usable_cores
from litesmith.run.devices.address import Address
from litesmith.run.litert.capi import installed_version
from litesmith.run.trial_run import probe
from litesmith.search.choosing.candidates import Candidate
from litesmith.search.trial.folder import Folder
from litesmith.search.trial.remote_build import arrived, claims_of
from litesmith.search.trial.trial_facts import Json, accuracy_facts, known
from litesmith.tflite.file import digest, load, pieces, save, write_whole
from litesmith.tflite.write import to_bytes
from litesmith.timing.cluster_timing import machine_of, measure_on
from litesmith.timing.latency import Bench, Result, Rule, ratio
from litesmith.timing.turns import Contender
from litesmith.workers.engine import Engine, Held

MADE, TIMED, SCORED = "made", "timed", "scored"

_RAN: set[tuple[str, str]] = set()  # digests of files, each with the target it ran on

_INT8 = Quantize()

# Writes a file, and tells the recipe and what was chosen for the user.
Made = Callable[[Path], tuple[str, tuple[str, ...]]]

# Letters of a name that a file is called by: more may be too many for a file system.
_MOST_LETTERS = 50


class Weighing:
    """The measurements of one folder; `fresh` counts those that were not on record."""

    def __init__(
        self,
        folder: Folder,
        target: Target | Address,
        given: Collection[Path] = (),
        engine: Engine | None = None,
    ) -> None:
        """`given` are files of the user's, which stay as they are; `engine` does the work."""
        self.folder, self.target, self.fresh, self.engine = folder, target, 0, engine
        self._begun: dict[str, Held[Quantized]] = {}
        self._calibration: dict[str, Data] = {}
        self._places = {_one_case(path): "" for path in given}
        self._machine = machine_of(engine, target)
        found = (trial for trial in folder.trials() if "key" in trial.details)
        self._known = {str(trial.details["key"]): trial for trial in found}

    # Files.

    def place(self, name: str) -> Path:
        """Where a model that is made here lies: no two, and none of the user's, in one place."""
        folder = self.folder.path / "models"
        folder.mkdir(exist_ok=True)
        letters = (letter if letter.isalnum() or letter in "._-" else "-" for letter in name)
        stem = "".join(letters)[:_MOST_LETTERS]
        for number in count(1):
            path = folder / f"{stem}{f'-{number}' if number > 1 else ''}.tflite"
            if self._places.setdefault(_one_case(path), name) == name:
                return path
        raise AssertionError  # numbers do not end

    def made(self, parent: Candidate, name: str, how: tuple[object, ...], make: Made) -> Candidate:
        """A model made of another by `make`, unless the same was made before and is still there.

        One that takes its parent's name lies beside it.
        """
        place = self.place(name if name != parent.name else f"{name}-retrained")
        key = self.key(MADE, parent.digest, how)
        known = self._known.get(key)
        if known is None or not place.is_file() or digest(place) != known.model_digest:
            started = perf_counter()
            recipe, notes = make(place)
            details: Json = {"name": name, "kind": MADE, "key": key, "notes": list(notes)}
            details["seconds"] = perf_counter() - started
            known = Trial(recipe, parent.digest, digest(place), reason="made", details=details)
            self._add(known)
        return replace(
            parent,
            name=name,
            model=load(place),
            path=place,
            digest=known.model_digest,
            parent=parent.name if parent.name != name else "",
            recipe=known.recipe,
            is_taught=parent.is_taught or known.recipe == "retrain",
            published=None,  # which was of what it was made of
            notes=tuple(cast(list[str], known.details.get("notes") or ())),
        )

    def written(self, candidate: Candidate) -> Candidate:
        """A candidate of the catalogue with its file."""
        if candidate.path is not None:
            return candidate
        place = self.place(candidate.name)
        if not place.is_file() or digest(place) != candidate.digest:
            save(candidate.model, place)
        return replace(candidate, path=place)

    def quantized(
        self, parent: Candidate, name: str, calibration: Data | None, effort: str
    ) -> Candidate:
        """The int8 form of a candidate; raises where it cannot be made, or gives no numbers."""
        few = self._few(parent, calibration)

        def make(place: Path) -> tuple[str, tuple[str, ...]]:
            self.begin([(parent, calibration)], effort)
            begun = self._begun.pop(parent.digest, None)
            if begun is None or self.engine is None:
                done = quantize(parent.model, few, effort)
            else:
                (done,) = self.engine.gathered([begun])
            write_whole(place, [done.content.data])
            return done.recipe, ()

        return self.made(parent, name, (few.digest, effort), make)

    def begin(self, parents: Iterable[tuple[Candidate, Data | None]], effort: str) -> None:
        """Has workers make the int8 forms of candidates, each with its data, all at a time."""
        for parent, calibration in parents if self.engine is not None else ():
            few = self._few(parent, calibration)
            key = self.key(MADE, parent.digest, (few.digest, effort))
            if parent.digest in self._begun or key in self._known or few.items.stored is None:
                continue
            assert self.engine is not None
            content = send_model(self.engine, cast(Path, parent.path), parent.digest)
            pieces = tuple(p.held for p in portions(self.engine, few, digests=True))
            words = phrase("making the int8 form of {name}", parent.name)
            given = (effort, (pieces,), content)
            self._begun[parent.digest] = self.engine.call(words, quantize_there, *given)

    def _few(self, parent: Candidate, calibration: Data | None) -> Data:
        if parent.digest not in self._calibration:
            data = RandomSamples(parent.model, 16) if calibration is None else calibration
            self._calibration[parent.digest] = take_some(data, CALIBRATION_SAMPLES)
        return self._calibration[parent.digest]

    # Times.

    def timed(
        self, group: Sequence[Candidate], rule: Rule, progress: Progress
    ) -> tuple[dict[str, Json], tuple[str, ...]]:
        """What all candidates take, from one interleaved run; and what made it noisy."""
        keys = {c.name: self.time_key(c, group, rule) for c in group}
        if any(key not in self._known for key in keys.values()):
            contenders = [self._contender(c) for c in group]
            bench, device = measure_on(self.engine, contenders, rule, progress)
            for candidate, result in zip(group, bench.results, strict=True):
                trial = _timed_trial(candidate, keys[candidate.name], result, bench)
                where = {"device": device} if device else {}
                self._add(replace(trial, details={**trial.details, **where}))
        found = {name: cast(Json, self._known[key].details) for name, key in keys.items()}
        warnings = [w for facts in found.values() for w in cast(list[str], facts["warnings"])]
        return found, tuple(dict.fromkeys(warnings))

    def try_out(self, candidates: Sequence[Candidate]) -> None:
        """Raises where one of the files does not run here; several are tried at a time."""
        target = self.target
        if not isinstance(target, Target):
            return
        unknown = [c for c in candidates if c.path is not None and not self._has_run(c)]
        with ThreadPoolExecutor(usable_cores()) as pool:
            list(pool.map(lambda c: _try(cast(Path, c.path), c.digest, target), unknown))

    def _has_run(self, candidate: Candidate) -> bool:
        """True where a candidate was timed here before."""
        return any(
            trial.model_digest == candidate.digest
            and trial.details.get("kind") == TIMED
            and trial.details.get("target") == str(self.target)
            for trial in self._known.values()
        )

    def knows_times(self, group: Sequence[Candidate], rule: Rule) -> bool:
        return all(self.time_key(c, group, rule) in self._known for c in group)

    def time_key(self, candidate: Candidate, group: Sequence[Candidate], rule: Rule) -> str:
        """Of a time: also of all that it took turns with."""
        everyone = sorted(c.digest for c in group)
        return self.key(TIMED, candidate.digest, (everyone, str(self.target), rule.seconds))

    def _contender(self, candidate: Candidate) -> Contender:
        return Contender(candidate.name, str(candidate.path), self.target, candidate.digest)

    # Scores.

    def scored(
        self, candidate: Candidate, data: Data, metric: str, watched: Data
    ) -> tuple[Json, tuple[float, ...]]:
        """How good a candidate is, and what it scored on each sample; `watched` is the same data,
        which tells how far it has come."""
        key = self.score_key(candidate, data, metric)
        known, evidence = self._known.get(key), self.folder.evidence(candidate.digest) or {}
        scores = cast("dict[str, list[float | None]]", evidence.get("scores") or {})
        if known is None or key not in scores:
            started = perf_counter()
            (found,) = evaluate_all(
                [cast(Path, candidate.path)],
                watched if self.engine is None else data,
                metric=metric,
                on=self.scoring_target,
                engine=self.engine,
            )
            each = [s if isfinite(s) else None for s in found.measurement.samples]
            scores = {**scores, key: each}
            self.folder.write_evidence(
                candidate.digest, {"schema": 1, "name": candidate.name, "scores": scores}
            )
            details: Json = {
                **_score_facts(found),
                "name": candidate.name,
                "kind": SCORED,
                "key": key,
                "preparation": preparation_text(data),
                "seconds": perf_counter() - started,
            }
            known = self._score_trial(candidate, found, details)
            self._add(known)
        return dict(known.details), tuple(inf if s is None else s for s in scores[key])

    def _score_trial(self, candidate: Candidate, found: Evaluation, details: Json) -> Trial:
        place = (found.target, candidate.digest, self._machine)
        value = Measurement(found.metric, found.unit, (found.value,), *place)
        kept = (value,) if isfinite(found.value) else ()  # JSON has no word for others
        return Trial("", "", candidate.digest, kept, reason="scored", details=details)

    def knows_score(self, candidate: Candidate, data: Data, metric: str) -> bool:
        return self.score_key(candidate, data, metric) in self._known

    def score_key(self, candidate: Candidate, data: Data, metric: str) -> str:
        return self.key(SCORED, candidate.digest, (data.digest, metric, str(self.scoring_target)))

    @property
    def scoring_target(self) -> str | Target:
        """Where scores come from: here, one sample at a time on each core."""
        if not isinstance(self.target, Target):
            return "cpu:1"
        return replace(self.target, threads=1) if self.target.kind == "cpu" else self.target

    # Records.

    def key(self, kind: str, model: str, what: tuple[object, ...]) -> str:
        """Equal for what would end in the same measurements."""
        place = (VERSION, installed_version(), self._machine)
        return sha256(repr((place, kind, model, what)).encode()).hexdigest()

    def _add(self, trial: Trial) -> None:
        self.folder.add(trial)
        self._known[str(trial.details["key"])] = trial
        self.fresh += 1


class Quantized(NamedTuple):
    """The int8 form of a model, and how it was made."""

    content: Content
    recipe: str


def quantize(model: Model, few: Data, effort: str, spread: Spread | None = None) -> Quantized:
    """The int8 form of a model; raises where it cannot be made, or gives no numbers."""
    todo = plan(model, _INT8, effort, has_data=True)
    done = carry_out(model, todo, few, spread=spread)
    check(done.change.model)
    made = np.frombuffer(to_bytes(done.change.model), np.uint8)
    claims = claims_of(made, model, few, done.change.skipped)
    if claims.is_useless:
        raise CannotRun(claims.failure or phrase("what it gives are no numbers"))
    return Quantized(made, text_of(done.recipe))


def quantize_there(
    effort: str, given: tuple[tuple[Held[Piece], ...]], content: Content
) -> Quantized:
    """The same on a worker."""
    data = arrived(given[0])
    return quantize(load_content(content), data.few, effort, data.spread)


def _try(path: Path, content: str, target: Target) -> None:
    """Raises where a file does not run; what this process has seen to run is believed."""
    if (content, str(target)) not in _RAN:
        probe(path, target)
        _RAN.add((content, str(target)))


def _one_case(path: Path) -> str:
    """Equal for paths that are one where a file system makes no difference of case."""
    return os.path.realpath(path).casefold()


def _score_facts(found: Evaluation) -> Json:
    better = metric_named(found.metric).better
    return {
        "accuracy": {**accuracy_facts(found), "better": better},
        "notes": list(found.notes),
    }


def _timed_trial(candidate: Candidate, key: str, own: Result, bench: Bench) -> Trial:
    path = cast(Path, candidate.path)
    row = own.row()
    ratios: dict[str, list[float | None]] = {}
    for other in bench.results:
        if other is not own:
            found = ratio(other, own)
            low, high = found.interval
            ratios[other.contender.digest] = [found.value, low, None if high == inf else high]
    numbers = ("p50_us", "p50_low_us", "p50_high_us", "p95_us", "first_us", "peak_bytes", "runs")
    details: Json = {
        "name": candidate.name,
        "kind": TIMED,
        "key": key,
        "target": own.target,
        **known({name: row[name] for name in numbers}),
        "bytes": path.stat().st_size,
        "gzip_bytes": gzip_bytes(pieces(path)),
        "ratios": ratios,  # its time / that of the model with this digest
        "note": own.note,
        "warnings": list(bench.warnings),
    }
    kept = [m for m in own.trial().measurements if m.metric != "latency"]
    return Trial(
        "", "", candidate.digest, tuple(kept), reason=phrase("timed in turns"), details=details
    )


class Course:
    """How far a long job has come, and how many seconds it may still take.

    `weights` are guesses in seconds; the pace of what is done corrects those of what is left.
    """

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self._tell, self._weights = tell, dict[str, float]()
        self._guessed, self._took, self._began, self._last = 0.0, 0.0, monotonic(), 0.0
        self._doing = ""

    def expect(self, weights: Mapping[str, float]) -> None:
        """What is still to be done, by name."""
        self._weights = dict(weights)

    def begin(self, what: str, words: str) -> None:
        """Starts what is called so among the weights."""
        self._doing, self._began = what, monotonic()
        self.show(words)

    def show(self, words: str, share: float = 0.0) -> None:
        """Tells whoever watches, a few times a second."""
        now = monotonic()
        if share and now - self._last < 0.1:
            return
        self._last = now
        own = self._weights.get(self._doing, 0.0)
        rest = sum(self._weights.values()) - share * own
        pace = self._took / self._guessed if self._guessed else 1.0
        if share > 0.02:  # the step itself tells better
            rest += (now - self._began) * (1 - share) / share / pace - (1 - share) * own
        self._tell(words, max(rest * pace, 0.0))

    def end(self) -> None:
        self._took += monotonic() - self._began
        self._guessed += self._weights.pop(self._doing, 0.0)


def count_samples(data: Data, tell: Callable[[float], None]) -> Data:
    """The same data, which tells how far each iteration has come."""

    def watch(samples: Iterable[Sample]) -> Iterator[Sample]:
        for number, sample in enumerate(samples, 1):
            tell(number / max(len(data), 1))
            yield sample

    return WatchedData(data, watch)
