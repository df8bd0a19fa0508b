"""A torch file gives the arrays that torch gives, and nothing in it runs."""

import io
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.networks.state_dict import read_state_dict
from tests.draws import draws

torch = pytest.importorskip("torch")

FORMATS = pytest.mark.parametrize("is_archive", [True, False], ids=["archive", "stream"])


def saved(held: object, is_archive: bool) -> bytes:
    content = io.BytesIO()
    torch.save(held, content, _use_new_zipfile_serialization=is_archive)
    return content.getvalue()


def state_dict(kind: str) -> dict[str, object]:
    """Tensors that share their numbers, lie across them, are single or empty."""
    base = torch.arange(24).reshape(4, 6).to(getattr(torch, kind))
    own = torch.nn.Parameter(torch.ones(2, 3))
    return {
        "turned": base.t(),
        "part": base[1:, 2],
        "own": own,
        "one": base[0, 3],
        "none": base[:0],
    }


@FORMATS
@pytest.mark.parametrize(
    "kind", ["float32", "float16", "bfloat16", "float64", "int64", "int32", "uint8", "bool"]
)
def test_the_arrays_are_those_of_torch(kind: str, is_archive: bool) -> None:
    wanted = state_dict(kind)
    found = read_state_dict(saved({"epoch": 3, "state_dict": wanted}, is_archive))
    assert found is not None and list(found) == list(wanted)
    for name, tensor in wanted.items():
        theirs = tensor.detach().float().numpy()  # pyright: ignore[reportAttributeAccessIssue]
        np.testing.assert_array_equal(found[name], theirs, strict=True)


class Writes:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.write_text, (self.path, "it ran")


@FORMATS
def test_code_is_refused(is_archive: bool, tmp_path: Path) -> None:
    place = tmp_path / "written"
    content = saved({"a": torch.ones(2), "b": Writes(place)}, is_archive)
    with pytest.raises(ValueError, match="more than weights"):
        read_state_dict(content)
    assert not place.exists()


@FORMATS
@pytest.mark.parametrize("held", [[1, 2], {"a": 1}, torch.ones(2)], ids=["list", "number", "bare"])
def test_what_holds_no_state_dict(held: object, is_archive: bool) -> None:
    assert read_state_dict(saved(held, is_archive)) is None


def test_a_memo_without_end_takes_no_memory() -> None:
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
    hostile = b"\x80\x02Nr" + struct.pack("<I", 2**32 - 2) + b"."
    for content in (hostile, magic + hostile):
        with pytest.raises(ValueError, match="a memo without end"):
            read_state_dict(content)


def test_torch_does_not_compress() -> None:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(saved({"a": torch.zeros(1000)}, True))) as plain,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in plain.namelist():
            archive.writestr(name, plain.read(name))
    with pytest.raises(ValueError, match="does not compress"):
        read_state_dict(packed.getvalue())


def test_a_tensor_stays_among_its_numbers() -> None:
    wide = torch.zeros(3).expand(1000, 3)
    with pytest.raises(ValueError, match="beyond its numbers"):
        read_state_dict(saved({"a": wide}, True))


@draws(200)
@given(st.booleans(), st.floats(0, 1), st.integers(1, 255))
def test_a_damaged_file_is_refused_or_read(is_archive: bool, where: float, byte: int) -> None:
    content = bytearray(saved({"a": torch.ones(3, 4), "b": torch.zeros(2)}, is_archive))
    content[int(where * (len(content) - 1))] ^= byte
    try:
        found = read_state_dict(bytes(content))
    except Exception:  # whatever reading a pickle raises
        found = None
    assert found is None or all(array.dtype == np.float32 for array in found.values())
