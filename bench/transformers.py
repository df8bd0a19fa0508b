"""A transformer in int8: plain int8 beside what `quantize` makes of it, with float forms and with
integers alone, and `dynamic`; paired with the float file on samples kept out of calibration.

Give the float model, an .npz of calibration inputs and an .npz of labelled samples (inputs by
their names, and y). The answer is the highest of the first output.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from report import print_table

from litesmith import Model, Session
from litesmith.calibration.context import context_of
from litesmith.calibration.quantize_effort import carry_out, plan
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.passes.core.recipe import apply
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.run.core.target import Target
from litesmith.tflite.file import load

# The drop in points, and the agreement with the float file, that the mixtures are held to.
MOST_DROP, LEAST_AGREEMENT = 0.5, 0.97

Numbers = np.ndarray


def _makers(model: Model, data: Data) -> dict[str, Model]:
    """The files to compare, by the function that makes each."""
    context = context_of(data)
    todo = plan(model, Quantize(), "default", has_data=True)
    return {
        "dynamic": apply(model, "cleanup | fold | fuse | quantize(to=dynamic)").model,
        "plain int8": apply(model, "cleanup | fold | fuse | quantize | correct", context).model,
        "int8": carry_out(model, todo, data, target=Target.parse("cpu:1")).change.model,
        "int8, fully integer": carry_out(model, todo, data).change.model,
    }


def _answers(model: Model, rows: dict[str, Numbers]) -> Numbers:
    """The first output for every sample."""
    with Session(model, "cpu:1") as session:
        found = [
            next(iter(session(*(rows[name][n : n + 1] for name in session.inputs)).values()))
            for n in range(len(rows["y"]))
        ]
    return np.array(found, np.float64).reshape(len(found), -1)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", type=Path)
    options.add_argument("calibration", type=Path)
    options.add_argument("labelled", type=Path)
    given = options.parse_args()
    model = load(given.model)
    rows = dict(np.load(given.labelled))
    data = open_data(given.calibration, model, samples=128)
    wanted = _answers(model, rows)
    right = wanted.argmax(axis=1) == rows["y"]
    table: list[list[str]] = [["float", f"{100 * right.mean():.2f} %", "", ""]]
    is_met = True
    for name, made in _makers(model, data).items():
        found = _answers(made, rows)
        gained = (found.argmax(axis=1) == rows["y"]).astype(float) - right
        half = 1.96 * gained.std() / len(gained) ** 0.5
        same = float((found.argmax(axis=1) == wanted.argmax(axis=1)).mean())
        noise = ((found - wanted) ** 2).sum() / (wanted**2).sum()
        drop = 100 * gained.mean()
        interval = f"{drop:+.2f} pt [{drop - 100 * half:+.2f}, {drop + 100 * half:+.2f}]"
        table.append([name, interval, f"{100 * same:.1f} %", f"{-10 * np.log10(noise):.1f} dB"])
        if name.startswith("int8"):
            is_met &= drop >= -MOST_DROP and same >= LEAST_AGREEMENT
    print_table(["file", "accuracy", "agreement", "SNR"], table)
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
