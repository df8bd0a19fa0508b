"""What keeps a model from an accelerator: every op that stays has a finding."""

import re

import pytest

from litesmith.errors import BadInput
from litesmith.measure.fitting import obstacles, placed_on
from tests import zoo

ACCELERATORS = ("edgetpu", "ethos-u55", "hexagon", "gpu", "nnapi", "coreml")


@pytest.mark.parametrize("name", ACCELERATORS)
@pytest.mark.parametrize("make", [zoo.convnet, zoo.residual_int8, zoo.careless])
def test_every_op_that_stays_is_counted_once(make, name: str) -> None:
    model = make()
    placement = placed_on(model, name)
    found = obstacles(model, placement)
    assert (not found) == placement.is_whole
    if not placement.refused:
        counts = [int(re.match(r"\d+", one.what).group()) for one in found]
        assert sum(counts) == placement.left
    assert all(one.why and one.where for one in found)


def test_a_float_model_is_told_the_command() -> None:
    model = zoo.convnet()
    (one,) = obstacles(model, placed_on(model, "edgetpu"))
    assert "quantize MODEL --to int8" in one.command


def test_what_is_no_accelerator_is_named() -> None:
    for name in ("cpu", "toaster"):
        with pytest.raises(BadInput, match=f"--for {name}: no such accelerator") as caught:
            placed_on(zoo.convnet(), name)
        assert "edgetpu" in str(caught.value)
