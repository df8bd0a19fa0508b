"""What is told of a model that does not open at the sizes in its file."""

import re
from pathlib import Path

import pytest

import litesmith
from litesmith.arguments import as_options
from litesmith.errors import CannotRun
from litesmith.ir.build import Builder
from litesmith.ir.types import Model
from litesmith.run.free_sizes import why_unsized
from litesmith.run.trial_run import probe
from tests.zoo import MODELS, NOT_RUNNABLE, noise


def sound_model() -> Model:
    """A window of 16 values over a sound of any length, which its file has as one value."""
    b = Builder()
    x = b.input("sound", (-1, -1))
    wide = b.op("EXPAND_DIMS", b.op("EXPAND_DIMS", x, [1]), [3])
    made = b.op("CONV_2D", wide, noise(3, 1, 16, 1), noise(3), padding="VALID", shape=(1, 1, 1, 3))
    return b.model(made, signature="serving_default")


def test_the_input_and_sizes_that_do_are_named(tmp_path: Path) -> None:
    path = tmp_path / "sound.tflite"
    litesmith.save(sound_model(), path)
    words = re.escape("sound float32[?,?]; give sizes, as in shape='sound=1,16'")
    for attempt in (litesmith.Session, probe):
        with pytest.raises(CannotRun, match=words) as caught:
            attempt(path)
        assert "--shape sound=1,16" in as_options(caught.value.args[0])
    resized = litesmith.resize(path, "sound=1,16")
    assert [array.shape for array in litesmith.Session(resized).outputs.values()] == [(1, 1, 1, 3)]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_whose_sizes_fit_is_not_blamed_for_them(name: str) -> None:
    assert why_unsized(MODELS[name]()) is None
    assert NOT_RUNNABLE
