"""What is said before a command begins: of kernels of our own, of pipes."""

import os
import sys
from pathlib import Path

import pytest

from litesmith.cli.options.command_line import tell_cold, tell_pipes
from litesmith.installing import install_command
from tests.kernels.one_op import needs_numba
from tests.platforms import posix


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


@posix
def test_a_pipe_that_is_waited_for_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pipe, file = tmp_path / "pipe\x1b.tflite", tmp_path / "m.tflite"
    os.mkfifo(pipe)
    file.touch()
    reader, writer = os.pipe()
    tell_pipes(["inspect", str(file), "x" * 5000, "\0", "", f"/dev/fd/{reader}"])
    assert capfd.readouterr() == ("", "")
    tell_pipes(["eval", str(file), f"--data={pipe}"])
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "pipe\\x1b.tflite: is a pipe; this waits for what is written to it" in err
    os.close(reader)
    os.close(writer)
