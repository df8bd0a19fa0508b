"""ONNX's own tests of single operators through the converter and LiteRT.

python bench/convert_nodes.py [--only NAME] [--quiet] [--opsets]

Counted are tests with float32, float16, int32, int64 or bool values of at most 5 dimensions in
ONNX's own domain; of tests that draw numbers the shapes are compared. Every one that does not pass
is listed with its reason; a wrong answer is marked WRONG. An input that LiteRT wants constant is
fixed to the test's value, and such tests are told apart. With --opsets, thirty of the tests are
moved to the opsets 11, 13 and 17 by ONNX's own converter and must give the same.
"""

import argparse
import dataclasses
import re
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from litesmith.conversion.onnx_file import read_onnx
from litesmith.conversion.whole_model import lowered
from litesmith.errors import LitesmithError
from litesmith.tflite.write import chunks

_TYPES = {"float32", "float16", "int32", "int64", "bool"}
_SPECIAL = re.compile(
    r"_expanded|loss|random|bernoulli|unique|dft|stft|tfidf|deform_conv|dropout.*(?<!default)$"
)


# Opsets that models are moved to, and how many are.
_OPSETS = (11, 13, 17)
_MOVED = 30

# Operators that draw numbers: of them only the shapes can be the same.
_CHANCE = ("Bernoulli", "Multinomial", "RandomNormal", "RandomUniform")


def cases() -> list:
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
    """What comes of a test; inputs that LiteRT wants constant are fixed, and told."""
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
    return Outcome(_difference(made.model, case, list(values), constants), tuple(constants))


def _difference(model, case, names: list[str], constants) -> str:
    """What LiteRT gives otherwise than the test wants."""
    try:
        content = b"".join(map(bytes, chunks(model)))
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


def moved(case, opset: int):
    """The test's model in another opset, or None where ONNX's own converter cannot."""
    from onnx import checker, version_converter

    try:
        model = version_converter.convert_version(case.model, opset)
        checker.check_model(model)
    except Exception:  # it raises errors of many sorts
        return None
    return dataclasses.replace(case, model=model)


def check_opsets(folder: Path) -> None:
    """Thirty tests of thirty operators in older opsets."""
    seen: set[str] = set()
    for case in cases():
        kind = case.model.graph.node[0].op_type
        if kind in seen or _SPECIAL.search(case.name) or outcome(case, folder).why:
            continue
        older = {opset: moved(case, opset) for opset in _OPSETS}
        if not all(older.values()):
            continue
        seen.add(kind)
        for opset, one in older.items():
            why = outcome(one, folder).why
            print(f"{case.name} in opset {opset}: {why or 'the same'}", flush=True)
        if len(seen) == _MOVED:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the tests' names")
    parser.add_argument("--quiet", action="store_true", help="counts alone")
    parser.add_argument("--opsets", action="store_true", help="thirty of them in older opsets")
    asked = parser.parse_args()
    if asked.opsets:
        with tempfile.TemporaryDirectory() as place:
            check_opsets(Path(place))
        return
    counts: dict[str, Counter] = {"all": Counter(), "plain": Counter()}
    with tempfile.TemporaryDirectory() as place:
        for case in cases():
            if asked.only and not re.search(asked.only, case.name):
                continue
            got = outcome(case, Path(place))
            for group in ["all"] + ([] if _SPECIAL.search(case.name) else ["plain"]):
                counts[group]["failed" if got.why else "fixed" if got.fixed else "passed"] += 1
            if got.why and not asked.quiet:
                print(f"{case.name}: {got.why}", flush=True)
    for group, count in counts.items():
        if total := count.total():
            both = count["passed"] + count["fixed"]
            print(
                f"{group}: {both} of {total} pass ({100 * both / total:.1f} %): "
                f"{count['passed']} as they are, {count['fixed']} with settings fixed"
            )


if __name__ == "__main__":
    main()
