"""Events find their ops: on made-up streams, and every row of the tables."""

import pytest

from litesmith.ir.build import Builder
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Op, Tensor
from litesmith.profiling.alignment import (
    BUILTIN,
    FUSED_BACKWARD,
    FUSED_FORWARD,
    HELPERS,
    INSIDE,
    NO_EVENT,
    TAGS,
    Mark,
    absences,
    align,
)
from litesmith.run.rules.rule_row import partitions
from tests.zoo import noise


def chain(*kinds: str) -> Graph:
    """Ops one after the other; only their kinds and their order count here."""
    tensors = [Tensor(f"t{n}", (1,)) for n in range(len(kinds) + 1)]
    ops = tuple(Op(k, (tensors[n],), (tensors[n + 1],)) for n, k in enumerate(kinds))
    return Graph("main", (tensors[0],), (tensors[-1],), ops, tuple(tensors))


def inside(*tags: str) -> list[Mark]:
    return [Mark(INSIDE, place, f"{tag} (NC, F32)") for place, tag in enumerate(tags)]


@pytest.mark.parametrize("tag", TAGS)
def test_every_tag_names_known_kinds(tag: str) -> None:
    assert set(TAGS[tag]) <= set(OPS)
    for kind in TAGS[tag]:
        assert align(chain(kind), inside(tag)) == [0]


@pytest.mark.parametrize("kind", sorted(FUSED_FORWARD | FUSED_BACKWARD))
def test_every_kind_that_may_vanish_goes_to_a_neighbour(kind: str) -> None:
    graph = chain("ABS", kind, "NEG")
    assert align(graph, inside("Abs", "Negate")) == [0, 2]
    gone = absences(graph, {0, 2})[1]
    assert gone.fused_into == (2 if kind in FUSED_FORWARD else 0)
    assert gone.us == 0


@pytest.mark.parametrize("tag", HELPERS)
def test_every_helper_is_counted_with_the_op_that_it_serves(tag: str) -> None:
    found = align(chain("ABS", "NEG"), inside("Abs", tag, "Negate"))
    assert found == [0, 1 if HELPERS[tag] > 0 else 0, 1]


def test_a_reshape_of_the_file_and_one_that_xnnpack_adds() -> None:
    graph = chain("RESHAPE", "FULLY_CONNECTED", "SOFTMAX")
    tags = inside("Static Reshape", "Static Reshape", "Fully Connected", "Softmax")
    assert align(graph, tags) == [0, 1, 1, 2]


def test_an_activation_that_is_fused_and_one_that_is_not() -> None:
    graph = chain("CONV_2D", "RELU", "ADD", "RELU6", "CONV_2D")
    found = align(graph, inside("Convolution", "Add", "Clamp", "Fully Connected"))
    assert found == [0, 2, 3, 4]
    assert absences(graph, {0, 2, 3, 4})[1].fused_into == 0


def test_one_op_may_take_several_events() -> None:
    assert align(chain("ABS", "CONCATENATION"), inside("Abs", "Copy", "Copy", "Copy")) == [
        0,
        1,
        1,
        1,
    ]


def test_an_event_from_nowhere_stays_without_an_op() -> None:
    found = align(chain("ABS"), inside("Abs", "Fully Connected", "Softmax"))
    assert found[0] == 0
    assert found[1:] == [None, None]


def test_an_unknown_tag_is_matched_by_its_place() -> None:
    assert align(chain("ABS", "L2_NORMALIZATION", "NEG"), inside("Abs", "New Thing", "Negate")) == [
        0,
        1,
        2,
    ]


def test_builtin_kernels_name_their_op_and_end_a_partition() -> None:
    graph = chain("ABS", "CUMSUM", "NEG")
    marks = [*inside("Abs"), Mark(BUILTIN, 1, "CUMSUM"), *inside("Negate")]
    assert align(graph, marks) == [0, 1, 2]


def test_the_node_of_a_delegate_is_no_op() -> None:
    graph = chain("ABS", "NEG")
    marks = [Mark(BUILTIN, 2, "Delegate"), *inside("Abs", "Negate")]
    assert align(graph, marks) == [None, 0, 1]


def test_a_partition_takes_what_is_ready_and_not_what_comes_next() -> None:
    """Op 2 does not need op 1, which XNNPACK leaves to a builtin kernel."""
    b = Builder()
    x = b.input("x", (4,))
    a = b.op("ABS", x)
    c = b.op("CUMSUM", a, 0)
    d = b.op("NEG", a)
    graph = b.graph(b.op("ADD", c, d))
    assert partitions(graph, [True, False, True, True]) == [[0, 2], [3]]
    marks = [*inside("Abs", "Negate"), Mark(BUILTIN, 1, "CUMSUM"), *inside("Add")]
    assert align(graph, marks) == [0, 2, 1, 3]


def test_a_partition_without_events_does_not_shift_the_others() -> None:
    graph = chain("RESHAPE", "CUMSUM", "ABS")
    assert align(graph, [Mark(BUILTIN, 1, "CUMSUM"), *inside("Abs")]) == [1, 2]


def test_reasons_of_absence() -> None:
    b = Builder()
    x = b.input("x", (1, 4))
    b.op("EXP", x)
    w = b.op("DEQUANTIZE", noise(3, 4).astype("float16"), dtype="float32")
    graph = b.graph(b.op("CUMSUM", b.op("FULLY_CONNECTED", x, w, None), 0))
    gone = absences(graph, {2})
    assert gone[0].why == "its result is not used"
    assert gone[1] == (2, "computed from constants when the model is loaded")
    assert gone[3].why == NO_EVENT and gone[3].us is None
    assert {one.why for one in absences(graph, set()).values()} == {"this graph was not run"}


def test_long_streams_align_like_short_ones() -> None:
    kinds = ("CONV_2D", "RELU", "PAD", "DEPTHWISE_CONV_2D", "ADD")
    tags = [f"{tag} (NC)" for tag in ("Convolution", "Convolution", "Add")] * 100
    wanted = [5 * n + place for n in range(100) for place in (0, 3, 4)]
    marks = [Mark(INSIDE, place, tag) for place, tag in enumerate(tags)]
    assert align(chain(*kinds * 100), marks) == wanted
