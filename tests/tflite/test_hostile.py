"""Corrupt, truncated and hostile files: a valid model or BadModel, soon, and in little memory."""

import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.anatomy.footprint import footprint
from litesmith.errors import BadModel, CannotApply
from litesmith.passes.core.recipe import apply
from litesmith.tflite.file import load
from litesmith.tflite.write import Node, Packer, to_bytes
from tests.draws import draws
from tests.tflite.mutate import mutated
from tests.zoo import MODELS

FILES = {name: to_bytes(make()) for name, make in MODELS.items()}


def survives(data: bytes) -> bool:
    """True for a model that can be measured and written again, False for BadModel."""
    try:
        model = load(data)
    except BadModel as error:
        assert str(error)
        assert "\n" not in str(error)
        return False
    footprint(model)
    for recipe in ("", "cleanup | fold | fuse", "upgrade"):
        try:
            data = to_bytes(apply(model, recipe).model)
        except CannotApply as error:
            assert "\n" not in str(error)
            continue
        load(data)
    return True


@pytest.mark.parametrize("name", FILES)
def test_a_fixed_set_of_mutations(name: str) -> None:
    outcomes = [survives(mutated(FILES[name], seed)) for seed in range(60)]
    assert not all(outcomes), "no mutation was noticed"


@pytest.mark.parametrize("name", FILES)
def test_every_truncation(name: str) -> None:
    data = FILES[name]
    for length in {*range(0, len(data), max(1, len(data) // 60)), len(data) - 1}:
        survives(data[:length])


@draws(200)
@given(st.binary(max_size=400))
def test_random_bytes_with_the_right_name(tail: bytes) -> None:
    survives(struct.pack("<I", 8) + b"TFL3" + tail)


@draws(300)
@given(
    name=st.sampled_from(sorted(FILES)),
    places=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=8),
)
def test_any_few_bytes_changed(name: str, places: list[tuple[int, int]]) -> None:
    data = bytearray(FILES[name])
    for place, value in places:
        data[place % len(data)] = value
    survives(bytes(data))


def test_the_same_table_many_times_is_refused_early() -> None:
    """Growth by sharing: an entry costs four bytes and stands for 80,000."""
    data = many_shared_tensors(50_000)
    tracemalloc.start()
    try:
        with pytest.raises(BadModel, match="over and over"):
            load(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * len(data)


def many_shared_tensors(entries: int) -> bytes:
    """A file whose vector of tensors names one large tensor table again and again."""
    packer = Packer(b"TFL3")
    shape = np.ones(20_000, np.int32)
    tensors = [Node("Tensor", {"shape": shape}), *[Node("Tensor", {})] * (entries - 1)]
    graph = Node("SubGraph", {"tensors": tensors})
    packer.root(
        Node("Model", {"version": 3, "buffers": [Node("Buffer", {})], "subgraphs": [graph]})
    )
    data = bytearray(b"".join(packer.chunks()))
    first = data.index(struct.pack("<I", entries)) + 4
    target = first + struct.unpack_from("<I", data, first)[0]
    for place in range(first, first + 4 * entries, 4):
        if target > place:
            struct.pack_into("<I", data, place, target - place)
    return bytes(data)


def test_a_huge_count_is_refused_before_it_is_believed() -> None:
    data = bytearray(FILES["convnet"])
    for place in range(8, len(data) - 4, 4):
        spoiled = bytearray(data)
        struct.pack_into("<I", spoiled, place, 0x7FFFFFFF)
        survives(bytes(spoiled))
