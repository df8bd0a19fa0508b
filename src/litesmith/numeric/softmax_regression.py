"""Softmax regression: the linear scores that separate classes best, solved and not trained.

Features are first scaled to mean 0 and size 1, so that one strength suits all of them; the result
is converted back to the original features.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

# The strengths of the penalty per sample that are compared, from strong to weak.
STRENGTHS = tuple(10 ** (0.5 - place / 2) for place in range(10))

# Below this gradient only noise is left; the second limit suffices to compare strengths. No
# solution took half of these steps.
_FLAT, _NEARLY_FLAT, _MOST_STEPS = 1e-6, 1e-4, 500

# Up to this many multiplications the linear algebra library uses one core (OpenBLAS: 2**18); from
# the second number on, several cores pay.
_OWN_WORK, _SHARED_WORK = 2**18, 2**25

# The comparison stops after this many losing strengths in a row.
_PATIENCE = 2

_MEMORY = 10
_LEAST_GAIN, _SHRINK, _MOST_SHRINKS = 1e-4, 0.5, 30

# A feature that varies by less than this share of the usual one is noise, and is not scaled up.
_LEAST_SIZE = 1e-3

# Axes with less than this share of the largest, in squares, are rounding errors.
_LEAST_SPREAD = 1e-12


class Linear(NamedTuple):
    """scores = features · weight.T + bias: weight of shape (classes, features)."""

    weight: Floats
    bias: Floats

    def scores(self, features: NDArray[np.floating]) -> Floats:
        """The scores of rows of features: (samples, features) -> (samples, classes)."""
        return features.astype(np.float64) @ self.weight.T + self.bias


class CrossValidated(NamedTuple):
    """A strength, and the results of its heads on samples that they were not solved on."""

    strength: float
    loss: float
    accuracy: float


class Examples(NamedTuple):
    """Training samples: features of shape (samples, features), the class of each sample, and its
    weight; weights have the mean 1.
    """

    features: NDArray[np.floating]
    labels: Numbers
    weights: Floats
    classes: int

    def at(self, places: Numbers) -> "Examples":
        """The samples at these places, with their weights scaled to the mean 1 again."""
        weights = self.weights[places]
        return self._replace(
            features=self.features[places],
            labels=self.labels[places],
            weights=weights / weights.mean(),
        )


def solve(examples: Examples, strength: float) -> Linear:
    """The head with the least loss, plus strength / 2 × the squares of its weights."""
    return _HeadSequence(examples).step(strength)


def cross_validate(
    examples: Examples, folds: Numbers, strengths: Sequence[float] = STRENGTHS
) -> list[CrossValidated]:
    """Cross-validates strengths, from the first on until weaker ones only lose.

    `folds` has the fold in which each sample is judged; samples with −1 are only learned from.
    """
    numbers = np.unique(folds[folds >= 0])
    held = [np.flatnonzero(folds == number) for number in numbers]
    ladders = [_HeadSequence(examples.at(np.flatnonzero(folds != number))) for number in numbers]
    found: list[CrossValidated] = []
    for strength in strengths:
        heads = [ladder.step(strength, _NEARLY_FLAT) for ladder in ladders]
        found.append(_judge(strength, heads, [examples.at(places) for places in held]))
        best = min(range(len(found)), key=lambda place: found[place].loss)
        if len(found) - 1 - best >= _PATIENCE:
            break
    return found


def _judge(strength: float, heads: Sequence[Linear], parts: Sequence[Examples]) -> CrossValidated:
    losses, right, total = 0.0, 0.0, 0.0
    for head, part in zip(heads, parts, strict=True):
        scores = head.scores(part.features)
        chances = log_chances(scores)[np.arange(len(part.labels)), part.labels]
        losses -= float((part.weights * chances).sum())
        right += float((part.weights * (scores.argmax(axis=1) == part.labels)).sum())
        total += float(part.weights.sum())
    return CrossValidated(strength, losses / total, right / total)


class _HeadSequence:
    """Solves heads on one set of examples; each search begins where the one before it ended.

    The features are rotated to the axes along which the samples spread, and scaled by how steep the
    loss can be along each: all directions are then alike, and a dozen steps do the work of
    hundreds.
    """

    def __init__(self, examples: Examples) -> None:
        features = examples.features.astype(np.float64)
        self._mean, self._size = _centre(features)
        scaled = (features - self._mean) / self._size
        self._turn, self._spread = _axes(scaled)
        self._turned = scaled @ self._turn
        self._examples = examples
        self._weight = np.zeros((examples.classes, len(self._spread)))
        self._bias = np.zeros(examples.classes)

    def step(self, strength: float, flat: float = _FLAT) -> Linear:
        """The head of a strength, where the gradient is smaller than `flat`."""
        steep = np.sqrt(strength + self._spread / len(self._turned) / 4)
        problem = _Problem(self._turned / steep, self._examples, strength / np.square(steep))
        found = _minimize(problem, np.column_stack([self._weight * steep, self._bias]), flat)
        self._weight, self._bias = found[:, :-1] / steep, found[:, -1]
        weight = self._weight @ self._turn.T / self._size
        return Linear(weight, self._bias - weight @ self._mean)


def _axes(scaled: Floats) -> tuple[Floats, Floats]:
    """The axes along which samples spread, as columns, and the sum of squares along each."""
    by_sample = len(scaled) < scaled.shape[1]
    squares, sides = np.linalg.eigh(scaled @ scaled.T if by_sample else scaled.T @ scaled)
    used = squares > _LEAST_SPREAD * max(float(squares[-1]), 1e-300)
    axes, squares = sides[:, used], squares[used]
    return scaled.T @ axes / np.sqrt(squares) if by_sample else axes, squares


def log_chances(scores: Floats) -> Floats:
    """The logarithm of SOFTMAX along the last axis."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _centre(features: Floats) -> tuple[Floats, Floats]:
    """The mean and the size of each feature."""
    size = features.std(axis=0)
    usual = float(np.sqrt(np.square(size).mean()))
    return features.mean(axis=0), np.maximum(size, _LEAST_SIZE * usual or 1.0)


class _Problem:
    """The loss of a head with a penalty for each feature but none for the bias, and its
    gradient.
    """

    def __init__(self, scaled: Floats, examples: Examples, strengths: Floats) -> None:
        self._blocks, self._strengths = _blocks(scaled, examples.classes), strengths
        self._labels, self._weights = examples.labels, examples.weights / len(scaled)
        self._rows = np.arange(len(scaled))

    def __call__(self, values: Floats) -> tuple[float, Floats]:
        weight = values[:, :-1]
        scores = np.concatenate([block @ weight.T for block in self._blocks])
        chances = log_chances(scores + values[:, -1])
        missed = -(self._weights * chances[self._rows, self._labels]).sum()
        slope = np.exp(chances)
        slope[self._rows, self._labels] -= 1
        slope *= self._weights[:, None]
        gradient = np.empty_like(values)
        gradient[:, :-1] = self._strengths * weight
        start = 0
        for block in self._blocks:
            gradient[:, :-1] += slope[start : start + len(block)].T @ block
            start += len(block)
        gradient[:, -1] = slope.sum(axis=0)
        return float(missed + (self._strengths * np.square(weight)).sum() / 2), gradient


def _blocks(features: Floats, classes: int) -> list[Floats]:
    """Splits rows into parts small enough for one core: for so little work, waiting for other cores
    takes longer, on a busy machine ten times longer. Large work stays whole.
    """
    products = features.shape[1] * classes
    if products * len(features) > _SHARED_WORK:
        return [features]
    rows = max(1, _OWN_WORK // max(1, products))
    return [features[start : start + rows] for start in range(0, len(features), rows)]


def _minimize(problem: _Problem, start: Floats, flat: float) -> Floats:
    """The minimum of the loss, by L-BFGS; the problem is convex, so there is only one."""
    here, (loss, gradient) = start, problem(start)
    moves: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
    for _ in range(_MOST_STEPS):
        if np.abs(gradient).max() < flat:
            break
        direction = -_divide_by_curvature(gradient, moves)
        slope = float((direction * gradient).sum())
        length = 1.0 if moves else 1.0 / max(1.0, float(np.abs(gradient).sum()))
        for _ in range(_MOST_SHRINKS):
            there = here + length * direction
            new_loss, new_gradient = problem(there)
            if new_loss <= loss + _LEAST_GAIN * length * slope:
                break
            length *= _SHRINK
        else:
            break  # no step helps: only rounding errors are left
        step, change = there - here, new_gradient - gradient
        curve = float((step * change).sum())
        if curve > 0:
            moves.append((step, change, curve))
        here, loss, gradient = there, new_loss, new_gradient
    return here


def _divide_by_curvature(gradient: Floats, moves: Sequence[tuple[Floats, Floats, float]]) -> Floats:
    """The gradient divided by the curvature that the last moves have shown."""
    bent, shares = gradient.copy(), list[float]()
    for step, change, curve in reversed(moves):
        shares.append(float((step * bent).sum()) / curve)
        bent -= shares[-1] * change
    if moves:
        _, change, curve = moves[-1]
        bent *= curve / float(np.square(change).sum())
    for (step, change, curve), share in zip(moves, reversed(shares), strict=True):
        bent += (share - float((change * bent).sum()) / curve) * step
    return bent
