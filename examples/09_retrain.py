"""Retrain a network on pictures of your own, told apart by the folder that they are in."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

import litesmith

random = np.random.default_rng(0)
b = litesmith.Builder()  # a network that knows nothing of these classes
x = b.input("image", (1, 16, 16, 3))
filters, bias = random.normal(0, 0.3, (16, 3, 3, 3)).astype("f4"), np.zeros(16, "f4")
model = b.model(b.op("MEAN", b.op("RELU", b.op("CONV_2D", x, filters, bias)), [1, 2]))

with TemporaryDirectory() as place:
    litesmith.save(model, Path(place, "backbone.tflite"))
    for name, colour in {"grass": (60, 160, 50), "sky": (90, 140, 220)}.items():
        Path(place, "data", name).mkdir(parents=True)
        for number in range(20):
            pixels = random.normal(colour, 30, (16, 16, 3)).clip(0, 255).astype("u1")
            Image.fromarray(pixels).save(Path(place, "data", name, f"{number}.png"))
    found = litesmith.retrain(f"{place}/backbone.tflite", f"{place}/data", f"{place}/out.tflite")
    print(f"{found.classes}: {found.value:.0%} right of {found.n} that were held out")
