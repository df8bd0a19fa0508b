"""Makes the model and the data of `litesmith demo`, which ship inside the package.

    apt download dataset-fashion-mnist && dpkg-deb -x dataset-fashion-mnist_*.deb fashion
    python tools/make_demo.py fashion/usr/share/datasets/fashion-mnist

Source    Fashion-MNIST by Zalando SE (Xiao, Rasul, Vollgraf, 2017),
          https://github.com/zalandoresearch/fashion-mnist, also the Debian package named above.
Licence   MIT; its notice ships beside the data, in src/litesmith/demo_files/LICENSE-fashion-mnist.
Data      the first 1,900 images of the test part, as they are. No training has seen them.
Model     trained here on the training part alone. As exported files often are, it is not
          tidy: batch normalization stands as MUL and ADD behind each convolution, and paddings
          stand apart from the convolutions with a stride.

Training takes two minutes with `--device cuda`, which is how the files that ship were made, and
hours on two cores. It can be done apart, on a machine without Litesmith, by tools/train_demo.py;
`--weights` then names what it wrote. The same seed gives the same weights on the same machine, as
far as torch promises that; from the same weights the files come out the same to the byte.

Needs the package with its `dev` extra. The model got 93.80 % of all 10,000 test images right, and
94.58 % of those that ship (`TOP1` of the room `demo_files`, which a test holds it to).
"""

import io
import zipfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import flatbuffers
import numpy as np
from train_demo import PLAN, SIDE, Layer, fashion, padding, train, weights

from litesmith import Builder, Model, save
from litesmith.ir.types import Tensor

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "litesmith" / "demo_files"
COUNT = 1900
NAMES = (
    "T-shirt or top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
OPS = {"conv": "CONV_2D", "depthwise": "DEPTHWISE_CONV_2D"}
LABEL_FILE = "labels.txt"
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # a zip archive notes times; ours are the same in every run

# Places of fields in the tables of TFLite's metadata_schema.fbs, and numbers of its enums.
_NORMALIZATION, _AXIS_LABELS = 1, 2


def network(found: Mapping[str, np.ndarray]) -> Model:
    """The trained weights as a model that takes images of 0 to 1: (1, 28, 28, 1) -> (1, 10)."""
    b = Builder()
    x = b.input("image", (1, SIDE, SIDE, 1))
    for index, layer in enumerate(PLAN):
        names = (f"{index}.{what}" for what in ("weight", "bias", "scale", "offset"))
        x = _layer(b, x, layer, [found[name] for name in names])
    x = b.op("MEAN", x, [1, 2])
    x = b.op("FULLY_CONNECTED", x, found["dense.weight"], found["dense.bias"])
    return b.model(b.op("SOFTMAX", x, name="scores"), signature="serving_default")


def _layer(b: Builder, x: Tensor, layer: Layer, values: Sequence[np.ndarray]) -> Tensor:
    """A convolution, then batch normalization as MUL and ADD; a stride has its PAD apart."""
    weight, bias, scale, offset = values
    if layer.stride > 1:
        around = list(padding(layer))
        x = b.op("PAD", x, [[0, 0], around, around, [0, 0]])
    x = b.op(
        OPS[layer.kind],
        x,
        weight,
        bias,
        padding="VALID" if layer.stride > 1 else "SAME",
        stride_h=layer.stride,
        stride_w=layer.stride,
    )
    x = b.op("MUL", x, scale)
    return b.op("ADD", x, offset, fused_activation_function="RELU")


def described(model: Model) -> Model:
    """The model with TFLite metadata: pixels are divided by 255; the names of the classes."""
    b = flatbuffers.Builder(0)
    numbers = [b.CreateNumpyVector(np.array([v], np.float32)) for v in (0, 255)]
    options = _table(b, {0: numbers[0], 1: numbers[1]})
    unit = _table(b, {1: options}, {0: _NORMALIZATION})
    image = _table(b, {4: _vector(b, unit)})
    file = _table(b, {0: b.CreateString(LABEL_FILE)}, {2: _AXIS_LABELS})
    scores = _table(b, {6: _vector(b, file)})
    graph = _table(b, {2: _vector(b, image), 3: _vector(b, scores)})
    b.Finish(_table(b, {3: _vector(b, graph)}), b"M001")
    content = np.frombuffer(bytes(b.Output()), np.uint8)
    labels = archive({LABEL_FILE: "\n".join(NAMES).encode()}, zipfile.ZIP_STORED)
    return replace(model, metadata=(("TFLITE_METADATA", content),), attached=labels)


def _table(
    b: flatbuffers.Builder, offsets: Mapping[int, int], numbers: Mapping[int, int] | None = None
) -> int:
    """A table by the places of its fields: other tables and vectors, small numbers."""
    numbers = numbers or {}
    b.StartObject(1 + max((*offsets, *numbers)))
    for place, offset in offsets.items():
        b.PrependUOffsetTRelativeSlot(place, offset, 0)
    for place, number in numbers.items():
        b.PrependInt8Slot(place, number, 0)
    return b.EndObject()


def _vector(b: flatbuffers.Builder, table: int) -> int:
    """A vector of one table."""
    b.StartVector(4, 1, 4)
    b.PrependUOffsetTRelative(table)
    return b.EndVector()


def archive(files: Mapping[str, bytes], compression: int) -> bytes:
    """A zip archive that is the same in every run."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as file:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, LONG_AGO)
            entry.compress_type = compression
            file.writestr(entry, content)
    return made.getvalue()


def data(images: np.ndarray, labels: np.ndarray) -> bytes:
    """An .npz of x (n, 28, 28, 1) and y (n,), both uint8, packed by LZMA: 7 % less than PNG."""
    arrays = {"x.npy": images[..., None], "y.npy": labels}
    return archive({name: _stored(a) for name, a in arrays.items()}, zipfile.ZIP_LZMA)


def _stored(array: np.ndarray) -> bytes:
    made = io.BytesIO()
    np.save(made, array)
    return made.getvalue()


def main() -> None:
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where the four files of Fashion-MNIST are")
    parser.add_argument("--weights", type=Path, help="an .npz of train_demo.py; else it trains")
    parser.add_argument("--device", default="cpu", help="where to train")
    parser.add_argument("--out", type=Path, default=PACKAGE, help="the folder to write to")
    given = parser.parse_args()
    if given.weights:
        found = dict(np.load(given.weights))
    else:
        found = weights(train(given.folder, device=given.device, epochs=60, seed=0))
    images, labels = (part[:COUNT] for part in fashion(given.folder, "t10k"))
    save(described(network(found)), given.out / "model.tflite")
    (given.out / "data.npz").write_bytes(data(images, labels))
    for name in ("model.tflite", "data.npz"):
        print(f"{given.out / name}: {(given.out / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
