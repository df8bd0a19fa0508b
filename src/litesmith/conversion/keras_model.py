"""A Keras 3 model, live or in a `.keras` file, as a `SourceModel`: by torch, without TensorFlow.

On its torch backend a Keras model is a torch module, so it takes the path of `torch_program.py`.
Keras' own export to ONNX is not used: on torch it is torch's exporter, and on the other backends it
needs TensorFlow or JAX. Channels come last in Keras; its layers turn them for torch's kernels and
back, and `relayout` removes both turns.

A `.keras` file names the classes that it is made of. Before Keras opens the file (in safe mode,
which by itself has been deceived more than once), every name is checked: only Keras' own layers,
operations and their configurations are built, no Lambda layer and no other function.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingImports=false
# Keras may not be there; it tells no types.

import json
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from litesmith.errors import BadInput, BadModel
from litesmith.installing import install_command
from litesmith.type_guards import is_json_object, is_list

if TYPE_CHECKING:
    from litesmith.conversion.torch_program import TorchSource

Sizes = Mapping[str, Sequence[int]]
Json = dict[str, object]

# The modules from which the classes of a file may come.
_ROOMS = tuple(
    f"keras.{inner}{room}"
    for inner in ("", "src.")
    for room in (
        "activations",
        "constraints",
        "dtype_policies",
        "initializers",
        "layers",
        "models",
        "ops",
        "random",
        "regularizers",
    )
)
_PLAIN = {"DTypePolicy", "DTypePolicyMap", "Functional", "Model", "Sequential"}

# Layers that run code of other tools, or of the file.
_FOREIGN = {"FlaxLayer", "JaxLayer", "Lambda", "TFSMLayer", "TorchModuleWrapper", "__lambda__"}

# Part of the whole model that is not built when it is loaded to run; Keras builds it for inner
# models.
_UNUSED = "compile_config"

# No description of a network is longer; a longer claim unpacks to more than is there.
_MOST_CONFIG_BYTES = 1 << 28


def load_keras(path: Path) -> Any:
    """The model in a `.keras` file, made of Keras' own classes alone."""
    _check_file(path)
    keras = _on_torch(str(path))
    try:
        return keras.saving.load_model(path, compile=False, safe_mode=True)
    except Exception as error:  # whatever Keras stumbles over
        raise BadModel(
            "{path}: Keras {version} cannot read it: {why}",
            path,
            keras.__version__,
            str(error).strip().partition("\n")[0][:160] or type(error).__name__,
        ) from error


def read_keras(model: Any, example: object = None, sizes: Sizes | None = None) -> "TorchSource":
    """A live model; one that was never called needs example inputs."""
    _on_torch("the model")
    from litesmith.conversion.torch_program import read_module

    if example is not None:
        return read_module(model, example)
    if not model.built or not getattr(model, "inputs", None):
        raise BadInput("the model has no inputs yet; give an example: convert(model, example)")
    given = {str(t.name): _sizes(str(t.name), t.shape, sizes or {}) for t in model.inputs}
    dtypes = [str(t.dtype) for t in model.inputs]
    return read_module(*_by_name(model, given, dtypes))


def _on_torch(source: str) -> ModuleType:
    """Keras on its torch backend, which is chosen when it is first imported."""
    if "keras" not in sys.modules:
        if find_spec("keras") is None or find_spec("torch") is None:
            raise BadInput(
                "{source} needs Keras and torch: pip install keras; {install}",
                source,
                install_command("train"),
            )
        os.environ["KERAS_BACKEND"] = "torch"
    import keras

    backend = str(keras.backend.backend())
    if backend != "torch":
        raise BadInput(
            "Keras runs on {backend} here, and a model is converted on torch; save it as .keras "
            "and convert the file in a new process with KERAS_BACKEND=torch",
            backend,
        )
    return keras


def _sizes(name: str, shape: Sequence[int | None], given: Sizes) -> tuple[int, ...]:
    """The sizes of an input: as given, otherwise with a batch of one."""
    if name in given:
        return tuple(given[name])
    if None in shape[1:]:
        text = ",".join(str(d or (224 if place else 1)) for place, d in enumerate(shape))
        raise BadInput(
            "input {name!r} has free sizes; give them: --shape {name}={text}", name, text
        )
    return tuple(1 if d is None else d for d in shape)


def _by_name(
    model: Any, sizes: Mapping[str, Sequence[int]], dtypes: Sequence[str]
) -> tuple[Any, dict[str, object]]:
    """A module that takes the model's inputs by their names, and an example of them."""
    import torch

    class Named(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, **inputs: torch.Tensor) -> object:
            values = [inputs[name] for name in sizes]
            return self.model(values[0] if len(values) == 1 else values, training=False)

    example: dict[str, object] = {
        name: torch.zeros(tuple(size), dtype=getattr(torch, dtype))
        for (name, size), dtype in zip(sizes.items(), dtypes, strict=True)
    }
    return Named(), example


# The file


def _check_file(path: Path) -> None:
    """Refuses a file whose classes are not Keras' own."""
    try:
        with ZipFile(path) as file:
            if file.getinfo("config.json").file_size > _MOST_CONFIG_BYTES:
                raise ValueError
            content = json.loads(file.read("config.json"))
    except Exception:  # zipfile raises a dozen kinds on damaged files
        raise BadModel("{path} is no .keras file of Keras 3", path) from None
    waiting: list[object] = [content]
    if is_json_object(content):
        content.pop(_UNUSED, None)
    while waiting:
        found = waiting.pop()
        if is_list(found):
            waiting.extend(found)
        elif is_json_object(found):
            if "class_name" in found and not _is_own(found):
                raise BadInput(
                    "{path}: {name!r} in it is not Keras' own, and code of a file is never run; "
                    "load it in Python and call litesmith.convert(model)",
                    path,
                    str(found["class_name"])[:80],
                )
            waiting.extend(found.values())


def _is_own(fields: Json) -> bool:
    """True for a class of Keras that runs nothing but itself, and for its activations."""
    name, room = str(fields["class_name"]), fields.get("module")
    if name in _FOREIGN:
        return False
    if name == "function":
        return str(room).startswith(("keras.activations", "keras.src.activations"))
    if room is None:
        return name in ("__keras_tensor__", "__tensor__", "__numpy__", "__ellipsis__", "__slice__")
    return str(room).startswith(_ROOMS) or (room == "keras" and name in _PLAIN)
