"""Values out of JSON that another version, a crash or a person may have written."""

import re
from collections.abc import Mapping
from typing import cast

from litesmith.units import plain

Fields = Mapping[str, object]


# No time, size or score is larger; sums and squares of such numbers stay finite.
_LARGEST = 1e18


def number(value: object) -> float | None:
    """A finite number of a size that can be measured, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _LARGEST else None  # which NaN is not


def positive(value: object) -> float | None:
    """A number above zero, as sizes and times are, else None."""
    found = number(value)
    return found if found is not None and found > 1 / _LARGEST else None


def text(value: object) -> str:
    """One line that is safe to print; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    return plain(re.sub(r"\s", " ", value)).strip()


def texts(value: object) -> tuple[str, ...]:
    """Every text of a list that says something."""
    found = cast(list[object], value) if isinstance(value, list) else []
    return tuple(shown for shown in map(text, found) if shown)


def fields(value: object) -> Fields:
    """An object of JSON; empty for anything else."""
    return cast(Fields, value) if isinstance(value, Mapping) else {}


def rows(value: object) -> tuple[Fields, ...]:
    """The objects of a list."""
    found = cast(list[object], value) if isinstance(value, list) else []
    return tuple(fields(row) for row in found if isinstance(row, Mapping))
