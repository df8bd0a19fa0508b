"""The user's data in three parts: for calibration, for choosing, and for proving the choice."""

from typing import NamedTuple

from litesmith.data.sample_splits import count_shared, split_data
from litesmith.data.samples import Data
from litesmith.errors import BadInput
from litesmith.units import total_text

# Shares of the data. A fifth calibrates and trains, unless there is separate data for that. A third
# of the rest is enough to choose by; the proof gets the remainder.
_CALIBRATION, _SEARCH = 1 / 5, 1 / 3


class Split(NamedTuple):
    """Three sets of samples that have nothing in common.

    calibration  what steps see and learn from
    search       what candidates are compared on
    held_out     what the result is proven on: no choice depended on these samples
    """

    calibration: Data
    search: Data
    held_out: Data


def split(data: Data, calibration: Data | None = None) -> Split:
    """Splits the data; with separate calibration data, none of `data` is used for calibration."""
    if calibration is not None:
        refuse_shared(calibration, data)
        (ordered,) = split_data(calibration, (1.0,))  # by contents: their order must not matter
        return Split(ordered, *split_data(data, (_SEARCH, 1 - _SEARCH)))
    rest = 1 - _CALIBRATION
    return Split(*split_data(data, (_CALIBRATION, rest * _SEARCH, rest * (1 - _SEARCH))))


def refuse_shared(calibration: Data, data: Data) -> None:
    """Raises where calibration data and scored data overlap."""
    both = count_shared(calibration, data)
    if both:
        raise BadInput(
            "{source}: {count} of its samples are in {source2} too, and what was "
            "calibrated on proves nothing; take them out, or leave out --calibrate",
            calibration.source,
            total_text(both),
            data.source,
        )


def least_samples(held_out: int, *, calibrates: bool) -> int:
    """The number of samples that data must have so that `held_out` of them are held out."""
    share = (1 - _SEARCH) * (1 - _CALIBRATION if calibrates else 1)
    return round(held_out / share + 0.5)
