"""What weights hold, counted by hand, and the structure that a written file must keep."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.anatomy.weights import (
    dense_values,
    promises,
    weight_facts,
    zero_share,
)
from litesmith.errors import BadModel
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Quant, Record, Tensor
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests import zoo


def dense(*weights: np.ndarray | Tensor) -> Model:
    """A chain of fully connected layers."""
    b = Builder()
    x = b.input("x", (1, weights[0].shape[1]))
    for weight in weights:
        x = b.op("FULLY_CONNECTED", x, weight, None)
    return b.model(x)


def coded(codes: np.ndarray, dtype: str = "int8") -> Model:
    """One layer with such codes."""
    return dense(Builder().const(codes.astype(np.int8), dtype=dtype, quant=Quant.of(0.1)))


def pruned(*shape: int, share: float = 0.5, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.where(random.random(shape) < share, 0, zoo.noise(*shape, seed=seed + 1))


def clustered(rows: int, columns: int, book: tuple[int, ...]) -> np.ndarray:
    """Codes of a book, with a scale for each row, whose largest code is 127."""
    codes = np.random.default_rng(3).choice(book, (rows, columns))
    codes[:, 0] = 127
    scales = np.linspace(0.001, 0.01, rows)[:, None]
    return (codes * scales).astype(np.float32)


def test_counts_by_hand() -> None:
    (facts,) = weight_facts(dense(np.array([[1, 0, -0.0, 2], [2, 2, 3, 0]], np.float32)))
    assert (facts.op, facts.dtype, facts.elements) == ("FULLY_CONNECTED", "float32", 8)
    assert (facts.zeros, facts.unique, facts.codes, facts.bits) == (3, 4, None, 2)
    assert zero_share([facts]) == 3 / 8
    assert zero_share([]) == 0


def test_a_zero_of_codes_is_the_zero_point() -> None:
    codes = np.array([[0, 100, 100, 7], [100, 0, 0, 9]], np.uint8)
    b = Builder()
    x = b.input("x", (1, 4), "uint8", Quant.of(0.1, 3))
    weight = b.const(codes, quant=Quant.of(0.01, 100))
    (facts,) = weight_facts(b.model(b.op("FULLY_CONNECTED", x, weight, None, quant=Quant.of(1))))
    assert (facts.zeros, facts.unique) == (3, 4)


def test_packed_codes_are_counted_one_by_one() -> None:
    model = zoo.int4_weights()
    (facts,) = weight_facts(model)
    values = next(iter(layers_of(model.main).values())).weight.values()
    assert facts.elements == values.size == 48
    assert (facts.zeros, facts.unique) == (int((values == 0).sum()), np.unique(values).size)


def test_zeros_that_a_sparse_file_leaves_out_count() -> None:
    (facts,) = weight_facts(zoo.sparse())
    assert facts.sparse
    assert (facts.elements, facts.zeros, facts.unique) == (8, 5, 4)


def test_a_clustered_weight_has_its_codes_not_its_floats() -> None:
    (facts,) = weight_facts(dense(clustered(8, 64, (-127, -20, 0, 31, 127))))
    assert facts.codes == facts.values == 5
    assert facts.unique > 8
    assert facts.bits == 3


def test_a_shared_weight_counts_once_and_an_unpacked_one_as_it_is_stored() -> None:
    b = Builder()
    weight = b.const(zoo.noise(4, 4))
    x = b.op("FULLY_CONNECTED", b.input("x", (1, 4)), weight, None)
    assert len(weight_facts(b.model(b.op("FULLY_CONNECTED", x, weight, None)))) == 1
    (facts,) = weight_facts(zoo.half_weights())
    assert facts.dtype == "float16"


@pytest.mark.parametrize("kind", ["GATHER", "EMBEDDING_LOOKUP"])
def test_tables_and_large_constants_are_parameters_and_biases_are_not(kind: str) -> None:
    b = Builder()
    rows, table = b.input("i", (1,), "int32"), b.const(pruned(32, 300), name="table")
    order = (table, rows) if kind == "GATHER" else (rows, table)
    x = b.op("ADD", b.op(kind, *order), b.const(zoo.noise(1, 300), name="offset"))
    x = b.op("MUL", x, zoo.noise(1, 1))
    x = b.op("FULLY_CONNECTED", x, b.const(zoo.noise(260, 300), name="weight"), zoo.noise(260))
    facts = weight_facts(b.model(x))
    assert [(one.name, one.op, one.elements, one.is_layer) for one in facts] == [
        ("weight", "FULLY_CONNECTED", 260 * 300, True),
        ("table", kind, 32 * 300, False),
        ("offset", "ADD", 300, False),
    ]
    zeros = int((pruned(32, 300) == 0).sum())
    assert zero_share(facts) == zeros / (260 * 300 + 32 * 300 + 300)


def test_a_quantized_table_has_its_zero_point_for_a_zero_and_settings_are_no_parameters() -> None:
    b = Builder()
    codes = np.random.default_rng(0).integers(0, 256, (64, 8)).astype(np.uint8)
    table = b.const(codes, quant=Quant.of(0.1, 77))
    places = b.const(np.arange(512, dtype=np.int32) % 64)
    b.input("x", (1, 4))
    (facts,) = weight_facts(b.model(b.op("GATHER", table, places, quant=Quant.of(0.1, 77))))
    assert (facts.elements, facts.zeros) == (512, int((codes == 77).sum()))


@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_model_has_facts_and_keeps_its_own_promises(name: str) -> None:
    model = zoo.MODELS[name]()
    for facts in weight_facts(model):
        assert 0 <= facts.zeros <= facts.elements
        assert 1 <= facts.unique <= facts.elements
        assert facts.values <= facts.unique
    assert promises(model, load(to_bytes(model))).broken == ()


def _level(places: np.ndarray | None, size: int) -> Record:
    """One dimension below rows: all places, or those where a mask (rows, places) is True."""
    if places is None:
        return Record("DimensionMetadata", {"dense_size": size})
    ends = np.concatenate([[0], np.cumsum(places.sum(axis=1))]).astype(np.int32)
    columns = np.nonzero(places)[1].astype(np.int32)
    vectors = [Record("Int32Vector", {"values": numbers}) for numbers in (ends, columns)]
    fields = {"array_segments": vectors[0], "array_indices": vectors[1]}
    return Record("DimensionMetadata", {"format": "SPARSE_CSR", **fields})


def blocks_of_four(weight: np.ndarray) -> Tensor:
    """A matrix in the 1×4 encoding, written from its definition."""
    rows, columns = weight.shape
    blocks = weight.reshape(rows, columns // 4, 4)
    used = blocks.any(axis=2)
    levels = (_level(None, rows), _level(used, 0), _level(None, 4))
    layout = Record(
        "SparsityParameters",
        {"traversal_order": (0, 1, 2), "block_map": (1,), "dim_metadata": levels},
    )
    return Tensor("w", weight.shape, "float32", blocks[used].reshape(-1), sparsity=layout)


@given(st.integers(1, 6), st.integers(1, 5), st.floats(0, 1), st.integers(0, 99))
def test_sparse_weights_become_what_they_were(
    rows: int, blocks: int, share: float, seed: int
) -> None:
    mask = np.random.default_rng(seed).random((rows, blocks)) >= share
    weight = zoo.noise(rows, 4 * blocks, seed=seed) * np.repeat(mask, 4, axis=1)
    np.testing.assert_array_equal(dense_values(blocks_of_four(weight.astype(np.float32))), weight)


def test_plain_sparse_rows_become_what_they_were() -> None:
    weight = zoo.sparse().main.ops[0].inputs[1]
    np.testing.assert_array_equal(dense_values(weight), [[1, 0, 0, 2], [0, 0, 3, 0]])


@pytest.mark.parametrize(
    "change",
    [
        {"traversal_order": (0, 0, 2)},
        {"traversal_order": (0, 1)},
        {"block_map": (7,)},
        {"dim_metadata": ()},
    ],
)
def test_a_damaged_encoding_is_one_line(change: dict[str, tuple[int, ...]]) -> None:
    weight = blocks_of_four(np.repeat(zoo.noise(4, 2), 4, axis=1))
    assert weight.sparsity is not None
    damaged = replace(weight, sparsity=weight.sparsity.set(**change))
    with pytest.raises(BadModel, match="sparse encoding cannot be read"):
        dense_values(damaged)
    (complaint,) = promises(dense(damaged), dense(damaged)).broken
    assert "not compared" in complaint


def test_zeros_are_kept_by_quantizing_and_by_sparse_storage() -> None:
    weight = np.repeat(pruned(16, 8), 4, axis=1).astype(np.float32)
    before = dense(weight)
    for recipe in ("quantize(to=dynamic)", "quantize(to=float16)", "quantize(to=weight-int8)"):
        after = load(to_bytes(apply(before, recipe).model))
        assert promises(before, after) == (1, ())
    assert promises(before, load(to_bytes(dense(blocks_of_four(weight))))) == (1, ())


@given(st.integers(0, 511))
def test_one_zero_that_is_lost_is_noticed(place: int) -> None:
    weight = pruned(8, 64)
    changed = weight.copy()
    changed.flat[place] += 0.5
    second = zoo.noise(5, 8)
    complaints = promises(dense(weight, second), dense(changed, second)).broken
    assert len(complaints) == (weight.flat[place] == 0)
    if complaints:
        assert f"1 of {(weight == 0).sum()} zeros" in complaints[0]


def test_codes_are_kept_by_a_scale_for_each_channel_only() -> None:
    before = dense(clustered(8, 64, (-127, -61, -20, 0, 31, 90, 127)))
    for per_channel in ("true", "false"):
        recipe = f"quantize(to=weight-int8, per_channel={per_channel})"
        found = promises(before, apply(before, recipe).model)
        assert found.layers == 1
        assert [("codes" in text) for text in found.broken] == [True] * (per_channel == "false")


def test_pruning_a_clustered_weight_adds_no_code() -> None:
    weight = clustered(8, 64, (-127, -20, 31, 127))
    assert promises(dense(weight), dense(np.where(pruned(8, 64) == 0, 0, weight))).broken == ()


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_zeros_that_rounding_made_are_no_promise(dtype: str) -> None:
    """Another step may round them the other way."""
    codes = np.rint(np.random.default_rng(0).normal(0, 2, (32, 64))).clip(-7, 7)
    assert promises(coded(codes, dtype), coded(np.where(codes == 0, 1, codes), dtype)) == (0, ())
    many = np.where(np.random.default_rng(1).random(codes.shape) < 0.8, 0, codes)
    assert len(promises(coded(many, dtype), coded(codes, dtype)).broken) == 1


def test_layers_are_found_by_name_where_one_is_gone() -> None:
    b = Builder()
    x = b.input("x", (1, 8))
    first, second = (b.const(pruned(8, 8, seed=n), name=f"w{n}") for n in range(2))
    before = b.model(b.op("FULLY_CONNECTED", b.op("FULLY_CONNECTED", x, first, None), second, None))
    assert promises(before, dense(second)) == (1, ())
    assert promises(before, dense(replace(first, name="w1"))).broken != ()


def test_other_shapes_are_not_compared() -> None:
    assert promises(dense(pruned(8, 8)), dense(zoo.noise(6, 8))) == (0, ())


def test_codes_that_a_cluster_left_are_a_promise_and_rounded_ones_are_not() -> None:
    few = np.random.default_rng(0).choice([-127, -50, 9, 127], (32, 64))
    many = np.random.default_rng(0).integers(-40, 41, (32, 64))
    for codes, broken in ((few, 1), (many, 0)):
        other = codes.copy()
        other[0, 0] = 77
        assert len(promises(coded(codes), coded(other)).broken) == broken
