"""Compiled code is kept for the next process; without numba one line says what to install."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import litesmith
from litesmith.installing import install_command
from litesmith.kernels.compiled import FUNCTIONS
from litesmith.native.compile import BETWEEN
from tests.kernels.one_op import needs_numba

# Compiles or loads one function, and says which.
ADDRESS = (
    "from litesmith.kernels.compiled import FUNCTIONS\n"
    "from litesmith.native.compile import _made, address_of\n"
    "address_of(FUNCTIONS['copy'])\n"
    "print(_made[FUNCTIONS['copy']]._cache_hits)\n"
)


def run(code: str, **environment: str) -> str:
    made = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return made.stdout.strip()


@needs_numba
def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    assert run(ADDRESS, LITESMITH_CACHE=str(tmp_path)) == "0"
    assert run(ADDRESS, LITESMITH_CACHE=str(tmp_path)) == "1"


@needs_numba
def test_code_of_other_sources_goes(tmp_path: Path) -> None:
    place = tmp_path / "jit" / "kernels"
    place.mkdir(parents=True)
    old = place / "loops.run_program-0123456789abcdef.py311.nbi"
    other = place / "notes.txt"
    old.touch()
    other.touch()
    run(ADDRESS, LITESMITH_CACHE=str(tmp_path))
    assert not old.exists() and other.exists()


@needs_numba
@pytest.mark.parametrize("place", ["", "/proc/nowhere"])
def test_no_place_to_keep_code_is_no_error(place: str) -> None:
    assert run(ADDRESS, LITESMITH_CACHE=place) == "0"


def test_numba_is_imported_only_when_code_is_asked_for() -> None:
    code = "import sys, litesmith.kernels.graph_programs; print('numba' in sys.modules)"
    assert run(code) == "False"


def test_without_numba_one_line_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.meta_path.insert(0, type('No', (), {'find_spec': lambda *a: None})())\n"
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'numba' else real(name, *a)\n"
        "from litesmith.kernels.compiled import kernel_address\n"
        "from litesmith import CannotRun\n"
        "try:\n    kernel_address('run')\nexcept CannotRun as error:\n    print(error)\n"
    )
    line = run(code)
    assert install_command("jit") in line and "\n" not in line


def test_every_function_is_there() -> None:
    folder = Path(litesmith.__file__).parent
    for one in (BETWEEN, *FUNCTIONS.values()):
        text = folder.joinpath(*one.module.split(".")).with_suffix(".py").read_text("utf-8")
        start = text.index(f"def {one.name}(")
        assert text[start : text.index(")", start)].count(",") + 1 == one.count
    assert list(FUNCTIONS) == sorted(FUNCTIONS)
