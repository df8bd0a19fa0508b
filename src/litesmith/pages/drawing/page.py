"""A page of sections as one self-contained HTML file."""

from dataclasses import dataclass
from typing import NamedTuple

from litesmith.lang.language import language
from litesmith.pages.drawing.assets import asset, script_rule, style_rule
from litesmith.pages.drawing.markup import Html, tag
from litesmith.phrases import Phrase, phrase


class PageSection(NamedTuple):
    """A section of a page; the section named `verdict` has no visible title."""

    name: str
    title: str
    body: Html


@dataclass(frozen=True)
class Page:
    """The content of a page.

    heading  the subject
    outcome  the outcome in a word or two, for the window's title
    version  the version of Litesmith that measured
    """

    heading: str
    outcome: str
    version: str
    parts: tuple[PageSection, ...]


def list_parts(*sections: tuple[str, str, Html | None]) -> tuple[PageSection, ...]:
    """Sections from names, titles and bodies; those without a body are left out."""
    return tuple(
        PageSection(name, title, body) for name, title, body in sections if body is not None
    )


def page_text(page: Page) -> str:
    """The whole page; style and script are inside, and nothing is loaded."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy()),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", _window_title(page)),
        tag("style", asset("page.css")),
    )
    version = phrase(" {version}", page.version) if page.version else ""
    body = tag(
        "body",
        _header(page),
        tag("main", *map(_section, page.parts)),
        tag("footer", phrase("Made by Litesmith{version} from measurements.", version)),
        tag("div", id="tip", role="tooltip", hidden=True),
        tag("script", asset("page.js")),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang=language()).text}\n"


def _window_title(page: Page) -> Phrase:
    heading = page.heading or phrase("model")
    return phrase("{heading}: {outcome} · {brand}", heading, page.outcome, "Litesmith")


def _header(page: Page) -> Html:
    links = [tag("a", part.title, href=f"#{part.name}") for part in page.parts[1:]]
    return tag(
        "header",
        tag("p", "Litesmith", class_="brand"),
        tag("h1", page.heading or phrase("A model")),
        tag("nav", *links, aria_label=phrase("Sections")) if links else None,
    )


def _section(part: PageSection) -> Html:
    hidden = "unseen" if part.name == "verdict" else None
    return tag("section", tag("h2", part.title, class_=hidden), part.body, id=part.name)


def _policy() -> str:
    """What a browser may do with the page: run our script, apply our styles, and load nothing."""
    rules = (
        "default-src 'none'",
        script_rule(),
        "style-src 'unsafe-inline'",  # for browsers that do not know the two below
        style_rule(),
        "style-src-attr 'unsafe-inline'",  # widths of bars; they can load nothing
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)
