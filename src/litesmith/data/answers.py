"""The answers of models to samples: one pass over the data for all models, on every core."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from litesmith.data.samples import Sample, as_stored
from litesmith.errors import BadInput
from litesmith.ir.edit import called_graphs
from litesmith.ir.ops import is_repeatable
from litesmith.ir.types import Array, Model, Tensor
from litesmith.operating_system import usable_cores
from litesmith.run.core.target import Target
from litesmith.run.litert.numpy_walker import dequantize
from litesmith.run.session import ReadModel, Session, Source, feed, read_once

Outputs = tuple[Array, ...]  # of one model: real numbers where an output has a scale
Kept = TypeVar("Kept")
Keep = Callable[[Sample, Sequence[Outputs]], Kept]

# Sessions cost memory, and with more workers than this, reading the data is the bottleneck.
_MOST_WORKERS = 16

# The number of samples handed to a worker at a time, so that handing over costs little.
_CHUNK = 8


def outputs_of(
    models: Sequence[Source],
    samples: Iterable[Sample],
    keep: Keep[Kept],
    *,
    on: str | Target = "cpu:1",
    workers: int | None = None,
) -> Generator[Kept, None, None]:
    """Yields the result of `keep` for each sample and every model's outputs, in the samples' order.

    Each worker has a session of every model and runs one sample at a time: with LiteRT 2.3.0,
    convolutional models gain less than a tenth from batches of 2 to 16, or lose. The workers call
    `keep` and drop the outputs, so that memory is bounded.
    """
    target = Target.parse(on)
    entries = [_main_entry(model) for model in models]

    def opened() -> list[Session]:
        return [
            stack.enter_context(Session(content, target, signature=key)) for content, key in entries
        ]

    with ExitStack() as stack:
        first = opened()
        count = _workers(first, target) if workers is None else workers
        free: SimpleQueue[list[Answering]] = SimpleQueue()
        free.put([Answering(session) for session in first])
        for _ in range(count - 1):
            free.put([Answering(session) for session in opened()])
        pool = stack.enter_context(ThreadPoolExecutor(count))
        stack.callback(pool.shutdown, cancel_futures=True)
        yield from _in_order(pool, free, iter(samples), keep, count)


def main_session(source: Source, on: str | Target = "cpu:1") -> Session:
    """Opens a session of the main graph, for which data is read, whatever the first
    signature is."""
    content, key = _main_entry(source)
    return Session(content, on, signature=key)


def _main_entry(source: Source) -> tuple[ReadModel, str]:
    """The model to open, and the key of the signature that runs the main graph."""
    read = read_once(source)
    signatures = read.model.signatures
    if not signatures or signatures[0].graph == 0:
        return read, ""
    key = next((s.key for s in signatures if s.graph == 0), "")
    return (read, key) if key else (read_once(replace(read.model, signatures=())), "")


def _in_order(
    pool: ThreadPoolExecutor,
    free: "SimpleQueue[list[Answering]]",
    samples: Iterator[Sample],
    keep: Keep[Kept],
    count: int,
) -> Iterator[Kept]:
    def work(chunk: list[Sample]) -> list[Kept]:
        group = free.get()
        try:
            return [keep(sample, [one(sample) for one in group]) for sample in chunk]
        finally:
            free.put(group)

    waiting: deque[Future[list[Kept]]] = deque()
    while chunk := list(islice(samples, _CHUNK)):
        waiting.append(pool.submit(work, chunk))
        if len(waiting) > 2 * count:
            yield from waiting.popleft().result()
    while waiting:
        yield from waiting.popleft().result()


def _workers(sessions: Sequence[Session], target: Target) -> int:
    """The number of workers: one per core, but only one where the target has no cores, or an answer
    depends on earlier ones.

    So the results never depend on the number of workers.
    """
    if target.kind != "cpu" or not all(is_stateless(session.model) for session in sessions):
        return 1
    return max(1, min(_MOST_WORKERS, usable_cores() // target.threads))


def is_stateless(model: Model) -> bool:
    """True where an answer depends on the inputs alone."""
    return all(is_repeatable(op) or called_graphs(op) for _, _, op in model.ops())


class Answering:
    """A session of the main graph; takes a sample and returns the outputs as real numbers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._inputs, self._outputs = _ports(session)

    def __call__(self, sample: Sample) -> Outputs:
        answers = [self._answer(replace(sample, inputs=i)) for i in (sample.inputs, *sample.more)]
        if len(answers) == 1:
            return answers[0]
        parts = zip(*answers, strict=True)
        if sample.averages:
            return tuple(np.asarray(np.mean(calls, axis=0), np.float32) for calls in parts)
        return tuple(np.concatenate(of_calls) for of_calls in parts)

    def _answer(self, sample: Sample) -> Outputs:
        if len(sample.inputs) != len(self._inputs):
            raise BadInput(
                "sample {name!r} has {count} arrays; the model has {count2} inputs",
                sample.name,
                len(sample.inputs),
                len(self._inputs),
            )
        arrays = {
            name: as_stored(tensor, _check_shape(name, tensor, value))
            for (name, tensor), value in zip(self._inputs, sample.inputs, strict=True)
        }
        feed(self._session, [arrays[name] for name in self._session.inputs])
        self._session.run()
        return tuple(real(self._session.outputs[name], t) for name, t in self._outputs)


def _check_shape(name: str, tensor: Tensor, value: Array) -> Array:
    """Checks the value's shape: only free dimensions may differ from what the model states."""
    marks = tensor.dynamic or tensor.shape
    fits = (wanted in (-1, size) for size, wanted in zip(value.shape, marks, strict=False))
    if len(marks) != value.ndim or not all(fits):
        raise BadInput(
            "input {name!r} has shape {shape}; {shape2} was given", name, tensor.shape, value.shape
        )
    return value


def real(stored: Array, tensor: Tensor) -> Array:
    """The real numbers of an output, copied, because the session's next run overwrites its
    memory."""
    if tensor.quant is None or tensor.quant.block is not None or stored.dtype.kind not in "iu":
        return stored.copy()
    return dequantize(stored, tensor.quant) if tensor.quant.scale.size else stored.copy()


Named = list[tuple[str, Tensor]]


def _ports(session: Session) -> tuple[Named, Named]:
    """Inputs and outputs in the graph's order, with the session's names for them."""
    graph, (inputs, outputs) = session.model.main, session.names
    return (
        list(zip(inputs, graph.inputs, strict=True)),
        list(zip(outputs, graph.outputs, strict=True)),
    )
