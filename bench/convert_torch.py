"""Torch modules through the converter and LiteRT, beside litert-torch's files of the same weights.

Each network is converted, compared with torch on random inputs, and timed on cpu:1 in one
interleaved run with the peer's file, which `--peer PYTHON`, the interpreter of an environment with
litert-torch, makes in a child, and `--keep DIR` keeps for the next time. Images have their channels
last in our files, as `convert` leaves them, and first in the peer's. Bar: equal to torch within
1e-4 of the largest output, and nowhere slower than 1.05 times the peer's file beyond the interval.
"""

import argparse
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch
from report import print_table, verdict_line
from torch_nets import NETS, build

import litesmith
from litesmith.errors import LitesmithError
from litesmith.ir.types import Model
from litesmith.units import error_text, ratio_text, time_text

NEAR, SLOWEST = 1e-4, 1.05
HEAD = ("network", "difference", "ops", "transposes", "p50", "peer's ops", "time / peer's")
INSTALL = "no --peer: ours alone; it needs a venv of its own with litert-torch"


class Line(NamedTuple):
    """The result for one network."""

    cells: tuple[str, ...]
    missed: list[str]


def ours(name: str, out: Path) -> tuple[Model, float]:
    """The converted file, and its largest difference from torch by the largest output."""
    module, inputs = build(name)
    made = litesmith.convert(module, inputs, out=out, check=False)
    if made.model is None:
        raise LitesmithError("{what} is left", ", ".join(sorted({row.kind for row in made.left})))
    with torch.no_grad():
        told = module(*inputs)
    wanted = told if isinstance(told, dict) else {"output": told}
    with litesmith.Session(out, "cpu:1") as session:
        for name, value in zip(session.inputs, inputs, strict=True):
            session.inputs[name] = turned(name, value.numpy(), made.turned)
        session.run()
        gaps = [
            difference(np.array(found), turned(name, wanted[name].numpy(), made.turned))
            for name, found in session.outputs.items()
        ]
    return made.model, max(gaps)


def turned(name: str, values: np.ndarray, last: frozenset[str]) -> np.ndarray:
    """The values with the channels last, where the file has them so."""
    return np.moveaxis(values, 1, -1) if name in last else values


def difference(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def peers(interpreter: str, name: str, out: Path) -> str:
    """Writes the peer's file; the last line of its error where it cannot."""
    if out.is_file():
        return ""
    child = Path(__file__).with_name("convert_torch_child.py")
    line = [interpreter, str(child), name, str(out)]
    done = subprocess.run(line, capture_output=True, text=True)
    told = [text.strip() for text in done.stderr.splitlines() if text.strip()]
    return "" if not done.returncode else (told[-1][:100] if told else "no message")


def judged(name: str, peer: str | None, seconds: float, own: Path, other: Path) -> Line:
    """Compares the files of one network."""
    try:
        model, gap = ours(name, own)
    except LitesmithError as error:
        return Line((name, str(error), *[""] * 5), [f"{name}: {error}"])
    why = peers(peer, name, other) if peer else "not asked"
    files = [own] if why else [other, own]
    timed = litesmith.bench(files, on="cpu:1", seconds=seconds)
    missed = [f"{name}: differs by {error_text(gap)}"] if gap > NEAR else []
    ratio = None if why else timed.comparisons[0].ratio
    if ratio is not None and ratio.interval[0] > SLOWEST:
        missed.append(f"{name}: {ratio_text(ratio.value, *ratio.interval)} of the peer's time")
    kinds = Counter(op.kind for op in model.main.ops)
    cells = [name, error_text(gap), str(len(model.main.ops)), str(kinds["TRANSPOSE"])]
    cells.append(time_text(timed.results[-1].percentile_us(50)))
    cells.append(why or str(len(litesmith.load(other).main.ops)))
    cells.append("" if ratio is None else ratio_text(ratio.value, *ratio.interval))
    return Line(tuple(cells), missed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="the Python that has litert-torch")
    parser.add_argument("--keep", type=Path, help="the folder where the peer's files stay")
    parser.add_argument("--only", nargs="+", default=list(NETS), choices=list(NETS), metavar="NAME")
    parser.add_argument("--seconds", type=float, default=4.0, help="for the times of one network")
    options = parser.parse_args()
    if not options.peer:
        print(INSTALL)
    lines: list[Line] = []
    for name in options.only:
        with TemporaryDirectory() as folder:
            own, other = (
                Path(folder) / "ours.tflite",
                (options.keep or Path(folder)) / f"{name}.tflite",
            )
            lines.append(judged(name, options.peer, options.seconds, own, other))
        print(*lines[-1].cells, sep="  ", file=sys.stderr, flush=True)
    print_table(HEAD, [line.cells for line in lines])
    return verdict_line([one for line in lines for one in line.missed])


if __name__ == "__main__":
    sys.exit(main())
