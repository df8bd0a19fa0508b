"""One call of an ATen operator: its arguments by the names of its schema, the nodes written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from litesmith.conversion.core.element_types import DTYPES
from litesmith.conversion.core.lowering import COMPUTED_AS
from litesmith.conversion.core.source import Node, Setting
from litesmith.errors import LitesmithError
from litesmith.ir.types import Array


class NotWritten(LitesmithError):
    """A call that ONNX's operators cannot express; the message says why, and what to do."""


class Ref(NamedTuple):
    """A tensor: the value's name, its sizes and its element type."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    @property
    def rank(self) -> int:
        return len(self.shape)


Argument: TypeAlias = "Ref | int | float | str | tuple[Argument, ...] | None"


@dataclass(eq=False)
class Writer:
    """The nodes and constants written so far."""

    nodes: list[Node] = field(default_factory=list[Node])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])
    taken: set[str] = field(default_factory=set[str])

    def fresh(self, stem: str) -> str:
        """A name that no value has."""
        name, count = stem, 0
        while name in self.taken:
            count += 1
            name = f"{stem}.{count}"
        self.taken.add(name)
        return name


@dataclass(frozen=True, eq=False)
class Call:
    """A call. `outputs` are names, "" for outputs that nobody reads; `made` describes them."""

    writer: Writer
    kind: str
    place: str
    arguments: Mapping[str, Argument]
    outputs: tuple[str, ...]
    made: tuple[Ref, ...]

    # What it was called with

    def ref(self, name: str) -> Ref:
        value = self.arguments.get(name)
        if not isinstance(value, Ref):
            raise NotWritten("its argument {name!r} is no tensor", name)
        return value

    def has(self, name: str) -> bool:
        return self.arguments.get(name) is not None

    def name(self, name: str) -> str:
        """The name of a tensor argument, "" where it is left out."""
        value = self.arguments.get(name)
        return value.name if isinstance(value, Ref) else ""

    def refs(self, name: str) -> tuple[Ref, ...]:
        value = self.arguments.get(name)
        if not isinstance(value, tuple):
            raise NotWritten("its argument {name!r} is no list of tensors", name)
        return tuple(v for v in value if isinstance(v, Ref))

    def number(self, name: str, default: float = 0) -> float:
        value = self.arguments.get(name)
        if value is None:
            return default
        if not isinstance(value, int | float):
            raise NotWritten(
                "its argument {name!r} is computed while it runs; LiteRT wants it constant", name
            )
        return value

    def integer(self, name: str, default: int = 0) -> int:
        return int(self.number(name, default))

    def flag(self, name: str) -> bool:
        return bool(self.number(name))

    def word(self, name: str, default: str = "") -> str:
        value = self.arguments.get(name)
        return value if isinstance(value, str) else default

    def integers(self, name: str, count: int = 0) -> tuple[int, ...]:
        """A list of integers; one alone stands for `count` of it."""
        value = self.arguments.get(name)
        if isinstance(value, int):
            return (value,) * (count or 1)
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise NotWritten(
                "its argument {name!r} is computed while it runs; LiteRT wants it constant", name
            )
        found = tuple(int(v) for v in value if isinstance(v, int))
        return found * count if len(found) == 1 and count else found

    def axis(self, name: str = "dim", default: int = 0) -> int:
        """An axis of the tensor that the call is about, counted from the front."""
        rank = self.ref("self" if "self" in self.arguments else "input").rank
        return self.integer(name, default) % max(rank, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the first output."""
        return self.made[0].shape

    @property
    def dtype(self) -> str:
        return self.made[0].dtype

    def output(self, place: int) -> "Call":
        """The call as if it made this alone."""
        return replace(self, outputs=(self.outputs[place],), made=(self.made[place],))

    # What is written for it

    def end(self, kind: str, *inputs: str | Array, **settings: Setting) -> None:
        """Writes the node whose outputs are the call's; a kind outside ONNX has its domain in
        front."""
        self._write(kind, inputs, self.outputs, settings)

    def step(self, kind: str, *inputs: str | Array, **settings: Setting) -> str:
        """A node on the way; the name of its output."""
        name = self.writer.fresh(
            f"{self.outputs[0] or self.place}.{kind.rpartition('.')[2].lower()}"
        )
        self._write(kind, inputs, (name,), settings)
        return name

    def steps(self, kind: str, count: int, *inputs: str | Array, **settings: Setting) -> list[str]:
        """A node of several outputs on the way."""
        names = [self.writer.fresh(f"{self.place}.{kind.lower()}") for _ in range(count)]
        self._write(kind, inputs, tuple(names), settings)
        return names

    def constant(self, values: Array | Sequence[int] | float, dtype: str = "") -> str:
        array = np.asarray(values)
        name = self.writer.fresh(f"{self.outputs[0] or self.place}.const")
        self.writer.constants[name] = array.astype(computed(dtype)) if dtype else array
        return name

    def whole(self, values: Sequence[int]) -> str:
        """Sizes or places, as a constant."""
        return self.constant(np.array(values, np.int64))

    def cast(self, ref: Ref, dtype: str) -> str:
        """The tensor's name, in another type where that differs."""
        if computed(ref.dtype) == computed(dtype):
            return ref.name
        return self.step("Cast", ref.name, to=DTYPES.index(computed(dtype)))

    def operand(self, name: str, dtype: str) -> str:
        """A tensor or a number as a tensor of a type."""
        value = self.arguments.get(name)
        if isinstance(value, Ref):
            return self.cast(value, dtype)
        if not isinstance(value, int | float):
            raise NotWritten("its argument {name!r} is no number", name)
        return self.constant(value, dtype)

    def _write(
        self,
        kind: str,
        inputs: Sequence[str | Array],
        outputs: tuple[str, ...],
        settings: Mapping[str, Setting],
    ) -> None:
        names = [v if isinstance(v, str) else self.constant(v) for v in inputs]
        domain, _, own = kind.rpartition(".")
        node = Node(own, tuple(names), outputs, settings, self.place, domain)
        self.writer.nodes.append(node)


Row: TypeAlias = Callable[[Call], None]


def computed(dtype: str) -> str:
    """The type that LiteRT computes in."""
    return COMPUTED_AS.get(dtype, dtype)
