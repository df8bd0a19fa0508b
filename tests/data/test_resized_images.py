"""Arrays of images in another size than the model's input."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import litesmith
from litesmith.data.images import Picture, ResizedImages, as_images, decode
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.errors import BadInput
from tests.training.flowers import COLOURS, backbone


def pixels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


@pytest.mark.parametrize("crop", [0.0, 0.875, 1.0])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("given", [(20, 20), (9, 31), (40, 13)])
def test_an_array_becomes_what_its_file_becomes(
    given: tuple[int, int], channels: int, crop: float, tmp_path: Path
) -> None:
    wanted, how = Picture(16, 12, channels, -1), Preparation(crop=crop)
    array = pixels(*given, 3) if channels == 3 else pixels(*given)
    Image.fromarray(array).save(tmp_path / "one.png")
    found = as_images(array[None])
    assert found is not None
    made = ResizedImages(found, wanted, how)[0]
    np.testing.assert_array_equal(made, decode(tmp_path / "one.png", wanted, how))


def test_grey_is_repeated_and_colour_becomes_grey(tmp_path: Path) -> None:
    how = Preparation()
    grey = as_images(pixels(2, 20, 20))
    assert grey is not None
    made = ResizedImages(grey, Picture(8, 8, 3, -1), how)[1]
    assert made.shape == (8, 8, 3) and (made == made[..., :1]).all()
    colour = as_images(pixels(2, 20, 20, 3))
    assert colour is not None
    Image.fromarray(colour[0]).save(tmp_path / "one.png")
    one = ResizedImages(colour, Picture(8, 8, 1, -1), how)[0]
    expected = decode(tmp_path / "one.png", Picture(8, 8, 1, -1), how)
    assert np.abs(one.astype(int) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint16"])
def test_other_numbers_keep_their_type_and_range(dtype: str) -> None:
    values = (pixels(3, 20, 20, 3) * 100.0).astype(dtype)
    made = ResizedImages(values, Picture(16, 16, 3, -1), Preparation())[2]
    assert made.dtype == dtype and made.shape == (16, 16, 3)
    assert values.min() <= made.min() < made.max() <= values.max()


def test_channels_first() -> None:
    array = pixels(2, 3, 20, 24)
    found = as_images(array)
    assert found is not None and found.shape == (2, 20, 24, 3)
    assert ResizedImages(found, Picture(8, 8, 3, -3), Preparation())[0].shape == (3, 8, 8)


@pytest.mark.parametrize("shape", [(4,), (4, 5), (2, 3, 4, 5, 6), (2, 8, 8, 4), (0, 8, 8, 3)])
def test_what_is_no_image_is_none(shape: tuple[int, ...]) -> None:
    assert as_images(np.zeros(shape, np.uint8)) is None


def arrays(size: int, *, grey: bool = False) -> dict[str, np.ndarray]:
    """Pictures that their colour, or their brightness, tells apart."""
    random = np.random.default_rng(0)
    levels = (
        np.array([(40,) * 3, (120,) * 3, (220,) * 3]) if grey else np.array([*COLOURS.values()])
    )
    y = np.arange(36) % 3
    x = random.normal(levels[y][:, None, None, :], 20, (36, size, size, 3))
    x = x.clip(0, 255).astype(np.uint8)
    return {"x": x[..., 0] if grey else x, "y": y}


@pytest.mark.parametrize("grey", [False, True])
def test_retrain_takes_them_and_says_so(grey: bool, tmp_path: Path) -> None:
    notes: list[str] = []

    def hear(event: object) -> None:
        notes.append(getattr(event, "text", ""))

    np.savez(tmp_path / "data.npz", **arrays(24, grey=grey))  # type: ignore[arg-type]
    litesmith.save(backbone(), tmp_path / "backbone.tflite")
    found = litesmith.retrain(
        tmp_path / "backbone.tflite",
        str(tmp_path / "data.npz"),
        norm="unit",
        out=tmp_path / "out.tflite",
        progress=hear,
    )
    assert (tmp_path / "out.tflite").is_file() and found is not None
    (told,) = [note for note in notes if "are made 16×16×3, as image files are" in note]
    assert ("grey is repeated" in told) == grey


def test_both_parts_are_resized_alike(tmp_path: Path) -> None:
    """The data to judge by has the same crop as the data to learn from."""
    data = arrays(24)
    model = backbone()
    first = open_data(data, model, preparation=Preparation(norm="unit"), resizes=True)
    stored = first.items.stored
    assert stored is not None and stored.preparation.crop == 0.875
    again = open_data(data, model, preparation=stored.preparation, resizes=True)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.inputs[0], b.inputs[0])


def test_elsewhere_another_size_is_refused() -> None:
    with pytest.raises(BadInput, match="wants 16×16×3"):
        open_data(arrays(24), backbone())
    with pytest.raises(BadInput, match="wants 16×16×3"):
        open_data({"x": pixels(4, 24, 24, 5)}, backbone(), resizes=True)
