"""A session in a process of its own answers as one in this process, and dies alone."""

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


def test_what_is_refused_there_is_refused_here() -> None:
    with pytest.raises(CannotRun, match="a profile"):
        Session(zoo.convnet(), profile=True, guarded=True)
    with (
        Session(zoo.convnet(), guarded=True) as session,
        pytest.raises((BadInput, CannotRun), match="cannot resize"),
    ):
        session.resize(image=(1, 8, 8, 4))
