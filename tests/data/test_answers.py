"""What models answer: in order, the same however many workers there are, in real numbers."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from litesmith import Builder, Quant
from litesmith.data.answers import is_stateless, outputs_of
from litesmith.data.samples import Sample
from litesmith.errors import BadInput
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Model
from tests import zoo

ALL = ["convnet", "residual_int8", "legacy_uint8", "hybrid", "branches", "loop"]


def samples(model: Model, count: int) -> list[Sample]:
    """Random samples for a model, real numbers where an input has a scale."""
    random = np.random.default_rng(0)
    made = []
    for number in range(count):
        arrays = []
        for t in model.main.inputs:
            real = random.normal(0, 1, t.shape)
            is_real = t.quant is not None or t.dtype == "float32"
            arrays.append(real.astype(np.float32) if is_real else np.ones(t.shape, t.dtype))
        made.append(Sample(tuple(arrays), name=str(number)))
    return made


def answers(
    models: list[Model], given: list[Sample], **settings: int | str
) -> list[tuple[str, list[tuple[np.ndarray, ...]]]]:
    return list(outputs_of(models, given, lambda s, found: (s.name, list(found)), **settings))


@pytest.mark.parametrize("name", ALL)
def test_the_number_of_workers_changes_nothing(name: str) -> None:
    model = zoo.MODELS[name]()
    given = samples(model, 45)
    alone, many = (answers([model], given, workers=n) for n in (1, 3))
    assert [name for name, _ in alone] == [s.name for s in given] == [name for name, _ in many]
    for (_, (a,)), (_, (b,)) in zip(alone, many, strict=True):
        for one, other in zip(a, b, strict=True):
            np.testing.assert_array_equal(one, other)
    last = [found[-1] for _, (found,) in alone]
    assert any((one != last[0]).any() for one in last)


def test_several_models_get_each_sample_in_one_pass() -> None:
    model = zoo.convnet()
    given = samples(model, 20)
    reads = 0

    def read() -> Iterator[Sample]:
        nonlocal reads
        for sample in given:
            reads += 1
            yield sample

    found = list(outputs_of([model, model, model], read(), lambda _, all_of: len(all_of)))
    assert (found, reads) == ([3] * 20, 20)


def test_outputs_with_a_scale_are_real_numbers() -> None:
    b = Builder()
    x = b.input("x", (1, 4), "int8", Quant.of(0.5, 3))
    model = b.model(b.op("RELU", x, quant=Quant.of(0.5, 3), version=2))
    sample = Sample((np.array([[-1.5, 0.4, 2.5, 200]], np.float32),))
    ((_, ((found,),)),) = answers([model], [sample])
    assert found.dtype == np.float32
    assert found.tolist() == [[0, 0.5, 2.5, 62]]


def test_repeated_names_and_signatures_keep_the_order_of_the_graph() -> None:
    b = Builder()
    a, c = b.input("x", (1, 2)), b.input("x", (1, 2))
    plain = b.model(b.op("SUB", a, c))
    b = Builder()
    a, c = b.input("second", (1, 2)), b.input("first", (1, 2))
    signed = b.model(b.op("SUB", a, c), signature="serve")
    sample = Sample((np.full((1, 2), 5, np.float32), np.full((1, 2), 3, np.float32)))
    for model in (plain, signed):
        ((_, ((found,),)),) = answers([model], [sample])
        assert found.tolist() == [[2, 2]]


@pytest.mark.parametrize("name", ["", "\0", "\0rest", "a\0b", "\x1b[2J"])
def test_arguments_with_odd_names(name: str) -> None:
    b = Builder()
    model = b.model(b.op("NEG", b.input("x", (1, 2))), signature="serve")
    (signature,) = model.signatures
    signature = replace(signature, inputs=((name, model.main.inputs[0]),))
    sample = Sample((np.full((1, 2), 5, np.float32),))
    ((_, ((found,),)),) = answers([replace(model, signatures=(signature,))], [sample])
    assert found.tolist() == [[-5, -5]]


def test_what_remembers_runs_in_order_in_one_worker() -> None:
    model = zoo.variables()
    assert not is_stateless(model)
    assert is_stateless(zoo.convnet())
    assert is_stateless(zoo.loop())
    given = samples(model, 40)
    first, again = answers([model], given), answers([model], given)
    for (_, (a,)), (_, (b,)) in zip(first, again, strict=True):
        np.testing.assert_array_equal(a[0], b[0])


def test_what_fails_in_a_worker_comes_out_and_leaves_nothing_running() -> None:
    model = zoo.convnet()

    def keep(sample: Sample, _: object) -> str:
        if sample.name == "13":
            raise BadInput("thirteen")
        return sample.name

    seen = []
    with pytest.raises(BadInput, match="thirteen"):
        seen.extend(outputs_of([model], samples(model, 100), keep))
    odd = Sample((np.zeros((1, 4, 4, 3), np.float32),))
    with pytest.raises(BadInput, match=r"\(1, 4, 4, 3\) was given"):
        answers([model], [odd])
    with pytest.raises(BadInput, match="has 2 arrays; the model has 1 inputs"):
        answers([model], [Sample((odd.inputs[0], odd.inputs[0]))])


def test_what_is_free_has_the_size_of_each_sample() -> None:
    model = free_size()
    given = [
        Sample((np.full((1, size, size + 1, 3), size, np.float32),), name=str(size))
        for size in (4, 4, 7, 1, 5)
    ]
    for workers in (1, 2):
        for name, both in answers([model, model], given, workers=workers):
            for (one,) in both:
                np.testing.assert_allclose(one, [[float(name)] * 3], rtol=1e-5)
    with pytest.raises(BadInput, match="was given"):
        answers([model], [Sample((np.zeros((1, 4, 4, 2), np.float32),))])
    with pytest.raises(BadInput, match="was given"):
        answers([model], [Sample((np.zeros((2, 4, 4, 3), np.float32),))])


def free_size() -> Model:
    """A model that gives the mean of each channel of an image of any size."""
    b = Builder()
    x = b.input("x", (1, 1, 1, 3))
    model = b.model(b.op("MEAN", x, np.array([1, 2], np.int32), keep_dims=False))
    free = replace(x, dynamic=(1, -1, -1, 3))
    return with_graphs(model, [rewrite(model.main, tensors={x: free})], {x: free})
