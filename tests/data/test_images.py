"""Images become pixels in the size and order that an input wants."""

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from litesmith.data.images import Picture, decode, files_in, in_parallel, picture
from litesmith.data.preparation import NORMS, Preparation, normalize
from litesmith.errors import BadInput
from litesmith.ir.types import Tensor


def saved(path: Path, array: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    return path


def noise(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((1, 8, 9, 3), Picture(8, 9, 3, -1)),
        ((4, 8, 9, 1), Picture(8, 9, 1, -1)),
        ((1, 3, 8, 9), Picture(8, 9, 3, -3)),
        ((8, 9, 3), Picture(8, 9, 3, -1)),
        ((1, 8, 9), Picture(8, 9, 1, 0)),
        ((1, 640), None),
        ((1, 43844, 1), None),
        ((1, 8, 8, 16), None),
    ],
)
def test_inputs_that_take_images(shape: tuple[int, ...], wanted: Picture | None) -> None:
    assert picture(Tensor("x", shape)) == wanted


def test_a_free_size_is_the_images_own(tmp_path: Path) -> None:
    wanted = picture(Tensor("x", (1, 1, 1, 3), dynamic=(1, -1, -1, 3)))
    assert wanted is not None
    pixels = noise(5, 7)
    found = decode(saved(tmp_path / "a.png", pixels), wanted, Preparation())
    np.testing.assert_array_equal(found, pixels)


def test_the_crop_is_the_middle_and_nothing_is_resampled_without_need(tmp_path: Path) -> None:
    pixels = noise(16, 21)
    path = saved(tmp_path / "a.png", pixels)
    found = decode(path, Picture(14, 14, 3, -1), Preparation(crop=0.875))
    np.testing.assert_array_equal(found, pixels[1:15, 3:17])


def test_channels_first_is_the_same_image(tmp_path: Path) -> None:
    path = saved(tmp_path / "a.png", noise(16, 16))
    last = decode(path, Picture(8, 8, 3, -1), Preparation())
    first = decode(path, Picture(8, 8, 3, -3), Preparation())
    np.testing.assert_array_equal(first.transpose(1, 2, 0), last)


@pytest.mark.parametrize("crop", [0.0, 0.5, 0.875, 1.0])
@pytest.mark.parametrize("resize", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 40), (40, 3), (1, 1), (200, 150)])
def test_any_image_fits_any_input(
    tmp_path: Path, crop: float, resize: str, size: tuple[int, int]
) -> None:
    path = saved(tmp_path / "a.png", noise(*size))
    found = decode(path, Picture(10, 12, 3, -1), Preparation(resize=resize, crop=crop))
    assert found.shape == (10, 12, 3) and found.dtype == np.uint8


def test_squashing_keeps_the_edges(tmp_path: Path) -> None:
    pixels = np.zeros((8, 32, 3), np.uint8)
    pixels[:, :4] = 255
    path = saved(tmp_path / "a.png", pixels)
    wanted = Picture(8, 8, 3, -1)
    assert decode(path, wanted, Preparation(crop=0))[:, 0].min() > 200
    assert decode(path, wanted, Preparation(crop=1)).max() == 0


def test_colour_and_grey_and_sixteen_bits(tmp_path: Path) -> None:
    grey = saved(tmp_path / "grey.png", np.full((4, 4), 100, np.uint8))
    deep = saved(tmp_path / "deep.png", np.full((4, 4), 100 * 256, np.uint16))
    clear = saved(tmp_path / "clear.png", np.full((4, 4, 4), 100, np.uint8))
    for path in (grey, deep, clear):
        for channels in (1, 3):
            found = decode(path, Picture(4, 4, channels, -1), Preparation())
            assert found.shape == (4, 4, channels) and (found == 100).all()


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\xff\xd8\xff\xe0junk", b"text" * 100])
def test_what_is_no_image_is_named_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.jpg"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"bad\.jpg: not a readable image") as caught:
        decode(path, Picture(8, 8, 3, -1), Preparation())
    assert "\n" not in str(caught.value) and "_io" not in str(caught.value)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    path = saved(tmp_path / "cut.png", noise(64, 64))
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(BadInput, match=r"cut\.png"):
        decode(path, Picture(8, 8, 3, -1), Preparation())


def test_hidden_and_other_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("b.JPG", "a.png", ".hidden.png", "notes.txt", "noending"):
        (tmp_path / name).touch()
    (tmp_path / "folder.png").mkdir()
    assert [path.name for path in files_in(tmp_path)] == ["a.png", "b.JPG"]


def test_parallel_work_keeps_the_order_and_is_bounded() -> None:
    started: list[int] = []
    lock = threading.Lock()

    def work(number: int) -> int:
        with lock:
            started.append(number)
        return number * number

    results = in_parallel(work, range(1000))
    assert next(results) == 0
    assert len(started) < 100
    assert list(results) == [n * n for n in range(1, 1000)]
    assert list(in_parallel(work, [])) == []


def test_a_failure_in_parallel_work_comes_through() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_parallel(lambda n: 1 // n, [1, 0, 1]))


def test_norms_are_what_their_names_mean() -> None:
    pixels = np.arange(256, dtype=np.uint8).repeat(3).reshape(-1, 3)
    made = {name: normalize(pixels, norm, -1) for name, norm in NORMS.items()}
    assert made["tf"].min() == -1 and made["tf"].max() == 1
    assert made["unit"].min() == 0 and made["unit"].max() == 1
    np.testing.assert_array_equal(made["raw"], pixels.astype(np.float32))
    np.testing.assert_allclose(
        made["torch"], (pixels / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], atol=1e-5
    )
    colour = np.array([[10, 20, 30]], np.uint8)
    np.testing.assert_allclose(
        normalize(colour, NORMS["caffe"], -1),
        [[30 - 103.939, 20 - 116.779, 10 - 123.68]],
        rtol=1e-5,
    )
    first = normalize(colour.reshape(3, 1, 1), NORMS["caffe"], -3)
    np.testing.assert_allclose(first.reshape(1, 3), normalize(colour, NORMS["caffe"], -1))


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"norm": "imagenet"}, "no normalisation 'imagenet'"),
        ({"norm": "tf", "mean": (1.0,)}, "not both"),
        ({"mean": (1.0, 2.0)}, "one number or three"),
        ({"mean": (float("nan"),)}, "one number or three"),
        ({"std": (0.0,)}, "std 0"),
        ({"resize": "lanczos"}, "no resize 'lanczos'"),
        ({"crop": 1.5}, "crop 1.5"),
    ],
)
def test_impossible_preparations_are_refused(settings: dict[str, object], word: str) -> None:
    with pytest.raises(BadInput, match=word):
        Preparation(**settings)  # type: ignore[arg-type]


def test_a_norm_for_three_channels_needs_three() -> None:
    with pytest.raises(BadInput, match="data with 1"):
        normalize(np.zeros((4, 4, 1), np.uint8), NORMS["torch"], -1)


def test_the_text_of_a_preparation() -> None:
    assert Preparation(norm="tf", label_offset=1).text == (
        "norm=tf resize=bilinear crop=0.875 label_offset=1"
    )
    assert Preparation((127.0,), (128.0,), resize="", crop=0).text == "mean=127 std=128"


TURNS = {2: "FLIP_LEFT_RIGHT", 3: "ROTATE_180", 4: "FLIP_TOP_BOTTOM", 5: "TRANSPOSE"}
TURNS |= {6: "ROTATE_90", 7: "TRANSVERSE", 8: "ROTATE_270"}


@pytest.mark.parametrize("note", [1, *TURNS])
def test_a_photo_is_turned_as_its_note_says(note: int, tmp_path: Path) -> None:
    """What was stored turned, with a note that says so, is the upright photo again."""
    upright = Image.fromarray(noise(24, 16))
    stored = upright
    if note != 1:
        stored = upright.transpose(Image.Transpose[TURNS[note]])
    exif = Image.Exif()
    exif[0x0112] = note
    stored.save(tmp_path / "a.png", exif=exif)
    wanted, squash = Picture(24, 16, 3, -1), Preparation(crop=0)
    assert np.array_equal(decode(tmp_path / "a.png", wanted, squash), np.asarray(upright))


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_a_damaged_note_turns_nothing(tmp_path: Path) -> None:
    image = Image.fromarray(noise(24, 16))
    image.save(tmp_path / "a.png", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff damaged")
    found = decode(tmp_path / "a.png", Picture(24, 16, 3, -1), Preparation(crop=0))
    assert np.array_equal(found, np.asarray(image))
