"""What data makes of tensors: the same as running the model and looking."""

import numpy as np
import pytest

from litesmith import BadInput, Builder, Model, Session
from litesmith.calibration.observe import StoredSamples, observe, tools
from litesmith.data.samples import Items
from litesmith.data.sources import open_data
from litesmith.numeric.ranges import WHAT
from tests.zoo import convnet, noise, residual_int8, stateful


def images(count: int = 5) -> np.ndarray:
    return noise(count, 8, 8, 3, seed=3, scale=2)


def computed(model: Model):
    return [t for op in model.main.ops for t in op.outputs]


def test_every_tensor_is_seen_as_the_runtime_computes_it() -> None:
    model = convnet()
    tensors = [*model.main.inputs, *computed(model)]
    data = open_data(images(), model)
    seen = observe(model, tensors, WHAT, data=data)
    assert list(seen) == tensors
    with Session(model) as session:
        answers: list[np.ndarray] = []
        for image in images():
            next(iter(session.inputs.values()))[...] = image
            session.run()
            answers.append(next(iter(session.outputs.values())).copy())
    scores = seen[model.main.outputs[0]]
    assert (scores.low, scores.high) == (np.min(answers), np.max(answers))
    np.testing.assert_allclose(scores.mean, np.mean(answers, axis=0), atol=1e-7)
    given = seen[model.main.inputs[0]]
    assert (given.low, given.high, given.samples) == (images().min(), images().max(), 5)


def test_the_order_of_samples_and_of_tensors_changes_nothing() -> None:
    model = convnet()
    tensors = computed(model)
    forth = observe(model, tensors, WHAT, data=open_data(images(), model))
    back = observe(model, tensors[::-1], WHAT, data=open_data(images()[::-1], model))
    for tensor in tensors:
        mine, other = forth[tensor].state(), back[tensor].state()
        assert all(np.array_equal(mine[name], other[name]) for name in mine)


def test_a_value_that_is_not_a_number_is_named() -> None:
    b = Builder()
    x = b.input("x", (1, 3))
    model = b.model(b.op("LOG", x, name="logarithm"))
    data = open_data(np.array([[1, 2, 3], [1, 2, -3]], np.float32), model)
    with pytest.raises(BadInput, match=r"'logarithm' is infinite or not a number on 1 of 2"):
        observe(model, model.main.outputs, WHAT, data=data)


def test_no_samples_is_no_data() -> None:
    class Nothing:
        source, digest, notes, items = "nothing", "0", (), Items()

        def __len__(self) -> int:
            return 0

        def __iter__(self):
            return iter(())

    with pytest.raises(BadInput, match="nothing: holds no samples"):
        observe(convnet(), convnet().main.outputs, WHAT, data=Nothing())


def test_samples_are_stored_as_the_input_wants() -> None:
    model = residual_int8()
    values = noise(3, 4, 4, 4)
    samples = list(StoredSamples(open_data(values, model), model))
    assert len(samples) == 3
    for (stored,), real in zip(samples, values, strict=True):
        assert stored.dtype == np.int8
        np.testing.assert_allclose((stored + 3.0) * 0.05, [real], atol=0.0251)


def test_tools_run_parts_of_models() -> None:
    model = convnet()
    given = tools(open_data(images(), model))
    with given.opened(model) as run:
        rows = [run(list(sample))[0].copy() for sample in given.samples(model)]
    assert len(rows) == len(given.samples(model)) == 5
    np.testing.assert_allclose([row.sum() for row in rows], 1, rtol=1e-5)


def test_what_the_tensors_do_not_need_is_not_computed() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    early = b.op("ABS", x)
    model = b.model(b.op("CUSTOM", early, custom="Mystery", shape=(1, 4)))
    seen = observe(model, [early], WHAT, data=open_data(noise(4, 4), model))
    assert seen[early].low >= 0


def test_a_model_with_a_state_is_seen_too() -> None:
    model = stateful()
    seen = observe(model, model.main.outputs, WHAT, data=open_data(noise(4, 4), model))
    assert seen[model.main.outputs[0]].samples == 4
