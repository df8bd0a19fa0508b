"""Observations of a model's tensors, kept on disk for the next time, beside compiled kernels.

Nothing here changes a result: an entry that is missing, damaged or not sealed by this user is
gathered anew.
"""

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from litesmith.arguments import check_types
from litesmith.data.samples import Data
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model, Tensor
from litesmith.native.sealed_file import read_sealed, why_not_kept, write_sealed
from litesmith.native.user_cache import VARIABLE as VARIABLE
from litesmith.native.user_cache import compiled_files, weights_files
from litesmith.native.user_cache import folder as folder
from litesmith.numeric.ranges import Seen
from litesmith.ops.registry import meaning
from litesmith.phrases import phrase
from litesmith.precision.op_costs import ENDING
from litesmith.run.litert.capi import installed_version
from litesmith.tflite.write import chunks
from litesmith.units import bytes_text, plain


@dataclass(frozen=True, repr=False)
class CacheState:
    """What is kept between runs, or was until it was cleared.

    folder   None where nothing is kept
    cleared  True where the files have been removed
    why_not  why the folder is not used, and the way out; "" where it is
    """

    folder: Path | None
    files: int = 0
    bytes: int = 0
    cleared: bool = False
    why_not: str = ""

    __repr__ = show_line
    _repr_html_ = show_html

    @property
    def sentence(self) -> str:
        if self.folder is None:
            return phrase(
                "nothing is kept: {variable} is empty, or there is no home folder", VARIABLE
            )
        place, what = (
            plain(str(self.folder)),
            phrase("{files} files, {size}", self.files, bytes_text(self.bytes)),
        )
        if self.cleared:
            return phrase("removed {what} from {place}", what, place)
        return self.why_not or f"{place}: {what}"

    def to_rows(self) -> list[dict[str, object]]:
        shown = "" if self.folder is None else str(self.folder)
        return [{"folder": shown, "files": self.files, "bytes": self.bytes}]


@check_types
def cache(action: str = "") -> CacheState:
    """What is kept between runs and where; with the action "clear" it is removed.

    >>> litesmith.cache()
    <...>
    """
    if action not in ("", "clear"):
        raise BadInput("cache {action}: there is only clear", action)
    place = folder()
    if place is None:
        return CacheState(None)
    kept: Kept = clear() if action else held()
    return CacheState(place, kept.files, kept.nbytes, bool(action), why_not_kept())


# Raised whenever `Seen` comes to gather something in another way.
_FORMAT = "facts 1"
_OUTPUTS = "outputs 1"

_ENDING, _UNSEALED = ".facts", ".facts.npz"  # what earlier versions left, which nobody reads
# The exceptions that reading an archive with some wrong bytes was seen to raise.
_DAMAGE = (
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


class CacheRoom(NamedTuple):
    """The largest size of one file, and of all of them together."""

    file_bytes: int = 64_000_000
    all_bytes: int = 512_000_000


_ROOM = CacheRoom()


class Kept(NamedTuple):
    """The contents of the cache."""

    files: int
    nbytes: int


def held() -> Kept:
    """How much is kept."""
    sizes = [size for _, size, _ in (*_files(), *_others())]
    return Kept(len(sizes), sum(sizes))


def clear() -> Kept:
    """Removes the cached files, and nothing else that may lie in the folder; returns what they
    were."""
    before = held()
    for _, _, path in (*_files(), *_others()):
        path.unlink(missing_ok=True)
    return before


def facts_place(model: Model, data: Data, what: frozenset[str]) -> Path | None:
    """The file for observations of this model on this data; None where nothing is to be kept."""
    return _place(_FORMAT, model, data, *sorted(what))


def outputs_place(model: Model, data: Data) -> Path | None:
    """The file for a model's answers to this data; None where nothing is to be kept."""
    return _place(_OUTPUTS, model, data)


def _place(kind: str, model: Model, data: Data, *more: str) -> Path | None:
    place = folder()
    if place is None:
        return None
    content = sha256()
    for piece in chunks(model):
        content.update(piece)
    own = filter(None, [meaning(model)])
    parts = (kind, installed_version(), content.hexdigest(), data.digest, *own, *more)
    return place / f"{sha256(' '.join(parts).encode()).hexdigest()}{_ENDING}"


def read_outputs(place: Path | None, names: Sequence[str]) -> Array | None:
    """The rows of these names; None where the file has not all of them."""
    content = None if place is None else read_sealed(place)
    if place is None or content is None:
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            rows, kept = archive["rows"], archive["names"].tolist()
        places = {name: number for number, name in enumerate(kept)}
        found = rows[[places[name] for name in names]]
        _mark_used(place)
    except _DAMAGE:
        return None
    return found


def write_outputs(
    place: Path | None, names: Sequence[str], rows: Array, room: CacheRoom = _ROOM
) -> None:
    """Keeps rows by name, where there is room for them."""
    if place is None or rows.nbytes > room.file_bytes:
        return
    content = io.BytesIO()
    np.savez(content, names=np.array(names), rows=rows)
    _write(place, content, room)


def read_facts(place: Path | None, model: Model, what: frozenset[str]) -> dict[Tensor, Seen]:
    """Reads the observations of the main graph's tensors."""
    content = None if place is None else read_sealed(place)
    if place is None or content is None:
        return {}
    states: dict[int, dict[str, Array]] = {}
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            for key in archive.files:
                number, name = key.split(" ")
                states.setdefault(int(number), {})[name] = archive[key]
        tensors = model.main.tensors
        facts = {tensors[n]: Seen.restored(what, state) for n, state in states.items()}
        _mark_used(place)
    except _DAMAGE:
        return {}
    return facts


def write_facts(
    place: Path | None, model: Model, facts: Mapping[Tensor, Seen], room: CacheRoom = _ROOM
) -> None:
    """Adds observations to the file, where there is room."""
    if place is None:
        return
    arrays = {
        f"{number} {name}": array
        for number, tensor in enumerate(model.main.tensors)
        if tensor in facts
        for name, array in facts[tensor].state().items()
    }
    if sum(array.nbytes for array in arrays.values()) > room.file_bytes:
        return
    content = io.BytesIO()
    if any(name.endswith("histogram") for name in arrays):  # which are nearly empty
        np.savez_compressed(content, **arrays)  # pyright: ignore[reportArgumentType]
    else:
        np.savez(content, **arrays)  # pyright: ignore[reportArgumentType]
    _write(place, content, room)


def _mark_used(place: Path) -> None:
    """What is used stays; in a folder that another user wrote, as long as that user uses it."""
    with suppress(OSError):
        os.utime(place)


def _write(place: Path, content: io.BytesIO, room: CacheRoom) -> None:
    try:
        write_sealed(place, content.getbuffer())
        _make_room(keep=place, most_bytes=room.all_bytes)
    except (OSError, BadInput):  # a full or write-protected disk costs speed, nothing else
        return


_File = tuple[float, int, Path]


def _files() -> list[_File]:
    """The time of each file's last use, its size and its path; the oldest first."""
    place = folder()
    if place is None or not place.is_dir():
        return []
    endings = (_ENDING, _UNSEALED, ENDING)
    return _known(path for ending in endings for path in place.glob(f"*{ending}"))


def _others() -> list[_File]:
    """Compiled kernels and fetched weights; they are few, and take part in no making of room."""
    return _known([*compiled_files(), *weights_files()])


def _known(paths: Iterable[Path]) -> list[_File]:
    found: list[_File] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:  # another process has removed it
            continue
        found.append((status.st_mtime, status.st_size, path))
    return sorted(found)


def _make_room(keep: Path, most_bytes: int) -> None:
    files = _files()
    total = sum(size for _, size, _ in files)
    for _, size, path in files:
        if total <= most_bytes:
            return
        if path != keep:
            path.unlink(missing_ok=True)
            total -= size
