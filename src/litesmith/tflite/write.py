"""Model to bytes: one canonical file for each model, so that equal models give equal bytes."""

from collections.abc import Iterator, Mapping

import numpy as np

from litesmith import schema
from litesmith.errors import CannotApply
from litesmith.ir.types import Array, Graph, Model, Op, Quant, Signature, Tensor, memory_place
from litesmith.tflite.attached import attach
from litesmith.tflite.pack import Content, Node, Packer, Tail

# A flatbuffer holds less than 2 GiB; larger models keep their constants behind it.
ROOT_LIMIT = 2**31 - 2**26

# The runtime finds this op's compiled code by its place in the file, which a copy would move.
_BOUND_TO_THE_FILE = "DISPATCH_OP"

# Custom options beyond this many bytes go to the tail of the file, like constants.
_INLINE_BYTES = 4096

_UNIONS = {
    table: union
    for union in ("BuiltinOptions", "BuiltinOptions2")
    for table in schema.UNIONS[union]
}
_OPTION_FIELDS = {"BuiltinOptions": "builtin_options", "BuiltinOptions2": "builtin_options_2"}


def chunks(model: Model, root_limit: int = ROOT_LIMIT) -> Iterator[memoryview]:
    """The file piece by piece; constants are not copied."""
    written = 0
    for chunk in _Writer(model, root_limit).packer.chunks():
        written += len(chunk)
        yield chunk
    if model.attached:
        yield memoryview(attach(model.attached, written))


def to_bytes(model: Model, root_limit: int = ROOT_LIMIT) -> bytes:
    """The file as one bytes object."""
    return b"".join(chunks(model, root_limit))


class _Writer:
    """Numbers buffers and operator codes while the tables are laid out."""

    def __init__(self, model: Model, root_limit: int) -> None:
        _refuse_what_would_be_lost(model)
        self._outside = _content_bytes(model) > root_limit
        self._buffers: list[Array] = []
        self._buffer_numbers: dict[tuple[int, int], int] = {}
        self._codes: dict[tuple[str, str, int], int] = {}
        self.packer = Packer(schema.FILE_IDENTIFIER)
        self.packer.root(self._model(model))

    def _model(self, model: Model) -> Node:
        fields: dict[str, Content] = dict(model.rest)
        fields["subgraphs"] = [self._graph(graph) for graph in model.graphs]
        fields["operator_codes"] = [_code(*code) for code in self._codes]
        listed = model.rest.get("metadata_buffer")
        if isinstance(listed, tuple):
            fields["metadata_buffer"] = tuple(self._buffer(b) for b in listed)  # type: ignore[arg-type]
        fields["metadata"] = [
            Node("Metadata", {"name": name, "buffer": self._buffer(content)})
            for name, content in model.metadata
        ] or None
        for content in model.spare:
            self._buffer(content)
        numbers = [{t: i for i, t in enumerate(graph.tensors)} for graph in model.graphs]
        signatures = [_signature(s, numbers[s.graph]) for s in model.signatures]
        fields["signature_defs"] = signatures or None
        fields["buffers"] = [Node("Buffer", {}), *map(self._buffer_node, self._buffers)]
        fields["description"] = model.description or None
        fields["version"] = 3
        return Node("Model", fields)

    def _graph(self, graph: Graph) -> Node:
        numbers = {tensor: i for i, tensor in enumerate(graph.tensors)}
        fields: dict[str, Content] = dict(graph.rest)
        fields["tensors"] = [self._tensor(tensor, numbers) for tensor in graph.tensors]
        fields["inputs"] = tuple(numbers[t] for t in graph.inputs)
        fields["outputs"] = tuple(numbers[t] for t in graph.outputs)
        fields["operators"] = [self._op(op, numbers) for op in graph.ops]
        fields["name"] = graph.name or None
        return Node("SubGraph", fields)

    def _tensor(self, tensor: Tensor, numbers: Mapping[Tensor, int]) -> Node:
        fields: dict[str, Content] = dict(tensor.rest)
        fields["shape"] = tensor.shape
        fields["type"] = tensor.dtype.upper()
        fields["buffer"] = self._buffer(tensor.data) if tensor.data is not None else 0
        fields["name"] = tensor.name
        fields["is_variable"] = tensor.variable
        fields["sparsity"] = tensor.sparsity
        fields["shape_signature"] = tensor.dynamic
        if tensor.quant is not None:
            fields["quantization"] = _quant(tensor.quant, numbers)
        return Node("Tensor", fields)

    def _op(self, op: Op, numbers: Mapping[Tensor, int]) -> Node:
        fields: dict[str, Content] = dict(op.rest)
        code = (op.kind, op.custom, op.version)
        fields["opcode_index"] = self._codes.setdefault(code, len(self._codes))
        fields["inputs"] = tuple(-1 if t is None else numbers[t] for t in op.inputs)
        fields["outputs"] = tuple(numbers[t] for t in op.outputs)
        fields["intermediates"] = tuple(numbers[t] for t in op.intermediates) or None
        if op.options is not None:
            fields[_OPTION_FIELDS[_UNIONS[op.options.table]]] = op.options
        custom = _as_array(op.rest.get("custom_options"))
        if custom is not None and custom.nbytes > _INLINE_BYTES:
            fields["custom_options"] = None if self._outside else Tail(custom)
            if self._outside:
                fields["large_custom_options_offset"] = Tail(custom)
                fields["large_custom_options_size"] = custom.nbytes
        return Node("Operator", fields)

    def _buffer(self, content: Array) -> int:
        """The number of the buffer with this content; views on the same memory share one."""
        if content.nbytes == 0:
            return 0
        dense = np.ascontiguousarray(content)
        key = memory_place(dense)
        if key not in self._buffer_numbers:
            self._buffers.append(dense)  # keeps the memory, and so the key, alive
            self._buffer_numbers[key] = len(self._buffers)
        return self._buffer_numbers[key]

    def _buffer_node(self, content: Array) -> Node:
        if self._outside:
            return Node("Buffer", {"offset": Tail(content), "size": content.nbytes})
        return Node("Buffer", {"data": Tail(content)})


def _refuse_what_would_be_lost(model: Model) -> None:
    if model.lost:
        raise CannotApply(
            "the model uses {lost}, newer than the schema this version knows, and a copy "
            "would lose it; upgrade litesmith",
            ", ".join(model.lost),
        )
    if any(op.custom == _BOUND_TO_THE_FILE for _, _, op in model.ops()):
        raise CannotApply(
            "the model is compiled for an accelerator and refers to places in its own file; "
            "start from the model before compilation"
        )


def _content_bytes(model: Model) -> int:
    constants = (t.data.nbytes for g in model.graphs for t in g.tensors if t.data is not None)
    custom = (_as_array(op.rest.get("custom_options")) for _, _, op in model.ops())
    return sum(constants) + sum(c.nbytes for c in custom if c is not None)


def _as_array(content: Content) -> Array | None:
    if isinstance(content, bytes):
        return np.frombuffer(content, np.uint8)
    return content if isinstance(content, np.ndarray) else None


def _code(kind: str, custom: str, version: int) -> Node:
    number = schema.ENUMS["BuiltinOperator"].numbers[kind]
    fields: dict[str, Content] = {
        "deprecated_builtin_code": min(number, 127),
        "builtin_code": kind,
        "custom_code": custom or None,
        "version": version,
    }
    return Node("OperatorCode", fields)


def _quant(quant: Quant, numbers: Mapping[Tensor, int]) -> Node:
    fields: dict[str, Content] = dict(quant.rest)
    fields["scale"] = quant.scale if quant.scale.size else None
    fields["zero_point"] = quant.zero_point if quant.zero_point.size else None
    fields["quantized_dimension"] = quant.axis
    if quant.block is not None:
        details = quant.block.rest.set(scales=numbers[quant.block.scales])
        if quant.block.zero_points is not None:
            details = details.set(zero_points=numbers[quant.block.zero_points])
        fields["details"] = details
    return Node("QuantizationParameters", fields)


def _signature(signature: Signature, numbers: Mapping[Tensor, int]) -> Node:
    fields: dict[str, Content] = dict(signature.rest)
    fields["inputs"] = [_argument(name, numbers[t]) for name, t in signature.inputs]
    fields["outputs"] = [_argument(name, numbers[t]) for name, t in signature.outputs]
    fields["signature_key"] = signature.key
    fields["subgraph_index"] = signature.graph
    return Node("SignatureDef", fields)


def _argument(name: str, number: int) -> Node:
    return Node("TensorMap", {"name": name, "tensor_index": number})
