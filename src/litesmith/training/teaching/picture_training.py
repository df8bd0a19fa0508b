"""Trains the head of a detector or segmenter on an unchanged backbone; then both, if asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from litesmith.data.preparation import Norm
from litesmith.errors import CannotApply
from litesmith.ir.types import Model
from litesmith.passes.core.layers import Layer
from litesmith.phrases import phrase
from litesmith.training.fit import Fitted, Pace, checkpoint_of, fit
from litesmith.training.settings import Look, Training
from litesmith.training.step_tuner import device_named, share_minutes
from litesmith.training.student import Student
from litesmith.training.teaching.finetune import choose_layers, restrict
from litesmith.training.teaching.picture_course import PictureCourse, PictureSamples
from litesmith.training.teaching.picture_tasks import PictureTask
from litesmith.training.teaching.retrain_request import NO_TUNING, FineTuned, RetrainRequest
from litesmith.transfer.head_layers import HEAD
from litesmith.units import number_text, time_text, total_text

# The rates for a head of random weights, and for trained weights; and the patience, in evaluations.
_RATES, _TUNING_RATES, _PATIENCE = (1e-3, 3e-3, 1e-2), (1e-4, 3e-4, 1e-3), 12


class TrainedHead(NamedTuple):
    """The result of training: the model; the model with the unchanged backbone, where the backbone
    was trained too; and the course of the training in sentences.
    """

    model: Model
    frozen: Model | None
    tuned: FineTuned | None
    told: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class PictureLesson:
    """What both trainings of a network share.

    strides  the strides of the maps that the head reads
    key      distinguishes these trainings from others
    """

    samples: PictureSamples
    task: PictureTask
    strides: tuple[int, ...]
    norm: Norm
    request: RetrainRequest
    key: str
    watch: Callable[[Look], None]

    def train(self, start: Model) -> TrainedHead:
        """Trains the head, then the requested layers of the backbone too, and keeps the second
        result if it is better.
        """
        request = self.request
        is_alone = request.fine_tune == NO_TUNING
        training = self._share(0.0, 1 if is_alone else 2)
        first, fitted, layers = self._stage(start, 0, NO_TUNING, training, Pace(_RATES, _PATIENCE))
        course = self._tell(phrase("head"), fitted, layers)
        if not fitted.best < fitted.first:
            raise CannotApply(
                "{told}: nothing was learned; give more --epochs, or look at the data", course
            )
        if is_alone:
            return TrainedHead(first, None, None, (course,))
        training = self._share(fitted.seconds / 60, 1)
        pace = Pace(_TUNING_RATES, _PATIENCE)
        tuned, after, layers = self._stage(first, 1, request.fine_tune, training, pace)
        is_better = after.best < after.first
        more = self._tell(phrase("backbone and head"), after, layers)
        held = len(self.samples.held)
        result = FineTuned(tuned if is_better else None, more, after.first, after.best, held)
        return TrainedHead(tuned if is_better else first, first, result, (course, more))

    def _share(self, spent: float, trainings: int) -> Training:
        """The settings of the next of this many trainings, with its part of the minutes."""
        training = self.request.training
        if training.minutes is None:
            return training
        own = share_minutes(training.minutes, spent=spent, trainings=trainings)
        return replace(training, minutes=own)

    def _stage(
        self, model: Model, stage: int, which: str, training: Training, pace: Pace
    ) -> tuple[Model, Fitted, int]:
        student = Student(model, device=device_named(training.device))
        restrict(student, _trained_layers(student.layers, which))
        goal = self.task.goal(student, self.samples, self.strides)
        course = PictureCourse(student, self.samples, goal, self.norm, training)
        record = self.request.record
        checkpoint = checkpoint_of(record, f"stage-{stage}.pt", f"{self.key} {stage}")
        fitted = fit(
            course, training, course.batch, checkpoint=checkpoint, watch=self.watch, manner=pace
        )
        return student.written(), fitted, len(student.layers)

    def _tell(self, what: str, fitted: Fitted, layers: int) -> str:
        return phrase(
            "{what}: {layers} layers trained, {steps} steps at rate {rate}, {took}: 1 − {score} "
            "and a hundredth of the loss on {held} held-out pictures {first} → {best}",
            what,
            layers,
            fitted.steps,
            number_text(fitted.rate),
            time_text(fitted.seconds * 1e6),
            self.task.score,
            total_text(len(self.samples.held)),
            number_text(round(fitted.first, 4)),
            number_text(round(fitted.best, 4)),
        )


def _trained_layers(layers: Sequence[Layer], which: str) -> list[Layer]:
    """The head, and the layers of the backbone that were requested."""
    head = [layer for layer in layers if layer.weight.name.startswith(HEAD)]
    behind = [layer for layer in layers if not layer.weight.name.startswith(HEAD)]
    return [*(() if which == NO_TUNING else choose_layers(behind, which)), *head]
