"""Probes of this machine, with what can be put in their way."""

from pathlib import Path

import pytest

from litesmith.run.accelerators import probes


def told(*devices: tuple[str, str, bool]) -> probes.Told:
    return {"devices": [{"name": n, "driver": d, "is_software": s} for n, d, s in devices]}


OLD = ("llvmpipe (LLVM 15.0.6, 256 bits)", "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)", True)
NEW = ("llvmpipe (LLVM 19.1.7, 256 bits)", "llvmpipe Mesa 25.0.7 (LLVM 19.1.7)", True)
REAL = ("NVIDIA H200", "NVIDIA 570.86", False)


@pytest.mark.parametrize(
    ("answer", "usable", "words"),
    [
        (told(REAL), True, "NVIDIA H200"),
        (told(OLD, REAL), True, "NVIDIA H200"),
        (told(NEW), True, "Mesa 25.0.7"),
        (told(OLD), False, "Mesa 22.3.6"),
        (told(), False, "finds no GPU"),
        ({"devices": None}, False, "finds no driver"),
        ({"missing": "libvulkan.so.1"}, False, "libvulkan.so.1"),
        (None, False, "crashes or hangs"),
    ],
)
def test_what_vulkan_tells(answer: probes.Told | None, usable: bool, words: str) -> None:
    found = probes.judge_vulkan(answer)
    assert found.usable is usable
    assert words in found.why
    assert bool(found.how) is not usable


@pytest.mark.parametrize(
    "program", ["import os; os.abort()", "print('noise')", "raise SystemExit(3)", "1 / 0"]
)
def test_a_driver_that_crashes_takes_nobody_with_it(
    program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crashes.py"
    path.write_text(program)
    assert probes.ask_program(path) is None
    assert capfd.readouterr() == ("", "")


def test_the_real_program_answers(capfd: pytest.CaptureFixture[str]) -> None:
    assert probes.gpu().why
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(probes.partition_tool() is None, reason="no partition tool in this wheel")
@pytest.mark.parametrize(
    ("name", "folder"), [("QNN_SDK_ROOT", "lib/x86_64-linux-clang"), ("LD_LIBRARY_PATH", ".")]
)
def test_qualcomm_libraries_are_found_where_the_environment_says(
    name: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QNN_SDK_ROOT", "")
    monkeypatch.setenv("LD_LIBRARY_PATH", "")
    monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    for part in ("Htp", "Ir", "Saver", "System"):
        found = probes.hexagon()
        assert not found.usable
        assert f"no libQnn{part}.so" in found.why
        (tmp_path / folder / f"libQnn{part}.so").touch()
    assert probes.hexagon().usable
