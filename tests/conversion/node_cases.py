"""ONNX's own tests of single operators, and what comes of one through the converter and LiteRT."""

import re
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from litesmith.conversion.lower_model import lowered, tidied
from litesmith.conversion.onnx_file import read_onnx
from litesmith.errors import LitesmithError
from litesmith.ir.types import Model
from litesmith.tflite.write import to_bytes

_TYPES = {"float32", "float16", "int32", "int64", "bool"}
SPECIAL = re.compile(
    r"_expanded|loss|random|bernoulli|unique|dft|stft|tfidf|deform_conv|dropout.*(?<!default)$"
)


# Operators that draw numbers: of them only the shapes can be the same.
_CHANCE = ("Bernoulli", "Multinomial", "RandomNormal", "RandomUniform")


@cache
def cases() -> list:
    """The tests that are counted."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [case for case in found if _is_counted(case)]


def _is_counted(case) -> bool:
    if any(node.domain not in ("", "ai.onnx") for node in case.model.graph.node):
        return False
    for inputs, outputs in case.data_sets:
        for value in [*inputs, *outputs]:
            if (
                not isinstance(value, np.ndarray | np.generic)
                or str(value.dtype) not in _TYPES
                or value.ndim > 5
            ):
                return False
    return True


class Outcome(NamedTuple):
    """Why a test does not pass, "" where it does; the inputs that were fixed for it."""

    why: str
    fixed: tuple[str, ...] = ()


def outcome(case, folder: Path) -> Outcome:
    """What comes of a test, converted and tidied; inputs that LiteRT wants constant are fixed."""
    path = folder / "case.onnx"
    path.write_bytes(case.model.SerializeToString())
    constants: dict[str, np.ndarray] = {}
    try:
        source = read_onnx(path)
        values = dict(
            zip((v.name for v in source.graph.inputs), case.data_sets[0][0], strict=False)
        )
        sizes = {name: np.shape(value) for name, value in values.items()}
        while True:
            made = lowered(source, sizes, constants)
            wanted = [name for name in made.wanted if name not in constants]
            if made.model is not None or not wanted:
                break
            constants |= {name: values[name] for name in wanted}
    except LitesmithError as error:
        return Outcome(f"refused: {error}")
    if made.model is None:
        return Outcome("left: " + "; ".join(f"{left.kind}: {left.why}" for left in made.left[:2]))
    why = _difference(made.model, case, list(values), constants)
    if not why:
        tidy = tidied(made.model, keep_layout=True).model
        why = _difference(tidy, case, list(values), constants)
    return Outcome(why, tuple(constants))


def _difference(model: Model, case, names: list[str], constants) -> str:
    """What LiteRT gives otherwise than the test wants."""
    try:
        content = to_bytes(model)
        runner = Interpreter(
            model_content=content, experimental_op_resolver_type=OpResolverType.AUTO
        )
        runner.allocate_tensors()
    except (ValueError, RuntimeError, LitesmithError) as error:
        return "does not open: " + str(error).splitlines()[0]
    for inputs, outputs in case.data_sets:
        values = [
            value for name, value in zip(names, inputs, strict=False) if name not in constants
        ]
        try:
            for detail, value in zip(runner.get_input_details(), values, strict=True):
                if value.size:
                    runner.set_tensor(detail["index"], value.astype(detail["dtype"]))
            runner.invoke()
            got = [runner.get_tensor(d["index"]) for d in runner.get_output_details()]
        except (ValueError, RuntimeError) as error:
            return "does not run: " + str(error).splitlines()[0]
        for wanted, found in zip(outputs, got, strict=True):
            drawn = any(node.op_type.startswith(_CHANCE) for node in case.model.graph.node)
            wanted = np.asarray(wanted)
            why = _unlike(found, np.resize(found, wanted.shape) if drawn else wanted)
            if why:
                return why
    return ""


def _unlike(found: np.ndarray, wanted: np.ndarray) -> str:
    if found.shape != wanted.shape:
        return f"WRONG shape {found.shape}, not {wanted.shape}"
    half = wanted.dtype == np.float16
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    far = {"rtol": 1e-2 if half else 1e-3, "atol": 1e-2 if half else 1e-5}
    if np.allclose(found, wanted, equal_nan=True, **far):
        return ""
    worst = np.nanmax(np.abs(found - wanted))
    return f"WRONG values by {worst:.3g}"
