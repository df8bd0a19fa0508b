"""Programs: kernels in a row, their buffers in one piece of memory, run by one native call."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from time import perf_counter_ns

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Tensor
from litesmith.kernels.compiled import kernel_address, run_native
from litesmith.kernels.programs import record_layout as at
from litesmith.phrases import phrase

_LINE = 64  # bytes that everything is aligned to; some kernels read so far past an end


@dataclass(frozen=True, eq=False)
class Kernel:
    """One op, prepared: the words of its record, and constants, aligned, that other words are the
    addresses of."""

    kind: str  # the name of its function in `compiled`
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    units: int
    words: Mapping[int, int]
    constants: Mapping[int, Array] = field(default_factory=dict[int, Array])
    scratch: int = 0
    calls: Mapping[int, str] = field(default_factory=dict[int, str])  # names of functions
    kept: object = None  # what constants are a part of, and others may share


@dataclass(frozen=True, eq=False)
class Alias:
    """An op that changes no number: its output is its input's memory."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


def align(array: Array) -> Array:
    """A copy that begins at a multiple of 64 bytes and is followed by 64 more."""
    place = memory(array.nbytes)[: array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


def memory(count: int) -> Array:
    """At least this many zero bytes, aligned."""
    room = np.zeros(count + 2 * _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + count + _LINE]


def address(array: Array) -> int:
    return array.__array_interface__["data"][0]


Call = tuple[Callable[..., None], tuple[int, ...], object]


class Crew:
    """Threads that help: started once, each waits for a call and makes it without the interpreter.
    They end when the crew is collected."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._process = os.getpid()
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._done = threading.Semaphore(0)
        self._pending = 0
        for _ in range(count):
            work = (self._calls, self._done)
            threading.Thread(target=_work, args=work, daemon=True, name="litesmith").start()
        weakref.finalize(self, _dismiss, self._calls, count)

    @property
    def is_here(self) -> bool:
        """Threads do not go along into a forked process."""
        return self._process == os.getpid()

    def start(self, function: Callable[..., None], *arguments: int, owner: object) -> None:
        """Has a thread call the function as soon as possible, and keeps the owner of its memory
        alive."""
        self._pending += 1
        self._calls.put((function, arguments, owner))

    def wait(self) -> None:
        """Until every call that was started has ended."""
        while self._pending:
            self._done.acquire()
            self._pending -= 1


def _work(calls: SimpleQueue[Call | None], done: threading.Semaphore) -> None:
    while (call := calls.get()) is not None:
        call[0](*call[1])
        del call
        done.release()


def _dismiss(calls: SimpleQueue[Call | None], count: int) -> None:
    for _ in range(count):
        calls.put(None)


@dataclass(eq=False)
class Program:
    """Kernels that run one after the other, with memory for the values between them."""

    kernels: tuple[Kernel, ...]
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    aliases: tuple[Alias, ...] = ()
    owners: tuple[int, ...] = ()  # the op of each kernel, by its number among those it is made of
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        roots = _roots(self.aliases)
        flowing = [
            (_in_roots(kernel.inputs, roots), _in_roots(kernel.outputs, roots))
            for kernel in self.kernels
        ]
        tensors = dict.fromkeys((*self.inputs, *self.outputs))
        tensors.update((t, None) for read, written in flowing for t in (*read, *written))
        self._numbers = {tensor: number for number, tensor in enumerate(tensors)}
        self._code = _code(self.kernels, flowing, self._numbers)
        self._buffers = np.zeros(max(len(tensors), 1), np.int64)
        self._constants = {t: align(t.values()) for t in tensors if t.is_const}
        fixed = {*self.inputs, *self.outputs, *self._constants}
        places, self.arena_bytes = _arena(flowing, fixed)
        self._arena = memory(self.arena_bytes)
        for tensor, place in places.items():
            self._buffers[self._numbers[tensor]] = address(self._arena) + place
        for tensor, array in self._constants.items():
            self._buffers[self._numbers[tensor]] = address(array)
        self._scratch_bytes = at.TILE_SCRATCH + max((k.scratch for k in self.kernels), default=0)
        self._counters = memory(128 * max(len(self.kernels), 1))
        self._scratches = [memory(self._scratch_bytes)]
        self._crew: Crew | None = None
        ports = (*self.inputs, *self.outputs)
        self._ports = np.array([self._numbers[tensor] for tensor in ports], np.int64)
        self._dtypes = [np.dtype(tensor.dtype) for tensor in ports]
        self._start = address(self._code), len(self.kernels), address(self._buffers)
        scratch = address(self._scratches[0])
        self.record = np.array([*self._start, scratch, len(ports), *self._ports], np.int64)

    def run(
        self, inputs: Sequence[Array], outputs: Sequence[Array] | None = None, *, threads: int = 1
    ) -> tuple[Array, ...]:
        """The outputs for these inputs, into given arrays or new ones."""
        made = outputs or [np.empty(tensor.shape, tensor.dtype) for tensor in self.outputs]
        ports = (*self.inputs, *self.outputs)
        given = (*inputs, *made)
        if len(given) != len(ports):
            raise BadInput("{count} arrays for {count2} inputs and outputs", len(given), len(ports))
        for tensor, dtype, array in zip(ports, self._dtypes, given, strict=True):
            if array.shape != tensor.shape or array.dtype != dtype or not array.flags.c_contiguous:
                _refuse_other(tensor, array)
        self.run_at([address(array) for array in given], threads=threads)
        return tuple(made)

    def run_at(self, addresses: Sequence[int], *, threads: int = 1) -> None:
        """Runs on memory at these addresses: those of the inputs, then those of the outputs."""
        with self._lock:
            self._prepare_run(addresses, threads)
            self._run_kernels(0, len(self.kernels), threads)

    def run_timed(self, addresses: Sequence[int], *, threads: int = 1) -> list[int]:
        """The same, kernel by kernel: when the first began and when each ended, on the clock of
        `perf_counter_ns`."""
        with self._lock:
            self._prepare_run(addresses, threads)
            moments = [perf_counter_ns()]
            for number in range(len(self.kernels)):
                self._run_kernels(number, 1, threads)
                moments.append(perf_counter_ns())
            return moments

    def _prepare_run(self, addresses: Sequence[int], threads: int) -> None:
        if threads < 1:
            raise BadInput("threads={threads}: at least one is needed", threads)
        if self._crew is not None and self._crew.is_here:
            self._crew.wait()
        self._buffers[self._ports] = addresses
        if threads > 1:
            self._counters[:] = 0

    def _run_kernels(self, first: int, count: int, threads: int) -> None:
        native, own = run_native(), address(self._scratches[0])
        code = self._start[0] + first * at.RECORD_BYTES
        if threads == 1:
            native(code, count, self._start[2], own, 0)
            return
        counters = address(self._counters) + 128 * first
        helpers = self._helpers(threads - 1)
        for scratch in self._scratches[1:threads]:
            helpers.start(
                native, code, count, self._start[2], address(scratch), counters, owner=self
            )
        native(code, count, self._start[2], own, counters)

    def _helpers(self, count: int) -> Crew:
        if self._crew is None or not self._crew.is_here or self._crew.count < count:
            self._crew = Crew(count)
            while len(self._scratches) <= count:
                self._scratches.append(memory(self._scratch_bytes))
        return self._crew


def _refuse_other(tensor: Tensor, array: Array) -> None:
    order = "" if array.flags.c_contiguous else phrase(" in another order")
    raise BadInput(
        "{name!r} is {dtype} {shape} in C order; an array of {dtype2} {shape2}{order} was given",
        tensor.name,
        tensor.dtype,
        tensor.shape,
        array.dtype,
        array.shape,
        order,
    )


def _roots(aliases: Sequence[Alias]) -> dict[Tensor, Tensor]:
    """The tensor that owns the memory of each alias."""
    roots: dict[Tensor, Tensor] = {}
    for alias in aliases:
        source = alias.inputs[0]
        roots[alias.outputs[0]] = roots.get(source, source)
    return roots


def _in_roots(tensors: Sequence[Tensor], roots: Mapping[Tensor, Tensor]) -> tuple[Tensor, ...]:
    return tuple(roots.get(tensor, tensor) for tensor in tensors)


Flow = tuple[tuple[Tensor, ...], tuple[Tensor, ...]]


def _code(
    kernels: Sequence[Kernel], flowing: Sequence[Flow], numbers: Mapping[Tensor, int]
) -> Array:
    code = np.zeros((max(len(kernels), 1), at.WORDS), np.int64)
    for record, kernel, (read, written) in zip(code, kernels, flowing, strict=False):
        for place, word in kernel.words.items():
            record[place] = word
        for place, array in kernel.constants.items():
            record[place] = address(array)
        for place, name in kernel.calls.items():
            record[place] = kernel_address(name)
        record[at.KERNEL], record[at.UNITS] = kernel_address(kernel.kind), kernel.units
        record[at.IN], record[at.OUT] = numbers[read[0]], numbers[written[0]]
        if len(read) > 1:
            record[at.IN_2] = numbers[read[1]]
    return code


def _arena(flowing: Sequence[Flow], fixed: set[Tensor]) -> tuple[dict[Tensor, int], int]:
    """A place for each tensor that flows, so that those alive at once do not overlap."""
    first: dict[Tensor, int] = {}
    last: dict[Tensor, int] = {}
    for step, (read, written) in enumerate(flowing):
        for tensor in (*read, *written):
            if tensor not in fixed:
                first.setdefault(tensor, step)
                last[tensor] = step
    places: dict[Tensor, int] = {}
    ends = 0
    for tensor in sorted(first, key=lambda t: -t.nbytes):
        alive = sorted(
            (places[t], places[t] + _room(t))
            for t in places
            if first[t] <= last[tensor] and first[tensor] <= last[t]
        )
        place = 0
        for begin, end in alive:
            if place + _room(tensor) <= begin:
                break
            place = max(place, end)
        places[tensor] = place
        ends = max(ends, place + _room(tensor))
    return places, ends


def _room(tensor: Tensor) -> int:
    """Bytes of a buffer: whole lines, and one more that kernels may read."""
    return (tensor.nbytes + 2 * _LINE - 1) // _LINE * _LINE
