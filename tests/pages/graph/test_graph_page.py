"""The page of `view`: one file, in every language, that asks for nothing."""

import re
import sys
from html import unescape
from pathlib import Path

import pytest

import litesmith
from litesmith.lang.language import LANGUAGES, speaking
from litesmith.pages.graph.graph_page import view_text
from litesmith.pages.graph.graph_words import WORDS, graph_words
from tests import zoo
from tests.pages.drawing.test_page import Page
from tests.pages.graph.views import blocks, int8_of


def test_a_page_is_sound_and_loads_nothing() -> None:
    model = blocks()
    text = litesmith.view(model, int8_of(model), predict=True).page
    page = Page(text)
    assert not re.search(r"""(?:src|href)=["']?(?:https?:|//)""", text)
    assert "default-src 'none'" in unescape(text) and "unsafe-eval" not in text
    names = [dict(attributes).get("id") for _, attributes in page.elements]
    kept = [name for name in names if name]
    assert len(kept) == len(set(kept))


@pytest.mark.skipif(sys.platform == "win32", reason="no such names there")
def test_a_file_name_acts_on_nothing(tmp_path: Path) -> None:
    """It stood in the commands of the page as it was, for whoever pastes one into a terminal."""
    place = tmp_path / "a\x1b[31m\u202eb\x9b2J\r.tflite"
    litesmith.save(blocks(), place)
    text = litesmith.view(place, predict=True).page
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "u202e" in text and "\\\\u001b" not in text
    hidden = re.search(r'class="graph-data">([^<]*)<', text)
    assert hidden is not None and not re.search(r"(?<!\\)\\u(?:001b|202e|009b)", hidden[1])


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_language_has_every_word(name: str) -> None:
    view = litesmith.view(zoo.convnet(), predict=True).view
    with speaking(name):
        words = graph_words()
        assert f'lang="{name}"' in view_text(view)
    assert words.keys() == WORDS.keys() and all(words.values())
    for key, word in words.items():
        assert sorted(re.findall(r"\{\w+\}", word)) == sorted(re.findall(r"\{\w+\}", WORDS[key]))
        places = re.findall(r"\{\w+\}", word)
        assert places == re.findall(r"\{\w+\}", WORDS[key]), "the script fills them in in order"


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    assert "predicted" in litesmith.view(zoo.convnet(), predict=True).page
    litesmith.save(zoo.convnet(), tmp_path / "m.tflite")
    assert "timed on cpu:1" in litesmith.view(tmp_path / "m.tflite", seconds=0.01).page
