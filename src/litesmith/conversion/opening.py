"""What a user hands over to be converted: as nodes, with what runs it."""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from litesmith.conversion.core.source import SourceModel
from litesmith.conversion.judge import find_judge, judge_onnx
from litesmith.conversion.keras_model import is_keras_model, read_keras, read_keras_file
from litesmith.conversion.onnx_file import read_onnx
from litesmith.conversion.other_formats import CONVERTED, refuse_stranger
from litesmith.conversion.proof import Inputs, Run
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Array
from litesmith.type_guards import is_path

Sizes = Mapping[str, Sequence[int]]


class Opened(NamedTuple):
    """A source.

    name   what it is called
    path   its file; None for what lives in memory
    run    what it gives for inputs
    judge  who runs it; "" where nobody can
    """

    name: str
    path: Path | None
    model: SourceModel
    run: Run
    judge: str


def open_to_convert(source: object, example: object, sizes: Sizes) -> Opened:
    """The source that a path, a module, a program or a Keras model is."""
    if is_path(source):
        return _from_file(Path(source), sizes)
    name = type(source).__name__
    if is_keras_model(source):
        return Opened(name, None, *read_keras(source, sizes, example), "torch")
    need_torch(name)
    from litesmith.conversion.torch_program import read_live

    return Opened(name, None, *read_live(source, example, sizes), "torch")


def _from_file(path: Path, sizes: Sizes) -> Opened:
    refuse_stranger(path)
    suffix = path.suffix.lower()
    if suffix not in CONVERTED:
        raise BadInput(
            "{path}: no model that is converted; there are {suffixes}", path, ", ".join(CONVERTED)
        )
    if suffix == ".onnx":
        return Opened(path.name, path, read_onnx(path), partial(_run_onnx, path), find_judge())
    if not path.is_file():
        raise BadInput("{path}: no such file", path)
    if suffix == ".keras":
        return Opened(path.name, path, *read_keras_file(path, sizes), "torch")
    need_torch(path.name)
    from litesmith.conversion.torch_archive import read_torch_file

    return Opened(path.name, path, *read_torch_file(path, sizes), "torch")


def need_torch(what: str) -> None:
    """Raises where torch is not installed."""
    if find_spec("torch") is None:
        raise CannotRun(
            "{what} needs torch, which is not installed; pip install 'litesmith[train]'", what
        )


def _run_onnx(path: Path, inputs: Inputs, more: Sequence[str]) -> Mapping[str, Array]:
    return judge_onnx(path, inputs, more).values
