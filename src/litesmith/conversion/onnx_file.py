"""An .onnx file as a `SourceModel`: read by ONNX's own fields, weights as views on the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

from litesmith.conversion.core.element_types import dtype_name
from litesmith.conversion.core.source import Node, Setting, SourceGraph, SourceModel, Value
from litesmith.conversion.protobuf import Message, Schema, read_message
from litesmith.errors import BadInput, BadModel
from litesmith.ir.types import Array, frozen
from litesmith.tflite.file import map_file

_ENTRY = {1: ("key", "text"), 2: ("value", "text")}

# The parts of ONNX's messages that a conversion reads, by the numbers of their fields.
SCHEMA: Schema = {
    "Model": {
        1: ("ir_version", "int"),
        2: ("producer_name", "text"),
        3: ("producer_version", "text"),
        7: ("graph", "Graph"),
        8: ("opset_import", "Opset"),
        25: ("functions", "Function"),
    },
    "Opset": {1: ("domain", "text"), 2: ("version", "int")},
    "Graph": {
        1: ("node", "Node"),
        2: ("name", "text"),
        5: ("initializer", "Tensor"),
        11: ("input", "ValueInfo"),
        12: ("output", "ValueInfo"),
        13: ("value_info", "ValueInfo"),
        15: ("sparse_initializer", "SparseTensor"),
    },
    "Node": {
        1: ("input", "text"),
        2: ("output", "text"),
        3: ("name", "text"),
        4: ("op_type", "text"),
        5: ("attribute", "Attribute"),
        7: ("domain", "text"),
        8: ("overload", "text"),
    },
    "Attribute": {
        1: ("name", "text"),
        2: ("f", "float"),
        3: ("i", "int"),
        4: ("s", "text"),
        5: ("t", "Tensor"),
        6: ("g", "Graph"),
        7: ("floats", "float"),
        8: ("ints", "int"),
        9: ("strings", "text"),
        20: ("type", "int"),
        21: ("ref_attr_name", "text"),
        22: ("sparse_tensor", "SparseTensor"),
    },
    "Tensor": {
        1: ("dims", "int"),
        2: ("data_type", "int"),
        4: ("float_data", "float"),
        5: ("int32_data", "int"),
        6: ("string_data", "text"),
        7: ("int64_data", "int"),
        8: ("name", "text"),
        9: ("raw_data", "bytes"),
        10: ("double_data", "double"),
        11: ("uint64_data", "int"),
        13: ("external_data", "Entry"),
        14: ("data_location", "int"),
    },
    "SparseTensor": {1: ("values", "Tensor"), 2: ("indices", "Tensor"), 3: ("dims", "int")},
    "Entry": _ENTRY,
    "ValueInfo": {1: ("name", "text"), 2: ("type", "Type")},
    "Type": {
        1: ("tensor_type", "TensorType"),
        4: ("sequence_type", "Empty"),
        5: ("map_type", "Empty"),
        9: ("optional_type", "Optional"),
    },
    "Optional": {1: ("elem_type", "Type")},
    "Empty": {},
    "TensorType": {1: ("elem_type", "int"), 2: ("shape", "Shape")},
    "Shape": {1: ("dim", "Dimension")},
    "Dimension": {1: ("dim_value", "int"), 2: ("dim_param", "text")},
    "Function": {
        1: ("name", "text"),
        4: ("input", "text"),
        5: ("output", "text"),
        6: ("attribute", "text"),
        7: ("node", "Node"),
        9: ("opset_import", "Opset"),
        10: ("domain", "text"),
        11: ("attribute_proto", "Attribute"),
        13: ("overload", "text"),
    },
}

# The domains of ONNX's own operators.
OWN_DOMAINS = ("", "ai.onnx")

_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = 1, 2, 3, 4, 5, 6, 7, 8
_SPARSE = 11

# A sparse tensor of more zeros than this for each of its values is made to fill the memory.
_LEAST_SPARSE, _MOST_TIMES = 1 << 12, 1000

Functions = Mapping[tuple[str, str, str], Message]


def read_onnx(path: Path) -> SourceModel:
    """The model in an .onnx file, or BadModel; weights stay views on the mapped file."""
    try:
        data = map_file(path)
        _refuse_others(path, bytes(data[:_HEAD]))
        return _model(read_message(data, "Model", SCHEMA), path)
    except BadModel as error:
        raise BadModel("{path}: no ONNX model, or a damaged one: {error}", path, error) from None
    except RecursionError:
        raise BadModel("{path}: no ONNX model, or a damaged one", path) from None


_HEAD = 256  # bytes that tell what a file is


def _refuse_others(path: Path, head: bytes) -> None:
    """Raises on files that are often given the name of a model."""
    if head.startswith(b"version https://git-lfs"):
        raise BadInput("{path}: a pointer of Git LFS, without the model; run: git lfs pull", path)
    if head.startswith(b"PK\x03\x04"):
        raise BadInput("{path}: a zip archive; unpack it and give the .onnx file inside", path)
    if head and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head):
        raise BadInput("{path}: a text file, no ONNX model; fetch the model again", path)


def _model(message: Message, source: Path) -> SourceModel:
    graph = message.message("graph")
    if graph is None or (not graph.messages("node") and not graph.messages("output")):
        raise BadModel("it holds no graph")
    opsets = {o.text("domain"): o.integer("version") for o in message.messages("opset_import")}
    opset = next((opsets[domain] for domain in OWN_DOMAINS if domain in opsets), 1)
    functions = {
        (f.text("domain"), f.text("name"), f.text("overload")): f
        for f in message.messages("functions")
    }
    producer = " ".join(
        filter(None, (message.text("producer_name"), message.text("producer_version")))
    )
    return SourceModel(_graph(graph, source, functions), opset, producer)


def _graph(message: Message, source: Path, functions: Functions) -> SourceGraph:
    constants = {t.text("name"): tensor_array(t, source) for t in message.messages("initializer")}
    for sparse in message.messages("sparse_initializer"):
        values = sparse.message("values")
        if values is not None:
            constants[values.text("name")] = _dense(sparse, source)
    given = [_value(v) for v in message.messages("input")]
    return SourceGraph(
        message.text("name"),
        tuple(_nodes(message.messages("node"), source, functions, {}, "")),
        tuple(v for v in given if v.name not in constants),
        tuple(_value(v) for v in message.messages("output")),
        constants,
        _told_shapes([*message.messages("value_info"), *message.messages("output")]),
    )


def _told_shapes(messages: Sequence[Message]) -> dict[str, tuple[int, ...]]:
    """The shapes of values that the file states, without those that have a free size."""
    values = [_value(message) for message in messages]
    whole = {v.name: tuple(s for s in v.sizes or () if isinstance(s, int)) for v in values}
    return {
        v.name: whole[v.name] for v in values if v.sizes is not None and whole[v.name] == v.sizes
    }


def _nodes(
    messages: Sequence[Message],
    source: Path,
    functions: Functions,
    referred: Mapping[str, Setting],
    prefix: str,
    depth: int = 0,
) -> list[Node]:
    """The nodes, those of functions that the file defines in place of their calls."""
    if depth > 20:
        raise BadModel("functions call each other without end")
    found: list[Node] = []
    for message in messages:
        node = _node(message, source, functions, referred, prefix)
        function = functions.get((node.domain, node.kind, message.text("overload")))
        if function is None:
            found.append(node)
            continue
        label = f"{prefix}{node.place}/"
        inner = _nodes(
            function.messages("node"),
            source,
            functions,
            _passed(function, node, source, functions),
            label,
            depth + 1,
        )
        names = dict(zip((label + n for n in function.texts("input")), node.inputs, strict=False))
        # An input of the function that the call leaves out is one that no node gets.
        names |= {label + n: "" for n in function.texts("input")[len(node.inputs) :]}
        names |= {
            label + n: out
            for n, out in zip(function.texts("output"), node.outputs, strict=False)
            if out
        }
        found += [_renamed(one, names) for one in inner]
    return found


def _passed(
    function: Message, node: Node, source: Path, functions: Functions
) -> dict[str, Setting]:
    """The attributes of a call as its function's body sees them: given, or the default."""
    defaults = {
        a.text("name"): _setting(a, source, functions, {}, "")
        for a in function.messages("attribute_proto")
    }
    return {k: v for k, v in (defaults | dict(node.settings)).items() if v is not None}


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    def known(value: str) -> str:
        return names.get(value, value)

    settings = {
        k: _renamed_graph(v, names) if isinstance(v, SourceGraph) else v
        for k, v in node.settings.items()
    }
    return replace(
        node,
        inputs=tuple(map(known, node.inputs)),
        outputs=tuple(map(known, node.outputs)),
        settings=settings,
    )


def _renamed_graph(graph: SourceGraph, names: Mapping[str, str]) -> SourceGraph:
    outputs = tuple(replace(v, name=names.get(v.name, v.name)) for v in graph.outputs)
    return replace(graph, nodes=tuple(_renamed(n, names) for n in graph.nodes), outputs=outputs)


def _node(
    message: Message,
    source: Path,
    functions: Functions,
    referred: Mapping[str, Setting],
    prefix: str,
) -> Node:
    settings = {
        a.text("name"): _setting(a, source, functions, referred, prefix)
        for a in message.messages("attribute")
    }
    domain = message.text("domain")
    return Node(
        message.text("op_type"),
        tuple(prefix + n if n else "" for n in message.texts("input")),
        tuple(prefix + n if n else "" for n in message.texts("output")),
        {k: v for k, v in settings.items() if v is not None},
        prefix + message.text("name") if message.text("name") else "",
        "" if domain in OWN_DOMAINS else domain,
    )


def _setting(
    message: Message,
    source: Path,
    functions: Functions,
    referred: Mapping[str, Setting],
    prefix: str,
) -> Setting | None:
    if reference := message.text("ref_attr_name"):
        return referred.get(reference)
    kind = message.integer("type")
    tensor, graph = message.message("t"), message.message("g")
    if kind == _INT or (not kind and "i" in message.fields):
        return message.integer("i")
    if kind == _FLOAT or (not kind and "f" in message.fields):
        return next(iter(message.numbers("f")), 0.0)
    if kind == _STRING or (not kind and "s" in message.fields):
        return message.text("s")
    if kind == _TENSOR and tensor is not None:
        return tensor_array(tensor, source)
    if kind == _GRAPH and graph is not None:
        inner = _graph(graph, source, functions)
        return _prefixed(inner, prefix) if prefix else inner
    sparse = message.message("sparse_tensor")
    if kind == _SPARSE and sparse is not None:
        return _dense(sparse, source)
    if kind == _FLOATS or (not kind and "floats" in message.fields):
        return tuple(message.numbers("floats"))
    if kind == _INTS or (not kind and "ints" in message.fields):
        return tuple(message.integers("ints"))
    return tuple(message.texts("strings")) if kind == _STRINGS else None


def _prefixed(graph: SourceGraph, prefix: str) -> SourceGraph:
    """A graph inside a function: its names are the function's, so all get the call's prefix."""

    def known(name: str) -> str:
        return prefix + name if name else ""

    nodes = tuple(
        replace(
            n,
            inputs=tuple(map(known, n.inputs)),
            outputs=tuple(map(known, n.outputs)),
            settings={
                k: _prefixed(v, prefix) if isinstance(v, SourceGraph) else v
                for k, v in n.settings.items()
            },
        )
        for n in graph.nodes
    )
    return replace(
        graph,
        nodes=nodes,
        inputs=tuple(replace(v, name=known(v.name)) for v in graph.inputs),
        outputs=tuple(replace(v, name=known(v.name)) for v in graph.outputs),
        constants={known(k): v for k, v in graph.constants.items()},
    )


def _value(message: Message) -> Value:
    name, kind = message.text("name"), message.message("type")
    optional = kind.message("optional_type") if kind is not None else None
    kind = optional.message("elem_type") if optional is not None else kind
    tensor = kind.message("tensor_type") if kind is not None else None
    if kind is not None and tensor is None and kind.fields:
        return Value(name, "sequence", None)
    if tensor is None:
        return Value(name, "undefined", None)
    shape = tensor.message("shape")
    dims = () if shape is None else shape.messages("dim")
    sizes = tuple(_size(dim, name, place) for place, dim in enumerate(dims))
    return Value(name, dtype_name(tensor.integer("elem_type")), None if shape is None else sizes)


def _size(message: Message, name: str, place: int) -> int | str:
    """A size, or the name of a free one. Of unnamed sizes, only the first, the batch, is assumed to
    be shared by other tensors."""
    size = message.integer("dim_value", -1)
    if size >= 0 and "dim_value" in message.fields:
        return size
    return message.text("dim_param") or (f"{name}.d{place}" if place else "d0")


def tensor_array(message: Message, source: Path) -> Array:
    """The numbers of a tensor: a view on the file where they lie there as they are."""
    shape = tuple(message.integers("dims"))
    dtype = dtype_name(message.integer("data_type"))
    name = message.text("name")
    if any(d < 0 for d in shape):
        raise BadModel("tensor {name!r} has a negative size", name)
    count = prod(shape)
    if dtype == "string":
        texts = message.texts("string_data")
        if len(texts) != count:
            raise BadModel(
                "tensor {name!r} has {found} texts, not {count}", name, len(texts), count
            )
        return np.array([t.encode() for t in texts], object).reshape(shape)
    if message.integer("data_location") == 1:
        raw = _external(message, source)
    else:
        blobs = message.blobs("raw_data")
        raw = blobs[-1] if blobs else None
    values = _listed(message, dtype) if raw is None else _stored(raw, dtype, name, count)
    if values.size < count or (values.size != count and dtype not in _NIBBLES):
        raise BadModel("tensor {name!r} has {found} values, not {count}", name, values.size, count)
    return frozen(np.ascontiguousarray(values[:count]).reshape(shape))


_NIBBLES = {"uint4": 4, "int4": 4, "uint2": 2, "int2": 2}
_HALVES = {"float16": "<u2", "bfloat16": "<u2"}


def _stored(raw: memoryview, dtype: str, name: str, count: int) -> Array:
    """Numbers as they lie in the file."""
    if dtype in _NIBBLES:
        return _unpacked(np.frombuffer(raw, np.uint8), dtype)
    if dtype == "bfloat16":
        return _from_bfloat16(np.frombuffer(raw[: len(raw) // 2 * 2], "<u2"))
    try:
        sort = np.dtype(dtype).newbyteorder("<")
    except TypeError:
        raise BadModel(
            "tensor {name!r} is {dtype}, which LiteRT does not compute with", name, dtype
        ) from None
    if len(raw) != sort.itemsize * count:
        raise BadModel(
            "tensor {name!r} has {bytes} bytes for {count} values", name, len(raw), count
        )
    return np.frombuffer(raw, sort).astype(dtype, copy=False)


def _listed(message: Message, dtype: str) -> Array:
    """Numbers that the file lists one by one."""
    field = {"float32": "float_data", "float64": "double_data", "int64": "int64_data"}.get(dtype)
    field = field or ("uint64_data" if dtype in ("uint32", "uint64") else "int32_data")
    if dtype in ("complex64", "complex128"):
        pairs = message.array("float_data" if dtype == "complex64" else "double_data")
        return (pairs[0::2] + 1j * pairs[1::2][: len(pairs[0::2])]).astype(dtype)
    values = message.array(field)
    if dtype == "bfloat16":
        return _from_bfloat16(values.astype(np.uint16))
    if dtype == "float16":
        return values.astype(np.uint16).view(np.float16)
    if dtype in _NIBBLES:
        return _unpacked(values.astype(np.uint8), dtype)
    try:
        return values.astype(dtype)
    except TypeError:
        raise BadModel(
            "{dtype} is an element type that LiteRT does not compute with", dtype
        ) from None


def _from_bfloat16(codes: Array) -> Array:
    return (codes.astype(np.uint32) << 16).view(np.float32)


def _unpacked(codes: Array, dtype: str) -> Array:
    """Small integers, several in a byte, lowest bits first, one a byte."""
    bits = _NIBBLES[dtype]
    places = np.arange(0, 8, bits, dtype=np.uint8)
    small = (codes[:, None] >> places & ((1 << bits) - 1)).reshape(-1)
    if dtype.startswith("u"):
        return small
    return np.where(small >= 1 << bits - 1, small.astype(np.int8) - (1 << bits), small).astype(
        np.int8
    )


def _external(message: Message, source: Path) -> memoryview:
    """The bytes of a tensor in a file beside the model."""
    told = {entry.text("key"): entry.text("value") for entry in message.messages("external_data")}
    name = message.text("name")
    place = source.parent / told.get("location", "").replace("\0", "")
    if not _is_beside(place, source):
        raise BadInput(
            "tensor {name!r} lies outside the model's folder, in {place}; it is not read",
            name,
            place,
        )
    if not place.is_file():
        raise BadInput(
            "tensor {name!r} lies in {place}, which is missing; put it beside the model",
            name,
            place,
        )
    data = map_file(place)
    start = _whole(told.get("offset", "0"))
    size = _whole(told.get("length", str(len(data) - start)))
    if start + size > len(data):
        raise BadModel("tensor {name!r} reaches beyond the end of {place}", name, place)
    return data[start : start + size]


def _is_beside(place: Path, source: Path) -> bool:
    """True for files in the model's folder or below it. A link must lead there, or to where the
    model itself is a link to, as in the cache of a hub."""
    real, link = (Path(os.path.realpath(one)) for one in (place, source))
    return real.is_relative_to(os.path.realpath(source.parent)) or (
        source.is_symlink() and place.parent == source.parent and real.parent == link.parent
    )


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadModel("{text!r} is no place in a file", text)
    return int(text)


def _dense(message: Message, source: Path) -> Array:
    """A sparse tensor with its zeros."""
    values, places = message.message("values"), message.message("indices")
    if values is None or places is None:
        raise BadModel("a sparse tensor lacks values or places")
    shape = tuple(message.integers("dims"))
    numbers, where = tensor_array(values, source), tensor_array(places, source)
    if prod(shape) > max(_LEAST_SPARSE, _MOST_TIMES * numbers.size):
        raise BadModel(
            "a sparse tensor of {count} values has {stored} that are not 0; no network has so few",
            prod(shape),
            numbers.size,
        )
    try:
        dense = np.zeros(shape, numbers.dtype)
        flat = where if where.ndim == 1 else np.ravel_multi_index(tuple(where.T), shape)
        if flat.size != numbers.size or flat.min(initial=0) < 0:
            raise IndexError
        dense.reshape(-1)[flat] = numbers.reshape(-1)
    except (ValueError, IndexError, TypeError):
        raise BadModel("a sparse tensor's values and places do not fit its shape") from None
    return frozen(dense)
