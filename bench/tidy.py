"""cleanup | fold | fuse keeps what a model computes, and makes it neither larger nor slower.

Bar: float outputs move by at most 1e-5 of the largest reference value, others not at all; the
result is not larger than the original file; the interleaved time is never "slower".
"""

import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import arguments, compare, model_files, outputs

import litesmith
from litesmith.timing.statistics import Ratio
from litesmith.units import bytes_text, change_text, ratio_text

RECIPE = "cleanup | fold | fuse"
SEEDS = (0, 1, 2)
MOST_DRIFT = 1e-5


class Row(NamedTuple):
    """The effect of the recipe on one model; drift is relative to the largest reference value."""

    name: str
    touched: int
    size: int
    new_size: int
    drift: float
    time: Ratio

    def missed(self) -> list[str]:
        """The bars that a model missed."""
        found: list[str] = []
        if not self.drift <= MOST_DRIFT:
            found.append(f"{self.name}: outputs moved by {self.drift:.2g}")
        if self.new_size > self.size:
            found.append(f"{self.name}: grew from {self.size} to {self.new_size} bytes")
        if self.time.verdict == "slower":
            found.append(f"{self.name}: slower, {ratio_text(self.time.value, *self.time.interval)}")
        return found

    def cells(self) -> tuple[str, ...]:
        size = change_text(self.size, self.new_size)
        drift = f"{self.drift:.1e}" if self.drift else "0"
        total = bytes_text(self.size)
        time = ratio_text(self.time.value, *self.time.interval)
        return self.name, str(self.touched), total, size, drift, time, self.time.verdict


def tidy(file: Path, folder: Path, seconds: float) -> Row:
    """Applies the recipe to one model and compares the result with the original."""
    old, new = folder / "old.tflite", folder / "new.tflite"
    shutil.copyfile(file, old)
    change = litesmith.apply(litesmith.load(file), RECIPE)
    litesmith.save(change.model, new)
    drift = max(output_drift(old, new, seed) for seed in SEEDS)
    time = compare(old, new, seconds=seconds)
    sizes = old.stat().st_size, new.stat().st_size
    return Row(file.name, len(change.touched), *sizes, drift, time)


def output_drift(old: Path, new: Path, seed: int) -> float:
    """The largest drift of any output."""
    pairs = zip(outputs(old, seed), outputs(new, seed), strict=True)
    return max(array_drift(reference, array) for reference, array in pairs)


def array_drift(reference: np.ndarray, array: np.ndarray) -> float:
    """Largest difference over largest magnitude; infinite for any other change."""
    if reference.dtype != array.dtype or reference.shape != array.shape:
        return np.inf
    if reference.dtype.kind != "f":
        return 0.0 if np.array_equal(reference, array) else np.inf
    difference = float(np.abs(array - reference).max(initial=0.0))
    peak = float(np.abs(reference).max(initial=0.0))
    if not np.isfinite([difference, peak]).all():
        return 0.0 if np.array_equal(reference, array, equal_nan=True) else np.inf
    return difference / peak if peak else (np.inf if difference else 0.0)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of timing for each model")
    options = parser.parse_args()
    rows: list[Row] = []
    with TemporaryDirectory() as folder:
        for file in model_files(options.models):
            rows.append(tidy(file, Path(folder), options.seconds))
            print(f"{file.name}: {rows[-1].time.verdict}", file=sys.stderr)
    head = ("model", "touched", "size", "change", "drift", "new time / old, 95 %", "verdict")
    tell_figure("models", len(rows))
    print_table(head, [row.cells() for row in rows])
    return verdict_line([line for row in rows for line in row.missed()])


if __name__ == "__main__":
    sys.exit(main())
