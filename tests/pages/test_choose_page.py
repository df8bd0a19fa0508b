"""The report of a choice: both graphs, every candidate, from the folder alone."""

import re
from io import BytesIO
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from litesmith.pages.choose_graphs import graphs, read_choice
from litesmith.pages.drawing.plot import Label, do_meet, label_box
from litesmith.pages.drawing.tradeoff import TradeoffGraph
from litesmith.pages.folder_kinds import write_markdown, write_report
from tests.pages import chosen

HOSTILE = "<script>alert('&')</script> | `x` \x1b[2J"


def drawn(folder: Path, told: chosen.Json) -> tuple[TradeoffGraph, ...]:
    return graphs(read_choice(chosen.write_folder(folder, told)))


def test_both_graphs_have_every_model_and_the_front(tmp_path: Path) -> None:
    size, latency = drawn(tmp_path, chosen.summary())
    assert (size.name, latency.name) == ("size", "latency")
    for graph in (size, latency):
        marks = {mark.entry.name: mark for mark in graph.marks}
        assert set(marks) == {name for name, *_ in chosen.MODELS}
        assert marks["middle"].shape == "star"
        assert marks["large"].shape == "cross"  # above the ceiling
        assert {name for name, mark in marks.items() if mark.on_front} == {
            "small",
            "middle",
            "large",
        }
        corners = {(marks[name].x, marks[name].y) for name in ("small", "middle", "large")}
        assert corners <= {*graph.front}
        assert (marks["beaten"].x, marks["beaten"].y) not in graph.front
        for mark in marks.values():
            left, upper, right, lower = mark.bars
            assert left <= mark.x <= right and upper < mark.y < lower
    assert latency.limit is not None and size.limit is None
    assert "cpu:1" in latency.x_title and "logarithmic" in latency.x_title


def test_places_are_in_the_order_of_the_numbers(tmp_path: Path) -> None:
    for graph, key in zip(drawn(tmp_path, chosen.summary()), (3, 2), strict=True):
        wanted = [one[0] for one in sorted(chosen.MODELS, key=lambda one: one[key])]
        assert [m.entry.name for m in sorted(graph.marks, key=lambda m: m.x)] == wanted
        wanted = [one[0] for one in sorted(chosen.MODELS, key=lambda one: -one[1])]
        assert [m.entry.name for m in sorted(graph.marks, key=lambda m: m.y)] == wanted


def test_published_points_are_hollow_and_off_the_front(tmp_path: Path) -> None:
    told = chosen.summary(chosen.published("catalogued", 0.9, 500.0, 100_000))
    for graph in drawn(tmp_path, told):
        mark = next(mark for mark in graph.marks if mark.entry.name == "catalogued")
        assert mark.shape == "hollow" and not mark.on_front
        assert (mark.x, mark.y) not in graph.front
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "published, not measured" in page and "Howard et al. 2017, on ImageNet" in page


@given(
    st.lists(
        st.tuples(
            st.text(min_size=1, max_size=40),
            st.floats(0, 1),
            st.floats(1, 1e7),
            st.integers(1, 10**9),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_labels_never_overlap(tmp_path_factory: pytest.TempPathFactory, models: list) -> None:
    rows = [chosen.row(name, v, us, size, True) for name, v, us, size in models]
    told = {**chosen.summary(), "candidates": rows}
    for graph in drawn(tmp_path_factory.mktemp("labels"), told):
        labels: list[Label] = [mark.label for mark in graph.marks if mark.label is not None]
        notes = [label_box(note) for note in graph.notes]
        for a, b in combinations([*map(label_box, labels), *notes], 2):
            assert not do_meet(a, b)
        for mark in graph.marks:
            assert 0 <= mark.x <= 400 and 0 <= mark.y <= 320


def test_the_page_says_the_pick_the_reason_and_every_candidate(tmp_path: Path) -> None:
    page = write_report(chosen.write_folder(tmp_path)).read_text(encoding="utf-8")
    assert page.count('<svg viewBox="0 0 400 320"') == 2
    assert "middle: the most accurate of the 3 under 13.0 ms" in page
    rows = re.findall(r'<tr id="trial-\d"', page)
    assert len(rows) == len(chosen.MODELS)
    assert "as good within the noise: middle" in page
    assert "takes 14.0 ms" in page and "9.27" in page


def test_nothing_fits_or_misses_where_nothing_was_asked(tmp_path: Path) -> None:
    told = chosen.summary()
    asked = write_report(chosen.write_folder(tmp_path / "asked", told)).read_text(encoding="utf-8")
    assert "</svg>fits</li>" in asked and "✓ fits" in asked and "✕ misses" in asked
    told["request"] = {"goal": "accuracy", "target": "cpu:1", "limits": []}
    bare = write_report(chosen.write_folder(tmp_path / "bare", told)).read_text(encoding="utf-8")
    assert "fits</li>" not in bare and "✓ fits" not in bare
    assert "candidate</li>" in bare and "to take</li>" in bare


def test_names_stand_off_the_line_where_there_is_room(tmp_path: Path) -> None:
    for graph in drawn(tmp_path, chosen.summary()):
        for mark in graph.marks:
            assert mark.label is not None
            left, top, right, bottom = label_box(mark.label)
            for (ax, ay), (bx, by) in pairwise(graph.front):
                across = left < max(ax, bx) and right > min(ax, bx)
                assert not (across and top < max(ay, by) and bottom > min(ay, by))


def test_markdown_has_two_pictures_and_a_table(tmp_path: Path) -> None:
    place = write_markdown(chosen.write_folder(tmp_path))
    text = place.read_text(encoding="utf-8")
    pictures = re.findall(r"\]\((\S+\.png)\)", text)
    assert pictures == ["report-size.png", "report-latency.png"]
    for name in pictures:
        with Image.open(BytesIO((tmp_path / name).read_bytes())) as image:
            assert image.size[0] >= 800
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + len(chosen.MODELS)
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1
    assert "**middle**" in text


def test_hostile_names_stay_names(tmp_path: Path) -> None:
    told = {**chosen.summary(chosen.row(HOSTILE, 0.6, 5.0, 9, True)), "reason": HOSTILE}
    page = write_report(chosen.write_folder(tmp_path, told)).read_text(encoding="utf-8")
    assert page.count("<script>") == 1 and "\x1b" not in page


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_an_unfinished_choice_is_shown_as_far_as_it_is(tmp_path: Path, state: str) -> None:
    rows = [{"model": "a", "bytes": 3}, {"model": "b", "p50_us": 12.0}, {}]
    told = {"state": state, "candidates": rows, "reason": "not all is measured yet"}
    page = write_report(chosen.write_folder(tmp_path, told)).read_text(encoding="utf-8")
    assert "Not finished" in page and "12.0\u00a0µs" in page
    assert write_markdown(tmp_path).exists()


def test_nothing_fits_is_said(tmp_path: Path) -> None:
    told = {**chosen.summary(), "pick": None, "nearest": "small", "reason": "none is under 1 ms"}
    page = write_report(chosen.write_folder(tmp_path, told)).read_text(encoding="utf-8")
    assert "Nothing fits" in page and "verdict missed" in page


def test_a_busy_machine_is_the_first_word(tmp_path: Path) -> None:
    why = "unclear: the machine was busy, and the choice is by times; nothing is picked"
    told = {**chosen.summary(), "pick": None, "is_unclear": True, "reason": why}
    folder = chosen.write_folder(tmp_path, told)
    text = write_report(folder).read_text(encoding="utf-8")
    assert '<p class="word">Unclear: the machine was busy</p>' in text
    assert "Nothing fits" not in text
    head = write_markdown(folder).read_text(encoding="utf-8").partition("\n")[0]
    assert "Unclear" in head and "the machine was busy" in head
