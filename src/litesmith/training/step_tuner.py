"""`Tune` for steps: trains a model on the user's data to answer as the original does."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256

import numpy as np
import torch

from litesmith._version import VERSION
from litesmith.accuracy.metrics import choose_metric
from litesmith.data.samples import Data
from litesmith.errors import BadInput, CannotApply
from litesmith.ir.types import Array, Model
from litesmith.passes.core.layers import layers_of, real_values
from litesmith.passes.core.step import Context, Masks, Tuned
from litesmith.passes.tidy.fold import Fold
from litesmith.phrases import phrase
from litesmith.tflite.write import chunks
from litesmith.training.augment import Augment
from litesmith.training.fit import Fitted, checkpoint_of, fit
from litesmith.training.lesson import (
    Aim,
    Lesson,
    Teacher,
    aim_of,
    answers,
    scores_place,
    shared_sums,
)
from litesmith.training.sample_arrays import TrainingSamples, gather_samples
from litesmith.training.settings import Training, TrainingRecord, Watch
from litesmith.training.student import Student
from litesmith.units import number_text, time_text

# How many standard errors a gain in the runtime must exceed, and the number of samples from which
# this test can be used.
_SURE, _ENOUGH = 1.64, 8
_NO_GAIN = phrase("no gain beyond chance in the runtime, so the model stays as it was")


@dataclass
class Tuner:
    """A `Tune` over some data.

    original  the float model whose answers are followed
    stages    the number of trainings that share the minutes
    record    the folder for records of the trainings, to resume after an interruption
    watch     receives the progress of each training
    """

    original: Model
    data: Data
    training: Training = field(default_factory=Training)
    stages: int = 1
    record: TrainingRecord = field(default_factory=TrainingRecord)
    watch: Watch | None = None

    def __post_init__(self) -> None:
        self._stage = 0
        self._spent = 0.0
        self._device = device_named(self.training.device)
        self._teacher = Teacher(self.original, self._device)
        self._augment = Augment(self.original.main, self.training.augment, self.training.seed)
        self._scores, self._notes = _usable_labels(self.original, self.data, self.training)
        self._known: tuple[TrainingSamples, tuple[Array, ...], Aim] | None = None

    def __call__(
        self, model: Model, *, origin: Model | None = None, masks: Masks | None = None
    ) -> Tuned:
        """The model, trained; see `Tune`."""
        stage, self._stage = self._stage, self._stage + 1
        model = Fold(float16=True).apply(model, Context()).model
        samples, wanted, aim = self._samples_and_aim()
        # Without augmentation the original's answers are on record, and its sums are not.
        sums = [] if self._augment.is_idle else shared_sums(model.main, self.original.main)
        student = Student(
            model,
            origin=origin,
            masked=masks is not None,
            device=self._device,
            sums=[ours for ours, _ in sums],
        )
        lesson = Lesson(
            student,
            samples,
            wanted,
            aim,
            masks=masks,
            augment=self._augment,
            teacher=Teacher(self.original, self._device, [theirs for _, theirs in sums]),
            batch=self.training.batch,
        )
        _refuse_unreachable(student, lesson)
        training = self._share(stage)
        key = self._key(model, origin, masks, stage)
        record = checkpoint_of(self.record, f"stage-{stage}.pt", key)
        fitted = fit(lesson, training, lesson.batch, checkpoint=record, watch=self.watch)
        self._spent += fitted.seconds
        return self._accept_if_better(student, lesson, fitted)

    def _accept_if_better(self, student: Student, lesson: Lesson, fitted: Fitted) -> Tuned:
        """The trained model, or the original where the trained model is not surely better in the
        runtime."""
        before, after = student.model, student.written()
        course = _describe_fit(fitted)
        notes = (
            *self._notes,
            *(phrase("{where}: {why}", where, why) for where, why in student.frozen),
        )
        if fitted.best >= fitted.first and not student.masks:
            return Tuned(before, (*notes, course), fitted.steps)
        if student.is_quantized:
            ours, theirs = (lesson.in_runtime(model) for model in (after, before))
            if not is_surely_less(ours, theirs):
                kept = phrase("{told}; {no_gain}", course, _NO_GAIN)
                return Tuned(before, (*notes, kept), fitted.steps)
        return Tuned(after, (*notes, course), fitted.steps)

    def _samples_and_aim(self) -> tuple[TrainingSamples, tuple[Array, ...], Aim]:
        """The samples, the original's answers to them, and the aim."""
        if self._known is None:
            samples = gather_samples(self.data, labelled=self._scores is not None)
            wanted = answers(self._teacher, samples)
            follow = 1 - self.training.labels
            aim = aim_of(self.original.main, wanted, scores=self._scores, follow=follow)
            self._known = samples, wanted, aim
        return self._known

    def _share(self, stage: int) -> Training:
        """The settings of one training: its part of the minutes that are left."""
        minutes = self.training.minutes
        if minutes is None:
            return self.training
        own = share_minutes(minutes, spent=self._spent / 60, trainings=self.stages - stage)
        return replace(self.training, minutes=own)

    def _key(self, model: Model, origin: Model | None, masks: Masks | None, stage: int) -> str:
        """A key that differs for every training that would end in another result."""
        running = sha256(VERSION.encode())
        if masks is not None:
            layers = layers_of(model.main).values()
            weights = {layer.weight: real_values(layer.weight) for layer in layers}
            for mask in masks(1.0, weights).values():
                running.update(np.packbits(mask).tobytes())
        for one in (model, origin, self.original):
            for piece in chunks(one) if one is not None else ():
                running.update(piece)
        settings = {**asdict(self.training), "minutes": None, "device": str(self._device)}
        running.update(f"{stage} {self.data.digest} {settings}".encode())
        return running.hexdigest()


def device_named(name: str) -> torch.device:
    """The device that a name stands for, or BadInput."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            "device {name}: cannot be used ({reason}); take cpu or auto", name, reason
        ) from None
    return torch.device(name)


def _usable_labels(
    model: Model, data: Data, training: Training
) -> tuple[int | None, tuple[str, ...]]:
    """The place of the output that the labels describe, None where labels are not used; and notes
    on why they are not.
    """
    first = next(iter(data), None)
    if first is None or first.label is None or not training.labels:
        return None, ()
    if first.label.dtype.kind not in "iub" or first.label.size != len(first.label):
        return None, (phrase("labels that are no classes are left out; the original is followed"),)
    metric, _ = choose_metric(model, data, first, "auto", has_reference=True)
    if metric != "top1":
        choose_metric(model, data, first, "top1", has_reference=True)  # says what is wrong
    place = scores_place(model.main, len(first.label)) if metric == "top1" else None
    if place is None:
        return None, (phrase("the labels fit no output of scores; the original is followed"),)
    return place, ()


def is_surely_less(ours: Array, theirs: Array) -> bool:
    """True where the losses of `ours` are smaller beyond chance on the same samples, as far as so
    many samples can tell.
    """
    gains = theirs - ours
    if not np.isfinite(gains).all():
        return False
    error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) >= _ENOUGH else 0.0
    return bool(gains.mean() > _SURE * error)


def _refuse_unreachable(student: Student, lesson: Lesson) -> None:
    """Raises where an op without a gradient separates every weight from the outputs."""
    if not student.frozen:
        return
    loss = lesson.loss(np.arange(1), 0)
    if loss.requires_grad:
        loss.backward()
    if all(p.grad is None for p in student.parameters):
        where, why = student.frozen[-1]
        raise CannotApply(
            "training: no weight stands behind {where}, which has no gradient: {why}", where, why
        )
    for parameter in student.parameters:
        parameter.grad = None


def share_minutes(minutes: float, *, spent: float, trainings: int) -> float:
    """The part of the minutes for the next of this many trainings, never almost none."""
    return max(minutes - spent, 0.1 * minutes) / max(1, trainings)


def _describe_fit(fitted: Fitted) -> str:
    """The course of the training in one sentence."""
    losses = phrase(
        "held-out loss {number} → {number2}", number_text(fitted.first), number_text(fitted.best)
    )
    if fitted.best >= fitted.first:
        losses = phrase(
            "no better than before on held-out samples ({number}); kept", number_text(fitted.first)
        )
    took = time_text(fitted.seconds * 1e6)
    return phrase(
        "trained {steps} steps at rate {number}, {took}: {losses}",
        fitted.steps,
        number_text(fitted.rate),
        took,
        losses,
    )
