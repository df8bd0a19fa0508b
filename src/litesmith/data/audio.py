"""Audio files: clips for models that take a waveform, at the rate and length of the model."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from litesmith.data.groups import is_by_folder
from litesmith.data.preparation import Preparation
from litesmith.data.readers import Rows, file_rows
from litesmith.ir.types import Array, Model, Tensor
from litesmith.phrases import phrase
from litesmith.tasks.sound import ENDINGS, USUAL_RATE, read_sound, resampled, sound_fault
from litesmith.tflite.metadata import metadata
from litesmith.units import total_text

# A row of fewer numbers is a vector of something else.
_SHORTEST = 1000


def waveform(tensor: Tensor) -> int:
    """The samples that an input takes as a clip; 0 where its shape is not that of one."""
    if tensor.dtype != "float32" or tensor.elements < _SHORTEST:
        return 0
    return tensor.elements if max(tensor.shape) == tensor.elements else 0


def has_audio(folder: Path, model: Model) -> bool:
    """True where a folder holds clips and the model takes one."""
    if len(model.main.inputs) != 1 or not waveform(model.main.inputs[0]):
        return False
    files = (path for pattern in ("*", "*/*") for path in folder.glob(pattern))
    return any(path.suffix.lower() in ENDINGS for path in files)


def audio_rows(folder: Path, model: Model, preparation: Preparation) -> Rows:
    """A folder of clips, or of folders of clips whose names are the classes."""
    tensor = model.main.inputs[0]
    rate, note = rate_of(model, preparation)
    shape = tensor.shape[1:] if len(tensor.shape) > 1 else tensor.shape
    _, rows = file_rows(
        folder,
        model,
        ENDINGS,
        "clips",
        lambda path: clip(path, rate, waveform(tensor)).reshape(shape),
        sound_fault,
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
    values, own = read_sound(path)
    values = resampled(values, own, rate)
    start = max(0, (len(values) - length) // 2)
    kept = values[start : start + length]
    return np.pad(kept, (0, length - len(kept))).astype(np.float32)
