"""A model of another tool, as the rules see it: nodes that speak ONNX, whatever wrote the file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from litesmith.conversion.core.element_types import DTYPES
from litesmith.errors import BadModel
from litesmith.ir.types import Array

# A setting of a node. A text is bytes of UTF-8 in the file.
Setting: TypeAlias = "int | float | str | Array | SourceGraph | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]"  # noqa: E501


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """One call: an operator by its ONNX name; values go by name, "" for one left out."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: Mapping[str, Setting] = field(default_factory=dict[str, Setting])
    name: str = ""
    domain: str = ""

    @property
    def place(self) -> str:
        """The node's name in messages."""
        return self.name or next(filter(None, self.outputs), "") or self.kind

    def integer(self, name: str, default: int = 0) -> int:
        value = self.settings.get(name, default)
        if not isinstance(value, int):
            raise self._wrong(name)
        return value

    def number(self, name: str, default: float = 0.0) -> float:
        value = self.settings.get(name, default)
        if not isinstance(value, int | float):
            raise self._wrong(name)
        return float(value)

    def word(self, name: str, default: str = "") -> str:
        value = self.settings.get(name, default)
        if not isinstance(value, str):
            raise self._wrong(name)
        return value

    def integers(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        value = self.settings.get(name, tuple(default))
        if not isinstance(value, tuple):
            raise self._wrong(name)
        return tuple(int(v) for v in value)

    def numbers(self, name: str) -> tuple[float, ...]:
        value = self.settings.get(name, ())
        if not isinstance(value, tuple):
            raise self._wrong(name)
        return tuple(float(v) for v in value)

    def words(self, name: str) -> tuple[str, ...]:
        value = self.settings.get(name, ())
        if not isinstance(value, tuple):
            raise self._wrong(name)
        return tuple(str(v) for v in value)

    def graph(self, name: str) -> "SourceGraph":
        value = self.settings.get(name)
        if not isinstance(value, SourceGraph):
            raise self._wrong(name)
        return value

    def _wrong(self, name: str) -> BadModel:
        return BadModel(
            "{kind} {place}: attribute {name} is of a wrong type or missing",
            self.kind,
            self.place,
            name,
        )


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """An input or output: its sizes are numbers where they are fixed, names where they are free."""

    name: str
    dtype: str
    sizes: tuple[int | str, ...] | None


@dataclass(frozen=True, eq=False, slots=True)
class SourceGraph:
    """Nodes in the order of the file, the constants that they read, and the shapes that the file
    states."""

    name: str
    nodes: tuple[Node, ...]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    constants: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])


def computes_in_half(graph: SourceGraph) -> str:
    """The type of less precision than float32 that a graph computes in; "" where it is in none."""
    types = {value.dtype for value in (*graph.inputs, *graph.outputs)}
    types |= {DTYPES[node.integer("to")] for node in graph.nodes if _is_half_cast(node)}
    return next((name for name in _HALVES if name in types), "")


_HALVES = ("bfloat16", "float16")


def _is_half_cast(node: Node) -> bool:
    return node.kind == "Cast" and node.settings.get("to") in [DTYPES.index(h) for h in _HALVES]


@dataclass(frozen=True, eq=False, slots=True)
class SourceModel:
    """A whole model: `opset` is the version of ONNX's own operators that its nodes mean."""

    graph: SourceGraph
    opset: int
    producer: str = ""
    notes: tuple[str, ...] = ()
