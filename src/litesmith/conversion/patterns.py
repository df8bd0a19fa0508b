"""Operators that exporters shatter into pieces, put together again before the rules see them."""

from collections.abc import Callable
from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import numpy as np

from litesmith.conversion.core.inner_graphs import read_names
from litesmith.conversion.core.source import Node, Setting, SourceGraph
from litesmith.ir.types import Array


class _Parts:
    """A graph's nodes by their outputs, and the readers of each value."""

    def __init__(self, graph: SourceGraph) -> None:
        self.makers = {name: node for node in graph.nodes for name in node.outputs if name}
        self.readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in read_names(node):
                self.readers.setdefault(name, []).append(node)
        self.leaving = {value.name for value in graph.outputs}
        self.constants = dict(graph.constants)
        for node in graph.nodes:
            value = node.settings.get("value")
            if node.kind == "Constant" and isinstance(value, np.ndarray):
                self.constants[node.outputs[0]] = value

    def number(self, name: str) -> float | None:
        """The one number of a constant."""
        value: Array | None = self.constants.get(name)
        return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else None

    def maker(self, name: str, kind: str) -> Node | None:
        node = self.makers.get(name)
        return node if node is not None and node.kind == kind and not node.domain else None

    def is_inner(self, node: Node) -> bool:
        """True where a single node reads the node's output."""
        name = node.outputs[0]
        return len(self.readers.get(name, ())) == 1 and name not in self.leaving

    def operands(self, node: Node) -> list[tuple[str, str]]:
        """The inputs of a node of two, in both orders."""
        if len(node.inputs) != 2:
            return []
        a, b = node.inputs
        return [(a, b), (b, a)]

    def scaled(self, name: str, kind: str, number: float) -> str | None:
        """x where the name is x·number or x/number or x+number, by the kind."""
        node = self.maker(name, kind)
        if node is None or not self.is_inner(node):
            return None
        ways = self.operands(node) if kind in ("Mul", "Add") else self.operands(node)[:1]
        for x, other in ways:
            found = self.number(other)
            if found is not None and abs(found - number) <= 1e-5 * abs(number):
                return x
        return None


def _gelu(parts: _Parts, node: Node) -> Node | None:
    """x · (1 + erf(x / √2)) · 0.5, in any order of its factors."""
    if node.kind != "Mul":
        return None
    for rest in _without_half(parts, node):
        for x, bracket in rest:
            add = parts.maker(bracket, "Add")
            if add is None or not parts.is_inner(add):
                continue
            for one, erf_name in parts.operands(add):
                erf = parts.maker(erf_name, "Erf")
                if parts.number(one) != 1 or erf is None or not parts.is_inner(erf):
                    continue
                inner = parts.scaled(erf.inputs[0], "Div", sqrt(2)) or parts.scaled(
                    erf.inputs[0], "Mul", 1 / sqrt(2)
                )
                if inner == x:
                    return Node("Gelu", (x,), node.outputs, {}, node.name)
    return None


def _without_half(parts: _Parts, node: Node) -> list[list[tuple[str, str]]]:
    """Pairs of factors whose product, halved, is the node."""
    found: list[list[tuple[str, str]]] = []
    for a, b in parts.operands(node):
        product = parts.maker(b, "Mul")
        if parts.number(a) == 0.5 and product is not None and parts.is_inner(product):
            found.append(parts.operands(product))
        half = parts.scaled(b, "Mul", 0.5)
        if half is not None:
            found.append([(a, half), (half, a)])
    return found


def _hard_swish(parts: _Parts, node: Node) -> Node | None:
    """x · hard_sigmoid(x), and x · clip(x + 3, 0, 6) / 6."""
    if node.kind == "Div" and parts.number(node.inputs[1]) == 6:
        product = parts.maker(node.inputs[0], "Mul")
        if product is not None and parts.is_inner(product):
            for x, other in parts.operands(product):
                if _is_ramp(parts, other, x):
                    return Node("HardSwish", (x,), node.outputs, {}, node.name)
    if node.kind != "Mul":
        return None
    for x, other in parts.operands(node):
        gate = parts.maker(other, "HardSigmoid")
        if gate is not None and gate.inputs[0] == x and parts.is_inner(gate):
            alpha, beta = gate.number("alpha", 0.2), gate.number("beta", 0.5)
            if abs(alpha - 1 / 6) < 1e-5 and abs(beta - 0.5) < 1e-6:
                return Node("HardSwish", (x,), node.outputs, {}, node.name)
        divided = parts.scaled(other, "Div", 6) or parts.scaled(other, "Mul", 1 / 6)
        if divided is not None and _is_ramp(parts, divided, x):
            return Node("HardSwish", (x,), node.outputs, {}, node.name)
    return None


def _is_ramp(parts: _Parts, name: str, x: str) -> bool:
    """True where the name is clip(x + 3, 0, 6)."""
    clip = parts.maker(name, "Clip")
    if clip is None or not parts.is_inner(clip):
        return False
    bounds = [clip.settings.get("min"), clip.settings.get("max")]
    if len(clip.inputs) == 3:
        bounds = [parts.number(n) for n in clip.inputs[1:]]
    return bounds == [0, 6] and parts.scaled(clip.inputs[0], "Add", 3) == x


class _Folded(NamedTuple):
    """A Reshape to more dimensions, a Transpose there and a Reshape back, all by constants."""

    source: str
    inner: list[int]
    order: tuple[int, ...]
    outer: list[int]


def _folded(parts: _Parts, node: Node, rank: int) -> _Folded | None:
    turn = parts.maker(node.inputs[0], "Transpose") if node.kind == "Reshape" else None
    first = parts.maker(turn.inputs[0], "Reshape") if turn is not None else None
    if turn is None or first is None or not (parts.is_inner(turn) and parts.is_inner(first)):
        return None
    if len(first.inputs) < 2 or len(node.inputs) < 2:
        return None
    inner, outer = (parts.constants.get(n.inputs[1]) for n in (first, node))
    if inner is None or outer is None or inner.size != rank or outer.size != 4:
        return None
    shapes = [[int(size) for size in array.reshape(-1)] for array in (inner, outer)]
    return _Folded(first.inputs[0], shapes[0], turn.integers("perm"), shapes[1])


def _pixel_shuffle(parts: _Parts, node: Node) -> Node | None:
    """Six dimensions and back, which DepthToSpace does in one op."""
    found = _folded(parts, node, 6)
    modes: dict[tuple[int, ...], tuple[str, int, int]] = {
        (0, 1, 4, 2, 5, 3): ("CRD", 2, 3),
        (0, 3, 4, 1, 5, 2): ("DCR", 1, 2),
    }
    if found is None or found.order not in modes:
        return None
    mode, a, b = modes[found.order]
    block, shape = found.inner[a], found.inner
    fits = all(
        size in (places * block, -1)
        for size, places in zip(found.outer[2:], shape[4:], strict=True)
    )
    if block != shape[b] or block < 2 or not fits:
        return None
    settings: dict[str, Setting] = {"blocksize": block, "mode": mode}
    return Node("DepthToSpace", (found.source,), node.outputs, settings, node.name)


def _channel_shuffle(parts: _Parts, node: Node) -> Node | None:
    """Groups of channels, interleaved: five dimensions and back."""
    found = _folded(parts, node, 5)
    if found is None or found.order != (0, 2, 1, 3, 4):
        return None
    groups, size = found.inner[1:3]
    fits = found.outer[1] in (groups * size, -1) and found.outer[2] == found.inner[3]
    if min(groups, size) < 1 or not fits:
        return None
    settings: dict[str, Setting] = {"groups": groups}
    return Node("ChannelShuffle", (found.source,), node.outputs, settings, node.name, "litesmith")


_PATTERNS: tuple[Callable[[_Parts, Node], Node | None], ...] = (
    _gelu,
    _hard_swish,
    _pixel_shuffle,
    _channel_shuffle,
)


def joined(graph: SourceGraph) -> SourceGraph:
    """The graph with each shattered pattern as one node; pieces that nobody reads are gone."""
    return _with_ordered_channels(_joined(_without_copies(graph)))


def _joined(graph: SourceGraph) -> SourceGraph:
    parts = _Parts(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        whole = next((found for p in _PATTERNS if (found := p(parts, node))), None)
        nodes.append(_inside(node) if whole is None else whole)
    if len(nodes) == len(graph.nodes) and all(
        a is b for a, b in zip(nodes, graph.nodes, strict=True)
    ):
        return graph
    kept = _read(nodes, parts.leaving)
    return replace(graph, nodes=tuple(kept))


def _with_ordered_channels(graph: SourceGraph) -> SourceGraph:
    """A pixel shuffle behind a convolution takes the channels in the order that LiteRT's op wants
    them in: the convolution's weights are laid out so."""
    parts = _Parts(graph)
    changed: dict[Node, Node] = {}
    constants = dict(graph.constants)
    for node in graph.nodes:
        conv = parts.maker(node.inputs[0], "Conv") if _is_crossed(node) else None
        if conv is None or not parts.is_inner(conv):
            continue
        inputs = [name for name in conv.inputs[1:] if name]
        arrays = [parts.constants[name] for name in inputs if name in parts.constants]
        counts = {len(array) if array.ndim else 0 for array in arrays}
        count, block = max(counts, default=0), node.integer("blocksize") ** 2
        is_known = len(arrays) == len(inputs) and len(counts) == 1 and count > 0
        if not is_known or conv.integer("group", 1) != 1 or count % block:
            continue
        order: Array = np.arange(count, dtype=np.int64).reshape(-1, block).T.reshape(-1)
        made = f"{conv.outputs[0]}/ordered"
        ordered = {f"{made}.{place}": array[order] for place, array in enumerate(arrays)}
        constants |= ordered
        names = (conv.inputs[0], *ordered)
        changed[conv] = replace(conv, inputs=names, outputs=(made,))
        changed[node] = replace(node, inputs=(made,), settings={**node.settings, "mode": "DCR"})
    if not changed:
        return graph
    nodes = tuple(changed.get(node, node) for node in graph.nodes)
    return replace(graph, nodes=nodes, constants=constants)


def _is_crossed(node: Node) -> bool:
    """True for a pixel shuffle as torch has it."""
    if node.kind != "DepthToSpace" or node.domain or not node.inputs:
        return False
    return node.settings.get("mode") == "CRD" and node.integer("blocksize") > 1


def _without_copies(graph: SourceGraph) -> SourceGraph:
    """The graph whose nodes read the original instead of a copy."""
    leaving = {value.name for value in graph.outputs}
    copies = {
        node.outputs[0]: node.inputs[0]
        for node in graph.nodes
        if node.kind == "Identity" and not node.domain and node.outputs[0] not in leaving
    }

    def origin(name: str) -> str:
        while name in copies:
            name = copies[name]
        return name

    if not copies:
        return graph
    nodes = [replace(node, inputs=tuple(map(origin, node.inputs))) for node in graph.nodes]
    return replace(graph, nodes=tuple(_read(nodes, leaving)))


def _inside(node: Node) -> Node:
    """The node with the graphs inside it joined."""
    if not any(isinstance(v, SourceGraph) for v in node.settings.values()):
        return node
    settings = {k: joined(v) if isinstance(v, SourceGraph) else v for k, v in node.settings.items()}
    return replace(node, settings=settings)


def _read(nodes: list[Node], leaving: set[str]) -> list[Node]:
    """The nodes that something is read of."""
    wanted = set(leaving)
    kept: list[Node] = []
    for node in reversed(nodes):
        if any(name in wanted for name in node.outputs) or not any(node.outputs):
            kept.append(node)
            wanted.update(read_names(node))
    return kept[::-1]
