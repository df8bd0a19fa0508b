"""HTML by construction: text is said in the language in use and escaped, unless made here."""

from dataclasses import dataclass
from html import escape

from litesmith.lang.language import say


@dataclass(frozen=True)
class Html:
    """Markup that is ready to be written."""

    text: str


Child = str | Html | None
_EMPTY = frozenset(("br", "meta"))

# Elements that hold names, commands and programs, which are the same in every language.
_AS_IS = frozenset(("b", "code", "kbd", "pre", "script", "style"))
_SPOKEN = frozenset(("alt", "aria_label", "data_label", "data_tip", "title"))


def tag(name: str, /, *children: Child, **attributes: Child | float | bool) -> Html:
    """An element; of attributes, None and False are left out, and `data_x` is `data-x`."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    opened = f"<{name}{shown}>"
    if name in _EMPTY:
        return Html(opened)
    shown = map(as_is, children) if name in _AS_IS else children
    return Html(f"{opened}{join_html(*shown).text}</{name}>")


def join_html(*children: Child) -> Html:
    """Text and elements one after the other."""
    return Html("".join(_child(child) for child in children if child is not None))


def as_is(child: Child) -> Html | None:
    """A name, or what is said already; for an attribute too."""
    return Html(escape(child)) if isinstance(child, str) else child


def _child(child: str | Html) -> str:
    return child.text if isinstance(child, Html) else escape(say(child))


def _attribute(key: str, value: Child | float | bool) -> str:
    if value is None or value is False:
        return ""
    name = key.strip("_").replace("_", "-")
    if isinstance(value, Html):
        return f' {name}="{value.text}"'
    shown = say(value) if key in _SPOKEN and isinstance(value, str) else str(value)
    return f" {name}" if value is True else f' {name}="{escape(shown)}"'
