"""The schemes of quantization: the types to store, and the types to compute in."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from litesmith.errors import BadInput
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op
from litesmith.phrases import phrase
from litesmith.units import plain

# The names of an op: its place in the main graph, its kind, or a pattern (`conv*`) for the name of
# its output.
Names = tuple[int | str, ...]

# Ops in a row are named by the first and the last, as in 12-30; no model has more ops than this.
_RUN = re.compile(r"(\d{1,9})-(\d{1,9})")
_LONGEST_RUN = 1_000_000


def number_run(text: str) -> range | None:
    """The numbers of ops in a row that a text names; None where it does not."""
    found = _RUN.fullmatch(text)
    first, last = map(int, found.groups()) if found is not None else (1, 0)
    return range(first, last + 1) if 0 <= last - first < _LONGEST_RUN else None


class Scheme(NamedTuple):
    """One way to store weights and compute with them.

    data      the element type of values between the ops
    weights   the element type of the weights in the file
    unpacked  True where a separate op converts weights to float before they are used
    """

    data: str
    weights: str
    unpacked: bool = False

    @property
    def is_integer(self) -> bool:
        return self.data != "float32"

    @property
    def kernel(self) -> str:
        """The key of `Row.versions` for an op with weights."""
        is_plain = self.is_integer and self.weights == "int8"
        return self.data if is_plain else f"{self.data}:{self.weights}"


SCHEMES = {
    "dynamic": Scheme("float32", "int8"),
    "dynamic-int4": Scheme("float32", "int4"),
    "float16": Scheme("float32", "float16", unpacked=True),
    "int16x8": Scheme("int16", "int8"),
    "int8": Scheme("int8", "int8"),
    "w4a8": Scheme("int8", "int4"),
    "weight-int4": Scheme("float32", "int4", unpacked=True),
    "weight-int8": Scheme("float32", "int8", unpacked=True),
}


def roles(op: Op) -> list[str]:
    """The role of each input of a call: x, w, b, s, i or v."""
    words = OPS[op.kind].inputs.split()
    more = len(op.inputs) - len(words)
    words += words[-1:] * more if words and words[-1].endswith("*") else ["?"] * more
    return [word[0] for word in words[: len(op.inputs)]]


def data_places(op: Op) -> list[int]:
    """Which inputs hold data that flows; the table of an op that only picks from it is data too."""
    wanted = "x" if "x" in roles(op) or OPS[op.kind].scale != "same" else "w"
    return [place for place, role in enumerate(roles(op)) if role == wanted]


def chosen(graphs: Sequence[Graph], keep: Names, only: Names) -> set[Op]:
    """The ops that a step is to work on: all, or `only` some, without those to `keep`."""
    everything = {op for graph in graphs for op in graph.ops}
    wanted = _named(graphs, only) if only else everything
    return wanted - _named(graphs, keep)


def _named(graphs: Sequence[Graph], names: Names) -> set[Op]:
    found: set[Op] = set()
    for name in names:
        ops = set(_matching(graphs, name))
        if not ops:
            raise BadInput(_no_such(graphs, name))
        found |= ops
    return found


def _matching(graphs: Sequence[Graph], name: int | str) -> Iterable[Op]:
    if isinstance(name, int):
        ops = graphs[0].ops
        return ops[name : name + 1] if name >= 0 else ()
    return (
        op
        for graph in graphs
        for op in graph.ops
        if op.kind == name.upper() or any(fnmatchcase(t.name, name) for t in op.outputs)
    )


def _no_such(graphs: Sequence[Graph], name: int | str) -> str:
    if isinstance(name, int):
        return phrase(
            "no op {name}; the main graph has {count} ops, counted from 0", name, len(graphs[0].ops)
        )
    kinds = ", ".join(sorted({op.kind for graph in graphs for op in graph.ops}))
    return phrase(
        "no op is of kind or writes a tensor {name!r}; the kinds are {kinds}", plain(name), kinds
    )
