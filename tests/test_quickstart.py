"""The quick start is the same in four languages; its links lead somewhere, its commands run."""

import re
import shlex
from pathlib import Path

import pytest

from litesmith import demo_files as demo
from tests.cli.test_cli import litesmith

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {
    "en": "quickstart.md",
    "es": "quickstart.es.md",
    "pt": "quickstart.pt.md",
    "zh": "quickstart.zh.md",
}
# What other tests run, or what takes long here: installing, and the searches.
ELSEWHERE = ("pip ", "litesmith demo", "litesmith tune", "litesmith report")
# Less of what is much: seconds, samples.
FEW = ("--samples", "128")
SHORT = ("--seconds", "0.1")
IN_HASTE = {
    "bench": SHORT,
    "compare": (*SHORT, *FEW),
    "doctor": SHORT,
    "gate": (*SHORT, *FEW),
    "profile": ("--runs", "12"),
    "quantize": FEW,
}


def text(language: str) -> str:
    return (DOCS / PAGES[language]).read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", text(language), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("language", PAGES)
def test_commands_are_those_of_the_english_page(language: str) -> None:
    assert blocks(language) == blocks("en")


@pytest.mark.parametrize("language", PAGES)
def test_every_part_is_there(language: str) -> None:
    assert text(language).count("\n## ") == text("en").count("\n## ")


@pytest.mark.parametrize("language", PAGES)
def test_links_lead_somewhere(language: str) -> None:
    links = re.findall(r"\]\(([^)]+)\)", text(language))
    assert {PAGES[other] for other in PAGES if other != language} <= set(links)
    assert all((DOCS / link).is_file() for link in links)


def test_commands_run(tmp_path: Path) -> None:
    demo.write(tmp_path / "demo")
    commands = [line for block in blocks("en") for line in block.splitlines()]
    ours = [line for line in commands if not line.startswith(ELSEWHERE)]
    assert len(ours) >= 8
    for line in ours:
        words = shlex.split(line)[1:]
        done = litesmith(*words, *IN_HASTE.get(words[0], ()), cwd=tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
