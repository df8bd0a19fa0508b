"""A view as JSON for the script: every text once, numbers as short as possible."""

import json
import math
from collections.abc import Mapping, Sequence
from glob import escape

from litesmith.graph_view.gather_view import GraphView
from litesmith.graph_view.graph_rows import GraphRows
from litesmith.graph_view.model_facts import ModelFacts
from litesmith.graph_view.op_facts import OpFacts, Place, TensorFacts, WeightBars
from litesmith.graph_view.op_measures import ErrorFact
from litesmith.graph_view.op_pairs import CHANGES
from litesmith.graph_view.row_blocks import Block
from litesmith.graph_view.row_order import INPUT, OP, GraphRow
from litesmith.lang.language import language, say
from litesmith.pages.drawing.markup import Html
from litesmith.pages.graph.graph_words import graph_words, kind_words
from litesmith.phrases import Phrase
from litesmith.run.core.placement import PREDICTED
from litesmith.units import plain

Json = dict[str, object]

_MOST_LETTERS = 2000  # letters of a name; longer names are cut
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_CHANGES = ("", *CHANGES)


class _Strings:
    """Every text once, by its number; 0 is no text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}

    def __call__(self, text: str) -> int:
        shown = say(text) if isinstance(text, Phrase) else text
        cut = shown if len(shown) <= _MOST_LETTERS else f"{shown[:_MOST_LETTERS]}…"
        return self._numbers.setdefault(cut, len(self._numbers))

    @property
    def listed(self) -> list[str]:
        return list(self._numbers)


def data_element(view: GraphView) -> Html:
    """The data inside the page. It is no script, and every `<` is escaped so that no element ends
    early.
    """
    text = json.dumps(graph_json(view), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    whole = safe.encode("utf-8", "replace").decode()  # a name may hold half of a surrogate pair
    return Html(f'<script type="application/json" class="graph-data">{whole}</script>')


def graph_json(view: GraphView) -> Json:
    strings = _Strings()
    sides = [_Side(model, strings) for model in view.models]
    found: Json = {
        "lang": language(),
        "words": graph_words(),
        "kindWords": kind_words(),
        "changes": _CHANGES,
        "targets": list(view.models[0].homes),
        "models": [
            {"name": one.name, "predicted": one.timing.how == PREDICTED} for one in view.models
        ],
        "ops": [side.ops(_errors(view, number)) for number, side in enumerate(sides)],
        "ends": [side.ends for side in sides],
        "graphs": [
            _graph(graph, number, sides, strings) for number, graph in enumerate(view.graphs)
        ],
        "path": _rows_of(view, view.path),
        "worst": view.worst,
        "keep": _keep(view, strings),
    }
    return found | {"tensors": [side.tensors for side in sides], "strings": strings.listed}


def _errors(view: GraphView, side: int) -> Mapping[int, ErrorFact]:
    return view.errors.ops if side == len(view.models) - 1 and view.is_pair else {}


def _rows_of(view: GraphView, ops: Sequence[int]) -> list[int]:
    """The rows of the main graph that hold these ops of the last model."""
    side = len(view.models) - 1
    wanted = set(ops)
    rows = enumerate(view.graphs[0].rows)
    return [place for place, row in rows if row.kind == OP and row.on(side) in wanted]


class _Side:
    """One model: its tensors once, its ops in one list."""

    def __init__(self, model: ModelFacts, strings: _Strings) -> None:
        self._model, self._strings = model, strings
        self._numbers: dict[int, int] = {}
        self._kept: list[TensorFacts] = []
        self.tensors: list[list[int]] = []
        self.places: dict[Place, int] = {place: n for n, place in enumerate(model.ops)}
        self.ends = [[[self._tensor(t) for t in end] for end in ends] for ends in model.ends]

    def _tensor(self, tensor: TensorFacts | None) -> int:
        if tensor is None:
            return -1
        if id(tensor) not in self._numbers:
            self._numbers[id(tensor)] = len(self.tensors)
            self._kept.append(tensor)
            name, kind, quant = map(self._strings, tensor[:3])
            self.tensors.append([name, kind, quant, int(tensor.is_const)])
        return self._numbers[id(tensor)]

    def ops(self, errors: Mapping[int, ErrorFact]) -> list[Json]:
        return [self._op(place, op, errors) for place, op in self._model.ops.items()]

    def _op(self, place: Place, op: OpFacts, errors: Mapping[int, ErrorFact]) -> Json:
        text, timing = self._strings, self._model.timing.ops.get(place)
        facts: Json = {
            "i": op.index,
            "k": text(op.kind),
            "n": text(op.name),
            "f": text(op.form),
            "p": text(op.options),
            "m": op.macs,
            "b": op.bytes,
            "in": [self._tensor(t) for t in op.inputs],
            "out": [self._tensor(t) for t in op.outputs],
            "q": list(op.calls),
        }
        if timing is not None:
            facts |= {"t": _short(timing.us), "r": text(timing.kernel), "y": text(timing.why)}
        if place[0] == 0:
            facts |= _error_json(errors.get(op.index), text)
            facts["a"] = [
                text(homes[op.index].why) * (1 if homes[op.index].is_taken else -1)
                - (not homes[op.index].is_taken)
                for homes in self._model.homes.values()
                if op.index < len(homes)
            ]
        facts["g"] = _bars_json(self._model.bars.get(place))
        return {key: value for key, value in facts.items() if _is_worth_writing(key, value)}


def _is_worth_writing(key: str, value: object) -> bool:
    return key in ("i", "k", "n", "in", "out") or value not in (None, 0, [])


def _error_json(error: ErrorFact | None, text: _Strings) -> Json:
    if error is None:
        return {}
    return {
        "e": error.alone_db,
        "s": error.total_db,
        "w": text(error.why),
        "x": None if error.seen is None else [_short(end) for end in error.seen],
        "c": None if error.covered is None else [_short(end) for end in error.covered],
    }


def _bars_json(bars: WeightBars | None) -> list[object] | None:
    """The two ends, and the square root of each bar's height as a digit of base 36."""
    if bars is None:
        return None
    most = max(bars.bars) or 1.0
    heights = "".join(_DIGITS[round(35 * math.sqrt(bar / most))] for bar in bars.bars)
    return [_short(bars.low), _short(bars.high), heights]


def _short(number: float | None) -> float | None:
    """Four digits, more than a page shows; None for NaN and infinity."""
    if number is None or not math.isfinite(number):
        return None
    return float(f"{number:.4g}")


def _graph(graph: GraphRows, number: int, sides: Sequence[_Side], strings: _Strings) -> Json:
    return {
        "name": graph.name,
        "rows": [_row(graph, place, row, number, sides) for place, row in enumerate(graph.rows)],
        "edges": [list(edge) for edge in graph.edges],
        "blocks": [_block(block, strings) for block in graph.blocks],
    }


def _row(
    graph: GraphRows, place: int, row: GraphRow, number: int, sides: Sequence[_Side]
) -> list[int]:
    kind = 0 if row.kind == OP else 1 if row.kind == INPUT else 2
    own = [-1, -1]
    for side, index in enumerate((row.a, row.b)[: len(sides)]):
        if index is not None:
            own[side] = index if kind else sides[side].places[number, index]
    return [kind, *own, _CHANGES.index(graph.changes[place]), graph.fused.get(place, -1)]


def _block(block: Block, strings: _Strings) -> list[object]:
    inside = [_block(one, strings) for one in block.inside]
    return [block.start, block.end, strings(block.title), block.number, block.of, inside]


def _keep(view: GraphView, strings: _Strings) -> Json | None:
    keep = view.keep
    if keep is None:
        return None
    names = {n: view.models[0].ops[0, n].outputs[0].name for n in keep.in_int16}
    wide = {n: name for n, name in names.items() if name and len(name) <= _MOST_LETTERS}
    return {
        "source": plain(keep.source),
        "scheme": keep.scheme,
        "options": keep.options,
        "choices": sorted(keep.choices),
        "kept": list(keep.kept),
        "wide": sorted(wide),
        "patterns": {str(number): escape(name) for number, name in sorted(wide.items())},
        "reasons": [[number, strings(why)] for number, why in keep.reasons.items()],
    }
