"""Models as text: one line per op, for people, for tests and for comparing two models."""

from collections.abc import Iterator

from litesmith.ir.types import Model, Op, Record, Tensor, Value
from litesmith.phrases import phrase
from litesmith.units import plain


class OpName(str):
    """An op as reports name it: its kind, the name of its first output, and the name of a constant
    where only that constant is meant.
    """

    __slots__ = ("constant", "kind", "output")
    kind: str
    output: str | None
    constant: str

    def __new__(cls, kind: str, output: str | None, constant: str = "") -> "OpName":
        name = kind if output is None else f"{kind} {output!r}"
        made = str.__new__(cls, f"{name}, {constant!r}" if constant else name)
        made.kind, made.output, made.constant = kind, output, constant
        return made

    def __reduce__(self) -> tuple[type["OpName"], tuple[str, str | None, str]]:
        return OpName, (self.kind, self.output, self.constant)


def op_name(op: Op, constant: Tensor | None = None) -> OpName:
    """The name of an op, or of one of its constants, in sentences; lists group such names by
    kind.
    """
    output = plain(op.outputs[0].name) if op.outputs else None
    return OpName(op.label, output, "" if constant is None else plain(constant.name))


def type_text(tensor: Tensor) -> str:
    """`int8[1,8,8,3]`, with ? for a free dimension."""
    shape = tensor.dynamic if tensor.dynamic is not None else tensor.shape
    dimensions = ",".join("?" if d < 0 else str(d) for d in shape)
    return f"{tensor.dtype}[{dimensions}]"


def options_text(options: Record | None) -> str:
    """`padding=VALID stride_w=2`: the options that are not at their default."""
    if options is None:
        return ""
    plain_record = Record(options.table)
    shown = {name: value for name, value in options.fields.items() if value is not None}
    return " ".join(
        f"{name}={_value_text(value)}"
        for name, value in sorted(shown.items())
        if Record(options.table, {name: value}) != plain_record
    )


def op_text(op: Op) -> str:
    """`CONV_2D(x, w, b) -> y float32[1,8,8,4] padding=VALID`; constants by their type."""
    inputs = ", ".join("-" if t is None else _argument(t) for t in op.inputs)
    outputs = ", ".join(f"{plain(t.name)} {type_text(t)}" for t in op.outputs)
    return f"{op.label}({inputs}) -> {outputs} {options_text(op.options)}".rstrip()


def lines(model: Model) -> Iterator[str]:
    """The whole model as text, one line per graph and op."""
    for number, graph in enumerate(model.graphs):
        inputs = ", ".join(f"{plain(t.name)} {type_text(t)}" for t in graph.inputs)
        outputs = ", ".join(plain(t.name) for t in graph.outputs)
        yield phrase(
            "graph {number} {name!r}({inputs}) -> {outputs}",
            number,
            plain(graph.name),
            inputs,
            outputs,
        )
        for index, op in enumerate(graph.ops):
            yield f"  {index} {op_text(op)}"


def _argument(tensor: Tensor) -> str:
    return f"{plain(tensor.name)}:{type_text(tensor)}" if tensor.is_const else plain(tensor.name)


def _value_text(value: Value) -> str:
    if isinstance(value, bytes):
        return phrase("{count} bytes", len(value))
    if isinstance(value, Record):
        return f"{value.table}({options_text(value)})"
    if isinstance(value, str | bool | int | float):
        return str(value)
    return "[" + ",".join(str(v) for v in value) + "]" if value is not None else "none"
