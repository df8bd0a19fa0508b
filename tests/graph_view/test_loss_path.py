"""The way along which most is lost."""

from litesmith.graph_view.loss_path import carried_noise, find_source, loss_path
from tests import zoo_float
from tests.graph_view.test_row_order import chain


def test_it_follows_the_larger_noise() -> None:
    graph = chain([[0], [0], [1, 2], [3]])
    noises = {0: 0.01, 1: 0.2, 2: 0.21, 3: 0.22}
    assert loss_path(graph, noises) == (1, 2, 3)
    assert find_source(graph, noises) == 1


def test_an_op_without_an_error_passes_on_that_of_what_it_reads() -> None:
    graph = chain([[0], [1], [2]])
    assert carried_noise(graph, {0: 0.5}) == [0.5, 0.5, 0.5]
    assert loss_path(graph, {0: 0.5}) == (0, 1, 2)
    assert find_source(graph, {0: 0.5, 2: 0.5}) == 0


def test_without_errors_there_is_no_way() -> None:
    graph = zoo_float.residual().main
    assert loss_path(graph, {}) == () and find_source(graph, {}) is None
    assert find_source(graph, {0: 0.0}) is None
