"""Streams that are closed, full, read by nobody or poor in characters; and text that would act on a
terminal."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litesmith.cli.text.printing import Edge, table
from litesmith.ir.build import Builder
from litesmith.run.litert import capi
from litesmith.tflite.file import save
from tests.forked import CAN_FORK, forked
from tests.platforms import posix

LITESMITH = f"'{sys.executable}' -m litesmith"
ESCAPE = "\x1b[31mred\x07"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose names would colour a terminal."""
    place = tmp_path_factory.mktemp("streams") / "model.tflite"
    b = Builder()
    x = b.input(f"x{ESCAPE}", (1, 4))
    for number in range(40):
        x = b.op("RELU" if number % 2 else "TANH", x)
    save(b.model(x), place)
    return place


def shell(words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {words}"],
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


@posix
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_failure(model: Path, closed: str) -> None:
    shown = shell(f"{LITESMITH} inspect '{model}' {closed}")
    assert shown.returncode == 0, shown.stderr
    assert shown.stderr == b""
    assert shell(f"{LITESMITH} inspect nothing.tflite {closed}").returncode == 2


@posix
def test_what_is_written_with_closed_streams_is_the_file_alone(model: Path, tmp_path: Path) -> None:
    for name, closed in (("open", ""), ("closed", "<&- >&- 2>&-")):
        place = tmp_path / f"{name}.tflite"
        assert shell(f"{LITESMITH} apply '{model}' cleanup -o '{place}' {closed}").returncode == 0
    assert (tmp_path / "open.tflite").read_bytes() == (tmp_path / "closed.tflite").read_bytes()


@posix
@pytest.mark.parametrize(("encoding", "lang"), [("ascii", "zh"), ("cp1252", "en"), ("cp437", "pt")])
def test_every_encoding_takes_every_text(model: Path, encoding: str, lang: str) -> None:
    given = {"PYTHONIOENCODING": encoding}
    shown = shell(f"{LITESMITH} --lang {lang} inspect --ops '{model}'", **given)
    assert shown.returncode == 0, shown.stderr
    shown.stdout.decode(encoding)
    refused = shell(f"{LITESMITH} --lang {lang} inspect 'modèle€.tflite'", **given)
    assert refused.returncode == 2
    assert refused.stderr.decode(encoding).count("\n") == 1


@posix
@pytest.mark.parametrize("words", ["inspect --ops", "inspect --json", "--help"])
def test_a_reader_that_has_enough_is_no_failure(model: Path, words: str) -> None:
    file = "" if words == "--help" else f"'{model}'"
    shown = shell(f"{LITESMITH} {words} {file} | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert (shown.returncode, shown.stderr) == (0, b"")


@posix
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has such a file")
def test_a_full_output_is_named(model: Path) -> None:
    shown = shell(f"{LITESMITH} inspect --json '{model}' > /dev/full")
    assert shown.returncode == 2
    assert shown.stderr == b"litesmith: standard output: no space left on device\n"


@posix
def test_full_temporary_files_are_named(tmp_path: Path, model: Path) -> None:
    (tmp_path / "many.py").write_text(
        "import numpy as np\n\ndef samples():\n"
        "    for _ in range(5000):\n        yield np.zeros((50, 4), np.float32)\n"
    )
    import resource

    command = [sys.executable, "-m", "litesmith", "eval", str(model), "--data", "many:samples"]
    shown = subprocess.run(
        [*command, "--against", str(model), "--metric", "snr"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 2, shown.stderr
    assert f"{tmp_path}/litesmith-" in shown.stderr and "for temporary files" in shown.stderr
    assert "standard output" not in shown.stderr and shown.stderr.count("\n") == 1


@posix
@pytest.mark.parametrize(
    "words",
    [
        "inspect $'no\\e[31msuch\\a.tflite'",
        "$'\\e[31m'",
        "apply MODEL $'\\e[31m' -o x.tflite",
        "eval MODEL --data $'\\e[31m.npz'",
        "inspect --ops MODEL",
        "inspect MODEL",
    ],
)
def test_foreign_text_does_not_act_on_the_terminal(model: Path, words: str) -> None:
    shown = shell(f"{LITESMITH} {words.replace('MODEL', str(model))}")
    told = shown.stdout + shown.stderr
    assert told and b"\x1b" not in told and b"\x07" not in told


def test_a_terminal_gets_styles_of_ours_and_none_of_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = table("name")
    made.add_row(ESCAPE)
    shown = Edge(force_terminal=True, width=80, highlight=False)
    shown.print(made)
    shown.print(ESCAPE)
    told = capsys.readouterr().out
    assert "\x1b[1m" in told and "\x1b[31m" not in told and "\x07" not in told
    assert told.count(r"\x1b[31mred\x07") == 2


@posix
def test_a_failure_while_standard_error_is_diverted_is_heard(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError("no space left")

    monkeypatch.setattr(sys, "stdout", Full())
    with pytest.raises(OSError, match="no space left"), capi.quiet():
        pass
    monkeypatch.undo()
    real, closed = os.dup2, list[int]()

    def fails_once(original: int, number: int) -> int:
        if number == 1 and len(closed) == 1:
            closed.append(original)
            raise OSError("interrupted")
        closed.append(original)
        return real(original, number)

    monkeypatch.setattr(os, "dup2", fails_once)
    with pytest.raises((OSError, ValueError)), capi.overheard():
        raise ValueError("inside")
    monkeypatch.undo()
    os.write(2, b"heard\n")  # it is as before
    assert "heard" in capfd.readouterr().err


NO_LIMIT = 77
SHORT_OF_MEMORY = f"""\
import resource
import sys
from pathlib import Path
from litesmith.cli.main import main

taken = int(Path("/proc/self/statm").read_text("utf-8").split()[0]) * resource.getpagesize()
most = taken + 130_000_000
resource.setrlimit(resource.RLIMIT_AS, (most, most))
if resource.getrlimit(resource.RLIMIT_AS)[0] != most:  # qemu-user drops the limit
    sys.exit({NO_LIMIT})
main()
"""


@pytest.mark.skipif(not CAN_FORK, reason="needs Linux")
def test_too_little_memory_is_no_bug_of_ours(tmp_path: Path, model: Path) -> None:
    data = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (6_250_000, 4))
    del data  # a file with a hole, which takes no room
    words = ["eval", str(model), "--data", "x.npy", "--against", str(model), "--metric", "snr"]
    done = forked(SHORT_OF_MEMORY, words, cwd=tmp_path, variables=os.environ, seconds=60)
    if done.returncode == NO_LIMIT:
        pytest.skip("this system sets no limit to a process's memory")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("litesmith: ") == 1 and "memory" in done.stderr
