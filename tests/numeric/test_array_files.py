"""Array files that lie: refused in a line, before anything of the told size is unpacked."""

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from litesmith.data.sources import open_data
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.build import Builder
from litesmith.numeric.array_files import read_arrays
from litesmith.run.session import Session

BODY = b"\0" * 96


def npy(shape: str, descr: str = "'<f4'", body: bytes = BODY) -> bytes:
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + body


LIES = {
    "far more": npy("(1000000000000, 8, 3)"),
    "more": npy("(100, 8, 3)"),
    "less than nothing": npy("(-1, 8, 3)"),
    "beyond all numbers": npy(f"({10**400}, 8)"),
    "nothing of endless rows": npy(f"(0, {10**30})"),
    "no shape": npy("('a', 3)"),
    "endless brackets": npy("(" * 300),
    "objects": npy("(3,)", "'|O'"),
    "no type": npy("(3,)", "'nothing'"),
    "no head": b"\x93NUMPY\x01\x00\xff\xff" + BODY,
    "another version": b"\x93NUMPY\x09\x00" + BODY,
    "nothing": b"",
}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_a_file_that_lies_is_refused_in_a_line(name: str, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"lie{ending}"
    if ending == ".npy":
        path.write_bytes(LIES[name])
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", LIES[name])
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="cannot be read") as no:
            read_arrays(path)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
    assert "\n" not in str(no.value) and len(str(no.value)) < 400


def test_what_would_fill_the_memory_is_refused_by_its_told_size(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, x=np.zeros((500, 1000), np.float32))
    assert path.stat().st_size < 20_000
    with pytest.raises(BadInput, match=r"unpacks to 2\.00 MB, and 3\.00 MB of memory are free"):
        read_arrays(path, free=3_000_000)
    assert read_arrays(path, free=5_000_000)["x"].shape == (500, 1000)


def write_bomb(path: Path, name: str) -> None:
    """An archive of a few bytes whose only array is said to have more than a gigabyte."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        head = io.BytesIO()
        shape = {"descr": "|u1", "fortran_order": False, "shape": (1025, 1 << 20)}
        np.lib.format.write_array_header_1_0(head, shape)
        archive.writestr(f"{name}.npy", head.getvalue() + bytes(1000))
        archive.infolist()[0].file_size = len(head.getvalue()) + (1025 << 20)  # as it says itself


def write_torch_bomb(path: Path) -> None:
    """An archive as torch writes them, whose only storage is said to have over a gigabyte."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data/0", bytes(1000))
        archive.infolist()[0].file_size = 1025 << 20


def test_what_no_data_shrinks_to_is_refused_on_any_machine(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    write_bomb(path, "x")
    with pytest.raises(BadInput, match=r"unpacks to 1\.07 GB"):
        read_arrays(path, free=1 << 50)


@pytest.mark.parametrize("write", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(write: object, tmp_path: Path) -> None:
    given = {
        "x": np.arange(6.0).reshape(2, 3),
        "f": np.asfortranarray(np.ones((2, 3), np.int8)),
        "none": np.zeros((0, 4)),
        "one": np.float32(3),
        "text": np.array(["a", "bc"]),
    }
    write(tmp_path / "a.npz", **given)  # type: ignore[operator]
    found = read_arrays(tmp_path / "a.npz")
    assert {name: array.tolist() for name, array in found.items()} == {
        name: array.tolist() for name, array in given.items()
    }


@pytest.mark.parametrize("shape", [(0, 4), (1, 0), (2, 0, 3)])
def test_an_empty_shape_is_no_bug(shape: tuple[int, ...]) -> None:
    b = Builder()
    model = b.model(b.op("RELU", b.input("x", shape)))
    for items in (0, 1, 20):
        given = np.zeros((items, *shape[1:]), np.float32)
        try:
            assert len(open_data(given, model)) >= 0
        except BadInput as error:
            assert "\n" not in str(error)


def test_a_type_without_arrays_is_refused_by_name() -> None:
    b = Builder()
    model = b.model(b.op("RELU", b.input("x", (1, 4), "bfloat16")))
    with pytest.raises(CannotRun, match="such as bfloat16; make it float32"), Session(model):
        pass
