"""The runtime's library: what is said where it cannot be opened."""

import sys
from pathlib import Path

import pytest

from litesmith.errors import CannotRun
from litesmith.run.litert.capi import Api


@pytest.mark.parametrize(
    ("platform", "cure"),
    [("linux", "install ai-edge-litert again"), ("win32", r"newest Visual C\+\+ Redistributable")],
)
def test_a_library_that_does_not_load_is_one_line(
    platform: str, cure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libLiteRt.so").write_bytes(b"no library")
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(CannotRun, match=f"^libLiteRt.so does not load.*{cure}") as caught:
        Api(tmp_path / "libLiteRt.so")
    assert "\n" not in str(caught.value)
