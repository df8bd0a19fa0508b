"""What is shown is in the language in use; what programs read is not."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from litesmith.cli.options.command_line import take_language
from litesmith.errors import BadInput
from litesmith.lang.language import LANGUAGES, language, say, speaking
from litesmith.pages.folder_kinds import write_markdown, write_report
from tests.cli.typed import run_command
from tests.lang.books import strange
from tests.pages import chosen, folders, gated, retrained
from tests.pages.test_folder_kinds import benched

FOLDERS = {
    "tune": folders.write_folder,
    "tune, half": folders.half_finished,
    "tune, missed": folders.missed,
    "tune, float": folders.float_only,
    "choose": chosen.write_folder,
    "retrain": retrained.write_folder,
    "bench": benched,
    "gate": gated.write_folder,
}
DEMO = Path(__file__).parents[2] / "src" / "litesmith" / "demo_files" / "model.tflite"


def litesmith(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "80", "PYTHONUTF8": "1"} | variables
    return subprocess.run(
        [sys.executable, "-m", "litesmith", *map(str, words)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("kind", FOLDERS)
def test_what_is_typed_is_the_same_in_every_language(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    FOLDERS[kind](folder)
    with speaking(strange()):
        page = write_report(folder).read_text(encoding="utf-8")
        shown = write_markdown(folder).read_text(encoding="utf-8")
    assert "⟦" in page and "⟦" in shown
    assert '<html lang="es">' in page
    assert "⟦" not in "".join(re.findall(r"<(?:code|script|style)>.*?</", page, re.DOTALL))


def test_a_report_in_a_language_by_its_name(tmp_path: Path) -> None:
    folder = folders.write_folder(tmp_path / "tuned")
    pages = {lang: write_report(folder, lang=lang).read_text("utf-8") for lang in LANGUAGES}
    assert {lang: f'<html lang="{lang}">' in page for lang, page in pages.items()} == dict.fromkeys(
        LANGUAGES, True
    )
    assert len(set(pages.values())) == len(LANGUAGES)


def test_json_is_the_same_in_every_language(capsys: pytest.CaptureFixture[str]) -> None:
    told: set[str] = set()
    for lang in LANGUAGES:
        with speaking(lang):
            run_command("inspect", model=DEMO, as_json=True)
        told.add(capsys.readouterr().out)
    assert len(told) == 1
    assert json.loads(told.pop())["schema"] == 1


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--lang", "es", "inspect", "x"], {}),
        (["inspect", "x", "--lang=es"], {"LITESMITH_LANG": "zh"}),
        (["inspect", "--lang", "pt", "x", "--lang", "es"], {}),
        (["inspect", "x"], {"LITESMITH_LANG": "es"}),
        (["inspect", "x"], {"LC_ALL": "es_MX.UTF-8"}),
    ],
)
def test_the_option_is_taken_anywhere_and_before_the_locale(
    words: list[str], variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LITESMITH_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with speaking(None):
        assert take_language(words) == ["inspect", "x"]
        assert language() == "es"


def test_what_follows_two_dashes_is_no_option() -> None:
    with speaking(None):
        assert take_language(["inspect", "--", "--lang", "es"]) == ["inspect", "--", "--lang", "es"]


@pytest.mark.parametrize("words", [["--lang", "xx", "inspect"], ["inspect", "--lang"], ["--lang="]])
def test_a_wrong_language_is_refused(words: list[str]) -> None:
    with pytest.raises(BadInput, match="there are en, es, pt, zh"), speaking(None):
        take_language(words)


def test_an_error_is_told_in_the_language(tmp_path: Path) -> None:
    missing = tmp_path / "none.tflite"
    done = litesmith("inspect", missing, "--lang", "es")
    assert (done.returncode, done.stdout) == (2, "")
    with pytest.raises(BadInput) as raised:
        run_command("inspect", model=missing)
    (english,) = raised.value.args
    with speaking("es"):
        assert say(english) != english
        assert done.stderr == f"litesmith: {say(english)}\n"


def test_help_names_the_option() -> None:
    assert "--lang en|es|pt|zh" in litesmith("inspect", "--help").stdout
