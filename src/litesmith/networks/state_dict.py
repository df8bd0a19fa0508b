"""The arrays of a torch state dict, read without torch; no code in the file is run.

torch.save writes a pickle that names the tensors, and beside it the numbers: in an uncompressed
archive, or, before torch 1.6, one after the other in a single file. The pickle is read with a table
of the few names that such a file needs (`_KNOWN`), and any other name is refused.
"""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# The objects in a pickle have no static type.

import io
import pickle
import pickletools
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from litesmith.ir.types import Array

# The first pickle of a file from before torch 1.6.
_MAGIC = 0x1950A86A20F9469CFC6C

_DTYPES = {
    "BFloat16Storage": "<u2",  # the upper half of a float32
    "BoolStorage": "?",
    "ByteStorage": "u1",
    "CharStorage": "i1",
    "DoubleStorage": "<f8",
    "FloatStorage": "<f4",
    "HalfStorage": "<f2",
    "IntStorage": "<i4",
    "LongStorage": "<i8",
    "ShortStorage": "<i2",
}


class _Storage(NamedTuple):
    """Numbers of one type, in which tensors lie."""

    key: str
    kind: str
    size: int


class _TensorView(NamedTuple):
    """A tensor as the place of its numbers in a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def take(self, numbers: Array) -> Array:
        """The tensor among the numbers of its storage, as float32."""
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        least = min((self.offset, *self.shape, *self.strides))
        if least < 0 or last >= max(len(numbers), 1) or prod(self.shape) > len(numbers):
            raise ValueError("a tensor reaches beyond its numbers")
        strides = [step * numbers.itemsize for step in self.strides]
        view = np.lib.stride_tricks.as_strided(numbers[self.offset :], self.shape, strides)
        if self.storage.kind == "BFloat16Storage":
            return (view.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return view.astype(np.float32, copy=False)


def _lay(storage: _Storage, offset: int, shape: object, strides: object, *_: object) -> _TensorView:
    return _TensorView(storage, offset, _sizes(shape), _sizes(strides))


def _parameter(tensor: object, *_: object) -> object:
    return tensor


def _sizes(given: object) -> tuple[int, ...]:
    if not isinstance(given, tuple) or not all(type(one) is int for one in given):
        raise ValueError("the shape of a tensor is not made of whole numbers")
    return given


_KNOWN: dict[tuple[str, str], object] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch", "Size"): tuple,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch._utils", "_rebuild_tensor"): _lay,
    ("torch._utils", "_rebuild_tensor_v2"): _lay,
    **{("torch", name): name for name in _DTYPES},
}


class _Reader(pickle.Unpickler):
    """Reads a pickle that may use only the names in `_KNOWN`; `storages` are those that it refers
    to.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.storages: dict[str, _Storage] = {}

    def find_class(self, module_name: str, global_name: str, /) -> object:
        try:
            return _KNOWN[module_name, global_name]
        except KeyError:
            raise ValueError("more than weights") from None

    def persistent_load(self, pid: object, /) -> _Storage:
        match pid:
            case ("storage", str(kind), str(key), _, int(size), *rest) if (
                kind in _DTYPES and size >= 0 and not any(rest)
            ):
                return self.storages.setdefault(key, _Storage(key, kind, size))
            case _:
                raise ValueError("a storage of another kind")


class _Contents(NamedTuple):
    """The contents of a file: the object, and a function that reads the numbers of a storage."""

    object: object
    numbers: Callable[[_Storage], Array]


def read_state_dict(content: bytes) -> dict[str, Array] | None:
    """The arrays of a file's content by name, in order; None where it holds no state dict.

    Raises one of many kinds of exception where the content is damaged or holds code.
    """
    file = io.BytesIO(content)
    held = (_read_archive if content.startswith(b"PK") else _read_stream)(file)
    found = _state_dict(held.object)
    if found is None:
        return None
    return {name: laid.take(held.numbers(laid.storage)) for name, laid in found.items()}


# The keys under which training scripts store the state dict beside other things.
_INSIDE = ("state_dict", "model")


def _state_dict(held: object) -> dict[str, _TensorView] | None:
    for name in _INSIDE:
        if isinstance(held, dict) and isinstance(held.get(name), dict):
            held = held[name]
    if not isinstance(held, dict) or not all(isinstance(one, _TensorView) for one in held.values()):
        return None
    return {str(name): laid for name, laid in held.items()}


def _read_archive(file: io.BytesIO) -> _Contents:
    archive = zipfile.ZipFile(file)
    pickled = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
    folder = pickled.removesuffix("data.pkl")

    def read(name: str) -> bytes:
        if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
            raise ValueError("torch does not compress")
        return archive.read(name)

    def numbers(storage: _Storage) -> Array:
        content = read(f"{folder}data/{storage.key}")
        return np.frombuffer(content, _DTYPES[storage.kind], storage.size)

    return _Contents(_reader(io.BytesIO(read(pickled))).load(), numbers)


def _read_stream(file: io.BytesIO) -> _Contents:
    """Magic number, version, machine, the names, the keys of the numbers; then the numbers."""
    if _reader(file).load() != _MAGIC:
        raise ValueError("no file of torch")
    for _ in ("version", "machine"):
        _reader(file).load()
    names = _reader(file)
    held, keys = names.load(), _reader(file).load()
    starts: dict[str, int] = {}
    content, at = file.getbuffer(), file.tell()
    for key in keys:
        storage = names.storages[key]
        if int.from_bytes(content[at : at + 8], "little") != storage.size:
            raise ValueError("another count of numbers")
        starts[key] = at + 8
        at += 8 + storage.size * np.dtype(_DTYPES[storage.kind]).itemsize

    def numbers(storage: _Storage) -> Array:
        return np.frombuffer(content, _DTYPES[storage.kind], storage.size, starts[storage.key])

    return _Contents(held, numbers)


def _reader(file: io.BytesIO) -> _Reader:
    """A reader of the next pickle, whose memo is limited by the length of the file."""
    start = file.tell()
    for code, number, at in pickletools.genops(file):
        if code.name in ("PUT", "LONG_BINPUT") and not 0 <= int(str(number)) <= (at or 0):
            raise ValueError("a memo without end")
    file.seek(start)
    return _Reader(file)
