"""HTML by construction: text is escaped unless it was made here."""

from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Html:
    """Markup that is ready to be written."""

    text: str


Child = str | Html | None
_EMPTY = frozenset(("br", "meta"))


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """An element; of attributes, None and False are left out, and `data_x` is `data-x`."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    opened = f"<{name}{shown}>"
    return Html(opened if name in _EMPTY else f"{opened}{joined(*children).text}</{name}>")


def joined(*children: Child) -> Html:
    """Text and elements one after the other."""
    return Html("".join(_child(child) for child in children if child is not None))


def _child(child: str | Html) -> str:
    return child.text if isinstance(child, Html) else escape(child)


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.strip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
