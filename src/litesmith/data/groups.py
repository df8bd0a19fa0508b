"""Which samples are independent: copies and near copies form a group, as do the user's own groups.

An item is kept as a sketch, a few numbers: for an image, its colours on a grid of 8 × 8 without
brightness and contrast; for a sound, sums of its numbers without its loudness; for other data, the
numbers themselves, or sums of them where they are many. Two items with nearby sketches are copies.
The threshold depends on the data: where many items are naturally similar, such as readings of two
sensors, only closer ones count as copies.

Candidates are found by hash buckets, so that 50,000 items take seconds.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.arguments import argument
from litesmith.data.images import Picture, picture
from litesmith.errors import BadInput
from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Array, Tensor
from litesmith.phrases import Phrase
from litesmith.units import plain, total_text

# the group of each item, numbered from 0 in the order of first occurrence
Numbers = NDArray[np.int64]

# The side of the grid for images; the largest number of sums for other data; and the least number
# of numbers, below which two different items are near by chance.
_GRID, _SUMS, _LEAST_NUMBERS = 8, 256, 4

# A row of this many numbers or more is taken for a sound.
_SOUND = 4_000

# The largest distance of copies, relative to the usual distance of two items. Images that were
# shifted by 2 %, turned by 5° or saved again stay inside, and so do 16 of the 12 million pairs of
# 5,000 images of CIFAR-10. The distance is reduced by the second factor, down to the third, until
# few items have another that near by chance, or few of the pairs found do.
_NEAR, _LESS, _LEAST = 0.25, 0.8, 0.005
_BY_CHANCE, _IMAGES_BY_CHANCE, _OF_FOUND = 0.001, 0.02, 0.1

# The number of items compared with all others to learn which distances are usual, and the number of
# items up to which all pairs are compared.
_PROBES, _ALL_PAIRS = 512, 1024

# The number of hash tables, the number of steps in each key, the number of lines for a rough
# distance, the number of neighbours to compare in a bucket, and the number of pairs compared at
# once.
_TABLES, _STEPS, _ROUGH, _BESIDE, _AT_ONCE = 12, 6, 12, 8, 65_536


class Sketch(NamedTuple):
    """The numbers that stand for an item; `mirrored` stands for its mirror image."""

    values: NDArray[np.float32]
    mirrored: NDArray[np.float32] | None = None


def sketch(tensors: Sequence[Tensor], arrays: Sequence[Array]) -> Sketch | None:
    """Makes the sketch of an item for these inputs; None where only equal items are copies, as with
    texts and token numbers."""
    pairs = list(zip(tensors, arrays, strict=True))
    if len(pairs) == 1 and (wanted := picture(tensors[0])) is not None:
        found = _image_sketch(arrays[0], wanted)
        if found is not None:
            return found
    real = [a for t, a in pairs if DTYPES[t.dtype].is_float or t.quant is not None]
    return _number_sketch([a for a in real if a.dtype.kind in "fiub"])


def sketch_arrays(arrays: Sequence[Array]) -> Sketch | None:
    """Makes a sketch where the inputs are unknown."""
    return _number_sketch([a for a in arrays if a.dtype.kind == "f"])


def _number_sketch(arrays: Sequence[Array]) -> Sketch | None:
    numbers = [a for a in arrays if a.size]
    if not any(a.min() < a.max() for a in numbers):  # two silent clips are not copies
        return None
    values = np.concatenate([_sums(_as_loud(a.astype(np.float32))) for a in numbers])
    return Sketch(values) if np.isfinite(values).all() else None


def _image_sketch(pixels: Array, wanted: Picture) -> Sketch | None:
    """The sketch of an image; None for an image smaller than the grid, or of a single colour."""
    if wanted.channel_axis == -3:
        pixels = np.moveaxis(pixels, -3, -1)
    elif wanted.channel_axis == 0:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or min(pixels.shape[:2]) < _GRID or pixels.dtype.kind not in "fiub":
        return None
    fields = pixels
    for axis in (0, 1):
        edges = np.arange(_GRID) * pixels.shape[axis] // _GRID
        sizes = np.diff([*edges, pixels.shape[axis]]).astype(np.float32)
        sums = np.add.reduceat(fields, edges, axis=axis, dtype=np.float32)
        fields = sums / sizes.reshape([-1 if a == axis else 1 for a in range(3)])
    if not np.isfinite(fields).all():
        return None
    fields = fields - fields.mean(axis=(0, 1))  # two images of one colour are not copies
    length = float(np.linalg.norm(fields))
    if length < 1e-6:
        return None
    fields = (fields / length).astype(np.float32)
    return Sketch(fields.reshape(-1), fields[:, ::-1].reshape(-1))


def _sums(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Reduces many numbers to a few sums with random signs, which roughly preserve distances."""
    if values.size <= _SUMS:
        return values
    random = np.random.default_rng(values.size)
    signs = random.integers(0, 2, values.size).astype(np.float32) * 2 - 1
    places = random.integers(0, _SUMS, values.size)
    return np.bincount(places, values * signs, _SUMS).astype(np.float32)


def _as_loud(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scales a sound to a standard loudness and flattens it: otherwise quiet sounds would seem
    alike beside loud ones. Other numbers are only flattened.
    """
    row = values.reshape(-1)
    if row.size < _SOUND or row.size > max(values.shape):
        return row
    row = row - row.mean()
    size = float(np.sqrt(np.square(row).mean()))
    return row / np.float32(size) if size > 0 else row


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups of the items of some data, found on first use.

    chosen  the numbers of the items in the data
    digest  the digest of an item's contents
    read    reads an item, and adds its sketch to `seen`
    told    the user's group for each item of the source; None where the user states none
    alone   True where the user declares every item independent
    """

    chosen: tuple[int, ...]
    digest: Callable[[int], str]
    read: Callable[[Sequence[int]], None]
    told: Sequence[object] | None = None
    alone: bool = False
    seen: dict[int, Sketch | None] = field(default_factory=dict[int, Sketch | None])

    @cached_property
    def _numbers(self) -> dict[int, int]:
        own = self.chosen
        if self.alone:
            return dict(zip(own, range(len(own)), strict=True))
        self.read([item for item in own if item not in self.seen])
        sketches = [self.seen[item] for item in own]
        # Equal items have equal sketches; digests decide for items without a sketch.
        equal = [
            self.digest(item) if one is None else item
            for item, one in zip(own, sketches, strict=True)
        ]
        told = () if self.told is None else ([self.told[item] for item in own],)
        groups = join_groups(len(own), equal, near_groups(sketches).tolist(), *told)
        return dict(zip(own, groups.tolist(), strict=True))

    def of(self, items: Sequence[int]) -> Numbers:
        """The group of each of some items."""
        return np.array([self._numbers[item] for item in items], np.int64)


NONE, FOLDER = "none", "folder"


def stated_groups(
    asked: str, names: Sequence[str], columns: Mapping[str, Array] | None, source: str
) -> Sequence[object]:
    """The user's group for each item: by a column of arrays, by folder, or by a pattern in file
    names."""
    if columns is not None:
        return _column_groups(asked, len(names), columns, source)
    if all(not isinstance(name, Phrase) for name in names):
        return _name_groups(asked, names, source)
    raise BadInput(
        "{source}: {group}: what a function gives has no columns and no file names; give arrays "
        "or a folder, or {none} where every sample is independent",
        source,
        argument("group", asked),
        argument("group", NONE),
    )


def _column_groups(
    asked: str, count: int, columns: Mapping[str, Array], source: str
) -> Sequence[object]:
    found = columns.get(asked)
    if found is not None and found.ndim >= 1 and found.size == count:
        return found.reshape(-1).tolist()
    raise BadInput(
        "{source}: {group}: needs an array of that name with one value for each of {count} items; "
        "there are {names}",
        source,
        argument("group", asked),
        total_text(count),
        ", ".join(f"{plain(name)} {list(array.shape)}" for name, array in columns.items()),
    )


def is_by_folder(asked: str) -> bool:
    """True where folders are groups, those of a class or those below."""
    return re.fullmatch(rf"{FOLDER}(:\d+)?", asked) is not None


def _name_groups(asked: str, names: Sequence[str], source: str) -> Sequence[object]:
    level = asked.partition(":")[2]
    if is_by_folder(asked):
        folders = [name.split("/")[:-1] for name in names]
        found = ["/".join(own[: int(level)] if level else own) for own in folders]
        missing = [n for n, own in zip(names, folders, strict=True) if len(own) < int(level or 1)]
    else:
        try:
            matches = [re.search(asked, name) for name in names]
        except re.error as error:
            raise BadInput(
                "{group}: no pattern ({error}); give a regular expression for file names, "
                "folder or folder:2",
                argument("group", asked),
                error,
            ) from None
        found = ["" if m is None else "\n".join(m.groups("") or [m.group()]) for m in matches]
        missing = [name for name, match in zip(names, matches, strict=True) if match is None]
    if missing:
        raise BadInput(
            "{source}: {group}: says nothing of {count} of {count2} files, as {name}; give "
            "folder, folder:2 or a pattern that is in every name",
            source,
            argument("group", asked),
            total_text(len(missing)),
            total_text(len(names)),
            plain(missing[0]),
        )
    return found


def number_groups(groups: Numbers) -> Numbers | None:
    """Renumbers the groups from 0 without gaps; None where every item is its own group."""
    different, numbers = np.unique(groups, return_inverse=True)
    return None if len(different) == len(groups) else numbers.reshape(-1).astype(np.int64)


def groups_text(groups: Numbers | None) -> str:
    """A text that is equal for equal groups; "" where every sample is its own group."""
    if groups is None or len(np.unique(groups)) == len(groups):
        return ""
    firsts = np.unique(groups, return_index=True, return_inverse=True)
    return sha256(firsts[1][firsts[2]].astype("<i8").tobytes()).hexdigest()


def join_groups(count: int, *keys: Sequence[object]) -> Numbers:
    """Groups items, putting two together wherever any of the keys agrees."""
    parents = _Parents(count)
    for key in keys:
        first: dict[object, int] = {}
        for place, one in enumerate(key):
            parents.join(first.setdefault(one, place), place)
    return parents.numbers()


def near_groups(sketches: Sequence[Sketch | None]) -> Numbers:
    """Groups items by their sketches alone."""
    parents = _Parents(len(sketches))
    kinds: dict[tuple[int, bool], list[int]] = {}
    first: dict[bytes, int] = {}
    for place, one in enumerate(sketches):
        if one is None:
            continue
        known = first.setdefault(one.values.tobytes(), place)
        if known == place:
            kinds.setdefault((one.values.size, one.mirrored is None), []).append(place)
        parents.join(known, place)
    for (_, is_plain), places in kinds.items():
        chance = _BY_CHANCE if is_plain else _IMAGES_BY_CHANCE
        pairs = _near_pairs(*_points(sketches, places, is_plain), chance) % len(places)
        different: list[list[int]] = np.unique(np.sort(pairs, axis=1), axis=0).tolist()
        for one, two in different:
            parents.join(places[one], places[two])
    return parents.numbers()


def _points(
    sketches: Sequence[Sketch | None], places: Sequence[int], is_plain: bool
) -> tuple[NDArray[np.float32], float]:
    """Sketches as points, with mirrored ones for images; and the usual distance between them."""
    own = [one for place in places if (one := sketches[place]) is not None]
    points = np.stack([one.values for one in own])
    if is_plain:
        points = points - points.mean(axis=0)
        spread = points.std(axis=0)
        if (spread > 0).sum() < _LEAST_NUMBERS:
            return points, 0.0
        points = (points / np.where(spread > 0, spread, 1)).astype(np.float32)
        return points, math.sqrt(2 * float(np.square(points).sum(axis=1).mean()))
    mirrored = [one.mirrored for one in own if one.mirrored is not None]
    return np.concatenate([points, np.stack(mirrored)]), math.sqrt(2)


def _near_pairs(points: NDArray[np.float32], usual: float, chance: float) -> NDArray[np.int64]:
    """Pairs of near points, enough of them to connect all that are near: shape (pairs, 2)."""
    near = _nearness(points, usual, chance) if len(points) > 1 and usual > 0 else 0.0
    if near == 0:
        return np.zeros((0, 2), np.int64)
    if len(points) <= _ALL_PAIRS:
        return _within(points, np.arange(len(points)), near)
    random, found = np.random.default_rng(0), list[NDArray[np.int64]]()
    hashed = random.integers(1, 2**62, _STEPS)
    for _ in range(_TABLES):
        lines = random.normal(size=(points.shape[1], 1 + _STEPS + _ROUGH)).astype(np.float32)
        along, steps, rough = np.split(points @ lines, (1, 1 + _STEPS), axis=1)
        steps = np.floor(steps / (4 * near) + random.random(_STEPS)).astype(np.int64)
        keys = (steps * hashed).sum(axis=1)
        order = np.lexsort((along[:, 0], keys))
        found.append(_beside(points, rough, order, keys[order], near))
    return np.concatenate(found)


def _beside(
    points: NDArray[np.float32],
    rough: NDArray[np.float32],
    order: Numbers,
    buckets: Numbers,
    near: float,
) -> NDArray[np.int64]:
    """The near pairs among points that are a few places apart in an order, in the same bucket.
    `rough` is the distance of points along some lines; where it is small, they are rarely far
    apart.
    """
    found = [np.zeros((0, 2), np.int64)]
    for apart in range(1, _BESIDE + 1):
        same = np.flatnonzero(buckets[:-apart] == buckets[apart:])
        for start in range(0, len(same), _AT_ONCE):
            places = same[start : start + _AT_ONCE]
            one, two = order[places], order[places + apart]
            along = np.square(rough[one] - rough[two]).mean(axis=1)
            one, two = one[along <= 3 * near**2], two[along <= 3 * near**2]
            is_near = np.square(points[one] - points[two]).sum(axis=1) <= near**2
            found.append(np.stack([one[is_near], two[is_near]], axis=1))
    return np.concatenate(found)


def _within(points: NDArray[np.float32], some: Numbers, near: float) -> NDArray[np.int64]:
    """The pairs among some points that are at most `near` apart."""
    squares = _squares(points[some], points[some])
    one, two = np.nonzero(np.triu(squares <= near**2, 1))
    return np.stack([some[one], some[two]], axis=1)


def _squares(some: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float32]:
    """The squared distance between each point and each other one."""
    lengths = np.square(some).sum(axis=1)[:, None] + np.square(others).sum(axis=1)
    return np.maximum(lengths - 2 * (some @ others.T), 0)


def _nearness(points: NDArray[np.float32], usual: float, chance: float) -> float:
    """The distance up to which points are copies; 0 where near points are no copies at all.

    Points that are near by chance are more numerous in a shell around a point that is twice as
    wide, by a factor that the next two shells reveal; from this factor follows how many are inside
    by chance.
    """
    near = _NEAR * usual
    asked = np.unique(np.linspace(0, len(points) - 1, min(_PROBES, len(points))).astype(np.int64))
    squares = _squares(points[asked], points)
    squares[np.arange(len(asked)), asked] = np.inf
    while near > _LEAST * usual:
        inside, next_one, further = (
            int((squares <= (near * times) ** 2).sum()) for times in (1, 2, 4)
        )
        growth = max((further - next_one) / max(1, next_one - inside), 1.5)
        by_chance = (next_one - inside) / (growth - 1)
        if by_chance <= max(chance * len(asked), _OF_FOUND * inside):
            return near
        near *= _LESS
    return 0.0


class _Parents:
    """Places that are joined step by step."""

    def __init__(self, count: int) -> None:
        self._parents = list(range(count))

    def find(self, place: int) -> int:
        while self._parents[place] != place:
            self._parents[place] = self._parents[self._parents[place]]
            place = self._parents[place]
        return place

    def join(self, one: int, two: int) -> None:
        first, second = sorted((self.find(one), self.find(two)))
        self._parents[second] = first

    def numbers(self) -> Numbers:
        roots = [self.find(place) for place in range(len(self._parents))]
        return np.unique(roots, return_inverse=True)[1].reshape(-1).astype(np.int64)
