"""The walk through the decision tree: the request, the trials, and the progress."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from litesmith.accuracy.chance import at_chance
from litesmith.accuracy.metrics import METRICS, choose_metric, metric_named
from litesmith.data.sample_splits import independent, items
from litesmith.data.samples import Data
from litesmith.errors import BadInput
from litesmith.evidence.folder import Folder
from litesmith.evidence.tune_record import (
    FITS,
    FLOAT,
    MISSES,
    NEAR,
    REFUSED,
    SET_ASIDE,
    TUNE_KINDS,
    PathStep,
    TuneRequest,
    TuneSummary,
)
from litesmith.installing import install_command
from litesmith.micro.arrange import Arrange
from litesmith.micro.plan_file import OVERLAPS
from litesmith.passes.core.recipe import text_of
from litesmith.phrases import phrase
from litesmith.precision.fastest_forms import FastestForms
from litesmith.progress import Note, Status
from litesmith.search.trial.budget import MICRO, MINIMIZE, Budget, Goal, Limits
from litesmith.search.trial.data_split import least_samples, split
from litesmith.search.trial.target_place import Place, refuse_place
from litesmith.search.trial.tried_model import TriedModel, rank
from litesmith.search.tuning.decision_tree import BRANCHES, Branch, foresee
from litesmith.search.tuning.micro_tree import MICRO_BRANCHES
from litesmith.search.tuning.mixed_precision import (
    find_fastest_forms,
    mixed_candidates,
    recipe_by_blocks,
)
from litesmith.search.tuning.replay import DataOpening
from litesmith.search.tuning.search_state import (
    Candidate,
    FromTrials,
    PlaceNeeds,
    State,
    float_candidate,
)
from litesmith.search.tuning.tune_trials import TuneTrials
from litesmith.tflite.file import digest, load
from litesmith.timing.cluster_timing import machine_of
from litesmith.timing.host import host
from litesmith.timing.latency import Rule
from litesmith.training.recipe_context import has_torch
from litesmith.training.settings import Look, Training
from litesmith.units import total_text
from litesmith.workers.engine import Engine, Worker

# The least number of held-out samples for the verdict "likely".
_LEAST_LIKELY = 30

# Training on fewer samples than this teaches a model nothing that generalizes.
LEAST_TO_TRAIN = 200

_FRAME_SECONDS = 0.5

_TOO_LATE = phrase("the time is over")


@dataclass(frozen=True, eq=False)
class TuneTask:
    """The request of a search.

    model        the file; it is never changed
    data         samples for choosing and proving, split here; also for calibration, unless
                 `calibration` is given
    targets      where the result is to run; the first decides
    minutes      the time limit; None for as long as it takes
    runs         the number of timed runs per candidate; None times until the result is steady
    training     how to train where necessary; None never trains
    trusted      True to use data even if it looks wrong
    command      what the user typed, for the records
    opened       how to open the data again; None where that is impossible
    engine       where the work is done; None means this machine
    metric       the metric that may drop; "auto" chooses one that suits the labels
    overlap      the kernels of a microcontroller whose habits a memory plan may rely on
    """

    model: Path
    data: Data
    out: Path
    budget: Budget
    minimize: str = "latency"
    limits: Limits = field(default_factory=Limits)
    targets: tuple[Place, ...] = (Place.parse("cpu:1"),)
    calibration: Data | None = None
    minutes: float | None = None
    training: Training | None = None
    resume: bool = False
    trusted: bool = False
    command: str = ""
    opened: DataOpening | None = None
    engine: Engine | None = None
    runs: int | None = None
    metric: str = "auto"
    overlap: str = "none"

    def __post_init__(self) -> None:
        Rule(runs=self.runs)  # raises where nothing can be timed so
        if self.minimize not in (*MINIMIZE, *MICRO):
            known = ", ".join((*MINIMIZE, *MICRO))
            raise BadInput("minimize {minimize}: there are {minimize2}", self.minimize, known)
        self._refuse_chip()
        if self.minutes is not None and not 0 < self.minutes < float("inf"):
            raise BadInput("minutes={minutes}: a number above 0 is needed", self.minutes)
        for place in self.targets:
            limits_time = self.limits.max_latency_us is not None
            is_first = place == self.targets[0]
            refuse_place(
                place, self.minimize if is_first else "size", limits_time=is_first and limits_time
            )

    def _refuse_chip(self) -> None:
        """Raises where the memory of a microcontroller is limited but the target is
        something else."""
        limits = self.limits.ceilings.keys() & set(MICRO)
        if self.overlap not in OVERLAPS:
            raise BadInput("overlap {what!r}: there is {known}", self.overlap, ", ".join(OVERLAPS))
        asked = limits or self.minimize in MICRO or self.overlap != OVERLAPS[0]
        if asked and not self.targets[0].is_micro:
            raise BadInput(
                "tune --on {place}: RAM and flash are those of a microcontroller; use --on micro",
                self.targets[0],
            )
        if self.targets[0].is_micro and len(self.targets) > 1:
            raise BadInput("tune --on micro: it is a target of its own; leave out the others")


class TuneView(NamedTuple):
    """The progress of a search, for the progress callback.

    doing      the current action
    best       the best model so far; None where nothing fits yet
    left       estimated seconds left; None where unknown
    look       the progress of a training
    workers    the state of the engine's workers
    status     the progress on one candidate
    """

    doing: str
    records: tuple[TriedModel, ...]
    best: TriedModel | None
    left: float | None = None
    look: Look | None = None
    workers: tuple[Worker, ...] = ()
    status: Status | None = None


Tell = Callable[[TuneView], None]


def silent(_: TuneView) -> None:
    """Shows nothing."""


@dataclass
class Search:
    """One walk through the tree; every finding is in its folder at once."""

    request: TuneTask
    tell: Tell = silent

    def __post_init__(self) -> None:
        self.began = monotonic()
        self.environment = host().facts()
        self.model = load(self.request.model)
        self.folder = Folder(self.request.out)
        self.split = split(self.request.data, self.request.calibration)
        metric = self._metric()
        self.path: list[PathStep] = []
        self.untried: list[str] = []  # branches that there was no time for
        self.trials: TuneTrials
        self._goal = Goal(
            self.request.minimize,
            self.request.budget,
            self.request.limits,
            self.request.targets[0],
            metric,
            self._training(),
            self.request.runs,
        )
        self._doing, self._seconds_left = "", None
        self._drawn = 0.0
        self._training_began: float | None = None
        self._refuse_few(1.0)  # at the least, before a folder is made
        machine_of(self.request.engine, self.request.targets[0].runs)  # raises without a device

    @contextmanager
    def hold(self) -> Generator[None]:
        """Locks the folder; raises where it holds other records, or none to resume."""
        if self.request.resume and not self.folder.is_used:
            raise BadInput(
                "{path}: holds no search to go on with; leave out --resume", self.folder.path
            )
        with self.folder.hold():
            self._refuse_folder()
            self.trials = TuneTrials(
                self.folder,
                self.request.model,
                self.model,
                self.split,
                self._goal,
                self._look,
                self.request.engine,
                progress=self._follow,
            )
            with self._watching():
                yield

    @contextmanager
    def _watching(self) -> Generator[None]:
        """Reports worker status to the progress callback."""
        engine = self.request.engine
        if engine is None or self.tell is silent:
            yield
            return
        engine.watch(self._show_workers)
        try:
            yield
        finally:
            engine.watch(None)

    def _show_workers(self, workers: tuple[Worker, ...]) -> None:
        records = tuple(self.trials.records.values())
        self.tell(TuneView(self._doing, records, self.best, self._seconds_left, workers=workers))

    def _follow(self, event: Status | Note) -> None:
        """Shows what begins at once, and its progress twice a second: drawing takes time from the
        work."""
        now = monotonic()
        if isinstance(event, Status) and (not event.done or now - self._drawn >= _FRAME_SECONDS):
            self._drawn = now
            records = tuple(self.trials.records.values())
            left = self._seconds_left
            self.tell(TuneView(self._doing, records, self.best, left, status=event))

    def walk(self, on_step: Callable[[], None]) -> None:
        """Tries the candidates of the tree; calls `on_step` after each new finding."""
        self.show(phrase("the model as it is"))
        first = self.trials.try_candidate(float_candidate())
        if first.status == REFUSED:
            raise BadInput(first.trial.reason)
        self._refuse_few(first.value or 0.0)
        state = self._state()
        rows = MICRO_BRANCHES if self._goal.place.is_micro else BRANCHES
        for number, branch in enumerate(rows):
            self.trials.foresee(foresee(rows[number:], state))
            self._answer(branch, state, len(rows) - number, on_step)
        self.trials.close()
        self.show("")

    @property
    def seconds(self) -> float:
        """The running time of the search."""
        return monotonic() - self.began

    @property
    def is_new_request(self) -> bool:
        """True where the folder holds no result, or that of another request."""
        return self._known_request != self.wanted

    @property
    def has_news(self) -> bool:
        """True where more is known than the folder holds."""
        return self.is_new_request or self.trials.fresh > 0

    @property
    def wanted(self) -> TuneRequest:
        """The request as the summary stores it."""
        request = self.request
        return TuneRequest(
            minimize=request.minimize,
            budget=request.budget.text,
            limits=request.limits.texts,
            targets=tuple(str(target) for target in request.targets),
            data=tuple(part.digest for part in self.split),
            ceilings=request.limits.ceilings,
        )

    @property
    def is_over(self) -> bool:
        minutes = self.request.minutes
        return minutes is not None and monotonic() - self.began > 60 * minutes

    @property
    def best(self) -> TriedModel | None:
        """The model to ship by what is known so far; never the original."""
        order = rank(self.trials.records.values(), self.request.minimize)
        left = (r for r in order if r.name == FLOAT or not self.trials.is_disproven(r))
        first = next(left, None)
        return None if first is None or first.name == FLOAT else first

    # The walk.

    def _state(self) -> State:
        def mixtures(state: State) -> Iterator[Candidate]:
            return mixed_candidates(self.trials, state)

        def blocks(base: str) -> str:
            return recipe_by_blocks(self.trials, base)

        def fastest(base: str) -> FastestForms | None:
            return find_fastest_forms(self.trials, base)

        place = self._goal.place
        return State(
            self.model,
            self.request.minimize,
            self._why_fixed(),
            self.request.limits,
            PlaceNeeds(
                place.is_micro or place.asks_for_integers(self.model),
                self._is_wide_slow(),
                self._arrange(),
                str(place.cpu or ""),
            ),
            FromTrials(mixtures, blocks, fastest),
            self.trials.records,
        )

    def _arrange(self) -> str:
        """The step that arranges the memory of a microcontroller: as compactly as necessary, or as
        possible where memory is minimized."""
        if not self._goal.place.is_micro:
            return ""
        least = 1 if self.request.minimize == "ram" else 0
        ram = self.request.limits.max_ram or least
        overlap = self.request.overlap
        return text_of((Arrange(ram, overlap if overlap != OVERLAPS[0] else None),))

    def _is_wide_slow(self) -> bool:
        place = self._goal.place
        is_stock = place.cpu is not None and not place.has_own_kernels
        return is_stock and self.request.minimize == "latency"

    def _answer(self, branch: Branch, state: State, left: int, on_step: Callable[[], None]) -> None:
        is_late = self.is_over and not self.trials.has_some_of(branch.name)
        why_not = _TOO_LATE if is_late else branch.why_not(state)
        names: list[str] = []
        for plain in branch.candidates(state) if not why_not else ():
            candidate = state.fit(plain)
            if self.is_over and not self.trials.knows(candidate):
                why_not = "" if names else _TOO_LATE
                self.untried += [branch.name] if names else []
                break
            self.show(f"{branch.name}: {candidate.name}", left)
            names.append(self.trials.try_candidate(candidate).name)
            on_step()
        found = [self.trials.records[name] for name in names]
        if why_not == _TOO_LATE:
            self.untried.append(branch.name)
        answer = phrase("not asked: {why_not}", why_not) if why_not else _describe(found)
        self.path.append(PathStep(branch.name, branch.question, answer, tuple(names)))
        on_step()

    def show(self, doing: str, branches_left: int = 0) -> None:
        """Reports the current action to the progress callback."""
        self._doing = doing
        self._seconds_left = self._left(branches_left)
        records = tuple(self.trials.records.values())
        self.tell(TuneView(doing, records, self.best, self._seconds_left))

    def _look(self, look: Look) -> None:
        """Reports the progress of a training; each of its steps is assumed to take as long as those
        before."""
        records = tuple(self.trials.records.values())
        if look.step <= 1 or self._training_began is None:
            self._training_began = monotonic()
        took = monotonic() - self._training_began
        left = took / look.step * (look.steps - look.step) if look.step > 1 else None
        self.tell(TuneView(self._doing, records, self.best, left, look))

    def _left(self, branches: int) -> float | None:
        """Estimates the time left: the remaining branches take as long as the trials so far."""
        took = [r.details.seconds for r in self.trials.records.values() if r.name != FLOAT]
        if not took or not branches:
            return None
        guess = branches * sum(took) / len(took)
        minutes = self.request.minutes
        if minutes is None:
            return guess
        return min(guess, max(60 * minutes - (monotonic() - self.began), 0.0))

    # What is refused before long work.

    def _metric(self) -> str:
        """The metric of the budget; raises BadInput where the data cannot measure it."""
        budget, data = self.request.budget, self.request.data
        first = next(iter(data), None)
        if first is None:
            raise BadInput("data {source}: there is no sample", data.source)
        if budget.max_drop is None:
            choose_metric(self.model, data, first, budget.metric, has_reference=True)
            return budget.metric
        if first.label is None and self.request.metric in ("auto", *METRICS):
            raise BadInput(
                "data {source}: has no labels, so no drop can be measured; use "
                "--min-agreement 98%, or --min-snr 20dB where the outputs are not classes",
                data.source,
            )
        asked = self.request.metric
        name, _ = choose_metric(self.model, data, first, asked, has_reference=False)
        metric = metric_named(name)
        budget.max_drop.allowed(1.0, title=metric.title, unit=metric.unit)  # says what does not fit
        if name == "top1" and not self.request.trusted:
            told = at_chance(self.model, self.split.search)
            if told:
                raise BadInput("{told}; or go on anyway with --trust-data", told)
        return name

    def _refuse_few(self, reference: float) -> None:
        """Raises where too few samples are held out for a float model with this score. A metric
        that is no mean over right and wrong items, such as average precision, may be likely with
        fewer."""
        metric = metric_named(self._goal.metric)
        needed = self.request.budget.needed_samples(reference, metric.unit)
        if not metric.counts_items:
            needed = min(needed, _LEAST_LIKELY)
        have = independent(self.split.held_out)
        if have < needed:
            least = least_samples(needed, calibrates=self.request.calibration is None)
            held_out = items(self.split.held_out)
            copies = (
                phrase(" ({count} with copies, which prove nothing more)", total_text(held_out))
                if have < held_out
                else ""
            )
            raise BadInput(
                "data {source}: {count} samples{copies} are left to prove the result, and "
                "{what} needs {count2}; give {count3} independent samples in all, or allow "
                "a larger drop",
                self.request.data.source,
                total_text(have),
                copies,
                self.request.budget.text,
                total_text(needed),
                total_text(least),
            )

    def _refuse_folder(self) -> None:
        known = self.folder.summary(TuneSummary)
        self._known_request = known and known.request
        parents = {trial.parent_digest for trial in self.folder.trials(TUNE_KINDS)}
        if known is not None:
            parents.add(known.model_digest)
        if parents - {digest(self.request.model)}:
            other = known.model if known else ""
            raise BadInput(
                "{path}: holds the search of another model, {other}; choose another -o",
                self.folder.path,
                other,
            )

    def _why_fixed(self) -> str:
        """Why nothing is trained; "" where training is possible."""
        if self.request.training is None:
            return phrase("nothing is to be trained")
        if not has_torch():
            return phrase("torch is not installed; {install}", install_command("train"))
        if items(self.split.calibration) < LEAST_TO_TRAIN:
            return phrase(
                "training takes {least_to_train} samples to calibrate on; give --calibrate",
                LEAST_TO_TRAIN,
            )
        return ""

    def _training(self) -> Training | None:
        asked = self.request.training
        if asked is None or self._why_fixed():
            return None
        if self.request.minutes is None or asked.minutes is not None:
            return asked
        return replace(asked, minutes=self.request.minutes / 2)


def _describe(found: list[TriedModel]) -> str:
    """The outcome of a branch, described by its best candidate."""
    if not found:
        return phrase("nothing to try")
    order = {FITS: 0, NEAR: 1, MISSES: 2, SET_ASIDE: 3, REFUSED: 4}
    best = min(found, key=lambda r: order.get(r.status, len(order)))
    no = phrase("no")
    words = {FITS: phrase("yes"), NEAR: phrase("nearly"), REFUSED: phrase("not possible")}
    told = words.get(best.status, no if best.status in order else "")
    return phrase("{word}: {name}, {reason}", told, best.name, best.trial.reason)
