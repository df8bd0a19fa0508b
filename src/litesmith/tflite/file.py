"""Files: a model is mapped, not read; it is written whole or not at all."""

import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from litesmith.errors import BadInput, BadModel
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.tflite.read import read
from litesmith.tflite.write import chunks


def load(source: str | os.PathLike[str] | bytes | memoryview) -> Model:
    """The checked model in a file or in bytes. Constants stay views on it.

    >>> model = load("model.tflite")                                        # doctest: +SKIP
    """
    if isinstance(source, bytes | memoryview):
        return _checked(memoryview(source))
    path = Path(source)
    try:
        return _checked(mapped(path))
    except BadModel as error:
        raise BadModel(f"{path}: {error}") from None


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Writes the model to a file, which appears only once it is complete."""
    check(model)
    write_whole(Path(path), chunks(model))


def write_whole(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Writes the pieces to a temporary file beside `path`, then gives it the name."""
    if os.path.isdir(path):
        raise BadInput(f"{path}: is a folder; give the name of a file to write")
    if not os.path.isdir(path.parent):
        raise BadInput(f"{path}: the folder {path.parent} does not exist; create it first")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror}); choose another -o") from None
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
            _set_usual_mode(file.fileno())
        os.replace(name, path)
    except OSError as error:
        raise BadInput(f"{path}: cannot be written ({error.strerror}); choose another -o") from None
    finally:
        Path(name).unlink(missing_ok=True)


def pieces(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of a file in pieces of a bounded size."""
    with path.open("rb") as file:
        while piece := file.read(size):
            yield piece


def digest(path: Path) -> str:
    """The SHA-256 of a file: the name by which records refer to a model."""
    running = sha256()
    for piece in pieces(path):
        running.update(piece)
    return running.hexdigest()


def _set_usual_mode(handle: int) -> None:
    """Temporary files are private; a result has the mode that a new file would have."""
    if hasattr(os, "fchmod"):
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)


def _checked(data: memoryview) -> Model:
    model = read(data)
    check(model)
    return model


def mapped(source: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, mapped into memory."""
    path = Path(source)
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0 and path.is_file():
                raise BadModel("the file is empty")
            if not path.is_file():  # a pipe has no size and cannot be mapped
                return memoryview(file.read())
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder; give a .tflite file") from None
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror})") from None
