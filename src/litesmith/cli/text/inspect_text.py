"""Prints the result of `inspect`."""

from collections.abc import Mapping, Sequence

from rich.text import Text

from litesmith.anatomy.findings import Finding
from litesmith.anatomy.footprint import Footprint, op_constant_bytes, op_macs
from litesmith.anatomy.inspection import Inspection
from litesmith.cli.text.printing import (
    LEAST_NAME,
    command,
    console,
    heading,
    line,
    print_indented,
    table,
)
from litesmith.ir.model_text import type_text
from litesmith.ir.types import Model, Op, Tensor
from litesmith.phrases import join, phrase
from litesmith.units import bytes_text, count_text, percent_text, plain

# From this many columns on, a terminal has room for the role of each op.
_WIDE = 130


def print_inspection(result: Inspection) -> None:
    source, model, facts = result.source, result.model, result.footprint
    squeezed = source.quick_gzip_bytes
    name, size = plain(source.name), bytes_text(source.bytes)
    if squeezed is None:
        line(phrase("{name}: {size}", name, size), "bold")
    else:
        line(phrase("{name}: {size}, {squeezed} gzipped", name, size, bytes_text(squeezed)), "bold")
    line(result.scheme)
    line(
        phrase(
            "{count} ops, {count2} parameters, {count3} MACs, {size} peak activations",
            sum(facts.ops.values()),
            count_text(facts.parameters),
            count_text(facts.macs),
            bytes_text(facts.peak_activation_bytes),
        )
    )
    for told in result.structure.sentences:
        line(told)
    _print_interface(model)
    _print_kinds(facts)
    _print_dtypes(model, facts)
    if result.lists_ops:
        _print_ops(model, result.structure.names)
    _print_findings(result.findings)


def _print_interface(model: Model) -> None:
    rows = table("", "name", "type", "scale")
    for side, tensors in (("input", model.main.inputs), ("output", model.main.outputs)):
        for tensor in tensors:
            rows.add_row(side, Text(plain(tensor.name)), type_text(tensor), _scale_text(tensor))
    heading("interface")
    console.print(rows)
    for signature in model.signatures:
        names = [
            ", ".join(plain(n) for n, _ in side) for side in (signature.inputs, signature.outputs)
        ]
        line(
            phrase(
                "signature {key!r}: {names} -> {names2}", plain(signature.key), names[0], names[1]
            )
        )
    for name, content in model.metadata:
        line(phrase("metadata {name!r}: {size}", plain(name), bytes_text(content.nbytes)))
    if model.attached:
        line(phrase("attached files: {size}", bytes_text(len(model.attached))))
    if len(model.graphs) > 1:
        line(
            phrase(
                "graphs: {name}",
                join([plain(g.name) or phrase("(no name)") for g in model.graphs], ", "),
            )
        )


def _scale_text(tensor: Tensor) -> str:
    quant = tensor.quant
    if quant is None:
        return ""
    if quant.block is not None or quant.per_channel:
        return (
            "blockwise"
            if quant.block is not None
            else phrase("per channel, axis {axis}", quant.axis)
        )
    return phrase("{scale:.4g} zero {zero_point}", quant.scale[0], quant.zero_point[0])


def _print_kinds(facts: Footprint) -> None:
    rows = table("op", "count", "MACs", "share", "constants", right=(1, 2, 3, 4))
    for kind, count in facts.ops.items():
        macs = facts.macs_by_kind.get(kind, 0)
        rows.add_row(
            Text(plain(kind)),
            str(count),
            count_text(macs) if macs else "",
            percent_text(macs / facts.macs) if macs else "",
            bytes_text(facts.bytes_by_kind[kind]) if kind in facts.bytes_by_kind else "",
        )
    heading("operators")
    console.print(rows)


def _print_dtypes(model: Model, facts: Footprint) -> None:
    rows = table("type", "constants", "bytes", "computed", right=(1, 2, 3))
    tensors = [t for g in model.graphs for t in g.tensors]
    for dtype in sorted({t.dtype for t in tensors}):
        own = [t for t in tensors if t.dtype == dtype]
        stored = facts.bytes_by_dtype.get(dtype, 0)
        rows.add_row(
            dtype,
            str(sum(t.is_const for t in own)),
            bytes_text(stored) if stored else "",
            str(sum(not t.is_const for t in own)),
        )
    heading("tensors")
    console.print(rows)


def _print_ops(model: Model, parts: Mapping[Op, str]) -> None:
    for graph in model.graphs:
        is_named = console.width >= _WIDE and any(op in parts for op in graph.ops)
        named = [phrase("part")] if is_named else []
        columns = ("#", "op", "output", "type", "MACs", "bytes", *named)
        rows = table(*columns, right=(0, 4, 5))
        cells = [
            (*_op_cells(index, op), *([parts.get(op, "")] if named else []))
            for index, op in enumerate(graph.ops)
        ]
        taken = sum(max(map(len, column)) + 2 for column in zip(*cells, strict=True))
        for (number, kind, *others), op in zip(cells, graph.ops, strict=True):
            names = _short(plain(", ".join(t.name for t in op.outputs)), console.width - taken)
            rows.add_row(number, Text(kind), Text(names), *others)
        heading(phrase("ops of graph {name!r}", plain(graph.name)) if graph.name else phrase("ops"))
        console.print(rows)


def _op_cells(index: int, op: Op) -> tuple[str, ...]:
    macs, constants = op_macs(op), op_constant_bytes(op)
    return (
        str(index),
        plain(op.label),
        ", ".join(type_text(t) for t in op.outputs),
        count_text(macs) if macs else "",
        bytes_text(constants) if constants else "",
    )


def _short(name: str, room: int) -> str:
    """The end of a long name, which says more than its start; of joined names, the first."""
    first, room = name.split(";")[0], max(room, LEAST_NAME)
    return first if len(first) <= room else f"…{first[1 - room :]}"


def _print_findings(noticed: Sequence[Finding]) -> None:
    heading("findings")
    if not noticed:
        line("nothing stands out")
    for finding in noticed:
        print_indented("- ", finding.what, "bold")
        print_indented("  ", finding.why)
        command(f"  {finding.command}")
