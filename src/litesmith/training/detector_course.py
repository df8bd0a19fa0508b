"""A detector in training: pictures with boxes, moved and mirrored together; a `Trainable`."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from litesmith.accuracy.average_precision import at_half, average_precision
from litesmith.data.preparation import Norm
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.tasks.detection import DetectionScorer
from litesmith.tasks.detectors import grid_anchors
from litesmith.tasks.task import Answer, padded
from litesmith.training.detector_loss import Things, detector_loss
from litesmith.training.lesson import batch_size, precision
from litesmith.training.settings import Training
from litesmith.training.student import Student
from litesmith.transfer.feature_maps import input_size
from litesmith.units import number_text, percent_text

# How much larger or smaller a picture is shown, how far it moves in shares of its size, and how far
# its brightness and contrast change.
_LEAST_ZOOM, _MOST_ZOOM, _SHIFT, _LIGHT = 0.6, 1.5, 0.2, 0.25

# A thing of which less than this share is still in the picture is no thing to find.
_LEAST_SEEN = 0.3

# Beside the average precision, the loss tells apart what finds nothing yet.
_LOSS_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class DetectorSamples:
    """Pictures and what is in them.

    pixels   (pictures, height, width, 3) as bytes
    labels   of each, rows of class, box and state, as the task of detection has them
    learned  the places of those to train on
    held     the places of those that decide when to stop
    names    of the classes
    """

    pixels: Array
    labels: Array
    learned: Array
    held: Array
    names: tuple[str, ...]


class DetectorCourse:
    """A detector, pictures, and how far its answers are from them."""

    def __init__(
        self,
        student: Student,
        samples: DetectorSamples,
        strides: Sequence[int],
        norm: Norm,
        training: Training,
    ) -> None:
        self._student, self._given, self._training = student, samples, training
        device, size = student.device, input_size(student.model)
        self._anchors = _on(grid_anchors(size, strides).astype(np.float32), device)
        self._mean, self._std = (
            _on(np.broadcast_to(np.array(v, np.float32), (3,)).copy(), device)
            for v in (norm.mean, norm.std)
        )
        self._is_reversed = norm.reverse
        self._pixels = _kept(samples.pixels, device)
        kinds, states = samples.labels[:, :, 0], samples.labels[:, :, 5]
        classes = np.where(states == 0, kinds, -1)  # crowds are not learned from
        self._classes = _on(classes.astype(np.int64), device)
        self._boxes = _on(samples.labels[:, :, 1:5].astype(np.float32), device)
        names = samples.names
        self._scorer = DetectionScorer("grid", size, tuple(range(len(names))), names)
        self.parameters, self.masks = student.parameters, list[torch.Tensor]()
        self.samples = len(samples.learned)
        self.batch = training.batch or min(_MOST_BATCH, batch_size(student.model, self.samples))
        self.told = ""

    def loss(self, places: Array, turn: int) -> torch.Tensor:
        chosen = torch.from_numpy(self._given.learned[places]).to(self._student.device)
        pictures, things = self._look(chosen)
        random = np.random.default_rng((self._training.seed, turn))
        moved, wanted = move_pictures(pictures, things, self._training.augment, random)
        codes, logits = self._answers(moved, exact=False)
        return detector_loss(codes, logits, self._anchors, wanted)

    @torch.no_grad()
    def held_out(self) -> float:
        """What the average precision lacks, and a little of the loss."""
        losses: list[float] = []
        rows: list[Array] = []
        held = self._given.held
        for start in range(0, len(held), self.batch):
            places = held[start : start + self.batch]
            pictures, things = self._look(torch.from_numpy(places).to(self._student.device))
            codes, logits = self._answers(pictures, exact=True)
            loss = detector_loss(codes, logits, self._anchors, things)
            losses.append(float(loss) * len(places))
            rows += self._rows(codes, logits, places)
        loss = sum(losses) / len(held)
        found = padded(rows)
        has_things = bool(np.nansum(found[:, 1 : 1 + len(self._given.names)]))
        value = average_precision(found).value if has_things else 0.0
        half = at_half(found).value if has_things else 0.0
        self.told = phrase(
            "loss {loss}, AP {value}, AP50 {half} on {count} held out",
            number_text(round(loss, 3)),
            percent_text(value),
            percent_text(half),
            len(held),
        )
        return 1 - value + _LOSS_SHARE * loss

    def mask(self, progress: float) -> None:
        """There is nothing to mask."""

    def _rows(self, codes: torch.Tensor, logits: torch.Tensor, places: Array) -> list[Array]:
        boxes, scores = codes.cpu().numpy(), torch.sigmoid(logits).cpu().numpy()
        return [
            self._scorer.rows("ap", Answer((box[None], score[None]), self._given.labels[p : p + 1]))
            for box, score, p in zip(boxes, scores, places.tolist(), strict=True)
        ]

    def _look(self, places: torch.Tensor) -> tuple[torch.Tensor, Things]:
        """Pictures as floats of 0 to 255, and what is in them."""
        pixels = self._pixels[places.to(self._pixels.device)].to(self._student.device)
        return pixels.float(), Things(self._boxes[places], self._classes[places])

    def _answers(self, pictures: torch.Tensor, *, exact: bool) -> tuple[torch.Tensor, torch.Tensor]:
        ordered = pictures.flip(-1) if self._is_reversed else pictures
        with precision(self._student.device, exact=exact, coarse=True):
            codes, logits = self._student([(ordered - self._mean) / self._std])
        return codes.float(), logits.float()


# More pictures a step teach a small data set less.
_MOST_BATCH = 16


def _on(values: Array, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)


def _kept(pixels: Array, device: torch.device) -> torch.Tensor:
    """The pictures on the device where they fit there."""
    kept = torch.from_numpy(pixels)
    if device.type != "cuda":
        return kept
    free, _ = torch.cuda.mem_get_info(device)
    return kept.to(device) if pixels.nbytes < free // 2 else kept


def move_pictures(
    pictures: torch.Tensor, things: Things, how: str, random: np.random.Generator
) -> tuple[torch.Tensor, Things]:
    """Each picture larger or smaller, moved, mirrored and in another light, its boxes with it."""
    count = len(pictures)
    moves, flips = how in ("auto", "mix", "shift"), how in ("auto", "mix", "flip")
    zoom = np.exp(random.uniform(np.log(_LEAST_ZOOM), np.log(_MOST_ZOOM), count))
    shift = random.uniform(-_SHIFT, _SHIFT, (count, 2))
    mirrored = random.random(count) < 0.5
    light = random.uniform(1 - _LIGHT, 1 + _LIGHT, (count, 2))
    if not (moves or flips):
        return pictures, things
    device = pictures.device
    scale = torch.from_numpy(zoom if moves else np.ones(count)).float().to(device)
    offset = torch.from_numpy(shift if moves else np.zeros((count, 2))).float().to(device)
    sign = torch.from_numpy(np.where(mirrored & flips, -1.0, 1.0)).float().to(device)
    # where each place of the new picture is read from: centre + (place − centre − offset) / scale
    matrix = torch.zeros(count, 2, 3, device=device)
    matrix[:, 0, 0], matrix[:, 1, 1] = sign / scale, 1 / scale
    matrix[:, 0, 2], matrix[:, 1, 2] = -2 * offset[:, 0] * sign / scale, -2 * offset[:, 1] / scale
    planes = pictures.permute(0, 3, 1, 2)
    grid = functional.affine_grid(matrix, list(planes.shape), align_corners=False)
    grey = 127.5
    moved = functional.grid_sample(planes - grey, grid, align_corners=False) + grey
    if moves:
        gain, lift = (torch.from_numpy(v).float().to(device) for v in light.T)
        moved = (moved - grey) * gain.view(-1, 1, 1, 1) + grey * lift.view(-1, 1, 1, 1)
        moved = moved.clamp(0, 255)
    return moved.permute(0, 2, 3, 1), _move_things(things, scale, offset, sign)


def _move_things(
    things: Things, scale: torch.Tensor, offset: torch.Tensor, sign: torch.Tensor
) -> Things:
    corners = things.boxes.view(*things.boxes.shape[:2], 2, 2) - 0.5
    turned = torch.stack([sign, torch.ones_like(sign)], dim=1)[:, None, None]
    placed = corners * turned * scale[:, None, None, None] + offset[:, None, None] + 0.5
    low, high = placed.amin(dim=2), placed.amax(dim=2)
    whole = (high - low).clamp_min(0).prod(dim=-1)
    low, high = low.clamp(0, 1), high.clamp(0, 1)
    seen = (high - low).clamp_min(0).prod(dim=-1)
    is_there = (things.classes >= 0) & (seen > _LEAST_SEEN * whole)
    classes = torch.where(is_there, things.classes, torch.full_like(things.classes, -1))
    return Things(torch.cat([low, high], dim=-1), classes)
