"""ONNX's own tests of single operators through the converter and LiteRT: python bench/convert_nodes.py

Counted are tests with float32, float16, int32, int64 or bool values of at most 5 dimensions in ONNX's
own domain. Every one that does not pass is listed with its reason; a wrong answer is marked WRONG.
"""

import argparse
import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

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


def outcome(case, folder: Path) -> str:
    """ "" where LiteRT gives what the test wants; else why it does not."""
    path = folder / "case.onnx"
    path.write_bytes(case.model.SerializeToString())
    try:
        source = read_onnx(path)
        sizes = {v.name: np.shape(a) for v, a in zip(source.graph.inputs, case.data_sets[0][0])}
        made = lowered(source, sizes)
    except LitesmithError as error:
        return f"refused: {error}"
    if made.model is None:
        return "left: " + "; ".join(f"{left.kind}: {left.why}" for left in made.left[:2])
    try:
        content = b"".join(map(bytes, chunks(made.model)))
        runner = Interpreter(
            model_content=content, experimental_op_resolver_type=OpResolverType.AUTO
        )
        runner.allocate_tensors()
    except (ValueError, RuntimeError, LitesmithError) as error:
        return "does not open: " + str(error).splitlines()[0]
    for inputs, outputs in case.data_sets:
        try:
            for detail, value in zip(runner.get_input_details(), inputs):
                if value.size:
                    runner.set_tensor(detail["index"], value.astype(detail["dtype"]))
            runner.invoke()
            got = [runner.get_tensor(d["index"]) for d in runner.get_output_details()]
        except (ValueError, RuntimeError) as error:
            return "does not run: " + str(error).splitlines()[0]
        for wanted, found in zip(outputs, got, strict=True):
            if found.shape != wanted.shape:
                return f"WRONG shape {found.shape}, not {wanted.shape}"
            half = wanted.dtype == np.float16
            near = np.allclose(
                found.astype(np.float64),
                wanted.astype(np.float64),
                rtol=1e-2 if half else 1e-3,
                atol=1e-2 if half else 1e-5,
                equal_nan=True,
            )
            if not near:
                worst = np.nanmax(np.abs(found.astype(np.float64) - wanted.astype(np.float64)))
                return f"WRONG values by {worst:.3g}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the tests' names")
    parser.add_argument("--quiet", action="store_true", help="counts alone")
    asked = parser.parse_args()
    passed, total = Counter(), Counter()
    with tempfile.TemporaryDirectory() as place:
        for case in cases():
            if asked.only and not re.search(asked.only, case.name):
                continue
            why = outcome(case, Path(place))
            groups = ["all"] + ([] if _SPECIAL.search(case.name) else ["plain"])
            for group in groups:
                total[group] += 1
                passed[group] += not why
            if why and not asked.quiet:
                print(f"{case.name}: {why}", flush=True)
    for group in total:
        share = 100 * passed[group] / total[group]
        print(f"{group}: {passed[group]} of {total[group]} pass ({share:.1f} %)")
    sys.exit(0)


if __name__ == "__main__":
    main()
