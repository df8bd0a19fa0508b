"""`Tune` for steps: a model trained on a user's data to do what the original does."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from litesmith._version import VERSION
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.scores import scores_of
from litesmith.ir.types import Array, Model
from litesmith.measure.choice import chosen_metric
from litesmith.measure.facts import tools
from litesmith.measure.outputs import real
from litesmith.measure.samples import Data, as_stored
from litesmith.passes.fold import Fold
from litesmith.passes.layers import layers_of, real_values
from litesmith.passes.step import Context, Masks, Tuned
from litesmith.tflite.write import chunks
from litesmith.train.aim import Aim, aim_of, scores_place
from litesmith.train.augment import Augment
from litesmith.train.checkpoint import Checkpoint
from litesmith.train.fit import Fitted, fit
from litesmith.train.gathered import Gathered, gathered, room
from litesmith.train.lift import Lift, constants_of, is_real
from litesmith.train.settings import Training, Watch
from litesmith.train.student import Student
from litesmith.units import number_text, time_text

# Standard errors that a gain in the runtime must exceed, where so many samples can tell.
_SURE, _ENOUGH = 1.64, 8
_NO_GAIN = "no gain beyond chance in the runtime, so the model stays as it was"

# Samples of a step, where memory allows; and the bytes that their activations may take.
_BATCH, _MOST_BYTES = 64, 3_000_000_000

# Values that are held of each activation: as computed, as rounded, and for the way back.
_COPIES = 3


@dataclass
class Tuner:
    """A `Tune` over some data.

    original  the float model whose answers are followed
    stages    the trainings that share the minutes
    folder    where records of the trainings lie, to go on after an interruption
    watch     is told how far each training has come
    """

    original: Model
    data: Data
    training: Training = field(default_factory=Training)
    stages: int = 1
    folder: Path | None = None
    resume: bool = False
    watch: Watch | None = None

    def __post_init__(self) -> None:
        self._stage = 0
        self._spent = 0.0
        self._device = device_named(self.training.device)
        self._teacher = Teacher(self.original, self._device)
        augment = Augment(self.original.main, self.training.augment, self.training.seed)
        self._augmented = None if augment.is_idle else Augmented(augment, self._teacher)
        self._scores, self._notes = _usable_labels(self.original, self.data, self.training)
        self._known: tuple[Gathered, tuple[Array, ...], Aim] | None = None

    def __call__(
        self, model: Model, *, origin: Model | None = None, masks: Masks | None = None
    ) -> Tuned:
        """The model, trained; see `Tune`."""
        stage, self._stage = self._stage, self._stage + 1
        model = Fold(float16=True).apply(model, Context()).model
        samples, wanted, aim = self._gathered()
        student = Student(model, origin=origin, masked=masks is not None, device=self._device)
        lesson = Lesson(
            student,
            samples,
            wanted,
            aim,
            masks=masks,
            augmented=self._augmented,
            batch=self.training.batch,
        )
        _refuse_unreachable(student, lesson)
        training = self._share(stage)
        key = self._key(model, origin, masks, stage)
        path = None if self.folder is None else self.folder / f"stage-{stage}.pt"
        record = Checkpoint(path, key, resume=self.resume)
        fitted = fit(lesson, training, lesson.batch, checkpoint=record, watch=self.watch)
        self._spent += fitted.seconds
        return self._judged(student, lesson, fitted)

    def _judged(self, student: Student, lesson: "Lesson", fitted: Fitted) -> Tuned:
        """What was learned, or the model as it came where it is not surely worse in the runtime."""
        before, after = student.model, student.written()
        told = _told(fitted)
        notes = (*self._notes, *(f"{where}: {why}" for where, why in student.frozen))
        if fitted.best >= fitted.first and not student.masks:
            return Tuned(before, (*notes, told))
        if student.is_quantized:
            ours, theirs = (lesson.in_runtime(model, self.data) for model in (after, before))
            if not _is_surely_less(ours, theirs):
                return Tuned(before, (*notes, f"{told}; {_NO_GAIN}"))
        return Tuned(after, (*notes, told))

    def _gathered(self) -> tuple[Gathered, tuple[Array, ...], Aim]:
        """The samples, what the original answers to them, and what is aimed at."""
        if self._known is None:
            samples = gathered(self.data, labelled=self._scores is not None)
            wanted = _answers(self._teacher, samples)
            follow = 1 - self.training.labels
            aim = aim_of(self.original.main, wanted, scores=self._scores, follow=follow)
            self._known = samples, wanted, aim
        return self._known

    def _share(self, stage: int) -> Training:
        """The settings of one training: its part of the minutes that are left."""
        minutes = self.training.minutes
        if minutes is None:
            return self.training
        left = max(minutes - self._spent / 60, 0.1 * minutes)
        return replace(self.training, minutes=left / max(1, self.stages - stage))

    def _key(self, model: Model, origin: Model | None, masks: Masks | None, stage: int) -> str:
        """Tells a training from any other that would end in another result."""
        running = sha256(VERSION.encode())
        if masks is not None:
            weights = {
                one.weight: real_values(one.weight) for one in layers_of(model.main).values()
            }
            for mask in masks(1.0, weights).values():
                running.update(np.packbits(mask).tobytes())
        for one in (model, origin, self.original):
            for piece in chunks(one) if one is not None else ():
                running.update(piece)
        settings = {**asdict(self.training), "minutes": None, "device": str(self._device)}
        running.update(f"{stage} {self.data.digest} {settings}".encode())
        return running.hexdigest()


class Lesson:
    """A student, samples, and what its answers should be: a `Problem` for `fit`."""

    def __init__(
        self,
        student: Student,
        samples: Gathered,
        wanted: Sequence[Array],
        aim: Aim,
        *,
        masks: Masks | None = None,
        augmented: "Augmented | None" = None,
        batch: int = 0,
    ) -> None:
        self._student, self._samples, self._wanted = student, samples, wanted
        self._aim, self._schedule, self._augmented = aim, masks, augmented
        self.parameters, self.masks = student.parameters, student.masks
        self.samples = len(samples.learned)
        self.batch = batch or _batch(student.model, self.samples)

    def loss(self, places: Array, turn: int) -> torch.Tensor:
        return self._loss(self._samples.learned[places], turn)

    @torch.no_grad()
    def held_out(self) -> float:
        held = self._samples.held
        groups = [held[start : start + self.batch] for start in range(0, len(held), self.batch)]
        losses = [float(self._loss(group)) * len(group) for group in groups]
        return sum(losses) / len(held)

    def mask(self, progress: float) -> None:
        if self._schedule is not None:
            self._student.mask_by(self._schedule, progress)

    def _loss(self, places: Array, turn: int | None = None) -> torch.Tensor:
        device = self._student.device
        inputs = [_batched(store[places], device) for store in self._samples.inputs]
        wanted: Sequence[torch.Tensor] | None = None
        if turn is not None and self._augmented is not None:
            inputs, wanted = self._augmented(inputs, turn)
        with precision(device, exact=turn is None, coarse=not self._student.is_quantized):
            answers = self._student(inputs)
        return self._distance(answers, places, wanted)

    def _distance(
        self,
        answers: Sequence[torch.Tensor],
        places: Array,
        wanted: Sequence[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        device = answers[0].device
        if wanted is None:
            wanted = [torch.from_numpy(_joined(w[places])).to(device) for w in self._wanted]
        labels = self._samples.labels
        known = None if labels is None else torch.from_numpy(labels[places].reshape(-1)).to(device)
        return self._aim(answers, wanted, known)

    def in_runtime(self, model: Model, data: Data) -> Array:
        """The loss on each held-out sample of a model as the runtime computes it."""
        graph = regraph(model.main, outputs=[scores_of(model.main, t) for t in model.main.outputs])
        exposed = with_graphs(model, (graph, *model.graphs[1:]))
        losses: list[float] = []
        with tools(data).opened(replace(exposed, signatures=(), metadata=())) as run:
            for place in self._samples.held:
                given = [store[place] for store in self._samples.inputs]
                stored = [as_stored(t, a) for t, a in zip(graph.inputs, given, strict=True)]
                results = zip(run(stored), graph.outputs, strict=True)
                answers = [torch.from_numpy(np.array(real(a, t))) for a, t in results]
                losses.append(float(self._distance(answers, np.array([place]))))
        return np.array(losses)


@contextmanager
def precision(device: torch.device, *, exact: bool, coarse: bool) -> Iterator[None]:
    """How finely a device computes: in full to judge, with fewer bits to train where it can.

    Float models train in bfloat16, whose steps are as coarse as those of int8; so models with
    codes have TF32, which is finer than these.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = not exact
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=coarse and not exact):
            yield
    finally:
        torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


def device_named(name: str) -> torch.device:
    """The device that a name stands for, or BadInput."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(f"device {name}: cannot be used ({reason}); take cpu or auto") from None
    return torch.device(name)


def _usable_labels(
    model: Model, data: Data, training: Training
) -> tuple[int | None, tuple[str, ...]]:
    """The place of the output that labels are about, where they take part; and why they do not."""
    first = next(iter(data), None)
    if first is None or first.label is None or not training.labels:
        return None, ()
    if first.label.dtype.kind not in "iub" or first.label.size != len(first.label):
        return None, ("labels that are no classes are left out; the original is followed",)
    metric, _ = chosen_metric(model, data, first, "auto", has_reference=True)
    if metric != "top1":
        chosen_metric(model, data, first, "top1", has_reference=True)  # says what is wrong
    place = scores_place(model.main, len(first.label)) if metric == "top1" else None
    if place is None:
        return None, ("the labels fit no output of scores; the original is followed",)
    return place, ()


def _is_surely_less(ours: Array, theirs: Array) -> bool:
    """True where losses are less on the same samples beyond chance, as far as these can tell."""
    gains = theirs - ours
    if not np.isfinite(gains).all():
        return False
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) >= _ENOUGH else 0.0
    return bool(gains.mean() > _SURE * error)


def _refuse_unreachable(student: Student, lesson: Lesson) -> None:
    """Raises where what is computed without a gradient stands before every weight."""
    if not student.frozen:
        return
    loss = lesson.loss(np.arange(1), 0)
    if loss.requires_grad:
        loss.backward()
    if all(p.grad is None for p in student.parameters):
        where, why = student.frozen[-1]
        raise CannotApply(
            f"training: no weight stands behind {where}, which has no gradient: {why}"
        )
    for parameter in student.parameters:
        parameter.grad = None


class Teacher:
    """The original, whose answers are followed: its scores."""

    def __init__(self, model: Model, device: torch.device) -> None:
        self.device, self.model = device, model
        self._lift = Lift(model, [scores_of(model.main, t) for t in model.main.outputs])
        self._constants = constants_of(model, device)

    @torch.no_grad()
    def __call__(self, inputs: Sequence[torch.Tensor | Array]) -> list[torch.Tensor]:
        return self._lift(inputs, self._constants)


class Augmented(NamedTuple):
    """Batches that are changed by chance, with what the original answers to them."""

    augment: Augment
    teacher: Teacher

    def __call__(
        self, inputs: Sequence[torch.Tensor | Array], turn: int
    ) -> tuple[list[torch.Tensor | Array], list[torch.Tensor]]:
        changed = self.augment(inputs, turn)
        return changed, self.teacher(changed)


def _answers(teacher: Teacher, samples: Gathered) -> tuple[Array, ...]:
    """What the original answers to every sample."""
    stores: list[Array] = []
    count = len(samples.inputs[0])
    batch = _batch(teacher.model, count)
    for place in range(0, count, batch):
        places = np.arange(place, min(place + batch, count))
        inputs = [_batched(store[places], teacher.device) for store in samples.inputs]
        answers = [a.cpu().numpy() for a in teacher(inputs)]
        answers = [a.reshape(len(places), -1, *a.shape[1:]) for a in answers]
        stores = stores or [room(count, a.shape[1:], a.dtype) for a in answers]
        for store, answer in zip(stores, answers, strict=True):
            store[places] = answer
    return tuple(stores)


def _batched(values: Array, device: torch.device) -> torch.Tensor | Array:
    """Samples side by side along the first axis; integers stay arrays."""
    joined = _joined(values)
    return torch.from_numpy(joined).to(device) if joined.dtype == np.float32 else joined


def _joined(values: Array) -> Array:
    return np.ascontiguousarray(values.reshape(-1, *values.shape[2:]))


def _batch(model: Model, samples: int) -> int:
    """As many samples as suit the data and the memory."""
    values = sum(t.elements for op in model.main.ops for t in op.outputs if is_real(t))
    held = values * _COPIES * np.dtype(np.float32).itemsize
    most = min(_BATCH, max(1, samples // 8), max(1, _MOST_BYTES // max(held, 1)))
    return 1 << (most.bit_length() - 1)


def _told(fitted: Fitted) -> str:
    """How it went, in one sentence."""
    losses = f"held-out loss {number_text(fitted.first)} → {number_text(fitted.best)}"
    if fitted.best >= fitted.first:
        losses = f"no better than before on held-out samples ({number_text(fitted.first)}); kept"
    took = time_text(fitted.seconds * 1e6)
    return f"trained {fitted.steps} steps at rate {number_text(fitted.rate)}, {took}: {losses}"
