"""Completion of commands, as the shells ask for it."""

import shutil
import subprocess

import pytest

from litesmith.cli.completion import INSTALL, SHELLS
from tests.cli.test_cli import litesmith
from tests.slowness import patient

PARSERS = {"bash": ["bash", "-n"], "zsh": ["zsh", "-n"], "fish": ["fish", "--no-execute"]}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_every_shell(shell: str) -> None:
    shown = litesmith("completion", shell)
    assert shown.returncode == 0 and "_LITESMITH_COMPLETE" in shown.stdout
    assert INSTALL[shell] in litesmith("completion", "--help").stdout
    parser = PARSERS.get(shell, [""])
    if shutil.which(parser[0]):
        subprocess.run(parser, input=shown.stdout, text=True, check=True, timeout=patient(20))


ASKED = [
    ("bash", "litesmith qu", "1", {"plain,quantize"}),
    ("bash", "litesmith tune --max-s", "2", {"plain,--max-size"}),
    ("bash", "litesmith quantize --to dyn", "3", {"plain,dynamic", "plain,dynamic-int4"}),
    ("bash", "litesmith eval m.tflite --data va", "4", {"file,va"}),
    ("bash", "litesmith eval m.tf", "2", {"file,m.tf"}),
    ("bash", "litesmith help rec", "2", {"plain,recipes"}),
    ("bash", "litesmith completion z", "2", {"plain,zsh"}),
    ("powershell", "litesmith re", "re", {"report", "retrain"}),
    ("powershell", "litesmith tune --max-s", "--max-s", {"--max-size"}),
]


@pytest.mark.parametrize(("shell", "words", "word", "wanted"), ASKED)
def test_what_is_typed_is_completed(shell: str, words: str, word: str, wanted: set[str]) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": word, "_LITESMITH_COMPLETE": f"{shell}_complete"}
    shown = litesmith(**asked)
    assert shown.returncode == 0
    assert {line.partition("\t")[0] for line in shown.stdout.splitlines()} == wanted


def test_an_unknown_shell_is_refused() -> None:
    shown = litesmith("completion", "csh")
    assert shown.returncode == 2
    assert shown.stderr == (
        "litesmith: no completion for 'csh'; there are bash, zsh, fish, powershell\n"
    )
