"""Catalogues have every message of the source, whole, and every message can be said in each."""

import re
from string import Formatter

import pytest

from litesmith.lang.language import LANGUAGES, open_language
from litesmith.phrases import Phrase, Quantity, names_of
from tests.lang.books import messages, msgids

OTHERS = [name for name in LANGUAGES if name != "en"]
_MOST_SHOWN = 20


def fields(template: str) -> set[tuple[str, str, str | None]]:
    """Every field of a template, with how it is to be shown."""
    parsed = Formatter().parse(template)
    return {(name, spec or "", how) for _, name, spec, how in parsed if name}


def has_fields(message: str) -> bool:
    try:
        return bool(names_of(message))
    except ValueError:  # braces that are no fields
        return False


def test_the_languages_of_the_tool_are_those_of_the_package() -> None:
    assert list(messages.LANGUAGES) == OTHERS


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_the_messages_of_the_source(language: str) -> None:
    catalog = set(messages.ids(messages.read_catalogue(language)))
    assert catalog == msgids(), "run python tools/messages.py"


@pytest.mark.parametrize("language", OTHERS)
def test_every_message_has_a_translation(language: str) -> None:
    left = [message for message, said in messages.translations(language) if not said]
    assert not left, f"{len(left)} of {len(msgids())} in {language}: {left[:_MOST_SHOWN]}"


@pytest.mark.parametrize("language", OTHERS)
def test_every_message_with_values_can_be_said(language: str) -> None:
    """By its translation, with every value in it, in the form in which English has it."""
    spoken = open_language(language)
    assert spoken is not None
    for message, translation in messages.translations(language):
        if not has_fields(message):
            continue
        assert fields(message) == fields(translation), message
        specs = {name: spec for name, spec, _ in fields(message)}
        values = {
            name: 1234.5 if spec.endswith(("f", "e", "g")) else 7 if spec else f"value-{name}"
            for name, spec in specs.items()
        }
        said = spoken.say(Phrase(message, values))
        assert all(str(value) in said for value in values.values() if isinstance(value, str))
        assert "{" not in said and "}" not in said, said


@pytest.mark.parametrize("language", OTHERS)
def test_options_and_commands_are_not_translated(language: str) -> None:
    """What is typed is in the translation, letter by letter."""
    for message, translation in messages.translations(language):
        if translation:
            typed = re.findall(r"(?<![\w-])--[a-z][a-z-]*|`[^`]*`", message)
            assert [word for word in typed if word not in translation] == [], message


@pytest.mark.parametrize("language", OTHERS)
def test_quantities_are_written_as_the_language_writes_numbers(language: str) -> None:
    spoken = open_language(language)
    assert spoken is not None
    phrase = Phrase("{size} of {name}", {"size": Quantity("1,234.5 KB"), "name": "a.b,c"})
    decimal, thousands = LANGUAGES[language].decimal, LANGUAGES[language].thousands
    said = spoken.say(phrase)
    assert f"1{thousands}234{decimal}5 KB" in said and "a.b,c" in said


@pytest.mark.parametrize("language", OTHERS)
def test_a_value_that_brings_its_own_mark_gets_no_second_one(language: str) -> None:
    """A value right behind a word, as in `allows{doubt}`, is empty or begins with its own mark."""
    for message, translation in messages.translations(language):
        for name in re.findall(r"(?<=[\w}.])\{(\w+)\}", message):
            found = re.search(rf"(.*)\{{{name}\b", translation)
            assert found is not None and not re.search(r"[:：;；,，]\s*$", found[1]), message
            if re.search(rf"\.\{{{name}\}}$", message):
                assert found[1].endswith((".", "。")), message
