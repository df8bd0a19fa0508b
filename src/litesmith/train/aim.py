"""What training brings a model nearer to: what the original answers, the labels, or both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from litesmith.errors import BadInput
from litesmith.ir.scores import ends_in_softmax
from litesmith.ir.types import Array, Graph

# Softer than the answer itself: how the other classes compare teaches too. Where the original is
# sure, probabilities say little, and the errors of the scores the more.
_TEMPERATURE = 2.0

# An output that varies by less than a hundredth of its size would outweigh all others, for errors
# that no rounding can avoid.
_LEAST_SPREAD = 1e-4


@dataclass(frozen=True)
class Aim:
    """How far answers are from what they are to be; 0 is reached.

    classes  for each output, True where it is scores of classes: these are compared as
             probabilities too, others by squared errors alone
    spreads  the variance of each output of the original, which errors are relative to
    follow   weight of what the original answers; the labels have the rest
    """

    classes: tuple[bool, ...]
    spreads: tuple[float, ...]
    follow: float

    def __call__(
        self,
        answers: Sequence[torch.Tensor],
        wanted: Sequence[torch.Tensor],
        labels: torch.Tensor | None,
    ) -> torch.Tensor:
        """The mean over a batch."""
        total = torch.zeros((), device=answers[0].device)
        if self.follow:
            for place, (answer, target) in enumerate(zip(answers, wanted, strict=True)):
                total = total + self.follow * self._distance(place, answer.float(), target)
        if self.follow < 1:
            assert labels is not None
            scores = answers[0].float().reshape(len(labels), -1)
            total = total + (1 - self.follow) * functional.cross_entropy(scores, labels)
        return total

    def _distance(self, place: int, answer: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        target = target.reshape(answer.shape)  # numbers without a dimension have one in stores
        error = functional.mse_loss(answer, target) / self.spreads[place]
        if not self.classes[place]:
            return error
        ours, theirs = (
            functional.log_softmax(scores / _TEMPERATURE, -1).reshape(-1, scores.shape[-1])
            for scores in (answer, target)
        )
        divergence = functional.kl_div(ours, theirs, reduction="batchmean", log_target=True)
        return divergence.clamp_min(0) * _TEMPERATURE**2 + error


def aim_of(graph: Graph, wanted: Sequence[Array], *, labelled: bool, follow: float) -> Aim:
    """What suits a model's outputs; `wanted` is what the original answers."""
    for tensor, values in zip(graph.outputs, wanted, strict=True):
        if not np.isfinite(values).all():
            raise BadInput(
                f"output {tensor.name!r} of the original is infinite or not a number on some "
                "samples, and cannot be followed; leave these out, or mend the data"
            )
    classes = tuple(
        ends_in_softmax(graph, tensor) or (labelled and place == 0)
        for place, tensor in enumerate(graph.outputs)
    )
    return Aim(classes, tuple(map(_spread, wanted)), follow)


def _spread(values: Array) -> float:
    """The variance of an output; of one that hardly varies, a small part of its size squared."""
    squares = float(np.mean(np.square(values, dtype=np.float64)))
    return max(float(np.var(values, dtype=np.float64)), _LEAST_SPREAD * squares) or 1.0
