"""The page of a retraining shows what was recorded, and nothing that was smuggled in."""

import json
from pathlib import Path

import pytest

from litesmith.pages.folder_kinds import write_markdown, write_report
from litesmith.pages.retrain_page import read_retrained
from tests.pages import retrained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return retrained.write_folder(tmp_path / "made")


def test_every_class_and_cell_is_there(folder: Path) -> None:
    page = write_report(folder).read_text(encoding="utf-8")
    assert page.count('taken for class 7" data-tip="8 of 9, 88.9 %"') == 1
    assert page.count("<td") >= retrained.CLASSES**2
    assert 'scope="row"' in page and 'scope="col"' in page
    assert "90.00 % [85.00, 95.00]" in page


def test_only_pictures_become_pictures(folder: Path) -> None:
    page = write_report(folder).read_text(encoding="utf-8")
    assert page.count("<img") == page.count("data:image/jpeg;base64,/9j/4A==") == 1
    assert page.count("<script>") == 1 and "</img>" not in page


@pytest.mark.parametrize(
    "change",
    [
        {"confusion": [[1, 2], [3]]},
        {"confusion": None, "per_class": [None, 3]},
        {"classes": "no list", "head": {}},
        {"digest": "../../etc/passwd"},
        {"fine_tuned": [], "notes": None, "value": "high"},
    ],
    ids=str,
)
def test_what_is_damaged_is_left_out(folder: Path, change: dict[str, object]) -> None:
    path = folder / "retrain.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | change))
    assert "</html>" in write_report(folder).read_text(encoding="utf-8")
    assert write_markdown(folder).read_text(encoding="utf-8").startswith("# ")


def test_the_record_is_read_as_it_was_written(folder: Path) -> None:
    record = read_retrained(folder)
    assert record.result.n == 224 and len(record.classes) == len(record.matrix) == retrained.CLASSES
    assert record.classes[3].taken_for == "class 4 1"
    assert len(record.summary.head) == 1
    assert record.summary.head[0].strength == record.result.strength
