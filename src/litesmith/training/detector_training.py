"""The head of a detector trained on a backbone as it is, and then with the backbone if asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from litesmith.data.preparation import Norm
from litesmith.errors import CannotApply
from litesmith.ir.types import Model
from litesmith.passes.core.layers import Layer
from litesmith.phrases import phrase
from litesmith.training.detector_course import DetectorCourse, DetectorSamples
from litesmith.training.finetune import choose_layers, restrict
from litesmith.training.fit import Fitted, Pace, checkpoint_of, fit
from litesmith.training.retrain_request import NO_TUNING, FineTuned, Request
from litesmith.training.settings import Look
from litesmith.training.step_tuner import device_named
from litesmith.training.student import Student
from litesmith.transfer.detector import HEAD
from litesmith.units import number_text, time_text, total_text

# Rates for a head of random weights, and for what knows something; looks without a gain.
_RATES, _TUNING_RATES, _PATIENCE = (1e-3, 3e-3, 1e-2), (1e-4, 3e-4, 1e-3), 12


class TrainedDetector(NamedTuple):
    """What training made: the model; the one before its backbone was trained too, where it was; and
    how it went."""

    model: Model
    frozen: Model | None
    tuned: FineTuned | None
    told: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class DetectorLesson:
    """What both trainings of a detector share; `key` tells them from trainings of anything else."""

    samples: DetectorSamples
    strides: tuple[int, ...]
    norm: Norm
    request: Request
    key: str
    watch: Callable[[Look], None]

    def train(self, start: Model) -> TrainedDetector:
        """The head, then the layers of the backbone that are asked for, if they gain by it."""
        held, request = len(self.samples.held), self.request
        first, fitted, layers = self._stage(start, 0, NO_TUNING, Pace(_RATES, _PATIENCE))
        told = _told(phrase("head"), fitted, layers, held)
        if not fitted.best < fitted.first:
            raise CannotApply(
                "{told}: nothing was learned; give more --epochs, or look at the boxes", told
            )
        if request.fine_tune == NO_TUNING:
            return TrainedDetector(first, None, None, (told,))
        pace = Pace(_TUNING_RATES, _PATIENCE)
        tuned, after, layers = self._stage(first, 1, request.fine_tune, pace)
        is_better = after.best < after.first
        more = _told(phrase("backbone and head"), after, layers, held)
        result = FineTuned(tuned if is_better else None, more, after.first, after.best, held)
        return TrainedDetector(tuned if is_better else first, first, result, (told, more))

    def _stage(self, model: Model, stage: int, which: str, pace: Pace) -> tuple[Model, Fitted, int]:
        training, record = self.request.training, self.request.record
        student = Student(model, device=device_named(training.device))
        restrict(student, _trained_layers(student.layers, which))
        course = DetectorCourse(student, self.samples, self.strides, self.norm, training)
        checkpoint = checkpoint_of(record, f"stage-{stage}.pt", f"{self.key} {stage}")
        fitted = fit(
            course, training, course.batch, checkpoint=checkpoint, watch=self.watch, manner=pace
        )
        return student.written(), fitted, len(student.layers)


def _trained_layers(layers: Sequence[Layer], which: str) -> list[Layer]:
    """The head, and the layers of the backbone that are asked for."""
    head = [layer for layer in layers if layer.weight.name.startswith(HEAD)]
    behind = [layer for layer in layers if not layer.weight.name.startswith(HEAD)]
    return [*(() if which == NO_TUNING else choose_layers(behind, which)), *head]


def _told(what: str, fitted: Fitted, layers: int, held: int) -> str:
    return phrase(
        "{what}: {layers} layers trained, {steps} steps at rate {rate}, {took}: 1 − AP and a "
        "hundredth of the loss on {held} held-out pictures {first} → {best}",
        what,
        layers,
        fitted.steps,
        number_text(fitted.rate),
        time_text(fitted.seconds * 1e6),
        total_text(held),
        number_text(round(fitted.first, 4)),
        number_text(round(fitted.best, 4)),
    )
