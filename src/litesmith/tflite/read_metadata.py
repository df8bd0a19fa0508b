"""The statements of TFLite metadata about a model's inputs and labels, read as carefully as the
model.

The metadata is a flatbuffer of its own inside the model; its format is `metadata_schema.fbs` of
TFLite Support. Only the fields that preparing data needs are read. Damaged parts count as absent
and are reported in `problem`: a model runs without its metadata, so damage there is no reason to
refuse it.
"""

import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

import numpy as np

from litesmith.errors import BadModel
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.schema import SCALARS
from litesmith.tflite.unpack import Source

ENTRY = "TFLITE_METADATA"
_U8, _U16, _U32, _I32 = (SCALARS[name] for name in ("uint8", "uint16", "uint32", "int32"))

# Slots of the fields that are read, by table.
_SUBGRAPHS = 3  # ModelMetadata
_INPUTS, _OUTPUTS = 2, 3  # SubGraphMetadata
_CONTENT, _PROCESS_UNITS, _FILES = 3, 4, 6  # TensorMetadata
_PROPERTIES_KIND, _PROPERTIES = 0, 1  # Content: a union takes two slots
_SAMPLE_RATE = 0  # AudioProperties
_UNIT_KIND, _UNIT = 0, 1  # ProcessUnit: a union takes two slots
_MEAN, _STD = 0, 1  # NormalizationOptions
_FILE_NAME, _FILE_KIND = 0, 2  # AssociatedFile

_NORMALIZATION = 1  # its number in the union of process units
_AUDIO = 4  # its number in the union of properties
_AXIS_LABELS = 2  # the kind of file that names the classes along an axis

# The largest label file; a larger one is something else.
_MOST_LABEL_BYTES = 4_000_000

# Parts of the usual names of vocabulary files, and the size of the largest.
_VOCABULARIES = ("vocab", "tokenizer")
_MOST_VOCABULARY_BYTES = 1_000_000_000


@dataclass(frozen=True)
class StatedNorm:
    """x' = (x − mean) / std on pixels of 0 to 255; one number each, or one for each channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Metadata:
    """The metadata of a model, as far as preparing data needs it.

    inputs  the normalization of each input in order; None where there is none
    labels  the names of the first output's classes in order; empty where there are none
    problem a sentence on what is damaged; "" where nothing is
    rate    the samples per second of the first audio input; 0 where none is stated
    """

    inputs: tuple[StatedNorm | None, ...] = ()
    labels: tuple[str, ...] = ()
    problem: str = ""
    rate: int = 0


def metadata(model: Model) -> Metadata:
    """The metadata of a model; empty where it has none."""
    content = next((data for name, data in model.metadata if name == ENTRY), None)
    if content is None:
        return Metadata()
    try:
        return _read(model, memoryview(content.tobytes()))
    except BadModel as error:
        return Metadata(
            problem=phrase("the model's metadata is damaged and left aside: {error}", error)
        )


class AttachedFile(NamedTuple):
    """A file in the archive behind a model."""

    name: str
    content: bytes


def vocabulary_file(model: Model) -> AttachedFile | None:
    """The vocabulary of a text model in the archive behind it; None where there is none."""
    # zipfile raises a dozen kinds of exceptions for damaged archives.
    with suppress(Exception), zipfile.ZipFile(io.BytesIO(model.attached)) as archive:
        for name in archive.namelist():
            is_meant = any(word in name.lower() for word in _VOCABULARIES)
            if is_meant and archive.getinfo(name).file_size <= _MOST_VOCABULARY_BYTES:
                return AttachedFile(name, archive.read(name))
    return None


def _read(model: Model, content: memoryview) -> Metadata:
    source = Source(content)
    root = _Table(source, source.follow(0, "metadata"))
    graph = next(root.tables(_SUBGRAPHS), None)
    if graph is None:
        return Metadata()
    inputs = tuple(_normalization(tensor) for tensor in graph.tables(_INPUTS))
    rate = max((_rate(tensor) for tensor in graph.tables(_INPUTS)), default=0)
    first = next(graph.tables(_OUTPUTS), None)
    names = [] if first is None else list(_label_files(first))
    try:
        return Metadata(inputs, _labels(model.attached, names[0]) if names else (), rate=rate)
    except BadModel as error:
        told = phrase("the model's labels are left aside: {error}", error)
        return Metadata(inputs, problem=told, rate=rate)


class _Table:
    """A table at a checked position, its fields by slot number."""

    def __init__(self, source: Source, at: int) -> None:
        source.visit(8, "metadata")
        self.source, self.at = source, at
        self.vtable = at - int(source.scalar(_I32, at, "metadata"))
        self.slots = int(source.scalar(_U16, self.vtable, "metadata")) // 2 - 2

    def place(self, slot: int) -> int | None:
        """The place of a field; None where it is not set."""
        if slot >= self.slots:
            return None
        offset = int(self.source.scalar(_U16, self.vtable + 4 + 2 * slot, "metadata"))
        return self.at + offset if offset else None

    def number(self, slot: int, form: Struct = _U8) -> int:
        at = self.place(slot)
        return 0 if at is None else int(self.source.scalar(form, at, "metadata"))

    def table(self, slot: int) -> "_Table | None":
        at = self.place(slot)
        return None if at is None else _Table(self.source, self.source.follow(at, "metadata"))

    def tables(self, slot: int) -> Iterator["_Table"]:
        start, length = self._vector(slot, 4)
        for place in range(start, start + 4 * length, 4):
            yield _Table(self.source, self.source.follow(place, "metadata"))

    def floats(self, slot: int) -> tuple[float, ...]:
        start, length = self._vector(slot, 4)
        raw = bytes(self.source.data[start : start + 4 * length])
        return tuple(np.frombuffer(raw, "<f4").tolist())

    def text(self, slot: int) -> str:
        start, length = self._vector(slot, 1)
        return bytes(self.source.data[start : start + length]).decode("utf-8", "replace")

    def _vector(self, slot: int, width: int) -> tuple[int, int]:
        at = self.place(slot)
        if at is None:
            return 0, 0
        return self.source.vector(self.source.follow(at, "metadata"), width, "metadata")


def _normalization(tensor: _Table) -> StatedNorm | None:
    for unit in tensor.tables(_PROCESS_UNITS):
        options = unit.table(_UNIT)
        if unit.number(_UNIT_KIND) != _NORMALIZATION or options is None:
            continue
        mean, std = options.floats(_MEAN), options.floats(_STD)
        usable = all(len(v) in (1, 3) and np.isfinite(v).all() for v in (mean, std))
        if not usable or 0 in std:
            raise BadModel("it normalizes by mean {mean} and std {std}", mean, std)
        return StatedNorm(_shortest(mean), _shortest(std))
    return None


def _rate(tensor: _Table) -> int:
    content = tensor.table(_CONTENT)
    if content is None or content.number(_PROPERTIES_KIND) != _AUDIO:
        return 0
    audio = content.table(_PROPERTIES)
    return 0 if audio is None else audio.number(_SAMPLE_RATE, _U32)


def _shortest(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """One number if it is the same for all channels."""
    return numbers[:1] if len(set(numbers)) == 1 else numbers


def _label_files(tensor: _Table) -> Iterator[str]:
    return (
        f.text(_FILE_NAME) for f in tensor.tables(_FILES) if f.number(_FILE_KIND) == _AXIS_LABELS
    )


def _labels(attached: bytes, name: str) -> tuple[str, ...]:
    """The lines of a label file in the archive behind the model."""
    try:
        with zipfile.ZipFile(io.BytesIO(attached)) as archive:
            if archive.getinfo(name).file_size > _MOST_LABEL_BYTES:
                raise BadModel("the label file {name!r} is too large", name)
            with archive.open(name) as file:
                raw = file.read(_MOST_LABEL_BYTES)
    except BadModel:
        raise
    except Exception as error:  # as above
        raise BadModel("the label file {name!r} cannot be read: {error}", name, error) from None
    return tuple(line.strip() for line in raw.decode("utf-8", "replace").splitlines())
