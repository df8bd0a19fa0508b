"""What commands print in another language has no English sentence of ours in it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import pytest

from litesmith.cli.commands import COMMANDS
from litesmith.cli.main import make_app
from litesmith.errors import LitesmithError
from litesmith.lang.language import LANGUAGES, say, speaking, use
from litesmith.tflite.file import save
from tests.cli.commands.test_evaluate import scorer
from tests.lang.books import strange
from tests.lang.test_everywhere import DEMO

QUICK = ("--runs", "3")
PRINTED: dict[str, Sequence[str]] = {
    "inspect": ("inspect", str(DEMO)),
    "inspect of a coarse model": ("inspect", "coarse.tflite"),
    "bench": ("bench", "a.tflite", *QUICK),
    "bench of two": ("bench", "a.tflite", "coarse.tflite", *QUICK),
    "eval": ("eval", "coarse.tflite", "--data", "labelled.npz", "--against", "a.tflite"),
    "eval without labels": (
        "eval",
        "coarse.tflite",
        "--data",
        "plain.npy",
        "--against",
        "a.tflite",
    ),
    "quantize": ("quantize", str(DEMO), "--to", "dynamic", "-o", "small.tflite"),
    "compare": (
        "compare",
        "a.tflite",
        "coarse.tflite",
        "--data",
        "labelled.npz",
        "--seconds",
        "0.05",
    ),
    "doctor": ("doctor", str(DEMO), "--seconds", "0.05"),
    "doctor with data": (
        "doctor",
        "coarse.tflite",
        "--against",
        "a.tflite",
        "--data",
        "plain.npy",
        "--seconds",
        "0.05",
    ),
    "targets": ("targets", str(DEMO)),
    "diff": ("diff", "a.tflite", "coarse.tflite"),
    "profile": ("profile", str(DEMO), "--runs", "3"),
    "no file": ("inspect", "none.tflite"),
    "no model": ("inspect", "plain.npy"),
    "no target": ("bench", "a.tflite", "--on", "abacus"),
    "no data": ("eval", "a.tflite", "--data", "none.npz"),
    **{f"help of {name}": (name, "--help") for name in COMMANDS},
    "help": ("--help",),
}

# What is typed, and names of ops and of others, are the same in every language.
_COMMAND = re.compile(r"\blitesmith [a-z][^⟦⟧\n]*")
_TYPED = re.compile(r"`[^`]*`|\S*[/.=_]\S*|--?\w[\w-]*|'[^']*'")
_OF_THE_PARSER = "Show this message and exit."  # which it says by gettext, and not by `say`
_SENTENCE = re.compile(r"\b[a-z]{2,} [a-z]{2,}\b")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, a coarse copy of it, and data with and without labels."""
    folder = tmp_path_factory.mktemp("printed")
    save(scorer(), folder / "a.tflite")
    save(scorer(2.0), folder / "coarse.tflite")
    random = np.random.default_rng(0)
    labels = random.integers(0, 4, 200)
    x = (random.normal(0, 1, (200, 4)) + np.eye(4)[labels]).astype(np.float32)
    np.savez(folder / "labelled.npz", x=x, y=labels)
    np.save(folder / "plain.npy", x)
    return folder


def _english(printed: str) -> Iterator[str]:
    """Two words in a row that are outside of all brackets."""
    typed = _COMMAND.sub("|", printed.replace(_OF_THE_PARSER, ""))
    ours = re.sub(r"⟦[^⟦⟧]*⟧", "|", typed)
    for part in _TYPED.sub("|", ours).split("|"):
        yield from _SENTENCE.findall(part)


@pytest.mark.parametrize("name", PRINTED)
def test_no_sentence_of_ours_stays_english(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "500")
    with speaking(strange()):
        try:
            make_app().main(list(PRINTED[name]), "litesmith", standalone_mode=False)
        except LitesmithError as error:
            print(say(error.args[0]))
        except click.exceptions.Exit as ended:
            assert ended.exit_code in (0, 1)
    printed = "".join(capsys.readouterr())
    assert "⟦" in printed
    assert list(_english(printed)) == [], printed


def test_a_sentence_that_stays_is_found() -> None:
    assert list(_english("⟦the ⟧x.tflite⟦ is ⟧3 ms, no faster `as it is`")) == ["no faster"]


WRONG: dict[str, Sequence[str]] = {
    "an option": ("inspect", "--nothing"),
    "an option that is nearly one": ("bench", "a", "--secnds", "3"),
    "an argument that is not there": ("inspect",),
    "two arguments too many": ("inspect", "a", "b", "c"),
    "no value": ("bench", "a", "--format"),
    "a value of a switch": ("bench", "a", "--copies=3"),
    "no number": ("bench", "a", "--runs", "x"),
}
_WORD = re.compile(r"(?<![\w'-])[A-Za-z]{3,}(?![\w'])")


@pytest.mark.parametrize("wrong", WRONG)
def test_what_the_parser_refuses_is_told_in_the_language(
    wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANGUAGE", "en")  # and back again after the test
    told: dict[str, str] = {}
    with speaking(None):
        for lang in LANGUAGES:
            use(lang)
            with pytest.raises(click.UsageError) as raised:
                make_app().main(list(WRONG[wrong]), "litesmith", standalone_mode=False)
            told[lang] = raised.value.format_message()
    english = set(_WORD.findall(told["en"]))
    same = {lang: english & set(_WORD.findall(words)) for lang, words in told.items()}
    assert same == {"en": english, "es": set(), "pt": set(), "zh": set()}, told
