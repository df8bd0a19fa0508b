"""Weights of a torch state dict, as torchvision names them; batch normalization is folded in."""

from pathlib import Path

import numpy as np

from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Array
from litesmith.networks.loose_weights import Loose
from litesmith.networks.network_table import Row
from litesmith.units import plain

# Where training scripts put the state dict beside other things.
_INSIDE = ("state_dict", "model")


def read(path: Path, row: Row) -> tuple[list[Loose], str]:
    """Layers in the order of the state dict, and torch's style."""
    found: list[Loose] = []
    for name, parts in _modules(_arrays(path)).items():
        if "running_var" not in parts:
            if "weight" in parts:
                found.append(Loose(name, parts["weight"], parts.get("bias"), is_torch=True))
            continue
        if not found or found[-1].outputs != parts["running_var"].size:
            raise BadInput(
                "{path}: the batch normalization {name!r} does not follow its convolution; "
                "a state dict in the order of torchvision's belongs here",
                path,
                plain(name),
            )
        found[-1] = _folded(found[-1], parts, row.epsilon)
    return found, "torch"


def _folded(layer: Loose, norm: dict[str, Array], epsilon: float) -> Loose:
    """y = (x − mean) / √(variance + ε) × weight + bias, as part of the layer that gives x."""
    variance = norm["running_var"].astype(np.float64)
    scale = norm.get("weight", np.ones_like(variance)) / np.sqrt(variance + epsilon)
    before = 0 if layer.bias is None else layer.bias
    bias = (before - norm["running_mean"]) * scale + norm.get("bias", 0)
    weight = layer.weight * scale.reshape(-1, *(1,) * (layer.weight.ndim - 1))
    return layer._replace(weight=weight, bias=bias)


def _modules(arrays: dict[str, Array]) -> dict[str, dict[str, Array]]:
    """Each module's arrays by their own names, in order."""
    modules: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        module, _, part = name.rpartition(".")
        modules.setdefault(module, {})[part] = array
    return modules


def _arrays(path: Path) -> dict[str, Array]:
    if not path.is_file():
        raise BadInput("{path}: no such file", path)
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise CannotRun("{path}: needs torch; pip install 'litesmith[train]'", path) from None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever unpickling raises
        raise BadInput(
            "{path}: cannot be read as weights only ({name}); save model.state_dict() with "
            "torch.save",
            path,
            type(error).__name__,
        ) from None
    for name in _INSIDE:
        if isinstance(content, dict) and isinstance(content.get(name), dict):
            content = content[name]
    if not isinstance(content, dict) or not all(map(torch.is_tensor, content.values())):
        raise BadInput("{path}: holds no state dict; save model.state_dict() with torch.save", path)
    return {str(name): tensor.detach().float().numpy() for name, tensor in content.items()}
