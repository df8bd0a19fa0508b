"""Rows that share a name or repeat, as nested blocks that a reader can fold."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import isqrt

# The fewest rows of a block, and the longest stretch of rows whose repetitions are searched.
_LEAST, _LONGEST = 2, 48
# A level with this many rows or fewer needs no more blocks.
_FEW = 24
# A block with more than this share of the surrounding rows tells nothing.
_NEARLY_ALL = 0.8
# The largest number of levels read from a name.
_MOST_LEVELS = 12


@dataclass(frozen=True)
class Block:
    """The rows from `start` to `end`, without `end`.

    title   the shared name of the rows, or their kinds
    number  the block's number among `of` blocks of the same kinds in the same order, from 1
    inside  smaller blocks, in order
    """

    start: int
    end: int
    title: str
    number: int = 1
    of: int = 1
    inside: tuple["Block", ...] = ()


def name_paths(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The levels in tensors' names: `net/block_1/conv/Relu` is in `net`, `block_1` and `conv`; and
    so is `net/block_1/conv` itself, if others are in it."""
    parts = [_split(name) for name in names]
    shared = {path[:end] for path in parts for end in range(1, len(path))}
    return [path if path in shared else path[:-1] for path in parts]


def _split(name: str) -> tuple[str, ...]:
    first = name.split(";")[0]
    return tuple(part for part in first.split("/") if part)[:_MOST_LEVELS]


def shared_levels(a: Sequence[str], b: Sequence[str]) -> int:
    """The number of levels that two paths share."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            return count
        count += 1
    return count


def find_blocks(kinds: Sequence[str], paths: Sequence[Sequence[str]]) -> tuple[Block, ...]:
    """Finds blocks of rows from their kinds and the paths of their names: by names, then by
    repetition where a level is still long. Each block lies inside one other or in none."""
    blocks = _by_names(paths, 0, len(paths), 0)
    whole = Block(0, len(kinds), "", inside=tuple(blocks))
    return tuple(_number_repeats(_with_repeats(whole, kinds).inside, kinds))


def _by_names(paths: Sequence[Sequence[str]], start: int, end: int, level: int) -> list[Block]:
    """Neighbours with the same name at a level; a name shared by nearly all is ignored."""
    found: list[Block] = []
    place = start
    while place < end:
        name = paths[place][level] if level < len(paths[place]) else None
        stop = place + 1
        while name is not None and stop < end and _at(paths[stop], level) == name:
            stop += 1
        if name is not None and stop - place >= _LEAST:
            inside = _by_names(paths, place, stop, level + 1)
            is_whole = stop - place > _NEARLY_ALL * (end - start)
            is_same = len(inside) == 1 and (inside[0].start, inside[0].end) == (place, stop)
            if is_whole or is_same:
                found += inside if inside or is_whole else [Block(place, stop, name)]
            else:
                found.append(Block(place, stop, name, inside=tuple(inside)))
        place = stop
    return found


def _at(path: Sequence[str], level: int) -> str | None:
    return path[level] if level < len(path) else None


def _with_repeats(block: Block, kinds: Sequence[str]) -> Block:
    """The block with smaller ones for repetitions in it, where it has many parts."""
    inside = [_with_repeats(one, kinds) for one in block.inside]
    parts = list(_parts(block.start, block.end, inside))
    while len(parts) > _FEW:
        fewer = _fold_most(parts, kinds)
        if len(fewer) == len(parts):
            break
        parts = fewer
    return replace(block, inside=tuple(one for one in parts if isinstance(one, Block)))


_Part = int | Block  # a row, or a block of several


def _parts(start: int, end: int, inside: Sequence[Block]) -> Iterator[_Part]:
    place = start
    for block in inside:
        yield from range(place, block.start)
        yield block
        place = block.end
    yield from range(place, end)


def _token(part: _Part, kinds: Sequence[str]) -> tuple[str, ...]:
    return (kinds[part],) if isinstance(part, int) else tuple(kinds[part.start : part.end])


def _fold_most(parts: list[_Part], kinds: Sequence[str]) -> list[_Part]:
    """Folds the stretches that shorten the level most, each of which occurs at least twice; among
    equal gains, the longest stretch."""
    numbers: dict[tuple[str, ...], int] = {}
    tokens = [numbers.setdefault(_token(part, kinds), len(numbers)) for part in parts]
    best: list[int] = []
    length = 0
    for size in range(_LEAST, min(_LONGEST, len(parts) // 2) + 1):
        starts = _repeats(tokens, size)
        if len(starts) > 1 and len(starts) * (size - 1) >= len(best) * (length - 1):
            best, length = starts, size
    if not best:
        return parts
    best, length = _shortest(tokens, best[0], length)
    found: list[_Part] = []
    place = 0
    for start in best:
        found += parts[place:start]
        found.append(_join_parts(parts[start : start + length], kinds))
        place = start + length
    return found + parts[place:]


def _shortest(tokens: Sequence[int], start: int, length: int) -> tuple[list[int], int]:
    """The beginnings and the length of a stretch; a stretch that repeats a shorter one yields the
    shorter one. Equal parts are folded in groups of about the square root of their number.
    """
    stretch = tuple(tokens[start : start + length])
    periods = (n for n in range(1, length) if length % n == 0)
    period = next((n for n in periods if stretch == stretch[:n] * (length // n)), length)
    size = max(_LEAST, isqrt(len(tokens))) if period == 1 else period
    wanted = (stretch * size)[:size]
    places: list[int] = []
    for place in range(len(tokens) - size + 1):
        is_free = not places or place >= places[-1] + size
        if is_free and tuple(tokens[place : place + size]) == wanted:
            places.append(place)
    return places, size


def _repeats(tokens: Sequence[int], size: int) -> list[int]:
    """The beginnings of the stretch of this size that occurs most often without overlapping
    itself."""
    places: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place in range(len(tokens) - size + 1):
        stretch = tuple(tokens[place : place + size])
        known = places[stretch]
        if not known or place >= known[-1] + size:
            known.append(place)
    return max(places.values(), key=len, default=list[int]())


def _join_parts(parts: Sequence[_Part], kinds: Sequence[str]) -> Block:
    inside = tuple(part for part in parts if isinstance(part, Block))
    first, last = parts[0], parts[-1]
    start = first if isinstance(first, int) else first.start
    end = last + 1 if isinstance(last, int) else last.end
    return Block(start, end, _kinds_text(kinds[start:end]), inside=inside)


def _kinds_text(kinds: Sequence[str]) -> str:
    shown = list(dict.fromkeys(kinds))
    return " · ".join(shown[:3]) + (" …" if len(shown) > 3 else "")


def _number_repeats(blocks: Sequence[Block], kinds: Sequence[str]) -> Iterator[Block]:
    """The blocks; those of a level that repeat each other get numbers."""
    alike = Counter(_token(block, kinds) for block in blocks)
    met: Counter[tuple[str, ...]] = Counter()
    for block in blocks:
        key = _token(block, kinds)
        met[key] += 1
        inside = tuple(_number_repeats(block.inside, kinds))
        yield replace(block, number=met[key], of=alike[key], inside=inside)
