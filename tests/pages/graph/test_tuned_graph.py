"""The graph in the report of `tune`: from records and files alone, and only from those measured."""

from dataclasses import replace
from pathlib import Path

import litesmith
from litesmith.evidence.tune_record import FLOAT, LayerRow, OpRow, TunedInside
from litesmith.ir.types import Model
from litesmith.pages.graph.tuned_graph import tuned_graph, tuned_view
from litesmith.pages.records.tune_folder import TuneFolder, read_search
from litesmith.run.core.placement import MEASURED, PREDICTED
from litesmith.tflite.file import digest
from tests.pages import folders
from tests.pages.graph.views import blocks, int8_of


def times_of(model: Model, name: str) -> TunedInside:
    ops = [OpRow(n, op.label, "", float(n), 0) for n, op in enumerate(model.main.ops)]
    layers = (LayerRow(1, "CONV_2D", "", 30.0), LayerRow(2, "CONV_2D", "", 12.0))
    return TunedInside(1, name, run_us=99.0, ops=tuple(ops), layers=layers)


def searched(folder: Path) -> TuneFolder:
    """A search whose files lie there, with the times and errors of both models."""
    model = blocks(1)
    made = int8_of(model)
    litesmith.save(model, folder / "model.tflite")
    tuned = folders.write_folder(folder / "tuned", folders.summary())
    litesmith.save(made, tuned / "best.tflite")
    own, best = digest(folder / "model.tflite"), digest(tuned / "best.tflite")
    record = read_search(tuned)
    assert record.summary.best is not None
    summary = replace(
        record.summary,
        model_path=str(folder / "model.tflite"),
        model_digest=own,
        best=replace(record.summary.best, digest=best),
    )
    names = {FLOAT: own, record.summary.best.name: best}
    entries = tuple(replace(one, digest=names.get(one.name, one.digest)) for one in record.entries)
    inside = {own: times_of(model, FLOAT), best: times_of(made, "best")}
    return replace(record, summary=summary, inside=inside, entries=entries)


def test_times_and_errors_are_those_on_record(tmp_path: Path) -> None:
    record = searched(tmp_path)
    view = tuned_view(record)
    assert view is not None
    assert [model.timing.how for model in view.models] == [MEASURED, MEASURED]
    assert view.models[1].timing.ops[0, 2].us == 2.0
    assert view.errors.ops[2].total_db == 12.0 and view.worst == 2
    section = tuned_graph(record)
    assert section is not None and 'class="graph-data"' in section.text


def test_times_of_other_ops_are_not_taken(tmp_path: Path) -> None:
    record = searched(tmp_path)
    other = {key: replace(one, ops=one.ops[1:]) for key, one in record.inside.items()}
    view = tuned_view(replace(record, inside=other))
    assert view is not None
    assert {model.timing.how for model in view.models} == {PREDICTED}


def test_a_file_that_is_not_the_measured_one_is_not_shown(tmp_path: Path) -> None:
    record = searched(tmp_path)
    assert record.folder is not None
    (record.folder / "best.tflite").write_bytes(b"not a model")
    assert tuned_graph(record) is None
    assert tuned_graph(replace(record, folder=None)) is None
