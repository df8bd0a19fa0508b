"""The target cpu:1:litesmith beside cpu:1: whole models, as a session opens them.

Times in turns with their interval. Bars:

* int16x8 models give LiteRT's bits on real images, at least 12 times faster on one thread;
* MobileNet v1 without nine of ten blocks of its 1×1 layers is at least 1.5 times faster than dense,
  its outputs within 1e-4 of the largest;
* a fully connected layer of 2048×2048, pruned so, is no slower than in the runtime's sparse form.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, arguments, want_folder

import litesmith
from litesmith import Builder, Model, Session
from litesmith.data.sources import open_data
from litesmith.ir.types import Op
from litesmith.timing.latency import Rule, list_contenders, measure
from litesmith.timing.statistics import Ratio
from litesmith.units import error_text, factor_text, time_text

FASTER, SPARSE_FASTER, APART = 12, 1.5, 1e-4
ZEROS, IMAGES, SECONDS = 0.9, 4, 6.0
OURS = "cpu:1:litesmith"

# A model, and where images for it are.
MODELS = (
    ("mobilenet_v1_1.0_224", "imagenet_val"),
    ("efficientnet_lite0_f32", "imagenet_val"),
    ("pretrainedResnet", "cifar10_test.npz"),
)


def images(model: Model, source: Path) -> np.ndarray:
    """Some real samples, prepared for the model."""
    data = open_data(source, model, samples=4 * IMAGES)
    return np.stack([sample.inputs[0][0] for sample in data])


def outputs(path: Path, target: str, samples: np.ndarray) -> list[np.ndarray]:
    with Session(path, target) as session:
        (x,), (y,) = session.inputs.values(), session.outputs.values()
        made: list[np.ndarray] = []
        for sample in samples:
            x[...] = sample[None]
            session.run()
            made.append(y.copy())
        return made


def compared(a: Path, b: Path, targets: tuple[str, str]) -> tuple[tuple[float, float], Ratio]:
    """Times of both, and how many times faster the second is."""
    group = [
        *list_contenders([a], targets[0]),
        *list_contenders([b], targets[1]),
    ]
    done = measure(group, Rule(seconds=SECONDS), memory=False)
    first, second = (result.percentile_us(50) for result in done.results)
    return (first, second), done.comparisons[0].ratio


def row(name: str, times: tuple[float, float], ratio: Ratio, more: str) -> tuple[str, ...]:
    low, high = ratio.interval
    tell_figure(name, 1 / ratio.value, 1 / high, 1 / low)
    told = factor_text(1 / ratio.value, "faster", 1 / high, 1 / low)
    return (name, *map(time_text, times), told, more)


def wide_row(
    folder: Path, name: str, source: Path, made: Path
) -> tuple[tuple[str, ...], list[str]]:
    """A model in int16x8 on both."""
    model = litesmith.load(folder / f"{name}.tflite")
    samples = images(model, source)
    path = made / f"{name}_int16x8.tflite"
    litesmith.save(litesmith.apply(model, "quantize(to=int16x8)", samples[IMAGES:]).model, path)
    first = outputs(path, "cpu:1", samples[:IMAGES])
    same = all(map(np.array_equal, first, outputs(path, OURS, samples[:IMAGES])))
    times, ratio = compared(path, path, ("cpu:1", OURS))
    missed = [] if same else [f"{name}: other bits than LiteRT's"]
    if ratio.value > 1 / FASTER:
        missed.append(f"{name}: {factor_text(1 / ratio.value, 'faster')}, not {FASTER} times")
    return row(name, times, ratio, "the same bits" if same else "other bits"), missed


def _window(op: Op) -> tuple[int, ...]:
    return () if op.inputs[1] is None else op.inputs[1].shape[1:3]


def sparse_row(folder: Path, made: Path) -> tuple[tuple[str, ...], list[str]]:
    """MobileNet v1 with its 1×1 layers pruned, each by as much."""
    model = litesmith.load(folder / f"{MODELS[0][0]}.tflite")
    model = litesmith.apply(model, "cleanup | fold | fuse").model
    ops = [
        number
        for number, op in enumerate(model.main.ops)
        if op.kind == "CONV_2D" and _window(op) == (1, 1) and op.outputs[0].shape[1] > 1
    ]
    step = f"prune(sparsity={ZEROS}, block=1x4, tune=false, only=[{{}}])"
    path = made / "sparse.tflite"
    litesmith.save(litesmith.apply(model, " | ".join(map(step.format, ops))).model, path)
    samples = np.random.default_rng(0).normal(0, 1, (2, *model.main.inputs[0].shape[1:]))
    pairs = zip(outputs(path, "cpu:1", samples), outputs(path, OURS, samples), strict=True)
    apart = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)
    times, ratio = compared(path, path, ("cpu:1", OURS))
    missed = [] if apart <= APART else [f"sparse: outputs differ by {apart:.1e}"]
    if ratio.value > 1 / SPARSE_FASTER:
        missed.append(f"sparse: {factor_text(1 / ratio.value, 'faster')}, not {SPARSE_FASTER}")
    name = f"MobileNet v1, {len(ops)} 1×1 layers sparse"
    return row(name, times, ratio, f"{error_text(apart)} apart"), missed


def connected_row(made: Path) -> tuple[tuple[str, ...], list[str]]:
    """One fully connected layer: the runtime's sparse form, and a plain file in our kernels."""
    rng = np.random.default_rng(0)
    blocks = rng.normal(0, 1, (2048, 512, 4)) / 45 * (rng.random((2048, 512, 1)) >= ZEROS)
    weights = blocks.astype(np.float32).reshape(2048, 2048)
    b = Builder()
    x = b.input("x", (1, 2048))
    model = b.model(b.op("FULLY_CONNECTED", x, weights, np.ones(2048, np.float32)))
    plain, stored = made / "plain.tflite", made / "stored.tflite"
    litesmith.save(model, plain)
    litesmith.save(litesmith.apply(model, "sparsify(least=0.5)").model, stored)
    times, ratio = compared(stored, plain, ("cpu:1", OURS))
    slower = ratio.interval[0] > 1
    told = [f"2048×2048: {factor_text(ratio.value, 'slower')} than stored sparse"] if slower else []
    return row("2048×2048, the runtime's sparse form first", times, ratio, ""), told


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="folder of data")
    asked = parser.parse_args()
    folder, data = want_folder(asked.models, "--models"), want_folder(asked.data, "--data")
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    with TemporaryDirectory() as place:
        made = Path(place)
        for name, source in MODELS:
            told, lines = wide_row(folder, name, data / source, made)
            rows.append(told)
            missed += lines
        for told, lines in (sparse_row(folder, made), connected_row(made)):
            rows.append(told)
            missed += lines
    print_table(("model", "cpu:1", OURS, "gain", "outputs"), rows)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
