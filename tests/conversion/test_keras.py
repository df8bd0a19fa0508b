"""Keras models through the converter, on torch; the classes of a file are checked first."""

import json
import os
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from litesmith.conversion.keras_model import load_keras
from litesmith.errors import LitesmithError
from litesmith.front.convert import convert

pytest.importorskip("torch", reason="needs torch: pip install 'litesmith[train]'")
os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="needs Keras: pip install keras")
layers = keras.layers


def convolutions() -> keras.Model:
    image = keras.Input((16, 16, 3), name="image")
    x = layers.Conv2D(8, 3, 2, padding="same", use_bias=False)(image)
    x = layers.ReLU(max_value=6)(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(8, 3, padding="same")(layers.ZeroPadding2D()(x))
    x = layers.Conv2DTranspose(4, 3, 2, padding="same")(layers.MaxPooling2D()(x))
    x = layers.Dropout(0.5)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Dense(5, activation="softmax")(x))


def words() -> keras.Model:
    ids = keras.Input((7,), dtype="int32", name="ids")
    x = layers.Embedding(10, 8)(ids)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(ids, layers.Dense(4, activation="gelu")(layers.GRU(3)(x)))


@pytest.mark.parametrize("build", [convolutions, words])
def test_a_keras_file_is_what_keras_runs(build: object, tmp_path: Path) -> None:
    keras.utils.set_random_seed(0)
    model = build()
    path = tmp_path / "model.keras"
    model.save(path)
    made = convert(path)
    assert [d.is_float_error for d in made.differences] == [True]
    assert [t.name for t in made.model.main.inputs] == [model.inputs[0].name]


def test_channels_last_leave_no_transposes() -> None:
    made = convert(convolutions())
    assert "TRANSPOSE" not in {op.kind for op in made.model.main.ops}
    assert made.turned == frozenset()


def test_free_sizes_are_asked_for(tmp_path: Path) -> None:
    x = keras.Input((None, 4), name="x")
    path = tmp_path / "free.keras"
    keras.Model(x, layers.Dense(2)(x)).save(path)
    with pytest.raises(LitesmithError, match="--shape x=1,1,4"):
        convert(path)
    made = convert(path, shape={"x": (1, 5, 4)})
    assert made.model.main.outputs[0].shape == (1, 5, 2)


def replaced(source: Path, out: Path, old: str, new: str) -> Path:
    with ZipFile(source) as file, ZipFile(out, "w") as made:
        for name in file.namelist():
            content = file.read(name)
            if name == "config.json":
                assert old in content.decode()
                content = content.decode().replace(old, new, 1).encode()
            made.writestr(name, content)
    return out


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("keras.utils", "function"), ("keras.layers", "Lambda"), (None, "Own")],
)
def test_no_class_but_keras_own_is_built(tmp_path: Path, module: str | None, name: str) -> None:
    x = keras.Input((4,))
    model = tmp_path / "dense.keras"
    keras.Model(x, layers.Dense(2)(x)).save(model)
    old = '"module": "keras.layers", "class_name": "Dense"'
    new = f'"module": {json.dumps(module)}, "class_name": "{name}"'
    bad = replaced(model, tmp_path / "bad.keras", old, new)
    with pytest.raises(LitesmithError, match="is not Keras' own"):
        load_keras(bad)


def test_a_text_is_no_keras_file(tmp_path: Path) -> None:
    path = tmp_path / "text.keras"
    path.write_text("hello")
    with pytest.raises(LitesmithError, match=r"no \.keras file"):
        load_keras(path)


def test_a_model_without_inputs_wants_an_example() -> None:
    model = keras.Sequential([layers.Dense(2)])
    with pytest.raises(LitesmithError, match="give an example"):
        convert(model)
    model(np.zeros((1, 3), np.float32))
    assert [d.is_float_error for d in convert(model, np.zeros((1, 3), np.float32)).differences] == [
        True
    ]
