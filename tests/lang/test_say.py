"""A phrase is said by the translation of its template, with its values said too."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.lang.language import (
    LANGUAGES,
    Language,
    language,
    language_of,
    open_language,
    say,
    speaking,
    usual_language,
)
from litesmith.phrases import Quantity, join, phrase
from tests.lang.books import SPANISH

MESSAGES = {
    "{count} tensors are quantized as uint8": "{count} tensores están cuantizados en uint8",
    "nothing stands out": "nada llama la atención",
    "{time} a run": "{time} por ejecución",
    "faster": "más rápido",
    "{a} is {verdict} than {b}": "{b} es superado: {a} es {verdict}",
    "the model": "el modelo",
    "a part of {whole}": "una parte de {whole}",
}
FORM = SPANISH._replace(merged={"de el": "del"})
LANGUAGE = Language("es", lambda text: MESSAGES.get(text, text), FORM)


def test_values_stand_where_the_translation_wants_them_and_are_said_too() -> None:
    told = phrase("{a} is {verdict} than {b}", "x.tflite", phrase("faster"), "y.tflite")
    assert LANGUAGE.say(told) == "y.tflite es superado: x.tflite es más rápido"


def test_numbers_are_in_the_form_of_the_language_and_names_are_not() -> None:
    assert LANGUAGE.say(phrase("{time} a run", Quantity("12.3 ms"))) == "12,3 ms por ejecución"
    assert LANGUAGE.say(phrase("{time} a run", "v12.3")) == "v12.3 por ejecución"
    assert LANGUAGE.say("69.15 %") == "69,15 %"


def test_joined_phrases_are_said_one_by_one() -> None:
    told = join((phrase("faster"), "x", phrase("nothing stands out")), "; ")
    assert LANGUAGE.say(told) == "más rápido; x; nada llama la atención"


def test_words_that_meet_are_one_where_the_language_makes_them_one() -> None:
    assert LANGUAGE.say(phrase("a part of {whole}", phrase("the model"))) == "una parte del modelo"


@given(st.text().filter(lambda text: text not in MESSAGES and not any(map(str.isdigit, text))))
def test_what_is_no_message_stays(text: str) -> None:
    assert LANGUAGE.say(text) == text
    assert LANGUAGE.say(phrase("{text}", text)) == text


@given(st.sampled_from(sorted(MESSAGES)), st.data())
def test_a_name_that_is_also_a_message_stays_a_name(name: str, data: st.DataObject) -> None:
    assert name in LANGUAGE.say(phrase("{count} tensors are quantized as uint8", name))


def test_chinese_has_no_space_between_its_letters() -> None:
    spoken = Language("zh", {"{a} and {b}": "{a}和{b}", "x": "模型"}.get, LANGUAGES["zh"])  # type: ignore[arg-type]
    assert spoken.say(phrase("{a} and {b}", phrase("x"), "cpu")) == "模型和 cpu"


@pytest.mark.parametrize("name", ["es", "es_MX.UTF-8", "ES-mx"])
def test_a_language_by_its_names(name: str) -> None:
    assert language_of(name) == "es"


def test_no_such_language() -> None:
    with pytest.raises(BadInput, match="no language 'xx'; there are en, es, pt, zh"):
        language_of("xx")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "pt_BR.UTF-8"}, "pt"),
        ({"LANG": "pt_BR", "LC_ALL": "zh_CN"}, "zh"),
        ({"LANG": "pt_BR", "LITESMITH_LANG": "es"}, "es"),
    ],
)
def test_the_language_of_a_user(environment: dict[str, str], expected: str) -> None:
    assert usual_language(environment) == expected


def test_a_language_is_spoken_for_a_while() -> None:
    with speaking("es"):
        assert language() == "es"
        with speaking("en"):
            assert say("faster") == "faster"
    assert language() == "en" and open_language("en") is None


def test_every_catalogue_was_built() -> None:
    for name in LANGUAGES:
        spoken = open_language(name)
        assert (spoken is None) == (name == "en"), Path(__file__)
