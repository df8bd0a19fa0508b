"""Prints the result of `diff`: removed, new and changed ops, one by one if they are few, otherwise
by kind.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

from litesmith.anatomy.model_diff import Diff, Difference
from litesmith.cli.text.printing import line, print_indented
from litesmith.ir.types import Op
from litesmith.phrases import join, phrase
from litesmith.units import plain

# The largest numbers of lines of a list, and of differences that are listed op by op.
_MOST_LINES = 60
_MOST_SINGLE = 12

_STYLES = {"-": "red", "+": "green"}


def print_diff(result: Diff) -> None:
    found = result.differences
    line(result.sentence, "bold" if found else "")
    shown = [one for one in found if one.op is None]
    only = [one for one in found if one.only]
    changed = [one for one in found if one.op is not None and not one.only]
    few = [part for part in (only, changed) if len(part) <= _MOST_SINGLE]
    for difference in [*shown[:_MOST_LINES], *(one for part in few for one in part)]:
        _print_one(difference)
    if len(shown) > _MOST_LINES:
        line(phrase("… and {count} more (--json lists all)", len(shown) - _MOST_LINES))
    if only not in few:
        _print_replaced(only)
    if changed not in few:
        _print_groups(changed)
    if len(few) < 2:
        line(phrase("similar ops are grouped; --json lists all {count} differences", len(found)))


def _print_one(difference: Difference) -> None:
    where, before, after = difference.where, difference.before, difference.after
    if before and after:
        line(phrase("{where}: {before} -> {after}", where, before, after))
    elif difference.kind == "op":
        sign, text = ("-", before) if before else ("+", after)
        line(phrase("{sign} {where}: {text}", sign, where, text), _STYLES[sign])
    else:
        line(phrase("{where}: {text}", where, before or after))


def _print_replaced(differences: Sequence[Difference]) -> None:
    """Prints the kinds of which some ops are gone and others new; the counts say the rest."""
    gone, new = (
        Counter(plain(one.op.label) for one in differences if one.op is not None and text(one))
        for text in (attrgetter("before"), attrgetter("after"))
    )
    for kind in sorted(gone.keys() & new.keys()):
        line(phrase("{kind}: {gone} gone, {new} new", kind, gone[kind], new[kind]))


def _print_groups(differences: Iterable[Difference]) -> None:
    """Prints groups of ops of one kind that changed in the same ways, the largest first."""
    changes: dict[Op, list[str]] = {}
    for one in differences:
        if one.op is not None and one.short:
            changes.setdefault(one.op, []).append(one.short)
    groups: dict[tuple[str, tuple[str, ...]], int] = {}
    for op, short in changes.items():
        key = plain(op.label), tuple(short)
        groups[key] = groups.get(key, 0) + 1
    for (kind, short), count in sorted(groups.items(), key=lambda one: -one[1]):
        print_indented(f"{count} {kind}: ", join(short, ", "))
