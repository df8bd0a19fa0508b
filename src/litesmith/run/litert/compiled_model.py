"""LiteRT's compiled model through its C API: inputs and outputs are the tensors' own memory."""

import ctypes
import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from ctypes import c_bool, c_int, c_void_p
from itertools import chain, repeat
from math import prod

import numpy as np

from litesmith.errors import BadInput, CannotRun, LitesmithError
from litesmith.ir.types import Array
from litesmith.phrases import phrase
from litesmith.run.core.runner import Port, port_names
from litesmith.run.core.target import FULL, MICRO_OPS, Target
from litesmith.run.litert.capi import (
    CPU,
    ELEMENT_TYPES,
    GPU,
    Event,
    Failed,
    Heard,
    Layout,
    TensorType,
    api,
    environment,
    libc,
    overheard,
    quiet,
    reused_memory,
)
from litesmith.run.litert.custom_ops import CustomOps
from litesmith.run.litert.gpu_messages import Share, cause, share

# The runtime accepts memory of ours only where it starts on such a boundary.
_ALIGNMENT = 64

_NUMPY_TYPES = {number: name for name, number in ELEMENT_TYPES.items()}
_NOT_SUPPORTED = 5
_LATE, _PATIENCE = "DEADLINE_EXCEEDED", 10  # what a GPU that is not ready says; how often it may
_FLOAT32 = 2  # kLiteRtDelegatePrecisionFp32
_WAITS = 1  # kLiteRtGpuWaitTypePassive: for up to a minute, until all is computed

Settings = dict[str, bool | int | str]


class NeedsInterpreter(Exception):
    """The compiled model cannot do what this model needs; the classic interpreter can."""


def aligned(shape: tuple[int, ...], dtype: str) -> Array:
    """Zeros that start on the runtime's boundary."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


Allocate = Callable[[tuple[int, ...], str], Array]


class CompiledRunner:
    """A model compiled for a target, with numpy arrays as the memory of its inputs and outputs.

    allocate gives the memory of a port, on the runtime's boundary
    room     elements that each output is given at least: where its size depends on values, the
             runtime writes beyond the size that it tells

    share    what a GPU leaves to the CPU; None where it takes all
    remarks  of native code as it compiled for a GPU
    """

    copies = False
    share: Share | None = None
    remarks = ""

    def __init__(
        self,
        content: bytes | memoryview,
        target: Target,
        *,
        signature: int = 0,
        profile: bool = False,
        weight_cache: str = "",
        custom: CustomOps | None = None,
        allocate: Allocate = aligned,
        room: Sequence[int] = (),
    ) -> None:
        self._api = api()
        self._allocate = allocate
        self._room = room
        self._custom = custom
        self._content = np.frombuffer(content, np.uint8)  # the runtime keeps pointing into it
        self._signature = signature
        self._buffers: list[c_void_p] = []
        self._model = self._options = self._compiled = None
        self._is_gpu = target.kind == "gpu"
        try:
            self._compile(target, profile, weight_cache)
            self._describe()
            self._bind()
            self._raise_custom()
        except Failed as error:
            told = one_cause(self._messages()) or cause(self.remarks) or str(error)
            self.close()
            self._raise_custom()
            raise CannotRun("the model does not open on {target}: {told}", target, told) from None
        except BaseException:
            self.close()
            raise

    def run(self) -> None:
        status = self._run(*self._arguments)
        if self._custom is not None:
            self._custom.raise_failed()
        if status:
            messages = self._messages()
            # The runtime's messages about an output whose size is known only after the run.
            if "kTfLiteArenaRw" in messages or "Custom allocation is too small" in messages:
                raise NeedsInterpreter(phrase("the sizes of its outputs depend on values"))
            told = cause(self.remarks) or one_cause(messages) or phrase("it gives no reason")
            raise CannotRun("the runtime failed: {told}", told)

    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        before = {place: self.inputs[place].array.shape for place in shapes}
        failure = self._failed_resize(shapes)
        if failure is not None:
            self._set_shapes(before)
            told = str(failure)
            cause = failure.__cause__  # of a custom op
            raise BadInput(
                "cannot resize to {values}: {told}", list(shapes.values()), told
            ) from cause

    def _failed_resize(self, shapes: dict[int, tuple[int, ...]]) -> LitesmithError | None:
        """Sets shapes; where that fails, returns the error of our kernel that refused, if
        one did."""
        failure: LitesmithError | None = None
        try:
            self._set_shapes(shapes)
        except (CannotRun, Failed, MemoryError) as error:
            told = one_cause(self._messages()) or str(error) or phrase("the runtime refuses")
            failure = CannotRun(told)
        try:
            self._raise_custom()
        except LitesmithError as error:
            failure = error
        return failure

    def _set_shapes(self, shapes: dict[int, tuple[int, ...]]) -> None:
        for place, shape in shapes.items():
            sizes = (c_int * len(shape))(*shape)
            self._api.CompiledModelResizeInputTensorNonStrict(
                self._compiled, self._signature, place, sizes, len(shape)
            )
        self._update_layouts()
        self._bind()

    def _raise_custom(self) -> None:
        """Raises the error of one of our kernels, which says more than the runtime knows."""
        if self._custom is not None:
            self._custom.raise_failed()

    def close(self) -> None:
        """Gives everything back, buffers before the compiled model before the model."""
        for buffer in self._buffers:
            self._api.DestroyTensorBuffer(buffer)
        self._buffers = []
        if self._compiled is not None:
            self._api.DestroyCompiledModel(self._compiled)
        if self._model is not None:
            self._api.DestroyModel(self._model)
        if self._options is not None:
            self._api.DestroyOptions(self._options)
        self._compiled = self._model = self._options = None

    def _first_run(self, *arguments: object) -> int:
        """On a GPU: its programs are built in the first run, where there is most to say. A software
        driver takes longer for that than the runtime waits, so that it is asked again."""
        self._run, status = self._api.RunCompiledModel, 0
        for _ in range(_PATIENCE):
            with overheard() as heard:
                status = self._api.RunCompiledModel(*arguments)
            self.remarks = heard.text
            if not status or _LATE not in heard.text:
                return status
        return status

    # Profiling.

    def start_profile(self) -> None:
        profiler = self._profiler()
        self._api.ResetProfiler(profiler)
        self._api.StartProfiler(profiler)

    def stop_profile(self) -> list[Event]:
        """The events since the start, in the order they ended."""
        profiler = self._profiler()
        self._api.StopProfiler(profiler)
        number = c_int()
        self._api.GetNumProfilerEvents(profiler, ctypes.byref(number))
        events = (Event * max(1, number.value))()
        if number.value:
            self._api.GetProfilerEvents(profiler, number.value, events)
        return list(events[: number.value])

    def _profiler(self) -> c_void_p:
        return self._api.make("CompiledModelGetProfiler", self._compiled)

    # Construction.

    def _compile(self, target: Target, profile: bool, weight_cache: str) -> None:
        try:
            self._model = self._api.make(
                "CreateModelFromBuffer",
                environment(),
                self._content.ctypes.data,
                self._content.size,
            )
        except Failed as error:
            if error.status == _NOT_SUPPORTED:
                raise NeedsInterpreter(phrase("it keeps a state in variable tensors")) from None
            raise
        self._options = self._api.make("CreateOptions")
        accelerators = GPU | CPU if self._is_gpu else CPU
        self._api.SetOptionsHardwareAccelerators(self._options, accelerators)
        for name, values in _options(target, profile, weight_cache).items():
            self._add_options(name, values)
        if self._custom is not None:
            self._custom.add_to(self._options)
        heard = Heard()
        try:
            with (
                overheard() if self._is_gpu else _first_time_quiet() as heard,
                reused_memory() if profile else nullcontext(),
            ):
                arguments = environment(), self._model, self._options
                self._compiled = self._api.make("CreateCompiledModel", *arguments)
        finally:
            self.remarks = heard.text
        if self._is_gpu:
            self._see_share()

    def _see_share(self) -> None:
        """Raises where a GPU leaves all to the CPU."""
        is_whole = c_bool()
        self._api.CompiledModelIsNonCpuFullyAccelerated(self._compiled, ctypes.byref(is_whole))
        if is_whole.value:
            return
        self.share = share(self._messages()) or Share(0, 0, ())
        if not self.share.taken:
            raise CannotRun("target gpu: it takes no op: {reason}; use cpu", self.share.reason)

    def _add_options(self, name: str, values: Settings) -> None:
        """Options travel as TOML text that the runtime owns, so it is made with malloc."""
        text = "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())
        owned = libc().strdup(text.encode())
        self._api.AddOpaqueOptions(
            self._options, self._api.make("CreateOpaqueOptions", name.encode(), owned, libc().free)
        )

    def _describe(self) -> None:
        """Names and types of inputs and outputs, from the signature."""
        signature = self._api.make("GetModelSignature", self._model, self._signature)
        self._names: dict[str, list[str]] = {}
        self._types: dict[str, list[TensorType]] = {}
        for side in ("Input", "Output"):
            count = self._api.count(f"GetNumSignature{side}s", signature)
            names = [self._api.text(f"GetSignature{side}Name", signature, i) for i in range(count)]
            self._names[side] = port_names(names)
            self._types[side] = [self._tensor_type(signature, side, i) for i in range(count)]
        self._update_layouts()

    def _tensor_type(self, signature: c_void_p, side: str, place: int) -> TensorType:
        found = TensorType()
        tensor = self._api.make(f"GetSignature{side}TensorByIndex", signature, place)
        self._api.GetRankedTensorType(tensor, ctypes.byref(found))
        if found.element_type not in _NUMPY_TYPES:
            raise NeedsInterpreter(
                phrase("{names!r} has no plain element type", self._names[side][place])
            )
        return found

    def _update_layouts(self) -> None:
        for place, kind in enumerate(self._types["Input"]):
            self._api.GetCompiledModelInputTensorLayout(
                self._compiled, self._signature, place, ctypes.byref(kind.layout)
            )
        count = len(self._types["Output"])
        layouts = (Layout * max(1, count))()
        self._api.GetCompiledModelOutputTensorLayouts(
            self._compiled, self._signature, count, layouts, True
        )
        for kind, layout in zip(self._types["Output"], layouts, strict=False):
            kind.layout = layout

    def _bind(self) -> None:
        """Fresh memory for every port, wrapped as tensor buffers; the old goes when it is there."""
        old, self._buffers = self._buffers, []
        try:
            self.inputs, inputs = self._ports("Input")
            self.outputs, outputs = self._ports("Output")
        finally:
            for buffer in old:
                self._api.DestroyTensorBuffer(buffer)
        counts = len(self.inputs), len(self.outputs)
        self._arguments = (self._compiled, self._signature, counts[0], inputs, counts[1], outputs)
        self._run = self._first_run if self._is_gpu else self._api.RunCompiledModel

    def _ports(self, side: str) -> tuple[tuple[Port, ...], ctypes.Array[c_void_p]]:
        ports: list[Port] = []
        handles: list[c_void_p] = []
        rooms = self._room if side == "Output" else ()
        described = zip(self._names[side], self._types[side], strict=True)
        for (name, kind), room in zip(described, chain(rooms, repeat(0)), strict=False):
            shape, size = kind.layout.shape, prod(kind.layout.shape)
            held = self._allocate((max(size, room),), _NUMPY_TYPES[kind.element_type])
            array = held[:size].reshape(shape)
            handle = self._api.make(
                "CreateTensorBufferFromHostMemory",
                ctypes.byref(kind),
                held.ctypes.data,
                held.nbytes,
                None,
            )
            self._buffers.append(handle)
            handles.append(handle)
            ports.append(Port(name, array))
        return tuple(ports), (c_void_p * max(1, len(handles)))(*handles)

    def _messages(self) -> str:
        """The runtime's messages about the last failure."""
        if self._compiled is None:
            return ""
        try:
            text = self._api.make("CompiledModelGetErrorMessages", self._compiled)
        except Failed:
            return ""
        return ctypes.string_at(text.value or 0).decode("utf-8", "replace") if text.value else ""


_compiled_before = threading.Event()


@contextmanager
def _first_time_quiet() -> Generator[Heard]:
    """The first compilation of a process announces itself on stderr, at no level one could set."""
    if _compiled_before.is_set():
        yield Heard()
        return
    with quiet():
        yield Heard()
    _compiled_before.set()


def _options(target: Target, profile: bool, weight_cache: str) -> dict[str, Settings]:
    """The runtime's options by the names of their readers."""
    kernels = "xnnpack" if target.kind == "gpu" else target.kernels
    cpu: Settings = {"num_threads": target.threads, "kernel_mode": kernels}
    if weight_cache:
        cpu["weight_cache_file_path"] = weight_cache
    # Mode 2 keeps error messages for us to fetch instead of printing them.
    asked: dict[str, Settings] = {
        "xnnpack": cpu,
        "runtime_options_string": {"enable_profiling": profile, "error_reporter_mode": 2},
    }
    if target.kind == "gpu":
        asked["gpu_options"] = {"wait_type": _WAITS}
    if target.kernels == FULL:
        asked["gpu_options"]["precision"] = _FLOAT32
    return asked


def _toml(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else '"' + value.replace("\\", "\\\\") + '"'


def one_cause(messages: str) -> str:
    """One sentence from the runtime's lines: which op, and why; "" where it said nothing."""
    flex = re.search(r"Node number (\d+) \((Flex\w+)\)", messages)
    if flex:
        return phrase(
            "op {place} ({kind}) is an op of TensorFlow, which this runtime does not have; convert "
            "the model again with TFLITE_BUILTINS alone",
            flex.group(1),
            flex.group(2),
        )
    missing = re.search(r"unresolved custom op: (.+?)\.?$", messages, re.MULTILINE)
    if missing and missing.group(1) in MICRO_OPS:
        return phrase(
            "the model has the custom operator {name!r}, which TensorFlow Lite Micro has alone: "
            "--on micro",
            missing.group(1),
        )
    if missing:
        return phrase(
            "the model has the custom operator {group!r}, and no kernel is registered for "
            "it; litesmith.op registers one, --ops FILE loads a file that does",
            missing.group(1),
        )
    # The runtime ends some of its sentences without a line feed.
    parts = re.sub(r"(?<=.)(?=Node number \d+ \()", "\n", messages).splitlines()
    lines = [line.strip() for line in parts if line.strip()]
    reasons = [line for line in lines if not line.startswith(("Node number", "Failed to"))]
    node = re.search(r"Node number (\d+) \((.+?)\)", messages)
    where = phrase("op {group} ({group2}): ", node.group(1), node.group(2)) if node else ""
    return phrase("{where}{reasons}", where, reasons[0]) if reasons else where.rstrip(": ")
