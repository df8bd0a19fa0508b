"""int8 by ai-edge-quantizer, as `peer.py` and `quantize_cost.py` run it with its own interpreter.

`python bench/peer_child.py MODEL SAMPLES.npy OUT WAY SIGNATURE INPUT`: its static int8 recipe. WAY
is `average` for the moving average of ranges that it takes by default, `minmax` for the ranges of
all samples, `mse` for the same with weights of the least squared error, `profiler` for its faster
calibration, `dynamic` for its recipe of int8 weights alone;
with `+float` behind it inputs and outputs stay float, which are int8 by default. Or WAY is
`four:RECIPE:ALGORITHM` for weights of 4 bits: RECIPE a function of its `recipe`, or `static` for
the static rules that have none; with `:careful` behind it the layers that suffer most keep 8 bits.
Prints the growth of its memory in bytes.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from ai_edge_quantizer import (
    algorithm_manager,
    calibrator,
    qtyping,
    quantizer,
    recipe,
    recipe_manager,
)
from ai_edge_quantizer.algorithm_manager import AlgorithmName
from ai_edge_quantizer.utils import qsv_utils, tfl_flatbuffer_utils
from resident import resident

KINDS = qtyping.TFLOperationName
LAYERS = (KINDS.CONV_2D, KINDS.FULLY_CONNECTED)
MEASURING = (AlgorithmName.GPTQ, AlgorithmName.OSCAR)  # what samples tell them of a layer's inputs


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


def give_bits(
    rules: recipe_manager.RecipeManager,
    family: str,
    where: tuple[str, KINDS],
    bits: int,
    key: AlgorithmName = AlgorithmName.MIN_MAX_UNIFORM_QUANT,
) -> None:
    """Adds a rule of the family `static`, `weight` or `dynamic` for ops by scope and kind."""
    if family == "static":
        rules.add_static_config(*where, 8, bits, algorithm_key=key)
    elif family == "weight":
        rules.add_weight_only_config(*where, bits, algorithm_key=key)
    else:
        rules.add_dynamic_config(*where, bits, algorithm_key=key)


def four_bits(way: str, model: Path) -> recipe_manager.RecipeManager:
    """Its rules for weights of 4 bits, as `four:RECIPE:ALGORITHM` or with `:careful` names them."""
    _, name, algorithm, *careful = way.split(":")
    rules, family = recipe_manager.RecipeManager(), name.partition("_")[0]
    given = {"algorithm_key": AlgorithmName[algorithm]} if algorithm else {}
    if name != "static":
        rules.load_quantization_recipe(getattr(recipe, name)(**given))
    elif careful:
        rules.load_quantization_recipe(recipe.static_wi8_ai8())
        for kind in LAYERS:
            if algorithm_manager.is_op_registered(given["algorithm_key"], kind):
                give_bits(rules, family, (".*", kind), 4, given["algorithm_key"])
    else:
        give_bits(rules, family, (".*", KINDS.ALL_SUPPORTED), 4, given["algorithm_key"])
    if careful:
        spare(rules, family, model)
    return rules


def spare(rules: recipe_manager.RecipeManager, family: str, model: Path) -> None:
    """Leaves 8 bits to depthwise layers, the first CONV_2D and the last layer.

    Where an algorithm knows FULLY_CONNECTED alone, that layer keeps its 4 bits and the convolutions
    have 4 by OCTAV, its best for these: else nothing of the file would be left to the algorithm.
    """
    give_bits(rules, family, (".*", KINDS.DEPTHWISE_CONV_2D), 8)
    ops = layers_of(model)
    bits = rules.get_quantization_configs(KINDS.CONV_2D, "a scope")[1].weight_tensor_config
    if bits is None or bits.num_bits != 4:
        give_bits(rules, family, (".*", KINDS.CONV_2D), 4, AlgorithmName.OCTAV)
    else:
        give_bits(rules, family, ops[-1], 8)
    give_bits(rules, family, ops[0], 8)


def layers_of(model: Path) -> list[tuple[str, KINDS]]:
    """Every CONV_2D and FULLY_CONNECTED, by an expression that fits its scope alone."""
    content = tfl_flatbuffer_utils.read_model(str(model))
    graph, codes = content.subgraphs[0], content.operatorCodes
    names = tfl_flatbuffer_utils.TFL_OP_CODE_TO_NAME
    found = [(op, names.get(codes[op.opcodeIndex].builtinCode)) for op in graph.operators]
    scope = tfl_flatbuffer_utils.get_op_scope
    return [
        (f"^{re.escape(scope(op, graph.tensors))}$", kind) for op, kind in found if kind in LAYERS
    ]


def measured(model: Path, rules: list, given: dict[str, Calls]) -> dict | None:
    """What its rules want to know of the samples; its own question forgets OSCAR.

    GPTQ and OSCAR are asked by themselves once more: a tensor that another layer's rule has looked
    at first would stay without what they need.
    """
    own = [rule for rule in rules if rule["algorithm_key"] in MEASURING]
    if not own and not manager_of(rules).need_calibration():
        return None
    found: dict = {}
    for part in (rules, own) if own else (rules,):
        worker = calibrator.Calibrator(str(model))
        worker.calibrate(given, manager_of(part))
        found |= worker.get_model_qsvs()
    return found


def manager_of(rules: list) -> recipe_manager.RecipeManager:
    manager = recipe_manager.RecipeManager()
    manager.load_quantization_recipe(rules)
    return manager


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
    calls = {signature: Calls(file, name)}
    if way.startswith("four:"):
        rules = four_bits(way, model).get_quantization_recipe()
        worker = quantizer.Quantizer(str(model), rules)
        ranges = measured(model, rules, calls)
    else:
        is_dynamic = way == "dynamic"
        rules = recipe.dynamic_wi8_afp32() if is_dynamic else recipe_of(way, border)
        worker = quantizer.Quantizer(str(model), rules)
        ranges = None if is_dynamic else calibrated(worker, model, way, calls)
    worker.quantize(ranges, enable_progress_report=False).export_model(str(out), overwrite=True)
    print(f"\n{resident('VmHWM') - before}")


if __name__ == "__main__":
    main()
