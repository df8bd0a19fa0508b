"""The application's spans and the model's runs on one timeline."""

import json
import threading
from pathlib import Path

import pytest

from litesmith.errors import BadInput, CannotRun
from litesmith.profiling.trace import Piece, Recording, record, span
from litesmith.run.session import Session
from tests import zoo


def slices(path: Path) -> dict[str, list[dict[str, object]]]:
    """The slices of a Chrome trace by the name of their track."""
    events = json.loads(path.read_text("utf-8"))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found: dict[str, list[dict[str, object]]] = {}
    for event in events:
        if event["ph"] == "X":  # a thread's track ends in its number
            found.setdefault(names[event["tid"]].split(" (")[0], []).append(event)
    return found


def test_spans_and_runs_share_a_clock(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with Session(zoo.convnet(), profile=True) as session, record(path, session):
        for _ in range(2):
            with span("decode"):
                pass
            with span("infer"):
                session.run()
    tracks = slices(path)
    application = tracks["application: MainThread"]
    assert [s["name"] for s in application] == ["decode", "infer"] * 2
    model = tracks["model 1 on cpu:1"]
    runs = [s for s in model if str(s["name"]).startswith("run ")]
    assert len(runs) == 2
    assert len(model) == 2 * (1 + 5)
    infers = [s for s in application if s["name"] == "infer"]
    for run, infer in zip(runs, infers, strict=True):
        assert infer["ts"] <= run["ts"]  # type: ignore[operator]
        assert run["ts"] + run["dur"] <= infer["ts"] + infer["dur"] + 1  # type: ignore[operator]


def test_a_span_is_a_decorator_too(tmp_path: Path) -> None:
    @span("work")
    def double(x: int) -> int:
        return 2 * x

    with record(tmp_path / "t.json") as recording:
        assert [double(2), double(3)] == [4, 6]
    assert [piece.name for piece in recording.pieces] == ["work", "work"]


def test_without_a_recording_a_span_does_nothing() -> None:
    with span("alone"):
        done = True
    assert done


def test_threads_have_tracks_of_their_own(tmp_path: Path) -> None:
    def work() -> None:
        with span("step"):
            pass

    with record(tmp_path / "t.json"):
        threads = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(slices(tmp_path / "t.json")) == {f"application: worker {n}" for n in range(3)}


def test_threads_of_one_name_do_not_share_a_track(tmp_path: Path) -> None:
    barrier = threading.Barrier(2)

    def work() -> None:
        with span("step"):
            barrier.wait(10)  # both are inside at once

    with record(tmp_path / "t.json") as recording:
        threads = [threading.Thread(target=work, name="pool") for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({piece.track for piece in recording.pieces}) == 2


def test_a_place_that_cannot_be_written_is_known_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="does not exist"), record(tmp_path / "no" / "t.json"):
        raise AssertionError("the work was begun")


def test_a_session_without_profiling_is_refused(tmp_path: Path) -> None:
    with (
        Session(zoo.convnet()) as session,
        pytest.raises(CannotRun, match="profile=True"),
        record(tmp_path / "t.json", session),
    ):
        raise AssertionError("the work was begun")


def test_memory_is_bounded() -> None:
    recording = Recording(most=2)
    for _ in range(5):
        recording.add(Piece("t", "n", 0, 1))
    assert len(recording.pieces) == 2
    assert recording.dropped == 3


def test_the_trace_of_a_failure_is_kept(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), record(tmp_path / "t.json"), span("bad"):
        raise ZeroDivisionError
    assert [s["name"] for s in slices(tmp_path / "t.json")["application: MainThread"]] == ["bad"]


def test_a_session_without_a_profiler_is_refused(tmp_path: Path) -> None:
    with (
        Session(zoo.convnet(), target="numpy") as session,
        pytest.raises(CannotRun, match="no profile on numpy"),
        record(tmp_path / "t.json", session),
    ):
        pass
    assert not list(tmp_path.iterdir())
