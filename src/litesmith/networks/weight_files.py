"""Weights of the user's, read from an .npz, a .tflite or a torch state dict."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
# torch leaves parts of its types open.

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litesmith.errors import BadInput, BadModel, CannotRun
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Op, Tensor, constant_numbers
from litesmith.ir.window import pads, slides
from litesmith.networks.loose_weights import Loose, act_of, stride_of
from litesmith.networks.network_table import Row
from litesmith.numeric.affine import dequantize
from litesmith.tflite.file import load
from litesmith.units import plain

STYLE = "style"
_WEIGHT, _BIAS = "/weight", "/bias"


def read_npz(path: Path, _: Row) -> tuple[list[Loose], str]:
    """Layers of an .npz as `save_weights` writes it: NAME/weight and NAME/bias.

    They come in the file's order, with the style of the graph where the file has it.
    """
    arrays = _npz_arrays(path)
    style = str(arrays.pop(STYLE, ""))
    if style not in ("", "tf", "torch"):
        raise BadInput("{path}: no style {style!r}; there are tf and torch", path, plain(style))
    for name, array in arrays.items():
        if not name.endswith((_WEIGHT, _BIAS)) or array.dtype.kind not in "fiu":
            raise BadInput(
                "{path}: {name!r} is no weight or bias; an array of numbers called "
                "LAYER/weight or LAYER/bias belongs here",
                path,
                plain(name),
            )
    weights = {n.removesuffix(_WEIGHT): a for n, a in arrays.items() if n.endswith(_WEIGHT)}
    return [Loose(name, a, arrays.get(name + _BIAS)) for name, a in weights.items()], style


def sort_by_name(loose: Sequence[Loose], names: Sequence[str], path: Path) -> list[Loose]:
    """The layers in the order of these names, which are all there; `logits` may be too many."""
    by_name = {layer.name: layer for layer in loose}
    missing = [name for name in names if name not in by_name]
    foreign = [name for name in by_name if name not in names and name != "logits"]
    if missing:
        raise BadInput(
            "{path}: {count} layers are missing, {missing!r} first", path, len(missing), missing[0]
        )
    if foreign:
        raise BadInput("{path}: the network has no layer {foreign!r}", path, plain(foreign[0]))
    return [by_name[name] for name in names]


def _npz_arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise BadInput("{path}: no such file", path) from None
    except Exception as error:  # numpy and zipfile raise a dozen kinds on damaged files
        raise BadInput(
            "{path}: cannot be read as an .npz ({name})", path, type(error).__name__
        ) from None


def read_tflite(path: Path, _: Row) -> tuple[list[Loose], str]:
    """The layers of a .tflite in order of execution, real numbers where they are quantized, and the
    style in which the graph pads; "" where that is the same."""
    graph = load(path).main
    stored = {op.outputs[0]: op.inputs[0] for op in graph.ops if op.kind == "DEQUANTIZE"}
    found: list[Loose] = []
    for op in graph.ops:
        if OPS[op.kind].is_layer:
            weight, bias = (None if t is None else stored.get(t, t) for t in _parts(op))
            real_bias = None if bias is None else _real(bias, path)
            act = act_of(op).removeprefix("NONE")
            name = op.outputs[0].name
            found.append(Loose(name, _real(weight, path), real_bias, act, stride_of(op)))
    try:
        return found, _style(graph)
    except ValueError as error:  # a stride of 0, a window larger than what it slides over
        raise BadModel("{path}: {error}", path, error) from None


def _parts(op: Op) -> tuple[Tensor | None, Tensor | None]:
    return op.inputs[1], op.inputs[2] if len(op.inputs) > 2 else None


def _real(tensor: Tensor | None, path: Path) -> Array:
    """The numbers that a constant stands for."""
    numbers = constant_numbers(tensor)
    if tensor is None or numbers is None or (tensor.quant and tensor.quant.block):
        name = tensor.name if tensor else ""
        raise BadInput(
            "{path}: the weight {name!r} is computed, sparse or in blocks; give the file "
            "before that",
            path,
            plain(name),
        )
    if tensor.quant is None:
        return numbers.astype(np.float32)
    quant = tensor.quant
    return dequantize(numbers, quant.scale, quant.zero_point, quant.axis)


def _style(graph: Graph) -> str:
    """torch where windows are padded alike on both sides although SAME would not; "" unknown."""
    made = {op.outputs[0]: op for op in graph.ops if op.kind == "PAD"}
    for op in graph.ops:
        row = OPS[op.kind]
        if not (row.is_layer and row.has_window):
            continue
        data, weight = op.inputs[:2]
        if data is None or weight is None or len(data.shape) != 4 or len(weight.shape) != 4:
            continue
        if op.option("padding") == "SAME" and _is_lopsided(op, data, weight):
            return "tf"
        paddings = constant_numbers(made[data].inputs[1]) if data in made else None
        if paddings is not None and paddings.shape == (4, 2) and max(weight.shape[1:3]) > 1:
            return "torch" if paddings[1, 0] == paddings[1, 1] else "tf"
    return ""


def _is_lopsided(op: Op, data: Tensor, weight: Tensor) -> bool:
    assert op.options is not None
    ways = slides(op.options, weight.shape[1:3])
    both = [pads("SAME", size, way) for size, way in zip(data.shape[1:3], ways, strict=True)]
    return any(before != after for before, after in both)


# Where training scripts put the state dict beside other things.
_INSIDE = ("state_dict", "model")


def read_torch(path: Path, row: Row) -> tuple[list[Loose], str]:
    """Layers of a torch state dict as torchvision names and orders them, batch normalization folded
    in, and torch's style."""
    found: list[Loose] = []
    for name, parts in _modules(_torch_arrays(path)).items():
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
        found[-1] = _fold_norm(found[-1], parts, row.epsilon)
    return found, "torch"


def _fold_norm(layer: Loose, norm: dict[str, Array], epsilon: float) -> Loose:
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


def _torch_arrays(path: Path) -> dict[str, Array]:
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


READERS = {
    ".npz": read_npz,
    ".pt": read_torch,
    ".pth": read_torch,
    ".tflite": read_tflite,
}
