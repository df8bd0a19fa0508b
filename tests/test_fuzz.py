"""A short run of the fuzzing bench: damaged files in process, and through the commands."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

from litesmith.cli.guard import can_guard
from litesmith.errors import BadModel
from litesmith.tflite.file import load
from litesmith.tflite.write import to_bytes
from tests.tflite.mutate import SORTS, mutated
from tests.zoo import MODELS

pytestmark = pytest.mark.skipif(not can_guard(), reason="no process can be doubled here")

FILES = {name: to_bytes(make()) for name, make in MODELS.items()}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The part of the bench that runs commands; it brings the others."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "bench")
    import fuzz_commands

    return fuzz_commands


@pytest.mark.parametrize("sort", range(len(SORTS)), ids=SORTS.__getitem__)
def test_damaged_files_in_process(bench: ModuleType, sort: int) -> None:
    journey = sys.modules["fuzz_files"].journey
    for number, (name, data) in enumerate(FILES.items()):
        seed = sort + len(SORTS) * number
        outcome, is_fine, trace = journey(mutated(data, seed), seed)
        assert is_fine, f"seed {seed} of {name}: {outcome}\n{trace}"


def opens(data: bytes) -> bool:
    try:
        return bool(load(data))
    except BadModel:
        return False


# A command, and a model whose first damage that it survives is given to it.
ROWS = {"bench": "convnet", "doctor": "residual_int8", "quantize dynamic": "convnet"}


@pytest.mark.parametrize("command", ROWS)
def test_damaged_files_through_commands(bench: ModuleType, command: str) -> None:
    data = FILES[ROWS[command]]
    seed = next(seed for seed in range(7, 10_000) if opens(mutated(data, seed)))
    ended = bench.run_once(seed, mutated(data, seed), command)
    assert not ended.faults, ended.told
