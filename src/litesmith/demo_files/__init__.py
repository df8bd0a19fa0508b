"""A small real model and real data that ship with the package.

model.tflite  a float classifier of clothes, 28×28 pixels in, 10 classes out. It was trained by
              `tools/make_demo.py` of the repository and is left as exports often are: batch
              normalization as MUL and ADD, paddings apart. Its metadata says that pixels are
              divided by 255, and what the classes are called.
data.npz      the first 1,900 images of the test part of Fashion-MNIST (© 2017 Zalando SE, MIT
              licence) as x (1900, 28, 28, 1) and y (1900,), uint8; no training has seen them.
"""

from importlib.resources import files
from pathlib import Path

from litesmith.errors import BadInput, os_reason
from litesmith.tflite.file import write_together

MODEL, DATA, LICENCE = "model.tflite", "data.npz", "LICENSE-fashion-mnist.txt"
_NAMES = (LICENCE, DATA, MODEL)

# What the model scores on all of the data: 1,797 of 1,900 images.
TOP1 = 0.9458


def write(folder: Path) -> tuple[Path, Path]:
    """Writes the model, the data and the data's licence into a folder, which is made if need be.

    Returns the places of the model and of the data, which `--data` takes as it is. The files
    appear once all of them are complete.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            "{folder}: cannot be made a folder ({why}); choose another place",
            folder,
            os_reason(error),
        ) from None
    write_together({folder / name: [content(name)] for name in _NAMES})
    return folder / MODEL, folder / DATA


def content(name: str) -> bytes:
    """The bytes of one of the files, as it ships."""
    return files(__name__).joinpath(name).read_bytes()
