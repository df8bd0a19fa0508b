"""Arguments in sentences: Python's words and the shell's, from one text."""

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.arguments import Argument, argument, as_options, check_types, refuse_below
from litesmith.errors import BadInput
from litesmith.micro.boards import find_room
from litesmith.operating_system import quote
from litesmith.passes.core.recipe import apply, parse
from litesmith.passes.tidy.resize import split_shape
from litesmith.phrases import join, phrase
from litesmith.run.core.target import Target
from litesmith.run.devices.address import parse as parse_address
from litesmith.tasks.sound import read_features
from litesmith.workers.engine import address_of
from tests import zoo
from tests.cli.test_cli import litesmith as command

NINES = "9" * 5000  # more digits than Python reads as a number


@pytest.mark.parametrize(
    "read",
    [
        lambda: Target.parse(f"cpu:{NINES}"),
        lambda: Target.parse(f"custom:mine:{NINES}"),
        lambda: split_shape(f"x=1,{NINES}"),
        lambda: find_room(None, NINES + "K", None),
        lambda: find_room(None, NINES, None),
        lambda: read_features(f"logmel:{NINES}", 40),
        lambda: read_features("logmel:40,window=1.2.3", 40),
        lambda: apply(zoo.convnet(), parse(f'cluster(own=["a:{NINES}"])')),
        lambda: address_of(f"ray://head:{NINES}"),
        lambda: parse_address(f"ssh://pi@host:{NINES}/cpu:1"),
    ],
)
def test_a_number_without_end_is_refused_as_any_other(read: Callable[[], object]) -> None:
    with pytest.raises(BadInput) as no:
        read()
    assert "\n" not in str(no.value)


@pytest.mark.parametrize(
    ("name", "value", "python", "shell"),
    [
        ("samples", -1, "samples=-1", "--samples -1"),
        ("samples", None, "samples=", "--samples"),
        ("trust_data", True, "trust_data=True", "--trust-data"),
        ("to", "int8", "to='int8'", "--to int8"),
        ("keep", ["a b", 3], "keep=['a b', 3]", f"--keep {quote('a b,3')}"),
        ("weights", Path("w.npz"), "weights='w.npz'", "--weights w.npz"),
        ("crop", 0.5, "crop=0.5", "--crop 0.5"),
        ("out", "x.tflite", "out='x.tflite'", "-o x.tflite"),
        ("accelerator", "gpu", "accelerator='gpu'", "--for gpu"),
    ],
)
def test_an_argument_is_an_option_in_the_shell(
    name: str, value: object, python: str, shell: str
) -> None:
    made = argument(name, value)
    assert (made, made.option) == (python, shell)
    told = phrase("{argument}: {why}", made, phrase("give {other}", argument("data")))
    assert told == f"{python}: give data="
    assert as_options(told) == f"{shell}: give --data"
    assert as_options(join([told, "and so on"], "; ")) == f"{shell}: give --data; and so on"


def test_an_argument_comes_back_from_another_process() -> None:
    back = pickle.loads(pickle.dumps(argument("samples", -1)))
    assert isinstance(back, Argument) and back.option == "--samples -1"


@check_types
def count(data: object, *, samples: int | None = None, share: float = 0.5, to: str = "x") -> int:
    refuse_below("samples", samples, 1)
    return samples or 0


def test_types_are_refused_in_a_line_that_names_the_argument() -> None:
    assert count(None, samples=np.int64(3), share=1) == 3  # pyright: ignore[reportArgumentType]
    for given, message in (
        ({"samples": "many"}, "samples='many': a whole number is needed"),
        ({"samples": 2.5}, "samples=2.5: a whole number is needed"),
        ({"samples": True}, "samples=True: a whole number is needed"),
        ({"samples": 0}, "samples=0: a number from 1 on is needed"),
        ({"share": "half"}, "share='half': a number is needed"),
        ({"to": 8}, "to=8: a text is needed"),
    ):
        with pytest.raises(BadInput) as caught:
            count(None, **given)
        assert str(caught.value) == message
    with pytest.raises(TypeError, match="sample"):
        count(None, sample=3)  # pyright: ignore[reportCallIssue]


def test_python_and_the_shell_refuse_the_same_in_their_own_words(tmp_path: Path) -> None:
    b = litesmith.Builder()
    weight = np.ones((2, 4), np.float32)
    model = b.model(b.op("FULLY_CONNECTED", b.input("x", (1, 4)), weight, None))
    litesmith.save(model, tmp_path / "m.tflite")
    with pytest.raises(
        BadInput, match=r"^to='int8' needs data .* give data=, or take to='dynamic'"
    ):
        litesmith.quantize(model)
    shown = command("quantize", tmp_path / "m.tflite", "-o", tmp_path / "o.tflite")
    assert shown.stderr.startswith("litesmith: --to int8 needs data ")
    assert "give --data, or take --to dynamic" in shown.stderr
    with pytest.raises(BadInput, match="no normalisation 'tfx'; there are"):
        litesmith.quantize(model, np.ones((4, 4), np.float32), norm="tfx")
