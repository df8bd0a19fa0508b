"""Boxes follow their pictures, and codes of boxes mean what the op that chooses takes them for."""

import numpy as np
import pytest
import torch

from litesmith.tasks.detectors import LAYOUTS, grid_anchors
from litesmith.training.teaching.detector_loss import Things, decode_boxes, detector_loss
from litesmith.training.teaching.moved_pictures import draw_moves, move_pictures, move_things


@pytest.mark.parametrize("how", ["auto", "flip", "shift", "none"])
@pytest.mark.parametrize("seed", range(4))
def test_a_box_is_where_its_thing_went(how: str, seed: int) -> None:
    pictures = torch.full((2, 64, 64, 3), 127.5)
    pictures[:, 16:40, 24:44] = 255.0
    box = torch.tensor([24, 16, 44, 40]) / 64
    things = Things(box.expand(2, 1, 4), torch.zeros(2, 1, dtype=torch.int64))
    moves = torch.from_numpy(draw_moves(2, how, np.random.default_rng(seed)))
    moved, found = move_pictures(pictures, moves), move_things(things, moves)
    for picture, boxes, kinds in zip(moved, *found, strict=True):
        if kinds[0] < 0:
            continue
        bright = picture[..., 0] > picture[..., 0].min() + 0.5 * (picture.max() - picture.min())
        rows, columns = torch.nonzero(bright, as_tuple=True)
        seen = torch.stack([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]) / 64
        assert torch.allclose(seen, boxes[0], atol=0.05)


def test_training_and_reading_agree_on_codes() -> None:
    codes = np.random.default_rng(0).normal(0, 1, (80, 4)).astype(np.float32)
    anchors = grid_anchors((64, 64), (8, 16))
    ours = decode_boxes(torch.from_numpy(codes)[None], torch.from_numpy(anchors).float())[0]
    scores = np.zeros((80, 1))
    for place in (0, 37, 79):
        scores[:] = 0
        scores[place] = 0.9
        found = LAYOUTS["grid"].decode((codes, scores), (64, 64))
        assert np.allclose(found.boxes[0], ours[place].clamp(0, 1), atol=1e-5)


def test_a_picture_without_things_teaches_silence_and_a_right_answer_costs_less() -> None:
    anchors = torch.from_numpy(grid_anchors((64, 64), (16,))).float()
    codes, logits = torch.zeros(1, 16, 4), torch.full((1, 16, 2), -4.0, requires_grad=True)
    nothing = Things(torch.zeros(1, 1, 4), torch.full((1, 1), -1))
    detector_loss(codes, logits, anchors, nothing).backward()
    assert logits.grad is not None and bool((logits.grad >= 0).all())
    centre, half = anchors[5, :2], anchors[5, 2:] / 2
    box = torch.cat([centre - half, centre + half]).view(1, 1, 4)
    there = Things(box, torch.ones(1, 1, dtype=torch.int64))
    right = torch.full((1, 16, 2), -4.0)
    right[0, 5, 1] = 4.0
    wrong = torch.full((1, 16, 2), -4.0)
    wrong[0, 5, 0] = 4.0
    assert detector_loss(codes, right, anchors, there) < detector_loss(codes, wrong, anchors, there)
