"""int8 by ai-edge-quantizer, as `peer.py` and `quantize_cost.py` run it with its own interpreter.

`python bench/peer_child.py MODEL SAMPLES.npy OUT WAY SIGNATURE INPUT`: its static int8 recipe. WAY
is `average` for the moving average of ranges that it takes by default, `minmax` for the ranges of
all samples, `mse` for the same with weights of the least squared error, `profiler` for its faster
calibration, `dynamic` for its recipe of int8 weights alone;
with `+float` behind it inputs and outputs stay float, which are int8 by default. Prints the growth
of its memory in bytes.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from ai_edge_quantizer import calibrator, qtyping, quantizer, recipe, recipe_manager
from ai_edge_quantizer.algorithm_manager import AlgorithmName
from ai_edge_quantizer.utils import qsv_utils
from resident import resident


class Calls:
    """The samples as calls of a model, mapped from disk; they are counted before they are used, so
    that a generator would be empty by then."""

    def __init__(self, file: Path, name: str) -> None:
        self._file, self._name = file, name

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        if self._file.is_dir():
            for path in sorted(self._file.glob("*.jpg")):
                yield {self._name: decoded(path)}
            return
        for values in np.load(self._file, mmap_mode="r"):
            yield {self._name: values}


def decoded(path: Path) -> np.ndarray:
    """A picture as the networks take it: 224 pixels from its middle, in [−1, 1]."""
    from PIL import Image

    image = Image.open(path).convert("RGB")
    edge = round(0.875 * min(image.size))
    left, top = ((size - edge) // 2 for size in image.size)
    box = (left, top, left + edge, top + edge)
    small = image.resize((224, 224), Image.Resampling.BILINEAR, box=box)
    return (np.asarray(small, np.float32)[None] - 127.5) / 127.5


def recipe_of(way: str, border: str) -> list:
    """Its static int8 recipe; where the border is float, but for inputs and outputs."""
    key = AlgorithmName.MSE if way == "mse" else AlgorithmName.MIN_MAX_UNIFORM_QUANT
    rules = recipe_manager.RecipeManager()
    rules.load_quantization_recipe(recipe.static_wi8_ai8(algorithm_key=key))
    for kind in (qtyping.TFLOperationName.INPUT, qtyping.TFLOperationName.OUTPUT):
        if border == "float":
            rules.add_quantization_config(".*", kind, algorithm_key=AlgorithmName.NO_QUANTIZE)
    return rules.get_quantization_recipe()


def calibrated(worker: quantizer.Quantizer, model: Path, way: str, given: dict[str, Calls]) -> dict:
    """The ranges of every tensor."""
    if way == "average":
        return worker.calibrate(given)
    if way == "profiler":
        mode = calibrator.CalibrationMode.CALIBRATION_PROFILER_BASED
        return worker.calibrate(given, mode=mode)
    rules = recipe_manager.RecipeManager()
    rules.load_quantization_recipe(recipe.static_wi8_ai8())
    found = calibrator.Calibrator(str(model), qsv_update_func=qsv_utils.min_max_update)
    found.calibrate(given, rules)
    return found.get_model_qsvs()


def main() -> None:
    model, file, out = map(Path, sys.argv[1:4])
    (way, _, border), (signature, name) = sys.argv[4].partition("+"), sys.argv[5:]
    before = resident("VmRSS")
    is_dynamic = way == "dynamic"
    rules = recipe.dynamic_wi8_afp32() if is_dynamic else recipe_of(way, border)
    worker = quantizer.Quantizer(str(model), rules)
    calls = {signature: Calls(file, name)}
    ranges = None if is_dynamic else calibrated(worker, model, way, calls)
    worker.quantize(ranges, enable_progress_report=False).export_model(str(out), overwrite=True)
    print(f"\n{resident('VmHWM') - before}")


if __name__ == "__main__":
    main()
