"""Labels never collide, whatever is drawn and however it is called."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from litesmith.pages.drawing.plot import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Box,
    Spot,
    do_meet,
    label_box,
    place_labels,
    place_note,
    text_width,
)
from litesmith.pages.drawing.tradeoff import Tick, place_notes

spots = st.builds(
    Spot, st.floats(LEFT, RIGHT), st.floats(TOP, BOTTOM), st.sampled_from((6.0, 12.0))
)
names = st.text(min_size=1, max_size=28)
boxes = st.tuples(st.floats(0, 300), st.floats(0, 250), st.floats(1, 90), st.floats(1, 40)).map(
    lambda one: (one[0], one[1], one[0] + one[2], one[1] + one[3])
)


@given(st.lists(st.tuples(names, spots), min_size=1, max_size=14), st.lists(boxes, max_size=3))
def test_labels_collide_with_nothing(marks: list[tuple[str, Spot]], taken: list[Box]) -> None:
    """With no other label, no other mark, nothing that is taken; and all are inside."""
    given_spots = [spot for _, spot in marks]
    placed = place_labels([name for name, _ in marks], given_spots, taken=taken)
    shown = [(spot, label_box(one)) for spot, one in zip(given_spots, placed, strict=True) if one]
    for (_, one), (_, other) in combinations(shown, 2):
        assert not do_meet(one, other)
    for own, box in shown:
        assert not any(do_meet(box, other) for other in taken)
        others = [spot for spot in given_spots if spot is not own]
        assert not any(do_meet(box, spot.box) for spot in others)
        assert box[0] >= LEFT and box[2] <= WIDTH and box[1] >= 0 and box[3] <= BOTTOM


@given(names, spots)
def test_a_mark_alone_has_its_label(name: str, spot: Spot) -> None:
    """Where the words are no wider than half of the drawing."""
    (found,) = place_labels([name], [spot])
    assert found is not None or text_width(name) > (RIGHT - LEFT) / 2


@given(names, spots, st.lists(boxes, max_size=4))
def test_what_can_be_avoided_is(name: str, spot: Spot, avoided: list[Box]) -> None:
    (free,) = place_labels([name], [spot], taken=avoided)
    (found,) = place_labels([name], [spot], avoided=avoided)
    if free is not None:
        assert found is not None
        assert not any(do_meet(label_box(found), box) for box in avoided)
    assert found is not None or free is None


places = st.none() | st.builds(Tick, st.floats(TOP, BOTTOM), st.text(min_size=1, max_size=60))
limits = st.none() | st.builds(Tick, st.floats(LEFT, RIGHT), st.just("limit"))


@given(places, limits, st.lists(spots.map(lambda spot: spot.box), max_size=6))
def test_the_words_at_lines_stay_inside_and_apart(
    budget: Tick | None, limit: Tick | None, taken: list[Box]
) -> None:
    notes = [label_box(note) for note in place_notes(budget, limit, taken)]
    assert len(notes) == (budget is not None) + (limit is not None)
    for one, other in combinations(notes, 2):
        assert not do_meet(one, other)
    for left, top, right, bottom in notes:
        assert left >= 0 and right <= WIDTH and top >= -4 and bottom <= BOTTOM + 20


def test_a_note_goes_where_there_is_room() -> None:
    free = place_note("note", [(100, 50, "start"), (100, 90, "start")], [(90, 40, 110, 60)])
    assert free.y == 90
    crowded = place_note("note", [(100, 50, "start")], [(90, 40, 110, 60)])
    assert crowded.y == 50


@given(st.text(max_size=12), st.text(max_size=12))
def test_more_letters_take_more_room(one: str, other: str) -> None:
    assert text_width(one + other) >= max(text_width(one), text_width(other))
    assert text_width("汉字") > text_width("ab")
