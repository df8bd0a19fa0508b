"""The cache: it gives back what was kept, and never changes a result."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from litesmith.calibration import observed_cache as cache
from litesmith.calibration.observe import observe
from litesmith.calibration.observed_cache import (
    VARIABLE,
    CacheRoom,
    clear,
    facts_place,
    folder,
    held,
    write_facts,
)
from litesmith.data.sources import open_data
from litesmith.numeric.ranges import WHAT, Seen
from tests.zoo import convnet, noise

RANGE = frozenset({"range"})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


def images(seed: int = 0) -> np.ndarray:
    return noise(6, 8, 8, 3, seed=seed)


def seen_states(seed: int = 0, what: frozenset[str] = WHAT) -> list[dict[str, list[float]]]:
    model = convnet()
    data = open_data(images(seed), model)
    found = observe(model, model.main.outputs + model.main.inputs, what, data=data)
    return [{name: a.tolist() for name, a in s.state().items()} for s in found.values()]


@pytest.mark.parametrize("what", [WHAT, RANGE, frozenset({"mean"}), frozenset({"channels"})])
def test_what_was_kept_is_what_was_seen(place: Path, what: frozenset[str]) -> None:
    first = seen_states(what=what)
    assert held().files == 1
    (path,) = place.iterdir()
    os.utime(path, (1, 1))
    assert seen_states(what=what) == first
    assert path.stat().st_mtime > 1, "it was not used"


def test_more_tensors_are_added_to_what_is_kept(place: Path) -> None:
    model = convnet()
    data = open_data(images(), model)
    for op in model.main.ops:
        observe(model, op.outputs, RANGE, data=data)
    (path,) = place.iterdir()
    known = cache.read_facts(path, model, RANGE)
    assert set(known) == {op.outputs[0] for op in model.main.ops}


def test_other_data_another_model_and_other_wishes_have_files_of_their_own(place: Path) -> None:
    model = convnet()
    data = [open_data(images(seed), model) for seed in (0, 1)]
    other = convnet()
    places = {
        facts_place(model, data[0], RANGE),
        facts_place(model, data[1], RANGE),
        facts_place(model, data[0], WHAT),
    }
    assert len(places) == 3 and None not in places
    assert facts_place(other, data[0], RANGE) in places, "equal models are one"


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04 no archive", None])
def test_damaged_files_are_made_again(place: Path, damage: bytes | None) -> None:
    first = seen_states()
    (path,) = place.iterdir()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage is None else damage)
    assert seen_states() == first
    assert path.read_bytes() == content


def test_a_flipped_byte_is_never_believed(place: Path) -> None:
    first = seen_states(what=RANGE)
    (path,) = place.iterdir()
    content = path.read_bytes()
    for at in range(0, len(content), 23):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        assert seen_states(what=RANGE) == first, at


def test_foreign_archives_are_ignored(place: Path) -> None:
    first = seen_states()
    (path,) = place.iterdir()
    for arrays in ({"x": np.zeros(3)}, {"0 counts": np.zeros(5)}, {"99 counts": np.ones(2)}):
        np.savez(path, **arrays)
        assert seen_states() == first
    with path.open("wb") as file:
        np.savez(file, allow_pickle=True, x=np.array([{"code": 1}], object))
    assert seen_states() == first


def kept_again(room: CacheRoom) -> None:
    """Keeps a fourth sight, where there is so much room."""
    model = convnet()
    data = open_data(images(3), model)
    at = facts_place(model, data, WHAT)
    write_facts(at, model, {model.main.inputs[0]: seen_of(images(3))}, room)


def seen_of(values: np.ndarray) -> Seen:
    seen = Seen(WHAT)
    seen.add(values)
    return seen


def test_the_oldest_goes_first(place: Path) -> None:
    for seed in range(3):
        seen_states(seed)
    files = sorted(place.iterdir())
    for age, path in enumerate(files):
        os.utime(path, (1000 + age, 1000 + age))
    room = held().nbytes
    kept_again(CacheRoom(all_bytes=room))
    assert not files[0].exists()
    assert all(path.exists() for path in files[2:])
    assert held().nbytes <= room


def test_what_is_too_large_is_not_kept(place: Path) -> None:
    kept_again(CacheRoom(file_bytes=100))
    assert held().files == 0
    kept_again(CacheRoom())
    assert held().files == 1


def test_clear_removes_only_its_own(place: Path) -> None:
    seen_states()
    (place / "mine.txt").write_text("not yours")
    assert clear().files == 1
    assert [path.name for path in place.iterdir()] == ["mine.txt"]


def test_an_empty_variable_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "")
    assert folder() is None
    seen_states()
    assert held() == (0, 0) and clear() == (0, 0)


def test_a_folder_that_cannot_be_written_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "below"))
    assert seen_states()


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, "home/.cache/litesmith"),
        ({"XDG_CACHE_HOME": "/elsewhere"}, "/elsewhere/litesmith"),
        ({"XDG_CACHE_HOME": "relative"}, "home/.cache/litesmith"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the names of Linux")
def test_the_systems_folder(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], wanted: str
) -> None:
    """`tests/test_operating_system.py` has the other systems' names."""
    for name in (VARIABLE, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    assert folder() == Path(wanted)


def test_a_state_of_something_else_is_refused() -> None:
    seen = Seen(WHAT)
    seen.add(noise(2, 3))
    state = seen.state()
    assert Seen.restored(WHAT, state).mean.tolist() == seen.mean.tolist()
    for missing in state:
        with pytest.raises(KeyError):
            Seen.restored(WHAT, {name: a for name, a in state.items() if name != missing})


@pytest.mark.parametrize(
    "name", ["jit/loops.run_program-5.py311-0123456789abcdef.1.nbc", "weights/0123.weights"]
)
def test_kernels_and_weights_are_counted_and_cleared(name: str, place: Path) -> None:
    code = place / name
    code.parent.mkdir(parents=True)
    code.write_bytes(b"12345")
    other = code.with_name("notes.txt")
    other.touch()
    assert held() == (1, 5)
    assert clear() == (1, 5)
    assert not code.exists() and other.exists()
