"""The only place that turns numbers and foreign names into text."""

_BYTE_UNITS = ("B", "KB", "MB", "GB", "TB", "PB", "EB")
_COUNT_UNITS = ("", "K", "M", "G", "T", "P", "E")


def bytes_text(count: int) -> str:
    """`16.9 MB`; a KB is 1000 bytes, as on a download page."""
    return _scaled(count, _BYTE_UNITS)


def count_text(count: int) -> str:
    """`569 M`: three digits and a letter."""
    return _scaled(count, _COUNT_UNITS)


def percent_text(share: float) -> str:
    """`93.1 %`; a share too small for that is said to be."""
    return f"{100 * share:.1f} %" if share == 0 or abs(share) >= 0.0005 else "<0.1 %"


def change_text(before: int, after: int) -> str:
    """`−664 B (−0.3 %)`: a difference in bytes with its share."""
    sign = "−" if after < before else "+"
    difference = f"{sign}{bytes_text(abs(after - before))}"
    return (
        f"{difference} ({sign}{percent_text(abs(after - before) / before)})"
        if before
        else difference
    )


def plain(name: str) -> str:
    """A foreign name made safe to print: control characters and broken text are escaped."""
    if name.isprintable():
        return name
    escaped = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in escaped)


def _scaled(count: int, units: tuple[str, ...]) -> str:
    value = float(count)
    place = 0
    while abs(value) >= 999.5 and place < len(units) - 1:
        value /= 1000
        place += 1
    decimals = 0 if place == 0 or abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2
    return f"{value:.{decimals}f} {units[place]}".rstrip()
