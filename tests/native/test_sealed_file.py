"""What is kept between runs is believed only where this user wrote it."""

import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from litesmith.calibration.observed_cache import VARIABLE, cache, read_outputs, write_outputs
from litesmith.errors import BadInput
from litesmith.native.sealed_file import (
    KEY_VARIABLE,
    key_file,
    read_sealed,
    why_not_kept,
    write_sealed,
)
from tests.calibration.test_observed_cache import RANGE, seen_states
from tests.kernels.one_op import needs_numba
from tests.native.test_compile import ADDRESS, run
from tests.platforms import posix

CONTENT = b"what was kept"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of a user who has no key yet."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv(KEY_VARIABLE)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_sealed_comes_back(place: Path) -> None:
    write_sealed(place / "jit" / "one", CONTENT)
    assert read_sealed(place / "jit" / "one") == CONTENT
    assert read_sealed(place / "other") is None


@posix
def test_folder_and_key_are_the_users_alone(place: Path) -> None:
    before = os.umask(0)
    try:
        write_sealed(place / "jit" / "one", CONTENT)
    finally:
        os.umask(before)
    key = key_file()
    assert key is not None and place not in key.parents
    assert (mode(place), mode(key), mode(key.parent)) == (0o700, 0o600, 0o700)


@posix
def test_what_a_killed_process_left_of_a_key_goes_with_the_next(place: Path) -> None:
    """Before, such a file had a name that nobody knew as one to be removed."""
    code = "import os; os.link = lambda *_: os._exit(9)"
    words = f"{code}\nfrom litesmith.native.sealed_file import write_sealed\n"
    words += f"import pathlib; write_sealed(pathlib.Path({str(place / 'one')!r}), b'')"
    assert subprocess.run([sys.executable, "-c", words]).returncode == 9
    key = key_file()
    assert key is not None and not key.exists() and [*key.parent.glob(".litesmith-*")]
    write_sealed(place / "one", CONTENT)
    assert [*key.parent.iterdir()] == [key]


def test_every_change_of_a_file_is_seen(place: Path) -> None:
    path = place / "one"
    write_sealed(path, CONTENT)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert read_sealed(path) is None, at
    for content in (b"", CONTENT, whole[:-1], whole + b"x"):
        path.write_bytes(content)
        assert read_sealed(path) is None
    path.write_bytes(whole)
    assert read_sealed(path) == CONTENT


def test_a_file_under_another_name_is_not_believed(place: Path) -> None:
    write_sealed(place / "one", CONTENT)
    (place / "one").rename(place / "two")
    assert read_sealed(place / "two") is None


@posix
def test_what_another_user_sealed_is_not_believed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sealed(place / "one", CONTENT)
    monkeypatch.setenv("HOME", str(place.parent / "another"))
    assert read_sealed(place / "one") is None


@posix
def test_a_folder_that_others_can_write_is_left_alone_and_named(
    place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_sealed(place / "one", CONTENT)
    place.chmod(0o777)
    assert read_sealed(place / "one") is None
    write_sealed(place / "two", CONTENT)
    assert not (place / "two").exists()
    assert "others can write into it" in why_not_kept() and "chmod 700" in why_not_kept()
    assert cache().sentence == why_not_kept()
    place.chmod(0o755)  # only readable: it is closed
    assert read_sealed(place / "one") == CONTENT and mode(place) == 0o700


@posix
def test_a_folder_of_another_user_is_left_alone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_sealed(place / "one", CONTENT)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert read_sealed(place / "one") is None
    assert "belongs to another user" in why_not_kept()


@posix
def test_a_key_that_others_can_read_is_none(place: Path) -> None:
    write_sealed(place / "one", CONTENT)
    key = key_file()
    assert key is not None
    key.chmod(0o644)
    assert read_sealed(place / "one") is None
    assert str(key) in why_not_kept()
    key.unlink()
    assert read_sealed(place / "one") is None and not why_not_kept()  # of a new key


@posix
def test_a_shared_folder_is_an_explicit_choice(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    monkeypatch.setenv(KEY_VARIABLE, "shared by the machines of one team")
    write_sealed(place / "one", CONTENT)
    assert read_sealed(place / "one") == CONTENT and not why_not_kept()
    assert key_file() is not None and not key_file().exists()  # pyright: ignore
    monkeypatch.setenv(KEY_VARIABLE, "that of somebody else, longer")
    assert read_sealed(place / "one") is None
    monkeypatch.setenv(KEY_VARIABLE, "short")
    with pytest.raises(BadInput, match="anyone could guess it"):
        read_sealed(place / "one")


def test_an_archive_with_other_numbers_changes_nothing(place: Path) -> None:
    first = seen_states(what=RANGE)
    (path,) = place.iterdir()
    content = read_sealed(path)
    assert content is not None
    (place / "plain.npz").write_bytes(content)
    with np.load(place / "plain.npz") as archive:
        arrays = {name: archive[name] * 100 for name in archive.files}
    np.savez(place / "planted.npz", **arrays)  # a whole archive, its checksums right
    planted = (place / "planted.npz").read_bytes()
    for start in (b"", path.read_bytes()[:51]):
        path.write_bytes(start + planted)
        assert seen_states(what=RANGE) == first


class Planted:
    """A pickle that leaves a mark when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.mark,)


@needs_numba
def test_planted_code_is_never_run(place: Path) -> None:
    environment = {VARIABLE: str(place), "HOME": os.environ["HOME"]}
    assert run(ADDRESS, **environment) == "0"
    assert run(ADDRESS, **environment) == "1"
    mark = place / "ran"
    files = [path for path in (place / "jit").rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:51] + pickle.dumps(Planted(mark)))
        path.with_suffix(".nbi").write_bytes(pickle.dumps(Planted(mark)))
    assert run(ADDRESS, **environment) == "0"
    assert not mark.exists()
    assert run(ADDRESS, **environment) == "1"  # written anew


@posix
def test_a_command_says_why_nothing_is_kept(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)
    shown = subprocess.run(
        [sys.executable, "-m", "litesmith", "targets"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0
    assert shown.stderr.count("others can write into it") == 1


@posix
def test_a_planted_pipe_or_device_is_not_waited_for(place: Path) -> None:
    """A cache that was restored can hold anything; a pipe in it stopped every command for good."""
    place.mkdir(mode=0o700)
    os.mkfifo(place / "one")
    (place / "two").symlink_to("/dev/zero")
    (place / "three").mkdir()
    for name in ("one", "two", "three"):
        assert read_sealed(place / name) is None


@posix
def test_what_another_user_keeps_for_all_is_used(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the owner of a file may say when it was used: others took nothing of a shared folder."""
    monkeypatch.setenv(KEY_VARIABLE, "shared by the machines of one team")
    kept = place / "a.facts"
    write_outputs(kept, ["x"], np.ones((1, 2)))

    def refused(_: Path) -> None:
        raise PermissionError("not the owner")

    monkeypatch.setattr(os, "utime", refused)
    found = read_outputs(kept, ["x"])
    assert found is not None and found.tolist() == [[1.0, 1.0]]
