"""OpenVINO on Intel's and other CPUs, by its own reader of .tflite files.

LiteRT has a plugin for OpenVINO, which is left alone: it works with one exact version of the
package, and the precision that is asked of it reaches its compiler but not what it runs, so that
floats are bfloat16 wherever the CPU has it (seen with LiteRT 2.3.0: 1.6e-3 from the CPU's result
where the reader comes within 1e-5). OpenVINO takes a model whole or not at all. Values are in
memory that it shares with the caller.

It dies of some models, and gives wrong numbers for others without a word. What is known of that is
refused; the rest is opened in a child process first, once for each model.
"""

# pyright: reportUnknownMemberType=false
# openvino leaves parts of its types open.

import json
import re
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.ir.dtype import DTYPES
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Array, Graph, Model
from litesmith.phrases import phrase
from litesmith.run.core.child_process import survive
from litesmith.run.core.placement import MEASURED, Home, Placement, refuse
from litesmith.run.core.runner import Port, port_names
from litesmith.run.litert.capi import quiet
from litesmith.run.rules.openvino import FLAWS
from litesmith.temporary import temporary_folder
from litesmith.tflite.file import save

if TYPE_CHECKING:
    import openvino  # pyright: ignore[reportMissingImports]

PACKAGE = "openvino"
TARGET = "openvino"

# Not bfloat16, which is the default on CPUs that have it, and no int8 made up for float data.
# Threads that are tied to cores were no faster, on a machine with other work to do.
_SETTINGS: dict[str, str] = {
    "NUM_STREAMS": "1",
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "ENABLE_CPU_PINNING": "NO",
}
_TELEMETRY = "openvino_telemetry"

_TRIAL = Path(__file__).with_name("openvino_trial.py")


class OpenVinoRunner:
    """A model's main graph in OpenVINO, with arrays of our own for inputs and outputs.

    A model that was not seen yet is tried in a child process first, unless `trial` is False.
    """

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    copies = False

    def __init__(
        self,
        model: Model,
        graph: Graph,
        *,
        threads: int = 1,
        names: tuple[Sequence[str], Sequence[str]] | None = None,
        trial: bool = True,
    ) -> None:
        if graph is not model.main:
            raise CannotRun("target openvino: it runs the main graph only, no other signature")
        for tensor in (*graph.inputs, *graph.outputs):
            if DTYPES[tensor.dtype].storage != tensor.dtype:
                raise CannotRun(
                    "target openvino: {name!r} is of type {dtype}", tensor.name, tensor.dtype
                )
        _refuse_flaws(graph)
        self._names = names or tuple(
            port_names([t.name for t in side]) for side in (graph.inputs, graph.outputs)
        )
        self._settings = {**_SETTINGS, "INFERENCE_NUM_THREADS": str(threads)}
        self._core = _core()
        self._model = _with_distinct_names(model)
        self._read = _read(self._core, self._model, _SETTINGS if trial else None)
        try:
            self._open([tensor.shape for tensor in graph.inputs])
        except RuntimeError as error:
            raise CannotRun("openvino does not open the model: {cause}", _cause(error)) from None

    def run(self) -> None:
        try:
            self._request.infer()
        except RuntimeError as error:
            raise CannotRun("openvino failed: {cause}", _cause(error)) from None
        self.outputs = tuple(
            Port(port.name, np.array(self._request.get_tensor(self._late[place]).data))
            if place in self._late
            else port
            for place, port in enumerate(self.outputs)
        )

    def resize(self, shapes: dict[int, tuple[int, ...]]) -> None:
        ports = enumerate(self.inputs)
        wanted = [shapes.get(place, port.array.shape) for place, port in ports]
        try:
            self._open(wanted)
        except RuntimeError as error:  # before anything was replaced
            raise BadInput(
                "cannot resize to {values}: {cause}", list(shapes.values()), _cause(error)
            ) from None

    def close(self) -> None:
        self.inputs = self.outputs = ()
        del self._request, self._read, self._core

    def _open(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Compiles for inputs of these shapes, and shares the memory of all tensors of
        known size."""
        graph = self._model.main
        sizes = {t.name: list(shape) for t, shape in zip(graph.inputs, shapes, strict=True)}
        self._read.reshape(sizes)
        with quiet():
            compiled = self._core.compile_model(self._read, "CPU", self._settings)
        inputs = [compiled.input(tensor.name) for tensor in graph.inputs]
        outputs = [compiled.output(tensor.name) for tensor in graph.outputs]
        self._request = compiled.create_infer_request()
        # Nothing is written where an output is an input: there is only the input's memory.
        self._late = {
            place: port
            for place, (port, tensor) in enumerate(zip(outputs, graph.outputs, strict=True))
            if port.partial_shape.is_dynamic or tensor in graph.inputs
        }
        self.inputs = tuple(map(self._shared, self._names[0], inputs))
        self.outputs = tuple(
            Port(name, np.zeros(0, port.element_type.to_dtype()))
            if place in self._late
            else self._shared(name, port)
            for place, (name, port) in enumerate(zip(self._names[1], outputs, strict=True))
        )

    def _shared(self, name: str, port: "openvino.ConstOutput") -> Port:
        """Zeros that the runtime reads or writes in place."""
        array = np.zeros(tuple(port.shape), port.element_type.to_dtype())
        self._request.set_tensor(port, _tensor(array))
        return Port(name, array)


def openvino_place(model: Model) -> Placement:
    """Whether OpenVINO reads and compiles the model; and the ops that it cannot translate."""
    try:
        OpenVinoRunner(model, model.main).close()
    except CannotRun as error:
        if find_spec(PACKAGE) is None:
            raise
        return refuse(TARGET, MEASURED, model, str(error))
    why = phrase("OpenVINO read and compiled the whole model")
    homes = tuple(Home(n, op.kind, True, why) for n, op in enumerate(model.main.ops))
    return Placement(TARGET, MEASURED, homes, min(1, len(homes)))


@contextmanager
def _untold() -> Generator[None]:
    """Importing OpenVINO sends an event to its makers and leaves files in the user's home, unless
    its package for that is missing: so it is missing for that moment."""
    known = sys.modules.get(_TELEMETRY)
    if known is None:
        sys.modules[_TELEMETRY] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if known is None:
            del sys.modules[_TELEMETRY]


def _refuse_flaws(graph: Graph) -> None:
    """Raises where OpenVINO is known to crash or to compute something else."""
    for place, op in enumerate(graph.ops):
        why = FLAWS[op.kind](op) if op.kind in FLAWS else ""
        if why:
            raise CannotRun("target openvino: op {place}, {why}; use cpu", place, why)


def _with_distinct_names(model: Model) -> Model:
    """The model with repeated names of the main graph numbered: OpenVINO joins such tensors."""
    tensors = model.main.tensors
    names = port_names([tensor.name for tensor in tensors])
    renamed = {t: replace(t, name=n) for t, n in zip(tensors, names, strict=True) if t.name != n}
    graphs = [rewrite(model.main, tensors=renamed), *model.graphs[1:]]
    return with_graphs(model, graphs, renamed) if renamed else model


def _core() -> "openvino.Core":
    if find_spec(PACKAGE) is None:
        raise CannotRun(
            "target openvino: it is not installed; {install}", install_command("openvino")
        )
    with _untold():
        from openvino import Core  # pyright: ignore[reportMissingImports]
    return Core()


def _tensor(array: Array) -> "openvino.Tensor":
    from openvino import Tensor  # pyright: ignore[reportMissingImports]

    return Tensor(array, shared_memory=True)


def _read(
    core: "openvino.Core", model: Model, trial_settings: dict[str, str] | None
) -> "openvino.Model":
    """The model as OpenVINO reads it, which is from a file only."""
    with temporary_folder("litesmith-openvino-") as folder:
        path = folder / "model.tflite"
        save(model, path)
        if trial_settings is not None:
            _survive(path, {t.name: t.shape for t in model.main.inputs}, trial_settings)
        core.set_property({"ENABLE_MMAP": "NO"})  # the file is gone in a moment
        try:
            with quiet():
                return core.read_model(path)
        except RuntimeError as error:
            raise CannotRun("openvino does not read the model: {cause}", _cause(error)) from None


def _survive(path: Path, sizes: dict[str, tuple[int, ...]], settings: dict[str, str]) -> None:
    """Raises where a child process dies of the model."""
    words = json.dumps(sizes), json.dumps(settings)
    survive(path.read_bytes(), [str(_TRIAL)], words, who="openvino")


def _cause(error: RuntimeError) -> str:
    """The cause in OpenVINO's message: its last line, without places in its source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    untranslated = re.findall(r"No translator found for (\S+) node", str(error))
    if untranslated:
        return phrase("it has no translation of {fromkeys}", ", ".join(dict.fromkeys(untranslated)))
    told = [line for line in lines if not line.startswith(("Exception from", "Check '"))]
    return (told or lines or [phrase("it gives no reason")])[-1].rstrip(".")
