"""What a segmenter should predict for images: the class of every pixel, judged by mean IoU."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from litesmith.accuracy.scoring import mean_iou
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tasks.segmentation import IGNORED
from litesmith.training.student import Student
from litesmith.training.teaching.moved_pictures import move_maps
from litesmith.training.teaching.picture_course import PictureSamples, on_device
from litesmith.units import number_text, percent_text


class SegmenterGoal:
    """The masks of pictures. The strides are those of the network's graph."""

    def __init__(self, student: Student, samples: PictureSamples, strides: Sequence[int]) -> None:
        del strides
        self._classes, self._held = len(samples.names), len(samples.held)
        self._maps = on_device(samples.labels.astype(np.uint8), student.device)

    def loss(
        self,
        answers: Sequence[torch.Tensor],
        places: torch.Tensor,
        moves: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The cross entropy over the pixels that count."""
        (scores,), maps = answers, self._maps[places]
        wanted = (maps if moves is None else move_maps(maps, moves)).long()
        each = functional.cross_entropy(
            scores.permute(0, 3, 1, 2), wanted, ignore_index=IGNORED, reduction="sum"
        )
        return each / (wanted != IGNORED).sum().clamp_min(1)

    def count(self, answers: Sequence[torch.Tensor], places: torch.Tensor) -> list[Array]:
        """The number of pixels of each class that were predicted as each class."""
        (scores,), wanted = answers, self._maps[places].long()
        known = wanted != IGNORED
        pairs = wanted[known] * self._classes + scores.argmax(dim=-1)[known]
        found = torch.bincount(pairs, minlength=self._classes**2).cpu().numpy()
        return [found.reshape(self._classes, self._classes)]

    def score(self, counts: list[Array], loss: float) -> tuple[float, str]:
        """The mean overlap of the classes, and how good the segmenter is in words."""
        table = np.sum(counts, axis=0, dtype=np.float64)
        both, of_label = np.diag(table), table.sum(axis=1)
        either = of_label + table.sum(axis=0) - both
        value = float(mean_iou(np.concatenate([both, either, of_label])[None])[0])
        return value, phrase(
            "loss {loss}, mean IoU {value} on {count} held out",
            number_text(round(loss, 3)),
            percent_text(value),
            self._held,
        )
