"""A segmenter in training: pictures with maps of classes, moved and mirrored together; a
`Trainable`."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from litesmith.accuracy.scoring import mean_iou
from litesmith.data.preparation import Norm
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tasks.segmentation import IGNORED
from litesmith.training.settings import Training
from litesmith.training.student import Student
from litesmith.training.teaching.moved_pictures import move_maps
from litesmith.training.teaching.picture_samples import PictureSamples, PictureStudent, on_device
from litesmith.units import number_text, percent_text

# Beside the mean overlap, the loss tells apart what is as good.
_LOSS_SHARE = 0.01


class SegmenterCourse:
    """A segmenter, pictures, and how far its answers are from their masks."""

    def __init__(
        self, student: Student, samples: PictureSamples, norm: Norm, training: Training
    ) -> None:
        self._student = PictureStudent(student, samples, norm, training)
        self._given, self.device, self.batch = samples, student.device, self._student.batch
        self._maps = on_device(samples.labels.astype(np.uint8), self.device)
        self.parameters, self.masks = student.parameters, list[torch.Tensor]()
        self.samples = len(samples.learned)
        self.told = ""

    def draw(self, places: Array, turn: int) -> list[Array] | None:
        """The places of pictures and what chance does to them; None where they lie elsewhere."""
        return self._student.draw(places, turn) if self._student.is_near else None

    def loss_of(self, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
        """The loss by what `draw` gave, on the device alone."""
        places, moves = drawn
        (scores,) = self._student.answers(self._student.look(places, moves), exact=False)
        return _missed(scores, move_maps(self._maps[places], moves).long())

    def loss(self, places: Array, turn: int) -> torch.Tensor:
        drawn = self._student.draw(places, turn)
        return self.loss_of([on_device(value, self.device) for value in drawn])

    @torch.no_grad()
    def held_out(self) -> float:
        """What the mean overlap lacks, and a little of the loss."""
        classes, losses = len(self._given.names), 0.0
        counts = np.zeros((classes, classes))
        for places in self._student.held():
            chosen = on_device(places, self.device)
            (scores,) = self._student.answers(self._student.look(chosen), exact=True)
            wanted = self._maps[chosen].long()
            losses += float(_missed(scores, wanted)) * len(places)
            known = wanted != IGNORED
            pairs = wanted[known] * classes + scores.argmax(dim=-1)[known]
            found = torch.bincount(pairs, minlength=classes**2).cpu().numpy()
            counts += found.reshape(classes, classes)
        both, of_label = np.diag(counts), counts.sum(axis=1)
        either = of_label + counts.sum(axis=0) - both
        value = float(mean_iou(np.concatenate([both, either, of_label])[None])[0])
        loss = losses / len(self._given.held)
        self.told = phrase(
            "loss {loss}, mean IoU {value} on {count} held out",
            number_text(round(loss, 3)),
            percent_text(value),
            len(self._given.held),
        )
        return 1 - value + _LOSS_SHARE * loss

    def mask(self, progress: float) -> None:
        """There is nothing to mask."""


def _missed(scores: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """The cross entropy over the pixels that count."""
    each = functional.cross_entropy(
        scores.permute(0, 3, 1, 2), wanted, ignore_index=IGNORED, reduction="sum"
    )
    return each / (wanted != IGNORED).sum().clamp_min(1)
