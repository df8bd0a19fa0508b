"""A choice in progress: the request, the models made, timed and scored so far, and the time
left."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from litesmith._version import VERSION
from litesmith.accuracy.metrics import metric_named
from litesmith.accuracy.paired import Groups
from litesmith.anatomy.footprint import footprint
from litesmith.calibration.quantize_effort import EFFORTS
from litesmith.data.sample_splits import items, row_groups
from litesmith.data.samples import Data
from litesmith.data.sources import Given
from litesmith.errors import BadInput, CannotApply, CannotRun, LitesmithError
from litesmith.evidence.choose_record import (
    MEASURED,
    NONE,
    PUBLISHED,
    CandidateRow,
    ChooseData,
    ChooseRequest,
    ChooseSummary,
    ScoredModel,
    TimedModel,
)
from litesmith.evidence.folder import CHOOSE, Folder
from litesmith.evidence.tune_record import DONE, RUNNING
from litesmith.operating_system import usable_cores
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.phrases import phrase
from litesmith.progress import Note, Status
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Address
from litesmith.search.choosing.candidates import Listed, ModelCandidate, make_distinct
from litesmith.search.choosing.choose_trials import ChooseTrials
from litesmith.search.choosing.pick import CandidateTable, Pick, Requirements, pick
from litesmith.search.choosing.shared_data import (
    GivenData,
    JudgingData,
    LessonData,
    common_metric,
    find_judges,
    refuse_others,
)
from litesmith.search.trial.trial_runner import WorkProgress
from litesmith.timing.host import host
from litesmith.timing.latency import Rule, busy_advice
from litesmith.workers.engine import Engine, Lost, Worker

# An assumed speed of the machine, to estimate the time left.
_MACS_A_SECOND = 2e10

# The cost of quantizing, in runs of the model per sample.
_QUANTIZING_RUNS = {"quick": 2.0, "default": 8.0, "best": 40.0}
_CALIBRATED = 256

# The number of training samples to assume before the data is counted.
_LEARNED = 2000


@dataclass(frozen=True, eq=False)
class ChooseTask:
    """The request of a choice.

    source     the data; None where only time, size and memory matter
    other      separate calibration data; None sets part of `source` aside, which is then not scored
    retrains   True where every candidate first learns the data; `val` is separate data to score on
    quantized  True to add an int8 version of each float candidate, made with `effort`
    seconds    how long to time; None times until the result is steady
    trusted    True to score even a model that does no better than guessing
    command    what the user typed, for the records
    engine     where the work is done; None means this machine
    """

    given: Listed
    out: Path
    asked: Requirements = field(default_factory=Requirements)
    source: GivenData | None = None
    other: Given | None = None
    target: Target | Address = field(default_factory=Target)
    quantized: bool = False
    effort: str = "default"
    metric: str = "auto"
    seconds: float | None = None
    trusted: bool = False
    command: str = ""
    retrains: bool = False
    val: Given | None = None
    engine: Engine | None = None

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise BadInput(
                "no effort {effort!r}; there are {efforts}", self.effort, ", ".join(EFFORTS)
            )
        if self.source is None and self.other is not None:
            raise BadInput("--calibrate without --data: no accuracy is told; give --data too")
        if self.retrains and self.source is None:
            raise BadInput("--retrain needs data to learn from; give --data")
        if self.retrains and self.other is not None:
            raise BadInput("--calibrate with --retrain: what was learned from is calibrated on")
        if self.val is not None and not self.retrains:
            raise BadInput("--val is what retrained models are judged by; give --retrain too")
        if not self.quantized and self.other is not None:
            raise BadInput("--calibrate is for int8 models; give --quantized too")
        is_published = any(c.published is not None for c in self.given.candidates)
        if self.source is None and self.asked.min_accuracy is not None and not is_published:
            raise BadInput("--min-accuracy needs data to measure accuracy by; give --data")

    @property
    def rule(self) -> Rule:
        """When timing stops: later for more models."""
        if self.seconds is not None:
            return Rule(seconds=self.seconds)
        count = len(self.given.candidates) * (1 + self.quantized)
        return Rule(width=0.03, most_seconds=max(20.0, 4.0 * count))


class ChooseView(NamedTuple):
    """The progress of a choice: the current action, the seconds left, the rows so far, the current
    step and the state of the engine's workers."""

    doing: str
    left: float | None
    rows: tuple[CandidateRow, ...]
    step: str = ""
    workers: tuple[Worker, ...] = ()


Tell = Callable[[ChooseView], None]


def silent(_: ChooseView) -> None:
    """Shows nothing."""


class Choosing:
    """One choice: its candidates, what is known about them, and the folder that stores it."""

    def __init__(self, request: ChooseTask, tell: Tell = silent) -> None:
        self.request, self._tell, self._began = request, tell, monotonic()
        self.folder = Folder(request.out, CHOOSE)
        self.environment = host().facts()
        self.candidates: list[ModelCandidate] = list(request.given.candidates)
        self.notes = list(request.given.notes)
        self.metric = ""
        self.judges: dict[str, JudgingData] = {}
        self._times: dict[str, TimedModel] = {}
        self._scores: dict[str, ScoredModel] = {}
        self._each: dict[str, tuple[float, ...]] = {}
        self._course = WorkProgress(self._show)
        self._learned: dict[str, tuple[str, ...]] = {}
        self._show(phrase("opening the candidates"), None)
        given = [c.path for c in self.candidates if c.path is not None]
        self.trials = ChooseTrials(self.folder, request.target, given, request.engine)
        self._refuse_early()

    def measure(self) -> None:
        """Makes the missing models, times all of them in turns and scores each."""
        self._expect()
        self._make()
        self._keep()
        self._time()
        self._keep()
        for candidate in self.candidates:
            if candidate.name in self.judges:
                self._score(candidate)
                self._keep()

    # Before any long work.

    def _refuse_early(self) -> None:
        taught = [c for c in self.candidates if c.is_taught]
        is_judged = self.request.source is not None and not self.request.retrains
        if is_judged and len(taught) < len(self.candidates):
            self.notes.append(
                phrase(
                    "names of the catalogue have random weights, so that no accuracy is "
                    "measured of them; --pretrained gives them published ones, `litesmith retrain "
                    "NAME` trains one on your data, --retrain a head of it"
                )
            )
        self.trials.try_out(self.candidates)
        if self._lesson is not None:
            opened = {c.name: self._lesson.open(c) for c in self.candidates}
            refuse_others({name: judge.data for name, judge in opened.items()})
            self._learned = {name: self._lesson.key(judge) for name, judge in opened.items()}
            self.metric = self.request.metric if self.request.metric != "auto" else "top1"
            return
        if self.request.source is None or not taught:
            return
        calibrates = self.request.quantized and any(not integer_tensors(c.model) for c in taught)
        self.judges = find_judges(
            taught, self.request.source, self.request.other, calibrates=calibrates
        )

        def is_trusted(candidate: ModelCandidate, data: Data, metric: str) -> bool:
            return self.request.trusted or self.trials.knows_score(candidate, data, metric)

        self.metric = common_metric(taught, self.judges, self.request.metric, trusted=is_trusted)
        metric = metric_named(self.metric)
        if self.request.asked.min_accuracy is not None and metric.unit != "share":
            raise BadInput(
                "--min-accuracy is a share, and {title} is none; leave it out, or name "
                "another --metric",
                metric.title,
            )

    @property
    def _lesson(self) -> LessonData | None:
        source = self.request.source
        if source is None or not self.request.retrains:
            return None
        return LessonData(source, self.request.val)

    # The work.

    def _expect(self) -> None:
        """Estimates the work ahead."""
        is_timed = not self.request.quantized and self.trials.knows_times(
            self.candidates, self.request.rule
        )
        weights = {"times": 0.0 if is_timed else 3.0 * len(self.candidates)}
        for candidate in self.candidates:
            run = max(footprint(candidate.model).macs / _MACS_A_SECOND, 1e-4)
            if self.request.retrains:
                weights[f"retrain {candidate.name}"] = 5 + run * _LEARNED / usable_cores()
            if self.request.quantized and not integer_tensors(candidate.model):
                runs = _QUANTIZING_RUNS[self.request.effort] * _CALIBRATED
                weights[f"{candidate.name} int8"] = 1 + run * runs / usable_cores()
            if candidate.name in self.judges:
                count = len(self.judges[candidate.name].data) * (1 + self.request.quantized)
                weights[f"score {candidate.name}"] = 1 + run * count / usable_cores()
        self._course.expect(weights)

    def _make(self) -> None:
        """Writes the catalogue networks, and the int8 versions, each after the model it is made
        from."""
        self.candidates = [self.trials.write(c) for c in self.candidates]
        if self._lesson is not None:
            self.candidates = [self._teach(c, self._lesson) for c in self.candidates]
        if not self.request.quantized:
            return
        floats = [c for c in self.candidates if not integer_tensors(c.model)]
        asked = ((c, self._calibration(c)) for c in floats)
        self.trials.begin(asked, self.request.effort)
        everyone: list[ModelCandidate] = []
        for candidate in self.candidates:
            everyone.append(candidate)
            held = integer_tensors(candidate.model)
            if held:
                self.notes.append(
                    phrase("{name} is quantized already: no int8 form is made", candidate.name)
                )
                continue
            taken = {c.name for c in (*self.candidates, *everyone)}
            name = make_distinct(f"{candidate.name} int8", taken)
            self._course.begin(f"{candidate.name} int8", phrase("making {name}", name))
            judge, data = self.judges.get(candidate.name), self._calibration(candidate)
            try:
                made = self.trials.quantize(candidate, name, data, self.request.effort)
            except Lost:
                raise
            except (CannotApply, CannotRun) as error:
                self.notes.append(phrase("{name} has no int8 form: {error}", candidate.name, error))
            else:
                everyone.append(made)
                if judge is not None:
                    self.judges[made.name] = judge
            self._course.end()
        self.candidates = everyone

    def _calibration(self, candidate: ModelCandidate) -> Data | None:
        judge = self.judges.get(candidate.name)
        return None if judge is None else judge.calibration

    def _teach(self, candidate: ModelCandidate, lesson: LessonData) -> ModelCandidate:
        """Gives the candidate a new head for the classes of the data."""
        name = candidate.name
        self._course.begin(phrase("retrain {name}", name), phrase("retraining {name}", name))
        taught = self.trials.make(
            candidate,
            name,
            self._learned[name],
            lambda place: lesson.teach(candidate, place, self._course.show),
        )
        self.judges[name] = lesson.judge(taught)
        refuse_others({one: judge.data for one, judge in self.judges.items()})
        self._course.end()
        return taught

    def _time(self) -> None:
        count = len(self.candidates)
        doing = (
            phrase("timing {count} models in turns", count)
            if count > 1
            else phrase("timing {name}", self.candidates[0].name)
        )
        self._course.begin("times", doing)

        def told(event: Status | Note) -> None:
            if isinstance(event, Status):
                self._course.show(f"{doing}: {event.what}")

        self._times = found = self.trials.time(self.candidates, self.request.rule, told)
        self._course.end()
        self._course.expect(
            {
                phrase("score {name}", c.name): found[c.name].p50_us
                * len(self.judges[c.name].data)
                / 1e6
                / usable_cores()
                for c in self.candidates
                if c.name in self.judges
                and not self.trials.knows_score(c, self.judges[c.name].data, self.metric)
            }
        )

    def _score(self, candidate: ModelCandidate) -> None:
        data, doing = self.judges[candidate.name].data, phrase("score {name}", candidate.name)
        self._course.begin(doing, phrase("scoring {name}", candidate.name))

        def told(event: Status | Note) -> None:
            if isinstance(event, Status):
                words = phrase("scoring {name}: {count} samples", candidate.name, len(data))
                self._course.show(words, event.done / max(event.of, 1))

        try:
            score, each = self.trials.score(candidate, data, self.metric, told)
        except Lost:
            raise
        except LitesmithError as error:
            raise type(error)(f"{candidate.name}: {error}") from None
        self._scores[candidate.name], self._each[candidate.name] = score, each
        self._course.end()

    def _show(self, words: str, left: float | None) -> None:
        self._shown = ChooseView(words, left, self.rows, self._course.step)
        self._tell(self._shown)

    def show_workers(self, workers: tuple[Worker, ...]) -> None:
        """Updates the view with the current state of the workers."""
        self._tell(self._shown._replace(workers=workers))

    @property
    def basis(self) -> str:
        """The origin of the accuracies: measured here, published, or none."""
        if self.judges:
            return MEASURED
        return PUBLISHED if any(c.published for c in self.candidates) else NONE

    @property
    def warnings(self) -> tuple[str, ...]:
        """Conditions that made the times noisy."""
        told = [words for timed in self._times.values() for words in timed.warnings]
        if any(timed.is_unclear for timed in self._times.values()):
            told.append(busy_advice())
        return tuple(dict.fromkeys(told))

    @property
    def table(self) -> CandidateTable:
        return CandidateTable(
            self.candidates,
            self.basis,
            self.metric,
            self._times,
            self._scores,
            self._each,
            self._groups,
        )

    @property
    def _groups(self) -> Groups:
        """The group of each scored sample, which is the same for all candidates."""
        scored = next((name for name in self._each if name in self.judges), None)
        if scored is None:
            return None
        return row_groups(self.judges[scored].data, len(self._each[scored]))

    @property
    def rows(self) -> tuple[CandidateRow, ...]:
        return self.table.rows(self.request.asked)

    def _keep(self) -> None:
        self.folder.write_summary(self.summarize(RUNNING))

    def summarize(self, state: str) -> ChooseSummary:
        """Summarizes the choice in its present state."""
        rows, table = self.rows, self.table
        told = Pick(None, None, phrase("not all is measured yet"))
        if state == DONE:
            told = pick(table.options, self.request.asked, table.is_worse)
        return ChooseSummary(
            schema=1,
            version=VERSION,
            command=self.request.command,
            state=state,
            request=self._wanted,
            basis=self.basis,
            data=self._data(),
            candidates=rows,
            front=tuple(row.model for row in rows if row.on_front),
            pick=told.name,
            pick_file=next((row.file for row in rows if row.model == told.name), None),
            nearest=told.nearest,
            reason=self._reason(told),
            notes=(*self.notes, *self._unknown()),
            warnings=self.warnings,
            environment=self.environment,
            seconds=monotonic() - self._began,
            is_unclear=told.is_unclear,
        )

    @property
    def _wanted(self) -> ChooseRequest:
        """The request as the summary stores it."""
        request, asked = self.request, self.request.asked
        return ChooseRequest(
            goal=asked.goal(knows_accuracy=self.basis != NONE),
            limits=asked.texts,
            ceilings=asked.ceilings,
            min_accuracy=asked.min_accuracy,
            target=str(request.target),
            quantized=request.quantized,
            retrained=request.retrains,
        )

    def _unknown(self) -> list[str]:
        """Notes about models without a known accuracy, where other models have one."""
        names = [o.name for o in self.table.options if o.merit is None]
        if self.basis == NONE or not names or len(names) == len(self.candidates):
            return []
        what = (
            phrase("no accuracy was measured here")
            if self.basis == MEASURED
            else phrase("no accuracy is known")
        )
        if len(names) == 1:
            return [phrase("{name}: {what}, so that it is not picked", names[0], what)]
        return [phrase("{names}: {what}, so that they are not picked", ", ".join(names), what)]

    def _reason(self, told: Pick) -> str:
        if self.basis != PUBLISHED:
            return told.reason
        if all(candidate.is_taught for candidate in self.candidates):
            return told.reason + phrase("; by published accuracy, which was not measured here")
        return told.reason + phrase(
            "; by published accuracy, which was not measured here: the weights are random "
            "numbers, to be trained yet"
        )

    def _data(self) -> ChooseData | None:
        judge = next(iter(self.judges.values()), None)
        if judge is None:
            return None
        other, learns = judge.calibration, self.request.retrains
        count = 0 if other is None else items(other)
        return ChooseData(
            source=judge.data.source,
            judged=items(judge.data),
            learned=count if learns else 0,
            calibration=0 if learns else count,
            calibration_source=None if self.request.other is None or not other else other.source,
        )
