"""Which ops a quantized model can keep float, which it does keep float, and the command that keeps
more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from litesmith.diagnosis.float_pairs import scheme_of
from litesmith.graph_view.op_pairs import KEPT_FLOAT
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model
from litesmith.passes.core.recipe import is_float
from litesmith.passes.core.schemes import SCHEMES
from litesmith.passes.quantizing.quantize import why_float

_WIDE = "int16x8"


@dataclass(frozen=True)
class KeepFloat:
    """The choices of ops to keep float, by their numbers in the float model.

    source    the float model as a command names it
    options   the options on data as a command has them
    choices   ops that a scheme could change
    kept      the choices that are already float in the second model
    reasons   ops that stay float by themselves, and why
    in_int16  choices for which the runtime has a kernel of 16 bits, by their numbers
    """

    source: str
    scheme: str
    options: str
    choices: frozenset[int] = frozenset()
    kept: tuple[int, ...] = ()
    reasons: Mapping[int, str] = field(default_factory=dict[int, str])
    in_int16: frozenset[int] = frozenset()


def find_choices(
    models: Sequence[Model], changes: Mapping[int, str], source: str, options: str
) -> KeepFloat | None:
    """The ops that can be kept float in the scheme of the second model, or in int8 for a single
    model; None where there are no choices. `changes` are the changes of the first model's ops.
    """
    first = models[0]
    if not is_float(first) or (len(models) == 2 and is_float(models[1])):
        return None
    scheme = scheme_of(models[1]) if len(models) == 2 else "int8"
    reasons = why_float(first, scheme) if SCHEMES[scheme].is_integer else {}
    choices = frozenset(n for n in _real_ops(first.main) if n not in reasons)
    wide = why_float(first, _WIDE) if scheme == "int8" else dict.fromkeys(choices, "")
    return KeepFloat(
        source=source,
        scheme=scheme,
        options=options,
        choices=choices,
        kept=tuple(n for n in sorted(choices) if changes.get(n) == KEPT_FLOAT),
        reasons=reasons,
        in_int16=choices.difference(wide),
    )


def _real_ops(graph: Graph) -> list[int]:
    """The ops that compute with real numbers which a scheme can store otherwise."""
    return [
        number
        for number, op in enumerate(graph.ops)
        if any(t.dtype == "float32" for t in op.outputs)
        and not (OPS[op.kind].rescales or OPS[op.kind].unpacks or OPS[op.kind].converts)
    ]
