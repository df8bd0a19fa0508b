"""The end of every bench: a table, the bars that were missed, the exit status."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

# Names the file that figures go to, a line each, while `figures.py` runs a bench.
FIGURES = "LITESMITH_BENCH_FIGURES"
MISSED = "bars missed"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their content; the first to the left, the others to the right."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
    print(flush=True)


def tell_figure(
    key: str, value: float, low: float | None = None, high: float | None = None
) -> None:
    """Reports a figure that documents print, with the interval of its measurement."""
    place = os.environ.get(FIGURES)
    if place:
        with Path(place).open("a") as file:
            file.write(json.dumps({"key": key, "value": value, "low": low, "high": high}) + "\n")


def verdict_line(missed: Sequence[str]) -> int:
    """Prints the bars that were missed; returns the exit status."""
    tell_figure(MISSED, len(missed))
    for line in missed:
        print(f"missed: {line}")
    print("bar missed" if missed else "all within the bar")
    return 1 if missed else 0
