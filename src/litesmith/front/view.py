"""`view`: one model as a graph, or two side by side, in one file that needs no server."""

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Unpack

from litesmith.anatomy.source_file import Source, SourceFile, open_source
from litesmith.arguments import argument, check_types, refuse_below
from litesmith.data.preparation import Preparing, read_preparation
from litesmith.data.sources import Given
from litesmith.display import show_line
from litesmith.errors import BadInput
from litesmith.front.given_data import open_given, source_text, type_options
from litesmith.front.made_model import Json, Place
from litesmith.graph_view.gather_view import GraphView, ViewRequest, gather_view
from litesmith.operating_system import quote
from litesmith.pages.graph.graph_page import view_sentence, view_text
from litesmith.pages.graph.graph_tables import RowFacts, list_rows
from litesmith.progress import Note, Progress, silent
from litesmith.run.core.target import Target
from litesmith.tflite.file import refuse_output, write_whole
from litesmith.timing.latency import Rule

# Seconds that each model is profiled for.
_SECONDS = 1.0


@dataclass(frozen=True, repr=False, eq=False)
class Viewed:
    """A page of graphs; a notebook shows it.

    view  what the page shows
    out   the file that was written, if one was
    """

    view: GraphView
    out: Path | None
    page: str = field(repr=False)

    __repr__ = show_line

    @property
    def sentence(self) -> str:
        return view_sentence(self.view)

    def to_rows(self) -> list[Json]:
        """One row for each op of the main graph, in the order in which they run."""
        return [_row(row) for row in list_rows(self.view)]

    def to_json(self) -> Json:
        return {
            "schema": 1,
            "out": None if self.out is None else str(self.out),
            "models": [
                {"name": one.name, "bytes": one.bytes, "ops": len(one.ops), "times": one.timing.how}
                for one in self.view.models
            ],
            "changes": self.view.count_changes(),
            "loss_path": list(self.view.path),
            "ops": self.to_rows(),
        }

    def _repr_html_(self) -> str:
        """The page in a frame of its own, which can reach nothing of the notebook."""
        frame = "width:100%;height:860px;border:1px solid #8885;border-radius:8px"
        page = escape(self.page)
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="{frame}"></iframe>'


def _row(row: RowFacts) -> Json:
    error = row.error
    return {
        "a": None if row.a is None else row.a.index,
        "b": None if row.b is None else row.b.index,
        "kind": row.op.kind,
        "name": row.op.name,
        "change": row.change,
        "a_us": row.a_us,
        "b_us": row.b_us,
        "alone_db": None if error is None else error.alone_db,
        "total_db": None if error is None else error.total_db,
    }


@check_types
def view(
    a: Source,
    b: Source | None = None,
    data: Given | None = None,
    *,
    out: Place | None = None,
    on: str | Target = "cpu:1",
    seconds: float = _SECONDS,
    predict: bool = False,
    samples: int | None = None,
    progress: Progress = silent,
    **preparing: Unpack[Preparing],
) -> Viewed:
    """A model as a graph, coloured by the time of each op; or two side by side: what was fused,
    added, dropped or kept float, where time was gained and where accuracy is lost.

    >>> page = litesmith.view("model.tflite", "int8.tflite", out="page.html", predict=True)

    Each model is profiled for so many `seconds`; with `predict` nothing runs. `data` shows the
    error of each op on it, and the samples that the models answer differently. The page is one
    file, which a notebook shows as well.
    """
    Rule(seconds=seconds)  # refuses a wrong number before the work
    refuse_below("samples", samples, 1)
    preparation, target = read_preparation(**preparing), Target.parse(on)
    place = None if out is None else Path(out)
    sources = [open_source(one) for one in (a, b) if one is not None]
    if place is not None:
        refuse_output(place, *(one.path for one in sources if one.path is not None))
    _refuse_vain_data(b, data, predict)
    opened = None
    if data is not None:
        opened = open_given(data, sources[0].model, preparation, progress, samples=samples)
    request = ViewRequest(
        target,
        None if predict else seconds,
        source=_typed_source(sources[0]),
        options=f"--data {quote(source_text(data) or 'DATA')}{type_options(preparing)}",
        progress=progress,
    )
    found = gather_view(sources, opened, request)
    for note in found.notes:
        progress(Note(note))
    page = view_text(found)
    if place is not None:
        write_whole(place, [page.encode()])
    return Viewed(found, place, page)


def _typed_source(source: SourceFile) -> str:
    return "FLOAT.tflite" if source.path is None else quote(str(source.path))


def _refuse_vain_data(b: Source | None, data: Given | None, predict: bool) -> None:
    """Raises where data would tell nothing."""
    if data is None:
        return
    if b is None:
        raise BadInput("view {data} compares two models; give a second one", argument("data"))
    if predict:
        raise BadInput(
            "view {predict} runs nothing; leave out {data}",
            argument("predict", True),
            argument("data"),
        )
