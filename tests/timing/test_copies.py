"""The copy audit: what each way copies, and which ways a model can take."""

from pathlib import Path

import pytest

from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.run.core.target import Target
from litesmith.tflite.file import save
from litesmith.timing.copies import Copies, time_copies
from tests import zoo

WAYS = [
    "set_tensor / get_tensor",
    "TensorBuffer write / read",
    "view, input assigned",
    "view, input made in place",
]


def audit(path: Path) -> dict[str, Copies]:
    return {one.way: one for one in time_copies(path, seconds=0.01)}


def test_bytes_of_every_way(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (1, 1000))
    save(b.model(b.op("ADD", x, x)), tmp_path / "m.tflite")
    found = audit(tmp_path / "m.tflite")
    assert list(found) == WAYS
    assert [one.copied_bytes for one in found.values()] == [8000, 8000, 4000, 0]
    for one in found.values():
        assert not one.skipped
        assert one.run_us > 0
        assert 0 <= one.share <= 1
        assert one.row()["share"] == one.share


def test_a_type_that_the_wheel_does_not_know_is_skipped_with_the_reason(tmp_path: Path) -> None:
    b = Builder()
    x = b.input("x", (1, 8), "int64")
    save(b.model(b.op("ADD", x, x)), tmp_path / "m.tflite")
    found = audit(tmp_path / "m.tflite")
    assert "Unsupported dtype" in found["TensorBuffer write / read"].skipped
    assert "feed_us" not in found["TensorBuffer write / read"].row()
    assert not found["view, input assigned"].skipped


def test_a_session_that_copies_says_so(tmp_path: Path) -> None:
    save(zoo.MODELS["resizable"](), tmp_path / "m.tflite")
    found = audit(tmp_path / "m.tflite")
    assert found["view, input made in place"].copied_bytes > 0


def test_only_where_all_ways_exist(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="numpy: copies are measured on cpu:THREADS"):
        time_copies(tmp_path, Target.parse("numpy"))
