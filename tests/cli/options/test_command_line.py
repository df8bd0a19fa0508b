"""What is said before kernels of our own run."""

import sys

import pytest

from litesmith.cli.options.command_line import tell_cold
from litesmith.installing import install_command
from tests.kernels.one_op import needs_numba


@pytest.mark.parametrize(
    "words",
    [
        ["bench", "m.tflite"],
        ["inspect", "litesmith"],
        ["bench", "litesmith.tflite", "--on", "cpu:1"],
    ],
)
def test_other_commands_say_nothing(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    tell_cold(words)
    assert capfd.readouterr() == ("", "")


@needs_numba
def test_nothing_is_told_of_compiling_without_a_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    tell_cold(["bench", "m.tflite", "--on", "cpu:1:litesmith"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text", ["cpu:1:litesmith", "cpu:2:litesmith,cpu:1", "--on=cpu:1:litesmith"]
)
def test_a_missing_compiler_is_one_line(
    text: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    tell_cold(["bench", "m.tflite", text])
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and install_command("jit") in err
