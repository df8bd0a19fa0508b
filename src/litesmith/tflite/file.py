"""Files: a model is mapped, not read; it is written whole or not at all."""

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from litesmith.errors import BadInput, BadModel, os_reason
from litesmith.ir.check import check
from litesmith.ir.types import Model
from litesmith.operating_system import THIS, is_folder_error
from litesmith.tflite.read import read
from litesmith.tflite.write import chunks
from litesmith.unfinished import open_part


def load(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Model:
    """Reads and checks the model in a file or in bytes. Constants stay views on the file.

    >>> model = litesmith.load("model.tflite")
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return _check_and_return(memoryview(source))
    path = Path(source)
    try:
        return _check_and_return(map_file(path))
    except BadModel as error:
        raise BadModel("{path}: {error}", path, error) from None


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Writes the model to a file, which appears only once it is complete.

    >>> litesmith.save(litesmith.load("model.tflite"), "copy.tflite")
    """
    check(model)
    write_whole(Path(path), chunks(model))


def write_whole(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Writes the pieces to a temporary file beside `path`, then gives it the name."""
    write_together({path: pieces})


def write_together(files: Mapping[Path, Iterable[bytes | memoryview]]) -> None:
    """Writes several files; none of them appears before all are complete."""
    parts: dict[Path, str] = {}
    for path in files:
        refuse_unwritable(path)
    path = Path()
    try:
        for path, pieces in files.items():
            target = Path(os.path.realpath(path))  # a link stays a link
            handle, parts[target] = open_part(target.parent)
            with os.fdopen(handle, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                _set_mode(file.fileno(), target)
                file.flush()
                # otherwise the name could survive a crash without its content
                os.fsync(file.fileno())
        for path, name in parts.items():
            os.replace(name, path)
    except OSError as error:
        if isinstance(error, PermissionError) and error.filename2 is not None:  # of os.replace
            raise BadInput(
                "{path}: is in use, by another program or by a model that was loaded from it, and "
                "cannot be replaced; close what uses it, or choose another place",
                path,
            ) from None
        raise BadInput(
            "{path}: cannot be written ({why}); choose another place", path, os_reason(error)
        ) from None
    finally:
        for name in parts.values():
            Path(name).unlink(missing_ok=True)


def refuse_unwritable(path: Path) -> None:
    """Raises BadInput where a file cannot be written at that place."""
    target = os.path.realpath(path)
    parent = os.path.dirname(target)
    if os.path.isdir(target):
        raise BadInput("{path}: is a folder; give the name of a file to write", path)
    if not os.path.isdir(parent):
        raise BadInput(
            "{path}: the folder {parent} does not exist; create it first", path, path.parent
        )
    if os.path.exists(target) and not os.path.isfile(target):
        raise BadInput("{path}: is no regular file; give the name of one", path)
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise BadInput("{path}: is write-protected; choose another place", path)


def refuse_output(path: Path, *inputs: Path) -> None:
    """Refuses an output that is also an input, or that cannot be written, before the work."""
    for source in inputs:
        if os.path.exists(path) and os.path.exists(source) and path.samefile(source):
            raise BadInput(
                "{path}: is the input, and an input file is never changed; choose another", path
            )
    refuse_unwritable(path)


def pieces(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """The bytes of a file, in pieces of at most `size`."""
    with path.open("rb") as file:
        while piece := file.read(size):
            yield piece


def digest(path: Path) -> str:
    """The SHA-256 of a file: the name by which records refer to a model."""
    running = sha256()
    for piece in pieces(path):
        running.update(piece)
    return running.hexdigest()


def _set_mode(handle: int, target: Path) -> None:
    """Gives a result the mode of the file that it replaces, or of a new file, because temporary
    files are private.
    """
    if not hasattr(os, "fchmod"):
        return
    mask = os.umask(0)
    os.umask(mask)
    mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~mask
    os.fchmod(handle, mode)


def _check_and_return(data: memoryview) -> Model:
    model = read(data)
    check(model)
    return model


# Where a mapped file cannot be replaced, only a model that is larger than this is mapped: whoever
# loads a model may save it under the same name.
_MOST_READ = 1 << 30


def map_file(source: str | os.PathLike[str]) -> memoryview:
    """The bytes of a file, mapped into memory."""
    path = Path(source)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0 and path.is_file():
                raise BadModel("the file is empty")
            is_read = THIS.keeps_mapped and size <= _MOST_READ
            if is_read or not path.is_file():  # a pipe has no size and cannot be mapped
                return memoryview(file.read())
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise BadInput("{path}: no such file", path) from None
    except OSError as error:
        if is_folder_error(error, path):
            raise BadInput("{path}: is a folder; give a .tflite file", path) from None
        raise BadInput("{path}: cannot be read ({why})", path, os_reason(error)) from None
