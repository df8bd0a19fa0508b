"""`litesmith targets` as a user meets it."""

import json
from pathlib import Path

import pytest

from litesmith.operating_system import quote
from litesmith.run.accelerators.targets import with_custom
from litesmith.tflite.file import save
from tests import zoo
from tests.cli.typed import run_command


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_every_target_has_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    run_command("targets")
    out, err = capfd.readouterr()
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())
    for delegate in with_custom():
        line = next(line for line in out.splitlines() if line.startswith(f"{delegate.name} "))
        assert line.split()[1] == ("yes" if delegate.probe().usable else "no")


def test_json_has_the_promised_keys(capfd: pytest.CaptureFixture[str]) -> None:
    run_command("targets", as_json=True)
    told = json.loads(capfd.readouterr().out)
    assert told["schema"] == 1
    assert [row["name"] for row in told["targets"]] == [d.name for d in with_custom()]
    assert all({"usable", "why", "how"} <= set(row) for row in told["targets"])
    assert not any("placement" in row for row in told["targets"])


@pytest.mark.parametrize("make", [zoo.convnet, zoo.residual_int8, zoo.custom, zoo.nothing])
def test_a_model_is_placed_on_each(
    make: zoo.Callable[[], zoo.Model], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.tflite"
    save(make(), path)
    run_command("targets", model=path)
    out, err = capfd.readouterr()
    assert err == ""
    table = [line for line in out.splitlines() if "litesmith quantize" not in line]
    assert all(len(line) <= 80 for line in table)
    run_command("targets", model=path, as_json=True)
    rows = json.loads(capfd.readouterr().out)["targets"]
    count = len(make().main.ops)
    for row, delegate in zip(rows, with_custom(), strict=True):
        if delegate.predict is None:
            assert "placement" not in row
            continue
        placed = row["placement"]
        assert placed["taken"] + placed["left"] == len(placed["homes"]) == count
        assert all(home["why"] for home in placed["homes"])


def test_the_command_that_makes_a_model_fit_can_be_copied(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "my model.tflite"
    save(zoo.convnet(), path)
    run_command("targets", model=path)
    lines = capfd.readouterr().out.splitlines()
    assert (
        f"  litesmith quantize {quote(str(path))} --to int8 --io int8 --data DATA -o OUT.tflite"
        in lines
    )
