"""A session in a process of its own answers as one in this process, and dies alone."""

import gc
import os
import signal
import sys

import numpy as np
import pytest

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.run.guarded import GuardedRunner
from litesmith.run.session import Session
from tests import zoo

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files without a name are shared")


def late() -> Model:
    """A model whose output is as large as its input has numbers above zero."""
    b = Builder()
    x = b.input("x", (4,), "float32")
    return b.model(b.op("WHERE", b.op("GREATER", x, np.zeros(1, np.float32)), shape=(4, 1)))


@pytest.mark.parametrize("target", ["cpu:1", "cpu:1:reference", "numpy"])
def test_it_answers_as_one_in_this_process(target: str) -> None:
    model = zoo.convnet()
    with Session(model, target) as plain, Session(model, target, guarded=True) as guarded:
        assert target != "cpu:1" or not guarded.copies
        for seed in range(3):
            image = np.random.default_rng(seed).normal(0, 1, (1, 8, 8, 3)).astype(np.float32)
            expected, found = plain(image), guarded(image)
            for name, array in expected.items():
                np.testing.assert_array_equal(found[name], array)
        kept = guarded.inputs["image"]
        kept[...] = 0
        guarded.run()
        plain.inputs["image"] = np.zeros(kept.shape, kept.dtype)
        plain.run()
        np.testing.assert_array_equal(guarded.outputs["scores"], plain.outputs["scores"])


def test_sizes_may_change() -> None:
    with Session(late(), guarded=True) as session:
        for values in ([1, -1, 1, 1], [-1, -1, -1, 1], [1, 1, 1, 1]):
            (found,) = session(np.array(values, np.float32)).values()
            np.testing.assert_array_equal(found[:, 0], np.flatnonzero(np.array(values) > 0))
    b = Builder()
    with Session(b.model(b.op("ABS", b.input("x", (1, 4)))), guarded=True) as session:
        session.resize(x=(3, 4))
        given = -np.ones((3, 4), np.float32)
        (found,) = session(given).values()
        np.testing.assert_array_equal(found, -given)


def test_a_crash_is_an_error_and_the_next_session_is_fine() -> None:
    session = Session(zoo.convnet(), guarded=True)
    assert isinstance(session.runner, GuardedRunner)
    os.kill(session.runner.process, signal.SIGSEGV)
    with pytest.raises(CannotRun, match=r"crashed \(SIGSEGV\) in its own process"):
        session.run()
    session.close()
    with Session(zoo.convnet(), guarded=True) as again:
        again.run()


def wide(count: int) -> Model:
    """A model with so many inputs and outputs."""
    b = Builder()
    return b.model(*[b.op("ABS", b.input(f"x{n}", (1, 4))) for n in range(count)])


@pytest.mark.parametrize("target", ["cpu:1", "numpy"])
def test_a_model_may_have_more_ports_than_a_message_carries_files(target: str) -> None:
    values = [np.full((1, 4), -n, np.float32) for n in range(300)]
    with Session(wide(300), target, guarded=True) as session:
        for _ in range(2):
            for found, given in zip(session(*values).values(), values, strict=True):
                np.testing.assert_array_equal(found, -given)


def test_arrays_that_change_take_no_more_files_and_memory() -> None:
    before = open_files()
    with Session(late(), guarded=True) as session:
        assert isinstance(session.runner, GuardedRunner)
        for _ in range(100):
            session(np.array([1, -1, 1, 1], np.float32))
            session(np.array([1, 1, 1, 1], np.float32))
        assert open_files(session.runner.process) < 50
        assert open_files() < before + 50
    b = Builder()
    with Session(b.model(b.op("ABS", b.input("x", (1, 4)))), guarded=True) as session:
        assert isinstance(session.runner, GuardedRunner)
        for size in 8 * [1, 4, 2, 3]:
            session.resize(x=(size, 200_000))
            given = np.full((size, 200_000), -size, np.float32)
            (found,) = session(given).values()
            assert found.shape == given.shape and found[0, 0] == found[-1, -1] == size
        assert open_files(session.runner.process) < 50
        assert open_files() < before + 50


def open_files(process: int | None = None) -> int:
    """How many files this process has open, without those that nobody uses any more, or another
    one; 0 where the system does not tell."""
    gc.collect()
    place = f"/proc/{process or 'self'}/fd"
    return len(os.listdir(place)) if os.path.isdir(place) else 0


def test_what_is_refused_there_is_refused_here() -> None:
    with pytest.raises(CannotRun, match="a profile"):
        Session(zoo.convnet(), profile=True, guarded=True)
    with (
        Session(zoo.convnet(), guarded=True) as session,
        pytest.raises((BadInput, CannotRun), match="cannot resize"),
    ):
        session.resize(image=(1, 8, 8, 4))
