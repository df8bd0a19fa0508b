"""Damaged .onnx files: converted or refused, never anything else; the bench reads thousands."""

from pathlib import Path

import pytest

from tests.conversion.damaged import ending

pytest.importorskip("onnx", reason="the files are made of the onnx package's own tests")


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_a_damaged_file_is_converted_or_refused(first: int, tmp_path: Path) -> None:
    found = {ending(seed, tmp_path) for seed in range(first, first + 50)}
    assert found <= {"converted", "left", "refused"}
