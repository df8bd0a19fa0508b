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
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.conversion.node_cases import SPECIAL, cases, outcome

# Opsets that models are moved to, and how many are.
_OPSETS = (11, 13, 17)
_MOVED = 30

# The smallest share that must pass: of all tests, and of those without fixed inputs.
_BARS = {"all": 75, "plain": 90}


def moved(case, opset: int):
    """The test's model in another opset; None where ONNX's own converter cannot make it."""
    from onnx import checker, version_converter

    try:
        model = version_converter.convert_version(case.model, opset)
        checker.check_model(model)
    except Exception:  # it raises errors of many sorts
        return None
    return dataclasses.replace(case, model=model)


def check_opsets(folder: Path) -> bool:
    """Thirty tests of thirty operators in older opsets; True where all give the same."""
    seen: set[str] = set()
    fine = True
    for case in cases():
        kind = case.model.graph.node[0].op_type
        if kind in seen or SPECIAL.search(case.name) or outcome(case, folder).why:
            continue
        older = {opset: moved(case, opset) for opset in _OPSETS}
        if not all(older.values()):
            continue
        seen.add(kind)
        for opset, one in older.items():
            why = outcome(one, folder).why
            fine = fine and not why
            print(f"{case.name} in opset {opset}: {why or 'the same'}", flush=True)
        if len(seen) == _MOVED:
            break
    return fine and len(seen) == _MOVED


def check_all(folder: Path, only: str, quiet: bool) -> bool:
    """Runs all tests; True where enough pass, and none gives a wrong answer or a useless model."""
    counts = {group: Counter[str]() for group in _BARS}
    fine = True
    for case in cases():
        if not re.search(only, case.name):
            continue
        got = outcome(case, folder)
        fine = fine and not got.why.startswith(("WRONG", "does not"))
        for group in ["all"] + ([] if SPECIAL.search(case.name) else ["plain"]):
            counts[group]["failed" if got.why else "fixed" if got.fixed else "passed"] += 1
        if got.why and not quiet:
            print(f"{case.name}: {got.why}", flush=True)
    for group, count in counts.items():
        both, total = count["passed"] + count["fixed"], max(count.total(), 1)
        fine = fine and both >= _BARS[group] * total / 100
        print(
            f"{group}: {both} of {total} pass ({100 * both / total:.1f} %): "
            f"{count['passed']} as they are, {count['fixed']} with settings fixed"
        )
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the tests' names")
    parser.add_argument("--quiet", action="store_true", help="counts alone")
    parser.add_argument("--opsets", action="store_true", help="thirty of them in older opsets")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if asked.opsets:
            fine = check_opsets(Path(place))
        else:
            fine = check_all(Path(place), asked.only, asked.quiet)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
