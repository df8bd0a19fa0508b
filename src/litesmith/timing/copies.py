"""The cost of feeding inputs and reading outputs, for each way that Python offers."""

# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# ai_edge_litert leaves parts of its types open.

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from statistics import median
from time import perf_counter
from typing import NamedTuple, cast

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.run.core.child_process import answer, ask
from litesmith.run.core.target import Target
from litesmith.run.session import Session, random_inputs
from litesmith.timing.clock import time_call
from litesmith.timing.statistics import Row

_SECONDS = 2.0
_LEAST_ROUNDS = 6
_PATIENCE = 120.0  # seconds by which the rounds may exceed the limit
_TARGET = Target()

Deed = Callable[[], object]


class Way(NamedTuple):
    """A way to feed, run and read, with the bytes that it copies per run."""

    feed: Deed
    run: Deed
    read: Deed
    copied_bytes: int


@dataclass(frozen=True)
class Copies:
    """The times of one way, in microseconds (medians of interleaved rounds); or why it was not
    measured."""

    way: str
    feed_us: float = 0.0
    run_us: float = 0.0
    read_us: float = 0.0
    copied_bytes: int = 0
    skipped: str = ""

    @property
    def share(self) -> float:
        """Feeding and reading as a share of the total."""
        moving = self.feed_us + self.read_us
        return moving / (moving + self.run_us) if moving else 0.0

    def row(self) -> Row:
        shown: Row = {"way": self.way, "skipped": self.skipped}
        if self.skipped:
            return shown
        return {
            **shown,
            "feed_us": self.feed_us,
            "run_us": self.run_us,
            "read_us": self.read_us,
            "copied_bytes": self.copied_bytes,
            "share": self.share,
        }


_Values = tuple[str, float, float, float, int, str]


def time_copies(
    path: str | os.PathLike[str], target: Target = _TARGET, *, seconds: float = _SECONDS
) -> tuple[Copies, ...]:
    """Times every way on the same values, in turns, for about this many seconds.

    The measurement happens in a child process, because the wheel's objects print when they are
    deleted.
    """
    if target.kind != "cpu" or target.kernels != "xnnpack":
        raise BadInput("target {target}: copies are measured on cpu:THREADS", target)
    rows = ask(
        "litesmith.timing.copies", path, str(target), str(seconds), seconds=seconds + _PATIENCE
    )
    return tuple(Copies(*values) for values in cast(list[_Values], rows))


def _all_ways(path: str, target: str, seconds: str) -> list[tuple[object, ...]]:
    with Session(path, target) as session:
        values = random_inputs(session.graph, session.runner)
        session.run()  # a model that falls back to the interpreter does so here
        ways: dict[str, Way] = {}
        skipped: list[Copies] = []
        for name, open_way in _WAYS.items():
            try:
                ways[name] = open_way(path, session, values)
            except _Skipped as reason:
                skipped.append(Copies(name, skipped=str(reason)))
        return [astuple(found) for found in (*_in_turns(ways, float(seconds)), *skipped)]


def _in_turns(ways: dict[str, Way], seconds: float) -> list[Copies]:
    times: dict[str, list[tuple[float, ...]]] = {name: [] for name in ways}
    end = perf_counter() + seconds
    rounds = 0
    while rounds < _LEAST_ROUNDS or perf_counter() < end:
        # The direction alternates, so that no way always follows the same neighbour.
        for name, way in list(ways.items())[:: -1 if rounds % 2 else 1]:
            times[name].append(tuple(map(time_call, (way.feed, way.run, way.read))))
        rounds += 1
    found: list[Copies] = []
    for name, way in ways.items():
        feed_us, run_us, read_us = (median(kind) for kind in zip(*times[name][1:], strict=True))
        found.append(Copies(name, feed_us, run_us, read_us, way.copied_bytes))
    return found


class _Skipped(Exception):
    """Raised by a way that does not work for this model."""


def _cause(error: Exception) -> str:
    """The last of the runtime's causes, without the places in its source.

    >>> _cause(ValueError("failed \\n└ ERROR: [file.cc:1] \\n└ ERROR: [other.cc:2] no memory"))
    'no memory'
    """
    parts = (re.sub(r"ERROR: \[.*?\]", "", part).strip() for part in str(error).split("└"))
    return " ".join([part for part in parts if part][-1:])


def _classic(path: str, session: Session, values: list[Array]) -> Way:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=path, num_threads=session.target.threads)
    interpreter.allocate_tensors()
    details = interpreter.get_input_details()
    inputs = [detail["index"] for detail in details]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    wanted = [(d["name"], tuple(d["shape"]), np.dtype(d["dtype"])) for d in details]
    by_place = _match_order(wanted, values)

    def feed() -> None:
        for index, value in zip(inputs, by_place, strict=True):
            interpreter.set_tensor(index, value)

    def read() -> list[Array]:
        return [interpreter.get_tensor(index) for index in outputs]

    try:
        feed()
        interpreter.invoke()
        copied = sum(v.nbytes for v in values) + sum(r.nbytes for r in read())
    except (RuntimeError, ValueError) as error:
        raise _Skipped(_cause(error)) from None
    return Way(feed, interpreter.invoke, read, copied)


def _match_order(
    wanted: Sequence[tuple[str, tuple[int, ...], np.dtype[np.generic]]], values: list[Array]
) -> list[Array]:
    """The values in the interpreter's order, which a signature may change."""
    left = list(values)
    found: list[Array] = []
    for name, shape, dtype in wanted:
        fitting = [n for n, v in enumerate(left) if (v.shape, v.dtype) == (shape, dtype)]
        if not fitting:
            raise _Skipped(phrase("the interpreter has another input {name!r}", name))
        found.append(left.pop(fitting[0]))
    return found


def _buffers(path: str, session: Session, values: list[Array]) -> Way:
    from ai_edge_litert.compiled_model import CompiledModel, CpuOptions, Options

    shapes = [(port.array.size, port.array.dtype) for port in session.runner.outputs]
    options = Options(cpu_options=CpuOptions(num_threads=session.target.threads))
    try:
        model = CompiledModel.from_file(path, options=options)
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)

        def feed() -> None:
            for buffer, value in zip(inputs, values, strict=True):
                buffer.write(value)

        def read() -> list[Array]:
            return [b.read(*shape) for b, shape in zip(outputs, shapes, strict=True)]

        def run() -> None:
            model.run_by_index(0, inputs, outputs)

        for _ in range(2):  # where sizes depend on values, the second run fails
            feed()
            run()
        copied = sum(v.nbytes for v in values) + sum(r.nbytes for r in read())
    except (RuntimeError, ValueError) as error:
        raise _Skipped(_cause(error)) from None
    return Way(feed, run, read, copied)


def _assign(path: str, session: Session, values: list[Array]) -> Way:
    def feed() -> None:
        for port, value in zip(session.runner.inputs, values, strict=True):
            port.array[...] = value

    feed()
    fed = sum(value.nbytes for value in values)
    return Way(feed, session.run, lambda: _outputs(session), fed + _hidden_bytes(session))


def _in_place(path: str, session: Session, values: list[Array]) -> Way:
    """The application computes its input directly in the model's memory."""
    return Way(
        lambda: [port.array for port in session.runner.inputs],
        session.run,
        lambda: _outputs(session),
        _hidden_bytes(session),
    )


def _outputs(session: Session) -> list[Array]:
    return [port.array for port in session.runner.outputs]


def _hidden_bytes(session: Session) -> int:
    """The bytes that a session copies during its run, where the runtime cannot share memory."""
    if not session.copies:
        return 0
    ports = (*session.runner.inputs, *session.runner.outputs)
    return sum(port.array.nbytes for port in ports)


_WAYS: dict[str, Callable[[str, Session, list[Array]], Way]] = {
    "set_tensor / get_tensor": _classic,
    "TensorBuffer write / read": _buffers,
    "view, input assigned": _assign,
    "view, input made in place": _in_place,
}

if __name__ == "__main__":
    answer(_all_ways)
