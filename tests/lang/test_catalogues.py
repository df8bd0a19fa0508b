"""The template is what the source says, catalogues are whole, and what is read is in them."""

import re

import pytest

from litesmith.lang.catalogue import read_mo
from litesmith.lang.speech import LANGUAGES
from tests.lang.books import holes, messages, msgids

OTHERS = [name for name in LANGUAGES if name != "en"]
_MOST_SHOWN = 20


def test_the_languages_of_the_tool_are_those_of_the_package() -> None:
    assert list(messages.LANGUAGES) == OTHERS


def test_the_template_is_what_the_source_says() -> None:
    made = messages.template_bytes(messages.extracted())
    assert made == messages.TEMPLATE.read_bytes(), "run python tools/messages.py"


def test_no_message_has_two_values_side_by_side() -> None:
    """Nobody could tell where the first ends."""
    assert [message for message in msgids() if "}{" in message.replace("}}", "")] == []


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_the_messages_of_the_template(language: str) -> None:
    catalog = messages.catalogue_of(language)
    assert [one.id for one in catalog if one.id] == list(msgids()), "run python tools/messages.py"


@pytest.mark.parametrize("language", OTHERS)
def test_what_is_read_is_what_the_catalogue_says(language: str) -> None:
    kept = messages.catalogue(language).with_suffix(".mo").read_bytes()
    said = {one.id: one.string for one in messages.catalogue_of(language) if one.id and one.string}
    assert read_mo(kept) == said, "run python tools/messages.py compile"


@pytest.mark.parametrize("language", OTHERS)
def test_every_message_has_a_translation(language: str) -> None:
    left = [one.id for one in messages.catalogue_of(language) if one.id and not one.string]
    assert not left, f"{len(left)} of {len(msgids())} in {language}: {left[:_MOST_SHOWN]}"


@pytest.mark.parametrize("language", OTHERS)
def test_no_value_is_lost(language: str) -> None:
    wrong = [
        (one.id, one.string)
        for one in messages.catalogue_of(language)
        if one.id and one.string and sorted(holes(one.id)) != sorted(holes(one.string))
    ]
    assert not wrong


@pytest.mark.parametrize("language", OTHERS)
def test_options_and_commands_are_not_translated(language: str) -> None:
    """What is typed is in the translation, letter by letter."""
    for one in messages.catalogue_of(language):
        if one.id and one.string:
            typed = re.findall(r"(?<![\w-])--[a-z][a-z-]*|`[^`]*`", one.id)
            assert [word for word in typed if word not in one.string] == [], one.id
