"""Folders of every kind: one is told from the others by its record, and shown."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from litesmith.errors import BadInput
from litesmith.evidence.folder import RECORDS, Folder
from litesmith.pages.folder_kinds import KINDS, kind_of, write_markdown, write_report
from tests.pages import chosen, folders, gated, retrained

HOSTILE = "<script>alert('&')</script> | `x` \x1b[2J"


def benched(folder: Path) -> Path:
    """What `bench --on all -o` leaves, of a model with a hostile name."""
    (folder / "evidence").mkdir(parents=True)
    whole = {"target": "gpu", "how": "measured", "taken": 3, "ops": 3, "partitions": 1}
    homes = [{"place": 0, "kind": HOSTILE, "taken": False, "why": HOSTILE}] * 2
    rows = [
        {"target": "cpu:1", "how": "measured", "latency_us": 224.0, "runs": 40},
        {**whole, "latency_us": 9e5, "runs": 1, "is_alone": True, "verdict": "not worth it: slow"},
        {"target": "coreml", "how": "predicted", "taken": 1, "ops": 3, "verdict": HOSTILE},
        {"target": None, "how": 3, "taken": "x", "latency_us": -1, "difference": "?"},
    ]
    told = {"models": [{"model": HOSTILE, "digest": "ab12", "bytes": 866_000, "targets": rows}]}
    (folder / "bench.json").write_text(json.dumps(told))
    kept = {"placements": {"coreml": {"homes": homes}}}
    (folder / "evidence" / "ab12.json").write_text(json.dumps(kept))
    return folder


EXAMPLES: dict[str, Callable[[Path], Path]] = {
    "bench": benched,
    "choose": chosen.write_folder,
    "gate": gated.write_folder,
    "retrain": retrained.write_folder,
    "tune": folders.write_folder,
}


@pytest.mark.parametrize("command", EXAMPLES)
def test_each_is_told_from_the_others(command: str, tmp_path: Path) -> None:
    folder = EXAMPLES[command](tmp_path / "made")
    assert kind_of(folder).command == command
    page = write_report(folder).read_text(encoding="utf-8")
    assert page.count("<script>") == 1 and "</html>" in page and "\x1b" not in page
    assert write_markdown(folder).read_text(encoding="utf-8").startswith("#")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.command)
@pytest.mark.parametrize("content", ["{}", '{"models": 3}', '{"models": [{"targets": [[]]}]}'])
def test_an_empty_record_is_shown_and_a_damaged_one_refused(
    kind, content: str, tmp_path: Path
) -> None:
    (tmp_path / kind.record).write_text(content)
    assert write_report(tmp_path).exists() and write_markdown(tmp_path).exists()
    (tmp_path / kind.record).write_text("{")
    with pytest.raises(
        BadInput, match=rf"{kind.record}: cannot be read .*litesmith {kind.command}"
    ):
        write_report(tmp_path)


def test_a_bench_says_what_stays_behind_and_how_few_runs_it_had(tmp_path: Path) -> None:
    folder = benched(tmp_path / "made")
    page, text = (
        write(folder).read_text(encoding="utf-8") for write in (write_report, write_markdown)
    )
    assert "2 ops stay on the CPU" in page and "measured, 1 run by itself" in page
    assert "900 ms" in page and "1 of 3" in page
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 4
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_two_commands_never_share_a_folder(tmp_path: Path) -> None:
    for record, command in RECORDS.items():
        place = tmp_path / command
        place.mkdir()
        (place / record).write_text("{}")
        for other in RECORDS:
            held = Folder(place, other).hold()
            if other == record:
                with held:
                    continue
            with pytest.raises(BadInput, match=f"holds what `litesmith {command}` wrote"), held:
                pass
