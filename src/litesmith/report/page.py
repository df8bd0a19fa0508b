"""The report as one HTML file that needs nothing else."""

from importlib.resources import files
from pathlib import Path

from litesmith.report.folder import read_folder
from litesmith.report.markup import Html, tag
from litesmith.report.record import Record
from litesmith.report.sections import SECTIONS, Section
from litesmith.report.verdict import verdict_of
from litesmith.tflite.file import write_whole


def write_report(folder: Path, out: Path | None = None) -> Path:
    """Writes the page of a folder that `tune` wrote, into it if no place is given."""
    page = page_text(read_folder(folder))
    place = out or folder / "report.html"
    write_whole(place, [page.encode()])
    return place


def page_text(record: Record) -> str:
    """The whole page; style and script are inside, and nothing is loaded."""
    shown = [(section, made) for section in SECTIONS if (made := section.show(record))]
    title = f"{record.model or 'model'}: {verdict_of(record).title.lower()}"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · Litesmith"),
        tag("style", _asset("page.css")),
    )
    body = tag(
        "body",
        _header(record, [section for section, _ in shown]),
        tag("main", *(_section(section, made) for section, made in shown)),
        tag("footer", f"Made by Litesmith {record.version}".rstrip(), " from measurements."),
        tag("div", id="tip", role="tooltip", hidden=True),
        tag("script", _asset("page.js")),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en').text}\n"


def _header(record: Record, sections: list[Section]) -> Html:
    links = [tag("a", section.title, href=f"#{section.name}") for section in sections[1:]]
    return tag(
        "header",
        tag("p", "Litesmith", class_="brand"),
        tag("h1", record.model or "A model"),
        tag("nav", *links, aria_label="Sections") if links else None,
    )


def _section(section: Section, made: Html) -> Html:
    hidden = "unseen" if section.name == "verdict" else None
    return tag("section", tag("h2", section.title, class_=hidden), made, id=section.name)


def _asset(name: str) -> Html:
    """A file of this package, as it is: it holds no `</`."""
    return Html(files("litesmith.report").joinpath(name).read_text(encoding="utf-8"))
