"""The table of trials: how each status looks."""

import re

import pytest

from litesmith.evidence.tune_record import FITS, MISSES, NEAR, REFUSED, SET_ASIDE
from litesmith.pages.drawing.assets import asset


@pytest.mark.parametrize("status", [FITS, MISSES, NEAR, REFUSED, SET_ASIDE])
def test_a_status_has_its_own_look_in_the_table_and_nowhere_else(status: str) -> None:
    """The row's class: another part of the page that has it would lend the row its margins."""
    name, css = status.replace(" ", "-"), asset("page.css").text
    assert f".trials tr.{name}" in css
    assert not re.search(rf"(^|[\s,}}])\.{name}\b", css)
