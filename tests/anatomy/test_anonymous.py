"""A stripped model behaves like the original and tells nothing of it."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from litesmith.anatomy.anonymous import anonymize, random_content
from litesmith.ir.build import Builder
from litesmith.ir.check import check
from litesmith.ir.types import Model, Quant, Record, Tensor
from litesmith.run.session import Session
from litesmith.schema import TABLES
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests import zoo

# Longer runs of bytes than this do not meet by chance.
TELLING = 12


def shape_of(model: Model) -> list[tuple[object, ...]]:
    return [
        (op.kind, op.version, [(t.shape, t.dtype) for t in op.outputs], op.inputs.count(None))
        for _, _, op in model.ops()
    ]


@pytest.mark.parametrize("name", zoo.MODELS)
def test_the_same_ops_shapes_and_sizes(name: str) -> None:
    model = zoo.MODELS[name]()
    stripped = anonymize(model)
    check(stripped)
    again = load(to_bytes(stripped))
    assert shape_of(again) == shape_of(model)
    old, new = ([t for g in m.graphs for t in g.tensors] for m in (model, again))
    assert [t.nbytes for t in new] == [t.nbytes for t in old]
    assert [t.dynamic for t in new] == [t.dynamic for t in old]


@pytest.mark.parametrize("name", [n for n in zoo.MODELS if n not in zoo.NOT_RUNNABLE])
def test_it_runs(name: str) -> None:
    model = zoo.MODELS[name]()
    with Session(anonymize(model)) as session:
        session.run()
        assert len(session.outputs) == len(model.main.outputs)


@pytest.mark.parametrize("name", zoo.MODELS)
def test_no_names_metadata_or_weights_are_inside(name: str) -> None:
    model = zoo.MODELS[name]()
    content = to_bytes(anonymize(model))
    words = {t.name for g in model.graphs for t in g.tensors} | {g.name for g in model.graphs}
    words |= {s.key for s in model.signatures} | {"counter", "made with litesmith", "labels.txt"}
    words |= {op.custom for _, _, op in model.ops()}
    words |= {"min_runtime", "nobody reads this", "weights.bin", "zwei"}
    for word in words:
        assert len(word) < 3 or word.encode() not in content, word
    assert b"\x01\x02\x03" not in content or name != "custom"
    for tensor in (t for g in model.graphs for t in g.tensors):
        # One value or two are the range itself.
        if tensor.data is not None and np.unique(tensor.data).size > 2:
            kept = tensor.quant is None and tensor.dtype in ("int32", "int64")
            assert kept or tensor.data.tobytes()[-TELLING:] not in content, tensor.name


def test_ranges_stay() -> None:
    tensors = [t for name in zoo.MODELS for g in zoo.MODELS[name]().graphs for t in g.tensors]
    for tensor in (t for t in tensors if t.data is not None and t.dtype in ("float32", "int8")):
        assert tensor.data is not None
        made = random_content(tensor, np.random.default_rng(1))
        assert made.dtype == tensor.data.dtype
        least, most = tensor.data.min(), tensor.data.max()
        if made.size > 4 and (tensor.dtype == "int8" or least != most):
            assert (made.min(), made.max()) == (least, most)
        else:
            assert (np.abs(made) <= np.abs(tensor.data).max()).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "float16", "float8_e5m2", "uint4"])
def test_every_storage(dtype: str) -> None:
    values = np.arange(40) % 7
    tensor = Builder().const(values, dtype=dtype)
    made = random_content(tensor, np.random.default_rng(1))
    assert tensor.data is not None
    assert (made.shape, made.dtype) == (tensor.data.shape, tensor.data.dtype)
    assert made.tobytes() != tensor.data.tobytes()


def test_infinite_and_missing_values_do_not_spread() -> None:
    odd = Tensor("t", (4,), data=np.array([np.nan, np.inf, 1, 2], np.float32))
    made = random_content(odd, np.random.default_rng(0))
    assert np.isfinite(made).all()
    none = Tensor("t", (1,), data=np.array([np.nan], np.float32))
    assert random_content(none, np.random.default_rng(0)) == [0]


def test_settings_stay_and_the_seed_decides() -> None:
    model = zoo.careless()
    stripped = anonymize(model)
    for old, new in zip(model.main.ops, stripped.main.ops, strict=True):
        for a, b in zip(old.inputs, new.inputs, strict=True):
            if a is not None and a.data is not None and a.dtype == "int32":
                assert b is not None
                np.testing.assert_array_equal(a.data, b.data)
    assert to_bytes(anonymize(model, seed=1)) == to_bytes(anonymize(model, seed=1))
    assert to_bytes(anonymize(model, seed=1)) != to_bytes(anonymize(model, seed=2))


def test_shared_constants_stay_shared() -> None:
    stripped = anonymize(zoo.same_names())
    a, b = (t for t in stripped.main.tensors if t.dtype == "float32" and t.data is not None)
    assert np.shares_memory(a.data, b.data)  # type: ignore[arg-type]


def test_custom_options_are_zeros_unless_kept() -> None:
    options = [
        anonymize(zoo.custom(), keep_custom_options=keep).main.ops[0].rest["custom_options"]
        for keep in (False, True)
    ]
    assert options == [b"\0\0\0", b"\x01\x02\x03"]


def test_few_numbers_are_not_told() -> None:
    for values in ([0.7310585], [0.7310585] * 9, [0.25, 0.7310585], [[1.5], [2.5], [3.5]]):
        tensor = Builder().const(np.float32(values))
        assert tensor.data is not None
        made = random_content(tensor, np.random.default_rng(1))
        assert not np.isin(made, tensor.data).any()
        assert (np.sign(made) == np.sign(tensor.data)).all()


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "int4", "float8_e5m2", "bfloat16"]
)
def test_few_integers_are_not_told_either(dtype: str) -> None:
    """The bias of a head with one output stood in the bundle as it was."""
    quant = None if "float" in dtype else Quant.of(0.5)
    for values in ([5], [6, 7], [[5], [7], [6]]):
        signed = np.array(values) * (-1 if dtype == "int8" else 1)
        bias = Builder().const(signed, dtype=dtype, quant=quant)
        b = Builder()
        x = b.op("CUSTOM", b.input("x", (1, 4)), bias, custom="c", shape=(1, 4))
        told = anonymize(b.model(x)).main.ops[0].inputs[1]
        assert told is not None
        assert not np.isin(told.values(), bias.values()).any()


def test_names_of_custom_ops_are_numbers_unless_public_or_kept() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    public = ["FlexErf", "TFLite_Detection_PostProcess"]
    for name in ("SecretOp", "OtherSecret", "SecretOp", "FlexibleSecret", *public):
        x = b.op("CUSTOM", x, custom=name, shape=(1, 4))
    model = b.model(x)
    names = [op.custom for op in anonymize(model).main.ops]
    assert names == ["custom0", "custom1", "custom0", "custom2", *public]
    kept = [op.custom for op in anonymize(model, keep_custom_options=True).main.ops]
    assert kept == [op.custom for op in model.main.ops]


# Texts of options that are no names of enumerations.
TEXTS = {
    table: [one.name for one in fields.values() if one.kind == "string"]
    for table, fields in TABLES.items()
    if table.endswith("Options") and any(one.kind == "string" for one in fields.values())
}


def with_texts(table: str, text: str) -> Model:
    """Two ops alike, whose options have a text wherever one can be."""
    b = Builder()
    x = b.input("x", (1, 4))
    made = [b.op("ABS", x), b.op("ABS", x)]
    record = Record(table, MappingProxyType(dict.fromkeys(TEXTS[table], text)))
    b.ops = [replace(op, options=record) for op in b.ops]
    return b.model(*made)


@pytest.mark.parametrize("table", TEXTS)
def test_no_text_of_an_option_is_told(table: str) -> None:
    """A composite and a call had their names still, which whoever made them chose."""
    model = with_texts(table, "acme.secret")
    assert b"acme.secret" in to_bytes(model)
    assert b"acme.secret" not in to_bytes(anonymize(model))
    one, two = (op.options for op in anonymize(model).main.ops)
    assert one == two


def test_composites_that_delegates_look_for_keep_their_names() -> None:
    model = with_texts("StableHLOCompositeOptions", "odml.rms_norm")
    assert b"odml.rms_norm" in to_bytes(anonymize(model))
