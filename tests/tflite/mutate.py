"""Ways to damage a file, each decided by a seed: the fuzzing bench and the tests share them."""

import struct
from collections.abc import Callable

import numpy as np

from tests.tflite.damage import DAMAGES, damaged

Mutation = Callable[[bytearray, np.random.Generator], bytearray]


def flip_bits(data: bytearray, random: np.random.Generator) -> bytearray:
    for _ in range(random.integers(1, 9)):
        data[random.integers(len(data))] ^= 1 << random.integers(8)
    return data


def truncate(data: bytearray, random: np.random.Generator) -> bytearray:
    return data[: random.integers(len(data))]


def splice(data: bytearray, random: np.random.Generator) -> bytearray:
    """A four-byte word from one place goes to another: offsets that lead elsewhere."""
    for _ in range(random.integers(1, 5)):
        source, target = (4 * random.integers(len(data) // 4, size=2)).tolist()
        data[target : target + 4] = data[source : source + 4]
    return data


def huge_count(data: bytearray, random: np.random.Generator) -> bytearray:
    """A word of the first bytes, where tables and lengths are, becomes enormous."""
    values = (0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x00FFFFFF, len(data), len(data) // 4)
    place = 4 * random.integers(1, max(2, min(len(data), 65536) // 4))
    data[place : place + 4] = struct.pack("<I", values[random.integers(len(values))])
    return data


def wild_offset(data: bytearray, random: np.random.Generator) -> bytearray:
    """A small or negative number where an offset may be: loops and overlaps."""
    for _ in range(random.integers(1, 4)):
        place = 4 * random.integers(min(len(data), 65536) // 4)
        data[place : place + 4] = struct.pack("<i", int(random.integers(-256, 256)))
    return data


def cut_out(data: bytearray, random: np.random.Generator) -> bytearray:
    start = random.integers(len(data))
    del data[start : start + random.integers(1, 64)]
    return data


def odd_number(data: bytearray, random: np.random.Generator) -> bytearray:
    """A small number, such as a dimension, an index or an option, becomes a strange one."""
    words = np.frombuffer(bytes(data[: len(data) // 4 * 4]), "<i4")
    places = 4 * np.flatnonzero(np.abs(words.astype(np.int64)) < 64)
    strange = (0, 1, 2, 3, 5, 9, 127, 255, 2**31 - 1, 2**31, 2**32 - 1)
    for place in random.choice(places, min(2, len(places))).tolist():
        data[place : place + 4] = struct.pack("<I", strange[random.integers(len(strange))])
    return data


MUTATIONS: tuple[Mutation, ...] = (
    flip_bits,
    truncate,
    splice,
    huge_count,
    wild_offset,
    cut_out,
    odd_number,
)


# The sorts of damage, blind ones first, by name.
SORTS = tuple(sort.__name__ for sort in (*MUTATIONS, *DAMAGES))


def mutated(data: bytes, seed: int) -> bytes:
    """The file, damaged in the way that the seed decides."""
    random = np.random.default_rng(seed)
    which = seed % len(SORTS)
    if which < len(MUTATIONS):
        return bytes(MUTATIONS[which](bytearray(data), random))
    return damaged(data, which - len(MUTATIONS), random)
