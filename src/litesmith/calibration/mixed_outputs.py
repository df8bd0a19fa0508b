"""Outputs that hold numbers of several meanings, as boxes in pixels beside scores from 0 to 1.

One scale serves a whole tensor: where some of its channels reach 640 and others 1, the small ones
are left with a handful of steps.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy.scoring import MOST_DB
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.sample_splits import look_at_some
from litesmith.data.samples import Data, Sample
from litesmith.ir.types import Array, Model
from litesmith.units import plain

# Samples that are looked at.
_TRIED = 8

# Channels are of another meaning where they reach so many times less than the largest; a loss is
# worth a word below so many decibels, and where the large ones keep so many more.
_LESS, _LOST_DB, _MORE_DB = 16.0, 20.0, 6.0

# No output has more meanings than this many channels.
_MOST_CHANNELS = 1024


class MixedOutput(NamedTuple):
    """An output whose small channels an integer scale loses.

    place     of the output among the model's
    small     how many channels are small, of `channels`
    reach     the largest number in the small ones, and in the others `rest`
    snr_db    what the small ones keep
    cured_db  what they keep with the op that makes the output left float; None: not tried
    """

    output: str
    place: int
    small: int
    channels: int
    reach: float
    rest: float
    snr_db: float
    cured_db: float | None = None


class _Parts(NamedTuple):
    """Of each channel of an output: its largest number, its power, and that of the error."""

    reach: NDArray[np.float64]
    signal: NDArray[np.float64]
    noise: NDArray[np.float64]


def mixed_outputs(
    written: Path, original: Model, data: Data, source: Path | Model
) -> tuple[MixedOutput, ...]:
    """The outputs of a written file that lose small channels, beside the model it was made from."""

    def keep(_: Sample, answers: Sequence[Outputs]) -> list[_Parts | None]:
        return [_parts(ours, wanted) for ours, wanted in zip(*answers, strict=False)]

    few = look_at_some(data, _TRIED)
    tallies = list(outputs_of([written, source], few, keep, workers=1))
    outputs = original.main.outputs
    if not tallies or any(len(tally) != len(outputs) for tally in tallies):
        return ()
    found: list[MixedOutput] = []
    for place, tensor in enumerate(outputs):
        parts = [one for tally in tallies if (one := tally[place]) is not None]
        told = _mixed(plain(tensor.name), place, parts) if len(parts) == len(tallies) else None
        found += [told] if told is not None else []
    return tuple(found)


def _parts(ours: Array, wanted: Array) -> _Parts | None:
    """By channel: the last dimension, or the second where that is the shorter one."""
    if ours.shape != wanted.shape or wanted.ndim < 2 or wanted.dtype.kind != "f":
        return None
    a, b = ours.astype(np.float64), wanted.astype(np.float64)
    if wanted.ndim == 3 and wanted.shape[1] < wanted.shape[2]:
        a, b = a.swapaxes(1, 2), b.swapaxes(1, 2)
    channels = b.shape[-1]
    if not 1 < channels <= _MOST_CHANNELS or b.size <= channels or not np.isfinite([a, b]).all():
        return None
    a, b = a.reshape(-1, channels), b.reshape(-1, channels)
    return _Parts(np.abs(b).max(0), np.square(b).sum(0), np.square(a - b).sum(0))


def _mixed(name: str, place: int, parts: Sequence[_Parts]) -> MixedOutput | None:
    reach = np.max([one.reach for one in parts], axis=0)
    signal, noise = (np.sum([one[n] for one in parts], axis=0) for n in (1, 2))
    is_small = (reach < reach.max() / _LESS) & (reach > 0)
    if not is_small.any() or is_small.all():
        return None
    small, large = (_decibels(signal[own].sum(), noise[own].sum()) for own in (is_small, ~is_small))
    if small >= _LOST_DB or large < small + _MORE_DB:
        return None
    tops = float(reach[is_small].max()), float(reach.max())
    return MixedOutput(name, place, int(is_small.sum()), len(reach), *tops, small)


def _decibels(signal: float, noise: float) -> float:
    return (
        min(MOST_DB, 10 * float(np.log10(signal / noise))) if noise > 0 and signal > 0 else MOST_DB
    )
