"""Advice for files of other tools: those converted here, and the way for the rest."""

from pathlib import Path
from typing import NamedTuple

from litesmith.errors import BadInput
from litesmith.phrases import phrase

# Suffixes of files that are converted here, and the package that each needs.
CONVERTED = {".onnx": "", ".pt2": "torch", ".keras": "keras"}


class Stranger(NamedTuple):
    """A format that is not read, and the command that leads here."""

    what: str
    way: str


STRANGERS = {
    ".pt": Stranger(
        phrase("weights or a script of PyTorch, without the module's own code"),
        phrase(
            "in Python: litesmith.convert(module, example), or torch.export.save(…, 'model.pt2')"
        ),
    ),
    ".h5": Stranger(
        phrase("a Keras model of the old format"),
        phrase("in Python: keras.models.load_model('model.h5').save('model.keras')"),
    ),
    ".pb": Stranger(
        phrase("a TensorFlow graph"),
        phrase(
            "python -m tf2onnx.convert --saved-model DIR --output model.onnx (pip install tf2onnx)"
        ),
    ),
    ".mlmodel": Stranger(
        phrase("a Core ML model"),
        phrase("convert the model that it was made from; Core ML has no way back"),
    ),
    ".mlpackage": Stranger(
        phrase("a Core ML model"),
        phrase("convert the model that it was made from; Core ML has no way back"),
    ),
    ".param": Stranger(
        phrase("an NCNN model"),
        phrase("convert the model that it was made from; NCNN has no way back"),
    ),
    ".jax": Stranger(
        phrase("a JAX model"),
        phrase("jax2onnx.to_onnx(function, …) writes an .onnx file (pip install jax2onnx)"),
    ),
    ".gguf": Stranger(
        phrase("a GGUF language model"),
        phrase("convert the model that it was made from, by its exporter to ONNX"),
    ),
    ".safetensors": Stranger(
        phrase("weights without a network"),
        phrase("in Python: load them into the module, then litesmith.convert(module, example)"),
    ),
    ".ort": Stranger(
        phrase("a model of onnxruntime's own format"),
        phrase("convert the .onnx file that it was made from"),
    ),
    ".pdmodel": Stranger(
        phrase("a Paddle model"),
        phrase("paddle2onnx --model_dir DIR --save_file model.onnx (pip install paddle2onnx)"),
    ),
    ".engine": Stranger(
        phrase("a TensorRT engine"),
        phrase("convert the .onnx file that it was made from"),
    ),
}

_SAME = {
    ".bin": ".pt",
    ".ckpt": ".pt",
    ".hdf5": ".h5",
    ".mlmodelc": ".mlmodel",
    ".msgpack": ".jax",
    ".pbtxt": ".pb",
    ".pdiparams": ".pdmodel",
    ".pth": ".pt",
    ".ptl": ".pt",
    ".torchscript": ".pt",
    ".trt": ".engine",
}


def is_source(path: Path) -> bool:
    """True for a file that is converted here."""
    return path.suffix.lower() in CONVERTED


def refuse_stranger(path: Path) -> None:
    """Raises where a file is of a known format that is not read."""
    suffix = path.suffix.lower()
    is_saved_model = path.is_dir() and (path / "saved_model.pb").is_file()
    stranger = STRANGERS.get(".pb" if is_saved_model else _SAME.get(suffix, suffix))
    if stranger is not None:
        raise BadInput("{path}: {what} is not read here; {way}", path, stranger.what, stranger.way)
