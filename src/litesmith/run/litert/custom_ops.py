"""Custom ops in LiteRT's compiled model: each custom op of a model calls one of our kernels.

The runtime hands a kernel its tensors by handles that are locked for their memory. It ignores a
kernel's return value, dies of an omitted input, refuses constants that are not aligned to 64 bytes,
and identifies kernels by the names of ops only. So errors are kept here and raised after the run;
the runtime's copy of the model has only computed inputs, and a separate name for each op.
"""

# pyright: reportPrivateUsage=false
# ctypes has only a private name for the type of its pointers.

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from dataclasses import replace
from functools import cache

import numpy as np

from litesmith.errors import CannotRun, LitesmithError
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.model_text import op_name
from litesmith.ir.types import Array, Model, Op, Tensor
from litesmith.native import compile as at
from litesmith.ops.call import Call
from litesmith.ops.delegate import Kernel, Native, Shape
from litesmith.ops.registry import find_op
from litesmith.ops.results import error_text
from litesmith.phrases import phrase
from litesmith.run.litert.capi import ELEMENT_TYPES, Layout, api
from litesmith.tflite.write import to_bytes

_Init = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
_Layouts = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, POINTER(Layout), c_size_t, POINTER(Layout))
_Handles = POINTER(c_void_p)
_Run = ctypes.CFUNCTYPE(c_int, c_void_p, c_size_t, _Handles, c_size_t, _Handles)
_Destroy = ctypes.CFUNCTYPE(c_int, c_void_p)
_Call = ctypes.CFUNCTYPE(c_int, c_int64, c_int64)
_READ, _WRITE = 0, 1
_FAILED = 3  # kLiteRtStatusErrorRuntimeFailure


class _Callbacks(ctypes.Structure):
    _fields_ = [("init", _Init), ("layouts", _Layouts), ("run", _Run), ("destroy", _Destroy)]


class _Locks:
    """The runtime's functions that custom ops need; their statuses are not looked at."""

    def __init__(self) -> None:
        library = api().library  # by [], which makes functions of our own
        self.add = library["LiteRtAddCustomOpKernelOption"]
        self.add.argtypes = [c_void_p, c_char_p, c_int, POINTER(_Callbacks), c_void_p]
        self.lock = library["LiteRtLockTensorBuffer"]
        self.unlock = library["LiteRtUnlockTensorBuffer"]
        self.lock.argtypes, self.unlock.argtypes = [c_void_p, _Handles, c_int], [c_void_p]
        self.places = _address(self.lock), _address(self.unlock)


def _address(function: object) -> int:
    return ctypes.cast(function, c_void_p).value or 0  # type: ignore[arg-type]


@cache
def _locks() -> _Locks:
    return _Locks()


@_Init
def _do_nothing(user: int, options: int, size: int) -> int:
    return 0


@_Destroy
def _keep(user: int) -> int:
    return 0


class CustomOps:
    """The custom ops of one opened model.

    content  the model as the runtime reads it
    note     remarks on its kernels
    """

    def __init__(self, content: bytes, nodes: Mapping[str, tuple[Op, Kernel]]) -> None:
        self.content = content
        self.note = "; ".join(dict.fromkeys(k.note for _, k in nodes.values() if k.note))
        self._failures: list[BaseException] = []
        self._failed = np.zeros(1, np.int64)  # the number of a native kernel, from 1
        self._nodes = {
            name: _Node(op, kernel, self._failures) for name, (op, kernel) in nodes.items()
        }
        for number, node in enumerate(self._nodes.values(), 1):
            node.connect(self._failed, number)

    def add_to(self, options: c_void_p) -> None:
        """Registers the kernels with the runtime. Must live as long as everything made with the
        options."""
        for name, node in self._nodes.items():
            made = ctypes.byref(node.callbacks)
            status = _locks().add(options, name.encode(), node.op.version, made, node.record_at)
            if status:
                raise CannotRun(
                    "{op_name}: the runtime takes no kernel ({status})", op_name(node.op), status
                )

    def raise_failed(self) -> None:
        """Raises errors that occurred in a kernel since the last call."""
        if self._failed[0]:
            op = list(self._nodes.values())[int(self._failed[0]) - 1].op
            self._failed[0] = 0
            told = phrase("its native kernel raised an exception; litesmith.ops.check tells which")
            self._failures.append(CannotRun("{op_name}: {told}", op_name(op), told))
        if self._failures:
            first = self._failures[0]
            self._failures.clear()
            raise first


class _Node:
    """One op of the model as the runtime calls it."""

    def __init__(self, op: Op, kernel: Kernel, failures: list[BaseException]) -> None:
        self.op, self._kernel, self._failures = op, kernel, failures
        self._inputs = [_Memory(t, _READ) for t in op.inputs if t is not None and not t.is_const]
        self._outputs = [_Memory(t, _WRITE) for t in op.outputs]
        self._record: Array | None = None

    def connect(self, failed: Array, number: int) -> None:
        """Makes the function that the runtime calls."""
        native, run = self._kernel.native(), _Run(self._run)
        if native is not None:
            self._native, self._record = native, _record_of(native, _locks().places, failed, number)
            run = _Run(at.address_of(at.BETWEEN))
        self.callbacks = _Callbacks(_do_nothing, _Layouts(self._layouts), run, _keep)

    @property
    def record_at(self) -> int | None:
        return None if self._record is None else self._record.ctypes.data

    def _layouts(
        self,
        user: int,
        input_count: int,
        inputs: ctypes._Pointer[Layout],
        output_count: int,
        outputs: ctypes._Pointer[Layout],
    ) -> int:
        return self._guarded(
            lambda: self._set_layouts([inputs[i].shape for i in range(input_count)], outputs)
        )

    def _set_layouts(self, inputs: list[Shape], outputs: ctypes._Pointer[Layout]) -> None:
        shapes = self._kernel.shapes(inputs)
        if self._record is not None:  # other shapes may have other code, or none
            self._native = self._kernel.native() or self._called()
            _renew(self._record, self._native)
        for memory, shape in zip((*self._inputs, *self._outputs), (*inputs, *shapes), strict=True):
            memory.set_shape(shape)
        for place, shape in enumerate(shapes):
            outputs[place].rank, outputs[place].has_strides = len(shape), 0
            outputs[place].dimensions[: len(shape)] = shape

    def _run(
        self,
        user: int,
        input_count: int,
        inputs: ctypes._Pointer[c_void_p],
        output_count: int,
        outputs: ctypes._Pointer[c_void_p],
    ) -> int:
        if self._failures:  # what would be computed from it has no meaning
            return _FAILED
        lock, unlock = _locks().lock, _locks().unlock
        try:
            given = [m.locked(lock, inputs[i]) for i, m in enumerate(self._inputs)]
            made = [m.locked(lock, outputs[i]) for i, m in enumerate(self._outputs)]
            self._kernel.run(given, made)
        except BaseException as error:
            self._failures.append(self._named(error))
            return _FAILED
        finally:
            for i in range(input_count):
                unlock(inputs[i])
            for i in range(output_count):
                unlock(outputs[i])
        return 0

    def _called(self) -> Native:
        """The kernel as a function, where the runtime was given machine code."""
        memories = *self._inputs, *self._outputs
        room = np.zeros(max(len(memories), 1), np.int64)

        def call(user: int, places: int) -> int:
            arrays = [m.at(int(place)) for m, place in zip(memories, room, strict=False)]
            count = len(self._inputs)
            return self._guarded(lambda: self._kernel.run(arrays[:count], arrays[count:]))

        called = _Call(call)
        return Native(_address(called), 0, room, called)

    def _guarded(self, work: Callable[[], None]) -> int:
        try:
            work()
        except BaseException as error:
            self._failures.append(self._named(error))
            return _FAILED
        return 0

    def _named(self, error: BaseException) -> BaseException:
        """The error as the session is to raise it: with the op's name, unless it stops all."""
        if isinstance(error, LitesmithError) or not isinstance(error, Exception):
            return error
        named = CannotRun("{op_name}: {error_text}", op_name(self.op), error_text(error))
        named.__cause__ = error
        return named


class _Memory:
    """A tensor's memory as an array; made anew only when it has moved."""

    def __init__(self, tensor: Tensor, mode: int) -> None:
        if DTYPES[tensor.dtype].storage != tensor.dtype or tensor.dtype not in ELEMENT_TYPES:
            raise CannotRun(
                "{name!r} of a custom op is {dtype}, no plain array", tensor.name, tensor.dtype
            )
        self._dtype, self._mode = np.dtype(tensor.dtype), mode
        self._place = c_void_p()
        self._reference = ctypes.byref(self._place)
        self.set_shape(tensor.shape)

    def set_shape(self, shape: Shape) -> None:
        self._shape = tuple(shape)
        self._address: int | None = None
        self._array: Array = np.empty(self._shape, self._dtype)

    def locked(self, lock: Callable[..., int], handle: int) -> Array:
        lock(handle, self._reference, self._mode)
        return self.at(self._place.value)

    def at(self, address: int | None) -> Array:
        """The array that lies there."""
        if address is not None and address != self._address:
            size = self._array.nbytes
            memory = memoryview((ctypes.c_ubyte * size).from_address(address))
            flat = np.frombuffer(memory, self._dtype)
            self._array = flat.reshape(self._shape)
            self._array.flags.writeable = self._mode == _WRITE
            self._address = address
        return self._array


def custom_ops(model: Model, given: Mapping[str, Kernel] | None = None) -> CustomOps | None:
    """Kernels for the custom ops of a model: those given by name, otherwise the registered ones.

    None where there are none: the runtime itself has kernels for some custom ops.
    """
    nodes: dict[str, tuple[Op, Kernel]] = {}
    renamed: dict[Op, Sequence[Op]] = {}
    for _, _, op in model.ops():
        kernel = _kernel(op, given or {})
        if kernel is not None:
            name = f"{op.custom}#{len(nodes)}"
            nodes[name] = op, kernel
            computed = tuple(t for t in op.inputs if t is not None and not t.is_const)
            renamed[op] = (replace(op, custom=name, inputs=computed, rest={}),)
    if not nodes:
        return None
    graphs = [rewrite(graph, ops=renamed) for graph in model.graphs]
    return CustomOps(to_bytes(with_graphs(model, graphs)), nodes)


def _kernel(op: Op, given: Mapping[str, Kernel]) -> Kernel | None:
    if not op.is_custom:
        return None
    if op.custom in given:
        return given[op.custom]
    operator = find_op(op.custom)
    return None if operator is None else Call(operator, op, native=True)


def _record_of(native: Native, locks: tuple[int, int], failed: Array, number: int) -> Array:
    """What the function between the runtime and a kernel is called with.

    The kernel's number goes into `failed` when the kernel fails.
    """
    record = np.zeros(at.NUMBER + 1, np.int64)
    record[[at.LOCK, at.UNLOCK]] = locks
    record[[at.FAILED, at.NUMBER]] = failed.ctypes.data, number
    _renew(record, native)
    return record


def _renew(record: Array, native: Native) -> None:
    """Makes the record refer to another kernel."""
    room = native.room.ctypes.data
    record[[at.FUNCTION, at.USER, at.ROOM]] = native.address, native.user, room
