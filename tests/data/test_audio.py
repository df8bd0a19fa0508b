"""Clips come out at the rate and length that a model takes, whatever they were stored as."""

import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import BadInput, Builder
from litesmith.data.audio import clip, resampled, waveform
from litesmith.data.sources import open_data
from tests.draws import draws


def write(path: Path, values: np.ndarray, rate: int, width: int = 2, channels: int = 1) -> Path:
    """A WAV file of values from −1 to 1."""
    stored = np.round(values * (2 ** (8 * width - 1) - 1)).astype(np.int64)
    if width == 1:
        raw = (stored + 128).astype(np.uint8).tobytes()
    else:
        raw = stored.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width].tobytes()
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(raw)
    return path


def tone(pitch: float, rate: int, seconds: float = 0.5) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * pitch * np.arange(round(rate * seconds)) / rate)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_width_holds_the_same_sound(width: int, tmp_path: Path) -> None:
    values = tone(440, 8000)
    read = clip(write(tmp_path / "a.wav", values, 8000, width), 8000, len(values))
    assert np.abs(read - values).max() < 2 ** (2 - 8 * width) + 1e-6


def test_channels_are_averaged(tmp_path: Path) -> None:
    values = np.repeat(tone(440, 8000), 2) * np.tile([1.0, 0.5], 4000)
    read = clip(write(tmp_path / "a.wav", values, 8000, channels=2), 8000, 4000)
    assert np.abs(read - 0.75 * tone(440, 8000)).max() < 1e-3


@draws(20)
@given(st.sampled_from([8000, 11_025, 22_050, 44_100]), st.sampled_from([8000, 16_000, 48_000]))
def test_a_tone_keeps_its_pitch_and_size_at_another_rate(rate: int, wanted: int) -> None:
    made = resampled(tone(400, rate, 1.0), rate, wanted)
    expected = tone(400, wanted, 1.0)
    middle = slice(len(expected) // 8, len(expected) * 7 // 8)
    assert len(made) == pytest.approx(len(expected), abs=1)
    assert np.abs(made[middle] - expected[: len(made)][middle]).max() < 0.02


def test_long_clips_lose_their_ends_and_short_ones_get_silence(tmp_path: Path) -> None:
    values = np.linspace(-0.9, 0.9, 2000)
    path = write(tmp_path / "a.wav", values, 8000)
    assert np.abs(clip(path, 8000, 1000) - values[500:1500]).max() < 1e-3
    longer = clip(path, 8000, 3000)
    assert np.abs(longer[:2000] - values).max() < 1e-3 and not longer[2000:].any()


def test_the_rate_that_is_assumed_is_said(tmp_path: Path) -> None:
    b = Builder()
    model = b.model(b.op("ABS", b.input("sound", (1, 2000))))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "0.wav", tone(440, 8000), 8000)
    data = open_data(tmp_path, model)
    assert any("16,000 samples a second assumed" in note for note in data.notes)
    assert [sample.inputs[0].shape for sample in data] == [(1, 2000)] * 2


def test_what_is_no_clip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF and nothing more")
    with pytest.raises(BadInput, match="not a readable clip"):
        clip(tmp_path / "a.wav", 8000, 100)


@pytest.mark.parametrize(
    ("shape", "length"), [((4000,), 4000), ((1, 4000), 4000), ((1, 4000, 1), 4000), ((1, 64), 0)]
)
def test_which_inputs_take_clips(shape: tuple[int, ...], length: int) -> None:
    b = Builder()
    model = b.model(b.op("ABS", b.input("x", shape)))
    assert waveform(model.main.inputs[0]) == length
