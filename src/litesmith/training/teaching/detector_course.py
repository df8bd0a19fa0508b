"""A detector in training: pictures with boxes, moved and mirrored together; a `Trainable`."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence

import numpy as np
import torch

from litesmith.accuracy.average_precision import at_half, average_precision
from litesmith.data.preparation import Norm
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tasks.detection import DetectionScorer
from litesmith.tasks.detectors import grid_anchors
from litesmith.tasks.task import Answer, padded
from litesmith.training.settings import Training
from litesmith.training.student import Student
from litesmith.training.teaching.detector_loss import Things, detector_loss
from litesmith.training.teaching.moved_pictures import move_things
from litesmith.training.teaching.picture_samples import PictureSamples, PictureStudent, on_device
from litesmith.transfer.feature_maps import input_size
from litesmith.units import number_text, percent_text

# Beside the average precision, the loss tells apart what finds nothing yet.
_LOSS_SHARE = 0.01


class DetectorCourse:
    """A detector, pictures, and how far its answers are from them."""

    def __init__(
        self,
        student: Student,
        samples: PictureSamples,
        strides: Sequence[int],
        norm: Norm,
        training: Training,
    ) -> None:
        self._student = PictureStudent(student, samples, norm, training)
        self._given, self.device, self.batch = samples, student.device, self._student.batch
        size = input_size(student.model)
        self._anchors = on_device(grid_anchors(size, strides).astype(np.float32), self.device)
        kinds, states = samples.labels[:, :, 0], samples.labels[:, :, 5]
        classes = np.where(states == 0, kinds, -1)  # crowds are not learned from
        self._classes = on_device(classes.astype(np.int64), self.device)
        self._boxes = on_device(samples.labels[:, :, 1:5].astype(np.float32), self.device)
        names = samples.names
        self._scorer = DetectionScorer("grid", size, tuple(range(len(names))), names)
        self.parameters, self.masks = student.parameters, list[torch.Tensor]()
        self.samples = len(samples.learned)
        self.told = ""

    def draw(self, places: Array, turn: int) -> list[Array] | None:
        """The places of pictures and what chance does to them; None where they lie elsewhere."""
        return self._student.draw(places, turn) if self._student.is_near else None

    def loss_of(self, drawn: Sequence[torch.Tensor]) -> torch.Tensor:
        """The loss by what `draw` gave, on the device alone."""
        places, moves = drawn
        codes, logits = self._student.answers(self._student.look(places, moves), exact=False)
        return detector_loss(codes, logits, self._anchors, move_things(self._things(places), moves))

    def loss(self, places: Array, turn: int) -> torch.Tensor:
        drawn = self._student.draw(places, turn)
        return self.loss_of([on_device(value, self.device) for value in drawn])

    @torch.no_grad()
    def held_out(self) -> float:
        """What the average precision lacks, and a little of the loss."""
        losses: list[float] = []
        rows: list[Array] = []
        for places in self._student.held():
            chosen = on_device(places, self.device)
            codes, logits = self._student.answers(self._student.look(chosen), exact=True)
            loss = detector_loss(codes, logits, self._anchors, self._things(chosen))
            losses.append(float(loss) * len(places))
            rows += self._rows(codes, logits, places)
        loss = sum(losses) / len(rows)
        found = padded(rows)
        has_things = bool(np.nansum(found[:, 1 : 1 + len(self._given.names)]))
        value = average_precision(found).value if has_things else 0.0
        half = at_half(found).value if has_things else 0.0
        self.told = phrase(
            "loss {loss}, AP {value}, AP50 {half} on {count} held out",
            number_text(round(loss, 3)),
            percent_text(value),
            percent_text(half),
            len(rows),
        )
        return 1 - value + _LOSS_SHARE * loss

    def mask(self, progress: float) -> None:
        """There is nothing to mask."""

    def _things(self, places: torch.Tensor) -> Things:
        return Things(self._boxes[places], self._classes[places])

    def _rows(self, codes: torch.Tensor, logits: torch.Tensor, places: Array) -> list[Array]:
        boxes, scores = codes.cpu().numpy(), torch.sigmoid(logits).cpu().numpy()
        return [
            self._scorer.rows("ap", Answer((box[None], score[None]), self._given.labels[p : p + 1]))
            for box, score, p in zip(boxes, scores, places.tolist(), strict=True)
        ]
