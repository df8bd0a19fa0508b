"""The figures of the documents and the table of those that are measured again do not part."""

import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from litesmith.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
MEASURED = "docs/measured.md"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "bench")
    import figures

    return figures


def read(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def test_every_figure_stands_in_its_document(table: ModuleType) -> None:
    places = [(one.document, one.text) for one in table.FIGURES]
    places += [(document, text) for document, text, _ in table.NOT_COVERED]
    assert [place for place in places if place[1] not in read(place[0])] == []


def test_every_figure_of_the_page_is_in_the_table(table: ModuleType) -> None:
    section = read(MEASURED).partition("## What it is worth")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")][1:]
    known = [one.text for one in table.FIGURES] + [text for _, text, _ in table.NOT_COVERED]
    assert len(rows) > 20
    assert [row for row in rows if not any(text in row for text in known)] == []


def test_every_command_is_the_one_that_the_document_names(table: ModuleType) -> None:
    rows = [line for line in read(MEASURED).splitlines() if line.startswith("| ")]
    for one in (figure for figure in table.FIGURES if figure.document == MEASURED):
        (row,) = [line for line in rows if one.text in line]
        is_ours = one.command.startswith("litesmith ")
        assert f"`{one.command if is_ours else f'python bench/{one.command}'}`" in row


def test_every_bench_exists_and_has_a_time(table: ModuleType) -> None:
    for command in {figure.command for figure in table.FIGURES}:
        script = command.partition(" ")[0]
        assert script == "litesmith" or (ROOT / "bench" / script).is_file()
        assert table.MINUTES[command] > 0
    assert {*table.QUICK, *table.LONG} <= set(table.MINUTES)
    assert not {*table.QUICK} & {*table.LONG}


def test_every_command_is_cut_short_by_options_that_it_has(table: ModuleType) -> None:
    for command in (one for one in table.QUICK if one.startswith("litesmith ")):
        words = shlex.split(f"{command} {table.QUICK[command]} --json")[1:]
        known = {name for one in COMMANDS[words[0]].options for name in one.names} | {"--json"}
        assert {word for word in words if word.startswith("-")} <= known


def test_numbers_of_a_command_are_known_by_their_place(table: ModuleType) -> None:
    told = dict(table.told_by_json({"latency": {"ratio": 0.5, "is": True}, "n": 0, "all": [1]}))
    assert told == {"latency.ratio": 0.5, "1 / latency.ratio": 2.0, "n": 0}


def test_intervals_hold_what_is_printed(table: ModuleType) -> None:
    """A figure that is a number in the text lies in its interval, in the text's own unit."""
    for one in table.FIGURES:
        if one.key in (table.MISSED, "largest"):
            continue
        printed = [float(n.replace(",", "")) for n in re.findall(r"[\d,]*\d(?:\.\d+)?", one.text)]
        values = {sign * n * unit for n in printed for unit in (1, 0.01, 1e6) for sign in (1, -1)}
        values |= {a / b for a in printed for b in printed if b}
        assert any(one.low <= value <= one.high for value in values | {0.0}), one


@pytest.mark.parametrize(
    ("told", "verdict"),
    [((1.0, None, None), "holds"), ((2.0, None, None), "drifted"), ((2.0, 1.0, 3.0), "holds")],
)
def test_what_lies_outside_has_drifted(
    table: ModuleType, told: tuple[float, float | None, float | None], verdict: str
) -> None:
    figure = table.Figure(MEASURED, "1.0", "roundtrip.py", "key", 0.9, 1.1)
    assert table.verdict(figure, table.Told(*told)) == verdict
    assert table.verdict(figure, None) == "not told"
