"""Recipes: a tuple of steps, with a text form made of the steps' own fields.

cleanup | fold(float16=true) | fuse

Numbers of ops in a row are written as `keep=[3-7, 12]`.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from importlib import import_module
from itertools import takewhile
from typing import TypeAlias, cast, get_args, get_origin, get_type_hints

from litesmith.errors import BadInput
from litesmith.ir.check import check
from litesmith.ir.edit import drop_plan, plan_of
from litesmith.ir.types import Model
from litesmith.passes import STEPS
from litesmith.passes.core.schemes import number_run
from litesmith.passes.core.step import Change, Context, Step
from litesmith.phrases import phrase

Recipe = tuple[Step, ...]
Setting: TypeAlias = "bool | int | float | str | tuple[Setting, ...] | None"

_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([|(),=\[\]])|([^\s|(),=\[\]"]+))')
_DEEPEST = 16
_SHORTEST_RUN = 3
_WORDS: dict[str, Setting] = {"true": True, "false": False, "none": None}


def apply(model: Model, recipe: Recipe | str, context: Context | None = None) -> Change:
    """The model after every step of a recipe, checked, with all that was touched and skipped."""
    whole = Change(model)
    context = context or Context()
    for step in parse(recipe) if isinstance(recipe, str) else recipe:
        if is_float(model) or (context.reference is None and step_name(step) == "quantize"):
            context = replace(context, reference=model)
        whole = _without_old_plan(step.apply(model, context), model).after(whole)
        model = whole.model
    check(model)
    return whole


def _without_old_plan(change: Change, before: Model) -> Change:
    """A plan of memory in the file holds for the graphs that it was made of only."""
    old, new = plan_of(before), plan_of(change.model)
    if change.model.graphs == before.graphs or new is not old:
        return change
    return replace(change, model=drop_plan(change.model))


def is_float(model: Model) -> bool:
    """True where no tensor stands for real numbers by a scale."""
    return not any(t.quant is not None for g in model.graphs for t in g.tensors)


def parse(text: str) -> Recipe:
    """The recipe that a text stands for; the empty text is the recipe that changes nothing."""
    tokens = _Tokens(text)
    steps: list[Step] = []
    while not tokens.at_end():
        if steps:
            tokens.take("|")
        steps.append(_step(tokens))
    return tuple(steps)


def text_of(recipe: Recipe) -> str:
    """The text that parses to the recipe; settings at their default are left out."""
    return " | ".join(_step_text(step) for step in recipe)


def step_class(name: str) -> type[Step]:
    """The dataclass of a step, imported now."""
    if name not in STEPS:
        raise BadInput("recipe: no step {name!r}; there are {steps}", name, ", ".join(STEPS))
    module, _, attribute = STEPS[name].partition(":")
    return getattr(import_module(module), attribute)


def step_name(step: Step) -> str:
    """The name of a step in a recipe; for the user's own step, the name of its class."""
    path = f"{type(step).__module__}:{type(step).__name__}"
    return next((name for name, place in STEPS.items() if place == path), type(step).__name__)


class _Tokens:
    """The words of a recipe text, taken from the left."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    def at_end(self) -> bool:
        return self._next == len(self._tokens)

    def peek(self) -> str:
        return "" if self.at_end() else self._tokens[self._next]

    def take(self, wanted: str = "") -> str:
        """The next token; with `wanted`, only that one."""
        token = self.peek()
        if not token or (wanted and token != wanted):
            found = repr(token) if token else "the end"
            expected = repr(wanted) if wanted else phrase("a name or a value")
            raise BadInput(
                "recipe {what!r}: {expected} expected, {found} found", self._text, expected, found
            )
        self._next += 1
        return token


def _tokens(text: str) -> Iterator[str]:
    place = 0
    text = text.rstrip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise BadInput(
                "recipe {what!r}: cannot read {what2!r}; a quote is open",
                text,
                text[place:].strip(),
            )
        yield match.group(1) or match.group(2) or match.group(3)
        place = match.end()


def _step(tokens: _Tokens) -> Step:
    name = tokens.take()
    make = step_class(name)
    settings: dict[str, Setting] = {}
    if tokens.peek() == "(":
        tokens.take("(")
        while tokens.peek() != ")":
            if settings:
                tokens.take(",")
            setting = tokens.take()
            tokens.take("=")
            if setting in settings:
                raise BadInput("recipe: {name} has the setting {setting!r} twice", name, setting)
            settings[setting] = _fitting(make, name, setting, _setting(tokens))
        tokens.take(")")
    return make(**settings)


def _setting(tokens: _Tokens, depth: int = 0) -> Setting:
    token = tokens.take()
    if depth > _DEEPEST:
        raise BadInput("recipe: lists are nested more than {deepest} deep", _DEEPEST)
    if token == "[":
        items: list[Setting] = []
        while tokens.peek() != "]":
            if items:
                tokens.take(",")
            run = number_run(tokens.peek())
            if run is None:
                items.append(_setting(tokens, depth + 1))
            else:
                items += run
                tokens.take()
        tokens.take("]")
        return tuple(items)
    if token.startswith('"'):
        try:
            return json.loads(token)
        except ValueError:
            raise BadInput("recipe: {token} is no text; quote it as JSON does", token) from None
    if token in _WORDS:
        return _WORDS[token]
    for number in (int, float):
        try:
            return number(token)
        except ValueError:
            continue
    return token


def _fitting(make: type[Step], step: str, setting: str, value: Setting) -> Setting:
    """The value where the step has such a setting of such a type."""
    hints = get_type_hints(make)
    known = [field.name for field in fields(make)]  # type: ignore[arg-type]
    if setting not in known:
        there = phrase("it has {known}", ", ".join(known)) if known else phrase("it has none")
        raise BadInput("recipe: {step} has no setting {setting!r}; {there}", step, setting, there)
    wanted = hints[setting]
    if wanted is float and type(value) is int:
        return float(value)
    if not _is_a(value, wanted):
        shown = getattr(wanted, "__name__", str(wanted))
        raise BadInput(
            "recipe: {step}({setting}={setting_text}): a {shown} is needed",
            step,
            setting,
            _setting_text(value),
            shown,
        )
    return value


def _is_a(value: object, wanted: object) -> bool:
    if get_origin(wanted) is tuple:
        item = get_args(wanted)[0]
        items = cast(tuple[object, ...], value)
        return isinstance(value, tuple) and all(_is_a(one, item) for one in items)
    if get_args(wanted):  # a union
        return any(_is_a(value, one) for one in get_args(wanted))
    return wanted is type(value)  # exactly: True is no number here


def _step_text(step: Step) -> str:
    shown = [
        f"{field.name}={_setting_text(getattr(step, field.name))}"
        for field in fields(step)  # type: ignore[arg-type]
        if field.default is MISSING or getattr(step, field.name) != field.default
    ]
    return f"{step_name(step)}({', '.join(shown)})" if shown else step_name(step)


def _setting_text(value: Setting) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_items_text(value))}]"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value if _reads_as_itself(value) else json.dumps(value)
    return repr(value)


def _items_text(items: tuple[Setting, ...]) -> Iterator[str]:
    """The texts of a list's elements; a run of numbers is its first and its last."""
    place = 0
    while place < len(items):
        length = _run_length(items[place:])
        if length < _SHORTEST_RUN:
            yield _setting_text(items[place])
            place += 1
        else:
            yield f"{items[place]}-{items[place + length - 1]}"
            place += length


def _run_length(items: tuple[Setting, ...]) -> int:
    """The number of whole numbers at the front of a list that each exceed the last by one."""
    first = items[0]
    if type(first) is not int or first < 0:
        return 0
    wanted = zip(items, range(first, first + len(items)), strict=True)
    return len(list(takewhile(lambda pair: type(pair[0]) is int and pair[0] == pair[1], wanted)))


def _reads_as_itself(word: str) -> bool:
    """True for a text that needs no quotes."""
    match = _TOKEN.fullmatch(word)
    if match is None or match.group(3) != word or word in _WORDS or number_run(word) is not None:
        return False
    try:
        float(word)
    except ValueError:
        return True
    return False
