"""TFLite metadata for a model: how its inputs are prepared, and the names of its classes.

The counterpart of `metadata`, for the same slots of `metadata_schema.fbs`. The class names are
lines of a file in an archive behind the model, which the format's own tools read too.
"""

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.types import Array, Model
from litesmith.tflite.read_metadata import ENTRY, AttachedFile, StatedNorm
from litesmith.units import plain

LABEL_FILE = "labels.txt"

_IDENTIFIER = b"M001"
_LEAST_PARSER = "1.3.0"  # the first version with audio

# The archive must be the same whenever it is made; no date is earlier in a zip.
_WHEN = (1980, 1, 1, 0, 0, 0)

_NORMALIZATION, _IMAGE, _AUDIO = 1, 2, 4  # their numbers in the unions
_AXIS_LABELS, _VOCABULARY = 2, 3  # kinds of attached files
_WORDS = "how text becomes numbers"
_COLOURS = {1: 2, 3: 1}  # channels -> the number of the colour space


@dataclass(frozen=True)
class Described:
    """The metadata of one input.

    channels  the channels of an image; 0 for other inputs
    rate      the samples per second of audio; 0 for other inputs
    """

    normalization: StatedNorm | None = None
    channels: int = 0
    rate: int = 0


def describe(
    model: Model,
    inputs: Sequence[Described],
    labels: Sequence[str],
    name: str = "",
    words: AttachedFile | None = None,
) -> Model:
    """The model with metadata of its own in place of any that it had; `words` is the vocabulary of
    a model of text."""
    lines = label_lines(labels)
    files = [_Table({0: LABEL_FILE, 1: "one class a line", 2: _AXIS_LABELS})]
    output = _Table({0: "probability", 1: "of each class", 6: files if lines else None})
    known = None if words is None else [_Table({0: words.name, 1: _WORDS, 2: _VOCABULARY})]
    graph = _Table({2: [_input(one) for one in inputs], 3: [output], 4: known})
    root = _Table({0: name or None, 3: [graph], 7: _LEAST_PARSER})
    content = np.frombuffer(_pack(root), np.uint8)
    others = tuple(entry for entry in model.metadata if entry[0] != ENTRY)
    text = "".join(f"{line}\n" for line in lines).encode()
    held = [AttachedFile(LABEL_FILE, text)] if lines else []
    attached = _archive(held if words is None else [*held, words])
    return replace(model, metadata=(*others, (ENTRY, content)), attached=attached)


def label_lines(labels: Sequence[str]) -> tuple[str, ...]:
    """The names as lines of a file; characters that would break a line are escaped."""
    lines = tuple(label_line(label) for label in labels)
    for line in lines:
        if not line or lines.count(line) > 1:
            raise BadInput(
                "class name {line!r}: names must differ and hold more than spaces; rename it", line
            )
    return lines


def label_line(label: str) -> str:
    """One name as a line of such a file."""
    return plain(label).strip()


def _input(described: Described) -> "_Table":
    norm = described.normalization
    units = None
    if norm is not None:
        mean, std = (np.array(numbers, "<f4") for numbers in (norm.mean, norm.std))
        units = [_Table({0: _NORMALIZATION, 1: _Table({0: mean, 1: std})})]
    content = None
    if described.channels in _COLOURS:
        image = _Table({0: _COLOURS[described.channels]})
        content = _Table({0: _IMAGE, 1: image})
    elif described.rate:
        content = _Table({0: _AUDIO, 1: _Table({0: described.rate, 1: 1})})
    name = "image" if described.channels else "audio" if described.rate else None
    return _Table({0: name, 3: content, 4: units})


def _archive(files: Sequence[AttachedFile]) -> bytes:
    if not files:
        return b""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for file in files:
            archive.writestr(zipfile.ZipInfo(file.name, _WHEN), file.content)
    return content.getvalue()


_Value: TypeAlias = "str | int | Array | _Table | list[_Table]"


class _Table:
    """A table to be written: its fields by slot; None is not written."""

    def __init__(self, fields: "Mapping[int, _Value | None]") -> None:
        self.fields = {slot: value for slot, value in fields.items() if value is not None}


def _pack(root: _Table) -> bytes:
    """A flatbuffer, parents before their children, so that every offset points forward."""
    out = bytearray(4) + _IDENTIFIER
    _point(out, 0, _write_table(out, root))
    return bytes(out)


def _write_table(out: bytearray, table: _Table) -> int:
    _pad(out)
    slots = max(table.fields, default=-1) + 1
    vtable = len(out)
    head = 4 + 2 * slots
    places = {slot: 4 + 4 * place for place, slot in enumerate(sorted(table.fields))}
    offsets = [places.get(slot, 0) for slot in range(slots)]
    out += struct.pack(f"<{2 + slots}H", head, 4 + 4 * len(places), *offsets)
    _pad(out)
    at = len(out)
    out += struct.pack("<i", at - vtable) + bytes(4 * len(places))
    for slot, value in table.fields.items():
        place = at + places[slot]
        if isinstance(value, int):
            struct.pack_into("<I", out, place, value)  # a reader of one byte reads the first one
        else:
            _point(out, place, _write(out, value))
    return at


def _write(out: bytearray, value: "str | Array | _Table | list[_Table]") -> int:
    """Writes the target of an offset; returns its place."""
    if isinstance(value, _Table):
        return _write_table(out, value)
    _pad(out)
    at = len(out)
    if isinstance(value, str):
        raw = value.encode("utf-8", "replace")
        out += struct.pack("<I", len(raw)) + raw + b"\0"
    elif isinstance(value, np.ndarray):
        out += struct.pack("<I", value.size) + value.tobytes()
    else:
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for place, item in enumerate(value):
            _point(out, at + 4 + 4 * place, _write(out, item))
    return at


def _point(out: bytearray, place: int, to: int) -> None:
    struct.pack_into("<I", out, place, to - place)


def _pad(out: bytearray) -> None:
    out += bytes(-len(out) % 4)
