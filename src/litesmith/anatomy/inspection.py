"""`inspect`: what is in a model."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from litesmith.anatomy.findings import Finding, findings, scheme
from litesmith.anatomy.footprint import Footprint, footprint, op_constant_bytes, op_macs
from litesmith.anatomy.source_file import Source, SourceFile, open_source
from litesmith.arguments import check_types
from litesmith.blocks.structure import Structure, structure_of
from litesmith.display import show_html, show_line
from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.operating_system import quote
from litesmith.phrases import phrase
from litesmith.units import count_text, plain

Json = dict[str, object]


@dataclass(frozen=True, repr=False, eq=False)
class Inspection:
    """What is in a model: ops, weights, MACs, sizes, quantization, and what stands out.

    lists_ops  True where every op is listed
    structure  attention, recurrences and other patterns of the main graph
    """

    source: SourceFile
    footprint: Footprint
    scheme: str
    findings: tuple[Finding, ...]
    lists_ops: bool = False
    structure: Structure = field(default_factory=Structure)

    __repr__ = show_line

    @property
    def model(self) -> Model:
        return self.source.model

    @property
    def sentence(self) -> str:
        cost = self.footprint
        return phrase(
            "{ops} ops, {parameters} parameters, {macs} MACs; {scheme}",
            sum(cost.ops.values()),
            count_text(cost.parameters),
            count_text(cost.macs),
            self.scheme,
        )

    def to_rows(self) -> list[Json]:
        """One row for each kind of op, most MACs first; or one for each op."""
        if self.lists_ops:
            return [_op_json(*place, self.structure.names) for place in self.model.ops()]
        cost = self.footprint
        return [
            {
                "op": plain(kind),
                "count": cost.ops[kind],
                "macs": cost.macs_by_kind.get(kind, 0),
                "constant_bytes": cost.bytes_by_kind.get(kind, 0),
            }
            for kind in sorted(cost.ops, key=lambda kind: -cost.macs_by_kind.get(kind, 0))
        ]

    def to_json(self) -> Json:
        cost, graph = self.footprint, self.model.main
        shown: Json = {
            "schema": 1,
            "file_bytes": self.source.bytes,
            "gzip_bytes": self.source.gzip_bytes,
            "parameters": cost.parameters,
            "macs": cost.macs,
            "peak_activation_bytes": cost.peak_activation_bytes,
            "ops": cost.ops,
            "scheme": self.scheme,
            "structure": self.structure.sentences,
            "bytes_by_op": cost.bytes_by_kind,
            "bytes_by_type": cost.bytes_by_dtype,
            "inputs": [_tensor_json(tensor) for tensor in graph.inputs],
            "outputs": [_tensor_json(tensor) for tensor in graph.outputs],
            "signatures": [plain(signature.key) for signature in self.model.signatures],
            "metadata": {plain(name): value.nbytes for name, value in self.model.metadata},
            "findings": [finding._asdict() for finding in self.findings],
        }
        return shown | {"op_list": self.to_rows()} if self.lists_ops else shown

    def _repr_html_(self) -> str:
        return show_html(self, [f"{one.what}: {one.why}" for one in self.findings])


@check_types
def inspect(model: Source, *, ops: bool = False) -> Inspection:
    """What is in a model: ops, weights, MACs, sizes, quantization, and what stands out.

    >>> litesmith.inspect("model.tflite").footprint.macs
    39232
    """
    source = open_source(model)
    content = source.model
    found = tuple(_with_path(finding, source) for finding in findings(content))
    facts = footprint(content), scheme(content), found
    return Inspection(source, *facts, lists_ops=ops, structure=structure_of(content))


def _with_path(finding: Finding, source: SourceFile) -> Finding:
    """The finding with a command that can be pasted."""
    typed = "MODEL" if source.path is None else quote(str(source.path))
    return finding._replace(command=finding.command.replace("MODEL", typed))


def _op_json(graph: Graph, index: int, op: Op, names: Mapping[Op, str]) -> Json:
    named: Json = {"part": names[op]} if op in names else {}
    return named | {
        "graph": plain(graph.name),
        "index": index,
        "kind": plain(op.label),
        "outputs": [_tensor_json(tensor) for tensor in op.outputs],
        "macs": op_macs(op),
        "constant_bytes": op_constant_bytes(op),
    }


def _tensor_json(tensor: Tensor) -> Json:
    shown: Json = {"name": plain(tensor.name), "dtype": tensor.dtype, "shape": list(tensor.shape)}
    if tensor.dynamic is not None:
        shown["dynamic"] = list(tensor.dynamic)
    if tensor.quant is not None:
        shown["scale"] = tensor.quant.scale.tolist()
        shown["zero_point"] = tensor.quant.zero_point.tolist()
    return shown
