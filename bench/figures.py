"""Measures again every figure that the documents print, and marks what has drifted.

A row of FIGURES says where a figure is printed, the words around it, the bench or the command that
gives it and the interval within which it counts as the same. What several figures need runs once.
Run it on a machine that does nothing else; what was printed holds for the machine that the table
names. Some need a folder of more models (--zoo) or a Python with the peer's quantizer (--peer).

Bar: nothing has drifted, and every bench says what it was asked for.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from report import FIGURES as FIGURES_VARIABLE
from report import MISSED, print_table, verdict_line
from stock import ASSETS

ROOT = Path(__file__).resolve().parents[1]
MEASURED = "docs/measured.md"

# Bars that a bench holds itself to: a statement without a number holds where none is missed.
NONE_MISSED = (0.0, 0.0)


class Figure(NamedTuple):
    """A figure of a document.

    text     the words in the document, figure included
    command  what follows `python bench/`, or a command of `litesmith`
    key      what the bench calls the figure; of a command, its place in what --json prints, or
             "1 / " and that
    low      the interval within which a new measurement is the figure that is printed
    high
    """

    document: str
    text: str
    command: str
    key: str
    low: float
    high: float

    @property
    def name(self) -> str:
        return f"{self.document}: {self.text}"


class Told(NamedTuple):
    """A bench's measurement, with the ends of its interval where it has one."""

    value: float
    low: float | None = None
    high: float | None = None


TASKS, COST, TUNE = "tasks.py --more ZOO", "quantize_cost.py --peer PYTHON", "tune.py --peer PYTHON"
INT8 = 'quantize.py --only " int8" --peer PYTHON'
W4A8, BLOCKS = "quantize.py --only w4a8", "quantize.py --only dynamic-int4"
MATRIX = "matrix.py --more ZOO --skip commands --peer PEER"
TRAIN = 'train.py --only "int8 QAT" zeros clusters'
IRIS = "litesmith quantize iris_landmark.tflite --random-data -o OUT.tflite"
YOLO = (
    "litesmith tune yolov2_tiny.tflite --data pets --norm unit --metric ap50 --max-drop 1pt "
    "--no-train -o OUT"
)
FLOWERS = (
    "litesmith retrain mobilenet_v2_1.0_224_features.tflite --data flowers --norm torch "
    "-o OUT.tflite"
)
SCRATCH = "litesmith retrain resnet8 --data cifar10_train.npz --val cifar10_test.npz -o OUT.tflite"
# Words of a command that stand for what is given here.
GIVEN = {"ZOO": "zoo", "PEER": "peer", "PYTHON": "peer"}

# Minutes that each bench takes on an idle machine with two cores, about.
MINUTES = {
    "roundtrip.py": 1,
    "large.py": 3,
    "upgrade.py --seconds 20": 1,
    "tidy.py --seconds 8": 5,
    "session.py": 1,
    "op_profile.py": 1,
    "custom_ops.py": 2,
    "fuzz.py": 4,
    "int16x8.py": 6,
    "honesty.py": 12,
    INT8: 14,
    W4A8: 8,
    BLOCKS: 8,
    "quantize.py --only dynamic": 8,
    "tune.py --only cost": 4,
    "gate.py": 60,
    "interrupted.py": 25,
    "targets.py": 5,
    "operators.py": 4,
    "collapse.py": 8,
    "lift.py --only step qat": 3,
    "cluster.py": 15,
    TASKS: 12,
    MATRIX: 60,
    COST: 10,
    TUNE: 60,
    TRAIN: 90,
    IRIS: 1,
    YOLO: 15,
    FLOWERS: 1,
    SCRATCH: 11,
}

# What cuts a bench short: it tells its figures, which mean nothing then.
QUICK = {
    "large.py": "--repetitions 1",
    "upgrade.py --seconds 20": "--seconds 1",
    "tidy.py --seconds 8": "--seconds 0.5",
    "session.py": "--seconds 0.5",
    "custom_ops.py": "--seconds 1 --runs 200",
    "fuzz.py": "--count 200",
    "honesty.py": "--count 3 --ab-count 1 --seconds 1",
    INT8: "--samples 20",
    W4A8: "--samples 20",
    BLOCKS: "--samples 20",
    "quantize.py --only dynamic": "--samples 20",
    "gate.py": "--unchanged 1 --count 1",
    "interrupted.py": "--kills 1",
    "targets.py": "--seconds 0.5",
    "collapse.py": "--seconds 1",
    "lift.py --only step qat": "--rounds 6",
    TASKS: "--only yolov2_tiny",
    MATRIX: "--only iris",
    COST: "--rounds 6",
    YOLO: "--samples 40 --minutes 1",
    FLOWERS: "--samples 100",
    SCRATCH: "--samples 200 --epochs 1",
}
# Those that no option cuts short.
LONG = ("cluster.py", TRAIN, TUNE, "int16x8.py", "operators.py")

V1, V1_SMALL = "mobilenet_v1_1.0_224", "mobilenet_v1_0.25_224"
LITE, RESNET, V2 = "efficientnet_lite0_f32", "pretrainedResnet", "mobilenet_v2_torchvision"
SWISH = "A hard swish on 200,704 numbers: 73.5 µs as four ops"


def _seen(text: str, command: str, *values: tuple[str, float, float]) -> list[Figure]:
    """Figures that stand in one cell of the table of what it is worth."""
    return [Figure(MEASURED, text, command, *value) for value in values]


FIGURES: tuple[Figure, ...] = (
    *_seen("a copy of each of 19 real models", "roundtrip.py", ("models", 19, 19)),
    *_seen("size −2.5 % to +0.1 %", "roundtrip.py",
             ("least", -0.0255, -0.0245), ("most", 0.0005, 0.0015), (MISSED, *NONE_MISSED)),
    *_seen("0.14 times as long", "large.py", ("few large time without flush", 0.10, 0.18)),
    *_seen("memory grows by 1.00 times the file instead of 3.01", "large.py",
             ("few large litesmith memory", 0.95, 1.05),
             ("few large object API memory", 2.9, 3.1)),
    *_seen("2.00 times as fast; the same top class on 97.5 % of 200 images",
             "upgrade.py --seconds 20", ("faster", 1.90, 2.10), ("agreement", 0.9745, 0.9755)),
    *_seen("`cleanup \\| fold \\| fuse` on 17 models", "tidy.py --seconds 8", ("models", 17, 17)),
    *_seen("outputs identical, none larger, none slower", "tidy.py --seconds 8",
             (MISSED, *NONE_MISSED)),
    *_seen("top-1 69.15 → 68.77, 51.35 → 51.51, 75.00 → 74.78, 86.68 → 86.69", INT8,
             (f"{V1} int8 top-1", 0.6870, 0.6895), (f"{V1_SMALL} int8 top-1", 0.5145, 0.5170),
             (f"{LITE} int8 top-1", 0.7470, 0.7485), (f"{RESNET} int8 top-1", 0.8635, 0.8675)),
    *_seen("ai-edge-quantizer 0.10 by default 63.60, 39.98, 74.98, 86.13", INT8,
             (f"{V1} int8, peer top-1", 0.635, 0.637),
             (f"{V1_SMALL} int8, peer top-1", 0.399, 0.401),
             (f"{LITE} int8, peer top-1", 0.749, 0.7505),
             (f"{RESNET} int8, peer top-1", 0.86, 0.8625)),
    *_seen("67.73 at 2.54 MB of 16.9, 75.00 → 73.84 at 3.21 MB of 18.6, 71.20 → 69.50 at 2.47 MB",
             W4A8,
             (f"{V1} w4a8 top-1", 0.6760, 0.6785), (f"{V1} w4a8 bytes", 2.535e6, 2.545e6),
             (f"{LITE} w4a8 top-1", 0.7370, 0.7400), (f"{LITE} w4a8 bytes", 3.205e6, 3.215e6),
             (f"{V2} w4a8 top-1", 0.6935, 0.6965), (f"{V2} w4a8 bytes", 2.465e6, 2.475e6)),
    *_seen("67.95 at 2.58 MB, 75.00 → 74.10 at 3.11 MB, 71.20 → 71.00 at 2.37 MB", BLOCKS,
             (f"{V1} dynamic-int4 top-1", 0.6780, 0.6810),
             (f"{V1} dynamic-int4 bytes", 2.575e6, 2.585e6),
             (f"{LITE} dynamic-int4 top-1", 0.7395, 0.7425),
             (f"{LITE} dynamic-int4 bytes", 3.105e6, 3.12e6),
             (f"{V2} dynamic-int4 top-1", 0.7085, 0.7115),
             (f"{V2} dynamic-int4 bytes", 2.365e6, 2.375e6)),
    *_seen("top-1 71.20 → 70.28 (−0.92 pt", INT8, (f"{V2} int8 top-1", 0.70275, 0.70285)),
    *_seen("70.64 (−0.56 pt", INT8, (f"{V2} int8 with equalize top-1", 0.70635, 0.70645)),
    *_seen("within 0.1 pt of float", "quantize.py --only dynamic",
             *((f"{name} dynamic difference", -0.001, 0.001)
               for name in (V1, V1_SMALL, LITE, RESNET))),
    *_seen("82 s; repeated, from its records, 3.5 s", "tune.py --only cost",
             ("first search", 65, 100), ("again", 2.5, 4.5)),
    *_seen("no damaged file, the same best", "interrupted.py", (MISSED, *NONE_MISSED)),
    *_seen("47.2 (46.8 to 47.9), 43.0 (42.6 to 44.4) and 29.4 (29.3 to 29.6) times as fast",
             "int16x8.py", (V1, 46.8, 47.9), (LITE, 42.6, 44.4), (RESNET, 29.3, 29.6)),
    *_seen("2.77 (2.71 to 2.80) times as fast, outputs within 3.3e-6", "int16x8.py",
             ("MobileNet v1, 13 1×1 layers sparse", 2.71, 2.80)),
    *_seen("8 µs in Python, 0.5 µs compiled", "custom_ops.py",
             ("in Python", 7.0, 9.5), ("compiled", 0.44, 0.58), (MISSED, *NONE_MISSED)),
    *_seen("no disagreement on 1,295 ops each", "targets.py", (MISSED, *NONE_MISSED)),
    *_seen("1.00 inside 393 of 400 intervals; the 5 % called in 50 of 50", "honesty.py",
             ("same", 0.94, 0.99), ("different", 0.98, 1.0)),
    *_seen("no alarm in 50 runs; the others called in 10 of 10 each", "gate.py",
             ("unchanged alarms", 0, 0), ("slower called", 10, 10),
             ("less accurate called", 10, 10), ("larger called", 10, 10)),
    *_seen("99.1 % to 100.1 % of it in two runs", "op_profile.py",
             (V1, 0.97, 1.03), (LITE, 0.97, 1.03), ("deeplabv3", 0.97, 1.03),
             (MISSED, *NONE_MISSED)),
    *_seen("0.5 µs more on the smallest model, 1.001 times on MobileNet v1", "session.py",
             ("tiny more", 0.3, 0.7), (f"{V1}.tflite ratio", 0.995, 1.005)),
    *_seen("7.3 times cheaper with the input assigned, 2,700 times with it made in place",
             "session.py", ("view, input assigned", 6.0, 8.6),
             ("view, input made in place", 1500, 4500)),
    *_seen("0.93 (0.88 to 1.03) times as long", COST,
             ("ours / peer", 0.88, 1.03)),
    *_seen("1.63 times as fast as float [1.62, 1.64]", IRIS, ("1 / latency.ratio", 1.5, 2.0)),
    *_seen("median 1.53 times as fast as float, none slower", MATRIX,
             ("median speed-up", 1.4, 1.7)),
    *_seen("AP50 79.14 and 79.58, AP 26.60 and 45.39, mean IoU 83.94", TASKS,
             ("yolov2_tiny ap50", 79.1, 79.2), ("ssd_mobilenet ap50", 79.5, 79.65),
             ("yolov2_tiny ap", 26.55, 26.65), ("ssd_mobilenet ap", 45.35, 45.45),
             ("deeplabv3 miou", 83.9, 84.0)),
    *_seen("3.27 times as fast [3.10, 3.81] at +0.15 pt", YOLO, ("1 / latency_ratio", 3.0, 3.9)),
    *_seen("int8 QAT 87.22 %; half zeros and int8 86.24 % at 58.7 KB; 32 clusters and int8 86.90 %",
             TRAIN, (f"{RESNET} int8 QAT top-1", 0.865, 0.88),
             (f"{RESNET} half zeros, int8 top-1", 0.855, 0.87),
             (f"{RESNET} 32 clusters, int8 top-1", 0.862, 0.876)),
    *_seen("fully integer files, 2.8, 1.6, 2.2 and 3.2 times as fast as float", TUNE,
             (f"{V1} faster", 2.5, 3.1), (f"{V1_SMALL} faster", 1.4, 1.8),
             (f"{LITE} faster", 2.0, 2.4), (f"{RESNET} faster", 2.9, 3.5)),
    *_seen("3.9 times as fast as float with nothing lost", "collapse.py",
             ("outliers faster", 3.5, 4.3)),
    *_seen("4.2 times as fast at −0.34 pt [−1.48, +0.81]", "collapse.py",
             ("sensitive ends faster", 3.8, 4.6)),
    *_seen("1.0 times as long; 2.0 times on ResNet-8, 2.4 to 2.5", "lift.py --only step qat",
             (f"{RESNET}.tflite step", 0.9, 1.1), (f"{RESNET}.tflite int8", 1.8, 2.2),
             (f"{V1_SMALL}.tflite int8", 2.2, 2.7)),
    *_seen("88.0 % [82.8, 91.8] of 200 held-out images", FLOWERS, ("value", 0.828, 0.918)),
    *_seen("69.3 % [68.0, 70.6] of 5,000", SCRATCH, ("value", 0.66, 0.72)),
    *_seen("1.57 times as fast, the same bits", "operators.py", ("pruned int8", 1.45, 1.7)),
    *_seen("1.84 times as fast, the same result", "cluster.py", ("two workers", 1.7, 2.0)),
    *_seen("5,000 files, damaged blindly and by structure", "fuzz.py", ("files", 5000, 5000)),
    *_seen("each a valid model or one clear line; the slowest took 0.66 s, the largest 6.8 MB",
             "fuzz.py", (MISSED, *NONE_MISSED), ("slowest", 0.0, 1.0), ("largest", 0.0, 10e6)),
    Figure("docs/custom-ops.md", "8.5 µs a call in Python, 5.7 µs for a program of a",
           "custom_ops.py", "in Python", 7.0, 10.0),
    Figure("docs/custom-ops.md", "8.5 µs a call in Python, 5.7 µs for a program of a",
           "custom_ops.py", "a delegate's, in Python", 4.7, 6.7),
    Figure("docs/custom-ops.md", SWISH, "custom_ops.py", "four ops of LiteRT", 62, 85),
    Figure("docs/custom-ops.md", "69.8 µs as one compiled op, 138 µs in numpy", "custom_ops.py",
           "numba", 59, 81),
    Figure("docs/custom-ops.md", "69.8 µs as one compiled op, 138 µs in numpy", "custom_ops.py",
           "numpy", 115, 160),
    Figure("docs/cluster.md", "64 s local, 69 s with the cluster, 61 s with a worker killed",
           "cluster.py", "local", 50, 80),
    Figure("docs/cluster.md", "64 s local, 69 s with the cluster, 61 s with a worker killed",
           "cluster.py", "ray", 52, 86),
    Figure("docs/gate.md", "| unchanged | 50 | | 0 | 0.997× to 1.002× |", "gate.py",
           "unchanged alarms", 0, 0),
)  # fmt: skip

# What documents print and nothing here measures: document, words, the reason.
NOT_COVERED: tuple[tuple[str, str, str], ...] = (
    (MEASURED, "1.32 times as fast (1.31 to 1.32) at 86.00 %", "training on a GPU"),
    (MEASURED, "at best 3.2 %, 44.8 % and 44.2 % right", "needs the peer, and an hour"),
    (MEASURED, "10.3, 9.9 and 11.7 s, the peer 14.3, 9.7 and 11.9", "needs the peer"),
    (MEASURED, "MobileNet v1 8.8 times as fast, DeepLab 3.6", "needs a GPU"),
    (MEASURED, "none slower beyond the noise; OCR detection v4 0.82", "needs the peer"),
    (MEASURED, "0.09 to 1.04 times as long: super-resolution 0.09", "needs the peer"),
    (MEASURED, "−0.04 pt [−0.53, +0.45] beside float", "weights that a GPU trains"),
    (MEASURED, "21.3 dB nearer to float than plain int8", "sound and a model to be fetched"),
    ("docs/gate.md", "−1.1 % to +0.7 %, and ok each time", "seen once, by hand"),
    ("docs/retrain.md", "| `ds_cnn_s`, 12 keywords | 799 items | 78.5 %", "data to be fetched"),
)


def told_by_json(told: object, place: str = "") -> Iterator[tuple[str, float]]:
    """The numbers that a command printed, by their place: `latency.ratio`."""
    if isinstance(told, dict):
        for key, value in told.items():
            yield from told_by_json(value, f"{place}.{key}" if place else str(key))
    elif isinstance(told, int | float) and not isinstance(told, bool):
        yield place, told
        if told:
            yield f"1 / {place}", 1 / told


def run_litesmith(words: Sequence[str], zoo: str) -> tuple[dict[str, Told], str]:
    """The numbers that a command prints; its files come from the folders of models and data."""
    folders = [ASSETS / "models", ASSETS / "data", *([Path(zoo)] if zoo else [])]
    found = {path.name: str(path) for folder in folders for path in folder.glob("*")}
    with TemporaryDirectory() as place:
        line = [sys.executable, "-m", "litesmith", *(found.get(word, word) for word in words)]
        done = subprocess.run(
            [*line, "--json"], cwd=place, capture_output=True, text=True, check=False
        )
    said = (done.stderr.strip().splitlines() or [""])[-1]
    if done.returncode > 1:
        return {}, said
    return {key: Told(value) for key, value in told_by_json(json.loads(done.stdout))}, said


def run_bench(
    command: str, options: Sequence[str], given: Mapping[str, str]
) -> tuple[dict[str, Told], str]:
    """The figures that a bench reports, and its last line; for a failed bench, the reason."""
    script, *words = (given.get(word, word) for word in shlex.split(command))
    missing = [f"--{GIVEN[word]}" for word in words if word in GIVEN]
    if missing:
        return {}, f"needs {missing[0]}"
    if script == "litesmith":
        return run_litesmith([*words, *options], given.get("ZOO", ""))
    with TemporaryDirectory() as folder:
        place = Path(folder, "figures.jsonl")
        done = subprocess.run(
            [sys.executable, str(ROOT / "bench" / script), *words, *options],
            env={**os.environ, FIGURES_VARIABLE: str(place)},
            capture_output=True,
            text=True,
            check=False,
        )
        lines = place.read_text().splitlines() if place.exists() else []
    found = {row.pop("key"): Told(**row) for row in map(json.loads, lines)}
    said = (done.stdout if MISSED in found else done.stderr).strip().splitlines()
    return found, said[-1] if said else ""


def verdict(figure: Figure, told: Told | None) -> str:
    """Whether a figure still holds: its own interval, or its value, must overlap the one in the
    table."""
    if told is None:
        return "not told"
    low = told.value if told.low is None else min(told.low, told.value)
    high = told.value if told.high is None else max(told.high, told.value)
    return "holds" if high >= figure.low and low <= figure.high else "drifted"


def number_text(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def row_of(figure: Figure, told: Told | None) -> tuple[str, ...]:
    text = figure.text if len(figure.text) <= 60 else f"{figure.text[:59]}…"
    wanted = f"{number_text(figure.low)} to {number_text(figure.high)}"
    found = "" if told is None else number_text(told.value)
    ends = "" if told is None or told.low is None else f"{number_text(told.low)} to "
    ends += "" if told is None or told.high is None else number_text(told.high)
    place = Path(figure.document).name
    return (f"{place}: {text}", figure.key, wanted, found, ends, verdict(figure, told))


def chosen(only: Sequence[str], minutes: float, *, is_quick: bool = False) -> list[Figure]:
    """The figures whose bench, document or words contain one of the texts; only short benches if
    asked."""
    return [
        figure
        for figure in FIGURES
        if (not only or any(one in f"{figure.command} {figure.name}" for one in only))
        and MINUTES[figure.command] <= minutes
        and not (is_quick and figure.command in LONG)
    ]


def print_list(figures: Iterable[Figure]) -> None:
    rows = [(one.name, one.key, one.command, f"{MINUTES[one.command]} min") for one in figures]
    print_table(("figure", "key", "bench", "takes"), rows)
    print_table(("not covered", "because"), [(f"{d}: {t}", why) for d, t, why in NOT_COVERED])


def measure(
    figures: Sequence[Figure], options: Sequence[str], given: Mapping[str, str], *, is_quick: bool
) -> list[str]:
    """Runs the benches and prints the present value of each figure, and which ones drifted or are
    missing."""
    fine = ("holds", "drifted") if is_quick else ("holds",)
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for command in dict.fromkeys(figure.command for figure in figures):
        began = perf_counter()
        short = shlex.split(QUICK.get(command, "")) if is_quick else []
        found, said = run_bench(command, [*short, *options], given)
        print(f"{command}: {perf_counter() - began:.0f} s; {said}", file=sys.stderr, flush=True)
        for figure in (one for one in figures if one.command == command):
            told = found.get(figure.key)
            rows.append(row_of(figure, told))
            if verdict(figure, told) not in fine:
                missed.append(f"{figure.name} ({figure.key}): {verdict(figure, told)}")
    print_table(("figure", "key", "the same within", "now", "interval", ""), rows)
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="benches or words")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="of the longest bench")
    parser.add_argument(
        "--quick", action="store_true", help="cut benches short, to see that each tells its figures"
    )
    parser.add_argument("--zoo", default="", metavar="DIR", help="folder of more models")
    parser.add_argument("--peer", default="", metavar="PYTHON", help="has ai-edge-quantizer")
    parser.add_argument("options", nargs="*", help="of every bench, behind --, as in --models DIR")
    options = parser.parse_args()
    figures = chosen(options.only, options.minutes, is_quick=options.quick)
    if options.list:
        print_list(figures)
        return 0
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    if busy > 0.3:
        print(f"the machine is busy (load {busy:.1f} a core): times may drift", file=sys.stderr)
    values = {"zoo": options.zoo, "peer": options.peer}
    given = {word: values[name] for word, name in GIVEN.items() if values[name]}
    return verdict_line(measure(figures, options.options, given, is_quick=options.quick))


if __name__ == "__main__":
    sys.exit(main())
