"""The zip archive that TFLite metadata appends to a model for its label files.

The archive counts places from the start of the model's file. In memory it is kept as an archive
of its own, counting from its first byte; reading and writing shift the counts.
"""

import struct

from litesmith.errors import BadModel

_END = struct.Struct("<4s4H2LH")  # the record that ends an archive
_ENTRY = struct.Struct("<4s6H3L5H2L")  # one entry of its directory
_END_MARK, _ENTRY_MARK = b"PK\x05\x06", b"PK\x01\x02"
_DIRECTORY_FIELD = 16  # the field of the end record with the start of the directory
_ENTRY_FIELD = 42  # the field of an entry with the start of its file


def detach(data: memoryview) -> bytes:
    """The archive at the end of a file, counting from its own start; empty where there is none."""
    end = _end_record(data)
    if end is None:
        return b""
    *_, entries, size, stated_start, _ = _END.unpack_from(data, end)
    directory = end - size
    prefix = directory - stated_start  # the bytes put in front of the archive later
    try:
        starts = [prefix + _start(data, place) for place in _places(data, directory, entries, end)]
        first = min([*starts, directory])
        if not 8 <= first <= directory:
            raise BadModel("the archive lies outside the file")
        return _shift(bytes(data[first:]), prefix - first)
    except BadModel as error:
        raise BadModel(
            "the label archive at the end of the file is damaged: {error}", error
        ) from None


def attach(archive: bytes, at: int) -> bytes:
    """The archive with the counts for a file in which it begins at byte `at`."""
    return _shift(archive, at)


def _end_record(data: memoryview) -> int | None:
    """The place of the end record, which is last in the file, except for a comment of the stated
    length.
    """
    tail_start = max(0, len(data) - _END.size - 0xFFFF)
    tail = bytes(data[tail_start:])
    place = tail.rfind(_END_MARK)
    while place >= 0:
        if len(tail) - place >= _END.size:
            comment = _END.unpack_from(tail, place)[-1]
            if place + _END.size + comment == len(tail):
                return tail_start + place
        place = tail.rfind(_END_MARK, 0, place)
    return None


def _places(data: memoryview, at: int, entries: int, end: int) -> list[int]:
    """The places of the directory's entries."""
    places: list[int] = []
    for _ in range(entries):
        if at < 0 or at + _ENTRY.size > end or bytes(data[at : at + 4]) != _ENTRY_MARK:
            raise BadModel("no directory entry at byte {at}", at)
        places.append(at)
        fields = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size + sum(fields[10:13])  # name, extra field, comment
    return places


def _start(data: memoryview | bytearray, place: int) -> int:
    return struct.unpack_from("<L", data, place + _ENTRY_FIELD)[0]


def _shift(archive: bytes, by: int) -> bytes:
    """The archive with every place in it moved by this many bytes."""
    result = bytearray(archive)
    view = memoryview(archive)
    end = _end_record(view)
    if end is None:
        return archive
    *_, entries, size, stated_start, _ = _END.unpack_from(result, end)
    moves = [(end + _DIRECTORY_FIELD, stated_start)]
    for place in _places(view, end - size, entries, end):
        moves.append((place + _ENTRY_FIELD, _start(result, place)))
    for place, value in moves:
        if not 0 <= value + by < 2**32:
            raise BadModel("an offset of {value} does not fit", value + by)
        struct.pack_into("<L", result, place, value + by)
    return bytes(result)
