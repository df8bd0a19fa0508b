"""The op table: the meaning of each operator for the rest of Litesmith, one row per kind.

Every builtin of the format has a row. A full row tells the purpose of each input, how the scale of
the output is chosen, how much work a call is, the shape of the output, and in its traits the nature
of the op: steps ask for a trait, not for a name. A bare row suffices to read, edit and write the op
unchanged.
"""

from collections.abc import Callable, Collection, Sequence

from litesmith import schema
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import called_graphs
from litesmith.ir.op_row import Row as Row
from litesmith.ir.op_rows import ROWS
from litesmith.ir.shape_rule import Shapes as Shapes
from litesmith.ir.types import Graph, Op, Record, Tensor
from litesmith.ir.versions import VERSIONS

_TABLES = {name.lower(): name for name in schema.TABLES}


def _row(kind: str) -> Row:
    row = ROWS.get(kind, Row())
    own = _TABLES.get(f"{kind.replace('_', '')}options".lower(), "")
    return row._replace(options=row.options or own, versions=VERSIONS.get(kind, {}))


OPS = {kind: _row(kind) for kind in schema.ENUMS["BuiltinOperator"].names}


def kinds_where(holds: Callable[[Row], bool]) -> frozenset[str]:
    """The kinds of op whose row has a trait."""
    return frozenset(kind for kind, row in OPS.items() if holds(row))


def has_effect(op: Op) -> bool:
    """True where the op matters even if nobody reads its outputs."""
    keeps_state = any(t is not None and t.variable for t in (*op.inputs, *op.outputs))
    acts = OPS[op.kind].has_effect or bool(called_graphs(op))
    return acts or keeps_state or not op.outputs


def is_repeatable(op: Op) -> bool:
    """True where calling the op twice with the same inputs gives the same outputs."""
    return not has_effect(op) and not OPS[op.kind].varies


def op_macs(op: Op) -> int:
    """Multiply-accumulates of one call; 0 for ops that only move or compare values."""
    count = OPS[op.kind].macs
    return count(op) if count is not None else 0


def options_or_defaults(kind: str, options: Record | None) -> Record:
    """The options of a call; the schema's defaults where the file has none, or another op's.

    The runtime does the same: it ignores options of another type.
    """
    table = OPS[kind].options
    return options if options is not None and options.table == table else Record(table or "Model")


def infer_shapes(
    kind: str, inputs: Sequence[Tensor | None], options: Record | None
) -> Shapes | None:
    """Output shapes by the op's rule; None where the op has no rule, or the shapes depend on
    computed values.
    """
    rule = OPS[kind].shape
    return rule(inputs, options_or_defaults(kind, options)) if rule else None


def output_dtypes(
    kind: str, inputs: Sequence[Tensor | None], options: Record | None, count: int
) -> tuple[str, ...]:
    """Element types of `count` outputs by the op's rule; float32 where the rule cannot say."""
    words = OPS[kind].dtype.split()
    words += words[-1:] * (count - len(words))
    settings = options_or_defaults(kind, options)
    return tuple(
        _dtype(word, kind, inputs, settings, place) for place, word in enumerate(words[:count])
    )


def _dtype(
    word: str, kind: str, inputs: Sequence[Tensor | None], options: Record, place: int
) -> str:
    if word.startswith("option:"):
        stored = options[word.removeprefix("option:")]
        return stored.lower() if isinstance(stored, str) else "float32"
    if word == "each":
        tensor = inputs[place] if place < len(inputs) else None
        return tensor.dtype if tensor is not None else "float32"
    return _data_dtype(kind, inputs) if word == "x" else word


def _data_dtype(kind: str, inputs: Sequence[Tensor | None]) -> str:
    """The type of the first data input."""
    roles = OPS[kind].inputs.split()
    for role, tensor in zip(roles + roles[-1:] * len(inputs), inputs, strict=False):
        if role[0] in "x*" and tensor is not None:
            return tensor.dtype
    return "float32"


# Sizes that only a run decides: there, the shapes in the file are guesses.


def has_computed_settings(op: Op) -> bool:
    """True where a size, an axis or a padding is not a constant."""
    roles = OPS[op.kind].inputs.split()
    roles += roles[-1:] * (len(op.inputs) - len(roles))
    return any(
        role[0] == "s" and tensor is not None and not tensor.is_const
        for role, tensor in zip(roles, op.inputs, strict=False)
    )


def is_sized_late(op: Op, late: Collection[Tensor]) -> bool:
    """True where the sizes of the op's outputs are known only after the op has run."""
    inherits = any(tensor in late for tensor in op.inputs if tensor is not None)
    by_values = OPS[op.kind].sized_by_values and any(t and not t.is_const for t in op.inputs)
    return inherits or by_values or has_computed_settings(op)


def late_tensors(graph: Graph) -> set[Tensor]:
    """Every tensor whose size depends on values."""
    late: set[Tensor] = set()
    for op in graph.ops:
        if is_sized_late(op, late):
            late.update(op.outputs)
    return late


def counting_inputs(graph: Graph) -> set[Tensor]:
    """Float inputs that hold whole numbers, such as token ids: every op that reads them first
    converts them to integers.
    """
    counting: set[Tensor] = set()
    otherwise: set[Tensor | None] = set(graph.outputs)
    for op in reversed(graph.ops):
        made = set(op.outputs)
        makes_whole = op.kind == "CAST" and not any(DTYPES[t.dtype].is_float for t in made)
        if makes_whole or (OPS[op.kind].moves_data and made <= counting - otherwise):
            counting.update(t for t in op.inputs[:1] if t is not None)
        else:
            otherwise.update(op.inputs)
    return {t for t in counting - otherwise if t in graph.inputs and DTYPES[t.dtype].is_float}
