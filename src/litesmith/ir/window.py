"""The geometry of sliding windows and strided slices, shared by shape rules and kernels.

Every function here raises ValueError for impossible numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple

from litesmith.ir.types import Record
from litesmith.phrases import phrase


class NoWindow(ValueError):
    """No window fits, for example where a free dimension was built as 1."""


class Slide(NamedTuple):
    """How a window moves along one dimension."""

    window: int
    stride: int
    dilation: int

    @property
    def reach(self) -> int:
        """Elements from the window's first to its last."""
        return (self.window - 1) * self.dilation + 1


def slides(options: Record, windows: Sequence[int], axes: str = "hw") -> tuple[Slide, ...]:
    """The slide along each axis, from the stride and dilation options if the op has them."""
    found: list[Slide] = []
    for axis, window in zip(axes, windows, strict=True):
        factor = f"dilation_{axis}_factor"
        dilation = options.integer(factor) if factor in options else 1
        slide = Slide(window, options.integer(f"stride_{axis}"), dilation)
        if min(slide) < 1:
            raise ValueError(
                phrase(
                    "window, stride and dilation are {slide}; each must be positive", tuple(slide)
                )
            )
        found.append(slide)
    return tuple(found)


def slid_size(padding: str, size: int, slide: Slide) -> int:
    """The number of windows that fit along a dimension."""
    needed = 1 if padding == "SAME" else slide.reach
    fits = (size + slide.stride - needed) // slide.stride
    if fits < 1:
        raise NoWindow(
            phrase("a window that reaches {reach} does not fit into {size}", slide.reach, size)
        )
    return fits


def pads(padding: str, size: int, slide: Slide) -> tuple[int, int]:
    """Elements to add before and after so that every window is whole; an odd one goes after."""
    last = (slid_size(padding, size, slide) - 1) * slide.stride + slide.reach
    missing = max(last - size, 0)
    return missing // 2, missing - missing // 2


# One entry of a resolved slice: the places kept along a dimension, the only place of a dimension
# that is dropped, or None for a new dimension of size 1.
Pick = range | int | None


def strided_picks(
    shape: Sequence[int],
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    options: Record,
) -> tuple[Pick, ...]:
    """The places that STRIDED_SLICE keeps of an array of this shape."""
    if not len(begin) == len(end) == len(strides) <= 31:
        raise ValueError(
            phrase(
                "{count} begins, {count2} ends, {count3} strides",
                len(begin),
                len(end),
                len(strides),
            )
        )
    if options["offset"]:
        raise ValueError(phrase("ends that are offsets from the begins are not supported"))
    masks = _Masks(*(options.integer(f"{name}_mask") for name in _Masks._fields))
    dimensions = list(shape)
    picks: list[Pick] = []
    for place in range(len(begin)):
        if _is_set(masks.ellipsis, place):
            keep = len(dimensions) - masks.taken_after(place, len(begin))
            picks += [range(size) for size in _take(dimensions, max(keep, 0))]
        elif _is_set(masks.new_axis, place):
            picks.append(None)
        else:
            bounds = begin[place], end[place], strides[place]
            picks.append(_pick(_take(dimensions, 1)[0], bounds, place, masks))
    return (*picks, *(range(size) for size in dimensions))


def _is_set(mask: int, place: int) -> bool:
    return bool(mask >> place & 1)


class _Masks(NamedTuple):
    begin: int
    end: int
    ellipsis: int
    new_axis: int
    shrink_axis: int

    def taken_after(self, place: int, count: int) -> int:
        """The number of later entries that use up a dimension each."""
        later = range(place + 1, count)
        if any(_is_set(self.ellipsis, other) for other in later):
            raise ValueError(phrase("more than one ellipsis"))
        return sum(not _is_set(self.new_axis, other) for other in later)


def _take(dimensions: list[int], count: int) -> list[int]:
    if count > len(dimensions):
        raise ValueError(phrase("more slices than dimensions"))
    taken = dimensions[:count]
    del dimensions[:count]
    return taken


def _pick(size: int, bounds: tuple[int, int, int], place: int, masks: _Masks) -> Pick:
    begin, end, stride = bounds
    if stride == 0:
        raise ValueError(phrase("a stride is 0"))
    if _is_set(masks.shrink_axis, place):
        # The begin mask counts here too, as it does in the runtime.
        first = 0 if _is_set(masks.begin, place) else begin
        first += size if first < 0 else 0
        if not 0 <= first < size or stride < 0:
            raise ValueError(
                phrase(
                    "index {begin} with stride {stride} is outside of {size} elements",
                    begin,
                    stride,
                    size,
                )
            )
        return first
    span = slice(
        None if _is_set(masks.begin, place) else begin,
        None if _is_set(masks.end, place) else end,
        stride,
    )
    return range(*span.indices(size))
