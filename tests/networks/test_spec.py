"""Names as users type them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litesmith.errors import BadInput
from litesmith.networks import ROWS, Spec, build, is_name, parse
from litesmith.networks.layer_builder import round_channels

IMAGES = [row.name for row in ROWS if row.shape is None]


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("mobilenet_v1:0.25@128", Spec("mobilenet_v1", 0.25, 128)),
        ("mobilenet_v2:0.5@160/10", Spec("mobilenet_v2", 0.5, 160, 10)),
        ("mobilenet_v3_small@224", Spec("mobilenet_v3_small", 1.0, 224)),
        ("efficientnet_lite2", Spec("efficientnet_lite2", 1.0, 260)),
        ("EfficientNet-Lite0", Spec("efficientnet_lite0", 1.0, 224)),
        ("resnet8/4", Spec("resnet8", 1.0, 32, 4)),
        ("ds_cnn_s:2", Spec("ds_cnn_s", 2.0, 0)),
        (" mobilenet_v1_vww ", Spec("mobilenet_v1_vww", 0.25, 96)),
    ],
)
def test_a_text_is_a_spec(text: str, spec: Spec) -> None:
    assert parse(text) == spec
    assert parse(str(spec)) == spec
    assert is_name(text)


@given(
    st.sampled_from(IMAGES),
    st.floats(0.1, 4),
    st.integers(32, 2048),
    st.none() | st.integers(1, 10**6),
)
def test_the_text_of_a_spec_is_that_spec(
    name: str, width: float, resolution: int, classes: int | None
) -> None:
    spec = Spec(name, width, resolution, classes)
    assert parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mobilenet_v9", "no network 'mobilenet_v9' in the catalogue; there are mobilenet_v1, .*"),
        ("", "no network ''"),
        ("mobilenet_v1:0", r"width 0 is outside 0\.1 to 4; channels are .* multiples of 8"),
        ("mobilenet_v1:nan", r"width nan is outside 0\.1 to 4"),
        ("mobilenet_v1:wide", "the width 'wide' is no number"),
        ("mobilenet_v1@31", "31 pixels are outside 32 to 2048; 32 of them make one feature"),
        ("mobilenet_v1@99999", "99999 pixels are outside"),
        ("resnet20@3", "3 pixels are outside 4 to 2048"),
        ("mobilenet_v1@1.5", r"the resolution '1\.5' is no whole number"),
        ("mobilenet_v1@", "the resolution '' is no whole number"),
        ("mobilenet_v1@224:0.5", "the resolution '224:0.5' is no whole number"),
        ("mobilenet_v1/0", "0 classes; give 1 to 1000000"),
        ("mobilenet_v1/-3", "the number of classes '-3' is no whole number"),
        ("ds_cnn_s@49", "its input is always 49 × 10 values; leave out @RESOLUTION"),
    ],
)
def test_what_is_no_spec(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        parse(text)


def parsed(text: str) -> Spec | BadInput:
    try:
        return parse(text)
    except BadInput as error:
        return error


@given(st.text())
def test_any_text_is_a_spec_or_bad_input(text: str) -> None:
    for candidate in (text, f"resnet8{text}", f"resnet8:{text}", f"resnet8@{text}"):
        spec = parsed(candidate)
        if isinstance(spec, BadInput):
            assert str(spec)
        else:
            assert is_name(candidate) or candidate.endswith(".tflite")
            assert spec.row in ROWS


def test_a_path_is_no_name() -> None:
    assert not is_name("resnet50/model.tflite")
    assert not is_name("models/resnet50")
    assert is_name("resnet50@0")


def test_arguments_of_build() -> None:
    assert build("resnet8/4", classes=6).main.outputs[0].shape == (1, 6)
    with pytest.raises(BadInput, match="seed -1: give 0 or more"):
        build("resnet8", seed=-1)
    with pytest.raises(BadInput, match="no style 'keras'; there are tf and torch"):
        Spec("resnet8", 1.0, 32, style="keras")


@given(st.floats(0.1, 5000), st.sampled_from([4, 8]))
def test_channels_are_multiples_near_what_was_asked(channels: float, step: int) -> None:
    found = round_channels(channels, step)
    assert found % step == 0 and found >= step
    assert 0.9 * channels <= found < channels + step
