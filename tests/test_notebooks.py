"""The notebooks run from top to bottom, show tables, and are kept without what they showed."""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.slowness import patient

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_BYTES = 8000

# What a notebook needs beside the package itself.
NEEDS = {"04_train": "torch", "08_convert": "torch", "09_teach_a_detector": "torch"}


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text("utf-8"))["cells"]


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


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One kernel for all notebooks, which are emptied from it one by one: most of what a kernel
    does is importing."""
    jupyter_client = pytest.importorskip("jupyter_client")
    pytest.importorskip("ipykernel")
    own = str(tmp_path_factory.mktemp("jupyter"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, own)
        manager = jupyter_client.KernelManager(kernel_name="python3")
        manager.start_kernel()
        yield manager
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, kernel: Any, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    needed = NEEDS.get(path.stem, "litesmith")
    if find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed")
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    emptied = nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {tmp_path}")
    book.cells.insert(0, emptied)
    nbclient.NotebookClient(book, km=kernel, timeout=int(patient(300))).execute()
    shown = [out for cell in book.cells for out in cell.get("outputs", [])]
    results = [out["data"] for out in shown if out["output_type"] == "execute_result"]
    assert results
    for data in results:
        assert 'class="litesmith"' in data["text/html"]
        assert len(data["text/html"].encode()) + len(data["text/plain"].encode()) < MOST_BYTES
    assert not [out["text"] for out in shown if out.get("name") == "stderr"]
