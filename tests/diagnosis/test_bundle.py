"""The zip file that goes to another person."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from litesmith import ops
from litesmith.diagnosis.bundle import bundle_files, write_bundle
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Array, Graph, Op
from litesmith.profiling.op_times import profile_ops
from litesmith.tflite.file import load
from tests import zoo


def test_contents(tmp_path: Path) -> None:
    model = zoo.described()
    found = profile_ops(model, runs=1)
    files = bundle_files(model, found, target="cpu:1")
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
    files = bundle_files(zoo.custom(), None, target="cpu:1")
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


class Absolute:
    """A delegate that takes ABS."""

    def claims(self, op: Op) -> bool:
        return op.kind == "ABS"

    def program(self, _: Graph) -> Callable[[list[Array], list[Array]], Array]:
        return lambda given, made: np.abs(given[0], out=made[0])


def test_what_the_runtime_calls_its_work_tells_no_names_of_ops_and_delegates() -> None:
    """A name stood beside the time of each custom op, and in the command."""
    b = Builder()
    x = b.op("ABS", b.op("CUSTOM", b.input("x", (1, 4)), custom="SecretOp", shape=(1, 4)))
    model, target = b.model(x), "custom:secret"
    with ops.scope():
        ops.op("SecretOp")(lambda x: x)
        ops.delegate("secret")(Absolute)
        found = profile_ops(model, target, runs=1)
        assert "SecretOp" in str(found.facts()) and target in str(found.facts())
        files = bundle_files(model, found, target=target)
        assert not any(b"secret" in content.lower() for content in files.values())
        kept = bundle_files(model, found, target=target, keep_custom_options=True)
        assert b"SecretOp" in kept["profile.json"] and b"SecretOp" in kept["model.tflite"]
