"""`Session`: a model that is ready to run, its inputs and outputs as numpy arrays."""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.model_text import op_name
from litesmith.ir.ops import counting_inputs, late_tensors
from litesmith.ir.types import Array, Graph, Model, Op, Signature, Tensor, op_tensors
from litesmith.ops.registry import find_delegate, find_op
from litesmith.phrases import join, phrase
from litesmith.run.accelerators.gpu import refuse_flaws, try_out, why_unopened
from litesmith.run.accelerators.targets import refuse_unusable
from litesmith.run.core.runner import Port, Runner, port_names
from litesmith.run.core.target import LITESMITH, Target
from litesmith.run.free_sizes import why_unsized
from litesmith.run.litert.capi import Event, installed_version, why_not
from litesmith.run.litert.compiled_model import (
    Allocate,
    CompiledRunner,
    NeedsInterpreter,
    aligned,
)
from litesmith.run.litert.custom_ops import CustomOps, custom_ops
from litesmith.run.litert.delegated_ops import delegate_ops
from litesmith.run.litert.interpreter import InterpreterRunner
from litesmith.run.litert.numpy_walker import WalkerRunner
from litesmith.run.litert.own_kernels import ProfiledRunner, own_kernels
from litesmith.tflite.file import load, map_file
from litesmith.tflite.write import to_bytes
from litesmith.type_guards import is_sequence

Source = str | os.PathLike[str] | bytes | bytearray | memoryview | Model


class ReadModel(NamedTuple):
    """A model that was read and checked, for one who opens sessions of it again and again."""

    model: Model
    content: bytes | memoryview


class Ports(Mapping[str, Array]):
    """Arrays by name. An array is the tensor's own memory; assigning to a name fills it."""

    def __init__(self, session: "Session", side: str) -> None:
        self._session, self._side = session, side

    def _all(self) -> tuple[Port, ...]:
        runner = self._session.runner
        return runner.inputs if self._side == "inputs" else runner.outputs

    def __getitem__(self, name: str) -> Array:
        for port in self._all():
            if port.name == name:
                return port.array
        known = ", ".join(repr(port.name) for port in self._all())
        raise BadInput("no {side} {name!r}; there are {known}", self._side[:-1], name, known)

    def __setitem__(self, name: str, value: ArrayLike) -> None:
        array, given = self[name], np.asarray(value)
        what = f"{self._side[:-1]} {name!r}"
        if given.shape != array.shape:
            raise BadInput(
                "{what} has shape {shape}; {shape2} was given", what, array.shape, given.shape
            )
        if given.dtype != array.dtype:
            _refuse_misfits(what, given, array.dtype)
        array[...] = given

    def __contains__(self, name: object) -> bool:
        return any(port.name == name for port in self._all())

    def __iter__(self) -> Iterator[str]:
        return (port.name for port in self._all())

    def __len__(self) -> int:
        return len(self._all())


def _refuse_misfits(what: str, given: Array, dtype: np.dtype[Any]) -> None:
    """Raises where values of one type would be changed by storing them as another."""
    if not np.can_cast(given.dtype, dtype, "same_kind"):
        raise BadInput("{what} is {dtype}; {dtype2} was given", what, dtype, given.dtype)
    if dtype.kind in "iu" and given.size:
        span = np.iinfo(dtype)
        low, high = int(given.min()), int(given.max())
        if low < span.min or high > span.max:
            raise BadInput(
                "{what} is {dtype}; values from {low} to {high} do not fit", what, dtype, low, high
            )


class Session:
    """A model on a target, ready to run.

    >>> frame = np.zeros((1, 8, 8, 1), np.float32)
    >>> with litesmith.Session("model.tflite", target="cpu:2") as session:
    ...     session.inputs["image"][...] = frame
    ...     session.run()
    ...     top = session.outputs["scores"].argmax()

    A session can also be called, with copies of what goes in and out:

    >>> litesmith.Session("model.tflite")(frame)["scores"].shape
    (1, 4)

    `inputs` and `outputs` are views on the tensors' own memory: nothing is copied. Where the
    runtime cannot share it, `copies` is True and `note` says why. `weight_cache` is how the names
    of files begin that keep the weights as XNNPACK wants them, for a faster next opening.
    With `guarded` native code runs in a process of its own: a crash there is an error here, and
    inputs and outputs are views on memory that both share.
    `has_late_outputs` is True where sizes of outputs are known to depend on values.
    """

    _allocate: Allocate = staticmethod(aligned)
    _runner: Runner | None = None  # also where the constructor was called in a wrong way

    def __init__(
        self,
        source: Source | ReadModel,
        target: str | Target = "cpu:1",
        *,
        signature: str = "",
        profile: bool = False,
        weight_cache: str | os.PathLike[str] = "",
        guarded: bool = False,
    ) -> None:
        self._profiler: ProfiledRunner | None = None  # the runner, where it can profile
        self._lock = threading.RLock()  # the runtime's calls are not safe beside each other
        self.target = Target.parse(target)
        self.note = ""
        refuse_unusable(self.target)
        self.model, self._content = read_once(source)
        self._entry = _entry(self.model, signature)
        self.has_late_outputs = _has_late_outputs(self._entry[0])
        self._profiled = profile
        if guarded:
            self._open_guarded(signature, profile)
        else:
            self._open_sized(profile, _cache_file(weight_cache, self._content))

    # Made anew each time: a session that held its ports, which hold it, would keep its model in
    # memory until the garbage collector comes by, which timing keeps away.
    @property
    def inputs(self) -> Ports:
        return Ports(self, "inputs")

    @property
    def outputs(self) -> Ports:
        return Ports(self, "outputs")

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        return self._entry[0]

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """The names of the inputs and of the outputs, in the order of the graph."""
        return self._entry[1]

    @property
    def runner(self) -> Runner:
        if self._runner is None:
            raise CannotRun("the session is closed; open another")
        return self._runner

    @property
    def copies(self) -> bool:
        """True where values are copied between the arrays and the runtime."""
        return self.runner.copies

    def __call__(self, *values: ArrayLike, **named: ArrayLike) -> dict[str, Array]:
        """The outputs for inputs in their order, or by name: arrays of their own, which no later
        run changes. Threads take turns."""
        with self._lock:
            names = tuple(self.inputs)
            given = dict(zip(names, values, strict=False)) | named
            if len(given) != len(values) + len(named) or given.keys() != set(names):
                raise BadInput("give each input once: {names}", ", ".join(map(repr, names)))
            for name, value in given.items():
                self.inputs[name] = value
            self.run()
            return {name: array.copy() for name, array in self.outputs.items()}

    def run(self) -> None:
        """Computes the outputs from what is in the inputs.

        These are one memory for all threads: a run that meets another is refused.
        """
        if not self._lock.acquire(blocking=False):
            raise CannotRun(
                "another thread runs this session, whose inputs and outputs are one memory; call "
                "session(x), which waits and gives arrays of its own, or open a session a thread"
            )
        try:
            self.runner.run()
        except NeedsInterpreter as reason:
            self.has_late_outputs = True
            self._fall_back(_why_late(self.graph) or str(reason))
            self.runner.run()
        finally:
            self._lock.release()

    def resize(self, **shapes: Sequence[int]) -> None:
        """Gives inputs other shapes; arrays fetched before are no longer the model's memory."""
        places = {name: place for place, name in enumerate(self.inputs)}
        for name, shape in shapes.items():
            self.inputs[name]  # raises where there is no such input
            if not _is_shape(shape):
                raise BadInput(
                    "input {name!r}: a shape is a tuple of integers, not {shape!r}", name, shape
                )
        with self._lock:
            self.runner.resize({places[name]: tuple(shape) for name, shape in shapes.items()})

    def close(self) -> None:
        """Gives the runtime's memory back. Closing twice is fine; running after it is not."""
        with self._lock:
            runner, self._runner = self._runner, None
            if runner is not None:
                runner.close()
            self._content = b""  # the session itself may live on, in the hands of its ports

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._runner is not None:
            self.close()

    def start_profile(self) -> None:
        """Starts to record an event for every operator; needs `profile=True`."""
        self._profiling().start_profile()

    def stop_profile(self) -> list[Event]:
        return self._profiling().stop_profile()

    def _profiling(self) -> ProfiledRunner:
        profiler = self._profiler
        if profiler is None or profiler is not self.runner:
            raise CannotRun(
                "no profile on {target}: {note}",
                self.target,
                self.note or phrase("it has no profiler"),
            )
        if not self._profiled:
            raise CannotRun("no profile of this session; open it with profile=True")
        return profiler

    def _open_guarded(self, signature: str, profile: bool) -> None:
        from litesmith.run.guarded import GuardedRunner, can_share_memory

        if not can_share_memory():
            raise CannotRun(
                "guarded=True: this system shares no memory between processes; leave guarded out"
            )
        own = next((op for _, _, op in self.model.ops() if find_op(op.custom)), None)
        if profile or own is not None:
            raise CannotRun(
                "guarded=True: {what} is not known to the session's process; leave guarded out",
                phrase("a profile") if own is None else phrase("custom op {name!r}", own.custom),
            )
        runner = GuardedRunner(self._content, self.target, signature=signature)
        self._runner, self.note = runner, runner.note

    def _open_sized(self, profile: bool, weight_cache: str) -> None:
        """Opens the model, or says which sizes it needs for that."""
        try:
            self._open(profile, weight_cache)
        except CannotRun:
            unsized = why_unsized(self.model)
            if unsized is None:
                raise
            raise unsized from None

    def _open(self, profile: bool, weight_cache: str) -> None:
        graph, names, signature = self._entry
        if self.target.kind == "numpy":
            self._runner = WalkerRunner(self.model, graph, names=names)
            return
        if self.target.kind == "openvino":
            from litesmith.run.accelerators.openvino import OpenVinoRunner

            threads = self.target.threads
            self._runner = OpenVinoRunner(self.model, graph, threads=threads, names=names)
            return
        if self.target.kind == "micro":
            from litesmith.run.accelerators.tflite_micro import MicroRunner

            self._runner = MicroRunner(self.model, self._content, graph, names=names)
            return
        if self.target.kernels == "reference":
            self._fall_back(phrase("the reference kernels are in the classic interpreter only"))
            return
        if self.target.kind == "gpu" and profile:
            raise CannotRun("target gpu: LiteRT has no profile of it; profile on cpu:1")
        if self.target.kind == "gpu":
            refuse_flaws(self.model)
        unknown = why_not(installed_version())
        unshared = _why_not_shared(graph)
        if unknown or (unshared and not profile):
            self._fall_back(unknown or unshared)
            return
        self.note = phrase("outputs are not written: {unshared}", unshared) if unshared else ""
        number = 0 if signature is None else self.model.signatures.index(signature)
        self._compile(number, profile, weight_cache)

    def _compile(self, signature: int, profile: bool, weight_cache: str) -> None:
        """Opens the compiled model, with kernels of ours for what they take."""
        if self.target.kind == "gpu":
            try_out(self._content, self.target, signature)
        given = self.model
        custom = self._custom_ops()
        if self._runner is not None:  # nothing is left to the runtime
            return
        if weight_cache and custom is not None:  # of what is left to it, which hangs on the target
            weight_cache += f"-{sha256(custom.content).hexdigest()[:16]}"
        try:
            runner = CompiledRunner(
                self._content if custom is None else custom.content,
                self._runtime_target,
                signature=signature,
                profile=profile,
                weight_cache=weight_cache,
                custom=custom,
                allocate=self._allocate,
                room=self._output_room() if self.has_late_outputs and custom is None else (),
            )
            self._runner = self._profiler = runner
            self.note = self.note or str(runner.share or "")
            if custom is not None:
                self.note = join(filter(None, (self.note, custom.note)), "; ")
        except (NeedsInterpreter, CannotRun) as reason:
            if isinstance(reason, CannotRun) and self.target.kind == "gpu":
                raise why_unopened(reason, self._entry[0]) from None
            if isinstance(reason, CannotRun) and custom is not None and not self._is_ours:
                raise
            self.model = given
            stateful = _stateful_op(self.graph) if isinstance(reason, NeedsInterpreter) else None
            self._fall_back(
                str(reason)
                if stateful is None
                else phrase("{op_name} keeps a state in variable tensors", op_name(stateful))
            )

    def _output_room(self) -> list[int]:
        """The elements of each output after a run in the classic interpreter."""
        runner = self._interpreter()
        try:
            for port, values in zip(runner.inputs, random_inputs(self.graph, runner), strict=True):
                port.array[...] = values
            runner.run()
            return [port.array.size for port in runner.outputs]
        finally:
            runner.close()

    def _interpreter(self) -> InterpreterRunner:
        _, names, signature = self._entry
        key = signature.key if signature is not None and signature.graph else ""
        return InterpreterRunner(self._content, self._runtime_target, names=names, signature=key)

    @property
    def _runtime_target(self) -> Target:
        """Where the runtime runs what is left to it."""
        is_plain = self.target.kind != "custom" and not self._is_ours
        return self.target if is_plain else Target("cpu", self.target.threads)

    @property
    def _is_ours(self) -> bool:
        """True where kernels of this package take what they can."""
        return self.target.kernels == LITESMITH and self.target.kind == "cpu"

    def _custom_ops(self) -> CustomOps | None:
        """Kernels of ours for this model; a delegate makes the model one with custom ops first."""
        if self._is_ours:
            return self._own_kernels()
        if self.target.kind != "custom":
            return custom_ops(self.model)
        name = self.target.kernels
        self.model, kernels = delegate_ops(self.model, find_delegate(name), name)
        if not kernels:
            self.note = phrase("{target} takes no op of the model", self.target)
        return custom_ops(self.model, kernels)

    def _own_kernels(self) -> CustomOps | None:
        """Opens the whole graph on kernels of this package, or makes custom ops of its parts."""
        room = own_kernels()
        missing = room.why_not()
        if missing:
            note = phrase("runs on the runtime's kernels: {missing}", missing)
            self.note = join(filter(None, (self.note, note)), "; ")
            return custom_ops(self.model)
        graph, names, _ = self._entry
        kernels = room.delegate(self.target.threads)
        note = kernels.taken_note(self.model)
        if kernels.takes_all(graph) and not _why_not_shared(graph):
            number = self.model.graphs.index(graph)
            self._runner = self._profiler = kernels.open_graph(graph, names=names, number=number)
            self.note = phrase(
                "all {count} ops on Litesmith's kernels, without LiteRT", len(graph.ops)
            )
            return None
        self.note = join(filter(None, (self.note, note)), "; ")
        self.model, taken = delegate_ops(self.model, kernels, LITESMITH)
        return custom_ops(self.model, taken)

    def _fall_back(self, reason: str) -> None:
        """Goes on in the classic interpreter, with the inputs as they are."""
        ours = next((op for _, _, op in self.model.ops() if find_op(op.custom)), None)
        if ours is not None:
            raise CannotRun(
                "{reason}; that needs the classic interpreter, which takes no kernels of "
                "ours, and the model has the custom op {custom!r}; use numpy",
                reason,
                ours.custom,
            )
        if self.target.kind != "cpu":
            raise CannotRun("target {target}: {reason}; use cpu", self.target, reason)
        held = self._runner.inputs if self._runner is not None else ()
        runner = self._interpreter()
        shapes = {place: port.array.shape for place, port in enumerate(held)}
        if any(runner.inputs[place].array.shape != shape for place, shape in shapes.items()):
            runner.resize(shapes)
        for old, new in zip(held, runner.inputs, strict=False):
            new.array[...] = old.array
        if self._runner is not None:
            self._runner.close()
        told = phrase("runs in the classic interpreter: {reason}", reason)
        self._runner, self.note = runner, told if self._is_ours else reason


def _cache_file(asked: str | os.PathLike[str], content: bytes | memoryview) -> str:
    """A cache of this model's packed weights: the runtime takes any file of the same layout for
    the right one, so that the name must tell models and versions apart."""
    if not asked:
        return ""
    path = Path(asked)
    if not path.parent.is_dir():
        raise BadInput("weight cache {path}: the folder {parent} does not exist", path, path.parent)
    return f"{path}.{sha256(content).hexdigest()[:16]}-{installed_version()}"


Entry = tuple[Graph, tuple[list[str], list[str]], Signature | None]


def read_once(source: Source | ReadModel) -> ReadModel:
    """The model as it will run, with its bytes."""
    if isinstance(source, ReadModel):
        return source
    model = source if isinstance(source, Model) else load(source)
    repeats_ports = any(_has_repeated_ports(graph) for graph in model.graphs)
    if isinstance(source, Model) or repeats_ports or model.mended:
        model = _with_distinct_ports(model)
        return ReadModel(model, to_bytes(model))
    in_memory = isinstance(source, bytes | bytearray | memoryview)
    return ReadModel(model, memoryview(source) if in_memory else map_file(source))


def _has_repeated_ports(graph: Graph) -> bool:
    sides = (graph.inputs, graph.outputs)
    return any(len({t.name for t in side}) < len(set(side)) for side in sides)


def _with_distinct_ports(model: Model) -> Model:
    """The model with repeated names of inputs and of outputs numbered: the runtime finds them by
    name, and aborts the process where one is missing."""
    renamed: dict[Tensor, Tensor] = {}
    for graph in filter(_has_repeated_ports, model.graphs):
        for side in (graph.inputs, graph.outputs):
            tensors = list(dict.fromkeys(side))
            for tensor, name in zip(tensors, port_names([t.name for t in tensors]), strict=True):
                if name != tensor.name:
                    renamed.setdefault(tensor, replace(tensor, name=name))
    graphs = [rewrite(graph, tensors=renamed) for graph in model.graphs]
    return with_graphs(model, graphs, renamed) if renamed else model


def _entry(model: Model, key: str) -> Entry:
    """The graph that runs, with the names of its inputs and outputs."""
    if not key and not model.signatures:
        graph = model.main
        names = ([t.name for t in graph.inputs], [t.name for t in graph.outputs])
        return graph, (port_names(names[0]), port_names(names[1])), None
    for signature in model.signatures:
        if not key or signature.key == key:
            graph = model.graphs[signature.graph]
            inputs = [_argument(t, signature.inputs) for t in graph.inputs]
            outputs = [_argument(t, signature.outputs) for t in graph.outputs]
            return graph, (port_names(inputs), port_names(outputs)), signature
    known = ", ".join(repr(s.key) for s in model.signatures) or "none"
    raise BadInput("no signature {key!r}; the model has {known}", key, known)


def _stateful_op(graph: Graph) -> Op | None:
    """The first op with a tensor that outlives a run, which the compiled model does not open."""
    return next((op for op in graph.ops if any(t.variable for t in op_tensors(op))), None)


def _why_not_shared(graph: Graph) -> str:
    """Why the memory of an output cannot be ours; "" where it can. The compiled model does not
    notice these cases: it leaves the output as it was, without a word."""
    given = {*graph.inputs, *(t for t in graph.tensors if t.is_const)}
    if any(tensor in given for tensor in graph.outputs):
        return phrase("an output is an input or a constant")
    if len(set(graph.outputs)) < len(graph.outputs):
        return phrase("an output is listed twice")
    return _why_late(graph) if _has_late_outputs(graph) else ""


def _why_late(graph: Graph) -> str:
    """Names the first op whose outputs have no size before the run; "" where there is none."""
    late = late_tensors(graph)
    op = next((op for op in graph.ops if not late.isdisjoint(op.outputs)), None)
    if op is None:
        return ""
    return phrase("the size of what {op_name} makes depends on values", op_name(op))


def _has_late_outputs(graph: Graph) -> bool:
    return not late_tensors(graph).isdisjoint(graph.outputs)


def _argument(tensor: Tensor, arguments: Sequence[tuple[str, Tensor]]) -> str:
    """The name that a signature gives a tensor; the tensor's own where it gives none."""
    return next((name for name, t in arguments if t is tensor and name), tensor.name)


def _is_shape(given: object) -> bool:
    return is_sequence(given) and all(isinstance(d, int) for d in given)


def feed(session: Session, arrays: Sequence[Array]) -> None:
    """Puts arrays into the inputs in order; an input of another shape is resized first."""
    shapes = {
        name: array.shape
        for (name, held), array in zip(session.inputs.items(), arrays, strict=True)
        if held.shape != array.shape
    }
    if shapes:
        session.resize(**shapes)
    for name, array in zip(session.inputs, arrays, strict=True):
        session.inputs[name] = array


def fill_inputs(session: Session, seed: int = 0) -> None:
    """Puts values that suit each type into every input, the same ones for the same seed."""
    values = random_inputs(session.graph, session.runner, seed)
    for port, given in zip(session.runner.inputs, values, strict=True):
        port.array[...] = given


def random_inputs(graph: Graph, runner: Runner, seed: int = 0) -> list[Array]:
    """Values that suit each input, the same ones for the same seed."""
    random, counting = np.random.default_rng(seed), counting_inputs(graph)
    return [
        random_values(random, port.array, is_whole=tensor in counting)
        for port, tensor in zip(runner.inputs, graph.inputs, strict=True)
    ]


def random_values(random: np.random.Generator, like: Array, *, is_whole: bool = False) -> Array:
    """Random values of the shape and type of an array; whole numbers where they are counted by."""
    kind, shape = like.dtype, like.shape
    if kind.kind == "f" and not is_whole:
        return random.normal(0, 1, shape).astype(kind)
    if kind.kind == "b":
        return random.integers(0, 2, shape).astype(kind)
    if kind.kind not in "fiu":  # texts
        return np.full(shape, b"a", kind)
    if is_whole or kind.itemsize > 2:  # indices, which must not lead outside a table
        return random.integers(0, 2, shape).astype(kind)
    span = np.iinfo(kind)
    return random.integers(span.min, span.max, shape, endpoint=True).astype(kind)
