"""Numbers laid over a model's graph: files of node data for Model Explorer.

Such a file holds, by the id of a graph, one set of data: a value for each node, which is a text, or
a number coloured by a gradient. Model Explorer's converter for .tflite calls an op by its index,
and a graph by its name; a graph without a name is "main" if it is the first, else "subgraph_" and
its index. Two sets are two files, which Model Explorer opens together.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from litesmith.diagnosis.op_losses import OpError
from litesmith.errors import BadInput, CannotRun
from litesmith.ir.types import Graph, Model
from litesmith.operating_system import quote
from litesmith.phrases import phrase
from litesmith.profiling.op_times import OpTime, Profile
from litesmith.tflite.file import refuse_unwritable, write_whole
from litesmith.units import plain

Json = dict[str, object]
Place = tuple[int, int]  # the index of a graph, and of an op in it

# How Model Explorer colours values; it chooses the text colour itself. Times: from shortest to
# longest. Errors: relative to what 8 bits usually leave; decibels are not summed.
_TIMES: Json = {
    "gradient": [{"stop": 0, "bgColor": "#fff7ec"}, {"stop": 1, "bgColor": "#d7301f"}],
}
_ERRORS: Json = {
    "thresholds": [
        {"value": 10, "bgColor": "#d7301f"},
        {"value": 20, "bgColor": "#fc8d59"},
        {"value": 30, "bgColor": "#fdcc8a"},
    ],
    "hideAggregatedStats": ["sum", "avg"],
    "hideInChildrenStatsTable": True,
}

_TIME_DIGITS, _ERROR_DIGITS = 2, 1


@dataclass(frozen=True)
class Overlay:
    """One value for each op: a number that is coloured, or a text that says why there is none.

    style  how Model Explorer shows the values
    """

    title: str
    values: Mapping[Place, float | str]
    style: Json


def times_overlay(model: Model, profile: Profile) -> Overlay:
    """The time of every op in microseconds; an op that runs inside another names that op."""
    ops = [
        (number, index, plain(op.label))
        for number, graph in enumerate(model.graphs)
        for index, op in enumerate(graph.ops)
    ]
    if ops != [(op.graph, op.index, op.kind) for op in profile.ops]:
        raise CannotRun(
            "no overlay on {target}: what runs there is not the ops of the file one by one; "
            "use cpu:N",
            profile.target,
        )
    values = {(op.graph, op.index): _time(op) for op in profile.ops}
    return Overlay(phrase("time on {target}, µs", profile.target), values, _TIMES)


def _time(op: OpTime) -> float | str:
    if op.kernel and op.us is not None:
        return round(op.us, _TIME_DIGITS)
    return op.why if op.fused_into is None else phrase("in op {fused_into}", op.fused_into)


def errors_overlay(errors: Sequence[OpError]) -> Overlay:
    """The error that every op of the main graph adds by itself, as signal to noise in dB."""
    values = {(0, one.index): _error(one) for one in errors}
    return Overlay(phrase("SNR of each op alone, dB"), values, _ERRORS)


def _error(one: OpError) -> float | str:
    if one.snr_db is None:
        return one.why
    return round(one.snr_db, _ERROR_DIGITS) if math.isfinite(one.snr_db) else str(one.snr_db)


def refuse_name(path: Path) -> None:
    """Raises before the work where an overlay could not be written, or not be opened."""
    if path.suffix.lower() != ".json":
        raise BadInput("{path}: Model Explorer opens .json files; choose such a name", path)
    refuse_unwritable(path)


def write_overlay(path: Path, model: Model, overlay: Overlay) -> tuple[str, ...]:
    """Writes the file, whole or not at all; returns a sentence for each op that the file cannot
    show.
    """
    refuse_name(path)
    content, notes = node_data(model, overlay)
    write_whole(path, [json.dumps(content, indent=1, allow_nan=False).encode()])
    return notes


def node_data(model: Model, overlay: Overlay) -> tuple[Json, tuple[str, ...]]:
    """The content of the file, and a sentence for each op that Model Explorer cannot
    distinguish.
    """
    written: Json = {}
    notes: list[str] = []
    taken: set[str] = set()
    for number, graph in enumerate(model.graphs):
        name = _graph_id(number, graph)
        values = {op: value for (owner, op), value in overlay.values.items() if owner == number}
        if name in taken and values:
            notes.append(
                phrase(
                    "graph {number} is left out: an earlier one is called {name!r}",
                    number,
                    plain(name),
                )
            )
        elif values:
            results, vague = _results(graph, values)
            notes += [
                phrase("op {op} is left out: a tensor is called {op} too", op) for op in vague
            ]
            written[name] = {"name": overlay.title, "results": results, **overlay.style}
        taken.add(name)
    return written, tuple(notes)


def _results(graph: Graph, values: Mapping[int, float | str]) -> tuple[Json, list[int]]:
    """The values by a unique key of each op, and the ops without one.

    The key is the op's index. Where a tensor has that index as its name, which Model Explorer looks
    up first, the key is the name of the op's output.
    """
    names = Counter(tensor.name for tensor in graph.tensors)
    results: Json = {}
    vague: list[int] = []
    for index, value in values.items():
        own = [t.name for t in graph.ops[index].outputs if names[t.name] == 1]
        keys = own if str(index) in names else [str(index)]
        if keys:
            results[keys[0]] = {"value": value}
        else:
            vague.append(index)
    return results, vague


def _graph_id(number: int, graph: Graph) -> str:
    return graph.name or (f"subgraph_{number}" if number else "main")


def opening_command(model: Path, *overlays: Path) -> str:
    """The command that shows the model with its overlays."""
    paths = ",".join(map(str, overlays))
    return f"model-explorer {quote(str(model))} --node_data_paths={quote(paths)}"
