"""Sentences as values: what a phrase remembers, and that every one in the source can be filled."""

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import litesmith
from litesmith.errors import BadInput
from litesmith.phrases import Phrase, Quantity, join, names_of, phrase

ROOT = Path(litesmith.__file__).parent
ERRORS = ("BadInput", "BadModel", "CannotApply", "CannotRun")
TEXTS = st.text()


def calls() -> Iterator[tuple[str, str, int]]:
    """(where, template, number of values) of every sentence in the source."""
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id not in ("phrase", *ERRORS) or not node.args:
                continue
            first, *values = node.args
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                where = f"{path.relative_to(ROOT)}:{node.lineno}"
                yield where, first.value, len(values)


def test_every_template_has_as_many_values_as_names() -> None:
    found = list(calls())
    wrong = [where for where, text, count in found if count and len(names_of(text)) != count]
    assert len(found) > 1000 and wrong == []


@given(TEXTS, st.integers(), st.floats(allow_nan=False))
def test_a_phrase_is_its_english_and_remembers_what_it_was_made_of(
    name: str, count: int, share: float
) -> None:
    made = phrase("op {name!r}: {count} of {{x}} at {share:.2f}", name, count, share)
    assert made == f"op {name!r}: {count} of {{x}} at {share:.2f}"
    assert made.values == {"name": name, "count": count, "share": share}
    again = pickle.loads(pickle.dumps(made))
    assert (again, again.template, again.values) == (made, made.template, made.values)


@given(st.lists(TEXTS, min_size=1))
def test_joined_texts_stay_what_they_are(texts: list[str]) -> None:
    assert join(texts, ", {") == ", {".join(texts)
    inner = phrase("a {b}", "c")
    assert join([*texts, inner], "; ").values[f"part{len(texts)}"] is inner


@given(TEXTS)
def test_sums_of_phrases_keep_their_parts(text: str) -> None:
    made = phrase("{n} ops", 3)
    for both in (made + text, text + made):
        assert isinstance(both, Phrase)
        assert made in both.values.values()


def test_without_values_a_template_is_the_sentence() -> None:
    assert phrase("braces {stay}") == "braces {stay}"


def test_quotes_are_those_of_the_thing_itself() -> None:
    told = phrase("{a!r} {b!r} {c!r} {d!r}", "x", b"y", (1, "z"), 2)
    assert told == "'x' b'y' (1, 'z') 2"


def test_too_many_values_are_a_bug_that_is_told() -> None:
    with pytest.raises(ValueError, match="longer"):
        phrase("{one}", 1, 2)


def test_errors_are_phrases_and_wrap_each_other() -> None:
    inner = BadInput("{path}: is {size}", "a.tflite", Quantity("3.2 MB"))
    outer = phrase("file: {error}", inner)
    assert str(inner) == "a.tflite: is 3.2 MB" and outer == "file: a.tflite: is 3.2 MB"
    assert isinstance(outer.values["error"], Phrase)


@given(TEXTS)
def test_values_can_come_later(amount: str) -> None:
    later = phrase("takes {amount}").format(amount=amount, other=1)
    assert later == f"takes {amount}"
    assert (later.template, later.values) == ("takes {amount}", {"amount": amount})
