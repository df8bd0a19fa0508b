"""Every command that a document shows can be typed, and runs here or says where it does."""

import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from litesmith.cli.call import call
from litesmith.cli.commands import COMMANDS
from litesmith.cli.options.declare import make_click
from tests.cli.test_cli import litesmith
from tests.docs_folder import write_folder

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Page or words of a command -> why it does not run here.
NOT_RUN = {
    "README.md": "the first installs, the others are those of quickstart.md with files of yours",
    "quickstart": "tests/test_quickstart.py runs them",
    "task": "tests/test_examples.py makes the data of each task and scores it",
    "cluster.md": "needs a Ray cluster: tests/ray_engine",
    "catalogue.md": "weights of yours, or published ones that pip fetches: tests/networks",
    "retrain.md": "stands for files of yours: tests/cli/commands/test_retrain.py",
    "train.md": "stands for files of yours, and trains: tests/cli/test_train_commands.py",
    "quantize.md": "stands for files of yours: tests/cli/commands/test_quantize.py",
    "litesmith tune": "a search takes long: tests/cli/commands/test_tune.py",
    "litesmith choose": "candidates of yours: tests/cli/commands/test_choose.py",
    "litesmith convert": "writes over a model of other commands: tests/test_api_examples.py",
    "--ops my_ops.py": "an op of yours: tests/cli/test_custom_ops.py",
    "op=Swish6": "an op of yours: tests/cli/test_custom_ops.py",
    "--data val/": "a folder of yours: tests/cli/commands/test_overlay.py",
}
# Words that parsing leaves out: code of the reader's, and what stands for more words.
UNTYPED = ("--ops", "my_ops.py", "…")
# Options that make a run short.
FEW, SHORT = ("--samples", "64"), ("--seconds", "0.1")
IN_HASTE = {
    "apply": FEW,
    "bench": SHORT,
    "compare": (*SHORT, *FEW),
    "doctor": SHORT,
    "eval": FEW,
    "gate": (*SHORT, *FEW, "--allow", "memory=off"),
    "profile": ("--runs", "12"),
}


def commands_of(page: Path) -> list[str]:
    """The lines of code blocks that are commands of ours."""
    blocks = re.findall(r"^```(?:sh|text)?\n(.*?)^```$", page.read_text("utf-8"), re.S | re.M)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    found = (re.sub(r"^\S*bin/", "", line.strip()) for line in lines)
    return [line for line in found if line.startswith("litesmith ") and " -> " not in line]


SHOWN = [(page.name, line) for page in PAGES for line in commands_of(page)]


def why_not(page: str, line: str) -> str:
    """Why a command does not run here; "" where it does."""
    return next((why for words, why in NOT_RUN.items() if words in line or words in page), "")


@pytest.mark.parametrize("page", sorted({page for page, _ in SHOWN}))
def test_every_command_can_be_typed(page: str) -> None:
    for line in (line for own, line in SHOWN if own == page):
        _, name, *rest = shlex.split(line, comments=True)
        if name in COMMANDS:
            made = make_click(name, COMMANDS[name], call)
            made.make_context(name, [one for one in rest if one not in UNTYPED]).close()
        else:
            assert name in ("help", "completion", "--help", "COMMAND"), line


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("docs")
    write_folder(place)
    return place


RUN = list(dict.fromkeys(line for page, line in SHOWN if not why_not(page, line)))


@pytest.mark.parametrize("line", RUN)
def test_it_runs(line: str, folder: Path) -> None:
    if "--on micro" in line and find_spec("tflite_micro") is None:
        pytest.skip("tflite-micro is not installed")
    _, name, *rest = shlex.split(line, comments=True)
    haste = IN_HASTE.get(name, ()) if "--update" not in rest else IN_HASTE["gate"]
    done = litesmith(name, *rest, *_without(haste, name, rest), cwd=folder)
    assert done.returncode in (0, 1 if name == "gate" else 0), done.stderr


def _without(haste: tuple[str, ...], name: str, typed: list[str]) -> list[str]:
    """What makes a run short, without options for data that the command does not read."""
    pairs = zip(haste[::2], haste[1::2], strict=True)
    return [w for pair in pairs if pair[0] != "--samples" or "--data" in typed for w in pair]


def test_reasons_are_of_something() -> None:
    for words, why in NOT_RUN.items():
        assert any(words in page or words in line for page, line in SHOWN), words
        for path in re.findall(r"tests/[\w/.]+", why):
            assert (ROOT / path).exists(), path
