"""Observes a model's tensors on data (ranges, histograms, means): streamed, never all at once."""

import mmap
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from tempfile import TemporaryFile
from typing import NamedTuple, TypeVar

import numpy as np

from litesmith.calibration import observed_cache as cache
from litesmith.data.samples import Data, as_stored
from litesmith.data.shipping import Content, DataPiece, load_content, send_model, source_digest
from litesmith.errors import BadInput
from litesmith.ir.edit import needed_ops, regraph
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.numeric.ranges import Seen
from litesmith.numeric.recurrent import LstmState, run_lstm
from litesmith.passes.core.lstm import CELL, STATE, Lstm, cells_of
from litesmith.passes.core.step import Run, Samples, Tools
from litesmith.phrases import phrase
from litesmith.run.litert.capi import trim_memory
from litesmith.run.litert.interpreter import InterpreterRunner
from litesmith.run.session import Session, feed
from litesmith.temporary import temporary_room
from litesmith.tflite.write import chunks
from litesmith.units import plain
from litesmith.workers.engine import Engine, Held

Item = TypeVar("Item")

# Bytes of tensors to observe in one pass over the data; further tensors wait for the next pass.
AT_ONCE = 200_000_000


class StoredSamples:
    """The data as a model's own inputs take it."""

    def __init__(self, data: Data, model: Model) -> None:
        self._data, self._inputs = data, model.main.inputs

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[tuple[Array, ...]]:
        for sample in self._data:
            yield tuple(map(as_stored, self._inputs, sample.inputs))


class Spread(NamedTuple):
    """An engine, and data whose pieces lie with its workers."""

    engine: Engine
    pieces: tuple[Held[DataPiece], ...]


def tools(data: Data, *, threads: int = 0, spread: Spread | None = None) -> Tools:
    """The tools that steps may use to look at this data; `spread` holds the same data in pieces."""
    target = f"cpu:{threads or os.cpu_count() or 1}"

    def samples(model: Model) -> Samples:
        return StoredSamples(data, model)

    def observed(
        model: Model, tensors: Sequence[Tensor], what: frozenset[str]
    ) -> Mapping[Tensor, Seen]:
        return observe(model, tensors, what, data=data, target=target, spread=spread)

    @contextmanager
    def opened(model: Model) -> Generator[Run]:
        with Session(replace(model, signatures=()), target) as session:
            yield _run(session)

    return Tools(samples, observed, opened)


@contextmanager
def open_apart(model: Model) -> Generator[Run]:
    """Opens a model so that samples do not affect each other: each begins with states of zeros, as
    in training."""
    with Session(replace(model, signatures=()), f"cpu:{os.cpu_count() or 1}") as session:
        run = _run(session)

        def run_one(arrays: Sequence[Array]) -> list[Array]:
            if isinstance(session.runner, InterpreterRunner):
                session.runner.forget_states()
            return run(arrays)

        yield run_one


def _run(session: Session) -> Run:
    def run(arrays: Sequence[Array]) -> list[Array]:
        feed(session, arrays)
        session.run()
        return [port.array for port in session.runner.outputs]

    return run


def observe(
    model: Model,
    tensors: Sequence[Tensor],
    what: frozenset[str],
    *,
    data: Data,
    target: str = "cpu:1",
    spread: Spread | None = None,
) -> Mapping[Tensor, Seen]:
    """Observes some tensors of the main graph on the data; `what` names the facts to gather, as in
    `Seen`.

    A copy of the model gives the tensors as outputs and runs at full speed. Observations of the
    same model on the same data come from the cache.
    """
    if not len(data):
        raise BadInput("{source}: holds no samples", data.source)

    place = cache.facts_place(model, data, what)
    seen = cache.read_facts(place, model, what)
    wanted = list(dict.fromkeys(tensors))
    missing = [tensor for tensor in wanted if tensor not in seen]
    for wave in waves(missing, lambda tensor: tensor.nbytes):
        if spread is None:
            seen |= _observe(model, wave, what, data, target)
        else:
            found = _observe_spread(model, wave, what, spread)
            vast = [tensor for tensor in wave if not found[tensor].is_mergeable]
            seen |= found | (_observe(model, vast, what, data, target) if vast else {})
    if missing:
        trim_memory()
        cache.write_facts(place, model, seen)
    _refuse_spoiled({tensor: seen[tensor] for tensor in wanted}, data)
    return {tensor: seen[tensor] for tensor in wanted}


def _refuse_spoiled(seen: Mapping[Tensor, Seen], data: Data) -> None:
    for tensor, of_tensor in seen.items():
        if of_tensor.spoiled:
            raise BadInput(
                "{name!r} is infinite or not a number on {spoiled} of {count} samples of "
                "{source}; the data or its normalisation is wrong",
                plain(tensor.name),
                of_tensor.spoiled,
                len(data),
                data.source,
            )


def waves(
    items: Sequence[Item], size: Callable[[Item], int], at_once: int = AT_ONCE
) -> Iterator[list[Item]]:
    """All items in groups, so that memory never holds more than a limited number of bytes."""
    wave: list[Item] = []
    for item in items:
        if wave and sum(map(size, (*wave, item))) > at_once:
            yield wave
            wave = []
        wave.append(item)
    if wave:
        yield wave


def _observe(
    model: Model, tensors: Sequence[Tensor], what: frozenset[str], data: Data, target: str
) -> dict[Tensor, Seen]:
    """Makes one pass over the data."""
    seen = {tensor: Seen(what) for tensor in tensors}
    inputs, of_cells = model.main.inputs, cells_of(model.main)
    cells = [_Cell(tensor, of_cells[tensor]) for tensor in tensors if tensor in of_cells]
    shown = [t for t in tensors if t not in of_cells]
    wanted = dict.fromkeys([*shown, *(t for cell in cells for t in cell.reads)])
    computed = [t for t in wanted if t not in inputs]
    fed = [(place, t) for place, t in enumerate(inputs) if t in wanted]
    with _open_at(model, computed, target) as run:
        for values in StoredSamples(data, model):
            found = {tensor: values[place] for place, tensor in fed}
            found |= zip(computed, run(values), strict=True)
            for tensor in shown:
                seen[tensor].add(found[tensor])
            for cell in cells:
                seen[cell.tensor].add(cell.advance(found))
    return seen


class _Cell:
    """The cell of an LSTM that is a single op. The runtime does not show its state, so the steps
    are computed here. As in the runtime, a sample begins with the state left by the sample before
    it."""

    def __init__(self, tensor: Tensor, op: Op) -> None:
        self.tensor, self._op = tensor, op
        self.reads = [t for t in op.inputs if t is not None and not (t.variable or t.is_const)]
        self._state: LstmState | None = None

    def advance(self, found: Mapping[Tensor, Array]) -> Array:
        """The contents of the cell at each step of a sample."""
        given = [self._values(t, found) for t in self._op.inputs]
        lstm = Lstm(self._op)
        if self._state is None:
            states = (lstm.need(place).shape for place in (STATE, CELL))
            self._state = LstmState(*(np.zeros(shape, np.float32) for shape in states))
        assert self._op.options is not None
        cells, self._state = run_lstm(self._op.options, given, self._state)
        return cells

    def _values(self, tensor: Tensor | None, found: Mapping[Tensor, Array]) -> Array | None:
        if tensor is None or tensor.variable:
            return None
        return tensor.values() if tensor.is_const else found[tensor]


def _observe_spread(
    model: Model, tensors: Sequence[Tensor], what: frozenset[str], spread: Spread
) -> dict[Tensor, Seen]:
    """Observes with several workers. Order and grouping do not change the result, except for sums
    so large that they are rounded."""
    engine = spread.engine
    places = {tensor: place for place, tensor in enumerate(model.main.tensors)}
    numbers = [places[tensor] for tensor in tensors]
    content = send_model(engine, model, source_digest(model))
    started = (
        engine.call(phrase("looking at the data"), observed_piece, content, numbers, what, piece)
        for piece in spread.pieces
    )
    states = list(engine.gathered(started))
    return {
        tensor: Seen.merged(what, [state[place] for state in states])
        for place, tensor in enumerate(tensors)
    }


def observed_piece(
    content: Content, numbers: Sequence[int], what: frozenset[str], piece: DataPiece
) -> list[dict[str, Array]]:
    """Observes tensors, named by their numbers, on some samples and one core."""
    model = load_content(content)
    tensors = [model.main.tensors[number] for number in numbers]
    seen = _observe(model, tensors, what, piece.open_samples(), "cpu:1")
    return [seen[tensor].state() for tensor in tensors]


def exposing(model: Model, outputs: Sequence[Tensor]) -> Model:
    """The model with other outputs, without the ops that these do not need."""
    ops = needed_ops(model.main.ops, outputs)
    graph = regraph(model.main, ops=ops, outputs=list(dict.fromkeys(outputs)))
    return replace(model, graphs=(graph, *model.graphs[1:]), signatures=(), metadata=())


@contextmanager
def _open_at(model: Model, tensors: Sequence[Tensor], target: str) -> Generator[Run]:
    """Opens a run that returns these tensors of the main graph."""
    if not tensors:
        yield lambda _: []
        return
    with (
        _on_disk(exposing(model, tensors)) as content,
        Session(memoryview(content), target) as session,
    ):
        if hasattr(mmap, "MADV_DONTNEED"):  # the runtime has packed the weights for itself
            content.madvise(mmap.MADV_DONTNEED)
        yield _run(session)


@contextmanager
def _on_disk(model: Model) -> Generator[mmap.mmap]:
    """A model written to a temporary file and mapped, so that it does not fill memory a second
    time."""
    with ExitStack() as stack:
        with temporary_room():
            file = stack.enter_context(TemporaryFile(prefix="litesmith-", buffering=0))
            for piece in chunks(model):
                file.write(piece)
        yield mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
