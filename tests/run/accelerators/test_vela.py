"""Vela's placements: every op has a home, whatever its tensors are called, and without noise."""

import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from litesmith.cli import main
from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.ir.build import Builder
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Model, Quant
from litesmith.run.accelerators.vela import ACCELERATORS, RECIPE, vela_place
from litesmith.run.core.placement import ESTIMATED, MEASURED, Placement
from litesmith.tflite.file import load, save
from tests import zoo

pytestmark = pytest.mark.skipif(
    find_spec("ethosu") is None, reason="Vela is not installed; pip install ethos-u-vela"
)

_QUANT = Quant.of(0.05, -3)


def broken_in_two() -> Model:
    """Integer ops on both sides of one that Ethos-U55 does not have."""
    b = Builder()
    x = b.input("x", (1, 4, 4, 4), "int8", _QUANT)
    x = b.op("ADD", x, x, quant=_QUANT, version=2)
    x = b.op("SQRT", x, quant=_QUANT)
    x = b.op("ADD", x, x, quant=_QUANT, version=2)
    return b.model(b.op("ADD", x, x, quant=_QUANT, version=2))


@pytest.fixture(scope="module")
def broken() -> Placement:
    return vela_place(broken_in_two())


def renamed(model: Model, name: str) -> Model:
    """The model with all its tensors called alike."""
    tensors = {t: replace(t, name=name) for t in model.main.tensors}
    return with_graphs(model, [rewrite(model.main, tensors=tensors)], tensors)


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_an_integer_model_goes_whole(accelerator: str) -> None:
    placement = vela_place(zoo.residual_int8(), accelerator)
    assert placement.is_whole
    assert (placement.target, placement.how) == (accelerator, MEASURED)
    assert placement.latency_how == ESTIMATED
    assert placement.latency_us is not None and placement.latency_us > 0
    assert placement.facts["cpu_operators"] == 0
    seconds = int(placement.facts["cycles"]) / int(placement.facts["clock_hz"])
    assert placement.latency_us == pytest.approx(seconds * 1e6)


def test_what_stays_has_velas_reason(broken: Placement) -> None:
    assert [home.taken for home in broken.homes] == [True, False, True, True]
    assert broken.homes[1].why == "Vela: Unsupported opType"
    assert broken.partitions == 2
    # Vela knows nothing of the CPU's time, so that there is no time of the whole model.
    assert broken.latency_us is None
    assert float(broken.facts["npu_us"]) > 0


def test_float_ends_stay_for_their_type() -> None:
    b = Builder()
    x = b.op("QUANTIZE", b.input("x", (1, 4, 4, 4)), dtype="int8", quant=_QUANT)
    y = b.op("ADD", x, x, quant=_QUANT, version=2)
    placement = vela_place(b.model(b.op("DEQUANTIZE", y, dtype="float32", version=2)))
    assert [home.taken for home in placement.homes] == [False, True, False]
    assert "Float32" in placement.homes[0].why


@pytest.mark.parametrize("name", ["op0.0", "op1.0", "in0", "op9", "a b'; (c)"])
def test_names_of_tensors_do_not_matter(name: str, broken: Placement) -> None:
    assert vela_place(renamed(broken_in_two(), name)) == broken


@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_op_has_a_home(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = zoo.MODELS[name]()
    placement = vela_place(model)
    assert [(h.place, h.kind) for h in placement.homes] == [
        (place, op.kind) for place, op in enumerate(model.main.ops)
    ]
    for why in (placement.refused, *(home.why for home in placement.homes)):
        assert "\n" not in why and "op0." not in why
    assert all(home.why for home in placement.homes)
    assert bool(placement.refused) == (placement.partitions == 0)
    if not placement.refused:
        assert placement.left == placement.facts["cpu_operators"]
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_failure_is_one_line_with_the_rule() -> None:
    b = Builder()
    x = b.input("x", (1, 4, 4, 4), "int8", _QUANT)
    real = b.op("DEQUANTIZE", b.op("ADD", x, x, quant=_QUANT, version=2), dtype="float32")
    placement = vela_place(b.model(b.op("HARD_SWISH", real)))
    assert placement.refused.startswith("Vela does not compile it: HARD_SWISH")
    assert placement.refused.endswith("IFM has to be 8bit")


def test_the_recipe_makes_a_float_model_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placement = vela_place(zoo.convnet())
    assert placement.refused.endswith(RECIPE)
    places = {
        "MODEL": tmp_path / "m.tflite",
        "DATA": tmp_path / "x.npy",
        "OUT.tflite": tmp_path / "q.tflite",
    }
    save(zoo.convnet(), places["MODEL"])
    np.save(places["DATA"], zoo.noise(16, 8, 8, 3))
    monkeypatch.setattr("sys.argv", [str(places.get(word, word)) for word in RECIPE.split()])
    assert main._run() == 0
    assert vela_place(load(places["OUT.tflite"])).is_whole


def test_unknown_accelerator() -> None:
    with pytest.raises(BadInput, match="no accelerator 'ethos-u1'; there are ethos-u55-32"):
        vela_place(zoo.residual_int8(), "ethos-u1")


def test_without_vela(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ethosu", None)
    with pytest.raises(CannotRun, match=re.escape(install_command("ethos"))):
        vela_place(zoo.residual_int8())
