"""What a .keras file may name, which is looked at before Keras is even imported."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

from litesmith.conversion.keras_model import load_keras
from litesmith.errors import BadInput

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
