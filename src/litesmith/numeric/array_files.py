"""Arrays from .npy and .npz files, whose headers may be false.

An .npy is mapped. The members of an .npz are read into memory whole, so their stated sizes are
checked against the file and against the memory before anything is unpacked; torch's files, which
are read elsewhere, are such archives too.
"""

import zipfile
from math import prod
from pathlib import Path
from typing import IO

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.types import Array
from litesmith.operating_system import free_memory_bytes
from litesmith.phrases import phrase
from litesmith.units import bytes_text, plain

_ENDING = ".npy"
_ARCHIVE = b"PK\x03\x04"

# The share of memory that arrays may take, because they are copied later; and the largest plausible
# compression.
_MOST_OF_MEMORY = 0.5
_LARGE, _MOST_TIMES = 1 << 30, 200


_SMALLER = phrase("save an .npy, which is read as it is needed, or fewer samples")


def read_arrays(
    path: Path, *, smaller: str = _SMALLER, free: int | None = None
) -> dict[str, Array]:
    """The arrays of a file by name, or `x` for a single array without a name; nothing is unpickled.

    smaller  the advice for an archive that does not fit into memory
    free     the bytes of free memory; None to ask the system
    """
    try:
        if path.suffix.lower() == _ENDING:
            return {"x": np.load(path, mmap_mode="r", allow_pickle=False)}
        refuse_size(path, sum(_stated_sizes(path).values()), smaller=smaller, free=free)
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except BadInput:
        raise
    # numpy and zipfile raise a dozen kinds of exceptions for damaged files
    except Exception as error:
        reason = plain(str(error).split("\n")[0]) or type(error).__name__
        raise BadInput(
            "{path}: cannot be read ({reason}); save plain arrays of numbers", path, reason
        ) from None


def _stated_sizes(path: Path) -> dict[str, int]:
    """The bytes of each array of an archive, as their headers state them."""
    with zipfile.ZipFile(path) as archive:
        return {
            one.filename: _array_bytes(archive, one)
            for one in archive.infolist()
            if one.filename.endswith(_ENDING)
        }


def _array_bytes(archive: zipfile.ZipFile, one: zipfile.ZipInfo) -> int:
    with archive.open(one) as file:
        shape, dtype = _head(file)
        declared, there = prod(shape) * dtype.itemsize, one.file_size - file.tell()
    if any(size < 0 for size in shape) or (declared != there and not dtype.hasobject):
        name, known = plain(one.filename), bytes_text(there)
        raise ValueError(phrase("{name}: its header states another size than {known}", name, known))
    return declared


def _head(file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic]]:
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0
    if version != (1, 0):  # later versions differ in the length of the header and its encoding
        read = np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    return shape, dtype


def archive_bytes(path: Path) -> int:
    """The unpacked size of a file by its own list of members; 0 where it does not begin as an
    archive. Raises any exception where it begins as an archive and has no such list.
    """
    with path.open("rb") as file:
        if file.read(len(_ARCHIVE)) != _ARCHIVE:
            return 0
        with zipfile.ZipFile(file) as archive:
            return sum(one.file_size for one in archive.infolist())


def refuse_size(path: Path, whole: int, *, smaller: str, free: int | None = None) -> None:
    """Refuses a size that does not fit into memory, or that a file of this size cannot hold."""
    free = free_memory_bytes() if free is None else free
    is_bomb = whole > _LARGE and whole > _MOST_TIMES * path.stat().st_size
    if free is not None and (is_bomb or whole > _MOST_OF_MEMORY * free):
        raise BadInput(
            "{path}: unpacks to {size}, and {free} of memory are free; {smaller}",
            path,
            bytes_text(whole),
            bytes_text(free),
            smaller,
        )
