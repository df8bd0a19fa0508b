"""What a .keras file may name, which is looked at before Keras is even imported."""

import json
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile

import numpy as np
import pytest

from litesmith.conversion.keras_model import load_keras
from litesmith.errors import BadInput, LitesmithError

EVIL = {"module": "keras.layers", "class_name": "TFSMLayer", "config": {"filepath": "/elsewhere"}}


def dense(**more: object) -> dict[str, object]:
    return {"module": "keras.layers", "class_name": "Dense", "config": {"units": 2}, **more}


def model(layer: object, **more: object) -> dict[str, object]:
    return {"module": "keras", "class_name": "Sequential", "config": {"layers": [layer]}, **more}


@pytest.mark.parametrize(
    "config",
    [
        model(EVIL),
        model(dense(build_config={"x": EVIL})),
        model({**dense(), "config": {"kernel_initializer": {"build_config": EVIL}}}),
        model({**dense(), "config": {"kernel_initializer": {"compile_config": [EVIL]}}}),
        model(model(dense(), compile_config={"optimizer": EVIL})),
    ],
    ids=["a layer", "built", "under a key", "under another", "of a model inside"],
)
def test_no_place_of_a_file_hides_a_class(config: object, tmp_path: Path) -> None:
    """Keys of two names were passed over wherever they stood, and Keras builds what is there."""
    path = tmp_path / "m.keras"
    with ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps(config))
    with pytest.raises(BadInput, match="is not Keras' own"):
        load_keras(path)


def test_a_damaged_file_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    with ZipFile(path, "w", ZIP_LZMA) as file:
        file.writestr("config.json", json.dumps(model(dense())))
    good, random = path.read_bytes(), np.random.default_rng(0)
    told = r"is no \.keras file|needs Keras|cannot read it|is not Keras' own"
    for _ in range(300):
        spoilt = bytearray(good)
        spoilt[random.integers(0, len(good))] = random.integers(0, 256)
        path.write_bytes(spoilt)
        with pytest.raises(LitesmithError, match=told):
            load_keras(path)


def test_a_description_without_end_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr("config.json", bytes((1 << 28) + 1))
    with pytest.raises(LitesmithError, match=r"is no \.keras file"):
        load_keras(path)
