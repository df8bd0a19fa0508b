"""What is written about a model is what is read of it, by others too."""

import io
import zipfile

import flatbuffers
import numpy as np
import pytest
from flatbuffers.table import Table
from hypothesis import given
from hypothesis import strategies as st

from litesmith import BadInput, Model, Session, load
from litesmith.tflite.read_metadata import StatedNorm, metadata
from litesmith.tflite.write import to_bytes
from litesmith.tflite.write_metadata import Described, describe, label_lines
from tests import zoo
from tests.draws import draws

numbers = st.floats(-1000, 1000, width=32).filter(lambda x: abs(x) > 1e-3)
names = st.lists(
    st.text(min_size=1, max_size=12).filter(lambda t: t.strip()), min_size=1, max_size=6
).filter(lambda found: len(set(_lines(found))) == len(found))


def _lines(found: list[str]) -> list[str]:
    try:
        return list(label_lines(found))
    except BadInput:
        return []


@draws(60)
@given(st.lists(numbers, min_size=3, max_size=3), st.lists(numbers, min_size=3, max_size=3), names)
def test_what_is_written_is_read(mean: list[float], std: list[float], labels: list[str]) -> None:
    norm = StatedNorm(tuple(mean), tuple(std))
    made = describe(zoo.convnet(), [Described(norm, channels=3)], labels)
    found = metadata(load(to_bytes(made)))
    assert found.problem == ""
    assert found.labels == label_lines(labels)
    (read,) = found.inputs
    assert read is not None
    assert np.allclose(np.broadcast_to(read.mean, 3), mean)
    assert np.allclose(np.broadcast_to(read.std, 3), std)


def test_the_rate_of_audio_is_read() -> None:
    made = describe(zoo.convnet(), [Described(rate=44_100)], ["a", "b"])
    assert metadata(load(to_bytes(made))).rate == 44_100


def test_the_runtime_opens_it_and_answers_the_same() -> None:
    plain = zoo.convnet()
    made = describe(plain, [Described(channels=3)], ["one", "two"])
    answers = []
    for model in (plain, made):
        with Session(to_bytes(model)) as session:
            (name,) = session.inputs
            session.inputs[name][:] = 0.5
            session.run()
            answers.append({key: value.copy() for key, value in session.outputs.items()})
    assert all(np.array_equal(answers[0][key], answers[1][key]) for key in answers[0])


def test_other_metadata_stays_and_an_old_description_goes() -> None:
    model = describe(zoo.convnet(), [Described()], ["old", "older"])
    kept = ("min_runtime_version", np.frombuffer(b"1.2.3", np.uint8))
    again = describe(
        Model(**{**_parts(model), "metadata": (kept, *model.metadata)}), [Described()], ["new"]
    )
    assert [name for name, _ in again.metadata] == ["min_runtime_version", "TFLITE_METADATA"]
    assert metadata(again).labels == ("new",)


def _parts(model: Model) -> dict:
    return {name: getattr(model, name) for name in model.__dataclass_fields__}


def test_a_plain_zip_reader_finds_the_labels() -> None:
    made = describe(zoo.convnet(), [Described()], ["löwe", "a, b", "two\nlines"])
    with zipfile.ZipFile(io.BytesIO(to_bytes(made))) as archive:
        assert archive.read("labels.txt").decode() == "löwe\na, b\ntwo\\nlines\n"


def test_the_flatbuffers_library_reads_the_same_tables() -> None:
    norm = StatedNorm((1.0, 2.0, 3.0), (4.0, 5.0, 6.0))
    made = describe(zoo.convnet(), [Described(norm, channels=3)], ["a", "b"])
    content = made.metadata[-1][1].tobytes()
    assert content[4:8] == b"M001"
    start = flatbuffers.encode.Get(flatbuffers.packer.uoffset, content, 0)
    graph = _tables(Table(content, start), 3)[0]
    (given_input,), (output,) = _tables(graph, 2), _tables(graph, 3)
    (unit,) = _tables(given_input, 4)
    assert unit.Get(flatbuffers.number_types.Uint8Flags, unit.Pos + unit.Offset(4)) == 1
    options = _table(unit, 1)
    std = options.GetVectorAsNumpy(flatbuffers.number_types.Float32Flags, options.Offset(6))
    assert std.tolist() == [4.0, 5.0, 6.0]
    (file,) = _tables(output, 6)
    assert file.String(file.Pos + file.Offset(4)) == b"labels.txt"
    assert file.Get(flatbuffers.number_types.Uint8Flags, file.Pos + file.Offset(8)) == 2


def _tables(table: Table, slot: int) -> list[Table]:
    place = table.Offset(4 + 2 * slot)
    start = table.Vector(place)
    return [
        Table(table.Bytes, table.Indirect(start + 4 * n)) for n in range(table.VectorLen(place))
    ]


def _table(table: Table, slot: int) -> Table:
    return Table(table.Bytes, table.Indirect(table.Pos + table.Offset(4 + 2 * slot)))


@pytest.mark.parametrize("labels", [["a", "a"], ["a", " a"], ["  "]])
def test_names_that_a_list_cannot_tell_apart_are_refused(labels: list[str]) -> None:
    with pytest.raises(BadInput, match="must differ"):
        label_lines(labels)
