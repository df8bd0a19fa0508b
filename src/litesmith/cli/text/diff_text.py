"""How diff prints: what is gone and new op by op, and what changed in ops alike, once."""

from collections.abc import Iterable

from litesmith.anatomy.model_diff import Diff, Difference
from litesmith.cli.text.printing import line
from litesmith.ir.types import Op
from litesmith.phrases import join, phrase
from litesmith.units import plain

# How many lines of a list a person reads, and how many differences op by op.
_MOST_LINES = 60
_MOST_SINGLE = 12


def print_diff(result: Diff) -> None:
    found = result.differences
    line(result.sentence, "bold" if found else "")
    own = [one for one in found if one.op is not None]
    single = own if len(own) <= _MOST_SINGLE else []
    shown = [*(one for one in found if one.op is None), *single]
    for difference in shown[:_MOST_LINES]:
        _print_one(difference)
    if len(shown) > _MOST_LINES:
        line(phrase("… and {count} more (--json lists all)", len(shown) - _MOST_LINES))
    if own and not single:
        _print_groups(own)
        line(phrase("ops alike are told together; --json lists all {count}", len(found)))


def _print_one(difference: Difference) -> None:
    where, before, after = difference.where, difference.before, difference.after
    if before and after:
        line(phrase("{where}: {before} -> {after}", where, before, after))
    elif difference.kind == "op":
        sign, text = ("-", before) if before else ("+", after)
        style = "red" if sign == "-" else "green"
        line(phrase("{sign} {where}: {text}", sign, where, text), style)
    else:
        line(phrase("{where}: {text}", where, before or after))


def _print_groups(differences: Iterable[Difference]) -> None:
    """Ops of one kind that changed in the same ways, the most first."""
    changes: dict[Op, list[str]] = {}
    for one in differences:
        if one.op is not None and one.short:
            changes.setdefault(one.op, []).append(one.short)
    groups: dict[tuple[str, tuple[str, ...]], int] = {}
    for op, short in changes.items():
        key = plain(op.label), tuple(short)
        groups[key] = groups.get(key, 0) + 1
    for (kind, short), count in sorted(groups.items(), key=lambda one: -one[1]):
        line(phrase("{count} {kind}: {changes}", count, kind, join(short, ", ")))
