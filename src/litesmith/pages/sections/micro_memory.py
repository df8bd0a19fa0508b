"""The memory of the result on a microcontroller: its parts, and the plan over time."""

from litesmith.errors import LitesmithError
from litesmith.ir.types import Model
from litesmith.micro.memory_report import MicroMemory, report_memory
from litesmith.pages.drawing.markup import Html, as_is, join_html, tag
from litesmith.pages.drawing.memory_plan import draw_memory
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.phrases import phrase
from litesmith.tflite.file import digest, load
from litesmith.units import bytes_text


def micro_memory(record: TuneFolder) -> Html | None:
    """The picture of the plan and the parts of the arena; None where the search was for another
    place, or where the file is not the one that was measured any more."""
    best, folder = record.summary.best, record.folder
    if best is None or folder is None or best.ram_bytes is None:
        return None
    path = folder / "best.tflite"
    model = _load(record) if path.is_file() else None
    if model is None:
        return None
    found = report_memory(best.name, model, path.stat().st_size)
    hint = phrase("Ops to the right, bytes upwards; the dashed line is where most is live.")
    return join_html(
        tag("p", hint, class_="hint"),
        tag("figure", as_is(draw_memory(found))),
        tag("table", tag("tbody", *_rows(found))),
    )


def _load(record: TuneFolder) -> Model | None:
    best, folder = record.summary.best, record.folder
    assert best is not None and folder is not None
    path = folder / "best.tflite"
    try:
        return load(path) if digest(path) == best.digest else None
    except (LitesmithError, OSError):  # a folder may be anyone's
        return None


def _rows(found: MicroMemory) -> list[Html]:
    parts = {
        phrase("planned tensors and scratch"): found.device.planned_bytes,
        **{phrase(kind): count for kind, count in found.device.by_kind().items()},
        phrase("needed, preparing included"): found.device.needed,
        phrase("flash, estimated"): found.flash.total,
    }
    return [tag("tr", tag("td", name), tag("td", bytes_text(n))) for name, n in parts.items()]
