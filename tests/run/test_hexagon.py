"""Qualcomm's Hexagon by LiteRT's partition tool, where the user's libraries are."""

import pytest

from litesmith.errors import BadInput, CannotRun
from litesmith.run import probes
from litesmith.run.hexagon import hexagon_place
from litesmith.run.placement import MEASURED
from litesmith.run.rules import RULES, place_by_rules
from tests import zoo

installed = pytest.mark.skipif(not probes.hexagon().usable, reason=probes.hexagon().why)


def test_without_the_libraries_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QNN_SDK_ROOT", "")
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    with pytest.raises(CannotRun, match=r"^target hexagon: "):
        hexagon_place(zoo.convnet())


@pytest.mark.parametrize("soc", ["", "--help", "SM8650 --o=x", "a/b"])
def test_a_chip_is_a_name(soc: str) -> None:
    with pytest.raises(BadInput, match="no chip"):
        hexagon_place(zoo.convnet(), soc)


@installed
@pytest.mark.parametrize("name", sorted({*zoo.MODELS} - {"nothing", "sparse", "variables"}))
def test_rules_predict_what_the_tool_does(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = zoo.MODELS[name]()
    real = hexagon_place(model)
    assert real.how == MEASURED
    assert all(home.why for home in real.homes)
    ruled = place_by_rules("hexagon", RULES["hexagon"], model)
    assert [home.taken for home in real.homes] == [home.taken for home in ruled.homes]
    assert capfd.readouterr() == ("", "")
