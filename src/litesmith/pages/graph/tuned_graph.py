"""The graph of the result of `tune` beside the original, from the records of its folder."""

from pathlib import Path

from litesmith.anatomy.source_file import SourceFile, open_source
from litesmith.errors import LitesmithError
from litesmith.evidence.tune_record import FLOAT, TunedInside
from litesmith.graph_view.gather_view import GraphView, ViewRequest, lay_out
from litesmith.graph_view.loss_path import Noise
from litesmith.graph_view.op_measures import ErrorFact, OpErrors, TimeFact, Timing, predict_times
from litesmith.ir.types import Model
from litesmith.operating_system import quote
from litesmith.pages.drawing.markup import Html
from litesmith.pages.graph.graph_section import graph_section
from litesmith.pages.records.tune_folder import TuneFolder
from litesmith.pages.sections.inside_models import inside_of
from litesmith.run.core.placement import MEASURED
from litesmith.run.core.target import Target
from litesmith.tflite.file import digest


def tuned_graph(record: TuneFolder) -> Html | None:
    """The two graphs with the times and errors on record; None where a file is missing or differs
    from the one that was measured.
    """
    view = tuned_view(record)
    return None if view is None else graph_section(view)


def tuned_view(record: TuneFolder) -> GraphView | None:
    best, folder = record.summary.best, record.folder
    if best is None or folder is None:
        return None
    found = _open(folder / "best.tflite", best.digest)
    first = _open(Path(record.summary.model_path), record.summary.model_digest)
    if found is None or first is None:
        return None
    sides = inside_of(record, FLOAT), inside_of(record, record.shown)
    timings = [
        _timing(one.model, inside) for one, inside in zip((first, found), sides, strict=True)
    ]
    request = ViewRequest(Target.parse("cpu:1"), source=quote(str(first.path)))
    return lay_out([first, found], timings, _errors(sides[1], found.model), request)


def _open(path: Path, wanted: str) -> SourceFile | None:
    try:
        is_same = path.is_file() and bool(wanted) and digest(path) == wanted
        return open_source(path) if is_same else None
    except (LitesmithError, OSError):  # the folder may come from a stranger
        return None


def _timing(model: Model, inside: TunedInside) -> Timing:
    """The times on record; predicted ones where there are none of every op."""
    times = {op.index: op for op in inside.ops}
    kinds = [op.label for op in model.main.ops]
    if [times[n].kind if n in times else "" for n in range(len(kinds))] != kinds:
        return predict_times(model)
    ops = {(0, index): TimeFact(op.us, "") for index, op in times.items()}
    return Timing(MEASURED, ops, inside.run_us)


def _errors(inside: TunedInside, model: Model) -> OpErrors:
    count = len(model.main.ops)
    known = [row for row in inside.layers if 0 <= row.index < count]
    return OpErrors({row.index: _error(row.snr_db) for row in known})


def _error(snr_db: float) -> ErrorFact:
    share = 10 ** (-snr_db / 10)
    return ErrorFact(None, round(snr_db, 1), Noise(share, share))
