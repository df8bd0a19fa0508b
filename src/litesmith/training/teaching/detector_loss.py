"""The targets of a detector: which places predict which objects, and how far their boxes and scores
are from them.

A place may predict an object that contains the place's centre. Among these places, the ten whose
own answers fit the object best must predict it: the assignment follows what the detector is good
at, and no shape of box has to be foreseen (Feng et al., TOOD, 2021). An object that contains no
centre is assigned the nearest place.
"""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

from typing import NamedTuple

import torch
from torch.nn import functional

from litesmith.tasks.detectors import CENTRE_CODE, SIZE_CODE

# The number of places that must predict an object; the exponents of overlap and score in choosing
# them.
_MOST_PLACES, _OVERLAP_POWER, _SCORE_POWER = 10, 4.0, 0.5

# The weight of boxes beside scores.
_BOXES = 2.0

# No box is larger than the picture by more than this factor: exp has to stay finite.
_MOST_LOG = 4.0

_TINY = 1e-7


class Things(NamedTuple):
    """The objects in images: boxes (pictures, things, 4) as left, top, right, bottom in shares, and
    the class of each (pictures, things), −1 where there is none.
    """

    boxes: torch.Tensor
    classes: torch.Tensor


def decode_boxes(codes: torch.Tensor, anchors: torch.Tensor) -> torch.Tensor:
    """Corners of boxes (pictures, places, 4) from codes (down, across, height, width) and anchors
    (places, 4) by centre and size, across first."""
    centres = codes[..., :2].flip(-1) / CENTRE_CODE * anchors[:, 2:] + anchors[:, :2]
    logs = (codes[..., 2:].flip(-1) / SIZE_CODE).clamp(-_MOST_LOG, _MOST_LOG)
    halves = torch.exp(logs) * anchors[:, 2:] / 2
    return torch.cat([centres - halves, centres + halves], dim=-1)


def detector_loss(
    codes: torch.Tensor, logits: torch.Tensor, anchors: torch.Tensor, things: Things
) -> torch.Tensor:
    """The mean over a batch of the scores' cross entropy and of the boxes' distance from the true
    ones."""
    boxes = decode_boxes(codes.float(), anchors)
    logits = logits.float()
    with torch.no_grad():
        wanted, owner = _assign(boxes, logits, anchors, things)
    total = wanted.sum().clamp_min(1.0)
    scores = functional.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    weight = wanted.amax(dim=-1)
    own = torch.gather(things.boxes, 1, owner[..., None].expand(-1, -1, 4))
    missed = (1 - _generalized_overlap(boxes, own)) * weight
    return (scores.sum() + _BOXES * missed.sum()) / total


def _assign(
    boxes: torch.Tensor, logits: torch.Tensor, anchors: torch.Tensor, things: Things
) -> tuple[torch.Tensor, torch.Tensor]:
    """The target score of each place for each class, and the object assigned to each place."""
    is_there = things.classes >= 0
    kinds = things.classes.clamp_min(0)
    overlap = _overlap(boxes[:, :, None], things.boxes[:, None]) * is_there[:, None]
    chances = torch.sigmoid(logits)
    own = torch.gather(chances, 2, kinds[:, None].expand(-1, len(anchors), -1))
    fit = (own + _TINY) ** _SCORE_POWER * (overlap + _TINY) ** _OVERLAP_POWER
    fit = fit * _may_predict(anchors, things)
    count = min(_MOST_PLACES, len(anchors))
    least = fit.topk(count, dim=1).values[:, -1:]
    fit = torch.where(fit >= least, fit, torch.zeros_like(fit))
    best = fit.amax(dim=1, keepdim=True)
    most = torch.where(fit > 0, overlap, torch.zeros_like(overlap)).amax(dim=1, keepdim=True)
    wanted_scores = fit / (best + _TINY**8) * most.clamp_min(_LEAST_TARGET)
    wanted_scores = torch.where(best > 0, wanted_scores, torch.zeros_like(wanted_scores))
    strength, owner = wanted_scores.max(dim=2)
    classes = torch.gather(kinds, 1, owner)
    wanted = torch.zeros_like(logits).scatter_(2, classes[..., None], strength[..., None])
    return wanted, owner


# The least target score of an object's best place, even while its box is far off.
_LEAST_TARGET = 0.1


def _may_predict(anchors: torch.Tensor, things: Things) -> torch.Tensor:
    """True for the places whose centre an object contains; for an object without any, its nearest
    place.
    """
    centres = anchors[None, :, None, :2]
    low, high = things.boxes[:, None, :, :2], things.boxes[:, None, :, 2:]
    inside = ((centres > low) & (centres < high)).all(dim=-1)
    distance = (centres - (low + high) / 2).square().sum(dim=-1)
    nearest = distance <= distance.amin(dim=1, keepdim=True)
    usable = torch.where(inside.any(dim=1, keepdim=True), inside, nearest)
    return usable & (things.classes >= 0)[:, None]


def _overlap(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    both, either = _areas(boxes, others)
    return both / either.clamp_min(_TINY)


def _areas(boxes: torch.Tensor, others: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The areas of intersections and unions."""
    low = torch.maximum(boxes[..., :2], others[..., :2])
    high = torch.minimum(boxes[..., 2:], others[..., 2:])
    both = (high - low).clamp_min(0).prod(dim=-1)
    areas = [(b[..., 2:] - b[..., :2]).clamp_min(0).prod(dim=-1) for b in (boxes, others)]
    return both, areas[0] + areas[1] - both


def _generalized_overlap(boxes: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """The overlap, less for boxes that are far apart (Rezatofighi et al., 2019)."""
    both, either = _areas(boxes, others)
    low = torch.minimum(boxes[..., :2], others[..., :2])
    high = torch.maximum(boxes[..., 2:], others[..., 2:])
    hull = (high - low).clamp_min(0).prod(dim=-1).clamp_min(_TINY)
    return both / either.clamp_min(_TINY) - (hull - either) / hull
