"""The graphs as values: what is drawn is where the numbers say."""

import math
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from litesmith.evidence.codec import salvage
from litesmith.evidence.records import PairedScore, Score, Speed
from litesmith.evidence.tune_record import TuneSummary
from litesmith.pages.drawing.plot import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    SHAPES,
    TOP,
    WIDTH,
    Spot,
    place_labels,
    staircase,
    ticks,
)
from litesmith.pages.drawing.png import png
from litesmith.pages.drawing.svg import LEGEND
from litesmith.pages.drawing.tradeoff import AXES, TradeoffGraph, graphs, shown_score
from litesmith.pages.records.tune_folder import Entry, TuneFolder, read_search
from tests.pages import folders

points = st.tuples(st.floats(LEFT, RIGHT), st.floats(TOP, BOTTOM))


PAIRED = PairedScore(2.0, None, None, None, None, None, None, None)


def asked(minimize: str) -> TuneSummary:
    """A summary of which no more is known than what is to be small."""
    return salvage(TuneSummary, {"request": {"minimize": minimize}}).value


def drawn(folder: Path) -> dict[str, TradeoffGraph]:
    return {graph.name: graph for graph in graphs(read_search(folder))}


@given(st.lists(points, min_size=1, max_size=8))
def test_no_point_is_beyond_the_front(given_points: list[tuple[float, float]]) -> None:
    corners = staircase(given_points)
    for x, y in given_points:
        assert not any(x < cx and y < cy for cx, cy in corners)
    assert all(b[0] >= a[0] and b[1] <= a[1] for a, b in pairwise(corners))
    assert corners[0] in given_points and corners[-1] in given_points


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low: float, span: float) -> None:
    assume(low + span > low)
    found = ticks(low, low + span)
    assert len(found) <= 7
    slack = 1e-6 * max(span, abs(low))
    assert all(low - slack <= tick <= low + span + slack for tick in found)
    assert len(set(found)) == len(found)


@given(st.lists(points, min_size=1, max_size=12))
def test_labels_stay_inside_the_drawing(given_points: list[tuple[float, float]]) -> None:
    for label in place_labels(["a.name"] * len(given_points), [Spot(*one) for one in given_points]):
        if label is not None:
            assert 0 < label.x < WIDTH and 0 < label.y < HEIGHT


def test_every_shape_is_in_the_legend() -> None:
    assert set(LEGEND) == set(SHAPES)


def test_less_is_left_and_better_is_up(tmp_path: Path) -> None:
    for graph in drawn(folders.write_folder(tmp_path)).values():
        marks = [m for m in graph.marks if m.shape not in ("below", "beyond")]
        cost = {"size": lambda m: m.entry.bytes, "latency": lambda m: m.entry.speed.ratio}
        by_cost = sorted(marks, key=cost[graph.name])
        assert [m.x for m in by_cost] == sorted(m.x for m in marks)
        by_score = sorted(marks, key=lambda m: m.entry.score.value if m.entry.score else 0.0)[::-1]
        assert [m.y for m in by_score] == sorted(m.y for m in marks)


def test_the_budget_divides_what_fits_from_what_misses(tmp_path: Path) -> None:
    for graph in drawn(folders.write_folder(tmp_path)).values():
        assert graph.budget is not None
        for mark in graph.marks:
            assert (mark.y > graph.budget.place) == (mark.entry.status == "misses")


def test_a_collapsed_model_is_at_the_edge_and_presses_nothing(tmp_path: Path) -> None:
    for graph in drawn(folders.write_folder(tmp_path)).values():
        shapes = {mark.entry.name: mark for mark in graph.marks}
        assert shapes["int4"].shape == "below"
        assert BOTTOM - shapes["int4"].y < 10
        assert shapes["int8"].y - shapes["float"].y > (BOTTOM - TOP) / 4


def test_a_model_of_another_speed_presses_nothing(tmp_path: Path) -> None:
    slow = folders.trials()[7]
    details = {**cast(folders.Json, slow["details"]), "latency": folders.latency(70.0)}
    tried = [*folders.trials(), {**slow, "details": details}]
    graph = drawn(folders.write_folder(tmp_path, None, tried))["latency"]
    marks = {mark.entry.name: mark for mark in graph.marks}
    assert marks["int16x8"].shape == "beyond" and marks["int16x8"].on_front
    assert marks["float"].x - marks["int8"].x > (RIGHT - LEFT) / 4


def test_every_mark_is_inside_the_frame(tmp_path: Path) -> None:
    for moment, make in folders.MOMENTS.items():
        for graph in drawn(make(tmp_path / moment)).values():
            for mark in graph.marks:
                assert LEFT <= mark.x <= RIGHT and TOP <= mark.y <= BOTTOM
                assert all(math.isfinite(end) for end in mark.bars)


def test_where_less_is_better_less_is_up() -> None:
    tried = tuple(
        Entry(
            name,
            bytes=size,
            score=Score("error", "error", "", error, None, None, 9, -1, PAIRED),
            room=2.1 - error,
        )
        for name, size, error in (("float", 100, 2.0), ("good", 50, 2.05), ("bad", 25, 2.3))
    )
    (graph,) = graphs(TuneFolder(asked(""), tried))
    places = {mark.entry.name: mark.y for mark in graph.marks}
    assert graph.budget is not None
    assert places["float"] < places["good"] < graph.budget.place < places["bad"]
    values = [float(tick.text) for tick in sorted(graph.y_ticks, key=lambda tick: tick.place)]
    assert values == sorted(values)


@pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
def test_what_is_to_be_small_has_a_graph(axis: object) -> None:
    name = getattr(axis, "name", "")
    entry = Entry(
        "a",
        bytes=3_000_000,
        gzip_bytes=2_000_000,
        peak_bytes=1_000_000,
        ram_bytes=60_000,
        flash_bytes=90_000,
        speed=Speed("cpu:1", "measured", 900.0, None, None, None, None, ""),
        score=Score("t", "t", "", 1.0, None, None, 9),
    )
    found = [graph.name for graph in graphs(TuneFolder(asked(name), (entry,)))]
    assert set(found) == {"size", "latency", name}


def test_limits_are_drawn_on_their_own_axis(tmp_path: Path) -> None:
    told = folders.summary()
    told["request"] = {"ceilings": {"size": 6e6, "latency": 5e3}}
    found = drawn(folders.write_folder(tmp_path, told))
    size, latency = found["size"].limit, found["latency"].limit
    assert size is not None and latency is not None
    fits = {m.entry.name for m in found["latency"].marks if m.x <= latency.place}
    assert fits == {"int8", "int8.correct", "int8.equalize"}


@pytest.mark.parametrize("moment", folders.MOMENTS)
def test_pictures_of_every_moment(moment: str, tmp_path: Path) -> None:
    for graph in drawn(folders.MOMENTS[moment](tmp_path)).values():
        picture = png(graph)
        assert picture.startswith(b"\x89PNG") and 2_000 < len(picture) < 60_000


def test_the_graph_speaks_of_the_samples_of_the_headline(tmp_path: Path) -> None:
    """The model to ship is drawn where its tile says; what other samples scored is outlined."""
    record = read_search(folders.write_folder(tmp_path))
    chosen = record.summary.chosen
    assert chosen is not None
    for graph in graphs(record):
        marks = {mark.entry.name: mark for mark in graph.marks}
        best = record.entry(chosen.name)
        assert best is not None and shown_score(record, best) == chosen.accuracy
        outlined = {name for name, mark in marks.items() if mark.is_outlined}
        assert outlined == {*marks} - {folders.BEST, "float"}
        assert "held-out" in graph.samples and "960" in graph.samples and "640" in graph.samples
        zero = next(tick.place for tick in graph.y_ticks if tick.text == "0")
        assert marks["float"].y == zero


def test_before_the_proof_all_samples_are_those_of_the_search(tmp_path: Path) -> None:
    for graph in drawn(folders.half_finished(tmp_path)).values():
        assert not any(mark.is_outlined for mark in graph.marks) and graph.samples == ""
