"""Metadata says what it says, and a damaged one says nothing."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import replace

import flatbuffers
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import Model, load
from litesmith.tflite.read_metadata import Metadata, StatedNorm, metadata, vocabulary_file
from litesmith.tflite.write import to_bytes
from tests import zoo
from tests.draws import draws


def described(
    model: Model, mean: Sequence[float] = (), std: Sequence[float] = (), labels: str | None = None
) -> Model:
    """The model with metadata: a normalization of its input, label names of its output."""
    b = flatbuffers.Builder(0)
    tensors = [_input(b, mean, std), _output(b, labels is not None)]
    lists = [_vector(b, [tensor]) for tensor in tensors]
    graph = _table(b, 7, {2: lists[0], 3: lists[1]})
    b.Finish(_table(b, 8, {3: _vector(b, [graph])}), b"M001")
    archive = io.BytesIO()
    if labels is not None:
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("labels.txt", labels)
    content = np.frombuffer(bytes(b.Output()), np.uint8)
    return replace(
        model, metadata=(("TFLITE_METADATA", content),), attached=bytes(archive.getvalue())
    )


def _input(b: flatbuffers.Builder, mean: Sequence[float], std: Sequence[float]) -> int:
    if not mean and not std:
        return _table(b, 7, {})
    numbers = [b.CreateNumpyVector(np.array(v, np.float32)) for v in (mean, std)]
    options = _table(b, 2, {0: numbers[0], 1: numbers[1]})
    threshold = _table(b, 2, {1: _table(b, 1, {})}, {0: 3})
    normalization = _table(b, 2, {1: options}, {0: 1})
    return _table(b, 7, {4: _vector(b, [threshold, normalization])})


def _output(b: flatbuffers.Builder, labelled: bool) -> int:
    if not labelled:
        return _table(b, 7, {})
    file = _table(b, 4, {0: b.CreateString("labels.txt")}, {2: 2})
    return _table(b, 7, {6: _vector(b, [file])})


def _table(
    b: flatbuffers.Builder,
    slots: int,
    offsets: dict[int, int],
    numbers: dict[int, int] | None = None,
) -> int:
    b.StartObject(slots)
    for slot, offset in offsets.items():
        b.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, number in (numbers or {}).items():
        b.PrependUint8Slot(slot, number, 0)
    return b.EndObject()


def _vector(b: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return b.EndVector()


def test_a_model_without_metadata_says_nothing() -> None:
    assert metadata(zoo.convnet()) == Metadata()


def test_normalization_and_labels_are_read() -> None:
    model = described(zoo.convnet(), [127.5], [128], "cat\ndog\r\nthird one\n")
    assert metadata(model) == Metadata(
        (StatedNorm((127.5,), (128.0,)),), ("cat", "dog", "third one")
    )


def test_metadata_survives_writing_and_reading() -> None:
    model = described(zoo.convnet(), [1, 2, 3], [4, 5, 6], "a\nb")
    assert metadata(load(to_bytes(model))) == metadata(model)


def test_equal_channels_are_one_number() -> None:
    found = metadata(described(zoo.convnet(), [0, 0, 0], [255, 255, 255]))
    assert found.inputs == (StatedNorm((0.0,), (255.0,)),)


@pytest.mark.parametrize("std", [[0], [float("nan")], [1, 2], [0, 1, 2]])
def test_an_impossible_normalization_is_left_aside(std: list[float]) -> None:
    found = metadata(described(zoo.convnet(), [0], std))
    assert found.inputs == () and "damaged" in found.problem


def test_a_lost_label_file_costs_the_labels_only() -> None:
    found = metadata(replace(described(zoo.convnet(), [0], [1], "a"), attached=b"no archive"))
    assert found.inputs == (StatedNorm((0.0,), (1.0,)),)
    assert found.labels == () and "'labels.txt' cannot be read" in found.problem


@draws(300)
@given(
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=8),
    st.integers(0, 10_000),
)
def test_no_damage_raises(changes: list[tuple[int, int]], end: int) -> None:
    model = described(zoo.convnet(), [1, 2, 3], [4, 5, 6], "a\nb")
    content = model.metadata[0][1].copy()
    for place, value in changes:
        content[place % content.size] = value
    cut = content[: end % (content.size + 1)]
    found = metadata(replace(model, metadata=(("TFLITE_METADATA", cut),)))
    assert isinstance(found, Metadata)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_no_damage_of_the_archive_raises(how: int) -> None:
    """`inspect` of a model with such an archive ended with status 70."""
    whole, content = described(zoo.convnet(), [0], [1], "a"), io.BytesIO()
    with zipfile.ZipFile(content, "w", how) as archive:
        for name in ("labels.txt", "vocabé.txt"):
            archive.writestr(name, "word\n" * 50)
    good, random = content.getvalue(), np.random.default_rng(0)
    for _ in range(500):
        spoilt = bytearray(good)
        for at in random.integers(0, len(good), 3):
            spoilt[at] = random.integers(0, 256)
        model = replace(whole, attached=bytes(spoilt))
        assert metadata(model).labels or metadata(model).problem
        found = vocabulary_file(model)
        assert found is None or isinstance(found.content, bytes)
