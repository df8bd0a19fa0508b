"""The training loop: a rate found by trying, early stopping, nothing that ends up worse; and its
checkpoint on disk, from which an interrupted training resumes.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

import io
import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from litesmith.errors import BadInput
from litesmith.ir.types import Array
from litesmith.numeric.array_files import archive_bytes, refuse_size
from litesmith.phrases import phrase
from litesmith.tflite.file import write_whole
from litesmith.training.captured_step import Stepper, make_optimizer, set_rate
from litesmith.training.settings import RECORD_SECONDS, Look, Training, TrainingRecord, Watch

_NO_RECORD = phrase("delete it, or leave out --resume")
_SHARE = 0.05  # of the time is what writing them may take


class Checkpoint:
    """The record of one training. `key` distinguishes it from other trainings; `every` is the
    number of seconds between two records, 0 for one after each step."""

    def __init__(
        self, path: Path | None, key: str, *, resume: bool, every: float = RECORD_SECONDS
    ) -> None:
        self._path, self._key, self._every = path, key, every
        self._due = time.monotonic() + every
        self.found = self._read() if resume else None

    def _read(self) -> dict[str, Any] | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            refuse_size(self._path, archive_bytes(self._path), smaller=_NO_RECORD)
            found = torch.load(self._path, map_location="cpu", weights_only=True)
            key, state = found["key"], found["state"]
        except BadInput:
            raise
        except Exception as error:  # a torn or foreign file can make the reader raise anything
            raise BadInput(
                "{path}: is no record of a training ({name}); {way_out}",
                self._path,
                type(error).__name__,
                _NO_RECORD,
            ) from None
        if key != self._key:
            raise BadInput(
                "{path}: is of another model, recipe, data or setting; run the command that "
                "was interrupted, or leave out --resume to start anew",
                self._path,
            )
        return state

    @property
    def is_due(self) -> bool:
        return self._path is not None and time.monotonic() >= self._due

    def keep(self, state: dict[str, Any]) -> None:
        """Writes the record, whole or not at all."""
        if self._path is None:
            return
        began = time.monotonic()
        content = io.BytesIO()
        torch.save({"key": self._key, "state": state}, content)
        write_whole(self._path, [content.getbuffer()])
        ended = time.monotonic()
        self._due = ended + (self._every and max(self._every, (ended - began) / _SHARE))


def checkpoint_of(record: TrainingRecord, name: str, key: str) -> Checkpoint:
    """The record of one training in the folder of all, where there is one."""
    place = None if record.folder is None else record.folder / name
    return Checkpoint(place, key, resume=record.resume, every=record.every)


# Steps of each try: this share of all steps, within bounds.
_TRY_SHARE, _FEWEST_TRIED, _MOST_TRIED = 0.03, 4, 120

# The share of the minutes that all tries may take.
_TRY_MINUTES = 0.3

# A rate counts as nearly best if it gained this share of the largest gain.
_NEARLY = 0.9

# The number of evaluations on the held-out samples.
_LOOKS = 20

# The share of the steps in which the rate grows to its full size, and its initial share of that.
_WARM_UP, _LEAST_RATE = 0.05, 0.1

# The share of the steps over which masks grow; the remaining steps train what the masks left.
_MASKING = 0.6


class Pace(NamedTuple):
    """How a training proceeds; the defaults suit a model that knows something.

    rates     the rates to try, in units of the parameters' own sizes, smallest first
    patience  the number of evaluations without a gain that ends the training
    """

    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    patience: int = 12


USUAL = Pace()


class Trainable(Protocol):
    """Something that can be trained.

    parameters  what a step changes
    masks       what `mask` changes
    samples     the number of training samples

    A problem may also have `told`: how good it is so far, in words, for the progress.
    """

    @property
    def parameters(self) -> list[torch.nn.Parameter]: ...
    @property
    def masks(self) -> list[torch.Tensor]: ...
    @property
    def samples(self) -> int: ...
    def loss(self, places: Array, turn: int) -> torch.Tensor: ...
    def held_out(self) -> float: ...
    def mask(self, progress: float) -> None: ...


@dataclass
class FitState:
    """Everything that an interrupted training needs to go on as if nothing had happened."""

    first: float = math.inf
    tried: dict[float, float] = field(default_factory=dict[float, float])
    steps: int = 0
    step: int = 0
    best: float = math.inf
    best_values: list[torch.Tensor] = field(default_factory=list[torch.Tensor])
    since: int = 0
    seconds: float = 0.0
    step_seconds: float = 0.0
    values: list[torch.Tensor] = field(default_factory=list[torch.Tensor])
    moments: dict[str, Any] = field(default_factory=dict[str, Any])
    done: bool = False


class Fitted(NamedTuple):
    """How a training ended; the parameters are left at the best that was seen.

    first, best  the loss on held-out samples before and at its best
    """

    first: float
    best: float
    rate: float
    steps: int
    seconds: float


def fit(
    problem: Trainable,
    training: Training,
    batch: int,
    *,
    checkpoint: Checkpoint,
    watch: Watch | None = None,
    manner: Pace = USUAL,
) -> Fitted:
    """Trains a problem's parameters, and leaves them where the held-out loss was lowest."""
    loop = _Loop(problem, training, batch, checkpoint, watch, manner)
    if not loop.state.done:
        loop.probe()
        loop.train()
    return loop.finish()


class _Loop:
    def __init__(
        self,
        problem: Trainable,
        training: Training,
        batch: int,
        checkpoint: Checkpoint,
        watch: Watch | None,
        manner: Pace,
    ) -> None:
        self._problem, self._training, self._batch = problem, training, batch
        self._checkpoint, self._watch, self._manner = checkpoint, watch, manner
        self._parameters = problem.parameters
        self._all = [*self._parameters, *problem.masks]
        self._start = self._values()
        self._epoch, self._order = -1, np.arange(0)
        record = checkpoint.found
        self.state = FitState(**record) if record else FitState()
        self._began = time.monotonic() - self.state.seconds
        self._per_epoch = max(1, problem.samples // batch)
        self._first_look()

    @property
    def _wanted_steps(self) -> int:
        return max(1, math.ceil(self._training.epochs * self._per_epoch))

    # The rate.

    def probe(self) -> None:
        """Tries every rate for a few steps from the start."""
        state = self.state
        if self._training.minutes is not None and not state.step_seconds:
            began = time.monotonic()
            self._try_rate(self._manner.rates[0], _FEWEST_TRIED)
            state.step_seconds = (time.monotonic() - began) / _FEWEST_TRIED
        steps = self._steps_per_try()
        for number, rate in enumerate(self._manner.rates if steps else ()):
            if rate not in state.tried:
                self._show("trying rates", number, len(self._manner.rates))
                state.tried[rate] = self._try_rate(rate, steps)
                self._keep()
        self._load(self._start)
        state.steps = state.steps or self._affordable()

    def _steps_per_try(self) -> int:
        """The steps of each try; 0 where the rate is given, or the minutes are too few."""
        if self._training.rate is not None:
            return 0
        steps = min(max(int(_TRY_SHARE * self._wanted_steps), _FEWEST_TRIED), _MOST_TRIED)
        if self._training.minutes is not None:
            seconds = _TRY_MINUTES * 60 * self._training.minutes / len(self._manner.rates)
            steps = min(steps, int(seconds / self.state.step_seconds))
        return min(steps, self._wanted_steps) if steps >= _FEWEST_TRIED else 0

    def _try_rate(self, rate: float, steps: int) -> float:
        """The gain of a few steps at this rate, from the start."""
        self._load(self._start)
        self._problem.mask(1.0)
        optimizer = make_optimizer(self._parameters, rate)
        take = Stepper(self._problem, self._parameters, optimizer)
        for step in range(steps):
            self._pace(optimizer, rate, step / steps)
            take(self._places(step), step)
        loss = self._problem.held_out()
        return loss if math.isfinite(loss) else math.inf

    def _affordable(self) -> int:
        """The steps that the minutes allow."""
        wanted = self._wanted_steps
        if self._training.minutes is None or not self.state.step_seconds:
            return wanted
        left = self._training.minutes * 60 - (time.monotonic() - self._began)
        return max(1, min(wanted, int(left / self.state.step_seconds)))

    @property
    def rate(self) -> float:
        """The largest of the rates that did nearly best, because a short trial favours rates that
        are too small for a long training.

        A small rate where none helped or none was tried.
        """
        if self._training.rate is not None or not self.state.tried:
            return self._training.rate or self._manner.rates[1]
        gains = {rate: self.state.first - loss for rate, loss in self.state.tried.items()}
        best = max(gains.values())
        if best <= 0:
            return min(gains, key=lambda rate: (-gains[rate], rate))
        return max(rate for rate, gain in gains.items() if gain >= _NEARLY * best)

    # The training.

    def train(self) -> None:
        state, problem = self.state, self._problem
        optimizer = make_optimizer(self._parameters, self.rate)
        if state.step:
            self._load(state.values)
            optimizer.load_state_dict(state.moments)
        take = Stepper(self._problem, self._parameters, optimizer)
        every = max(1, state.steps // _LOOKS)
        masked = int(_MASKING * state.steps) if problem.masks else 0
        while state.step < state.steps and not self._is_over():
            if state.step <= masked and state.step % every == 0:
                problem.mask(min(1.0, (state.step + every) / max(masked, 1)))
            self._pace(optimizer, self.rate, state.step / state.steps)
            take(self._places(state.step), state.step)
            state.step += 1
            if state.step % every == 0 or state.step == state.steps:
                if state.step > masked:
                    self._look()
                if state.since >= self._manner.patience:
                    break
            self._show("training", state.step, state.steps)
            self._keep(optimizer)

    def _first_look(self) -> None:
        """Evaluates the result to beat: the original model, with its final masks."""
        if self.state.best_values:
            return
        self._problem.mask(1.0)
        self.state.first = self.state.best = self._problem.held_out()
        self.state.best_values = self._values()

    def _look(self) -> None:
        state = self.state
        loss = self._problem.held_out()
        if loss < state.best and self._is_finite():
            state.best, state.best_values, state.since = loss, self._values(), 0
        else:
            state.since += 1

    def _places(self, step: int) -> Array:
        """The samples of a step: each epoch has an order of its own."""
        epoch, place = divmod(step, self._per_epoch)
        if epoch != self._epoch:
            random = np.random.default_rng((self._training.seed, epoch))
            self._epoch, self._order = epoch, random.permutation(self._problem.samples)
        return self._order[place * self._batch : (place + 1) * self._batch]

    def _pace(self, optimizer: torch.optim.Optimizer, rate: float, share: float) -> None:
        """Warms the rate up, then lowers it along a cosine; `share` is the share of the steps that
        are done.
        """
        warm = min(1.0, _LEAST_RATE + share / _WARM_UP)
        set_rate(optimizer, rate * warm * (1 + math.cos(math.pi * share)) / 2)

    def _is_over(self) -> bool:
        """True where the minutes are over; on a busy machine one step may take longer than they."""
        minutes = self._training.minutes
        if minutes is None or not self.state.step:
            return False
        return time.monotonic() - self._began > 60 * minutes

    # What is kept.

    def finish(self) -> Fitted:
        state = self.state
        if not state.done:
            state.done = True
            state.seconds = time.monotonic() - self._began
            state.values, state.moments = [], {}
            self._checkpoint.keep(vars(state))
        self._load(state.best_values)
        return Fitted(state.first, state.best, self.rate, state.step, state.seconds)

    def _keep(self, optimizer: torch.optim.Optimizer | None = None) -> None:
        state = self.state
        if not self._checkpoint.is_due:
            return
        state.seconds = time.monotonic() - self._began
        if optimizer is not None:
            state.values = self._values()
            state.moments = optimizer.state_dict()
        self._checkpoint.keep(vars(state))

    def _show(self, what: str, step: int, steps: int) -> None:
        if self._watch is not None:
            told: str = getattr(self._problem, "told", "")
            self._watch(Look(what, step, steps, self.state.first, self.state.best, told))

    def _values(self) -> list[torch.Tensor]:
        return [p.detach().clone() for p in self._all]

    def _is_finite(self) -> bool:
        return all(bool(torch.isfinite(p).all()) for p in self._parameters)

    @torch.no_grad()
    def _load(self, values: list[torch.Tensor]) -> None:
        for tensor, value in zip(self._all, values, strict=True):
            tensor.copy_(value)
