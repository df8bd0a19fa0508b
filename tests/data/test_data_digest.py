"""The digest of data's files tells another file from the same one, and opens no picture."""

from pathlib import Path

from litesmith.data.data_digest import data_digest


def test_a_file_is_told_by_its_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.npz", tmp_path / "b.npz"
    first.write_bytes(b"x")
    second.write_bytes(b"x")
    assert data_digest(first) == data_digest(second)
    second.write_bytes(b"y")
    assert data_digest(first) != data_digest(second)
    assert not data_digest(tmp_path / "none.npz")


def test_a_folder_is_told_by_the_names_and_sizes_of_its_items(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    (folder / "cat").mkdir(parents=True)
    item = folder / "cat" / "1.JPG"
    item.write_bytes(b"1")
    known = data_digest(folder)
    (folder / ".DS_Store").write_bytes(b"of the system")
    (folder / "notes.txt").write_bytes(b"of the user")
    item.chmod(0)  # which nobody but root could open
    assert data_digest(folder) == known == data_digest(folder.rename(tmp_path / "moved"))
    folder, item = tmp_path / "moved", tmp_path / "moved" / "cat" / "1.JPG"
    item.chmod(0o600)
    item.write_bytes(b"12")
    assert data_digest(folder) != known
    item.write_bytes(b"1")
    assert data_digest(folder) == known
    item.rename(item.with_name("2.JPG"))
    assert data_digest(folder) != known
