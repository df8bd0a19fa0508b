"""Every target on real models: each op has a home and a reason."""

from pathlib import Path

import pytest

from litesmith.run.accelerators import probes
from litesmith.run.accelerators.hexagon import hexagon_place
from litesmith.run.rules.all_rules import RULES, place_by_rules
from litesmith.tflite.file import load
from tests.test_assets import FILES
from tests.test_every_target import RULED, laws

pytestmark = pytest.mark.skipif(not FILES, reason="no real models beside the checkout")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_each_op_has_a_home_on_every_target(path: Path) -> None:
    model = load(path)
    kinds = [op.kind for op in model.main.ops]
    for delegate in RULED:
        assert delegate.predict is not None
        assert [*laws(delegate.predict(model), kinds)] == [], delegate.name


@pytest.mark.skipif(not probes.hexagon().usable, reason=probes.hexagon().why)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_rules_predict_what_qualcomms_libraries_take(path: Path) -> None:
    model = load(path)
    real, ruled = hexagon_place(model), place_by_rules("hexagon", RULES["hexagon"], model)
    assert [home.taken for home in real.homes] == [home.taken for home in ruled.homes]
