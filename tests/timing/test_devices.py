"""What a bench tells of the phone that it ran on. The phone is a folder of files, its shell that of
this machine, its `adb` and its program a few lines each."""

import os
import sys
from pathlib import Path

import pytest

import litesmith
from litesmith.errors import CannotRun
from tests import zoo
from tests.platforms import posix
from tests.run.devices.test_adb import TIMES
from tests.run.devices.test_condition import WAKEFULNESS, a_phone, write

ON = "adb://PHONE/cpu:4"

# The clock of the cores is given back once the phone was looked at this often.
ADB = """#!{python}
import subprocess, sys
from pathlib import Path
root = Path({root!r})
words = sys.argv[1:]
with open(root / "calls", "a") as file:
    file.write(words[-1].replace("\\n", " ") + "\\n")
if words == ["devices"]:
    print("List of devices attached\\nPHONE\\tdevice")
elif words[2] == "push":
    Path(str(root) + words[4]).write_bytes(Path(words[3]).read_bytes())
else:
    looks = (root / "calls").read_text("utf-8").count("thermal_zone")
    if looks >= {cool_after}:
        for core in range(8):
            place = root / f"sys/devices/system/cpu/cpu{{core}}/cpufreq"
            (place / "scaling_max_freq").write_text((place / "cpuinfo_max_freq").read_text("utf-8"))
    command = words[3]
    for folder in ("/sys/", "/data/"):
        command = command.replace(folder, f"{{root}}{{folder}}")
    sys.exit(subprocess.run(["sh", "-c", command]).returncode)
"""


def prepare(root: Path, monkeypatch: pytest.MonkeyPatch, *, cool_after: int = 999) -> Path:
    """A hot phone with a dark screen, and a model."""
    a_phone(root, limit=1_425_000)
    programs = {
        "bin/adb": ADB.format(python=sys.executable, root=str(root), cool_after=cool_after),
        "bin/dumpsys": f"#!/bin/sh\ncat {root}/said",
        "bin/taskset": '#!/bin/sh\nshift\nexec "$@"',
        "data/local/tmp/benchmark_model": f"#!/bin/sh\ncat {root}/times",
    }
    for name, text in programs.items():
        write(root / name, text)
        (root / name).chmod(0o755)
    write(root / "times", TIMES)
    write(root / "said", WAKEFULNESS.format("Asleep"))
    monkeypatch.setenv("PATH", os.pathsep.join([str(root / "bin"), os.environ["PATH"]]))
    litesmith.save(zoo.convnet(), root / "model.tflite")
    return root / "model.tflite"


def calls(root: Path) -> list[str]:
    return (root / "calls").read_text("utf-8").splitlines()


@posix
def test_heat_clock_screen_and_cores_of_a_phone_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = litesmith.bench(prepare(tmp_path, monkeypatch), on=ON, runs=2)
    of_phone = [text for text in map(str, done.warnings) if text.startswith("adb://PHONE: ")]
    for wanted in (
        "holds a core at 50.0 % of its highest clock at 64 °C",
        "its screen is off (Asleep)",
        "adb://PHONE/cpu:4 may run on any of 4 (4-7) + 4 (0-3) cores",
    ):
        assert sum(wanted in text for text in map(str, done.warnings)) == 1, done.warnings
    assert len(of_phone) == 2
    (result,) = done.results
    assert "at 64 °C, 50.0 % of the highest clock" in result.note
    assert "Explicitly applied XNNPACK delegate" in result.note


@posix
def test_cores_are_chosen_on_the_phone_not_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = prepare(tmp_path, monkeypatch)
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    done = litesmith.bench(model, on=ON, runs=2, cores="big")
    ran = [one for one in calls(tmp_path) if "--graph=" in one]
    assert ran and all(one.startswith("taskset f0 ") for one in ran)
    assert not any("may run on any of" in str(text) for text in done.warnings)
    assert before is None or os.sched_getaffinity(0) == before
    write(tmp_path / "bin/taskset", "#!/bin/sh\nexit 1")
    with pytest.raises(CannotRun, match="adb://PHONE: its cores cannot be chosen"):
        litesmith.bench(model, on=ON, runs=2, cores="little")


@posix
def test_a_pause_lets_the_phone_cool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = prepare(tmp_path, monkeypatch, cool_after=3)
    done = litesmith.bench(model, on=ON, runs=2, cool=60)
    made = calls(tmp_path)
    first_run = next(number for number, one in enumerate(made) if "--graph=" in one)
    assert sum("thermal_zone" in one for one in made[:first_run]) == 3
    assert "100.0 % of the highest clock" in done.results[0].note
    assert any(str(text).startswith("waited ") for text in done.warnings)


@posix
def test_without_it_nothing_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = prepare(tmp_path, monkeypatch, cool_after=3)
    done = litesmith.bench(model, on=ON, runs=1)
    assert not any(str(text).startswith("waited ") for text in done.warnings)
