"""HTML by construction: text is translated and escaped unless it was made here."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from litesmith.lang.language import say
from litesmith.phrases import phrase


@dataclass(frozen=True)
class Html:
    """Markup that is ready to be written."""

    text: str


Child = str | Html | None
_EMPTY = frozenset(("br", "input", "meta"))

# The spaces inside a number with its unit or interval, where no line may break.
_BETWEEN = re.compile(r"(?<=[\d×,;]) (?!\[)| (?=[\d×%])")

# Invisible characters that act: on a terminal into which a command is pasted, or on the order of
# the letters around them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Elements that hold names, commands and programs, which are the same in every language.
_AS_IS = frozenset(("b", "code", "kbd", "pre", "script", "style"))
_SPOKEN = frozenset(("alt", "aria_label", "data_all", "data_label", "data_tip", "title"))


def tag(name: str, /, *children: Child, **attributes: Child | float | bool) -> Html:
    """An element. Attributes that are None or False are left out, and `data_x` becomes `data-x`."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    opened = f"<{name}{shown}>"
    if name in _EMPTY:
        return Html(opened)
    shown = map(as_is, children) if name in _AS_IS else children
    return Html(f"{opened}{join_html(*shown).text}</{name}>")


def join_html(*children: Child) -> Html:
    """Text and elements one after the other."""
    shown = (
        child.text if isinstance(child, Html) else _escape(say(child))
        for child in children
        if child is not None
    )
    return Html("".join(shown))


def as_is(child: Child) -> Html | None:
    """Text that is never translated, such as a name; also for an attribute."""
    return Html(_escape(child)) if isinstance(child, str) else child


def _escape(text: str) -> str:
    """Escapes text so that it is neither markup nor invisible control."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), escape(text))


def table_html(
    titles: Iterable[Child], rows: Iterable[Html], kind: str | None = None, scope: str | None = None
) -> Html:
    """A table with a head."""
    head = tag("tr", *(tag("th", title, scope=scope) for title in titles))
    return tag("table", tag("thead", head), tag("tbody", *rows), class_=kind)


def sortable(titles: Iterable[str], rows: Iterable[Html]) -> Html:
    """A row for each model; a click on a title sorts them by it."""
    buttons = (tag("button", title, type="button") for title in titles)
    return tag("div", table_html(buttons, rows, "trials cards sortable"), class_="scroll")


def number_cell(title: str, words: str, below: str, key: float | None) -> Html:
    """A number over its interval, sorted by `key`. A line may break only between the two."""
    return tag(
        "td",
        _keep_together(words),
        tag("small", " ", _keep_together(below)) if below else None,
        class_="number",
        data_label=title,
        data_sort="" if key is None else str(key),
    )


def _keep_together(words: str) -> Html | None:
    return as_is(_BETWEEN.sub("\u00a0", say(words)))


def bullets(lines: Sequence[Child]) -> Html | None:
    """A list; None where there is nothing in it."""
    return tag("ul", *(tag("li", line) for line in lines)) if lines else None


def legend_html(keys: Iterable[tuple[str, str]]) -> Html:
    """The legend of bars: for each colour, a class of the page, its meaning."""
    items = [tag("li", tag("i", class_=f"key {kind}"), words) for kind, words in keys]
    return tag("ul", *items, class_="legend")


# The kind of a badge -> its explanation, shown on hover.
_BADGES = {
    "front": phrase("no other model is better and costs less at once"),
    "integer": phrase("the whole model computes in integers"),
}


def badges_html(badges: Iterable[tuple[str, str, bool]]) -> list[Html]:
    """The badges that apply, each with the words of its kind."""
    return [
        tag("span", words, class_=f"badge {kind}", title=_BADGES.get(kind))
        for words, kind, is_given in badges
        if is_given
    ]


def code_facts(rows: Iterable[tuple[str, str]]) -> Html:
    """Names with texts to copy; pairs without a text are left out."""
    shown = [
        tag("div", tag("dt", name), tag("dd", tag("code", code))) for name, code in rows if code
    ]
    return tag("dl", *shown, class_="ship")


def _attribute(key: str, value: Child | float | bool) -> str:
    if value is None or value is False:
        return ""
    name = key.strip("_").replace("_", "-")
    if isinstance(value, Html):
        return f' {name}="{value.text}"'
    shown = say(value) if key in _SPOKEN and isinstance(value, str) else str(value)
    return f" {name}" if value is True else f' {name}="{_escape(shown)}"'
