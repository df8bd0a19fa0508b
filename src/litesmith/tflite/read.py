"""Bytes to Model. Constants are views on the bytes; everything that is not modelled is kept in
`rest`.
"""

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np

from litesmith import schema
from litesmith.errors import BadModel
from litesmith.ir.dtype import DTYPES, stored_bytes
from litesmith.ir.types import (
    NONE_SET,
    Array,
    Block,
    Fields,
    Graph,
    Model,
    Op,
    Quant,
    Record,
    Signature,
    Tensor,
)
from litesmith.phrases import phrase
from litesmith.tflite.label_archive import detach
from litesmith.tflite.unpack import Source, Table

T = TypeVar("T")
Code = tuple[str, str, int]  # kind, custom name, version

_LEAST_BEHIND = 64

_KINDS = schema.ENUMS["BuiltinOperator"].names

# The first bytes of other formats, and the advice for each.
_STRANGERS = (
    (
        b"PK\x03\x04",
        phrase(
            "a zip archive; litesmith convert takes .keras and .pt2, and a .task holds a .tflite: "
            "unpack it"
        ),
    ),
    (
        b"\x89HDF",
        phrase("an HDF5 file (Keras .h5); save it as .keras, which litesmith convert takes"),
    ),
    (b"GGUF", phrase("a GGUF file; convert the original model to .tflite")),
    (b"\x08", phrase("a protobuf; litesmith convert makes a .tflite of an .onnx file")),
)


def read(data: memoryview) -> Model:
    """The model in the bytes of a .tflite file, or BadModel."""
    source = Source(data)
    _check_identifier(source)
    root = Table(source, source.follow(0, phrase("the root table")), "Model")
    if root.integer("version") != 3:
        raise BadModel(
            "schema version {integer}; only version 3 exists in the wild", root.integer("version")
        )
    buffers = [_content(buffer, source) for buffer in root.tables("buffers")]
    codes = [_code(code) for code in root.tables("operator_codes")]
    used: set[int] = {0}
    graphs = tuple(_graph(t, codes, buffers, used) for t in root.tables("subgraphs"))
    if not graphs:
        raise BadModel("the file has no graph")
    signatures = tuple(_signature(t, graphs) for t in root.tables("signature_defs"))
    metadata = tuple(_metadata(t, buffers, used) for t in root.tables("metadata"))
    rest = dict(root.rest(_MODEL_FIELDS))
    listed = root.integers("metadata_buffer")
    used.update(listed)
    if listed:
        rest["metadata_buffer"] = tuple(_at(buffers, i, "Model.metadata_buffer") for i in listed)
    spare = tuple(b for i, b in enumerate(buffers) if i not in used and b.size)
    return Model(
        graphs,
        signatures,
        metadata,
        root.text("description"),
        detach(data) or _behind(source),
        spare,
        _freeze(rest),
        tuple(source.unknown),
        tuple(source.mended),
    )


_MODEL_FIELDS = (
    "version operator_codes subgraphs description buffers metadata_buffer metadata signature_defs"
)


def _behind(source: Source) -> bytes:
    """The bytes behind the model, which are kept because their meaning is unknown. A few bytes are
    dropped: padding and unused tables, which builders of flatbuffers leave at the end.
    """
    rest = source.array[source.end :]
    return rest.tobytes() if rest.size >= _LEAST_BEHIND and rest.any() else b""


def _freeze(fields: Fields) -> Fields:
    return MappingProxyType(dict(fields)) if fields else NONE_SET


def _check_identifier(source: Source) -> None:
    if source.size == 0:
        raise BadModel("the file is empty")
    found = bytes(source.data[4:8])
    if found == schema.FILE_IDENTIFIER:
        return
    start = bytes(source.data[:4])
    hint = next(
        (
            phrase("; this looks like {what}", text)
            for magic, text in _STRANGERS
            if start.startswith(magic)
        ),
        "",
    )
    raise BadModel(
        "not a .tflite file: bytes 4 to 8 are {found!r}, not {file_identifier!r}{hint}",
        found,
        schema.FILE_IDENTIFIER,
        hint,
    )


def _content(table: Table, source: Source) -> Array:
    """A buffer's bytes, inside the flatbuffer or, in models over 2 GB, behind it."""
    data = table.array("data")
    if data is not None:
        return data
    return _outside(source, table.integer("offset"), table.integer("size"), "Buffer.offset")


def _outside(source: Source, offset: int, size: int, what: str) -> Array:
    if offset <= 1:  # the runtime, too, takes 0 and 1 as "not used"
        return np.zeros(0, np.uint8)
    source.end = max(source.end, offset + size)
    if offset + size > source.size:
        raise BadModel(
            "{what}: bytes {offset} to {offset2} of a file of {size}",
            what,
            offset,
            offset + size,
            source.size,
        )
    return source.array[offset : offset + size]


def _code(table: Table) -> Code:
    number = max(table.integer("builtin_code"), table.integer("deprecated_builtin_code"))
    if not 0 <= number < len(_KINDS):
        raise BadModel(
            "operator code {number} is not among the {count} that this version knows; a "
            "newer litesmith may know it",
            number,
            len(_KINDS),
        )
    return _KINDS[number], table.text("custom_code"), table.integer("version")


def _graph(table: Table, codes: Sequence[Code], buffers: Sequence[Array], used: set[int]) -> Graph:
    tensors = [_tensor(t, buffers, used) for t in table.tables("tensors")]
    tensors = [_with_blocks(tensor, tensors) for tensor in tensors]
    where = table.text("name") or "graph"
    return Graph(
        table.text("name"),
        _pick_tensors(tensors, table.integers("inputs"), phrase("inputs of {where!r}", where)),
        _pick_tensors(tensors, table.integers("outputs"), phrase("outputs of {where!r}", where)),
        tuple(_op(t, codes, tensors, i) for i, t in enumerate(table.tables("operators"))),
        tuple(tensors),
        table.rest("tensors inputs outputs operators name"),
    )


def _tensor(table: Table, buffers: Sequence[Array], used: set[int]) -> Tensor:
    number = table.integer("type")
    types = schema.ENUMS["TensorType"].names
    name = table.text("name")
    if not 0 <= number < len(types):
        raise BadModel(
            "tensor {name!r}: element type {number} is not among the {count} known",
            name,
            number,
            len(types),
        )
    shape = table.integers("shape")
    if any(d < 0 for d in shape):
        raise BadModel("tensor {name!r}: shape {shape} has a negative dimension", name, shape)
    sparsity = table.table("sparsity")
    index = table.integer("buffer")
    used.add(index)
    # Buffer 0 stands for no content, and the list of buffers may be empty.
    content = _at(buffers or _NO_BUFFERS, index, phrase("tensor {name!r}: buffer", name))
    tensor = Tensor(
        name,
        shape,
        types[number].lower(),
        variable=bool(table.integer("is_variable")),
        dynamic=table.integers("shape_signature") or None,
        sparsity=sparsity.record() if sparsity is not None else None,
    )
    quant, quant_rest = _quant(table.table("quantization"))
    if quant is not None and quant.axis and len(shape) == 1:
        # Older converters copied the axis of the weights to the bias, which has only one axis.
        # TensorFlow Lite Micro ignores it there; LiteRT refuses the file.
        quant = replace(quant, axis=0)
        table.source.mended.append(name)
    rest = {**table.rest(_TENSOR_FIELDS), **quant_rest}
    return replace(tensor, data=_constant(tensor, content), quant=quant, rest=_freeze(rest))


_NO_BUFFERS = (np.empty(0, np.uint8),)
_TENSOR_FIELDS = "shape type buffer name quantization is_variable sparsity shape_signature"


def _constant(tensor: Tensor, content: Array) -> Array | None:
    """The buffer as the tensor's constant; None where there is no content."""
    if content.size == 0:
        return None
    row = DTYPES[tensor.dtype]
    if tensor.sparsity is not None and row.is_plain:
        if content.size % (row.bits // 8):
            raise BadModel(
                "tensor {name!r}: {size} bytes are no whole {name2}s",
                tensor.name,
                content.size,
                row.name,
            )
        return content.view(row.storage)
    if row.bits and tensor.sparsity is None:
        needed = stored_bytes(tensor.dtype, tensor.elements)
        if needed != content.size:
            raise BadModel(
                "tensor {name!r}: {shape} of {name2} needs {needed} bytes, its buffer has {size}",
                tensor.name,
                tensor.shape,
                row.name,
                needed,
                content.size,
            )
    return content.view(row.storage).reshape(tensor.shape) if row.is_plain else content


def _quant(table: Table | None) -> tuple[Quant | None, Fields]:
    """The parameters, and the table's other fields for `rest`; None where the table has no usable
    parameters.
    """
    if table is None:
        return None, NONE_SET
    scale, zero_point = table.array("scale"), table.array("zero_point")
    details = table["details"]
    blockwise = isinstance(details, Record) and "scales" in details
    if (scale is None or scale.size == 0) and not blockwise:
        leftover = table.rest()
        return None, {
            "quantization": Record("QuantizationParameters", leftover)
        } if leftover else {}
    return (
        Quant(
            scale if scale is not None else np.zeros(0, np.float32),  # type: ignore[arg-type]
            zero_point if zero_point is not None else np.zeros(0, np.int64),  # type: ignore[arg-type]
            table.integer("quantized_dimension"),
            rest=table.rest("scale zero_point quantized_dimension"),
        ),
        NONE_SET,
    )


def _with_blocks(tensor: Tensor, tensors: Sequence[Tensor]) -> Tensor:
    """The tensor with the tensors of its blockwise scales in place of their indices."""
    details = tensor.quant.rest.get("details") if tensor.quant is not None else None
    if tensor.quant is None or not isinstance(details, Record) or "scales" not in details:
        return tensor
    what = phrase("tensor {name!r}: blockwise", tensor.name)
    points = details.integer("zero_points")
    block = Block(
        _at(tensors, details.integer("scales"), phrase("{what} scales", what)),
        _at(tensors, points, phrase("{what} zero points", what)) if points > 0 else None,
        details,
    )
    rest = {k: v for k, v in tensor.quant.rest.items() if k != "details"}
    return replace(tensor, quant=replace(tensor.quant, block=block, rest=_freeze(rest)))


def _op(table: Table, codes: Sequence[Code], tensors: Sequence[Tensor], index: int) -> Op:
    where = phrase("op {index}", index)
    kind, custom, version = _at(
        codes, table.integer("opcode_index"), phrase("{where}: opcode", where)
    )
    options = table.table("builtin_options") or table.table("builtin_options_2")
    rest = dict(table.rest(_OP_FIELDS))
    offset, size = (
        table.integer("large_custom_options_offset"),
        table.integer("large_custom_options_size"),
    )
    if offset > 1:
        rest["custom_options"] = _outside(
            table.source, offset, size, phrase("{where}: custom options", where)
        )
    return Op(
        kind,
        tuple(
            None if i == -1 else _at(tensors, i, phrase("{where} ({kind}): input", where, kind))
            for i in table.integers("inputs")
        ),
        _pick_tensors(
            tensors, table.integers("outputs"), phrase("{where} ({kind}): output", where, kind)
        ),
        options.record() if options is not None else None,
        version,
        custom,
        _pick_tensors(
            tensors,
            table.integers("intermediates"),
            phrase("{where} ({kind}): intermediate", where, kind),
        ),
        _freeze(rest),
    )


_OP_FIELDS = (
    "opcode_index inputs outputs builtin_options builtin_options_2 intermediates "
    "large_custom_options_offset large_custom_options_size"
)


def _signature(table: Table, graphs: Sequence[Graph]) -> Signature:
    key = table.text("signature_key")
    where = phrase("signature {key!r}", key)
    index = table.integer("subgraph_index")
    tensors = _at(graphs, index, phrase("{where}: graph", where)).tensors
    return Signature(
        key,
        index,
        *(
            tuple(
                (t.text("name"), _at(tensors, t.integer("tensor_index"), f"{where}: {side}"))
                for t in table.tables(side)
            )
            for side in ("inputs", "outputs")
        ),
        rest=table.rest("signature_key subgraph_index inputs outputs"),
    )


def _metadata(table: Table, buffers: Sequence[Array], used: set[int]) -> tuple[str, Array]:
    index = table.integer("buffer")
    used.add(index)
    return table.text("name"), _at(
        buffers, index, phrase("metadata {what!r}: buffer", table.text("name"))
    )


def _pick_tensors(
    tensors: Sequence[Tensor], indices: Sequence[int], what: str
) -> tuple[Tensor, ...]:
    return tuple(_at(tensors, i, what) for i in indices)


def _at(items: Sequence[T], index: int, what: str) -> T:
    if not 0 <= index < len(items):
        raise BadModel("{what} {index} does not exist; there are {count}", what, index, len(items))
    return items[index]
