"""What a gate found, as Markdown and as JUnit XML, whatever names are in it."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.pages.folder_kinds import write_markdown, write_report
from litesmith.pages.gate_page import HEAD, gate_chart, gate_junit, gate_markdown, gate_summary
from litesmith.regression.gate_checks import Check
from litesmith.regression.gate_rules import FINE, OFF, UNCLEAR, UNKNOWN, WORSE
from litesmith.regression.gate_run import Gated
from tests.pages import gated

VERDICTS = (FINE, WORSE, UNCLEAR, UNKNOWN, OFF)

checks = st.builds(
    Check,
    st.just("size"),
    st.text(max_size=8),
    st.sampled_from(VERDICTS),
    now=st.text(max_size=8),
    why=st.text(max_size=12),
    command=st.text(max_size=12),
)
found = st.builds(
    Gated,
    st.text(max_size=8),
    st.text(max_size=8),
    st.just("ab"),
    st.just("cpu:1"),
    st.lists(checks, max_size=5).map(tuple),
    st.just({"cpu": "a cpu"}),
    st.lists(st.text(max_size=9), max_size=2).map(tuple),
    st.booleans(),
)


@given(found)
def test_junit_counts_what_it_holds(one: Gated) -> None:
    suite = ElementTree.fromstring(gate_junit(one).encode())
    assert int(suite.get("tests", "")) == len(suite.findall("testcase")) == len(one.checks)
    for name, count in (("failure", "failures"), ("skipped", "skipped")):
        assert int(suite.get(count, "")) == len(suite.findall(f"testcase/{name}"))
    assert (one.verdict == WORSE) == bool(suite.findall("testcase/failure"))


@given(found)
def test_markdown_has_a_row_a_check_whatever_names_hold(one: Gated) -> None:
    lines = gate_markdown(one).split("\n")
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) == 2 + len(one.checks)
    bars = {line.replace("\\|", "").count("|") for line in rows}
    assert bars == {len(HEAD) + 1}
    assert sum("**worse**" in row for row in rows) == len(one.failures)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_only_what_needs_a_look_has_a_command(verdict: str) -> None:
    check = Check("size", "file size", verdict, why="why", command="litesmith diff")
    shown = gate_markdown(Gated("b", "m", "d", "cpu:1", (check,), {}))
    assert ("Look into it: `litesmith diff`" in shown) == (verdict in (WORSE, UNCLEAR))


def test_json_has_the_numbers_beside_the_words() -> None:
    check = Check("size", "file size", WORSE, facts={"baseline": 10, "now": 20})
    told = Gated("b", "m", "d", "cpu:1", (check,), {"cpu": "x"}, ("note",)).to_json()
    assert told["schema"] == 1 and told["verdict"] == WORSE
    (row,) = told["checks"]
    assert (row["quantity"], row["baseline"], row["now"]) == ("size", 10, 20)


def test_the_page_has_every_check_and_the_commands_that_look_into_them(tmp_path: Path) -> None:
    folder = gated.write_folder(tmp_path / "gated")
    page = write_report(folder).read_text(encoding="utf-8")
    assert page.count("<tr") == 1 + len(gated.CHECKS)
    assert 'class="verdict missed"' in page and "Worse than allowed" in page
    for check in gated.CHECKS:
        assert check.title in page
        assert check.command in page


def test_markdown_of_the_folder_is_the_markdown_of_the_gate(tmp_path: Path) -> None:
    folder = gated.write_folder(tmp_path / "gated")
    assert write_markdown(folder).read_text("utf-8") == gate_markdown(gated.gated(*gated.CHECKS))


@pytest.mark.parametrize(
    ("verdict", "kind"), [(FINE, "proven"), (WORSE, "missed"), (UNCLEAR, "likely")]
)
def test_the_verdict_is_the_first_thing(verdict: str, kind: str, tmp_path: Path) -> None:
    folder = gated.write_folder(tmp_path / "gated", Check("size", "file size", verdict))
    assert f'class="verdict {kind}"' in write_report(folder).read_text(encoding="utf-8")


def test_what_is_beyond_a_bar_ends_at_its_edge() -> None:
    chart = gate_chart(gate_summary(gated.gated(*gated.CHECKS)))
    bars = {row.name: row.bars[0] for row in chart.rows}
    assert set(bars) == {"top-1", "latency", "file size"}  # what is off has none
    assert bars["latency"].value == -1.0 and bars["file size"].value == 3.0
    assert bars["top-1"].value == 1.33
    assert all(-1 <= end <= 3 for bar in bars.values() for end in (bar.low or 0, bar.high or 0))
