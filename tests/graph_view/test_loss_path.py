"""The way along which most is lost."""

from litesmith.graph_view.loss_path import LossPath, Noise, loss_path
from litesmith.ir.build import Builder
from tests import zoo_float
from tests.graph_view.test_row_order import chain
from tests.zoo import noise


def noises(*shares: float) -> dict[int, Noise]:
    return {place: Noise(share, share) for place, share in enumerate(shares)}


def test_it_follows_the_larger_noise() -> None:
    graph = chain([[0], [0], [1, 2], [3]])
    assert loss_path(graph, noises(0.01, 0.2, 0.21, 0.22)) == ((1, 2, 3), 1)


def test_errors_that_meet_are_compared_as_they_are_not_as_shares() -> None:
    """A mean of nearly nothing is all noise, and adds none."""
    graph = chain([[0], [1], [1, 2]])
    found = {0: Noise(0.01, 1.0), 1: Noise(4.0, 0.001), 2: Noise(0.01, 1.0)}
    assert loss_path(graph, found) == ((0, 2), 0)


def test_what_is_less_later_was_no_loss() -> None:
    graph = chain([[0], [1], [2], [3]])
    assert loss_path(graph, noises(0.01, 3.0, 0.02, 0.5)) == ((0, 1, 2, 3), 3)


def test_an_op_without_an_error_passes_on_that_of_what_it_reads() -> None:
    graph = chain([[0], [1], [2]])
    assert loss_path(graph, {0: Noise(0.5, 0.5)}) == ((0, 1, 2), 0)


def test_without_errors_there_is_no_way() -> None:
    graph = zoo_float.residual().main
    assert loss_path(graph, {}) == LossPath()
    assert loss_path(graph, {0: Noise(0.0, 0.0)}).worst is None


def test_it_ends_before_a_softmax() -> None:
    b = Builder()
    scores = b.op("ADD", b.input("x", (1, 4)), noise(1, 4))
    graph = b.model(b.op("SOFTMAX", scores, beta=1.0)).main
    assert loss_path(graph, noises(0.1, 3.0)) == ((0,), 0)
