"""Sound as models take it: the wave itself, or the loudness of each pitch over time."""

import io
import re
import wave
from functools import cache
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from litesmith.errors import BadInput, os_reason
from litesmith.installing import install_command
from litesmith.ir.types import Array, Tensor
from litesmith.phrases import phrase
from litesmith.units import plain

ENDINGS = (".wav", ".flac")

# The rate of most models of speech and of general sounds, used where none is stated.
USUAL_RATE = 16_000
USUAL_BANDS = 40

_NUMBER = r"\d{1,9}(?:\.\d{1,9})?"
_FORM = re.compile(
    rf"(logmel|mfcc|wave)(?::(\d{{1,9}}))?((?:,(?:window|hop|bands|rate)={_NUMBER})*)"
)

# Added before taking a logarithm.
_QUIET = 1e-6


class Features(NamedTuple):
    """How a wave becomes rows of numbers.

    kind    logmel, mfcc or wave
    wide    the numbers in a row
    window  the milliseconds that a row covers
    hop     milliseconds from row to row
    bands   the bands of pitch behind an mfcc
    rate    samples a second; 0 if not stated
    """

    kind: str
    wide: int = 0
    window: float = 25.0
    hop: float = 10.0
    bands: int = USUAL_BANDS
    rate: int = 0

    @property
    def text(self) -> str:
        if self.kind == "wave":
            return self.kind
        more = f",bands={self.bands}" if self.kind == "mfcc" and self.bands != USUAL_BANDS else ""
        return f"{self.kind}:{self.wide},window={self.window:g},hop={self.hop:g}{more}"


def read_features(typed: str, count: int) -> Features:
    """Parses features: `logmel:80,window=25,hop=10`; without a number, the width is the model's."""
    found = _FORM.fullmatch(typed)
    if found is None:
        raise BadInput(
            "features {asked!r}: give wave, logmel or mfcc, as in logmel:80,window=25,hop=10", typed
        )
    more = dict(part.split("=") for part in found[3].split(",") if part)
    settings = {name: float(value) for name, value in more.items()}
    if any(value <= 0 for value in settings.values()):
        raise BadInput("features {asked!r}: numbers above 0 are needed", typed)
    return Features(
        found[1],
        int(found[2] or count),
        settings.get("window", 25.0),
        settings.get("hop", 10.0),
        int(settings.get("bands", USUAL_BANDS)),
        int(settings.get("rate", 0)),
    )


def read_sound(path: Path) -> tuple[NDArray[np.float64], int]:
    """The samples of a clip, −1 to 1, as the mean of its channels, and how many a second has."""
    try:
        return _decode(path)
    except _UNREADABLE as error:
        raise BadInput(
            "{path}: not a readable clip ({reason}); repair it or take it away",
            plain(str(path)),
            _reason(error),
        ) from None


def sound_fault(path: Path) -> str:
    """Why a clip cannot be read; "" where it can be."""
    try:
        _decode(path)
    except _UNREADABLE as error:
        return _reason(error)
    return ""


_UNREADABLE = (OSError, EOFError, wave.Error, ValueError, MemoryError)


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return os_reason(error)
    if isinstance(error, EOFError):
        return phrase("it ends too early")
    return plain(str(error).split("\n")[0]) or type(error).__name__


def _decode(path: Path) -> tuple[NDArray[np.float64], int]:
    if path.suffix.lower() == ".flac" or _is_float(path):
        return _decode_by_library(path)
    try:
        with wave.open(io.BytesIO(path.read_bytes())) as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            raw = file.readframes(file.getnframes())
    except RuntimeError:  # a chunk claims to be longer than the file
        raise EOFError from None
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


def _is_float(path: Path) -> bool:
    """True for a WAV that does not hold whole numbers, which the standard library cannot read."""
    with path.open("rb") as file:
        head = file.read(_HEAD)
    place = head.find(b"fmt ")
    return place >= 0 and int.from_bytes(head[place + 8 : place + 10], "little") == _FLOAT


# The part of a WAV header that states the number format, and its code for floats.
_HEAD, _FLOAT = 256, 3


def _decode_by_library(path: Path) -> tuple[NDArray[np.float64], int]:
    try:
        import soundfile  # pyright: ignore[reportMissingTypeStubs]
    except (ImportError, OSError):
        raise BadInput(
            "{path}: FLAC and float WAV need the package soundfile: {install}",
            plain(str(path)),
            install_command("tasks"),
        ) from None
    try:
        content = io.BytesIO(path.read_bytes())
        values, rate = soundfile.read(content, dtype="float64", always_2d=True)
    except RuntimeError as error:  # the library's own kind
        raise ValueError(str(error)) from None
    if not len(values):
        raise ValueError("empty")
    return values.mean(axis=1), int(rate)


def resample(values: NDArray[np.float64], rate: int, wanted: int) -> NDArray[np.float64]:
    """Resamples a sound; frequencies too high for the new rate are removed."""
    count = max(1, round(len(values) * wanted / rate))
    if rate == wanted or not len(values):
        return values
    waves = np.fft.rfft(values)
    kept = np.zeros(count // 2 + 1, waves.dtype)
    common = min(len(waves), len(kept))
    kept[:common] = waves[:common]
    return np.fft.irfft(kept, count) * (count / len(values))


def compute_features(
    values: NDArray[np.float64], rate: int, features: Features
) -> NDArray[np.float64]:
    """Rows of features of a wave: (moments, numbers)."""
    if features.kind == "wave":
        return values[:, None]
    window, hop = (max(1, round(rate * ms / 1000)) for ms in (features.window, features.hop))
    size = 1 << (window - 1).bit_length()
    padded = np.pad(values, (0, max(0, window - len(values))))
    starts = np.arange(1 + (len(padded) - window) // hop) * hop
    shape = np.hanning(window + 1)[:-1]
    frames = padded[starts[:, None] + np.arange(window)] * shape
    power = np.square(np.abs(np.fft.rfft(frames, size)))
    bands = features.wide if features.kind == "logmel" else features.bands
    loud = np.log(power @ _bands(size, rate, bands).T + _QUIET)
    return loud if features.kind == "logmel" else loud @ _cosines(bands, features.wide).T


def features_for(tensor: Tensor, asked: str) -> Features:
    """The requested features, or those that the shape of the input suggests."""
    long = [side for side in tensor.shape[1:] if side > 1] or [tensor.elements]
    if asked:
        return read_features(asked, long[-1])
    return Features("logmel", long[-1]) if len(long) == 2 else Features("wave")


def fit_rows(rows: Array, tensor: Tensor) -> Array:
    """Rows in the shape of an input, without its batch: cut, or followed by silence."""
    shape = tensor.shape[1:] if len(tensor.shape) > 1 else tensor.shape
    marks = (tensor.dynamic or tensor.shape)[-len(shape) :]
    sides = [place for place, side in enumerate(shape) if side > 1 or marks[place] == -1]
    if not sides:
        raise BadInput("the model's input of shape {shape} takes no sound", tensor.shape)
    moments = sides[0]
    width = int(np.prod([side for place, side in enumerate(shape) if place != moments]))
    if rows.shape[1] != width:
        raise BadInput(
            "features of {count} numbers for an input of {width}; say the features with {option}",
            rows.shape[1],
            width,
            "--features",
        )
    length = len(rows) if marks[moments] == -1 else shape[moments]
    quiet = rows.min(axis=0) if rows.shape[1] > 1 else np.zeros(1)
    made = np.broadcast_to(quiet, (length, width)).copy()
    made[: len(rows)] = rows[:length]
    wanted = [length if place == moments else side for place, side in enumerate(shape)]
    return made.reshape(wanted).astype(np.float32)


@cache
def _bands(size: int, rate: int, count: int) -> NDArray[np.float64]:
    """Triangular filters over the pitches, equally spaced on the mel scale: (bands, pitches)."""
    steps = np.linspace(0, np.log1p(rate / 2 / 700), count + 2, dtype=np.float64)
    corners: NDArray[np.float64] = 700 * np.expm1(steps)
    pitches = np.linspace(0, rate / 2, size // 2 + 1)
    low, middle, top = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rising, falling = (pitches - low) / (middle - low), (top - pitches) / (top - middle)
    return np.maximum(0.0, np.minimum(rising, falling))


@cache
def _cosines(bands: int, count: int) -> NDArray[np.float64]:
    numbers, places = np.indices((count, bands), np.float64)
    waves: NDArray[np.float64] = np.cos(np.pi / bands * numbers * (places + 0.5))
    return waves * np.where(numbers == 0, sqrt(1 / bands), sqrt(2 / bands))
