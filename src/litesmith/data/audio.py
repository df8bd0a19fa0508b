"""Audio files: clips for models that take a waveform, at the rate and length of the model."""

import io
import wave
from dataclasses import replace
from pathlib import Path

import numpy as np

from litesmith.data.groups import is_by_folder
from litesmith.data.preparation import Preparation
from litesmith.data.readers import Rows, file_rows
from litesmith.errors import BadInput, os_reason
from litesmith.ir.types import Array, Model, Tensor
from litesmith.phrases import phrase
from litesmith.tflite.metadata import metadata
from litesmith.units import plain, total_text

# What models of speech and of sounds in general were made with, where nobody says.
USUAL_RATE = 16_000

# A row of fewer numbers is a vector of something else.
_SHORTEST = 1000

ENDING = ".wav"
_UNREADABLE = (OSError, EOFError, wave.Error, ValueError, MemoryError)


def waveform(tensor: Tensor) -> int:
    """The samples that an input takes as a clip; 0 where its shape is not that of one."""
    if tensor.dtype != "float32" or tensor.elements < _SHORTEST:
        return 0
    return tensor.elements if max(tensor.shape) == tensor.elements else 0


def has_audio(folder: Path, model: Model) -> bool:
    """True where a folder holds clips and the model takes one."""
    if len(model.main.inputs) != 1 or not waveform(model.main.inputs[0]):
        return False
    return any(folder.glob("*.[wW][aA][vV]")) or any(folder.glob("*/*.[wW][aA][vV]"))


def audio_rows(folder: Path, model: Model, preparation: Preparation) -> Rows:
    """A folder of clips, or of folders of clips whose names are the classes."""
    tensor = model.main.inputs[0]
    rate, note = rate_of(model, preparation)
    shape = tensor.shape[1:] if len(tensor.shape) > 1 else tensor.shape
    _, rows = file_rows(
        folder,
        model,
        (ENDING,),
        "clips",
        lambda path: clip(path, rate, waveform(tensor)).reshape(shape),
        _fault,
        phrase("clips cannot be read"),
        salt=f"{rate}",
        deep=is_by_folder(preparation.group),
    )
    return replace(rows, notes=(*rows.notes, *note))


def rate_of(model: Model, preparation: Preparation) -> tuple[int, tuple[str, ...]]:
    """The samples a second that a model takes, and what is said where they are assumed."""
    known = preparation.rate or metadata(model).rate
    if known:
        return known, ()
    told = phrase(
        "{count} samples a second assumed; --sample-rate says otherwise", total_text(USUAL_RATE)
    )
    return USUAL_RATE, (told,)


def clip(path: Path, rate: int, length: int) -> Array:
    """A clip of −1 to 1 at a rate, its middle where it is longer, with silence behind it where it
    is shorter: shape (length,)."""
    try:
        values, own = _decoded(path)
    except _UNREADABLE as error:
        raise BadInput(
            "{path}: not a readable clip ({reason}); repair it or take it away",
            plain(str(path)),
            _reason(error),
        ) from None
    values = resampled(values, own, rate)
    start = max(0, (len(values) - length) // 2)
    kept = values[start : start + length]
    return np.pad(kept, (0, length - len(kept))).astype(np.float32)


def resampled(values: Array, rate: int, wanted: int) -> Array:
    """The same sound with another number of samples a second; what is too high for it goes."""
    count = max(1, round(len(values) * wanted / rate))
    if rate == wanted or not len(values):
        return values
    waves = np.fft.rfft(values)
    kept = np.zeros(count // 2 + 1, waves.dtype)
    common = min(len(waves), len(kept))
    kept[:common] = waves[:common]
    return np.fft.irfft(kept, count) * (count / len(values))


def _decoded(path: Path) -> tuple[Array, int]:
    """The samples of a WAV file as the mean of its channels, and its rate."""
    with wave.open(io.BytesIO(path.read_bytes())) as file:
        width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
        raw = file.readframes(file.getnframes())
    if not raw or rate < 1:
        raise ValueError("empty")
    whole = len(raw) // (width * channels) * width * channels
    numbers = np.frombuffer(raw[:whole], np.uint8).reshape(-1, width)
    if width == 1:
        values = (numbers[:, 0].astype(np.float64) - 128) / 128
    else:  # little-endian, with a sign: put into the upper bytes of 32 bits
        wide = np.zeros((len(numbers), 4), np.uint8)
        wide[:, 4 - width :] = numbers
        values = wide.view("<i4")[:, 0] / 2.0**31
    return values.reshape(-1, channels).mean(axis=1), rate


def _fault(path: Path) -> str:
    try:
        _decoded(path)
    except _UNREADABLE as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return os_reason(error)
    return plain(str(error).split("\n")[0]) or type(error).__name__
