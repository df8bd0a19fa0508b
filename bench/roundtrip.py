"""A copy computes what the original computes, bit for bit, and is about as large.

Every model is read and written; the copy is read and written again, which must give the same
bytes. Bar: outputs on three seeded inputs are identical, and so are the two copies; the copy is
larger by 1 % or 1 KB at most.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import arguments, model_files, outputs

import litesmith
from litesmith.units import bytes_text, change_text

SEEDS = (0, 1, 2)
MOST_BYTES, MOST_SHARE = 1000, 0.01


class Row(NamedTuple):
    """The result of a round trip of one model."""

    name: str
    size: int
    copy_size: int
    outputs: str
    again: str

    @property
    def is_small(self) -> bool:
        return self.copy_size - self.size <= max(MOST_BYTES, MOST_SHARE * self.size)

    @property
    def is_fine(self) -> bool:
        return self.outputs == self.again == "identical" and self.is_small


def trip(file: Path, folder: Path) -> Row:
    """Reads, writes, runs and compares one model."""
    copy, second = folder / "copy.tflite", folder / "second.tflite"
    litesmith.save(litesmith.load(file), copy)
    litesmith.save(litesmith.load(copy), second)
    different = [seed for seed in SEEDS if not same_outputs(file, copy, seed)]
    return Row(
        file.name,
        file.stat().st_size,
        copy.stat().st_size,
        f"different for seeds {different}" if different else "identical",
        "identical" if copy.read_bytes() == second.read_bytes() else "different",
    )


def same_outputs(first: Path, second: Path, seed: int) -> bool:
    """True where every output has the same type, shape and bits."""
    pairs = zip(outputs(first, seed), outputs(second, seed), strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b) for a, b in pairs)


def bits(array: np.ndarray) -> bytes | list[object]:
    return array.tolist() if array.dtype == object else array.tobytes()


def main() -> int:
    options = arguments(__doc__).parse_args()
    with TemporaryDirectory() as folder:
        rows = [trip(file, Path(folder)) for file in model_files(options.models)]
    growths = [row.copy_size / row.size - 1 for row in rows]
    for key, value in (("models", len(rows)), ("least", min(growths)), ("most", max(growths))):
        tell_figure(key, value)
    head = ("model", "size", "size of the copy", "outputs", "second copy")
    print_table(
        head,
        [
            (r.name, bytes_text(r.size), change_text(r.size, r.copy_size), r.outputs, r.again)
            for r in rows
        ],
    )
    return verdict_line([row.name for row in rows if not row.is_fine])


if __name__ == "__main__":
    sys.exit(main())
