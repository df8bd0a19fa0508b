"""The order of ops that needs least memory: the order decides which tensors are live at once."""

from dataclasses import replace

from litesmith.ir.edit import drop_plan
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.micro.arena import list_requests
from litesmith.micro.buffers import align_up, is_planned, list_buffers, live_bytes, tensor_bytes
from litesmith.micro.kernel_memory import kernel_of

# The width of the beam, and the number of pairs of ops beyond which it is narrower.
_WIDTH, _PAIRS = 64, 20_000


def reorder_ops(model: Model) -> Model:
    """Reorders the main graph's ops for the lowest peak; the model stays the same where no lower
    peak is found, or where ops have effects beside their outputs."""
    graph = model.main
    if len(graph.ops) < 3 or any(_is_bound(op) for op in graph.ops):
        return model
    order = _search(graph)
    if order == list(range(len(graph.ops))):
        return model
    changed = replace(graph, ops=tuple(graph.ops[n] for n in order))
    other = drop_plan(replace(model, graphs=(changed, *model.graphs[1:])))
    return other if peak_bytes(other) < peak_bytes(model) else model


def peak_bytes(model: Model) -> int:
    """The largest number of bytes live at one tick, a lower bound for plans of this order."""
    return max(live_bytes(list_buffers(model, list_requests(model))).values(), default=0)


def _is_bound(op: Op) -> bool:
    row = OPS[op.kind]
    has_state = any(t is not None and t.variable for t in op.inputs)
    has_resource = any(t is not None and t.dtype == "resource" for t in (*op.inputs, *op.outputs))
    return row.is_control_flow or row.has_effect or has_state or has_resource


def _search(graph: Graph) -> list[int]:
    """A beam search over orders, by the peak and then by the live bytes."""
    facts = _Facts(graph)
    width = max(1, min(_WIDTH, _PAIRS // len(graph.ops) ** 2))
    beam: list[tuple[int, int, tuple[int, ...], frozenset[int]]] = [(0, 0, (), frozenset())]
    for _ in graph.ops:
        found: dict[frozenset[int], tuple[int, int, tuple[int, ...], frozenset[int]]] = {}
        for peak, _, order, done in beam:
            for number in facts.ready(done):
                now = done | {number}
                during, after = facts.live(done, number)
                state = (max(peak, during), after, (*order, number), now)
                if now not in found or state[:3] < found[now][:3]:
                    found[now] = state
        beam = sorted(found.values(), key=lambda state: state[:3])[:width]
    return list(beam[0][2])


class _Facts:
    """The facts of a graph that a search over orders needs."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        made_by = {t: n for n, op in enumerate(graph.ops) for t in op.outputs}
        self._needs = [{made_by[t] for t in op.inputs if t in made_by} for op in graph.ops]
        self._bytes = {t: align_up(tensor_bytes(t)) for t in graph.tensors if is_planned(t)}
        self._readers: dict[Tensor, set[int]] = {}
        for n, op in enumerate(graph.ops):
            for tensor in filter(None, op.inputs):
                self._readers.setdefault(tensor, set()).add(n)
        self._scratch = [_scratch(op) for op in graph.ops]

    def ready(self, done: frozenset[int]) -> list[int]:
        return [n for n, needs in enumerate(self._needs) if n not in done and needs <= done]

    def live(self, done: frozenset[int], number: int) -> tuple[int, int]:
        """Bytes while an op runs after these, and once it has run."""
        before = self._live_tensors(done)
        op = self._graph.ops[number]
        during = before | set(op.outputs) | {t for t in op.inputs if t is not None}
        after = self._live_tensors(done | {number})
        return self._sum(during) + self._scratch[number], self._sum(after)

    def _live_tensors(self, done: frozenset[int]) -> set[Tensor]:
        made = {t for n in done for t in self._graph.ops[n].outputs} | set(self._graph.inputs)
        return {t for t in made if t in self._graph.outputs or self._readers.get(t, set()) - done}

    def _sum(self, tensors: set[Tensor]) -> int:
        return sum(self._bytes.get(t, 0) for t in tensors)


def _scratch(op: Op) -> int:
    kernel = kernel_of(op)
    return 0 if kernel is None else sum(map(align_up, kernel.scratch(op, 4)))
