"""The path along which a quantized model loses most, and the op that adds most to the loss."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from litesmith.ir.softmax_scores import scores_of
from litesmith.ir.types import Graph, Tensor

# Noise beyond four times the signal counts as equal: nothing of the signal is left.
_LOST = 4.0


class Noise(NamedTuple):
    """The error of an op's output: relative to its signal, and absolute, by which errors that meet
    in one op are compared."""

    share: float
    power: float


class LossPath(NamedTuple):
    """Ops in the order in which they run, and the op that adds most of the remaining error."""

    ops: tuple[int, ...] = ()
    worst: int | None = None


def loss_path(graph: Graph, noises: Mapping[int, Noise]) -> LossPath:
    """The path to the output with the largest share of noise: back from there to the input with
    most noise at each op. It ends before a softmax, which hides errors or magnifies them. Empty
    where no noise is known."""
    makers = {t: place for place, op in enumerate(graph.ops) for t in op.outputs}
    known = _carry_noise(graph, noises)
    scores = (scores_of(graph, t) for t in graph.outputs)
    ends = [makers[t] for t in scores if t in makers]
    path: list[int] = []
    place = _noisiest(ends, [noise and noise.share for noise in known])
    powers = [noise and noise.power for noise in known]
    while place is not None:
        path.append(place)
        read = {makers[t] for t in graph.ops[place].inputs if t is not None and t in makers}
        place = _noisiest(sorted(read), powers)
    found = tuple(reversed(path))
    return LossPath(found, _worst(found, {n: noises[n].share for n in found if n in noises}))


def _carry_noise(graph: Graph, noises: Mapping[int, Noise]) -> list[Noise | None]:
    """The noise of each op's output; for an op with unknown noise, the noise of its input, because
    conversions should not end a path.
    """
    makers: dict[Tensor, int] = {}
    found: list[Noise | None] = []
    for place, op in enumerate(graph.ops):
        read = [found[makers[t]] for t in op.inputs if t is not None and t in makers]
        carried = max((noise for noise in read if noise is not None), default=None)
        found.append(noises.get(place, carried))
        makers |= dict.fromkeys(op.outputs, place)
    return found


def _noisiest(places: Sequence[int], known: Sequence[float | None]) -> int | None:
    candidates = [(noise, place) for place in places if (noise := known[place]) is not None]
    return max(candidates, default=(0.0, None))[1]


def _worst(path: Sequence[int], shares: Mapping[int, float]) -> int | None:
    """The op that adds most of the noise that is still there at the end: noise that a later op
    reduces was no loss."""
    known = [place for place in path if place in shares]
    lasting: list[float] = []
    for place in reversed(known):
        lasting.append(min(shares[place], _LOST, *lasting[-1:]))
    lasting.reverse()
    steps = [b - a for a, b in zip([0.0, *lasting], lasting, strict=False)]
    most = max(steps, default=0.0)
    return known[steps.index(most)] if most > 0 else None
