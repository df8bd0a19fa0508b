"""Pictures that a colour tells apart, in folders by class; and backbones that see colours."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from litesmith import Builder, Model
from tests.zoo import noise

COLOURS = {"blue": (40, 60, 200), "green": (50, 190, 60), "red": (200, 50, 40)}


def backbone(size: int = 16, width: int = 12, batch: int = 1) -> Model:
    """A feature extractor with random filters."""
    b = Builder()
    x = b.input("image", (batch, size, size, 3))
    stem = b.op("CONV_2D", x, noise(8, 3, 3, 3), noise(8, seed=1), stride_h=2, stride_w=2)
    maps = b.op("CONV_2D", b.op("RELU", stem), noise(width, 3, 3, 8, seed=2), noise(width, seed=3))
    return b.model(b.op("MEAN", b.op("RELU", maps), [1, 2], name="pooled"), signature="serve")


def classifier(size: int = 16) -> Model:
    """The same with a head for seven other classes."""
    b = Builder()
    x = b.input("image", (1, size, size, 3))
    stem = b.op("CONV_2D", x, noise(8, 3, 3, 3), noise(8, seed=1), stride_h=2, stride_w=2)
    pooled = b.op("MEAN", b.op("RELU", stem), [1, 2], name="pooled")
    return b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", pooled, noise(7, 8), noise(7))))


def write_pictures(
    folder: Path, count: int = 12, names: Sequence[str] = tuple(COLOURS), seed: int = 0
) -> Path:
    """So many pictures of each class, with noise on the colour."""
    random = np.random.default_rng(seed)
    for name, colour in zip(names, COLOURS.values(), strict=False):
        (folder / name).mkdir(parents=True)
        for place in range(count):
            pixels = random.normal(colour, 45, (20, 20, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{place:03d}.png")
    return folder
