"""What a detector should predict for images: their boxes, judged by average precision."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence

import numpy as np
import torch

from litesmith.accuracy.average_precision import at_half, average_precision
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tasks.detection import DetectionScorer
from litesmith.tasks.detectors import grid_anchors
from litesmith.tasks.task import Answer, pad_rows
from litesmith.training.student import Student
from litesmith.training.teaching.detector_loss import Things, detector_loss
from litesmith.training.teaching.moved_pictures import move_things
from litesmith.training.teaching.picture_course import PictureSamples, on_device
from litesmith.transfer.feature_maps import input_size
from litesmith.units import number_text, percent_text


class DetectorGoal:
    """The boxes of pictures."""

    def __init__(self, student: Student, samples: PictureSamples, strides: Sequence[int]) -> None:
        self._labels, names, device = samples.labels, samples.names, student.device
        size = input_size(student.model)
        self._anchors = on_device(grid_anchors(size, strides).astype(np.float32), device)
        kinds, states = samples.labels[:, :, 0], samples.labels[:, :, 5]
        classes = np.where(states == 0, kinds, -1)  # crowds are not learned from
        self._classes = on_device(classes.astype(np.int64), device)
        self._boxes = on_device(samples.labels[:, :, 1:5].astype(np.float32), device)
        self._scorer = DetectionScorer("grid", size, tuple(range(len(names))), names)

    def loss(
        self,
        answers: Sequence[torch.Tensor],
        places: torch.Tensor,
        moves: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The distance of predicted boxes and classes from the true ones."""
        codes, logits = answers
        things = Things(self._boxes[places], self._classes[places])
        moved = things if moves is None else move_things(things, moves)
        return detector_loss(codes, logits, self._anchors, moved)

    def count(self, answers: Sequence[torch.Tensor], places: torch.Tensor) -> list[Array]:
        """The outcome on each image, as average precision counts it."""
        boxes, scores = answers[0].cpu().numpy(), torch.sigmoid(answers[1]).cpu().numpy()
        labels = self._labels[places.cpu().numpy()]
        return [
            self._scorer.rows("ap", Answer((box[None], score[None]), label[None]))
            for box, score, label in zip(boxes, scores, labels, strict=True)
        ]

    def score(self, counts: list[Array], loss: float) -> tuple[float, str]:
        """The average precision, and how good the detector is in words."""
        precision = pad_rows(counts)
        has_things = bool(np.nansum(precision[:, 1 : 1 + len(self._scorer.names)]))
        value = average_precision(precision).value if has_things else 0.0
        half = at_half(precision).value if has_things else 0.0
        return value, phrase(
            "loss {loss}, AP {value}, AP50 {half} on {count} held out",
            number_text(round(loss, 3)),
            percent_text(value),
            percent_text(half),
            len(counts),
        )
