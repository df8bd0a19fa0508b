"""What does not open is refused before it is written."""

from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.calibration.runnable import refuse_dead
from litesmith.errors import BadInput
from litesmith.passes.core.recipe import parse
from tests import zoo

RECIPE = parse("cleanup | fold | fuse | quantize | correct")


def test_a_result_that_opens_is_fine_and_so_is_one_like_its_source() -> None:
    pairs = ((zoo.convnet(), zoo.convnet()), (zoo.custom(), zoo.custom()))  # the latter never opens
    assert [refuse_dead(*pair, RECIPE) for pair in pairs] == [None, None]


def test_a_result_that_does_not_open_is_refused_with_a_way_out() -> None:
    with pytest.raises(BadInput, match="the runtime does not open") as told:
        refuse_dead(zoo.custom(), zoo.convnet(), RECIPE)
    assert "\n" not in str(told.value)
    assert "give another scheme" in str(told.value) or "--keep" in str(told.value)


def test_what_was_asked_for_is_written_where_it_opens(tmp_path: Path) -> None:
    data = np.random.default_rng(0).normal(size=(8, 8, 8, 3)).astype(np.float32)
    litesmith.save(zoo.convnet(), tmp_path / "m.tflite")
    litesmith.quantize(tmp_path / "m.tflite", data, out=tmp_path / "q.tflite", runs=3)
    assert (tmp_path / "q.tflite").exists()


def test_no_op_is_blamed_for_what_every_form_of_it_can_do() -> None:
    """The first kind was named, and keeping it float would have undone the work."""
    with pytest.raises(BadInput, match="give another scheme"):
        refuse_dead(zoo.custom(), zoo.convnet(), RECIPE)
