"""Does `litesmith gate` know a detector that got worse?

Tiny YOLO v2 on 320 pets, by AP50: the model of the baseline itself, and models with noise in their
weights, a model of its own each time, searched until 5 points of AP50 are lost on all 320 images.
Bars: no alarm in 20 unchanged runs, accuracy called in 10 of 10.
"""

import sys
import tempfile
from pathlib import Path

from gate import counted, gated, logged, noisy, said
from report import print_table, verdict_line
from stock import ASSETS, arguments, want_folder

import litesmith
from litesmith.tflite.file import load, save
from litesmith.units import percent_text

MODEL, DATA = "yolov2_tiny.tflite", "pets"
LOST, NEAR = 0.05, 0.004
WORDS = ("--norm", "unit", "--metric", "ap50", "--seconds", 10)


def spoil(original: Path, data: Path, folder: Path, seed: int) -> tuple[Path, float]:
    """Noise that loses five points, found by halving."""
    model = load(original)
    right = ap50(original, data)
    low, high = 0.0, 0.5
    best = (1.0, Path(), 0.0)
    for number in range(10):
        middle = (low + high) / 2
        path = folder / f"noisy_{seed}_{number}.tflite"
        save(noisy(model, middle, seed), path)
        lost = right - ap50(path, data)
        best = min(best, (abs(lost - LOST), path, lost))
        if best[0] < NEAR:
            break
        low, high = (middle, high) if lost < LOST else (low, middle)
    return best[1], best[2]


def ap50(path: Path, data: Path) -> float:
    return litesmith.evaluate(path, data, norm="unit", metric="ap50").value


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help=f"holds {DATA}")
    parser.add_argument("--unchanged", type=int, default=20, help="runs on the unchanged model")
    parser.add_argument("--count", type=int, default=10, help="runs on models that are worse")
    options = parser.parse_args()
    original = want_folder(options.models, "--models") / MODEL
    data = want_folder(options.data, "--data") / DATA
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        worse = [spoil(original, data, folder, seed) for seed in range(options.count)]
        print("lost:", ", ".join(percent_text(lost) for _, lost in worse), flush=True)
        baseline = folder / "baseline.json"
        words = ("--data", data, *WORDS)
        said(baseline, original, "--update", *words)
        rows, missed = [], []
        jobs = (
            ("unchanged", [original] * options.unchanged, ()),
            ("less accurate", [path for path, _ in worse], ("accuracy",)),
        )
        for title, models, wanted in jobs:
            found = [logged(title, gated(baseline, path, *words)) for path in models]
            row, misses = counted(title, found, wanted)
            rows.append(row)
            missed += misses
    print_table(("model", "runs", "alarms", "called", "false", "unclear"), rows)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
