"""The user's weights, read from an .npz, a .tflite or a torch state dict, and put into a network of
the catalogue.
"""

import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeGuard

import numpy as np

from litesmith.errors import BadInput, BadModel
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.ops import OPS
from litesmith.ir.types import Array, Graph, Model, Op, Tensor, constant_numbers
from litesmith.ir.window import pads, slides
from litesmith.networks.network_table import Row
from litesmith.networks.spec import Spec, build, resolve
from litesmith.networks.state_dict import read_state_dict
from litesmith.numeric.affine import dequantize
from litesmith.numeric.array_files import archive_bytes, read_arrays, refuse_size
from litesmith.phrases import phrase
from litesmith.tflite.file import load, write_whole
from litesmith.units import plain

# From torch's axes (out, in, height, width) to those of the runtime.
_AXES, _DEPTHWISE_AXES = (0, 2, 3, 1), (1, 2, 3, 0)


class FileLayer(NamedTuple):
    """A layer of a file; an activation "" or a stride None is not in the file."""

    name: str
    weight: Array
    bias: Array | None
    act: str = ""
    stride: tuple[int, int] | None = None
    is_torch: bool = False

    @property
    def label(self) -> str:
        """The layer's name in messages: the first of the names that a converter has joined."""
        return phrase("layer {split!r}", plain(self.name.split(";")[0]))

    @property
    def outputs(self) -> int:
        """The output channels, except for a depthwise layer."""
        return self.weight.shape[0] if self.weight.ndim else 0

    def arrange_for(self, kind: str) -> Array:
        """The weight with its axes in the order for this kind of op."""
        if self.is_torch and self.weight.ndim == 4:
            return np.transpose(self.weight, _DEPTHWISE_AXES if OPS[kind].is_depthwise else _AXES)
        return self.weight


class NetworkLayer(NamedTuple):
    """A layer of a network."""

    name: str
    kind: str
    weight: Tensor
    bias: Tensor
    act: str
    stride: tuple[int, int]


def network_layers(graph: Graph) -> list[NetworkLayer]:
    """The layers in order of execution."""
    found: list[NetworkLayer] = []
    for op in graph.ops:
        if OPS[op.kind].is_layer:
            weight, bias = (*op.inputs[1:3], None)[:2]
            if not (_is_float(weight) and _is_float(bias)):
                raise BadInput(
                    "the layer {name!r} has no float weights and bias; take the model "
                    "before it was quantized",
                    plain(op.outputs[0].name),
                )
            name = weight.name.removesuffix("/weight")
            found.append(NetworkLayer(name, op.kind, weight, bias, act_of(op), stride_of(op)))
    return found


def _is_float(tensor: Tensor | None) -> TypeGuard[Tensor]:
    return tensor is not None and tensor.dtype == "float32" and tensor.is_const


def act_of(op: Op) -> str:
    return str(op.option("fused_activation_function"))


def stride_of(op: Op) -> tuple[int, int]:
    """The stride down and across; (1, 1) for a fully connected layer."""
    if op.options is None or "stride_h" not in op.options:
        return 1, 1
    return op.options.integer("stride_h"), op.options.integer("stride_w")


STYLE = "style"
_WEIGHT, _BIAS = "/weight", "/bias"
_ONE_NETWORK = phrase("a weight file holds the weights of one network")


def read_npz(path: Path, _: Row) -> tuple[list[FileLayer], str]:
    """Layers of an .npz as `save_weights` writes it: NAME/weight and NAME/bias.

    They come in the file's order, with the style of the graph where the file has it.
    """
    if not path.is_file():
        raise BadInput("{path}: no such file", path)
    arrays = read_arrays(path, smaller=_ONE_NETWORK)
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
    return [FileLayer(name, a, arrays.get(name + _BIAS)) for name, a in weights.items()], style


def sort_by_name(
    loose: Sequence[FileLayer], names: Sequence[str], path: Path | str
) -> list[FileLayer]:
    """The layers in the order of these names; every name must be there, and only `logits` may be
    there besides.
    """
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


def read_tflite(path: Path, _: Row) -> tuple[list[FileLayer], str]:
    """The layers of a .tflite in order of execution, real numbers where they are quantized, and the
    style in which the graph pads; "" where that is the same."""
    graph = load(path).main
    stored = {op.outputs[0]: op.inputs[0] for op in graph.ops if op.kind == "DEQUANTIZE"}
    found: list[FileLayer] = []
    for op in graph.ops:
        if OPS[op.kind].is_layer:
            given = (*op.inputs[1:3], None)[:2]
            weight, bias = (None if t is None else stored.get(t, t) for t in given)
            real_bias = None if bias is None else _real(bias, path)
            act = act_of(op).removeprefix("NONE")
            name = op.outputs[0].name
            found.append(FileLayer(name, _real(weight, path), real_bias, act, stride_of(op)))
    try:
        return found, _style(graph)
    except ValueError as error:  # a stride of 0, or a window larger than its input
        raise BadModel("{path}: {error}", path, error) from None


def _real(tensor: Tensor | None, path: Path) -> Array:
    """The real numbers that a constant stands for."""
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
    """ "torch" where windows are padded equally on both sides although SAME would not; "" if
    unknown.
    """
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


_NORM = ("running_mean", "running_var", "weight", "bias")


def read_torch(path: Path, row: Row) -> tuple[list[FileLayer], str]:
    """Layers of a torch state dict as torchvision names and orders them, and torch's style."""
    if not path.is_file():
        raise BadInput("{path}: no such file", path)
    try:
        whole = archive_bytes(path)
    except Exception:  # zipfile raises a dozen kinds of exceptions; the reader reports the problem
        whole = 0
    refuse_size(path, whole, smaller=_ONE_NETWORK)
    return torch_layers(path.read_bytes(), path, row.epsilon), "torch"


def torch_layers(content: bytes, origin: Path | str, epsilon: float) -> list[FileLayer]:
    """Layers of a state dict in its order, batch normalization folded into the layer before it."""
    found: list[FileLayer] = []
    for name, parts in _modules(_torch_arrays(content, origin)).items():
        if "running_var" not in parts:
            if "weight" in parts:
                found.append(FileLayer(name, parts["weight"], parts.get("bias"), is_torch=True))
            continue
        if not found or not _is_norm_of(found[-1], parts):
            raise BadInput(
                "{path}: the batch normalization {name!r} does not follow its convolution; "
                "a state dict in the order of torchvision's belongs here",
                origin,
                plain(name),
            )
        found[-1] = _fold_norm(found[-1], parts, epsilon)
    return found


def _is_norm_of(layer: FileLayer, parts: dict[str, Array]) -> bool:
    arrays = [parts[name] for name in _NORM if name in parts]
    if layer.bias is not None:
        arrays.append(layer.bias)
    return "running_mean" in parts and {a.size for a in arrays} == {layer.outputs}


def _fold_norm(layer: FileLayer, norm: dict[str, Array], epsilon: float) -> FileLayer:
    """y = (x − mean) / √(variance + ε) × weight + bias, as part of the layer whose output is x."""
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


def _torch_arrays(content: bytes, origin: Path | str) -> dict[str, Array]:
    try:
        arrays = read_state_dict(content)
    except Exception as error:  # unpickling may raise anything
        raise BadInput(
            "{path}: cannot be read as weights only ({name}); save model.state_dict() with "
            "torch.save",
            origin,
            type(error).__name__,
        ) from None
    if arrays is None:
        raise BadInput(
            "{path}: holds no state dict; save model.state_dict() with torch.save", origin
        )
    return arrays


READERS = {
    ".npz": read_npz,
    ".pt": read_torch,
    ".pth": read_torch,
    ".tflite": read_tflite,
}


_HEAD = "logits"


def load_weights(
    what: Spec | str | Model, path: str | os.PathLike[str], *, head: bool = True
) -> Model:
    """The network, built anew with the weights of a .tflite, .npz, .pt or .pth file.

    Layers are matched in order and by shape (by name in an .npz). The graph pads as in the training
    of the weights: with torch's weights, the outputs are torch's logits. Without a number of
    classes, the file's number is used. `head=False` leaves the classifier random, for other
    classes.
    """
    path = Path(path)
    spec = resolve(what)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise BadInput("{path}: weights come from {readers} files", path, ", ".join(READERS))
    loose, style = READERS[suffix](path, spec.row)
    spec = replace(spec, style=style or spec.style)
    return put_layers(spec, loose, path, head=head, is_named=suffix == ".npz")


def put_layers(
    spec: Spec,
    loose: Sequence[FileLayer],
    origin: Path | str,
    *,
    head: bool = True,
    is_named: bool = False,
) -> Model:
    """The network with these layers, by name or in their order."""
    if head and spec.classes is None and loose:
        last = next((layer for layer in loose if layer.name == _HEAD), loose[-1])
        spec = replace(spec, classes=last.outputs)
    model = build(spec, seed=None if head else 0)
    targets = [t for t in network_layers(model.main) if head or t.name != _HEAD]
    if is_named:
        loose = sort_by_name(loose, [t.name for t in targets], origin)
    elif not head and len(loose) == len(targets) + 1:
        loose = loose[:-1]
    return _fill(model, _match(targets, loose, origin))


def save_weights(model: Model, path: str | os.PathLike[str]) -> None:
    """Every layer's weight and bias by name, and the style of the graph, as an .npz."""
    arrays: dict[str, Array] = {STYLE: np.array(resolve(model).style)}
    for target in network_layers(model.main):
        for tensor in (target.weight, target.bias):
            arrays[tensor.name] = tensor.values()
    content = io.BytesIO()
    # numpy 1 would take allow_pickle for the name of an array.
    np.savez(content, **arrays)  # type: ignore[arg-type]
    write_whole(Path(path), [content.getbuffer()])


def _match(
    targets: Sequence[NetworkLayer], loose: Sequence[FileLayer], path: Path | str
) -> dict[Tensor, Tensor]:
    """The constants of the graph, each with its replacement."""
    filled: dict[Tensor, Tensor] = {}
    for target, found in zip(targets, loose, strict=False):
        weight = found.arrange_for(target.kind)
        _refuse_mismatch(target, found, weight, path)
        bias = np.zeros(target.bias.shape) if found.bias is None else found.bias
        for tensor, values in ((target.weight, weight), (target.bias, bias)):
            if not np.isfinite(values).all():
                raise BadInput(
                    "{path}: {label} holds numbers that are infinite or not any", path, found.label
                )
            data = np.ascontiguousarray(values.reshape(tensor.shape), np.float32)
            data.setflags(write=False)
            filled[tensor] = replace(tensor, data=data)
    if len(targets) != len(loose):
        raise BadInput("{path}: {left_over}", path, _left_over(targets, loose))
    return filled


def _refuse_mismatch(
    target: NetworkLayer, found: FileLayer, weight: Array, path: Path | str
) -> None:
    ours = phrase("the network's layer {name!r}", target.name)
    if _plain_shape(weight.shape) != _plain_shape(target.weight.shape):
        way_out = (
            phrase("give that many classes, or leave it random (head=False, --no-head)")
            if target.name == _HEAD
            else phrase("check the name and the width")
        )
        raise BadInput(
            "{path}: {label} has weights {shape}, {ours} {shape2}; {way_out}",
            path,
            found.label,
            weight.shape,
            ours,
            target.weight.shape,
            way_out,
        )
    if found.bias is not None and found.bias.size != target.bias.elements:
        raise BadInput(
            "{path}: {label} has {size} biases, {ours} {elements}",
            path,
            found.label,
            found.bias.size,
            ours,
            target.bias.elements,
        )
    for what, there, here in (
        (phrase("ends in"), found.act, target.act),
        (phrase("has stride"), found.stride, target.stride),
    ):
        if there and there != here:
            raise BadInput(
                "{path}: {label} {what} {there}, {ours} {here}: these are two networks; "
                "`litesmith catalogue` lists others",
                path,
                found.label,
                what,
                there,
                ours,
                here,
            )


def _plain_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A fully connected layer is a convolution with a window of 1."""
    return tuple(size for size in shape if size != 1)


def _left_over(targets: Sequence[NetworkLayer], loose: Sequence[FileLayer]) -> str:
    counts = phrase("{count} layers in the file, {count2} in the network", len(loose), len(targets))
    if len(loose) > len(targets):
        return phrase("{counts}; the first too many is {label}", counts, loose[len(targets)].label)
    missing = targets[len(loose)]
    none = phrase(
        "{counts}; none for {name!r} with weights {shape}",
        counts,
        missing.name,
        missing.weight.shape,
    )
    is_head = missing.name == _HEAD
    return phrase("{none} (head=False, --no-head leave it random)", none) if is_head else none


def _fill(model: Model, filled: dict[Tensor, Tensor]) -> Model:
    """The model with constants replaced in place, so that the order in the file stays."""
    places = tuple(filled.get(tensor, tensor) for tensor in model.main.tensors)
    graph = rewrite(replace(model.main, tensors=places), tensors=filled)
    return with_graphs(model, [graph], filled)
