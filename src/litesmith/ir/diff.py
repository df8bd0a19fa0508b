"""What changed between two models: ops, constants, inputs and outputs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from litesmith.ir.show import op_text, type_text
from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.units import plain


class Difference(NamedTuple):
    """One thing that is not the same. `kind` is ops, op, constant, interface or metadata."""

    kind: str
    where: str
    before: str
    after: str


def differences(a: Model, b: Model) -> list[Difference]:
    """Everything that differs, from the coarse to the fine."""
    found = [*_interface(a, b), *_op_counts(a, b), *_metadata(a, b)]
    if len(a.graphs) != len(b.graphs):
        found.append(Difference("interface", "graphs", str(len(a.graphs)), str(len(b.graphs))))
    for number, (before, after) in enumerate(zip(a.graphs, b.graphs, strict=False)):
        where = f"graph {number}: " if len(a.graphs) > 1 else ""
        found += _ops(where, before, after)
    return found


def _interface(a: Model, b: Model) -> Iterator[Difference]:
    for side in ("inputs", "outputs"):
        before, after = _listed(getattr(a.main, side)), _listed(getattr(b.main, side))
        if before != after:
            yield Difference("interface", side, before, after)
    keys = [", ".join(sorted(plain(s.key) for s in m.signatures)) or "none" for m in (a, b)]
    if keys[0] != keys[1]:
        yield Difference("interface", "signatures", *keys)


def _listed(tensors: Sequence[Tensor]) -> str:
    return ", ".join(f"{plain(t.name)} {type_text(t)}" for t in tensors)


def _op_counts(a: Model, b: Model) -> Iterator[Difference]:
    before, after = (Counter(op.label for _, _, op in m.ops()) for m in (a, b))
    for kind in sorted(before | after):
        if before[kind] != after[kind]:
            yield Difference("ops", plain(kind), str(before[kind]), str(after[kind]))


def _metadata(a: Model, b: Model) -> Iterator[Difference]:
    before, after = ({name: content.tobytes() for name, content in m.metadata} for m in (a, b))
    before["(attached files)"], after["(attached files)"] = a.attached, b.attached
    for name in sorted(before.keys() | after.keys()):
        x, y = before.get(name, b""), after.get(name, b"")
        if x != y:
            yield Difference("metadata", plain(name), f"{len(x)} bytes", f"{len(y)} bytes")


def _ops(where: str, a: Graph, b: Graph) -> Iterator[Difference]:
    """Ops matched by what they are, in order; matched ones are compared in their constants."""
    before, after = [op_text(op) for op in a.ops], [op_text(op) for op in b.ops]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            for offset in range(j - i):
                yield from _constants(
                    f"{where}op {i + offset}", a.ops[i + offset], b.ops[k + offset]
                )
            continue
        for index in range(i, j):
            yield Difference("op", f"{where}op {index}", before[index], "")
        for index in range(k, m):
            yield Difference("op", f"{where}op {index}", "", after[index])


def _constants(where: str, a: Op, b: Op) -> Iterator[Difference]:
    for x, y in zip((*a.inputs, *a.outputs), (*b.inputs, *b.outputs), strict=True):
        if x is None or y is None:
            continue
        if _scales(x) != _scales(y):
            yield Difference("constant", f"{where} {plain(y.name)!r} scale", _scales(x), _scales(y))
        if x.data is not None and y.data is not None and (text := _changed_values(x, y)):
            yield Difference("constant", f"{where} {plain(y.name)!r}", "", text)


def _scales(tensor: Tensor) -> str:
    quant = tensor.quant
    if quant is None:
        return "none"
    if quant.block is not None:
        return "blockwise"
    if quant.per_channel:
        return (
            f"{quant.scale.size} along axis {quant.axis}, {hash(quant.scale.tobytes()) & 0xFFFF:x}"
        )
    return f"{quant.scale[0]:.6g} zero {quant.zero_point[0]}"


def _changed_values(x: Tensor, y: Tensor) -> str:
    """`12 of 864 values, by at most 0.5`; "" where all are equal."""
    assert x.data is not None and y.data is not None
    if x.data.shape != y.data.shape or x.data.dtype != y.data.dtype:
        return f"{y.data.nbytes} bytes where {x.data.nbytes} were"
    if x.data is y.data or np.array_equal(x.data, y.data):
        return ""
    changed = x.data != y.data
    if x.data.dtype.kind in "fiu":
        most = np.abs(x.data.astype(np.float64) - y.data.astype(np.float64)).max()
        return f"{int(changed.sum())} of {x.data.size} values, by at most {most:.3g}"
    return f"{int(changed.sum())} of {x.data.size} values"
