"""Audio files: clips for models that take a waveform or its features, at the model's rate and
length. A longer clip is given in several windows, and the answers are averaged."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from litesmith.data.file_lists import listed_files
from litesmith.data.label_tables import first_file, is_table
from litesmith.data.preparation import Preparation
from litesmith.data.readers import Rows, file_rows
from litesmith.ir.types import Array, Model, Tensor
from litesmith.phrases import phrase
from litesmith.tasks.sound import (
    ENDINGS,
    USUAL_RATE,
    Features,
    compute_features,
    features_for,
    fit_rows,
    read_sound,
    resample,
    sound_fault,
)
from litesmith.tflite.read_metadata import metadata
from litesmith.tflite.sound_metadata import stated_features
from litesmith.units import total_text

# A row with fewer numbers than this is a vector of something else.
_SHORTEST = 1000

# The largest number of windows per clip; they are evenly spread over it.
MOST_WINDOWS = 32


def waveform(tensor: Tensor) -> int:
    """The number of audio samples that an input takes; 0 where its shape is not that of a clip."""
    if tensor.dtype != "float32" or tensor.elements < _SHORTEST:
        return 0
    return tensor.elements if max(tensor.shape) == tensor.elements else 0


def has_audio(source: Path, model: Model) -> bool:
    """True where a folder or a table holds clips and the model takes a clip or a map of its
    features."""
    if len(model.main.inputs) != 1 or not _takes_sound(model.main.inputs[0]):
        return False
    if is_table(source):
        named = first_file(source)
        return named is not None and named.suffix.lower() in ENDINGS
    files = (path for pattern in ("*", "*/*") for path in source.glob(pattern))
    return any(path.suffix.lower() in ENDINGS for path in files)


def _takes_sound(tensor: Tensor) -> bool:
    sides = [side for side in tensor.shape[1:] if side > 1]
    return bool(waveform(tensor)) or (tensor.dtype == "float32" and len(sides) == 2)


def audio_rows(source: Path, model: Model, preparation: Preparation) -> Rows:
    """Reads a folder of clips, folders of clips named by their classes, or a table."""
    tensor = model.main.inputs[0]
    rate, notes = rate_of(model, preparation)
    features = sound_features(model, preparation)
    length = window_length(tensor, features, rate)

    def made(values: NDArray[np.float64]) -> Array:
        return fit_rows(compute_features(values, rate, features), tensor)

    def pieces(path: Path) -> list[NDArray[np.float64]]:
        values, own = read_sound(path)
        return windows(resample(values, own, rate), length)

    listed = listed_files(source, model, ENDINGS, "clips", preparation)
    files = listed.files
    rows = file_rows(
        listed,
        lambda path: made(pieces(path)[0]),
        sound_fault,
        phrase("clips cannot be read"),
        salt=f"{rate} {features.text} windows",
    )

    def more(index: int) -> Sequence[tuple[Array, ...]]:
        return [(made(values),) for values in pieces(files[index])[1:]]

    if features.kind != "wave" and not (preparation.features or stated_features(model)):
        note = phrase(
            "clips are given to the model as {features}, assumed from the shape of its "
            "input; if that is wrong: --features",
            features.text,
        )
        notes = (*notes, note)
    return replace(rows, notes=(*rows.notes, *notes), more=more, averages=True)


def sound_features(model: Model, preparation: Preparation) -> Features:
    """How clips become inputs of a model: the wave itself, or its features."""
    tensor = model.main.inputs[0]
    if waveform(tensor):
        return Features("wave")
    return features_for(tensor, preparation.features or stated_features(model))


def window_length(tensor: Tensor, features: Features, rate: int) -> int:
    """The number of audio samples that a model takes at a time."""
    if features.kind == "wave":
        return waveform(tensor) or tensor.elements
    moments = next(side for side in tensor.shape[1:] if side > 1)
    window, hop = (max(1, round(rate * ms / 1000)) for ms in (features.window, features.hop))
    return (moments - 1) * hop + window


def rate_of(model: Model, preparation: Preparation) -> tuple[int, tuple[str, ...]]:
    """The audio samples per second that a model takes, and a note where this rate is assumed."""
    known = preparation.rate or metadata(model).rate
    if known:
        return known, ()
    note = phrase(
        "{count} samples a second assumed; if that is wrong: --sample-rate", total_text(USUAL_RATE)
    )
    return USUAL_RATE, (note,)


def windows(values: NDArray[np.float64], length: int) -> list[NDArray[np.float64]]:
    """Cuts a clip into pieces that overlap by half, the middle piece first; a clip that is too
    short becomes one piece, padded with silence."""
    spare = len(values) - length
    if spare <= 0:
        return [np.pad(values, (0, -spare))]
    count = min(MOST_WINDOWS, 1 + -(-2 * spare // length))
    starts = np.linspace(0, spare, count).round().astype(int).tolist()
    middle = starts.pop(count // 2)
    return [values[start : start + length] for start in (middle, *starts)]
