"""`view`: a page is written, refused or shown; the command that it gives does what it says."""

import shlex
from pathlib import Path

import numpy as np
import pytest

import litesmith
from litesmith.errors import BadInput
from litesmith.front.view import Viewed
from litesmith.ir.types import Model
from tests import zoo, zoo_float
from tests.cli.test_cli import litesmith as typed
from tests.pages.graph.views import blocks, int8_of


def write_models(folder: Path) -> tuple[Path, Path]:
    model = blocks(2)
    litesmith.save(model, folder / "float.tflite")
    litesmith.save(int8_of(model), folder / "int8.tflite")
    np.save(folder / "data.npy", np.random.default_rng(0).normal(size=(4, 6, 6, 4)).astype("f4"))
    return folder / "float.tflite", folder / "int8.tflite"


def test_the_page_is_written_and_the_result_tells(tmp_path: Path) -> None:
    whole, small = write_models(tmp_path)
    out = tmp_path / "page.html"
    found = litesmith.view(whole, small, out=out, seconds=0.01)
    assert out.read_text(encoding="utf-8") == found.page and found.out == out
    assert "quantized" in found.sentence and "<Viewed" in repr(found)
    rows = found.to_rows()
    assert {row["change"] for row in rows} == {"quantized", "added"}
    assert found.to_json()["changes"] == found.view.count_changes()
    assert 'sandbox="allow-scripts"' in found._repr_html_() and "<script" not in found._repr_html_()


def promised(found: Viewed, number: int) -> Model:
    """The model of the command that the page gives for keeping one op float."""
    keep = found.view.keep
    assert keep is not None and number in keep.choices
    command = f"litesmith quantize {keep.source} --to {keep.scheme} --keep {number} {keep.options}"
    words = shlex.split(command)
    out = Path(shlex.split(keep.source)[0]).with_name("out.tflite")
    done = typed(*words[1:], "--trust-data", "--effort", "quick", "-o", str(out))
    assert done.returncode == 0, done.stderr
    return litesmith.load(out)


def test_the_command_of_the_page_keeps_that_op_float_and_no_other(tmp_path: Path) -> None:
    whole, small = write_models(tmp_path)
    found = litesmith.view(whole, small, tmp_path / "data.npy", seconds=0.01)
    made = litesmith.view(whole, promised(found, 1), predict=True)
    changes = {row["a"]: row["change"] for row in made.to_rows() if row["a"] is not None}
    assert changes.pop(1) == "kept float"
    assert set(changes.values()) == {"quantized"}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"data": "x.npy"}, "data="),
        ({"seconds": -1.0}, "seconds"),
        ({"samples": 0}, "samples"),
        ({"on": "moon"}, "moon"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_the_work(
    settings: dict[str, object], told: str
) -> None:
    with pytest.raises(litesmith.LitesmithError, match=told):
        litesmith.view(zoo.convnet(), **settings)  # type: ignore[arg-type]


def test_the_models_are_never_written_over(tmp_path: Path) -> None:
    whole, small = write_models(tmp_path)
    for path in (whole, small):
        before = path.read_bytes()
        with pytest.raises(BadInput):
            litesmith.view(whole, small, out=path, predict=True)
        assert path.read_bytes() == before


def test_data_and_predict_exclude_each_other() -> None:
    model = zoo_float.residual()
    with pytest.raises(BadInput, match="runs nothing"):
        litesmith.view(model, model, np.zeros((1, 6, 6, 8), np.float32), predict=True)


def test_doctor_and_compare_have_a_page_with_the_graph(tmp_path: Path) -> None:
    whole, small = write_models(tmp_path)
    places = [tmp_path / f"{name}.html" for name in ("fit", "compared")]
    litesmith.doctor(small, accelerator="edgetpu", seconds=0.01, page=places[0])
    litesmith.compare(whole, small, seconds=0.05, page=places[1])
    for place in places:
        assert 'class="graph-data"' in place.read_text(encoding="utf-8"), place
