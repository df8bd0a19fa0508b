"""Clips come out at the rate and length that a model takes, whatever they were stored as."""

import wave
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith import BadInput, Builder
from litesmith.data.answers import outputs_of
from litesmith.data.audio import MOST_WINDOWS, resample, waveform, windows
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.tasks.sound import read_sound
from litesmith.tflite.sound_metadata import state_features, stated_features
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


def clip(path: Path, rate: int, length: int) -> np.ndarray:
    """The first window of a clip at a rate."""
    values, own = read_sound(path)
    return windows(resample(values, own, rate), length)[0]


def tone(pitch: float, rate: int, seconds: float = 0.5) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * pitch * np.arange(round(rate * seconds)) / rate)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_every_width_holds_the_same_sound(width: int, tmp_path: Path) -> None:
    values = tone(440, 8000)
    read = clip(write(tmp_path / "a.wav", values, 8000, width), 8000, len(values))
    assert np.abs(read - values).max() < 2 ** (2 - 8 * width) + 1e-6


def test_floats_are_read_as_they_are(tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    values = tone(440, 8000).astype(np.float32)
    soundfile.write(tmp_path / "a.wav", values, 8000, subtype="FLOAT")
    assert np.array_equal(clip(tmp_path / "a.wav", 8000, len(values)), values)


def test_channels_are_averaged(tmp_path: Path) -> None:
    values = np.repeat(tone(440, 8000), 2) * np.tile([1.0, 0.5], 4000)
    read = clip(write(tmp_path / "a.wav", values, 8000, channels=2), 8000, 4000)
    assert np.abs(read - 0.75 * tone(440, 8000)).max() < 1e-3


@draws(20)
@given(st.sampled_from([8000, 11_025, 22_050, 44_100]), st.sampled_from([8000, 16_000, 48_000]))
def test_a_tone_keeps_its_pitch_and_size_at_another_rate(rate: int, wanted: int) -> None:
    made = resample(tone(400, rate, 1.0), rate, wanted)
    expected = tone(400, wanted, 1.0)
    middle = slice(len(expected) // 8, len(expected) * 7 // 8)
    assert len(made) == pytest.approx(len(expected), abs=1)
    assert np.abs(made[middle] - expected[: len(made)][middle]).max() < 0.02


@draws(60)
@given(st.integers(1, 5000), st.integers(1, 400))
def test_windows_cover_a_clip_and_silence_fills_a_short_one(count: int, length: int) -> None:
    values = np.arange(1.0, count + 1)
    found = windows(values, length)
    assert all(len(one) == length for one in found) and len(found) <= MOST_WINDOWS
    seen = {number for one in found for number in one.tolist()}
    if len(found) < MOST_WINDOWS:
        assert {*values.tolist()} <= seen
    assert 1.0 in seen and float(count) in seen
    assert seen <= {0.0, *values.tolist()} and (0.0 in seen) == (count < length)


@pytest.mark.parametrize("seconds", [0.01, 0.2, 1.0, 7.3])
def test_the_answer_to_a_clip_is_the_mean_over_its_windows(seconds: float, tmp_path: Path) -> None:
    b = Builder()
    model = b.model(b.op("MEAN", b.op("ABS", b.input("sound", (1, 2000))), [1], keep_dims=True))
    values = 0.5 * np.random.default_rng(0).random(max(1, round(8000 * seconds)))
    write(tmp_path / "0.wav", values, 8000)
    (sample,) = data = open_data(tmp_path, model, preparation=Preparation(rate=8000))
    (answer,) = outputs_of([model], data, lambda _, answers: answers[0][0].copy())
    calls = [sample.inputs, *sample.more]
    assert answer.shape == (1, 1)
    assert answer.item() == pytest.approx(np.mean([np.abs(c[0]).mean() for c in calls]), rel=1e-5)


def test_a_model_of_features_is_given_them_and_the_assumption_is_said(tmp_path: Path) -> None:
    b = Builder()
    model = b.model(b.op("ABS", b.input("map", (1, 20, 16, 1))))
    write(tmp_path / "0.wav", tone(440, 8000, 1.0), 8000)
    data = open_data(tmp_path, model, preparation=Preparation(rate=8000))
    (sample,) = data
    assert sample.inputs[0].shape == (1, 20, 16, 1) and len(sample.more) > 3
    assert any("logmel:16,window=25,hop=10, assumed from" in note for note in data.notes)
    stated = state_features(model, "mfcc:16,window=30,hop=20")
    assert stated_features(stated) == "mfcc:16,window=30,hop=20"
    (other,) = told = open_data(tmp_path, stated, preparation=Preparation(rate=8000))
    assert not any("assumed" in note for note in told.notes)
    assert not np.array_equal(other.inputs[0], sample.inputs[0])


def test_silence_is_a_clip_too(tmp_path: Path) -> None:
    b = Builder()
    model = b.model(b.op("ABS", b.input("map", (1, 20, 16, 1))))
    write(tmp_path / "0.wav", np.zeros(4000), 8000)
    (sample,) = open_data(tmp_path, model, preparation=Preparation(rate=8000))
    assert np.isfinite(sample.inputs[0]).all()


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


def test_a_clip_whose_parts_are_longer_than_the_whole_is_refused(tmp_path: Path) -> None:
    place = write(tmp_path / "a.wav", np.zeros(400), 8000)
    good, seen = place.read_bytes(), set[str]()
    for at in range(4, 44):
        for value in (0, 1, 0x7F, 0xFF):
            place.write_bytes(good[:at] + bytes([value]) + good[at + 1 :])
            try:
                read_sound(place)
            except BadInput as error:
                seen.add(str(error).partition("(")[2])
    assert any(why.startswith("it ends too early") for why in seen)


@pytest.mark.parametrize(
    ("shape", "length"), [((4000,), 4000), ((1, 4000), 4000), ((1, 4000, 1), 4000), ((1, 64), 0)]
)
def test_which_inputs_take_clips(shape: tuple[int, ...], length: int) -> None:
    b = Builder()
    model = b.model(b.op("ABS", b.input("x", shape)))
    assert waveform(model.main.inputs[0]) == length
