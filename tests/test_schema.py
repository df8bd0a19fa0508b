"""The schema in words must be the schema of the runtime's own module, and survive a round trip."""

import re

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as official

from litesmith import schema
from litesmith.tflite.unpack import Source, Table
from litesmith.tflite.write import Node, Packer

OBJECTS = {
    name.removesuffix("T"): value
    for name, value in vars(official).items()
    if name.endswith("T") and isinstance(value, type) and hasattr(value, "Pack")
}


def python_name(field: str) -> str:
    """The attribute that the generated module has for a field."""
    first, *rest = field.split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def official_enum(name: str) -> dict[str, int]:
    return {k: v for k, v in vars(getattr(official, name)).items() if not k.startswith("_")}


def test_every_table_of_the_runtime_is_known() -> None:
    assert set(OBJECTS) == set(schema.TABLES)


@pytest.mark.parametrize("name", schema.ENUMS)
def test_enum(name: str) -> None:
    assert official_enum(name) == schema.ENUMS[name].numbers


@pytest.mark.parametrize("name", schema.UNIONS)
def test_union(name: str) -> None:
    members = {"NONE": 0} | {table: i + 1 for i, table in enumerate(schema.UNIONS[name])}
    assert official_enum(name) == members


@pytest.mark.parametrize("name", schema.TABLES)
def test_no_field_is_missing(name: str) -> None:
    """Deprecated fields have no attribute, so ours may be more."""
    theirs = {attribute for attribute in vars(OBJECTS[name]()) if not attribute.endswith("Type")}
    theirs |= {a for a in vars(OBJECTS[name]()) if a.endswith("Type") and a[:-4] not in theirs}
    assert theirs <= {python_name(field) for field in schema.TABLES[name]}


def sample(field: schema.Field, seed: int) -> object:
    """A value that is not the default, of the type that the generated module wants."""
    random = np.random.default_rng(seed)
    if field.kind == "string":
        return f"text {seed}".encode()
    if field.kind == "enum" and not field.vector:
        return (int(field.default) + 1) % max(2, len(schema.ENUMS[field.type].names))
    if field.vector and field.kind in ("scalar", "enum"):
        return random.integers(0, 2, 3).astype(field.stored)
    if field.stored == "bool":
        return not field.default
    return 1.5 if field.stored == "float32" else int(random.integers(2, 100))


def simple_fields(name: str) -> list[schema.Field]:
    return [f for f in schema.TABLES[name].values() if f.kind not in ("table", "union")]


@pytest.mark.parametrize("name", schema.TABLES)
def test_fields_read_as_the_runtime_wrote_them(name: str) -> None:
    theirs = OBJECTS[name]()
    values = {f.name: sample(f, seed) for seed, f in enumerate(simple_fields(name))}
    values = {k: v for k, v in values.items() if hasattr(theirs, python_name(k))}
    for field, value in values.items():
        setattr(theirs, python_name(field), value)
    builder = flatbuffers.Builder(256)
    builder.Finish(theirs.Pack(builder))
    data = memoryview(bytes(builder.Output()))
    source = Source(data)
    table = Table(source, source.follow(0, "root"), name)
    assert not source.unknown
    for field, value in values.items():
        assert_same(table[field], value, schema.TABLES[name][field])


@pytest.mark.parametrize("name", schema.TABLES)
def test_the_runtime_reads_fields_as_we_wrote_them(name: str) -> None:
    values = {f.name: sample(f, seed) for seed, f in enumerate(simple_fields(name))}
    packer = Packer(b"TEST")
    ours = {k: v.decode() if isinstance(v, bytes) else v for k, v in values.items()}
    packer.root(Node(name, ours))
    data = b"".join(packer.chunks())
    theirs = OBJECTS[name].InitFromPackedBuf(data, 0)
    for field, value in values.items():
        if hasattr(theirs, python_name(field)):
            np.testing.assert_array_equal(getattr(theirs, python_name(field)), value)


def assert_same(ours: object, theirs: object, field: schema.Field) -> None:
    if isinstance(theirs, bytes):
        assert ours == theirs.decode()
    elif field.kind == "enum" and not field.vector:
        names = dict(enumerate(schema.ENUMS[field.type].names))
        assert ours == names.get(theirs, theirs)  # type: ignore[call-overload]
    else:
        np.testing.assert_array_equal(ours, theirs)


def test_words_are_lower_case_and_once() -> None:
    for name, fields in schema.TABLES.items():
        slots = [field.slot for field in fields.values()]
        assert len(set(slots)) == len(slots), name
        assert all(re.fullmatch(r"[a-z][a-z0-9_]*", field) for field in fields), name
