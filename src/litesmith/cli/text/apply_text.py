"""How a change prints: what was done, what was left alone, and what the file weighs now."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TypeVar

from litesmith.cli.text.printing import Json, line
from litesmith.ir.model_text import OpName
from litesmith.ir.types import Model
from litesmith.passes.core.step import Change, Skip
from litesmith.phrases import Phrase, Value, phrase
from litesmith.units import bytes_text, change_text, plain

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)
Sizes = tuple[int, int | None]  # bytes on disk; after gzip, where that was asked

_MOST_LINES = 12

# How many groups of a list, and how many lines of one group, a person reads.
_MOST_GROUPS, _MOST_ALIKE = 6, 3


def apply_json(out: Path, sizes: Sizes, digest: str, change: Change) -> Json:
    return {
        "schema": 1,
        "out": str(out),
        "bytes": sizes[0],
        "gzip_bytes": sizes[1],
        "digest": digest,
        "touched": [*change.touched, *change.notes],
        "skipped": [skip._asdict() for skip in change.skipped],
    }


def apply_text(out: Path, sizes: Sequence[Sizes], before: Model, change: Change) -> None:
    counts = [sum(len(g.ops) for g in m.graphs) for m in (before, change.model)]
    (old, old_gzip), (new, new_gzip) = sizes
    _print_some((*change.touched, *change.notes), "edits")
    print_left(change.skipped)
    line(phrase("{out}: {counts} -> {counts2} ops", out, counts[0], counts[1]), "bold")
    disk = phrase("disk {size} {change}", bytes_text(new), change_text(old, new))
    if old_gzip is not None and new_gzip is not None:
        gzipped = change_text(old_gzip, new_gzip)
        disk += phrase(", gzip {size} {change}", bytes_text(new_gzip), gzipped)
    line(disk)


def print_done(touched: Sequence[str]) -> None:
    """One line for each thing that was done, with the kinds of op that it was done to."""
    for alike in _group(touched, _template).values():
        same = _group(alike, _what_but_ops)
        if len(same) > _MOST_ALIKE:
            line(phrase("{first}, and {count} more like it", alike[0], len(alike) - 1))
        else:
            for group in same.values():
                line(_merge(group))


def print_left(skipped: Sequence[Skip]) -> None:
    """What was left alone, grouped by its kind and reason; of a group, the first reason is told."""
    groups = _group(skipped, lambda skip: (skip.kind, _template(skip.why)))
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    for (kind, _), group in ordered[:_MOST_GROUPS]:
        line(phrase("left {count} {kind}: {why}", len(group), plain(kind), group[0].why))
    if len(groups) > _MOST_GROUPS:
        line(phrase("… and {count} more reasons (--json lists all)", len(groups) - _MOST_GROUPS))


def _group(items: Sequence[T], key: Callable[[T], Key]) -> dict[Key, list[T]]:
    found: dict[Key, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def _template(text: str) -> str:
    return text.template if isinstance(text, Phrase) else text


def _what_but_ops(text: str) -> tuple[Value, ...]:
    """The values of a sentence that are no ops."""
    values = text.values.values() if isinstance(text, Phrase) else (text,)
    return tuple(value for value in values if not isinstance(value, OpName))


def _merge(alike: Sequence[str]) -> str:
    """Sentences that differ by their ops alone, as one that counts these by kind."""
    first = alike[0]
    if len(alike) == 1 or not isinstance(first, Phrase):
        return first
    values = dict(first.values)
    for name, value in first.values.items():
        if isinstance(value, OpName):
            every = [one.values[name] for one in alike if isinstance(one, Phrase)]
            kinds = Counter(op.kind for op in every if isinstance(op, OpName))
            values[name] = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return Phrase(first.template, values)


def _print_some(texts: Sequence[str], what: str) -> None:
    """The first lines of a list, and how many more there are."""
    for text in texts[:_MOST_LINES]:
        line(text)
    if len(texts) > _MOST_LINES:
        line(phrase("… and {count} more {what} (--json lists all)", len(texts) - _MOST_LINES, what))
