"""What a recorded step computes with is what a plain one does."""

import numpy as np
import pytest
import torch

from litesmith.training.augment import Augment
from litesmith.training.captured_step import Stepper, make_optimizer, set_rate
from tests.training.flowers import backbone


@pytest.mark.parametrize("how", ["auto", "mix", "flip", "shift", "none"])
def test_chance_drawn_apart_changes_a_batch_in_the_same_way(how: str) -> None:
    augment = Augment(backbone(16).main, how, seed=3)
    batch = torch.from_numpy(np.random.default_rng(0).random((6, 16, 16, 3), np.float32))
    whole = augment([batch], 5)
    drawn = augment.draw([tuple(batch.shape)], 5)
    apart = augment.change([batch], [torch.from_numpy(value) for value in drawn])
    assert isinstance(whole.inputs[0], torch.Tensor) and isinstance(apart.inputs[0], torch.Tensor)
    assert torch.equal(whole.inputs[0], apart.inputs[0])
    assert (whole.mixed is None) == (apart.mixed is None) == (how != "mix")


class Square:
    def __init__(self) -> None:
        self.value = torch.nn.Parameter(torch.tensor([4.0]))

    def loss(self, places: np.ndarray, turn: int) -> torch.Tensor:
        return (self.value * float(places.sum() + turn)).square().sum()


def test_a_stepper_moves_parameters_at_the_rate_that_was_set() -> None:
    problem = Square()
    optimizer = make_optimizer([problem.value], 0.5)
    take = Stepper(problem, [problem.value], optimizer)
    set_rate(optimizer, 0.25)
    take(np.array([1]), 0)
    assert problem.value.item() == pytest.approx(3.75, abs=1e-4)
