"""The zip file that goes to another person."""

import json
import zipfile
from pathlib import Path

import pytest

from litesmith.diagnosis.bundle import bundle_files, write_bundle
from litesmith.errors import BadInput
from litesmith.profiling.op_times import profile_ops
from litesmith.tflite.file import load
from tests import zoo


def test_contents(tmp_path: Path) -> None:
    model = zoo.described()
    found = profile_ops(model, runs=1)
    files = bundle_files(model, found, command="litesmith doctor MODEL")
    write_bundle(tmp_path / "b.zip", files)
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        read = {name: archive.read(name) for name in archive.namelist()}
    assert read == files
    assert set(read) == {"README.txt", "model.tflite", "host.json", "command.txt", "profile.json"}
    stripped = load(read["model.tflite"])
    ops = json.loads(read["profile.json"])["ops"]
    names = [op.outputs[0].name for op in stripped.main.ops]
    assert [op["name"] for op in ops] == names
    for word in (b"image", b"scores", b"serving_default", b"labels", b"cat", b"min_runtime"):
        assert not any(word in content for content in read.values()), word
    host = json.loads(read["host.json"])
    assert {"cpu", "python", "litesmith", "runtime"} <= set(host)


def test_a_model_without_a_profile_has_a_bundle_too() -> None:
    files = bundle_files(zoo.custom(), None, command="litesmith doctor MODEL")
    assert "profile.json" not in files


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    files = {"a": b"1", "b": b"2"}
    for name in ("x.zip", "y.zip"):
        write_bundle(tmp_path / name, files)
    assert (tmp_path / "x.zip").read_bytes() == (tmp_path / "y.zip").read_bytes()


def test_written_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        write_bundle(tmp_path, {"a": b"1"})
    assert not list(tmp_path.iterdir())
