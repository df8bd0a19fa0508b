"""`diff`: what changed between two models: ops, constants, inputs and outputs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple
from zlib import crc32

import numpy as np

from litesmith.anatomy.source_file import Source, open_source
from litesmith.display import show_html, show_line
from litesmith.ir.model_text import op_text, options_text, type_text
from litesmith.ir.types import Graph, Model, Op, Record, Signature, Tensor
from litesmith.phrases import phrase
from litesmith.units import plain


class Difference(NamedTuple):
    """One difference between two models. `kind` is ops, op, constant, interface or metadata.

    op     the op that differs, where the difference is in an op
    only   True where only one of the models has that op
    short  the difference without details of the op, such as shapes and scales; "" where another
           difference covers it
    """

    kind: str
    where: str
    before: str
    after: str
    op: Op | None = None
    short: str = ""
    only: bool = False


_KEYS = ("kind", "where", "before", "after")


@dataclass(frozen=True, repr=False)
class Diff:
    """The differences between two models, from coarse to fine."""

    a: str
    b: str
    differences: tuple[Difference, ...]

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def is_same(self) -> bool:
        return not self.differences

    @property
    def sentence(self) -> str:
        if self.is_same:
            return phrase("{a} and {b}: the same graph, constants and metadata", self.a, self.b)
        return phrase("{a} -> {b}: {count} differences", self.a, self.b, len(self.differences))

    def to_rows(self) -> list[dict[str, object]]:
        return [dict(zip(_KEYS, one, strict=False)) for one in self.differences]

    def to_json(self) -> dict[str, object]:
        return {"schema": 1, "same": self.is_same, "differences": self.to_rows()}


def diff(a: Source, b: Source) -> Diff:
    """What changed in the graph between two models.

    >>> litesmith.diff("model.tflite", "int8.tflite").is_same
    False
    """
    before, after = open_source(a), open_source(b)
    found = tuple(differences(before.model, after.model))
    return Diff(str(before.path or "a"), str(after.path or "b"), found)


def differences(a: Model, b: Model) -> list[Difference]:
    """Finds all differences between two models, from coarse to fine."""
    found = [*_interface(a, b), *_op_counts(a, b), *_metadata(a, b)]
    if len(a.graphs) != len(b.graphs):
        found.append(Difference("interface", "graphs", str(len(a.graphs)), str(len(b.graphs))))
    for number, (before, after) in enumerate(zip(a.graphs, b.graphs, strict=False)):
        where = phrase("graph {number}: ", number) if len(a.graphs) > 1 else ""
        found += _ops(where, before, after)
    return found


def _interface(a: Model, b: Model) -> Iterator[Difference]:
    sides = (("inputs", a.main.inputs, b.main.inputs), ("outputs", a.main.outputs, b.main.outputs))
    for side, old, new in sides:
        before, after = _list_tensors(old), _list_tensors(new)
        if before != after:
            yield Difference("interface", side, before, after)
    before, after = (", ".join(sorted(map(_entry_text, m.signatures))) or "none" for m in (a, b))
    if before != after:
        yield Difference("interface", "signatures", before, after)
    if a.description != b.description:
        yield Difference("metadata", "description", plain(a.description), plain(b.description))


def _entry_text(signature: Signature) -> str:
    inputs, outputs = (
        ", ".join(f"{plain(name)}={plain(tensor.name)}" for name, tensor in side)
        for side in (signature.inputs, signature.outputs)
    )
    return f"{plain(signature.key)}({inputs}) -> {outputs}"


def _list_tensors(tensors: Sequence[Tensor]) -> str:
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
            yield Difference(
                "metadata",
                plain(name),
                phrase("{count} bytes", len(x)),
                phrase("{count} bytes", len(y)),
            )


def _ops(where: str, a: Graph, b: Graph) -> Iterator[Difference]:
    """Matches ops in order by kind and shape, whatever their names, and compares each match."""
    matcher = SequenceMatcher(None, [_key(op) for op in a.ops], [_key(op) for op in b.ops], False)
    blocks = matcher.get_matching_blocks()
    pairs = {i + n: j + n for i, j, length in blocks for n in range(length)}
    sources = _sources(a, pairs), _sources(b, {j: j for j in range(len(b.ops))})
    for index, op in enumerate(a.ops):
        if index not in pairs:
            name = phrase("{where}op {index}", where, index)
            yield Difference("op", name, op_text(op), "", op, only=True)
    kept = set(pairs.values())
    for index, op in enumerate(b.ops):
        if index not in kept:
            name = phrase("{where}op {index}", where, index)
            yield Difference("op", name, "", op_text(op), op, only=True)
    for i, j in pairs.items():
        name = f"{where}op {i} ({plain(a.ops[i].label)})"
        for one in _compare_ops(name, a.ops[i], b.ops[j]):
            yield one._replace(op=a.ops[i])
        for one in _wiring(name, a.ops[i], b.ops[j], sources):
            yield one._replace(op=a.ops[i])


def _key(op: Op) -> tuple[object, ...]:
    return op.label, tuple(t.shape for t in op.outputs)


def _source_text(tensor: Tensor | None) -> str:
    return "none" if tensor is None else "constant" if tensor.is_const else "computed"


_Origin = tuple[object, ...]


def _sources(graph: Graph, numbers: dict[int, int]) -> dict[Tensor, _Origin]:
    """The origin of each value, in the numbering of the model after; removed ops are left out."""
    found: dict[Tensor, _Origin] = {t: ("input", n) for n, t in enumerate(graph.inputs)}
    for index, op in enumerate(graph.ops):
        if index in numbers:
            for place, tensor in enumerate(op.outputs):
                found[tensor] = ("op", numbers[index], place)
    return found


def _wiring(
    where: str, a: Op, b: Op, sources: tuple[dict[Tensor, _Origin], dict[Tensor, _Origin]]
) -> Iterator[Difference]:
    for place, (x, y) in enumerate(zip(a.inputs, b.inputs, strict=False)):
        if x is None or y is None or x.is_const or y.is_const:
            continue
        before, after = sources[0].get(x), sources[1].get(y)
        if before is not None and before != after:
            name = phrase("{where} input {place}", where, place)
            short = phrase("input {place} from elsewhere", place)
            yield Difference("op", name, plain(x.name), plain(y.name), short=short)


_NO_OPTIONS = phrase("no options")


def _compare_ops(where: str, a: Op, b: Op) -> Iterator[Difference]:
    """How two ops of the same kind and shape differ."""
    if options_text(a.options) != options_text(b.options):
        before, after = options_text(a.options), options_text(b.options)
        short = phrase("{before} -> {after}", before or _NO_OPTIONS, after or _NO_OPTIONS)
        yield Difference("op", where, before, after, short=short)
    if a.version != b.version:
        before, after = str(a.version), str(b.version)
        short = phrase("version {before} -> {after}", before, after)
        yield Difference("op", phrase("{where} version", where), before, after, short=short)
    if Record("Operator", a.rest) != Record("Operator", b.rest):
        short = phrase("custom options changed")
        yield Difference(
            "op", phrase("{where} custom options", where), "", phrase("changed"), short=short
        )
    before, after = (", ".join(map(_source_text, op.inputs)) for op in (a, b))
    if before != after:
        short = phrase("inputs {before} -> {after}", before, after)
        yield Difference("op", phrase("{where} inputs", where), before, after, short=short)
    for place, (x, y) in enumerate(zip(a.inputs, b.inputs, strict=False)):
        if x is not None and y is not None:
            yield from _tensors(where, phrase("input {place}", place), x, y)
    for place, (x, y) in enumerate(zip(a.outputs, b.outputs, strict=False)):
        yield from _tensors(where, phrase("output {place}", place), x, y)


def _tensors(op: str, side: str, x: Tensor, y: Tensor) -> Iterator[Difference]:
    where = phrase("{op} {side}", op, side)
    if type_text(x) != type_text(y):
        short = phrase("{side} {before} -> {after}", side, x.dtype, y.dtype)
        if x.dtype == y.dtype:
            short = phrase("{side} of another shape", side)
        kind = "constant" if y.is_const else "op"
        yield Difference(kind, where, type_text(x), type_text(y), short=short)
    if _scales(x) != _scales(y):
        scales = _scales(x), _scales(y)
        short = _scale_change(side, x, y)
        yield Difference("constant", phrase("{where} scale", where), *scales, short=short)
    if x.data is not None and y.data is not None and x.dtype == y.dtype and x.shape == y.shape:
        text = _changed_values(x, y)
        if text:
            short = phrase("{side} of other values", side)
            yield Difference("constant", where, "", text, short=short)


def _scale_change(side: str, x: Tensor, y: Tensor) -> str:
    if y.quant is None:
        return phrase("{side} without a scale", side)
    if x.quant is not None:
        return phrase("{side} of another scale", side)
    if y.quant.block is not None:
        return phrase("{side} with a scale per block", side)
    if y.quant.per_channel:
        return phrase("{side} with a scale per channel", side)
    return phrase("{side} with one scale", side) if x.dtype == y.dtype else ""


def _scales(tensor: Tensor) -> str:
    quant = tensor.quant
    if quant is None:
        return "none"
    if quant.block is not None:
        return "blockwise"
    if quant.per_channel:
        content = quant.scale.tobytes() + quant.zero_point.tobytes()
        return phrase(
            "{size} along axis {axis}, {crc32:08x}", quant.scale.size, quant.axis, crc32(content)
        )
    return phrase("{scale:.6g} zero {zero_point}", quant.scale[0], quant.zero_point[0])


def _changed_values(x: Tensor, y: Tensor) -> str:
    """The changed values in words, as in `12 of 864 values, by at most 0.5`; "" where all are
    equal."""
    assert x.data is not None and y.data is not None
    if x.data.shape != y.data.shape or x.data.dtype != y.data.dtype:
        return phrase("{nbytes} bytes where {nbytes2} were", y.data.nbytes, x.data.nbytes)
    before, after = (np.ascontiguousarray(t).view(np.uint8) for t in (x.data, y.data))
    if x.data is y.data or np.array_equal(before, after):
        return ""
    changed = x.data != y.data
    if x.data.dtype.kind in "fiu" and np.isfinite(x.data).all() and np.isfinite(y.data).all():
        most = np.abs(x.data.astype(np.float64) - y.data.astype(np.float64)).max()
        return phrase(
            "{count} of {size} values, by at most {most:.3g}", int(changed.sum()), x.data.size, most
        )
    return phrase("{count} of {size} values", int(changed.sum()), x.data.size)
