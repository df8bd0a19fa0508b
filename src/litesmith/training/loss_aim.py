"""What training brings a model nearer to: what the original answers, the labels, or both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from litesmith.errors import BadInput
from litesmith.ir.softmax_scores import ends_in_softmax
from litesmith.ir.types import Array, Graph, Tensor
from litesmith.training.augment import Mixed
from litesmith.units import plain

# Softer than the answer itself: how the other classes compare teaches too. Where the original is
# sure, probabilities say little, and the errors of the scores the more.
_TEMPERATURE = 2.0

# An output that varies by less than a hundredth of its size would outweigh all others, for errors
# that no rounding can avoid.
_LEAST_SPREAD = 1e-4

# Samples that are looked at in one go.
_AT_ONCE = 64


@dataclass(frozen=True)
class Aim:
    """How far answers are from what they are to be; 0 is reached.

    classes  for each output, True where it is scores of classes: these are compared as
             probabilities too, others by squared errors alone
    spreads  the variance of each output of the original, which errors are relative to
    scores   the place of the output that labels are about; None where there are none
    follow   weight of what the original answers; the labels have the rest
    """

    classes: tuple[bool, ...]
    spreads: tuple[float, ...]
    scores: int | None = None
    follow: float = 1.0

    def __call__(
        self,
        answers: Sequence[torch.Tensor],
        wanted: Sequence[torch.Tensor],
        labels: torch.Tensor | None,
        mixed: Mixed | None = None,
    ) -> torch.Tensor:
        """The mean over a batch; a mixed sample has the labels of both, by their shares."""
        total = torch.zeros((), device=answers[0].device)
        if self.follow:
            for place, (answer, target) in enumerate(zip(answers, wanted, strict=True)):
                total = total + self.follow * self._distance(place, answer.float(), target)
        if self.follow < 1:
            assert labels is not None and self.scores is not None
            scores = answers[self.scores].float().reshape(len(labels), -1)
            total = total + (1 - self.follow) * _missed(scores, labels, mixed)
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


def _missed(scores: torch.Tensor, labels: torch.Tensor, mixed: Mixed | None) -> torch.Tensor:
    """The cross entropy of labels."""
    if mixed is None:
        return functional.cross_entropy(scores, labels)
    own, others = (
        functional.cross_entropy(scores, which, reduction="none")
        for which in (labels, labels[mixed.others])
    )
    return (mixed.kept * own + (1 - mixed.kept) * others).mean()


def aim_of(
    graph: Graph, wanted: Sequence[Array], *, scores: int | None = None, follow: float = 1.0
) -> Aim:
    """What suits a model's outputs; `wanted` is what the original answers, `scores` the place of
    the output that labels are about."""
    spreads = tuple(map(_spread, graph.outputs, wanted))
    classes = tuple(
        ends_in_softmax(graph, tensor) or place == scores
        for place, tensor in enumerate(graph.outputs)
    )
    return Aim(classes, spreads, scores, follow if scores is not None else 1.0)


def scores_place(graph: Graph, rows: int) -> int | None:
    """The output with a score for each class of so many rows, by its place; a softmax is first."""
    fitting = [
        place
        for place, tensor in enumerate(graph.outputs)
        if tensor.shape and tensor.elements == rows * tensor.shape[-1] > rows
    ]
    sure = [place for place in fitting if ends_in_softmax(graph, graph.outputs[place])]
    return next(iter((*sure, *fitting)), None)


def _spread(tensor: Tensor, values: Array) -> float:
    """The variance of an output; of one that hardly varies, a small part of its size squared."""
    count, total, squares = 0, 0.0, 0.0
    for start in range(0, len(values), _AT_ONCE):  # all of them may not fit into memory
        part = values[start : start + _AT_ONCE].astype(np.float64)
        count, total, squares = count + part.size, total + part.sum(), squares + (part**2).sum()
    if not np.isfinite(squares):
        raise BadInput(
            "output {name!r} of the original is infinite or not a number on some samples, "
            "and cannot be followed; leave these out, or mend the data",
            plain(tensor.name),
        )
    square, mean = squares / max(count, 1), total / max(count, 1)
    return max(float(square - mean**2), _LEAST_SPREAD * float(square)) or 1.0
