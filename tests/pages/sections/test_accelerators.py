"""Which accelerators take the models, on the page and in Markdown."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from litesmith.pages.folder_kinds import write_markdown, write_report
from litesmith.pages.records.record_words import names_words
from litesmith.pages.records.tune_folder import read_search
from litesmith.pages.sections.accelerators import rows
from tests.pages import folders


def test_each_accelerator_is_told_once_of_both_models(tmp_path: Path) -> None:
    found = rows(read_search(folders.write_folder(tmp_path)))
    assert found == [
        ("gpu", "whole (predicted)", "whole (predicted)"),
        (
            "ethos-u55-64",
            "nothing of it: a reason of ethos-u55-64 (predicted)",
            "whole (predicted)",
        ),
        (
            "ethos-u55-128",
            "nothing of it: a reason of ethos-u55-128 (predicted)",
            "whole (measured); 2.90 ms, estimated",
        ),
        (
            "coreml",
            "30 of 31 ops in 2 parts: a reason of coreml (predicted)",
            "nothing of it: a reason of coreml (predicted)",
        ),
    ]


def test_both_kinds_of_report_say_it(tmp_path: Path) -> None:
    folder = folders.write_folder(tmp_path)
    page, text = (
        write(folder).read_text(encoding="utf-8") for write in (write_report, write_markdown)
    )
    assert "runs entirely on: gpu, ethos-u55-64/128" in page
    assert "30 of 31 ops in 2 parts" in page and "2.90 ms, estimated" in page
    assert "runs entirely on\\: gpu, ethos\\-u55\\-64/128" in text and "2.90 ms, estimated" in text


def test_a_folder_that_tells_nothing_of_them_is_shown_without(tmp_path: Path) -> None:
    folder = folders.write_folder(tmp_path)
    for place in (folder / "evidence").glob("*.json"):
        told = json.loads(place.read_bytes())
        told.pop("accelerators")
        place.write_text(json.dumps(told))
    page = write_report(folder).read_text(encoding="utf-8")
    assert "runs entirely on" not in page and 'id="accelerators"' not in page
    assert "Where the time goes" in page


def test_a_time_that_nothing_ran_for_is_said_to_be_an_estimate(tmp_path: Path) -> None:
    told = folders.summary()
    best = dict(told["best"])  # type: ignore[call-overload]
    latency = {"target": "ethos-u55-128", "how": "estimated", "p50_us": 2_900.0, "ratio": None}
    told["best"] = {**best, "target": "ethos-u55-128", "scored_on": "cpu:1", "latency": latency}
    page = write_report(folders.write_folder(tmp_path, told)).read_text(encoding="utf-8")
    assert "Latency, estimated" in page and "nothing ran there" in page
    assert "vela best.tflite --accelerator-config ethos-u55-128" in page
    assert "by the kernels of cpu:1" in page and "litesmith.Session" not in page


@given(st.lists(st.sampled_from(["gpu", "npu-8", "npu-16", "npu-x", "tpu-8", "8", "-8"])))
def test_names_told_together_can_be_told_apart_again(names: list[str]) -> None:
    again: list[str] = []
    for told in names_words(names).split(", ") if names else []:
        first, *members = told.split("/")
        again += [first, *(f"{first.rpartition('-')[0]}-{member}" for member in members)]
    assert again == names
