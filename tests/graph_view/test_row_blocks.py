"""Blocks lie inside each other, and what repeats is folded."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from litesmith.graph_view.row_blocks import Block, find_blocks, name_paths, shared_levels
from tests.draws import draws

NAMES = st.lists(st.sampled_from(["a", "b", "c"]), max_size=4).map("/".join)


def assert_nested(blocks: Sequence[Block], start: int, end: int) -> None:
    place = start
    for block in blocks:
        assert place <= block.start < block.end <= end
        assert block.end - block.start >= 2
        assert (block.start, block.end) != (start, end) or (start, end) == (0, block.end)
        assert 1 <= block.number <= block.of
        assert_nested(block.inside, block.start, block.end)
        place = block.end


@draws(150)
@given(st.lists(st.tuples(st.sampled_from("CDA"), NAMES), max_size=90))
def test_blocks_lie_inside_each_other(rows: list[tuple[str, str]]) -> None:
    kinds = [kind for kind, _ in rows]
    found = find_blocks(kinds, name_paths([name for _, name in rows]))
    assert_nested(found, 0, len(rows))


def test_names_make_blocks() -> None:
    names = ["net/a/conv/x", "net/a/relu/x", "net/b/conv/x", "net/b/conv", "net/c/x"]
    found = find_blocks(["C", "R", "C", "C", "S"], name_paths(names))
    assert [(one.start, one.end, one.title) for one in found] == [(0, 2, "a"), (2, 4, "b")]


def test_an_op_called_like_a_block_is_in_it() -> None:
    assert name_paths(["net/block", "net/block/conv"]) == [("net", "block"), ("net", "block")]
    assert shared_levels(("net", "a"), ("net", "b", "c")) == 1


def test_what_repeats_is_folded_where_names_say_nothing() -> None:
    kinds = ["IN", *["C", "D", "C", "A"] * 40, "OUT"]
    found = find_blocks(kinds, [()] * len(kinds))
    assert len(found) < 24
    inner = found[0]
    while inner.inside:
        inner = inner.inside[0]
    assert kinds[inner.start : inner.end] in (["C", "D", "C", "A"], ["C", "D"], ["C", "A"])
    assert found[0].of > 1


def test_nothing_repeats_in_what_is_always_new() -> None:
    assert find_blocks([str(n) for n in range(200)], [()] * 200) == ()
