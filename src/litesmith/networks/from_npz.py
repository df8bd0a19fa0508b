"""Weights by name, as `save_weights` writes them: NAME/weight and NAME/bias."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from litesmith.errors import BadInput
from litesmith.ir.types import Array
from litesmith.networks.loose_weights import Loose
from litesmith.networks.network_table import Row
from litesmith.units import plain

STYLE = "style"
_WEIGHT, _BIAS = "/weight", "/bias"


def read(path: Path, row: Row) -> tuple[list[Loose], str]:
    """Layers in the file's order, and the style of the graph where the file has it."""
    del row
    arrays = _arrays(path)
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


def in_order(loose: Sequence[Loose], names: Sequence[str], path: Path) -> list[Loose]:
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


def _arrays(path: Path) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise BadInput("{path}: no such file", path) from None
    except Exception as error:  # numpy and zipfile raise a dozen kinds on damaged files
        raise BadInput(
            "{path}: cannot be read as an .npz ({name})", path, type(error).__name__
        ) from None
