"""Weights that the user has, put into a network of the catalogue."""

import io
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.ir.types import Array, Model, Tensor
from litesmith.networks.build_network import build, resolve
from litesmith.networks.loose_weights import Loose, Target, targets_of
from litesmith.networks.spec import Spec
from litesmith.networks.weight_files import READERS, STYLE, sort_by_name
from litesmith.phrases import phrase
from litesmith.tflite.file import write_whole

_HEAD = "logits"


def load_weights(
    what: Spec | str | Model, path: str | os.PathLike[str], *, head: bool = True
) -> Model:
    """The network, built anew with the weights of a .tflite, .npz, .pt or .pth file.

    Layers are matched in order and by shape (by name in an .npz). The graph pads as the weights
    were trained to: torch's give torch's outputs, logits. Where no number of classes is given it
    is that of the file. `head=False` leaves the classifier random, for other classes.
    """
    path = Path(path)
    spec = resolve(what)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        raise BadInput("{path}: weights come from {readers} files", path, ", ".join(READERS))
    loose, style = READERS[suffix](path, spec.row)
    if head and spec.classes is None and loose:
        last = next((layer for layer in loose if layer.name == _HEAD), loose[-1])
        spec = replace(spec, classes=last.outputs)
    model = build(replace(spec, style=style or spec.style), seed=None if head else 0)
    targets = [t for t in targets_of(model.main) if head or t.name != _HEAD]
    if suffix == ".npz":
        loose = sort_by_name(loose, [t.name for t in targets], path)
    elif not head and len(loose) == len(targets) + 1:
        loose = loose[:-1]
    return _fill(model, _match(targets, loose, path))


def save_weights(model: Model, path: str | os.PathLike[str]) -> None:
    """Every layer's weight and bias by name, and the style of the graph, as an .npz."""
    arrays: dict[str, Array] = {STYLE: np.array(resolve(model).style)}
    for target in targets_of(model.main):
        for tensor in (target.weight, target.bias):
            arrays[tensor.name] = tensor.values()
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    write_whole(Path(path), [content.getbuffer()])


def _match(targets: Sequence[Target], loose: Sequence[Loose], path: Path) -> dict[Tensor, Tensor]:
    """The constants of the graph, each with what takes its place."""
    filled: dict[Tensor, Tensor] = {}
    for target, found in zip(targets, loose, strict=False):
        weight = found.arranged(target.kind)
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


def _refuse_mismatch(target: Target, found: Loose, weight: Array, path: Path) -> None:
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


def _left_over(targets: Sequence[Target], loose: Sequence[Loose]) -> str:
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
    """The model with other constants in their places, so that the file's order stays."""
    places = tuple(filled.get(tensor, tensor) for tensor in model.main.tensors)
    graph = rewrite(replace(model.main, tensors=places), tensors=filled)
    return with_graphs(model, [graph], filled)
