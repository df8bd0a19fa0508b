"""What training aims at: the original's answers, and the sums of its blocks."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the extra `train`")

from litesmith.ir.build import Builder  # noqa: E402
from litesmith.ir.types import Model  # noqa: E402
from litesmith.training.lesson import Aim, shared_sums  # noqa: E402
from tests.zoo import noise  # noqa: E402
from tests.zoo_float import conv, image  # noqa: E402


def block(width: int) -> Model:
    """A block with a sum, a shift by a constant, and another sum of that width."""
    b = Builder()
    x = image(b)
    y = b.op("ADD", x, conv(b, x, x.shape[-1], 1), name="first")
    y = conv(b, b.op("ADD", y, noise(x.shape[-1]), name="shift"), width, 2)
    return b.model(b.op("ADD", y, conv(b, y, width, 3), name="second"))


def test_sums_of_computed_values_that_keep_their_width_are_shared() -> None:
    for width, wanted in ((8, ["first", "second"]), (6, ["first"])):
        pairs = shared_sums(block(width).main, block(8).main)
        assert [(ours.name, theirs.name) for ours, theirs in pairs] == [(n, n) for n in wanted]


def test_sums_count_where_both_sides_have_them() -> None:
    aim, answer = Aim((False,), (1.0,)), torch.ones(2, 3)
    sums = torch.arange(6.0).reshape(2, 3)
    assert float(aim([answer, sums], [answer, sums], None)) == 0
    assert float(aim([answer, sums + 1], [answer, sums], None)) > 0
    assert float(aim([answer, sums + 1], [answer], None)) == 0
    assert float(aim([answer], [answer, sums], None)) == 0
