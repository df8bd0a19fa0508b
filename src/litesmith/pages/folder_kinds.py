"""The kinds of folders that become reports, recognised by the record that each holds."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from litesmith.arguments import argument
from litesmith.errors import BadInput
from litesmith.lang.language import speaking
from litesmith.pages.bench_page import bench_glance, bench_markdown, bench_page
from litesmith.pages.choose_graphs import read_choice
from litesmith.pages.choose_page import choose_glance, choose_markdown, choose_page
from litesmith.pages.drawing.markdown import Markdown
from litesmith.pages.drawing.page import Page, page_text
from litesmith.pages.gate_page import gate_folder_markdown, gate_glance, gate_page
from litesmith.pages.records.glance import Glance
from litesmith.pages.records.tune_folder import read_search
from litesmith.pages.retrain_page import retrain_glance, retrain_markdown, retrain_page
from litesmith.pages.runs_page import Run, link_page, runs_markdown, runs_page
from litesmith.pages.tune_page import tune_glance, tune_markdown, tune_page
from litesmith.phrases import phrase
from litesmith.tflite.file import write_whole


class Kind(NamedTuple):
    """The folder of one command.

    record    the file by which the folder is recognised
    command   the command that writes it, for messages about other folders
    page      the folder as a page
    markdown  the folder as Markdown; a text that begins the names of its pictures
    glance    the folder as a row, beside other runs
    changed   the files that differ from those measured, one sentence each
    """

    record: str
    command: str
    page: Callable[[Path], Page]
    markdown: Callable[[Path, str], Markdown]
    glance: Callable[[Path], Glance]
    changed: Callable[[Path], tuple[str, ...]] | None = None


def _changed_choice(folder: Path) -> tuple[str, ...]:
    return read_choice(folder).changed


def _changed_search(folder: Path) -> tuple[str, ...]:
    return read_search(folder).changed


_OUT = argument("out")

# The name of the page for several runs.
_RUNS = "litesmith-runs"

KINDS = (
    Kind("bench.json", "bench", bench_page, bench_markdown, bench_glance),
    Kind(
        "choose.json",
        "choose",
        choose_page,
        choose_markdown,
        choose_glance,
        _changed_choice,
    ),
    Kind("gate.json", "gate", gate_page, gate_folder_markdown, gate_glance),
    Kind("retrain.json", "retrain", retrain_page, retrain_markdown, retrain_glance),
    Kind("tune.json", "tune", tune_page, tune_markdown, tune_glance, _changed_search),
)


def kind_of(folder: Path) -> Kind:
    """The kind of a folder; raises where it is of no kind."""
    *first, last = (f"`litesmith {kind.command}`" for kind in KINDS)
    commands = phrase("{first} or {last}", ", ".join(first), last)
    if not folder.is_dir():
        raise BadInput(
            "{folder}: no such folder; give the one that {commands} wrote", folder, commands
        )
    found = next((kind for kind in KINDS if (folder / kind.record).is_file()), None)
    if found is None:
        raise BadInput(
            "{folder}: holds no record; give the folder that {commands} wrote (its -o)",
            folder,
            commands,
        )
    return found


def changed_files(folder: Path) -> tuple[str, ...]:
    """A sentence for each file of a folder that is not the one that was measured."""
    find = kind_of(folder).changed
    return () if find is None else find(folder)


def _inside(folder: Path, name: str) -> Path:
    """A file of the folder. Links are refused: a folder from a stranger could lead elsewhere."""
    place = folder / name
    if place.is_symlink():
        raise BadInput("{place}: is a link, and would lead elsewhere; give {out}", place, _OUT)
    return place


def write_report(folder: Path, out: Path | None = None, lang: str | None = None) -> Path:
    """Writes the page of a folder, by default into the folder, in the language `lang` or in the one
    in use.
    """
    with speaking(lang):
        page = page_text(kind_of(folder).page(folder))
    place = out or _inside(folder, "report.html")
    write_whole(place, [page.encode()])
    return place


def write_runs(
    folders: Sequence[Path], out: Path | None = None, *, is_markdown: bool = False
) -> Path:
    """Writes a page of several folders side by side; into the current folder if no path is
    given."""
    place = out or Path(_RUNS).with_suffix(".md" if is_markdown else ".html")
    runs = [
        Run(folder, kind_of(folder).glance(folder), link_page(folder, place)) for folder in folders
    ]
    text = runs_markdown(runs).text if is_markdown else page_text(runs_page(runs))
    write_whole(place, [text.encode()])
    return place


def write_markdown(folder: Path, out: Path | None = None, lang: str | None = None) -> Path:
    """Writes Markdown with its pictures beside it; returns the path of the text."""
    place = out or _inside(folder, "report.md")
    with speaking(lang):
        made = kind_of(folder).markdown(folder, place.stem)
    pictures = {_inside(place.parent, name): data for name, data in made.pictures.items()}
    for picture, content in pictures.items():
        write_whole(picture, [content])
    write_whole(place, [made.text.encode()])
    return place
