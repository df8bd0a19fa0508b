"""Outputs that mix numbers of different meanings, such as pixels beside scores from 0 to 1.

A whole tensor shares one scale: where some of its channels reach 640 and others 1, only a handful
of steps is left to the small ones. An output that its last op makes in float loses no more than its
parts do, each with a scale of its own; an output in int16 has 256 times as many steps.
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

# The number of samples to compare.
_TRIED = 8

# Channels count as small where they reach this many times less far than the largest one. Their loss
# is worth a note below this many decibels, if the large channels have this many more.
_LESS, _LOST_DB, _MORE_DB = 16.0, 20.0, 6.0

# Outputs with more channels than this are not taken for mixtures.
_MOST_CHANNELS = 1024


class MixedOutput(NamedTuple):
    """An output whose small channels are lost at the scale of the large ones.

    place     the position of the output among the model's outputs
    small     the number of small channels, out of `channels`
    reach     the largest number in the small channels; `rest` is that of the others
    snr_db    the SNR of the small channels
    cured_db  their SNR with the op that makes the output left in float; None if not tried
    int16_db  their SNR with that op in int16; None where the runtime has no such kernel
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
        """The best remedy: "float", "int16", or "" where none helps."""
        tried = {"": self.snr_db, "float": self.cured_db, "int16": self.int16_db}
        known = {way: kept for way, kept in tried.items() if kept is not None}
        return max(known, key=lambda way: known[way])


class _Parts(NamedTuple):
    """For each channel of an output: its largest number, its power, and the power of its error."""

    reach: NDArray[np.float64]
    signal: NDArray[np.float64]
    noise: NDArray[np.float64]


def mixed_outputs(
    written: Path | Model, original: Model, data: Data, source: Path | Model
) -> tuple[MixedOutput, ...]:
    """Finds the outputs of a written file that lose small channels, compared with the original
    model."""
    seen = _seen(written, original, data, source)
    outputs = enumerate(original.main.outputs)
    told = [_mixed(plain(t.name), n, seen[n]) for n, t in outputs if n in seen]
    return tuple(
        one
        for one, large in told
        if 0 < one.small < one.channels and one.snr_db < _LOST_DB and large >= one.snr_db + _MORE_DB
    )


def makers(model: Model, found: Sequence[MixedOutput]) -> tuple[str, ...]:
    """The ops that make these outputs, named by their outputs: numbers change with other steps."""
    made = {t for op in model.main.ops for t in op.outputs}
    wanted = (model.main.outputs[one.place] for one in found)
    return tuple(dict.fromkeys(escape(tensor.name) for tensor in wanted if tensor in made))


def try_cures(
    found: Sequence[MixedOutput], kept: Model, original: Model, data: Data
) -> tuple[tuple[MixedOutput, ...], Quantize]:
    """Measures both remedies for the small numbers: the ops that make the outputs in float, as
    `kept` has them, and in int16. Returns the results, and the step that turns `kept` into the
    int16 form."""
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
    """By channel: along the last dimension, or the second where that is shorter."""
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
