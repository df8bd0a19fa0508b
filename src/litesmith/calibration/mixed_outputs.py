"""Outputs that hold numbers of several meanings, as boxes in pixels beside scores from 0 to 1.

One scale serves a whole tensor: where some of its channels reach 640 and others 1, the small ones
are left with a handful of steps. Made in float by its last op, an output loses no more than its
parts do, each with a scale of its own; made in int16 it has 256 times as many steps.
"""

from collections.abc import Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.accuracy.scoring import MOST_DB
from litesmith.calibration.observe import tools
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.sample_splits import look_at_some
from litesmith.data.samples import Data, Sample
from litesmith.errors import LitesmithError
from litesmith.ir.types import Array, Model
from litesmith.passes.core.recipe import apply
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.units import plain

# Samples that are looked at.
_TRIED = 8

# Channels have another meaning where they reach this many times less than the largest. A loss is
# worth mentioning below this many decibels, where the large channels keep this many more.
_LESS, _LOST_DB, _MORE_DB = 16.0, 20.0, 6.0

# No output has more meanings than this many channels.
_MOST_CHANNELS = 1024


class MixedOutput(NamedTuple):
    """An output whose small channels an integer scale loses.

    place     the output's place among the model's
    small     the number of small channels, of `channels`
    reach     the largest number in the small channels; `rest` is that in the others
    snr_db    the SNR of the small channels
    cured_db  their SNR with the op that makes the output left float; None: not tried
    int16_db  the same with that op in int16; None where the runtime has no such kernel
    """

    output: str
    place: int
    small: int
    channels: int
    reach: float
    rest: float
    snr_db: float
    cured_db: float | None = None
    int16_db: float | None = None

    @property
    def lost_least(self) -> str:
        """The cure by which least is lost: "float", "int16", or "" where none helps."""
        tried = {"": self.snr_db, "float": self.cured_db, "int16": self.int16_db}
        known = {way: kept for way, kept in tried.items() if kept is not None}
        return max(known, key=lambda way: known[way])


class _Parts(NamedTuple):
    """For each channel of an output: its largest number, its power, and its error's power."""

    reach: NDArray[np.float64]
    signal: NDArray[np.float64]
    noise: NDArray[np.float64]


def mixed_outputs(
    written: Path | Model, original: Model, data: Data, source: Path | Model
) -> tuple[MixedOutput, ...]:
    """The outputs of a written file that lose small channels, beside the model it was made from."""
    seen = _seen(written, original, data, source)
    outputs = enumerate(original.main.outputs)
    told = [_mixed(plain(t.name), n, seen[n]) for n, t in outputs if n in seen]
    return tuple(
        one
        for one, large in told
        if 0 < one.small < one.channels and one.snr_db < _LOST_DB and large >= one.snr_db + _MORE_DB
    )


def makers(model: Model, found: Sequence[MixedOutput]) -> tuple[str, ...]:
    """The ops that make some outputs, named by their outputs, because other steps change
    numbers."""
    made = {t for op in model.main.ops for t in op.outputs}
    wanted = (model.main.outputs[one.place] for one in found)
    return tuple(dict.fromkeys(escape(tensor.name) for tensor in wanted if tensor in made))


def try_cures(
    found: Sequence[MixedOutput], kept: Model, original: Model, data: Data
) -> tuple[tuple[MixedOutput, ...], Quantize]:
    """What the small numbers keep with the ops that make the outputs float, as they are in `kept`,
    and with these ops in int16; and the step that makes them so of `kept`."""
    step = Quantize("int16x8", only=makers(original, found))
    cured = _small_db(found, kept, original, data)
    wide: list[float | None] = [None] * len(found)
    with suppress(LitesmithError):  # no kernel for it, in the tables or in the runtime
        made = apply(kept, (step,), Context(tools(data))).model
        wide = _small_db(found, made, original, data)
    pairs = zip(found, cured, wide, strict=True)
    return tuple(one._replace(cured_db=a, int16_db=b) for one, a, b in pairs), step


def _small_db(
    found: Sequence[MixedOutput], made: Model, original: Model, data: Data
) -> list[float | None]:
    """The SNR of each output's small channels; None where its numbers are not finite."""
    seen = _seen(made, original, data, original)
    places = [one.place if one.place in seen else None for one in found]
    return [None if n is None else _mixed("", n, seen[n])[0].snr_db for n in places]


def _seen(
    written: Path | Model, original: Model, data: Data, source: Path | Model
) -> dict[int, list[_Parts]]:
    """The parts of each output with channels, by its place, in a few samples."""

    def keep(_: Sample, answers: Sequence[Outputs]) -> list[_Parts | None]:
        return [_parts(ours, wanted) for ours, wanted in zip(*answers, strict=False)]

    few = look_at_some(data, _TRIED)
    tallies = list(outputs_of([written, source], few, keep, workers=1))
    if any(len(tally) != len(original.main.outputs) for tally in tallies):
        return {}
    found = {
        place: [one for one in column if one is not None]
        for place, column in enumerate(zip(*tallies, strict=True))
    }
    return {place: parts for place, parts in found.items() if parts and len(parts) == len(tallies)}


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


def _mixed(name: str, place: int, parts: Sequence[_Parts]) -> tuple[MixedOutput, float]:
    """The SNR of the small channels, and of the others."""
    reach = np.max([one.reach for one in parts], axis=0)
    signal, noise = (np.sum([one[n] for one in parts], axis=0) for n in (1, 2))
    is_small = (reach < reach.max() / _LESS) & (reach > 0)
    small, large = (_decibels(signal[own].sum(), noise[own].sum()) for own in (is_small, ~is_small))
    tops = float(reach[is_small].max(initial=0.0)), float(reach.max())
    return MixedOutput(name, place, int(is_small.sum()), len(reach), *tops, small), large


def _decibels(signal: float, noise: float) -> float:
    return (
        min(MOST_DB, 10 * float(np.log10(signal / noise))) if noise > 0 and signal > 0 else MOST_DB
    )
