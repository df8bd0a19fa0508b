"""Measurements that are over in a blink: the intervals are wide, all else is as ever."""

from importlib import import_module

import pytest

# module -> how long it measures, and for how long in tests
_SECONDS = {
    "litesmith.diagnosis.slowness": ("_SECONDS", 0.05),
    "litesmith.timing.host": ("_LOOK_SECONDS", 0.02),
    "litesmith.regression.size_report": ("_SECONDS", 0.05),
}


def blink(patch: pytest.MonkeyPatch) -> None:
    for module, (name, seconds) in _SECONDS.items():
        patch.setattr(import_module(module), name, seconds)
