"""The op table: what each operator means to the rest of Litesmith, one row a kind.

Every builtin of the format has a row. A full row says what its inputs are for, how its output's
scale is chosen when quantized, how much work it is and which shape comes out; a bare row only
keeps the op intact through reading, editing and writing.
"""

from collections.abc import Callable, Sequence

from litesmith import schema
from litesmith.ir.infer import Shapes as Shapes
from litesmith.ir.op_row import Row as Row
from litesmith.ir.op_rows import ROWS
from litesmith.ir.types import Record, Tensor
from litesmith.ir.versions import VERSIONS

OPS: dict[str, Row] = {
    kind: ROWS.get(kind, Row())._replace(versions=VERSIONS.get(kind, {}))
    for kind in schema.ENUMS["BuiltinOperator"].names
}


def kinds_where(holds: Callable[[Row], bool]) -> frozenset[str]:
    """The kinds of op whose row has a trait."""
    return frozenset(kind for kind, row in OPS.items() if holds(row))


def options_or_defaults(kind: str, options: Record | None) -> Record:
    """The options, or the schema's defaults where there are none or those of another op.

    The runtime does the same: to it, options of another type are no options.
    """
    table = OPS[kind].options
    return options if options is not None and options.table == table else Record(table or "Model")


def infer_shapes(
    kind: str, inputs: Sequence[Tensor | None], options: Record | None
) -> Shapes | None:
    """Output shapes by the op's rule; None where there is no rule or it needs computed values."""
    rule = OPS[kind].shape
    return rule(inputs, options_or_defaults(kind, options)) if rule else None


def output_dtypes(
    kind: str, inputs: Sequence[Tensor | None], options: Record | None, count: int
) -> tuple[str, ...]:
    """Element types of `count` outputs by the op's rule; float32 where it cannot say."""
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
