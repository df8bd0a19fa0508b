"""What a gate found, as Markdown and as JUnit XML, whatever names are in it."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.pages.gate_page import HEAD, gate_junit, gate_markdown
from litesmith.regression.gate_checks import Check
from litesmith.regression.gate_rules import FINE, OFF, UNCLEAR, UNKNOWN, WORSE
from litesmith.regression.gate_run import Gated

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
