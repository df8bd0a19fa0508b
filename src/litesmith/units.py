"""The only place that makes texts of numbers and foreign names, and numbers of what is typed."""

import re
from collections.abc import Mapping
from decimal import Decimal
from math import isfinite

from litesmith.phrases import Quantity, phrase

_BYTE_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_COUNT_UNITS = ("", "K", "M", "G", "T", "P", "E")
_TIME_UNITS = ("ns", "µs", "ms", "s")

# What people type for a unit, in small letters, and what it stands for.
_BYTES_TYPED = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtpe", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtpe", 1)},
}
_TIMES_TYPED = {"ns": 1e-3, "us": 1, "µs": 1, "μs": 1, "ms": 1e3, "s": 1e6}  # microseconds
_NUMBER = re.compile(
    r"([+−-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?)\s*(\D*)", re.ASCII | re.IGNORECASE
)


def bytes_text(count: int) -> Quantity:
    """`16.9 MB`; a KB is 1000 bytes, as on a download page."""
    return Quantity(_scaled(count, _BYTE_UNITS))


def count_text(count: int) -> Quantity:
    """`569 M`: three digits and a letter."""
    return Quantity(_scaled(count, _COUNT_UNITS))


def time_text(us: float) -> Quantity:
    """`11.4 ms`, from microseconds: three digits and a unit."""
    return Quantity(_scaled(1000 * us, _TIME_UNITS))


def rate_text(gmacs: float) -> Quantity:
    """`54.8`: GMAC/s to one decimal, none from a hundred on."""
    return Quantity(f"{gmacs:.1f}" if gmacs < 99.95 else f"{gmacs:.0f}")


def percent_text(share: float) -> Quantity:
    """`93.1 %`; a share too small for that is said to be."""
    is_shown = share == 0 or abs(share) >= 0.0005
    return Quantity(f"{100 * share:.1f} %" if is_shown else "<0.1 %")


def change_text(before: int, after: int) -> Quantity:
    """`−664 B (−0.3 %)`: a difference in bytes with its share."""
    sign = "−" if after < before else "+"
    difference = f"{sign}{bytes_text(abs(after - before))}"
    if not before:
        return Quantity(difference)
    return Quantity(f"{difference} ({sign}{percent_text(abs(after - before) / before)})")


def growth_text(times: float, low: float | None = None, high: float | None = None) -> Quantity:
    """`+0.3 % [−0.1, +0.7]` of 1.003 times as much, always with a sign; ends may be missing."""
    shown = f"{_growth(times)} %"
    if low is None or high is None:
        return Quantity(shown)
    return Quantity(f"{shown} [{_growth(low)}, {_growth(high)}]")


def _growth(times: float) -> str:
    if not isfinite(times):
        return "?"
    shown = f"{100 * (times - 1):+.1f}"
    return "0.0" if float(shown) == 0 else shown.replace("-", "−")


def time_interval_text(us: float, low: float, high: float) -> str:
    """`11.3 ms (11.2–11.4)`; units are repeated where they differ."""
    if not isfinite(high):
        return phrase("{time} (unknown)", time_text(us))
    texts = [time_text(value) for value in (us, low, high)]
    numbers, units = zip(*(text.split() for text in texts), strict=True)
    ends = numbers[1:] if len(set(units)) == 1 else texts[1:]
    return Quantity(f"{texts[0]} ({'–'.join(ends)})")


def number_text(value: float) -> Quantity:
    """`14575.2`: six digits and no unit, as C++ prints a number."""
    return Quantity(f"{value:g}")


def energy_text(joules: float) -> Quantity:
    """`41.2 mJ`: three digits."""
    return Quantity(f"{1000 * joules:.3g} mJ")


def ratio_text(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """`0.537× (0.530 to 0.541)`; an interval without an end is said to be unknown."""
    shown = Quantity(f"{ratio:.3f}×")
    if low is None or high is None:
        return shown
    if not isfinite(high):
        return phrase("{ratio} (interval unknown)", shown)
    return Quantity(f"{shown} ({low:.3f} to {high:.3f})")


def factor_text(
    factor: float, word: str, low: float | None = None, high: float | None = None
) -> str:
    """`2.31 × faster [2.25, 2.37]`: three digits; ends may be missing."""
    shown = Quantity(f"{_three_digits(factor)} ×")
    if low is None or high is None:
        return phrase("{factor} {word}", shown, word)
    return phrase("{factor} {word} {interval}", shown, word, factor_interval(low, high))


def factor_interval(low: float | None, high: float | None) -> Quantity:
    """`[2.25, 2.37]`: three digits; "" where an end is missing."""
    if low is None or high is None:
        return Quantity("")
    return Quantity(f"[{_three_digits(low)}, {_three_digits(high)}]")


def error_text(error: float) -> Quantity:
    """`1.3e-07`: a relative error, by its size."""
    return Quantity("0" if not error else f"{error:.1e}")


def total_text(count: int) -> Quantity:
    """`2,000`: every digit."""
    return Quantity(f"{count:,}")


def score_text(
    value: float, unit: str, low: float | None = None, high: float | None = None
) -> Quantity:
    """`69.15 % [67.09, 71.14]` of a share, `23.4 dB` or a plain number; ends may be missing."""
    named = {"share": " %", "": ""}.get(unit, f" {unit}")
    shown = f"{_score(value, unit)}{named}"
    if low is None or high is None:
        return Quantity(shown)
    return Quantity(f"{shown} [{_score(low, unit)}, {_score(high, unit)}]")


def spread_text(value: float, unit: str, low: float, high: float) -> Quantity:
    """`69.2 ±2.0 %`: a score with half the width of its interval, where there is little room."""
    half = (high - low) / 2
    if unit == "share":
        return Quantity(f"{100 * value:.1f} ±{100 * half:.1f} %")
    named = f" {unit}" if unit else ""
    return Quantity(f"{_score(value, unit)} ±{_score(half, unit)}{named}")


def gain_text(difference: float, unit: str, low: float, high: float) -> Quantity:
    """`−0.45 pt [−1.10, +0.20]`: a difference of scores, always with a sign; shares in points."""
    named = {"share": " pt", "": ""}.get(unit, f" {unit}")
    shown, *ends = (
        ("+" if number > 0 else "") + _score(number, unit) for number in (difference, low, high)
    )
    return Quantity(f"{shown}{named} [{', '.join(ends)}]")


def _score(value: float, unit: str) -> str:
    shown = f"{100 * value:.2f}" if unit == "share" else f"{value:.1f}" if unit else f"{value:.4g}"
    return shown.replace("-", "−").replace("inf", "∞")


def typed_bytes(text: str) -> int | None:
    """`4MB`, `500 kB` or `1.5MiB` as bytes; None where it is not so written."""
    count = typed_number(text, _BYTES_TYPED)
    return None if count is None else int(count)


def typed_time(text: str) -> float | None:
    """`10ms`, `800us` or `1.2 s` in microseconds; None where it is not so written."""
    return typed_number(text, _TIMES_TYPED)


def typed_share(text: str) -> float | None:
    """`98%` or `0.98` as a share; None where it is neither, or outside 0 to 1."""
    share = typed_number(text, {"%": 0.01, "": 1})
    return share if share is not None and 0 <= share <= 1 else None


def typed_decibels(text: str) -> float | None:
    """`20dB` or `20` as decibels; None where it is neither."""
    return typed_number(text, {"db": 1, "": 1})


def typed_number(text: str, units: Mapping[str, float]) -> float | None:
    """A number in one of the units (in small letters; "" for none); None where it is not one."""
    found = _NUMBER.fullmatch(text.strip())
    scale = units.get(found[2].strip().lower()) if found else None
    if found is None or scale is None:
        return None
    # In decimals, so that 1.1 % is the number 0.011, and not its neighbour.
    value = float(Decimal(found[1].replace("−", "-")) * Decimal(str(scale)))
    return value if isfinite(value) else None


def plain(name: str) -> str:
    """A foreign name made safe to print: control characters and broken text are escaped."""
    if name.isprintable():
        return name
    try:
        escaped = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:  # half a character, which no bytes stand for
        escaped = name
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)


def _three_digits(value: float) -> str:
    return f"{value:.{3 if value < 0.9995 else _decimals(value)}f}"


def _decimals(value: float) -> int:
    """How many of them make three digits, from 1 on."""
    return 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2


def _scaled(count: float, units: tuple[str, ...]) -> str:
    value = float(count)
    place = 0
    while abs(value) >= 999.5 and place < len(units) - 1:
        value /= 1000
        place += 1
    return f"{value:.{_decimals(value) if place else 0}f} {units[place]}".rstrip()
