"""Prints a change: what was done, what was left alone, and the sizes of the file."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from litesmith.anatomy.source_file import SourceFile
from litesmith.cli.text.printing import line
from litesmith.cli.text.size_text import print_shrunk, zero_lines
from litesmith.cli.text.speed_text import print_blame, print_speed
from litesmith.front.apply import Applied
from litesmith.ir.model_text import OpName
from litesmith.ir.types import Model
from litesmith.passes.core.step import Skip
from litesmith.phrases import Phrase, Value, phrase
from litesmith.units import bytes_text, change_text, plain

T = TypeVar("T")
Key = TypeVar("Key", bound=Hashable)

# The largest number of lines of a list.
_MOST_LINES = 12

# The largest numbers of groups of a list, and of lines of one group.
_MOST_GROUPS, _MOST_ALIKE = 6, 3


def print_applied(result: Applied) -> None:
    _print_some(result.touched)
    print_left(result.skipped)
    before, after = _op_count(result.source.model), _op_count(result.model)
    line(phrase("{out}: {before} -> {after} ops", result.out, before, after), "bold")
    _print_sizes(result.source, SourceFile(result.model, result.out))
    if result.same is not None:
        same, other = (
            phrase("the same bytes as the search wrote"),
            phrase("NOT the same bytes as the search wrote"),
        )
        line(same if result.same else other)
    for told in result.trained or result.change.notes:
        line(told)
    if result.costs is not None:
        print_shrunk(result.costs, zero_lines(result.model) if result.prunes else ())
    if result.speed is not None and result.step is not None:
        show = print_speed if result.costs is None else print_blame
        show(result.speed, result.step, is_recipe=True)


def _op_count(model: Model) -> int:
    return sum(len(graph.ops) for graph in model.graphs)


def _print_sizes(old: SourceFile, new: SourceFile) -> None:
    disk = phrase("disk {size} {change}", bytes_text(new.bytes), change_text(old.bytes, new.bytes))
    squeezed = old.quick_gzip_bytes, new.quick_gzip_bytes
    if squeezed[0] is not None and squeezed[1] is not None:
        change = change_text(squeezed[0], squeezed[1])
        disk += phrase(", gzip {size} {change}", bytes_text(squeezed[1]), change)
    line(disk)


def print_done(touched: Sequence[str]) -> None:
    """Prints one line for each change, with the kinds of op that it concerned."""
    for alike in _group(touched, _template).values():
        same = _group(alike, _values_without_ops)
        if len(same) > _MOST_ALIKE:
            line(phrase("{first}, and {count} more like it", alike[0], len(alike) - 1))
        else:
            for group in same.values():
                line(_merge(group))


def print_left(skipped: Sequence[Skip]) -> None:
    """Prints what was left alone, grouped by kind and reason; each group shows its first reason."""
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


def _values_without_ops(text: str) -> tuple[Value, ...]:
    """The values of a sentence, except names of ops."""
    values = text.values.values() if isinstance(text, Phrase) else (text,)
    return tuple(value for value in values if not isinstance(value, OpName))


def _merge(alike: Sequence[str]) -> str:
    """Merges sentences that differ only in their ops into one that counts the ops by kind."""
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


def _print_some(texts: Sequence[str]) -> None:
    """Prints the first lines of a list, and the number of further ones."""
    for text in texts[:_MOST_LINES]:
        line(text)
    if len(texts) > _MOST_LINES:
        line(phrase("… and {count} more edits (--json lists all)", len(texts) - _MOST_LINES))
