"""The notebooks run from top to bottom, show tables, and are kept without what they showed."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 8000

# What a notebook needs beside the package itself.
NEEDS = {"04_train": "torch", "08_convert": "torch", "09_teach_a_detector": "torch"}


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text())["cells"]


def test_there_is_one_for_every_big_job() -> None:
    told = "".join(path.stem for path in NOTEBOOKS)
    for job in (
        "look",
        "quantize",
        "tune",
        "train",
        "choose",
        "retrain",
        "custom_op",
        "detection",
        "convert",
    ):
        assert job in told


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_kept_without_outputs(path: Path) -> None:
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            assert sum(len(line.splitlines()) for line in cell["source"]) <= 24
    assert cells(path)[0]["source"][0].startswith("# ")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    needed = NEEDS.get(path.stem, "litesmith")
    if find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "jupyter"))
    place = tmp_path / "work"
    place.mkdir()
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    client = nbclient.NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(place)}}
    )
    client.execute()
    shown = [out for cell in book.cells for out in cell.get("outputs", [])]
    results = [out["data"] for out in shown if out["output_type"] == "execute_result"]
    assert results
    for data in results:
        assert 'class="litesmith"' in data["text/html"]
        assert len(data["text/html"].encode()) + len(data["text/plain"].encode()) < MOST_BYTES
    assert not [out["text"] for out in shown if out.get("name") == "stderr"]
