"""How far results on the GPU are from the CPU's: every model, with `gpu` and with `gpu:full`.

Image models see four real images, prepared as each was trained; others see four samples of their
kind. A difference is the largest one over all samples and outputs: as it is, and as a share of the
largest value of its output. Whose fault it is, the exact kernels of target numpy tell: a CPU in
float32 can be over 1e-5 from them itself.

Bars, of the share from the CPU: 1e-2 for `gpu`, which computes in half precision where the driver
can; 1e-5 for `gpu:full`. A refusal is a miss, but of a model that no GPU can take. Models with
weights or data of 8 bits have no bar: the GPU computes in floats what the CPU computes in integers.
The first run builds the driver's programs; a software driver takes minutes
for the largest models if it never saw them.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from peer import SOURCES, gathered
from report import print_table, verdict_line
from stock import ASSETS, arguments, model_files

from litesmith.errors import CannotRun
from litesmith.run.accelerators.targets import BY_NAME
from litesmith.run.session import Session, feed, fill_inputs
from litesmith.tflite.file import load

BARS = {"gpu": 1e-2, "gpu:full": 1e-5}
SECONDS = 900
SAMPLES = 4
KEYWORDS = "kws_hybrid", "kws01.npz"
NEVER = {"basic_pitch": "the sizes of its outputs depend on values"}

Results = list[list[np.ndarray]]


class Gap(NamedTuple):
    """The distance between two results: absolute, and as a share of the output's largest value."""

    absolute: float
    share: float


class Row(NamedTuple):
    """A model on a target, or why it did not run."""

    from_cpu: Gap | None = None
    from_exact: Gap | None = None
    cpu_from_exact: Gap | None = None
    note: str = ""
    refused: str = ""


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="folder of samples")
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "TARGET"), help="one row, in a child")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measured(Path(asked.one[0]), asked.one[1], asked.data)))
        return 0
    found = BY_NAME["gpu"].probe()
    print(found.why, flush=True)
    if not found.usable:
        return 0
    rows = {
        (path, target): told(path, target, asked.data)
        for path in model_files(asked.models)
        for target in BARS
    }
    head = ("model", "target", "from the CPU", "share", "from exact", "CPU from exact", "")
    print_table(head, [cells(*key, row) for key, row in rows.items()])
    for (path, target), row in rows.items():
        if row.refused or row.note:
            print(f"{path.stem} on {target}: {row.refused or row.note}")
    missed = [f"{path.stem} on {t}" for (path, t), row in rows.items() if verdict(path, t, row)]
    return verdict_line(missed)


def told(path: Path, target: str, data: Path) -> Row:
    """The row of a model, from a child process, so that a crashing driver takes nothing with it."""
    command = [sys.executable, __file__, "--data", str(data), "--one", str(path), target]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Row(refused=f"it took over {SECONDS} s")
    if child.returncode or child.stderr:
        return Row(refused=f"status {child.returncode}, {child.stderr.strip()[-80:]!r}")
    *gaps, note, refused = json.loads(child.stdout)
    cpu, exact, between = (None if one is None else Gap(*one) for one in gaps)
    return Row(cpu, exact, between, note, refused)


def measured(path: Path, target: str, data: Path) -> Row:
    samples = given(path, data)
    try:
        ours, note = results(path, target, samples)
        cpu, _ = results(path, "cpu:1", samples)
    except CannotRun as error:
        return Row(refused=str(error))
    try:
        exact, _ = results(path, "numpy", samples)
    except CannotRun:
        return Row(gap(ours, cpu), note=note)
    return Row(gap(ours, cpu), gap(ours, exact), gap(cpu, exact), note)


def given(path: Path, data: Path) -> list[np.ndarray | None]:
    """Samples of the model's kind; None for a random one."""
    model, file = KEYWORDS
    if path.stem in SOURCES:
        return list(gathered(path, data, SAMPLES, held_out=False))
    if path.stem == model:
        return [sample[None] for sample in np.load(data / file)["x"][:SAMPLES]]
    return [None]


def results(path: Path, target: str, samples: list[np.ndarray | None]) -> tuple[Results, str]:
    made: Results = []
    with Session(path, target) as session:
        for sample in samples:
            if sample is None:
                fill_inputs(session)
            else:
                feed(session, [sample])
            session.run()
            made.append([np.array(array, np.float64) for array in session.outputs.values()])
        return made, session.note


def gap(ours: Results, theirs: Results) -> Gap:
    pairs = [pair for a, b in zip(ours, theirs, strict=True) for pair in zip(a, b, strict=True)]
    apart = [(float(np.abs(a - b).max()), float(np.abs(b).max()) or 1.0) for a, b in pairs]
    return Gap(max(d for d, _ in apart), max(d / largest for d, largest in apart))


def is_float(path: Path) -> bool:
    """True where nothing is computed in 8 bits; the CPU does that for weights of 8 bits too."""
    read = [
        tensor for _, _, op in load(path).ops() for tensor in (*op.inputs, *op.outputs) if tensor
    ]
    return not any(tensor.dtype in ("int8", "uint8") for tensor in read)


def verdict(path: Path, target: str, row: Row) -> str:
    """The problem with a row; "" where there is none."""
    if row.from_cpu is None:
        return "" if path.stem in NEVER else "MISSED"
    return "MISSED" if is_float(path) and not row.from_cpu.share <= BARS[target] else ""


def cells(path: Path, target: str, row: Row) -> tuple[str, ...]:
    gaps = row.from_cpu, row.from_exact, row.cpu_from_exact
    if row.from_cpu is None:
        numbers = [""] * 4
    else:
        shares = ["" if one is None else f"{one.share:.1e}" for one in gaps]
        numbers = [f"{row.from_cpu.absolute:.1e}", *shares]
    missed = verdict(path, target, row) or ("" if is_float(path) or row.refused else "no bar")
    return path.stem, target, *numbers, missed


if __name__ == "__main__":
    sys.exit(main())
