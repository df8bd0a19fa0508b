"""Random graphs: whatever is built, tidying keeps its results and its checks."""

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from litesmith.anatomy.model_diff import differences
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import apply
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes
from tests.draws import draws
from tests.runtime import run
from tests.zoo import noise

Grow = Callable[[Builder, Tensor, int], Tensor]


def conv(b: Builder, x: Tensor, pick: int) -> Tensor:
    channels = x.shape[3]
    padding = ("SAME", "VALID")[pick % 2 if min(x.shape[1:3]) >= 3 else 0]
    stride = 1 + pick % 3 % 2
    weight = noise(2, 3, 3, channels, seed=pick)
    return b.op(
        "CONV_2D", x, weight, noise(2, seed=pick), padding=padding, stride_h=stride, stride_w=stride
    )


def depthwise(b: Builder, x: Tensor, pick: int) -> Tensor:
    channels = x.shape[3]
    return b.op("DEPTHWISE_CONV_2D", x, noise(1, 3, 3, channels, seed=pick), noise(channels))


def per_channel(kind: str) -> Grow:
    def grow(b: Builder, x: Tensor, pick: int) -> Tensor:
        size = (x.shape[3], 1)[pick % 2]
        activation = ("NONE", "RELU", "RELU6")[pick % 3]
        other = noise(size, seed=pick) + (2 if kind == "DIV" else 0)
        return b.op(kind, x, other, fused_activation_function=activation)

    return grow


def same_shape(b: Builder, x: Tensor, pick: int) -> Tensor:
    return b.op("RESHAPE", x, list(x.shape))


def there_and_back(b: Builder, x: Tensor, pick: int) -> Tensor:
    flat = b.op("RESHAPE", x, [1, int(np.prod(x.shape))])
    return b.op("RESHAPE", flat, list(x.shape))


def turn(b: Builder, x: Tensor, pick: int) -> Tensor:
    return b.op("TRANSPOSE", x, [[0, 2, 1, 3], [0, 1, 2, 3], [0, 3, 1, 2]][pick % 3])


def pad(b: Builder, x: Tensor, pick: int) -> Tensor:
    widths = [(0, 0), (1, 1), (0, 1)][pick % 3]
    return b.op("PAD", x, [(0, 0), widths, widths, (0, 0)])


def neutral(b: Builder, x: Tensor, pick: int) -> Tensor:
    kind, number = [("ADD", 0), ("SUB", 0), ("MUL", 1), ("DIV", 1)][pick % 4]
    return b.op(kind, x, np.float32(number))


def twice(b: Builder, x: Tensor, pick: int) -> Tensor:
    return b.op("ADD", b.op("TANH", x), b.op("TANH", x))


def computed_constant(b: Builder, x: Tensor, pick: int) -> Tensor:
    return b.op("MUL", x, b.op("ABS", b.op("NEG", noise(x.shape[3], seed=pick))))


def dead_end(b: Builder, x: Tensor, pick: int) -> Tensor:
    b.op("EXP", b.op("NEG", x))
    return x


def residual(b: Builder, x: Tensor, pick: int) -> Tensor:
    return b.op("ADD", x, b.op("RELU", x))


def activation(b: Builder, x: Tensor, pick: int) -> Tensor:
    return b.op(("RELU", "RELU6", "RELU_N1_TO_1", "TANH")[pick % 4], x)


GROW: tuple[Grow, ...] = (
    conv,
    depthwise,
    *(per_channel(kind) for kind in ("MUL", "DIV", "ADD", "SUB")),
    same_shape,
    there_and_back,
    turn,
    pad,
    neutral,
    twice,
    computed_constant,
    dead_end,
    residual,
    activation,
)


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A chain of random pieces; now and then an inner value is an output too."""
    b = Builder()
    x = b.input("x", (1, draw(st.integers(3, 6)), draw(st.integers(3, 6)), draw(st.integers(1, 3))))
    outputs: list[Tensor] = []
    for grow, pick in draw(
        st.lists(st.tuples(st.sampled_from(GROW), st.integers(0, 11)), max_size=8)
    ):
        x = grow(b, x, pick)
        if pick == 7 and b.ops and x not in outputs:
            outputs.append(x)
    return b.model(*outputs, b.op("ABS", x))


@draws(150, HealthCheck.too_slow)
@given(
    model=models(),
    recipe=st.sampled_from(["cleanup", "fold", "fuse", "cleanup | fold | fuse | cleanup"]),
)
def test_tidying_keeps_results(model: Model, recipe: str) -> None:
    change = apply(model, recipe)
    assert len(change.model.main.ops) <= len(model.main.ops)
    for a, b in zip(run(model), run(change.model), strict=True):
        assert a.shape == b.shape
        most = 2e-5 * max(1e-3, float(np.abs(a).max()))
        assert np.abs(a - b).max() <= most


@draws(60)
@given(models())
def test_copies_are_equal(model: Model) -> None:
    data = to_bytes(model)
    copy = read(memoryview(data))
    assert to_bytes(copy) == data
    assert differences(model, copy) == []
