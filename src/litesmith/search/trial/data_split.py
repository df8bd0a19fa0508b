"""A user's data in three parts: to calibrate on, to choose by, and to prove the choice on."""

from typing import NamedTuple

from litesmith.data.sample_splits import count_shared, split_data
from litesmith.data.samples import Data
from litesmith.errors import BadInput
from litesmith.units import total_text

# Shares of the data: a fifth is looked at and trained on, unless there is other data for it; of
# the rest a third is enough to choose by, and the most goes into the proof.
_CALIBRATION, _SEARCH = 1 / 5, 1 / 3


class Split(NamedTuple):
    """Samples that have nothing in common.

    calibration  what steps see and learn from
    search       what candidates are compared on
    held_out     what the result is proven on: nothing was chosen by it
    """

    calibration: Data
    search: Data
    held_out: Data


def split(data: Data, calibration: Data | None = None) -> Split:
    """The data in parts; none of it is calibrated on where there is other data for that."""
    if calibration is not None:
        refuse_shared(calibration, data)
        (ordered,) = split_data(calibration, (1.0,))  # by contents: their order must not matter
        return Split(ordered, *split_data(data, (_SEARCH, 1 - _SEARCH)))
    rest = 1 - _CALIBRATION
    return Split(*split_data(data, (_CALIBRATION, rest * _SEARCH, rest * (1 - _SEARCH))))


def refuse_shared(calibration: Data, data: Data) -> None:
    """Raises where some of the data is calibrated on too."""
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
    """How many samples data must have for so many to be held out."""
    share = (1 - _SEARCH) * (1 - _CALIBRATION if calibrates else 1)
    return round(held_out / share + 0.5)
