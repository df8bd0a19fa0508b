"""How the model commands print: tables for people, dictionaries for programs."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from litesmith.anatomy.findings import Finding, scheme
from litesmith.anatomy.footprint import Footprint, op_constant_bytes, op_macs
from litesmith.ir.diff import Difference
from litesmith.ir.model_text import type_text
from litesmith.ir.types import Model, Op, Tensor
from litesmith.lang.language import say
from litesmith.passes.core.step import Change
from litesmith.phrases import phrase
from litesmith.units import bytes_text, change_text, count_text, percent_text, plain

Sizes = tuple[int, int | None]  # bytes on disk; after gzip, where that was asked
Json = dict[str, object]

console = Console(highlight=False, soft_wrap=False)

# How many lines of a list a person reads.
_MOST_LINES, _MOST_DIFFERENCES = 12, 60

# However narrow the terminal, a name has this many characters.
_LEAST_NAME = 8

# However narrow the terminal, text behind a name has this many.
_LEAST_WIDTH = 20


class _Rows(Table):
    """A table that says its cells in the language in use; names come as `Text` and stay."""

    def add_row(
        self,
        *cells: RenderableType | None,
        style: StyleType | None = None,
        end_section: bool = False,
    ) -> None:
        told = (say(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*told, style=style, end_section=end_section)


def table(*columns: str, right: Sequence[int] = ()) -> Table:
    """A table without lines: readable in 80 columns and in a pipe."""
    made = _Rows(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for place, column in enumerate(columns):
        justify = "right" if place in right else "left"
        made.add_column(say(column), justify=justify, overflow="fold")
    return made


def shortened(names: Sequence[str], others: int) -> dict[str, str]:
    """Each name without its middle, where it has no place beside so many other columns; whole where
    two would look the same."""
    room = max(console.width - others, 2 * _LEAST_NAME)
    start = (room - 1) // 2
    whole = {name: plain(name) for name in names}
    short = {
        name: shown if len(shown) <= room else f"{shown[:start]}…{shown[start + 1 - room :]}"
        for name, shown in whole.items()
    }
    seen = Counter(short.values())
    return {name: shown if seen[shown] == 1 else whole[name] for name, shown in short.items()}


def heading(text: str) -> None:
    console.print(Text(f"\n{say(text)}", style="bold"))


def said(text: str, style: str = "") -> Text:
    """A text in the language in use; names of foreign files are not markup."""
    return Text(plain(say(text)), style=style)


def line(text: str, style: str = "") -> None:
    """One line of text."""
    console.print(said(text, style))


def indented(start: str, text: str) -> None:
    """A text behind its name; lines that follow begin where it began."""
    width = max(console.width - cell_len(start), _LEAST_WIDTH)
    for part in said(text).wrap(console, width):
        part.rstrip()
        console.print(Text(start) + part)
        start = " " * cell_len(start)


def command(text: str) -> None:
    """A command to type, with its purpose behind it where there is one: never broken into lines, so
    that it can be copied."""
    typed, colon, purpose = text.partition(": ")
    console.print(Text(plain(f"{typed}{colon}{say(purpose)}"), style="cyan"), soft_wrap=True)


def inspect_text(
    path: Path, model: Model, facts: Footprint, sizes: Sizes, noticed: Sequence[Finding], ops: bool
) -> None:
    gzipped = f", {bytes_text(sizes[1])} gzipped" if sizes[1] is not None else ""
    line(f"{plain(path.name)}: {bytes_text(sizes[0])}{gzipped}", "bold")
    line(scheme(model))
    line(
        phrase(
            "{count} ops, {count2} parameters, {count3} MACs, {size} peak activations",
            sum(facts.ops.values()),
            count_text(facts.parameters),
            count_text(facts.macs),
            bytes_text(facts.peak_activation_bytes),
        )
    )
    _print_interface(model)
    _print_kinds(facts)
    _print_dtypes(model, facts)
    if ops:
        _print_ops(model)
    _print_findings(path, noticed)


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
                ", ".join(plain(g.name) or phrase("(no name)") for g in model.graphs),
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


def _print_ops(model: Model) -> None:
    for graph in model.graphs:
        rows = table("#", "op", "output", "type", "MACs", "bytes", right=(0, 4, 5))
        cells = [_op_cells(index, op) for index, op in enumerate(graph.ops)]
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
    """The end of a long name, which tells more than its start; of fused names, the first."""
    first, room = name.split(";")[0], max(room, _LEAST_NAME)
    return first if len(first) <= room else f"…{first[1 - room :]}"


def _print_findings(path: Path, noticed: Sequence[Finding]) -> None:
    heading("findings")
    if not noticed:
        line("nothing stands out")
    for finding in noticed:
        line(f"- {finding.what}", "bold")
        line(f"  {finding.why}")
        command(f"  {_filled(finding.command, path)}")


def _filled(text: str, path: Path) -> str:
    return text.replace("MODEL", quote(str(path)))


def inspect_json(
    path: Path, model: Model, facts: Footprint, sizes: Sizes, noticed: Sequence[Finding], ops: bool
) -> Json:
    shown: Json = {
        "schema": 1,
        "file_bytes": sizes[0],
        "gzip_bytes": sizes[1],
        "parameters": facts.parameters,
        "macs": facts.macs,
        "peak_activation_bytes": facts.peak_activation_bytes,
        "ops": facts.ops,
        "scheme": scheme(model),
        "bytes_by_op": facts.bytes_by_kind,
        "bytes_by_type": facts.bytes_by_dtype,
        "inputs": [_tensor_json(t) for t in model.main.inputs],
        "outputs": [_tensor_json(t) for t in model.main.outputs],
        "signatures": [plain(s.key) for s in model.signatures],
        "metadata": {plain(name): content.nbytes for name, content in model.metadata},
        "findings": [
            {**finding._asdict(), "command": _filled(finding.command, path)} for finding in noticed
        ],
    }
    if ops:
        shown["op_list"] = [
            {
                "graph": plain(graph.name),
                "index": index,
                "kind": plain(op.label),
                "outputs": [_tensor_json(t) for t in op.outputs],
                "macs": op_macs(op),
                "constant_bytes": op_constant_bytes(op),
            }
            for graph, index, op in model.ops()
        ]
    return shown


def _tensor_json(tensor: Tensor) -> Json:
    shown: Json = {"name": plain(tensor.name), "dtype": tensor.dtype, "shape": list(tensor.shape)}
    if tensor.dynamic is not None:
        shown["dynamic"] = list(tensor.dynamic)
    if tensor.quant is not None:
        shown["scale"] = tensor.quant.scale.tolist()
        shown["zero_point"] = tensor.quant.zero_point.tolist()
    return shown


def apply_json(out: Path, sizes: Sizes, digest: str, change: Change) -> Json:
    return {
        "schema": 1,
        "out": str(out),
        "bytes": sizes[0],
        "gzip_bytes": sizes[1],
        "digest": digest,
        "touched": list(change.touched),
        "skipped": [skip._asdict() for skip in change.skipped],
    }


def apply_text(out: Path, sizes: Sequence[Sizes], before: Model, change: Change) -> None:
    counts = [sum(len(g.ops) for g in m.graphs) for m in (before, change.model)]
    (old, old_gzip), (new, new_gzip) = sizes
    _print_some(change.touched, "edits")
    kept = Counter((skip.where.split()[0], skip.why) for skip in change.skipped)
    for (kind, why), count in kept.most_common():
        line(f"left {count} {plain(kind)}: {why}")
    line(phrase("{out}: {counts} -> {counts2} ops", out, counts[0], counts[1]), "bold")
    gzipped = ""
    if old_gzip is not None and new_gzip is not None:
        gzipped = f", gzip {bytes_text(new_gzip)} {change_text(old_gzip, new_gzip)}"
    line(f"disk {bytes_text(new)} {change_text(old, new)}{gzipped}")


def _print_some(texts: Sequence[str], what: str) -> None:
    """The first lines of a list, and how many more there are."""
    for text in texts[:_MOST_LINES]:
        line(text)
    if len(texts) > _MOST_LINES:
        line(phrase("… and {count} more {what} (--json lists all)", len(texts) - _MOST_LINES, what))


def diff_text(a: Path, b: Path, found: Sequence[Difference]) -> None:
    if not found:
        line(phrase("{a} and {b}: the same graph, constants and metadata", a, b))
        return
    line(phrase("{a} -> {b}: {count} differences", a, b, len(found)), "bold")
    for difference in found[:_MOST_DIFFERENCES]:
        if difference.before and difference.after:
            line(f"{difference.where}: {difference.before} -> {difference.after}")
        elif difference.kind == "op":
            sign, text = ("-", difference.before) if difference.before else ("+", difference.after)
            line(f"{sign} {difference.where}: {text}", "red" if sign == "-" else "green")
        else:
            line(f"{difference.where}: {difference.before or difference.after}")
    if len(found) > _MOST_DIFFERENCES:
        line(phrase("… and {count} more (--json lists all)", len(found) - _MOST_DIFFERENCES))
