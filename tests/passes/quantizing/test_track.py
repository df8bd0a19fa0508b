"""A model run in parts computes what it computes as a whole."""

from itertools import product

import numpy as np
import pytest

from litesmith.calibration.observe import tools
from litesmith.errors import CannotApply
from litesmith.ir.build import Builder
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.recipe import apply
from litesmith.passes.quantizing.track import Track
from litesmith.tflite.write import to_bytes
from tests.pairwise import sampled
from tests.quantized import real, results
from tests.refusals import fitting
from tests.zoo import MODELS
from tests.zoo_float import FLOATS, Few, context, dense, few

# A recipe and by how much, in parts of the largest value, a layer's input may differ where what
# is run stands in for the model's own kernels.
RECIPES = {
    "": 1e-5,
    "quantize": 0.0,
    "quantize(io=uint8)": 0.0,
    "quantize(to=w4a8)": 0.1,
    "quantize(to=int16x8)": 0.002,
    "quantize(to=int16x8, io=int16)": 0.002,
    "quantize(to=weight-int8)": 1e-5,
    "quantize(to=dynamic)": 1e-5,
    "quantize(only=[0]) | quantize(to=int16x8)": 0.02,
}

STATELESS = sorted(set(FLOATS) - {"recurrent"})


def exposing(model: Model, tensors: list[Tensor]) -> Model:
    graph = regraph(model.main, outputs=tensors)
    return with_graphs(model, (graph, *model.graphs[1:]))


def track(model: Model, data: Few, **more: int) -> Track:
    given = tools(data, threads=1)
    return Track(model, given, list(given.samples(model)), **more)


def tracked(model: Model, data: Few, **more: int) -> list[np.ndarray]:
    """The real numbers that each layer reads, taken part by part."""
    on_track = track(model, data, **more)
    seen: list[np.ndarray] = []
    on_track.run(0, {})
    for number, layer in enumerate(on_track.layers, 1):
        if layer.data.is_const:
            on_track.run(number, {})
            continue
        values, quant = on_track.values(layer.data)
        seen.append(real(Tensor("", values.shape, str(values.dtype), quant=quant), values))
        on_track.run(number, {})
    return seen


FITTING = fitting(product(RECIPES, STATELESS))
BY_SCHEME = (lambda pair: (RECIPES[pair[0]], pair[1]), lambda pair: pair[0])


@pytest.mark.parametrize(("recipe", "name"), sampled(FITTING, *BY_SCHEME))
def test_layers_read_what_they_read_in_the_whole_model(recipe: str, name: str) -> None:
    model = FLOATS[name]()
    data = few(model, 4)
    model = apply(model, recipe, context(model, 4)).model
    before = to_bytes(model)
    read = [layer.data for layer in layers_of(model.main).values() if not layer.data.is_const]
    whole = results(exposing(model, list(dict.fromkeys(read))), data) if read else []
    expected = dict(zip(dict.fromkeys(read), whole, strict=True))
    for tensor, got in zip(read, tracked(model, data), strict=True):
        wanted = expected[tensor]
        atol = RECIPES[recipe] * np.abs(wanted).max()
        np.testing.assert_allclose(got, wanted, rtol=0, atol=atol + 1e-9)
    assert to_bytes(model) == before


def test_replaced_ops_are_run_in_place() -> None:
    model = FLOATS["residual"]()
    data = few(model, 3)
    on_track = track(model, data)
    on_track.run(0, {})
    first, second = on_track.layers[:2]
    assert first.bias is not None
    silent = first.with_parts(
        Tensor("w", first.weight.shape, data=np.zeros(first.weight.shape, np.float32)), first.bias
    )
    on_track.run(1, {first.op: silent})
    values, _ = on_track.values(second.data)
    wanted = np.maximum(first.bias.values(), 0)
    np.testing.assert_allclose(values, np.broadcast_to(wanted, values.shape))


def test_nothing_is_held_in_the_end() -> None:
    model = FLOATS["same_twice"]()
    on_track = track(model, few(model, 3))
    for number in range(len(on_track.layers) + 1):
        on_track.run(number, {})
    with pytest.raises(KeyError):
        on_track.values(on_track.layers[0].data)


def test_large_values_lie_in_a_file() -> None:
    model = FLOATS["residual"]()
    data = few(model, 3)
    held = tracked(model, data)
    for a, b in zip(held, tracked(model, data, in_memory=0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_variables_are_refused() -> None:
    model = MODELS["variables"]()
    with pytest.raises(CannotApply, match="state"):
        track(model, few(model))


@pytest.mark.parametrize("size", [(), (1,)])
def test_sizes_that_depend_on_values(size: tuple[int, ...]) -> None:
    """How many numbers are positive differs from sample to sample."""
    b = Builder()
    y = dense(b, b.input("x", (1, 40)), 8)
    places = b.op("WHERE", b.op("GREATER", y, np.float32(0)), shape=(1, 2), dtype="int64")
    chosen = b.op("GATHER_ND", y, places, shape=(1,))
    total = b.op("SUM", chosen, [0], shape=size, keep_dims=bool(size))
    model = b.model(chosen, dense(b, b.op("RESHAPE", total, [1, 1]), 4))
    before = apply(model, "quantize", context(model)).model
    assert len(layers_of(before.main)) == 2
    try:
        apply(model, "quantize | correct", context(model))
    except CannotApply as error:
        assert "depend" in str(error)


def test_an_empty_constant_is_no_input() -> None:
    """Old converters leave the shape of a scalar as a tensor of no elements and no content."""
    b = Builder()
    x = dense(b, b.input("x", (1, 8)), 1)
    empty = Tensor("shape", (0,), "int32")
    scalar = b.op("RESHAPE", x, empty, shape=())
    model = b.model(dense(b, b.op("MUL", b.op("RESHAPE", scalar, [1, 1]), np.ones(8, "f4")), 4))
    made = apply(model, "quantize | correct", context(model, 4)).model
    assert results(made, few(model, 2))[0].shape[-1] == 4
