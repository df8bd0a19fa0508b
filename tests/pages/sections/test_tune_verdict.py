"""One headline, and every number of the verdict once."""

import re
from pathlib import Path

import pytest

from litesmith.pages.records.tune_folder import read_search
from litesmith.pages.sections.tune_verdict import VERDICTS, headline, tiles
from tests.pages import folders


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_headline_has_no_number(verdict: str, tmp_path: Path) -> None:
    told = {**folders.summary(), "verdict": verdict}
    words = headline(read_search(folders.write_folder(tmp_path, told)))
    assert words and not re.search(r"\d", words.replace(folders.BEST, ""))


def test_no_number_of_the_tiles_is_told_twice(tmp_path: Path) -> None:
    record = read_search(folders.write_folder(tmp_path))
    shown = [" ".join((one.gain, one.interval, one.change)) for one in tiles(record)]
    numbers = [number for words in shown for number in re.findall(r"\d+\.\d+", words)]
    assert numbers and len(numbers) == len(set(numbers))


@pytest.mark.parametrize("moment", ["half finished", "float only"])
def test_without_a_verdict_the_search_speaks_for_itself(moment: str, tmp_path: Path) -> None:
    record = read_search(folders.MOMENTS[moment](tmp_path))
    assert headline(record) == record.summary.sentence


def test_files_that_were_not_measured_have_no_headline(tmp_path: Path) -> None:
    folder = folders.write_folder(tmp_path)
    (folder / "best.tflite").write_bytes(b"another")
    told = folders.summary()
    best = told["best"]
    assert isinstance(best, dict)
    told["best"] = {**best, "digest": folders.digest("best")}
    record = read_search(folders.write_folder(tmp_path, told))
    assert record.changed and headline(record) == ""
