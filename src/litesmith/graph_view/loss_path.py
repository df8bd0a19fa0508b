"""The way along which a quantized model loses most, and where."""

from collections.abc import Mapping, Sequence

from litesmith.ir.types import Graph, Tensor

# Noise beyond four times the signal is all the same: nothing is left of it.
_LOST = 4.0


def loss_path(graph: Graph, noises: Mapping[int, float]) -> tuple[int, ...]:
    """The ops in the order in which they run: to the output with the largest noise, from what that
    has most of its noise from, and so on back to an input. Empty where no noise is known."""
    makers = _makers(graph)
    known = carried_noise(graph, noises)
    ends = [makers[t] for t in graph.outputs if t in makers]
    path: list[int] = []
    place = _noisiest(ends, known)
    while place is not None:
        path.append(place)
        read = {makers[t] for t in graph.ops[place].inputs if t is not None and t in makers}
        place = _noisiest(sorted(read), known)
    return tuple(reversed(path))


def find_source(graph: Graph, noises: Mapping[int, float]) -> int | None:
    """The op that adds most noise to that of what it reads; None where none adds any."""
    makers, known = _makers(graph), carried_noise(graph, noises)
    best, most = None, 0.0
    for place, op in enumerate(graph.ops):
        if place not in noises:
            continue
        read = [known[makers[t]] or 0.0 for t in op.inputs if t is not None and t in makers]
        added = min(noises[place], _LOST) - min(max(read, default=0.0), _LOST)
        if added > most:
            best, most = place, added
    return best


def carried_noise(graph: Graph, noises: Mapping[int, float]) -> list[float | None]:
    """The noise of what each op writes; of an op whose noise is not known, that of what it reads,
    so that conversions do not end a path."""
    makers: dict[Tensor, int] = {}
    found: list[float | None] = []
    for place, op in enumerate(graph.ops):
        read = [found[makers[t]] for t in op.inputs if t is not None and t in makers]
        carried = max((noise for noise in read if noise is not None), default=None)
        found.append(noises.get(place, carried))
        makers |= dict.fromkeys(op.outputs, place)
    return found


def _makers(graph: Graph) -> dict[Tensor, int]:
    return {t: place for place, op in enumerate(graph.ops) for t in op.outputs}


def _noisiest(places: Sequence[int], known: Sequence[float | None]) -> int | None:
    told = [(noise, place) for place in places if (noise := known[place]) is not None]
    return max(told, default=(0.0, None))[1]
