"""TensorFlow Lite Micro, the interpreter of microcontrollers, as its wheel runs it on this machine.

Its kernels are the reference kernels that a microcontroller runs without a vendor's library, bit by
bit. Memory is one arena of a fixed size: planned tensors and scratch from its head, what lasts from
its tail. The interpreter says on stderr alone how much of the arena it used, and why it does not
open a model; it checks little, and dies of what it does not expect. So a child process opens and
runs every model first, once, and its stderr is kept.
"""

# pyright: reportMissingImports=false, reportMissingTypeStubs=false
# pyright: reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# tflite-micro has no types.

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

import numpy as np

from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.ir.dtype import DTYPES
from litesmith.ir.types import Graph, Model, Tensor
from litesmith.phrases import phrase
from litesmith.run.core.child_process import survive
from litesmith.run.core.placement import MEASURED, Home, Placement, refuse
from litesmith.run.core.runner import Port
from litesmith.run.rules.micro import why_unfit
from litesmith.tflite.write import to_bytes
from litesmith.units import bytes_text

PACKAGE = "tflite_micro"
TARGET = "micro"

# No microcontroller's flash holds more, memory outside the chip included.
LARGEST_MODEL = 64 << 20
# Address space, not memory: the interpreter touches what it uses.
LARGEST_ARENA = 1 << 30

_TRIAL = Path(__file__).with_name("tflite_micro_trial.py")

_TOTAL = re.compile(r"Arena allocation (total|head|tail) (\d+) bytes")
_KIND = re.compile(r"'([^']+)' used (\d+) bytes .*requested (\d+) bytes for (\d+)")
_NO_KERNEL = re.compile(r"Didn't find op for builtin opcode '(\w+)'")
_NO_CUSTOM = re.compile(r"Failed to get registration from op code CUSTOM")
_NODE = re.compile(r"Node (\S+) \(number (\w+)\) failed to (prepare|invoke)")
_MISSING = re.compile(r"missing: (\d+)")
_PLACE = re.compile(r"^\S+\.(?:cc|h)(?::\d+)?\s*")


@dataclass(frozen=True)
class Arena:
    """The interpreter's report on the arena of a model.

    total   bytes, the head and the tail
    head    bytes of planned tensors and scratch
    tail    bytes of permanent memory: structures and the kernels' own data
    kinds   bytes by the interpreter's name for a kind, where it names one
    """

    total: int
    head: int
    tail: int
    kinds: Mapping[str, int]


class MicroRunner:
    """A model's main graph in the interpreter, with arrays of our own for inputs and outputs."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    copies = True

    def __init__(
        self,
        model: Model,
        content: bytes | memoryview,
        graph: Graph,
        *,
        names: tuple[Sequence[str], Sequence[str]],
        arena_bytes: int | None = None,
    ) -> None:
        if graph is not model.main:
            raise CannotRun("target micro: it runs the main graph only, no other signature")
        read_arena(model, content, arena_bytes)
        from tflite_micro.python.tflite_micro import runtime

        size = arena_bytes or LARGEST_ARENA
        self._interpreter = runtime.Interpreter.from_bytes(bytes(content), arena_size=size)
        self.inputs = _ports(names[0], graph.inputs)
        self.outputs = _ports(names[1], graph.outputs)

    def run(self) -> None:
        try:
            for place, port in enumerate(self.inputs):
                if port.array.size:
                    self._interpreter.set_input(port.array, place)
            self._interpreter.invoke()
            for place, port in enumerate(self.outputs):
                port.array[...] = self._interpreter.get_output(place).reshape(port.array.shape)
        except (RuntimeError, ValueError) as error:
            raise CannotRun("target micro: {cause}", str(error).strip()) from None

    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        """Sizes are fixed in a file for microcontrollers."""
        known = [self.inputs[place].array.shape for place in shapes]
        raise BadInput(
            "target micro: it resizes no inputs, here {known} to {wanted}; make a model of the "
            "other size first: litesmith.resize, or --shape",
            known,
            list(shapes.values()),
        )

    def close(self) -> None:
        self.inputs = self.outputs = ()
        del self._interpreter


def _ports(names: Sequence[str], tensors: Sequence[Tensor]) -> tuple[Port, ...]:
    return tuple(
        Port(name, np.zeros(tensor.shape, DTYPES[tensor.dtype].storage))
        for name, tensor in zip(names, tensors, strict=True)
    )


def read_arena(model: Model, content: bytes | memoryview, arena_bytes: int | None = None) -> Arena:
    """The interpreter's use of its arena for the model; raises where the interpreter does not run
    it."""
    if find_spec(PACKAGE) is None:
        raise CannotRun(
            "target micro: tflite-micro is not installed; {install}", install_command("micro")
        )
    if len(content) > LARGEST_MODEL:
        raise CannotRun(
            "target micro: the model has {bytes}, and no microcontroller holds more than {most}; "
            "use cpu",
            bytes_text(len(content)),
            bytes_text(LARGEST_MODEL),
        )
    _refuse_ports(model.main)
    words = str(arena_bytes or LARGEST_ARENA), str(len(model.main.inputs))
    said = survive(content, [str(_TRIAL)], words, who="tflite-micro")
    told = json.loads(said or '{"ran": false, "lines": []}')
    if not told["ran"]:
        raise _why_not_run(model, told["lines"], arena_bytes)
    return _parse_arena(told["lines"])


def micro_place(model: Model) -> Placement:
    """Whether the interpreter opens and runs the model, and how much of its arena that takes."""
    try:
        arena = read_arena(model, to_bytes(model))
    except CannotRun as error:
        if find_spec(PACKAGE) is None:
            raise
        return refuse(TARGET, MEASURED, model, str(error))
    why = phrase("TensorFlow Lite Micro ran the whole model")
    homes = tuple(Home(n, op.kind, True, why) for n, op in enumerate(model.main.ops))
    facts = MappingProxyType({"arena_bytes": arena.total})
    return Placement(TARGET, MEASURED, homes, min(1, len(homes)), facts=facts)


def _refuse_ports(graph: Graph) -> None:
    """Raises where values could not be handed to the interpreter."""
    for tensor in (*graph.inputs, *graph.outputs):
        kind = DTYPES[tensor.dtype]
        if kind.storage != tensor.dtype or not kind.bits:
            raise CannotRun(
                "target micro: {name!r} is of type {dtype}, which cannot be handed to the "
                "interpreter; use cpu",
                tensor.name,
                tensor.dtype,
            )


def _parse_arena(lines: Sequence[str]) -> Arena:
    """The totals and kinds of the last account."""
    totals = {found[1]: int(found[2]) for line in lines if (found := _TOTAL.search(line))}
    kinds = {found[1]: int(found[2]) for line in lines if (found := _KIND.search(line))}
    if totals.keys() != {"total", "head", "tail"}:
        raise CannotRun("target micro: the interpreter gives no account of its arena")
    return Arena(totals["total"], totals["head"], totals["tail"], MappingProxyType(kinds))


def _why_not_run(model: Model, lines: Sequence[str], arena_bytes: int | None) -> CannotRun:
    """The interpreter's remarks as one line that names the op."""
    text = "\n".join(lines)
    absent = _NO_KERNEL.search(text)
    if absent:
        return CannotRun(
            "target micro: TensorFlow Lite Micro has no kernel for {kind}; use cpu", absent[1]
        )
    if _NO_CUSTOM.search(text):
        customs = sorted({op.custom for _, _, op in model.ops() if op.is_custom})
        return CannotRun(
            "target micro: TensorFlow Lite Micro has no kernel for the custom op {names}; use cpu",
            ", ".join(map(repr, customs)),
        )
    missing = _MISSING.search(text)
    if missing and arena_bytes is not None:
        return CannotRun(
            "target micro: an arena of {size} is too small; it lacks at least {missing}",
            bytes_text(arena_bytes),
            bytes_text(int(missing[1])),
        )
    unfit = why_unfit(model)
    if unfit:
        return CannotRun("target micro: {unfit}", unfit)
    node = _NODE.search(text)
    cause = _PLACE.sub("", lines[0]).strip().rstrip(".") if lines else phrase("it gives no reason")
    if node is None:
        return CannotRun("target micro: it does not run the model: {cause}", cause)
    return CannotRun("target micro: op {place}, {kind}: {cause}", node[2], node[1], cause)
