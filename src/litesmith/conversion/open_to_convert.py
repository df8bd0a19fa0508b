"""The user's source to convert: as nodes, with a way to run it."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from litesmith.conversion.core.source import SourceModel, computes_in_half
from litesmith.conversion.onnx_file import read_onnx
from litesmith.conversion.onnx_runner import OnnxJudge
from litesmith.conversion.other_formats import CONVERTED, refuse_stranger
from litesmith.conversion.proof import Run
from litesmith.errors import BadInput, os_reason
from litesmith.installing import install_command
from litesmith.ir.types import Array
from litesmith.type_guards import is_path

Sizes = Mapping[str, Sequence[int]]


class OpenedSource(NamedTuple):
    """A source.

    name   its name in messages
    path   its file; None for a source in memory
    run    computes its outputs for inputs
    judge  the runtime that runs it; "" where there is none
    bytes  the most memory that running it took in processes of its own
    exampleinputs on which it is known to run
    """

    name: str
    path: Path | None
    model: SourceModel
    run: Run | OnnxJudge
    package: str = ""
    example: Mapping[str, Array] = {}

    @property
    def judge(self) -> str:
        return self.run.name if isinstance(self.run, OnnxJudge) else self.package

    @property
    def half(self) -> str:
        """The type of less precision than float32 that an .onnx file is run in; "" for none."""
        return computes_in_half(self.model.graph) if isinstance(self.run, OnnxJudge) else ""

    @property
    def bytes(self) -> int:
        return self.run.bytes if isinstance(self.run, OnnxJudge) else 0


def open_to_convert(source: object, example: object, sizes: Sizes) -> OpenedSource:
    """The source that a path, a module, a program or a Keras model is."""
    if is_path(source):
        return _from_file(Path(source), sizes)
    kind = f"{type(source).__module__}.{type(source).__name__}"
    if _is_a(source, "keras", "Model"):
        return _from_keras(source, example, sizes)
    if _is_a(source, "torch.export", "ExportedProgram"):
        return _from_program(type(source).__name__, None, source, sizes)
    if _is_a(source, "torch.nn", "Module"):
        return _from_module(source, example, sizes)
    raise BadInput(
        "{kind}: give the path of an .onnx, .pt2 or .keras file, a torch module or a Keras model",
        kind,
    )


def _is_a(value: object, module: str, name: str) -> bool:
    """True for an object of a class of a package that the program has imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)


def _from_file(path: Path, sizes: Sizes) -> OpenedSource:
    refuse_stranger(path)
    suffix = path.suffix.lower()
    if suffix not in CONVERTED:
        raise BadInput(
            "{path}: not a model that can be converted; give a file that ends in {suffixes}",
            path,
            ", ".join(CONVERTED),
        )
    try:
        path.open("rb").close()
    except OSError as error:
        raise BadInput("{path}: {why}", path, os_reason(error)) from None
    if suffix == ".onnx":
        return OpenedSource(path.name, path, read_onnx(path), OnnxJudge(path))
    if suffix == ".keras":
        from litesmith.conversion.keras_model import load_keras

        return _from_keras(load_keras(path), None, sizes)._replace(name=path.name, path=path)
    _need("torch", path, "train")
    from litesmith.conversion.torch_archive import load_program

    return _from_program(path.name, path, load_program(path), sizes)


def _need(package: str, path: Path, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        raise BadInput(
            "{path}: {package} is needed to read it: {install}",
            path,
            package,
            install_command(extra),
        )


def _from_module(module: Any, example: object, sizes: Sizes) -> OpenedSource:
    from litesmith.conversion.torch_program import exported

    if example is None:
        raise BadInput(
            "a torch module needs example inputs: litesmith.convert(module, torch.zeros(1, 3, 224, "
            "224))"
        )
    return _from_program(type(module).__name__, None, exported(module, example), sizes)


def _from_program(name: str, path: Path | None, program: Any, sizes: Sizes) -> OpenedSource:
    from litesmith.conversion.torch_program import read_program

    read = read_program(program, sizes)
    return OpenedSource(name, path, read.model, read.run, "torch", read.example)


def _from_keras(model: Any, example: object, sizes: Sizes) -> OpenedSource:
    from litesmith.conversion.keras_model import read_keras

    read = read_keras(model, example, sizes)
    return OpenedSource(type(model).__name__, None, read.model, read.run, "keras", read.example)
