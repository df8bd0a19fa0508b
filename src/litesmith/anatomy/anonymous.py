"""A model that behaves like another and reveals nothing of it: no weights, names or labels."""

import re
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from litesmith.ir.dtype import DTYPES, Array, pack, pack_strings
from litesmith.ir.edit import substitute
from litesmith.ir.ops import OPS
from litesmith.ir.types import (
    Fields,
    Graph,
    Model,
    Op,
    Quant,
    Record,
    Signature,
    Tensor,
    memory_place,
)

# A list of integers up to this length may be a shape that other ops compute with.
_MOST_IN_A_SHAPE = 16
# The minimum and maximum of this many numbers or fewer would reveal the numbers themselves.
_TELLING = 4
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)

# The fields that an op keeps besides its options; debug data and foreign bytes are not among them.
_KEPT_OF_OPS = ("custom_options_format", "mutating_variable_inputs")
# Options whose content is as arbitrary as that of a custom op.
_FOREIGN = {
    "StableHLOCompositeOptions": ("composite_attributes",),
    "StablehloCustomCallOptions": ("backend_config", "custom_attributes"),
}
# Options that are names.
_NAMES = {
    "StableHLOCompositeOptions": ("name",),
    "StablehloCustomCallOptions": ("call_target_name",),
    "VarHandleOptions": ("container", "shared_name"),
}
_KEPT_OF_TENSORS = ("has_rank", "variant_tensors")

# Codes that are finite numbers in every type of 8 bits.
_CODES = np.arange(64, dtype=np.uint8)

# Custom ops of the stock runtime or TensorFlow (FlexErf is its Erf; Flexible could be anyone's),
# and composites that delegates look for: their names reveal nothing.
_PUBLIC = re.compile("TFLite_Detection_PostProcess|Flex[A-Z][A-Za-z0-9]*")
_PUBLIC_COMPOSITES = "odml."


def anonymize(model: Model, *, seed: int = 0, keep_custom_options: bool = False) -> Model:
    """The model with random constants of the same ranges, numbered names, and nothing attached.

    Ops, shapes, types, scales, sparsity patterns and integer settings such as shapes, axes and
    paddings are kept. Names and options of custom ops may reveal anything, so they become numbers
    and zeros unless kept on request.
    """
    writer = _Anonymizer(model, seed, keep_custom_options)
    graphs = [writer.graph(number, graph) for number, graph in enumerate(model.graphs)]
    signatures = [writer.signature(number, one) for number, one in enumerate(model.signatures)]
    return Model(tuple(graphs), tuple(signatures))


class _Anonymizer:
    """Makes the new parts; constants that share bytes also share the new bytes."""

    def __init__(self, model: Model, seed: int, keep_custom_options: bool) -> None:
        self._random = np.random.default_rng(seed)
        self._keep_custom_options = keep_custom_options
        self._settings = frozenset(_settings(model))
        self._contents: dict[tuple[int, int, str, bool], Array] = {}
        self._tensors: dict[Tensor, Tensor] = {}
        self._words: dict[str, str] = {"": ""}
        self._customs: dict[str, str] = {}

    def graph(self, number: int, graph: Graph) -> Graph:
        for tensor in graph.tensors:
            self._tensor(tensor)
        tensors = self._tensors
        return Graph(
            f"g{number}",
            tuple(tensors[t] for t in graph.inputs),
            tuple(tensors[t] for t in graph.outputs),
            tuple(self._op(op) for op in graph.ops),
            tuple(tensors[t] for t in graph.tensors),
        )

    def signature(self, number: int, old: Signature) -> Signature:
        return Signature(
            f"s{number}",
            old.graph,
            tuple((f"i{n}", self._tensors[t]) for n, (_, t) in enumerate(old.inputs)),
            tuple((f"o{n}", self._tensors[t]) for n, (_, t) in enumerate(old.outputs)),
        )

    def _tensor(self, old: Tensor) -> Tensor:
        if old not in self._tensors:
            name = f"t{len(self._tensors)}"
            made = replace(
                old,
                name=name,
                data=None if old.data is None else self._content(old),
                quant=None if old.quant is None else self._quant(old.quant),
                rest=_only(old.rest, _KEPT_OF_TENSORS),
            )
            self._tensors[old] = made
        return self._tensors[old]

    def _quant(self, old: Quant) -> Quant:
        block = old.block
        if block is not None:
            points = None if block.zero_points is None else self._tensor(block.zero_points)
            block = replace(block, scales=self._tensor(block.scales), zero_points=points)
        return replace(old, block=block, rest=_only(old.rest, ("min", "max")))

    def _content(self, tensor: Tensor) -> Array:
        assert tensor.data is not None
        kept = tensor in self._settings
        key = (*memory_place(tensor.data), tensor.dtype, kept)
        if key not in self._contents:
            made = np.array(tensor.data) if kept else random_content(tensor, self._random)
            made.setflags(write=False)
            self._contents[key] = made
        return self._contents[key].reshape(tensor.data.shape)

    def _op(self, old: Op) -> Op:
        rest = dict(_only(old.rest, _KEPT_OF_OPS))
        custom = old.rest.get("custom_options")
        if custom is not None:
            raw = np.frombuffer(custom, np.uint8) if isinstance(custom, bytes) else custom
            keeps = self._keep_custom_options
            rest["custom_options"] = custom if keeps else bytes(np.asarray(raw).nbytes)
        options = None if old.options is None else self._options(old.options)
        made = replace(substitute(old, self._tensors), options=options, rest=MappingProxyType(rest))
        return replace(made, custom=self._custom_name(old.custom)) if old.is_custom else made

    def _custom_name(self, old: str) -> str:
        if self._keep_custom_options or _PUBLIC.fullmatch(old):
            return old
        return self._customs.setdefault(old, f"custom{len(self._customs)}")

    def _options(self, options: Record) -> Record:
        """Numbers the names in options; two ops with the same name keep a common name."""
        if options.table in _FOREIGN and self._keep_custom_options:
            return options
        words = {name: options.fields.get(name) for name in _NAMES.get(options.table, ())}
        numbered = {
            name: self._words.setdefault(word, f"v{len(self._words)}")
            for name, word in words.items()
            if isinstance(word, str) and not word.startswith(_PUBLIC_COMPOSITES)
        }
        return options.set(**numbered, **dict.fromkeys(_FOREIGN.get(options.table, ())))


def _only(fields: Fields, names: tuple[str, ...]) -> Fields:
    return MappingProxyType({name: fields[name] for name in names if name in fields})


def _settings(model: Model) -> Iterator[Tensor]:
    """Integer constants that define what an op does; with other values it would be another op."""
    for _, _, op in model.ops():
        roles = OPS[op.kind].inputs.split()
        for place, tensor in enumerate(op.inputs):
            if tensor is None or not tensor.is_const or tensor.quant is not None:
                continue
            role = roles[place] if place < len(roles) else roles[-1] if roles else "*"
            is_integer = tensor.dtype in ("bool", "int32", "int64")
            if is_integer and (role[0] == "s" or tensor.elements <= _MOST_IN_A_SHAPE):
                yield tensor


def random_content(tensor: Tensor, random: np.random.Generator) -> Array:
    """Random values in the storage of a constant, with the same minimum and maximum; for few
    numbers, which these would reveal, other numbers of their magnitude.
    """
    data, row = tensor.data, DTYPES[tensor.dtype]
    assert data is not None
    if tensor.dtype == "string":
        return pack_strings([_random_text(len(text), random) for text in tensor.texts()])
    if row.is_packed and tensor.sparsity is None:
        return pack(_between(tensor.values(), random), tensor.dtype)
    if tensor.dtype == "bfloat16":
        wide = (data.astype(np.uint32) << 16).view(np.float32)
        return (_between(wide, random).view(np.uint32) >> 16).astype(np.uint16)
    if (row.is_float and row.bits == 8) or row.is_packed:  # every code that occurs is valid
        few = tensor.elements <= _TELLING
        return random.choice(_CODES.view(data.dtype) if few else np.unique(data), data.shape)
    return _between(data, random)


def _random_text(length: int, random: np.random.Generator) -> bytes:
    return random.choice(_LETTERS, length).tobytes()


def _between(values: Array, random: np.random.Generator) -> Array:
    """Random values of the same type and range: any shape -> the same shape."""
    if values.dtype.kind == "c":
        parts = _between(np.real(values), random), _between(np.imag(values), random)
        return (parts[0] + 1j * parts[1]).astype(values.dtype)
    finite = values[np.isfinite(values)] if values.dtype.kind == "f" else values
    if not finite.size:
        return np.zeros_like(values)
    low, high = finite.min(), finite.max()
    is_float = values.dtype.kind == "f"
    if values.size <= _TELLING or (is_float and low == high):
        near = np.where(np.isfinite(values), values, low)  # towards zero, which fits every type
        return (near * random.uniform(0.5, 1.0, values.shape)).astype(values.dtype)
    if is_float:
        wide = random.uniform(float(low), float(high), values.shape)
        made = np.clip(wide.astype(values.dtype), low, high)
    else:
        made = random.integers(int(low), int(high), values.shape, values.dtype, endpoint=True)
    flat = made.reshape(-1)
    ends = random.permutation(flat.size)[:2]
    flat[ends] = [low, high][: ends.size]
    return made
