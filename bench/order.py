"""The order of the calibration samples, and the number of threads, change next to nothing.

MobileNet v1 0.25 and ResNet-8 to int8, on the same samples in three orders. Bar: the same bytes at
`--effort quick`; at `default` and `best` at most 0.01 % of the codes differ, each by one, and no
scale does; in the same order the same bytes again, on one thread and on two.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from report import print_table, verdict_line
from stock import ASSETS, MISSING, arguments, want_folder

import litesmith
from litesmith.calibration import observed_cache as cache
from litesmith.calibration.observe import tools
from litesmith.calibration.quantize_effort import EFFORTS, Outcome, carry_out, plan
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import Recipe, apply, text_of
from litesmith.passes.core.step import Context
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.tflite.write import to_bytes

MOST_SHARE = 0.0001
ORDERS = 2  # beside the given one
CASES = {
    "mobilenet_v1_0.25_224.tflite": ("imagenet_calibration", Preparation(norm="tf")),
    "pretrainedResnet.tflite": ("cifar10_train.npz", Preparation(norm="raw")),
}


def quantized(model: Model, samples: np.ndarray, effort: str) -> Outcome:
    """int8 at an effort, as the command line makes it."""
    todo = plan(model, Quantize(), effort, has_data=True)
    return carry_out(model, todo, open_data(samples, model))


def on_threads(model: Model, samples: np.ndarray, recipe: Recipe, threads: int) -> Model:
    """The same recipe with every run of the model on this many threads."""
    return apply(model, recipe, Context(tools(open_data(samples, model), threads=threads))).model


def orders(samples: np.ndarray) -> Iterator[np.ndarray]:
    """The samples in reverse, and shuffled."""
    yield samples[::-1]
    for seed in range(ORDERS - 1):
        yield np.random.default_rng(seed).permutation(samples)


class Difference(NamedTuple):
    """How two models of one graph differ."""

    codes: int
    differing: int
    largest: int
    scales: int

    @property
    def share(self) -> float:
        return self.differing / self.codes


def difference(a: Model, b: Model) -> Difference:
    """Compares the stored numbers of two models with the same tensors."""
    others = {tensor.name: tensor for tensor in b.main.tensors}
    pairs = [(tensor, others[tensor.name]) for tensor in a.main.tensors]
    stored = [(x, y) for x, y in pairs if x.is_const and x.dtype in ("int8", "int32")]
    gaps = [np.abs(x.values().astype(np.int64) - y.values()) for x, y in stored]
    scales = sum(not same_scale(x, y) for x, y in pairs)
    return Difference(
        sum(gap.size for gap in gaps),
        sum(int(np.count_nonzero(gap)) for gap in gaps),
        max(int(gap.max(initial=0)) for gap in gaps),
        scales,
    )


def same_scale(a: Tensor, b: Tensor) -> bool:
    if a.quant is None or b.quant is None:
        return a.quant is b.quant
    same_zero = np.array_equal(a.quant.zero_point, b.quant.zero_point)
    return same_zero and np.array_equal(a.quant.scale, b.quant.scale)


def run(path: Path, samples: np.ndarray, effort: str) -> tuple[list[tuple[str, ...]], list[str]]:
    """The rows of one model at one effort, and the bars that it missed."""
    model = litesmith.load(path)
    recipe, change, _ = quantized(model, samples, effort)
    first = change.model
    content = to_bytes(first)
    name = f"{path.stem}, {effort}"
    lines: list[tuple[str, ...]] = []
    missed: list[str] = []
    for threads in (1, 2):
        same = to_bytes(on_threads(model, samples, recipe, threads)) == content
        lines.append((name, f"the same, {threads} threads", "same" if same else "differ", "", ""))
        missed += [] if same else [f"{name}: other bytes on {threads} threads"]
    for number, samples_in_order in enumerate(orders(samples)):
        other = quantized(model, samples_in_order, effort)
        same, found = to_bytes(other.change.model) == content, difference(first, other.change.model)
        order = "shuffled" if number else "backwards"
        share = f"{found.differing} of {found.codes} ({100 * found.share:.4f} %)"
        most = f"{found.largest}; {found.scales} scales"
        lines.append((name, order, "same" if same else "differ", share, most))
        within = found.share <= MOST_SHARE and found.largest <= 1 and not found.scales
        if not (same if effort == "quick" else within):
            missed.append(f"{name}, {order}: {share} codes differ, by up to {most}")
        if other.recipe != recipe:
            missed.append(f"{name}, {order}: {text_of(other.recipe)}, not {text_of(recipe)}")
    return lines, missed


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds the images")
    parser.add_argument("--samples", type=int, default=200, help="to calibrate on")
    parser.add_argument("--efforts", nargs="+", choices=EFFORTS, default=list(EFFORTS))
    options = parser.parse_args()
    os.environ[cache.VARIABLE] = ""  # samples in another order would be taken from there
    models, data = want_folder(options.models, "--models"), want_folder(options.data, "--data")
    lines: list[tuple[str, ...]] = []
    missed: list[str] = []
    for file, (source, how) in CASES.items():
        if not (models / file).is_file() or not (data / source).exists():
            print(f"{file} or {source}: not there; see --models and --data", file=sys.stderr)
            return MISSING
        model = litesmith.load(models / file)
        opened = open_data(data / source, model, preparation=how, samples=options.samples)
        samples = np.stack([sample.inputs[0][0] for sample in opened])
        for effort in options.efforts:
            more, also = run(models / file, samples, effort)
            lines += more
            missed += also
    print_table(("model", "order", "bytes", "codes that differ", "by up to"), lines)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
