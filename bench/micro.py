"""What `docs/micro.md` says, on real models: our arena against the interpreter's, plans, bits.

* The arena of our account is within 1 % of the interpreter's own on this machine.
* A plan takes no more than TensorFlow Lite Micro's own, and is within 2 % of what lives.
* The planned file gives the same bits in the interpreter, overlapping or not; and op by op in
  memory where every byte outside a live tensor is overwritten in between.
* `--overlap reference` saves a fifth in the median of the convolutional networks.
* Layers in bands take no more, give the same bits, and stay right in poisoned memory.
"""

import sys
from functools import partial
from statistics import median

import numpy as np
from report import print_table, verdict_line
from stock import arguments, model_files

from litesmith.errors import LitesmithError
from litesmith.ir.types import Model
from litesmith.micro.arena import DEVICE, HOST, add_up_arena
from litesmith.micro.plan_file import plan_model
from litesmith.micro.plan_proof import run_poisoned
from litesmith.passes.core.recipe import apply
from litesmith.run.accelerators.tflite_micro import read_arena
from litesmith.run.session import Session, fill_inputs
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests.micro.test_plan_file import run_alone

NEAR, CLOSE, SAVED = 0.01, 0.02, 0.2
LARGE = 1_000_000  # bytes of an arena that no bands bring to a microcontroller


def answers(model: Model) -> list[np.ndarray]:
    with Session(model, "micro") as session:
        fill_inputs(session, seed=3)
        session.run()
        return [array.copy() for array in session.outputs.values()]


def is_poisonable(model: Model) -> bool:
    """True where each op can be run alone: no states, no other graphs."""
    has_state = any(tensor.variable for tensor in model.main.tensors)
    return len(model.graphs) == 1 and not has_state


def poisoned(model: Model) -> bool:
    """True where the file's plan gives the model's answer although memory is poisoned between
    ops."""
    account = add_up_arena(model, DEVICE)
    reference = "cpu:1:reference"
    with Session(model, reference) as session:
        fill_inputs(session, seed=3)
        inputs = [array.copy() for array in session.inputs.values()]
        session.run()
        wanted = [array.copy() for array in session.outputs.values()]
    run_op = partial(run_alone, target=reference)
    found = run_poisoned(model, account.plan, inputs, run_op, seed=3)
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def in_bands(model: Model, wanted: list[np.ndarray]) -> tuple[int, list[str]]:
    """The arena with as many bands as help, and any error in it."""
    before = add_up_arena(model, DEVICE).needed
    if before > LARGE:
        return before, []
    made = apply(model, "arrange(ram=1)").model
    after, wrong = add_up_arena(made, DEVICE).needed, list[str]()
    if after > before:
        wrong.append(f"in bands {after}, more than {before}")
    if not all(np.array_equal(a, b) for a, b in zip(answers(made), wanted, strict=True)):
        wrong.append("other bits in bands")
    if is_poisonable(made) and not poisoned(made):
        wrong.append("another answer in poisoned memory, in bands")
    return after, wrong


def main() -> int:
    options = arguments(__doc__).parse_args()
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    saved: list[float] = []
    for path in model_files(options.models):
        model = load(path)
        try:
            told = read_arena(model, path.read_bytes())
        except LitesmithError:
            continue
        ours, device = add_up_arena(model, HOST).total, add_up_arena(model, DEVICE).total
        if abs(ours - told.total) > NEAR * told.total:
            missed.append(f"{path.stem}: arena {ours}, the interpreter's {told.total}")
        wanted, sizes = answers(model), list[int]()
        for overlap in ("none", "reference"):
            planned = plan_model(model, overlap)
            content = to_bytes(planned.model)
            sizes.append(planned.bytes)
            if read_arena(planned.model, content).head > told.head:
                missed.append(f"{path.stem}: the plan is larger")
            if overlap == "none" and planned.bytes > (1 + CLOSE) * planned.bound:
                missed.append(f"{path.stem}: {planned.bytes} of {planned.bound} that live")
            pairs = zip(answers(planned.model), wanted, strict=True)
            if not all(np.array_equal(a, b) for a, b in pairs):
                missed.append(f"{path.stem}: other bits with overlap {overlap}")
            if is_poisonable(model) and not poisoned(planned.model):
                missed.append(f"{path.stem}: another answer in poisoned memory ({overlap})")
        if any(op.kind == "CONV_2D" for op in model.main.ops):
            saved.append(1 - sizes[1] / max(1, told.head))
        banded, wrong = in_bands(model, wanted)
        missed += [f"{path.stem}: {why}" for why in wrong]
        numbers = (told.total, ours, device, told.head, *sizes, banded)
        rows.append((path.stem, *map(str, numbers)))
    columns = ("model", "interpreter", "ours", "32 bits", "its plan", "our plan", "overlapping")
    print_table((*columns, "in bands, 32 bits"), rows)
    if saved and median(saved) < SAVED:
        missed.append(f"overlapping saves {median(saved):.0%} in the median")
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
