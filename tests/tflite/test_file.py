"""Files: mapped when read, whole when written, and one clear line when neither can be."""

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from litesmith.errors import BadInput, BadModel
from litesmith.tflite.file import digest, load, save, write_whole
from litesmith.tflite.label_archive import attach, detach
from litesmith.tflite.write import to_bytes
from tests.platforms import posix
from tests.zoo import convnet, described


def test_save_and_load(tmp_path: Path) -> None:
    save(convnet(), tmp_path / "m.tflite")
    model = load(tmp_path / "m.tflite")
    save(model, tmp_path / "n.tflite")
    assert (tmp_path / "m.tflite").read_bytes() == (tmp_path / "n.tflite").read_bytes()
    assert to_bytes(load((tmp_path / "m.tflite").read_bytes())) == to_bytes(model)
    assert digest(tmp_path / "m.tflite") == digest(tmp_path / "n.tflite")


def test_a_model_outlives_the_replacement_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    save(convnet(), path)
    model = load(path)
    before = to_bytes(model)
    save(described(), path)
    assert to_bytes(model) == before


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty", b"", "the file is empty"),
        ("model.onnx", b"\x08\x07\x12\x07pytorch", "a protobuf"),
        ("model.task", b"PK\x03\x04" + bytes(20), "a zip archive"),
        ("model.h5", b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file"),
        ("model.gguf", b"GGUF" + bytes(20), "a GGUF file"),
        ("short", b"TFL3", "bytes 4 to 8 are b''"),
        ("text", b"hello, world of models", "not a .tflite file"),
        ("cut", to_bytes(convnet())[:40], "is it truncated"),
    ],
)
def test_what_is_no_model(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadModel, match=message) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        load(tmp_path / "missing.tflite")
    with pytest.raises(BadInput, match="is a folder"):
        load(tmp_path)


@posix
def test_a_pipe_is_read() -> None:
    reader, writer = os.pipe()
    os.write(writer, to_bytes(convnet()))
    os.close(writer)
    assert to_bytes(load(f"/dev/fd/{reader}")) == to_bytes(convnet())
    os.close(reader)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        save(convnet(), tmp_path)
    with pytest.raises(BadInput, match="does not exist; create it"):
        save(convnet(), tmp_path / "no" / "m.tflite")
    with pytest.raises(BadInput, match="cannot be written"):
        save(convnet(), tmp_path / ("x" * 300))
    assert list(tmp_path.iterdir()) == []


def test_a_broken_write_leaves_nothing_and_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(b"old")

    def pieces() -> Iterator[bytes]:
        yield b"new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(path, pieces())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_has_the_usual_mode(tmp_path: Path) -> None:
    save(convnet(), tmp_path / "m.tflite")
    (tmp_path / "plain").touch()
    assert (tmp_path / "m.tflite").stat().st_mode == (tmp_path / "plain").stat().st_mode


@posix
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real.tflite")
    save(convnet(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real.tflite").read_bytes() == to_bytes(convnet())


@posix
def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="no regular file"):
        save(convnet(), tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


@posix
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.touch(0o600)
    save(convnet(), path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_long_name_is_fine(tmp_path: Path) -> None:
    path = tmp_path / ("m" * 248 + ".tflite")
    save(convnet(), path)
    assert path.read_bytes() == to_bytes(convnet())


def test_bytes_behind_the_model_are_kept() -> None:
    data = to_bytes(convnet()) + b"what is this? " * 8
    model = load(data)
    assert model.attached == b"what is this? " * 8
    assert to_bytes(model) == data
    assert load(to_bytes(convnet()) + bytes(500)).attached == b""


def archive(prefix: bytes = b"") -> bytes:
    """A zip of two files, appended to other bytes as metadata tools do it."""
    file = io.BytesIO(prefix)
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as files:
        files.writestr("labels.txt", "cat\ndog\n" * 50)
        files.writestr("extra.txt", "x")
    return file.getvalue()


def names(data: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as files:
        assert files.testzip() is None
        return files.namelist()


def test_attached_files_move_with_the_model(tmp_path: Path) -> None:
    original = archive(to_bytes(convnet()))
    model = load(original)
    assert names(model.attached) == ["labels.txt", "extra.txt"]
    copy = to_bytes(model)
    assert names(copy) == ["labels.txt", "extra.txt"]
    assert to_bytes(load(copy)) == copy
    counted = zipfile.ZipFile(io.BytesIO(copy)).infolist()[0].header_offset
    assert copy[counted : counted + 4] == b"PK\x03\x04", "places count from the start of the file"


def test_an_archive_put_behind_other_bytes_later() -> None:
    """Its places count from its own start; unzip programs accept that, and so must we."""
    assert names(detach(memoryview(bytes(100) + archive()))) == ["labels.txt", "extra.txt"]


def test_no_archive() -> None:
    assert detach(memoryview(bytes(100))) == b""
    assert detach(memoryview(to_bytes(convnet()))) == b""


def test_a_damaged_archive_is_named() -> None:
    data = bytearray(archive(bytes(64)))
    data[data.rindex(b"PK\x01\x02")] ^= 0xFF
    with pytest.raises(BadModel, match=r"label archive.*damaged"):
        detach(memoryview(bytes(data)))


def test_attach_undoes_detach() -> None:
    whole = archive(bytes(64))
    own = detach(memoryview(whole))
    assert attach(own, 64) == whole[64:]


def test_metadata_is_read() -> None:
    model = load(to_bytes(described()))
    assert [name for name, _ in model.metadata] == ["min_runtime_version", "TFLITE_METADATA"]
    assert np.asarray(model.metadata[0][1]).tobytes() == b"min_runtime 1.5.0"
