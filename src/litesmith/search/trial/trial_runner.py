"""Trials on record, so that nothing is measured twice; and the progress of the work."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Generic, Protocol, TypeVar

from litesmith._version import VERSION
from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.data.samples import Data
from litesmith.evidence.folder import Folder
from litesmith.evidence.log import Kinds
from litesmith.evidence.measurement import Trial
from litesmith.progress import Progress, silent
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.run.litert.capi import installed_version
from litesmith.timing.cluster_timing import machine_of
from litesmith.workers.engine import Engine


class Keyed(Protocol):
    """The details of a trial; trials that would end in the same measurements have equal keys."""

    @property
    def key(self) -> str: ...


D = TypeVar("D", bound=Keyed)


class TrialRunner(Generic[D]):
    """Runs the trials of one folder on one machine, or on the workers of an engine.

    target  where models are timed; None where none is timed
    fresh   the number of trials that were not on record
    known   every trial of the folder, by key
    """

    def __init__(
        self,
        folder: Folder,
        kinds: Kinds[D],
        target: Target | Address | None,
        engine: Engine | None = None,
    ) -> None:
        self.folder, self.engine, self.fresh = folder, engine, 0
        self.machine = machine_of(engine, target)
        self.known = {trial.details.key: trial for trial in folder.trials(kinds)}

    @property
    def place(self) -> tuple[str, ...]:
        """What measurements depend on besides the model and the data."""
        return VERSION, installed_version(), self.machine

    def key(self, *parts: object) -> str:
        """A key that is equal for equal parts."""
        return sha256(repr(parts).encode()).hexdigest()

    def keep(self, trial: Trial[D]) -> None:
        """Records a trial, unless the same trial is on record, however it is worded."""
        known = self.known.get(trial.details.key)
        if known is None or replace(known, reason=trial.reason) != trial:
            self.folder.add(trial)
        self.known[trial.details.key] = trial

    def run(self, key: str, make: Callable[[], Trial[D]], *, again: bool = False) -> Trial[D]:
        """Returns the recorded trial with this key, or makes and records one; `again` ignores the
        record."""
        known = self.known.get(key)
        if known is None or again:
            self.fresh += 1
            known = make()
            self.keep(known)
        return known

    def score(
        self,
        path: Path,
        data: Data,
        metric: str,
        on: str | Target,
        *,
        against: Path | None = None,
        progress: Progress = silent,
    ) -> Evaluation:
        """Scores a model, and pairs it with another model where one is given."""
        (found,) = evaluate_all(
            [path],
            data,
            against=against,
            metric=metric,
            on=on,
            engine=self.engine,
            progress=progress,
        )
        return found


class WorkProgress:
    """The progress of a long job, and the seconds it may still take.

    `weights` are guesses in seconds; the pace so far corrects the guesses for the rest.
    """

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self._tell, self._weights = tell, dict[str, float]()
        self._guessed, self._took, self._began, self._last = 0.0, 0.0, monotonic(), 0.0
        self._doing = self.step = ""

    def expect(self, weights: Mapping[str, float]) -> None:
        """Sets the remaining work, by name."""
        self._weights = dict(weights)

    def begin(self, what: str, words: str) -> None:
        """Starts the part of the work with this name."""
        self._doing, self.step, self._began = what, words, monotonic()
        self.show(words)

    def show(self, words: str, share: float = 0.0) -> None:
        """Reports progress to the callback, a few times a second."""
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
