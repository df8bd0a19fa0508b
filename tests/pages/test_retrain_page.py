"""The page of a retraining shows what was recorded, and nothing that was smuggled in."""

import json
from html import escape
from pathlib import Path

import pytest

from litesmith.operating_system import quote
from litesmith.pages.folder_kinds import write_markdown, write_report
from litesmith.pages.records.retrain_folder import read_retraining
from tests.pages import retrained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return retrained.write_folder(tmp_path / "made")


def test_every_class_and_cell_is_there(folder: Path) -> None:
    page = write_report(folder).read_text(encoding="utf-8")
    assert page.count('data-trial="class 7, right" data-tip="8 of 9, 88.9 %"') == 1
    assert page.count('data-trial="class 6 taken for class 7" data-tip="1 of 9, 11.1 %"') == 1
    assert page.count('<th scope="col" title="class 7"><span>class 7</span></th>') == 1
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
    record = read_retraining(folder)
    assert record.result.n == 224 and len(record.classes) == len(record.matrix) == retrained.CLASSES
    assert record.classes[3].taken_for == "class 4 1"
    assert len(record.summary.head) == 1
    assert record.summary.head[0].strength == record.result.strength


def with_facts(folder: Path, **facts: object) -> str:
    path = folder / "retrain.json"
    path.write_text(json.dumps(json.loads(path.read_bytes()) | facts))
    return write_report(folder).read_text(encoding="utf-8")


def test_it_says_what_to_ship_to_run_and_to_do_next(folder: Path) -> None:
    data = {"learned": "d/train", "judged": "d/val", "is_part": False}
    page = with_facts(folder, model="b.tflite", out="my b.tflite", data=data, fine_tuned=None)
    assert "Ship b.tflite" in page and 'class="verdict proven"' in page
    assert "Interpreter(&#x27;my b.tflite&#x27;, num_threads=1)" in page
    ours = quote("my b.tflite")
    for command in (
        f"litesmith tune {ours} --data d/val --max-drop 1pt",
        f"litesmith gate baseline.json {ours} --data d/val --update",
        "litesmith retrain a.tflite --data d -o b.tflite --fine-tune all",
    ):
        assert escape(command) in page


@pytest.mark.parametrize(
    ("counts", "kind"), [([200, 24], "missed"), ([112, 112], "proven"), ([], "proven")]
)
def test_who_does_not_beat_a_guess_is_not_shipped(
    folder: Path, counts: list[int], kind: str
) -> None:
    page = with_facts(folder, data={"judged_counts": counts})
    assert f'class="verdict {kind}"' in page
    assert ("No better than a guess" in page) == (kind == "missed")


def test_what_was_not_judged_has_no_verdict(folder: Path) -> None:
    page = with_facts(folder, value=None)
    assert "Not judged" in page and 'class="verdict none"' in page
