"""Images zoomed, moved, mirrored and lit at random; their boxes and class maps move with them."""

# pyright: reportUnknownMemberType=false
# torch leaves parts of its types open.

import numpy as np
import torch
from torch.nn import functional

from litesmith.ir.types import Array
from litesmith.tasks.segmentation import IGNORED
from litesmith.training.teaching.detector_loss import Things

# How much larger or smaller a picture is shown, how far it moves in shares of its size, and how far
# its brightness and contrast change.
_LEAST_ZOOM, _MOST_ZOOM, _SHIFT, _LIGHT = 0.6, 1.5, 0.2, 0.25

# An object of which less than this share is still in the image need not be found.
_LEAST_SEEN = 0.3

_GREY = 127.5


def draw_moves(count: int, how: str, random: np.random.Generator) -> Array:
    """Draws the random changes of images: −1 where mirrored, the zoom, the shift across and down,
    the contrast and the brightness; no change where `how` is none."""
    moves, flips = how in ("auto", "mix", "shift"), how in ("auto", "mix", "flip")
    drawn = np.ones((count if moves or flips else 0, 6), np.float32)
    zoom = np.exp(random.uniform(np.log(_LEAST_ZOOM), np.log(_MOST_ZOOM), len(drawn)))
    shift = random.uniform(-_SHIFT, _SHIFT, (len(drawn), 2))
    mirrored = random.random(len(drawn)) < 0.5
    light = random.uniform(1 - _LIGHT, 1 + _LIGHT, (len(drawn), 2))
    drawn[:, 0] = np.where(mirrored & flips, -1, 1)
    drawn[:, 1], drawn[:, 2:4], drawn[:, 4:] = (zoom, shift, light) if moves else (1, 0, 1)
    return drawn


def _places(moves: torch.Tensor, size: torch.Size) -> torch.Tensor:
    """Where each place of a new image is read from: centre + (place − centre − shift) / zoom."""
    sign, zoom, across, down = moves[:, :4].unbind(1)
    nothing = torch.zeros_like(sign)
    rows = torch.stack([sign / zoom, nothing, -2 * across * sign / zoom], dim=1)
    columns = torch.stack([nothing, 1 / zoom, -2 * down / zoom], dim=1)
    return functional.affine_grid(torch.stack([rows, columns], dim=1), list(size), False)


def move_pictures(pictures: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
    """Applies the drawn changes to images (images, height, width, 3) of 0 to 255."""
    if not len(moves):
        return pictures
    planes = pictures.permute(0, 3, 1, 2) - _GREY
    moved = functional.grid_sample(planes, _places(moves, planes.shape), align_corners=False)
    contrast, light = moves[:, 4].view(-1, 1, 1, 1), moves[:, 5].view(-1, 1, 1, 1)
    return (moved * contrast + _GREY * light).clamp(0, 255).permute(0, 2, 3, 1)


def move_maps(maps: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
    """Applies the drawn changes to class maps (images, height, width); places from outside are
    ignored."""
    if not len(moves):
        return maps
    planes = maps[:, None].float() - IGNORED
    places = _places(moves, planes.shape)
    moved = functional.grid_sample(planes, places, mode="nearest", align_corners=False)
    return (moved[:, 0] + IGNORED).round().to(maps.dtype)


def move_things(things: Things, moves: torch.Tensor) -> Things:
    """Moves boxes with their objects, and removes objects that have left the image."""
    if not len(moves):
        return things
    sign, zoom = moves[:, 0], moves[:, 1]
    corners = things.boxes.view(*things.boxes.shape[:2], 2, 2) - 0.5
    turned = torch.stack([sign, torch.ones_like(sign)], dim=1)[:, None, None]
    placed = corners * turned * zoom[:, None, None, None] + moves[:, None, None, 2:4] + 0.5
    low, high = placed.amin(dim=2), placed.amax(dim=2)
    whole = (high - low).clamp_min(0).prod(dim=-1)
    low, high = low.clamp(0, 1), high.clamp(0, 1)
    visible_area = (high - low).clamp_min(0).prod(dim=-1)
    is_there = (things.classes >= 0) & (visible_area > _LEAST_SEEN * whole)
    classes = torch.where(is_there, things.classes, torch.full_like(things.classes, -1))
    return Things(torch.cat([low, high], dim=-1), classes)
