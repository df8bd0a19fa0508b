"""A sentence is said with the translation of a template that makes the same English."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.lang.book import Book
from litesmith.lang.numbers import ENGLISH, Form
from litesmith.lang.speech import LANGUAGES, book, known, language, say, speaking, use, usual
from litesmith.lang.template import NUMBER_NAMES, filled
from tests.lang.books import SPANISH, fresh, holes, msgids, turned

NAMES = st.sampled_from(
    ("model.tflite", "cpu:1", "a/b c.npz", "CONV_2D", "'x'", "mobilenet_v1_0.25", "--data", "7")
)
NUMBERS = st.sampled_from(("3", "1,234", "2.50", "12.3 ms", "69.1 %"))

ENGLISH_NUMBERS = Book("es", {message: turned(message) for message in msgids()}, ENGLISH)

BOOK = Book(
    "es",
    {
        "{count} tensors are quantized as uint8": "{count} tensores están cuantizados en uint8",
        "nothing stands out": "nada llama la atención",
        "{first} and {last}": "{first} y {last}",
        "{time} a run": "{time} por ejecución",
        "faster": "más rápido",
        "The same file": "El mismo archivo",
    },
    SPANISH,
)


def _values(message: str, draw: st.DrawFn) -> dict[str, str]:
    return {name: draw(NUMBERS if _is_number(name) else NAMES) for name in holes(message)}


def _is_number(name: str) -> bool:
    return name.rstrip("0123456789") in NUMBER_NAMES


def _said(message: str, values: dict[str, str]) -> None:
    """Says a message with values; what is said without the brackets is the English again."""
    english = filled(message, values)
    said = ENGLISH_NUMBERS.say(english)
    assert said.replace("⟦", "").replace("⟧", "") == english
    assert "⟦" in said
    assert english not in ENGLISH_NUMBERS.missed


@given(st.data())
def test_what_is_said_is_a_translation_of_the_same_english(data: st.DataObject) -> None:
    message = data.draw(st.sampled_from(msgids()))
    _said(message, data.draw(st.composite(lambda draw: _values(message, draw))()))


def test_every_message_is_found_again() -> None:
    for message in msgids():
        names = enumerate(holes(message))
        _said(message, {n: "7" if _is_number(n) else f"x{place}.y" for place, n in names})


def test_a_sentence_with_values() -> None:
    assert BOOK.say("12 tensors are quantized as uint8") == "12 tensores están cuantizados en uint8"


def test_the_longer_template_wins_and_values_are_said_too() -> None:
    assert BOOK.say("faster and model.tflite") == "más rápido y model.tflite"


def test_numbers_in_a_sentence_are_in_the_form_of_the_language() -> None:
    assert BOOK.say("12.3 ms a run") == "12,3 ms por ejecución"


def test_spaces_signs_and_capitals_stay() -> None:
    assert BOOK.say("  - nothing stands out; ") == "  - nada llama la atención; "
    assert BOOK.say("the same file") == "el mismo archivo"
    assert BOOK.say("Nothing stands out.") == "Nada llama la atención."


@given(NAMES)
def test_names_stay(name: str) -> None:
    assert BOOK.say(name) == name


def test_parts_of_a_line_are_said_apart() -> None:
    assert BOOK.say("model.tflite: 3.1 ms a run; faster") == (
        "model.tflite: 3,1 ms por ejecución; más rápido"
    )


def test_what_has_no_translation_stays_whole_and_is_kept() -> None:
    own = Book("es", {"faster": "más rápido"}, SPANISH)
    text = "this is what nobody has translated: faster"
    assert own.say(text) == text
    assert own.missed == {text}


def _book(messages: dict[str, str], form: Form = SPANISH) -> Book:
    return Book("es", messages, form)


def test_a_model_called_model_keeps_its_name() -> None:
    own = _book({"model": "modelo", "scoring {name}": "puntuando {name}", "{n} runs": "{n} veces"})
    assert own.say("scoring model") == "puntuando model"
    assert own.say("model: 3 runs") == "modelo: 3 veces"


def test_what_is_on_the_other_side_of_a_joint_is_no_part_of_a_value() -> None:
    own = _book(
        {
            "not asked: {why}": "sin preguntar: {why}",
            "{what} is to be small, not the file": "lo pequeño es {what}, no el archivo",
            "latency": "latencia",
        }
    )
    english = "not asked: latency is to be small, not the file"
    assert own.say(english) == "sin preguntar: lo pequeño es latencia, no el archivo"


def test_the_ends_of_an_interval_stay_together() -> None:
    own = _book({"fits": "cumple"})
    assert own.say("a, fits, +0.10 pt [−0.24, +0.43]") == "a, cumple, +0,10 pt [−0,24; +0,43]"


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("top-1 94.87 %", "top-1 94,87 %"),
        ("cosine 0.9999", "coseno 0,9999"),
        ("cosine: 1", "coseno: 1"),
        ("cosine 1", "cosine 1"),  # the name of something
        ("mobilenet 0.25", "mobilenet 0.25"),
    ],
)
def test_a_number_behind_a_word(english: str, said: str) -> None:
    assert _book({"cosine": "coseno"}).say(english) == said


def test_sentences_of_other_programs_stay_as_they_are() -> None:
    own = _book({"{a} with {b}": "{a} con {b}", "{n} ops: {why}": "{n} operadores: {why}"})
    english = "3 ops: Vela: Operation has tensor with unsupported type (measured)"
    assert own.say(english) == (
        "3 operadores: Vela: Operation has tensor with unsupported type (measured)"
    )
    assert not own.missed


@pytest.mark.parametrize(
    ("language", "english", "said"),
    [
        ("es", "learns from the vector", "aprende del vector"),
        ("es", "learns from el", "aprende de el"),  # a name
        ("es", "learns from it", "aprende de it"),
        ("pt", "learns from the vector", "aprende do vector"),
    ],
)
def test_words_that_meet(language: str, english: str, said: str) -> None:
    article = {"es": "el", "pt": "o"}[language]
    own = {"learns from {what}": "aprende de {what}", "the {name}": f"{article} {{name}}"}
    assert _book(own, LANGUAGES[language]).say(english) == said


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("the drop of x", "x 的下降"),
        ("the drop of the drop of x", "x 的下降的下降"),
        ("fits: the drop of x; fits", "符合：x 的下降；符合"),
        ("x (fits)", "x（符合）"),
        ("fits, 3.5 ms, 4.5 ms", "符合，3.5 ms, 4.5 ms"),
        ("file 名字v2.tflite", "文件名字v2.tflite"),
    ],
)
def test_wide_letters(english: str, said: str) -> None:
    """Signs are wide beside them, and spaces are between them and others only; a name stays."""
    own = {"the drop of {what}": "{what} 的下降", "fits": "符合", "file {path}": "文件 {path}"}
    assert _book(own, LANGUAGES["zh"]).say(english) == said


def test_a_language_is_spoken_for_a_while() -> None:
    assert say("faster") == "faster"
    with speaking(BOOK):
        assert (say("faster"), language()) == ("más rápido", "es")
        with speaking("en"):
            assert say("faster") == "faster"
        with speaking(None):
            assert say("faster") == "más rápido"
    assert (say("faster"), language()) == ("faster", "en")


def test_an_unknown_language_is_refused() -> None:
    for name in ("xx", "", "e"):
        with pytest.raises(BadInput, match=r"no language .*; there are en, es, pt, zh"):
            use(name)
    assert language() == "en"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "pt_BR.UTF-8"}, "pt"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN"}, "zh"),
        ({"LC_MESSAGES": "zh_CN", "LC_ALL": "es"}, "es"),
        ({"LC_ALL": "es", "LITESMITH_LANG": "en"}, "en"),
    ],
)
def test_the_language_of_a_user(environment: dict[str, str], expected: str) -> None:
    assert usual(environment) == expected


def test_a_wrong_variable_is_refused() -> None:
    with pytest.raises(BadInput, match="no language 'klingon'"):
        usual({"LITESMITH_LANG": "klingon"})


def test_english_needs_no_book() -> None:
    assert book("en") is None and known("es-MX") == "es"


def test_missing_is_told_apart_from_the_cache() -> None:
    one, two = fresh(), fresh()
    one.say("this is what nobody has translated")
    assert one.missed and not two.missed
