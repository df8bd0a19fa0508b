"""`--engine` as it is typed: what cannot be had is one line, soon."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from litesmith.errors import BadInput, LitesmithError
from litesmith.installing import install_command
from litesmith.workers.engine import address_of, open_engine, refuse_engine
from tests.search.choosing.taught import written
from tests.slowness import patient

# Runs the command line as if ray were not installed.
WITHOUT_RAY = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "ray":
            raise ModuleNotFoundError(name)

import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "ray" else found(name, *more)
sys.meta_path.insert(0, Absent())
from litesmith.cli.main import main
main()
"""


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        yield one.getsockname()[1]


def test_local_is_no_engine() -> None:
    for given in ("local", None):
        with open_engine(given) as engine:
            assert engine is None


@pytest.mark.parametrize("text", ["", "rai", "http://head:10001", "RAY"])
def test_others_are_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(BadInput, match=r"no engine .*; there are local, ray, ray://HOST:PORT"):
        refuse_engine(text)


@pytest.mark.parametrize("text", ["ray://", "ray://head", "ray://:1", "ray://h:0", "ray://h:70000"])
def test_an_address_has_a_host_and_a_port(text: str) -> None:
    with pytest.raises(BadInput, match="give a host and a port, as in ray://head:10001"):
        refuse_engine(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ray://head:10001", ("head", 10001)),
        ("10.0.0.2:6379", ("10.0.0.2", 6379)),
        ("ray://[::1]:10001", ("::1", 10001)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


def test_an_address_that_does_not_answer_is_told_soon(silent_port: int) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    began = monotonic()
    text = f"ray://127.0.0.1:{silent_port}"
    with pytest.raises(LitesmithError, match=f"{text}: nothing answers there .*ray start --head"):
        refuse_engine(text)
    assert monotonic() - began < patient(10)  # what is promised


@pytest.mark.parametrize("command", ["eval", "tune", "choose"])
def test_without_ray_one_line_names_the_command_that_installs_it(
    command: str, tmp_path: Path
) -> None:
    model, data = written(tmp_path)
    words = [command, str(model), "--data", str(data), "--engine", "ray"]
    if command == "tune":
        words += ["--max-drop", "5pt"]
    run = [sys.executable, "-c", WITHOUT_RAY, *words]
    shown = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert shown.returncode == 2
    (line,) = shown.stderr.splitlines()
    assert install_command("ray") in line
    assert {*tmp_path.iterdir()} == {model, data}
