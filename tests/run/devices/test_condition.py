"""How a device is: the script that it runs, on the made-up files of a phone, and what is read."""

import os
import subprocess
from pathlib import Path

import pytest

from litesmith.operating_system import Heat
from litesmith.run.devices.condition import LOOK, Condition, read_condition
from tests.platforms import posix

CORES = 8  # four slow ones and four fast ones
WAKEFULNESS = "Power Manager State:\n  mWakefulness={}\n  mWakefulnessChanging=false\n"


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def a_phone(root: Path, *, limit: int = 2_850_000, has_capacity: bool = True) -> None:
    """The files of a phone whose fast cores may not go beyond a limit."""
    for number, value in enumerate((41_200, -274_000, 63_500, "unreadable")):
        write(root / f"sys/class/thermal/thermal_zone{number}/temp", value)
    cpus = root / "sys/devices/system/cpu"
    write(cpus / "cpufreq/policy0/scaling_max_freq", 0)  # no core, for all its name
    for core in range(CORES):
        most = 2_850_000 if core >= 4 else 1_800_000
        write(cpus / f"cpu{core}/cpufreq/cpuinfo_max_freq", most)
        write(cpus / f"cpu{core}/cpufreq/scaling_max_freq", min(most, limit))
        if has_capacity:
            write(cpus / f"cpu{core}/cpu_capacity", 1024 if core >= 4 else 300)


def look(root: Path, screen: str = "") -> Condition:
    """What the script tells of these files."""
    if screen:
        (root / "bin").mkdir(exist_ok=True)
        write(root / "bin/said", WAKEFULNESS.format(screen))
        write(root / "bin/dumpsys", f'#!/bin/sh\n[ "$1" = power ] && cat {root}/bin/said')
        (root / "bin/dumpsys").chmod(0o755)
    path = os.pathsep.join([str(root / "bin"), os.environ["PATH"]])
    script = LOOK.replace("/sys/", f"{root}/sys/")
    done = subprocess.run(
        ["sh", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, check=True
    )
    assert done.stderr == b""
    return read_condition(done.stdout.decode())


@posix
@pytest.mark.parametrize("has_capacity", [True, False])
def test_heat_and_kinds_of_cores(tmp_path: Path, has_capacity: bool) -> None:
    a_phone(tmp_path, limit=1_425_000, has_capacity=has_capacity)
    seen = look(tmp_path)
    assert seen.heat == Heat(63.5, 0.5)
    assert seen.cores.kinds == ((4, 5, 6, 7), (0, 1, 2, 3))
    assert seen.screen == ""


@posix
@pytest.mark.parametrize(
    ("state", "screen"), [("Awake", ""), ("Asleep", "Asleep"), ("Dozing", "Dozing")]
)
def test_a_screen_that_is_off(tmp_path: Path, state: str, screen: str) -> None:
    a_phone(tmp_path)
    assert look(tmp_path, state)[1:] == (look(tmp_path).cores, screen)


@posix
def test_a_device_without_such_files_tells_nothing(tmp_path: Path) -> None:
    seen = look(tmp_path)
    assert seen.heat == Heat(0.0, 1.0)
    assert seen.cores.big == seen.cores.little == ()


@pytest.mark.parametrize(
    "text", ["", "zone\ncore\nscreen\n", "core x - - -\nzone 9 9\n", "core 1 - - -\n\x00 zone"]
)
def test_other_words_do_no_harm(text: str) -> None:
    assert read_condition(text).heat == Heat(0.0, 1.0)
