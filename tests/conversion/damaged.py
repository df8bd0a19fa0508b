"""Damaged .onnx files, each decided by a seed: the fuzzing bench and the tests share them."""

from functools import cache
from pathlib import Path

import numpy as np

from litesmith.conversion.lower_model import lowered
from litesmith.conversion.onnx_file import read_onnx
from litesmith.errors import LitesmithError
from litesmith.tflite.write import to_bytes
from tests.conversion.node_cases import cases
from tests.tflite.mutate import cut_out, flip_bits, splice, truncate


def strange_byte(data: bytearray, random: np.random.Generator) -> bytearray:
    """Bytes that mean something in the wire format: ends of numbers, lengths, keys."""
    for _ in range(random.integers(1, 4)):
        data[random.integers(len(data))] = random.choice([0, 1, 2, 8, 10, 127, 128, 255])
    return data


def doubled(data: bytearray, random: np.random.Generator) -> bytearray:
    """A part of the file once more."""
    start = random.integers(len(data))
    return data + data[start : start + random.integers(1, 200)]


def senseless(data: bytearray, random: np.random.Generator) -> bytearray:
    """A whole file whose nodes do not fit: another operator, other sizes, numbers, inputs."""
    from onnx import ModelProto

    model = ModelProto.FromString(bytes(data))
    nodes = [random.choice(model.graph.node)] if model.graph.node else []
    for node in nodes:
        other = cases()[random.integers(len(cases()))].model.graph.node[0]
        way = random.integers(4)
        if way == 0:
            node.op_type = other.op_type
        if way == 1 and node.input:
            node.input[random.integers(len(node.input))] = ""
        if way == 2:
            del node.attribute[:]
            node.attribute.extend(other.attribute)
        for attribute in node.attribute if way == 3 else ():
            attribute.i = int(random.choice(_STRANGE))
            attribute.ints[:] = [int(v) for v in random.choice(_STRANGE, len(attribute.ints))]
    for value in model.graph.input if random.integers(2) else ():
        for size in value.type.tensor_type.shape.dim:
            size.dim_value = max(int(random.choice(_STRANGE)), 0)
    return bytearray(model.SerializeToString())


_STRANGE = (-(2**62), -1, 0, 1, 2, 3, 5, 100, 2**20, 2**31, 2**62)
_SORTS = (flip_bits, truncate, splice, cut_out, strange_byte, doubled, senseless)


@cache
def _whole() -> list[bytes]:
    return [case.model.SerializeToString() for case in cases()]


def damaged(seed: int) -> bytes:
    """One of the node tests' models with a damage."""
    random = np.random.default_rng(seed)
    data = bytearray(_whole()[random.integers(len(_whole()))])
    return bytes(_SORTS[seed % len(_SORTS)](data, random))


def ending(seed: int, folder: Path) -> str:
    """What comes of a damaged file: converted, left, refused, or another error's name."""
    path = folder / "damaged.onnx"
    path.write_bytes(damaged(seed))
    try:
        made = lowered(read_onnx(path))
    except LitesmithError:
        return "refused"
    if made.model is None:
        return "left"
    to_bytes(made.model)
    return "converted"
