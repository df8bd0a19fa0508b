"""Counts the instructions that a layer executes on AArch64, in our kernels and in the runtime's.

tools/arm FOLDER --count 'python -m bench.instructions'

The emulator's plugin counts them (tools/arm_count.c). Loads, products and branches count alike, so
the counts are not times: a core may begin several instructions at once, and waits for memory.
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.kernel_bits import sparse
from litesmith import Session
from litesmith.anatomy.footprint import op_macs
from litesmith.ir.types import Model
from litesmith.kernels.programs.program import Program
from litesmith.operating_system import cpu_name
from litesmith.passes.core.recipe import apply
from tests.kernels import test_layer_kernels, test_sparse_int8_kernels, test_sparse_kernels
from tests.kernels.one_op import numbers, whole

MARK = 90001  # the system call that tools/arm_count.c answers; no system has one of that number
RUNTIME = "libLiteRt"  # the library whose instructions are the runtime's
COMPILED = ""  # code that no file holds: numba's
RUNS = 3


class Layer(NamedTuple):
    """A layer as a model for the runtime, and as a program of our kernels."""

    name: str
    model: Model
    program: Program
    other: tuple[str, Model] | None = None  # another form of the layer, for the runtime


def int16x8() -> Iterator[Layer]:
    shapes = (
        ("CONV_2D", "1×1, 256 to 256 channels, 14×14", (1, 14, 14, 256), (256, 1, 1, 256)),
        ("CONV_2D", "3×3, 64 to 64 channels, 14×14", (1, 14, 14, 64), (64, 3, 3, 64)),
        (
            "DEPTHWISE_CONV_2D",
            "depthwise 3×3, 128 channels, 28×28",
            (1, 28, 28, 128),
            (1, 3, 3, 128),
        ),
        ("FULLY_CONNECTED", "1024 to 1024, one row", (1, 1024), (1024, 1024)),
    )
    for kind, name, image, weights in shapes:
        options = {} if kind == "FULLY_CONNECTED" else {"stride_h": 1, "stride_w": 1}
        options |= {"padding": "SAME"} if options else {}
        options |= {"depth_multiplier": 1} if "DEPTH" in kind else {}
        rng = np.random.default_rng(1)
        model = test_layer_kernels.layer(kind, image, weights, rng, **options)
        yield Layer(f"int16x8 {name}", model, whole(model.main))


def sparse_layers() -> Iterator[Layer]:
    for zeros in (0.75, 0.9):
        for kind, rows, shape in (
            ("FULLY_CONNECTED", 1, (1024, 1024)),
            ("CONV_2D", 196, (256, 256)),
        ):
            name = f"{kind.lower()} {shape[1]} to {shape[0]}, {rows} rows, {zeros:.0%} zeros"
            rng = np.random.default_rng(1)
            weights = test_sparse_int8_kernels.pruned(rng, shape, zeros)
            model = test_sparse_int8_kernels.layer(kind, rows, weights, rng)
            yield Layer(f"int8 {name}", model, sparse(model))
            model = test_sparse_kernels.model(kind, rows, shape, zeros, 1)
            other = None
            if kind == "FULLY_CONNECTED":
                other = "its own sparse kernel", apply(model, "sparsify(least=0.5)").model
            yield Layer(f"float32 {name}", model, sparse(model), other)


def code(name: str) -> list[tuple[int, int]]:
    """The address ranges of a library's code; with no name, of code that no file holds."""
    found: list[tuple[int, int]] = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        ends, rights, _, _, _, *path = line.split()
        if "x" in rights and (name in path[0] if name and path else not name and not path):
            first, _, end = ends.partition("-")
            found.append((int(first, 16), int(end, 16)))
    return found


def count(name: str) -> int:
    """Instructions of that code executed since the last call."""
    told = Path(os.environ["LITESMITH_COUNT"])
    total = 0
    for first, end in code(name):
        ctypes.CDLL(None).syscall(MARK, ctypes.c_uint64(first), ctypes.c_uint64(end))
        total += int(told.read_text())
    return total


def counted(run: Callable[[], object], names: tuple[str, ...]) -> float:
    """Instructions that one run executes, on average, in the code of these names."""
    run()
    for name in names:
        count(name)
    for _ in range(RUNS):
        run()
    return sum(count(name) for name in names) / RUNS


def in_runtime(model: Model) -> float:
    with Session(model, "cpu:1") as session:
        assert not session.copies, session.note  # the runtime that is counted is the one that runs
        for image in session.inputs.values():
            image[...] = 1
        return counted(session.run, (RUNTIME,))


def main() -> None:
    print(f"{cpu_name()}; instructions for each MAC\n")
    print("| layer | ours | the runtime | runtime ÷ ours |\n|---|---|---|---|")
    for layer in (*int16x8(), *sparse_layers()):
        (op,) = layer.model.main.ops
        port, macs = layer.model.main.inputs[0], op_macs(op)
        x = np.ones(port.shape, np.float32)
        if port.dtype != "float32":
            x = numbers(np.random.default_rng(2), port.shape, port.dtype)
        run = layer.program.run
        ours = counted(lambda run=run, x=x: run([x], threads=1), (COMPILED,))
        forms = [("", layer.model), *filter(None, [layer.other])]
        for name, model in forms:
            theirs = in_runtime(model)
            told = f"{theirs / macs:.3f}{f' ({name})' if name else ''}"
            print(
                f"| {layer.name} | {ours / macs:.3f} | {told} | {theirs / ours:.1f} |", flush=True
            )


if __name__ == "__main__":
    main()
