"""The embedding is found where it is, and a cut model computes it as the whole one did."""

from collections.abc import Callable

import numpy as np
import pytest

from litesmith import BadInput, Builder, Model
from litesmith.ir.check import check
from litesmith.tflite.write import to_bytes
from litesmith.transfer.embedding import cut_at, embedding_of
from tests.runtime import run
from tests.zoo import noise


def features(b: Builder) -> object:
    x = b.input("image", (1, 8, 8, 3))
    return b.op("RELU", b.op("CONV_2D", x, noise(10, 3, 3, 3), noise(10, seed=1)))


def dense() -> Model:
    b = Builder()
    pooled = b.op("MEAN", features(b), [1, 2], name="pooled")
    scores = b.op("FULLY_CONNECTED", pooled, noise(4, 10, seed=2), noise(4, seed=3))
    return b.model(b.op("SOFTMAX", scores), signature="serve")


def pointwise() -> Model:
    """As MobileNet v1: a convolution of one pixel, and a shape without it."""
    b = Builder()
    pooled = b.op("MEAN", features(b), [1, 2], keep_dims=True, name="pooled")
    scores = b.op("CONV_2D", pooled, noise(4, 1, 1, 10, seed=2), noise(4, seed=3))
    return b.model(b.op("SOFTMAX", b.op("RESHAPE", scores, [1, 4])))


def extractor() -> Model:
    b = Builder()
    return b.model(b.op("MEAN", features(b), [1, 2], name="pooled"))


def logits() -> Model:
    b = Builder()
    pooled = b.op("MEAN", features(b), [1, 2], name="pooled")
    return b.model(b.op("FULLY_CONNECTED", pooled, noise(4, 10, seed=2), noise(4, seed=3)))


def averaged() -> Model:
    """As SqueezeNet: classes are averages over a map."""
    b = Builder()
    scores = b.op("CONV_2D", features(b), noise(4, 1, 1, 10, seed=2), noise(4, seed=3))
    return b.model(b.op("SOFTMAX", b.op("MEAN", scores, [1, 2])))


def segmenter() -> Model:
    """A map goes out, and an average over one is used on the way."""
    b = Builder()
    x = features(b)
    pooled = b.op("MEAN", x, [1, 2], keep_dims=True, name="pooled")
    return b.model(b.op("MUL", x, b.op("LOGISTIC", pooled)))


MODELS = (dense, pointwise, extractor, logits, segmenter, averaged)


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_it_is_found_and_cut(make: Callable[[], Model]) -> None:
    model = make()
    tensor = embedding_of(model).tensor
    assert tensor.shape == (1, 8, 8, 10) if make is averaged else tensor.name == "pooled"
    made = cut_at(model, tensor)
    check(made)
    (vector,) = run(to_bytes(made))
    assert vector.shape == (1, 10)
    assert len(made.main.ops) <= len(model.main.ops)
    assert all(len(s.outputs) == 1 for s in made.signatures)


@pytest.mark.parametrize("make", [dense, averaged], ids=lambda make: make.__name__)
def test_the_old_head_on_the_new_vector_gives_the_old_scores(make: Callable[[], Model]) -> None:
    model = make()
    made = cut_at(model, embedding_of(model).tensor)
    (vector,), (chances,) = run(to_bytes(made), seed=7), run(to_bytes(model), seed=7)
    scores = vector @ noise(4, 10, seed=2).T + noise(4, seed=3)
    if make is averaged:
        scores = vector @ noise(4, 1, 1, 10, seed=2)[:, 0, 0].T + noise(4, seed=3)
    expected = np.exp(scores) / np.exp(scores).sum()
    assert np.allclose(chances, expected, atol=1e-5)


def test_a_tensor_is_named_by_name_or_index_and_a_map_is_averaged() -> None:
    model = dense()
    *_, wanted = (t for t in model.main.tensors if t.shape == (1, 8, 8, 10))
    place = model.main.tensors.index(wanted)
    assert embedding_of(model, str(place)).tensor is wanted
    assert embedding_of(model, wanted.name).tensor is wanted
    (ours,) = run(to_bytes(cut_at(model, wanted)), seed=7)
    (theirs,) = run(to_bytes(cut_at(model, embedding_of(model).tensor)), seed=7)
    assert np.allclose(ours, theirs, atol=1e-6)


def test_one_that_cannot_be_found_is_asked_for_with_candidates() -> None:
    b = Builder()
    model = b.model(b.op("RELU", features(b), name="map"))
    with pytest.raises(BadInput, match=r"--at: \d+ \(map\) 1×8×8×10"):
        embedding_of(model)
    with pytest.raises(BadInput, match="--at nothing: no op makes"):
        embedding_of(model, "nothing")


@pytest.mark.parametrize("shape", [(5,), (1, 6, 5), (6, 5)])
def test_vectors_of_every_rank_become_rows(shape: tuple[int, ...]) -> None:
    b = Builder()
    x = b.input("x", (1, 30))
    size = int(np.prod(shape))
    flat = b.op("FULLY_CONNECTED", x, noise(size, 30), None)
    made = b.op("TANH", b.op("RESHAPE", flat, list(shape)), name="it")
    model = b.model(made)
    (vector,) = run(to_bytes(cut_at(model, embedding_of(model, "it").tensor)))
    assert vector.shape == (1, 5)
