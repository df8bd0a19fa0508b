"""Qualcomm's Hexagon by LiteRT's partition tool, where the user's libraries are."""

from pathlib import Path

import pytest

from litesmith.errors import BadInput, CannotRun
from litesmith.run.accelerators import probes
from litesmith.run.accelerators.hexagon import hexagon_place, stand_in
from litesmith.run.core.placement import MEASURED
from litesmith.run.rules.all_rules import RULES, place_by_rules
from tests import zoo
from tests.platforms import links
from tests.run.rules.test_rules import LAYERS, layer

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


@installed
@pytest.mark.parametrize("flows", ["int8", "float32"])
@pytest.mark.parametrize("kind", LAYERS)
def test_rules_know_weights_of_few_bits(kind: str, flows: str) -> None:
    for stored in ("int8", "int4", "int2"):
        for by_channel in (False, True):
            model = layer(kind, stored, by_channel=by_channel, flows=flows)
            ruled = place_by_rules("hexagon", RULES["hexagon"], model)
            assert hexagon_place(model).taken == ruled.taken, (stored, by_channel)


@links
def test_another_library_stands_in_for_one_that_is_not_used(tmp_path: Path) -> None:
    sdk, work = tmp_path / "sdk", tmp_path / "work"
    sdk.mkdir()
    work.mkdir()
    (sdk / "libQnnSystem.so").write_bytes(b"the user's")
    assert stand_in(work, ["/nowhere", str(sdk)]) == [str(work)]
    assert (work / "libQnnLpai.so").read_bytes() == b"the user's"
    (sdk / "libQnnLpai.so").write_bytes(b"the user's own")
    assert stand_in(tmp_path, [str(sdk)]) == []
    assert sorted(p.name for p in tmp_path.iterdir()) == ["sdk", "work"]
