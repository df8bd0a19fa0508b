"""Finds what is wrong with data before any long work depends on it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from litesmith.data.guess_norm import class_count
from litesmith.data.readers import contents_digest
from litesmith.data.sample_splits import look_at_some
from litesmith.data.samples import Data
from litesmith.ir.ops import OPS, Row
from litesmith.ir.types import Array, Model, Tensor, constant_numbers
from litesmith.phrases import phrase
from litesmith.tflite.read_metadata import metadata
from litesmith.units import number_text, percent_text, plain

# The number of samples to look at: a second or two of decoding.
_MOST_SEEN = 256

# With fewer samples than the first number, accuracy suffers (32 cost MobileNet v2 half a point);
# with fewer than the second, ranges are random.
_ENOUGH, _HARDLY = 128, 8

# The largest sample is an outlier where its values reach this many times as far as all others'.
_FAR = 4.0
_FEWEST_FOR_OUTLIERS = 8

# A range is wrong where its width relative to the expected range is outside these bounds.
_NARROW, _WIDE = 1 / 16, 1.5

# Images use all of their range; where this share of it is empty at one end, they are shifted.
_EMPTY = 0.4

# A model whose first ops divide by this much or more was made for pixels of 0 to 255.
_PIXEL_DIVISOR = 50.0


class Problem(NamedTuple):
    """One observation; a serious one makes results worthless."""

    what: str
    why: str
    fix: str
    serious: bool


class Span(NamedTuple):
    """The values of one input in one sample."""

    low: float
    high: float
    finite: bool


@dataclass(frozen=True, eq=False)
class SeenData:
    """What the rules are applied to: a model, and what was read of its data.

    count    the number of samples in the data
    names    the samples that were looked at
    spans    for each of them, the span of each input; None where it holds no real numbers
    items    the digest of every item, and its name
    others   the digests of the evaluation data's items
    classes  the labels of items with their names
    """

    model: Model
    count: int
    names: tuple[str, ...]
    spans: tuple[tuple[Span | None, ...], ...]
    items: tuple[tuple[str, str], ...] = ()
    others: frozenset[str] = frozenset()
    classes: tuple[tuple[str, int], ...] = ()

    def inputs(self) -> Iterator[tuple[int, Tensor, list[tuple[str, Span]]]]:
        """The inputs that take real numbers, with the spans of each."""
        for place, tensor in enumerate(self.model.main.inputs):
            pairs = zip(self.names, (spans[place] for spans in self.spans), strict=True)
            spans = [(name, span) for name, span in pairs if span is not None]
            if spans:
                yield place, tensor, spans


def lint(data: Data, model: Model, *, evaluation: Data | None = None) -> list[Problem]:
    """Checks calibration data; yields every problem, in the order of `RULES`."""
    others = _digests(evaluation) if evaluation is not None else []
    seen = replace(
        _read_some(data, model),
        items=tuple(_digests(data)),
        others=frozenset(digest for digest, _ in others),
    )
    return [problem for rule in RULES for problem in rule(seen)]


def lint_evaluation(data: Data, model: Model) -> list[Problem]:
    """Checks the inputs of data on which a model is scored."""
    seen = _read_some(data, model)
    return [problem for rule in (_not_finite, _range) for problem in rule(seen)]


def _read_some(data: Data, model: Model) -> SeenData:
    few = look_at_some(data, _MOST_SEEN)
    # The inputs themselves are released at once: hundreds of them would fill the memory.
    looked = [(s.name, tuple(map(_span, s.inputs)), s.label) for s in few]
    return SeenData(
        model,
        len(data),
        tuple(name for name, _, _ in looked),
        tuple(spans for _, spans, _ in looked),
        classes=tuple(_classes(data, [(name, label) for name, _, label in looked])),
    )


def _digests(data: Data) -> list[tuple[str, str]]:
    """The digest of every item with its name."""
    stored = data.items.stored
    if stored is not None:
        return list(zip(stored.digests, stored.names, strict=True))
    return [(contents_digest(sample.inputs), sample.name) for sample in data]


def _span(array: Array) -> Span | None:
    if array.dtype.kind != "f" or not array.size:
        return None
    finite = np.isfinite(array)
    if finite.all():
        return Span(float(array.min()), float(array.max()), True)
    kept = array[finite]
    return Span(float(kept.min()), float(kept.max()), False) if kept.size else Span(0, 0, False)


def _classes(data: Data, labels: list[tuple[str, Array | None]]) -> Iterator[tuple[str, int]]:
    stored = data.items.stored
    if stored is not None:
        numbers = stored.classes
        yield from zip(stored.names, [] if numbers is None else numbers.tolist(), strict=False)
        return
    for name, label in labels:
        if label is not None and label.dtype.kind in "iu" and label.ndim == 1:
            yield from ((name, int(number)) for number in label)


def _not_finite(seen: SeenData) -> Iterator[Problem]:
    for _, tensor, spans in seen.inputs():
        bad = [name for name, span in spans if not span.finite]
        if bad:
            yield Problem(
                phrase(
                    "{count} of {count2} samples hold NaN or infinity for input {name!r}, first "
                    "{bad}",
                    len(bad),
                    len(spans),
                    plain(tensor.name),
                    plain(bad[0]),
                ),
                phrase("a single one spoils every range and every answer computed from it"),
                phrase("remove these samples, or repair their source"),
                True,
            )


def _constant(seen: SeenData) -> Iterator[Problem]:
    for _, tensor, spans in seen.inputs():
        flat = [name for name, span in spans if span.finite and span.low == span.high]
        if flat and tensor.elements > 1:
            yield Problem(
                phrase(
                    "{count} of {count2} samples have one value everywhere in input {name!r}, "
                    "first {flat}",
                    len(flat),
                    len(spans),
                    plain(tensor.name),
                    plain(flat[0]),
                ),
                phrase("they say nothing about the ranges inside the model"),
                phrase("remove them, or check their source"),
                len(flat) > len(spans) // 2,
            )


def _range(seen: SeenData) -> Iterator[Problem]:
    for place, tensor, spans in seen.inputs():
        wanted, source = _wanted_range(seen.model, place)
        low, high = min(s.low for _, s in spans), max(s.high for _, s in spans)
        width = 0.0 if wanted is None else wanted[1] - wanted[0]
        if wanted is None or low == high or not width > 0:
            continue
        share = (high - low) / width
        if _NARROW <= share <= _WIDE:
            if len(spans) >= _HARDLY and max(low - wanted[0], wanted[1] - high) > _EMPTY * width:
                yield _part_of_range(tensor, (low, high), f"{source} {_ends(wanted)}")
            continue
        doubled = share < _NARROW
        yield Problem(
            phrase(
                "input {name!r} gets values from {ends}; {source} {ends2}",
                plain(tensor.name),
                _ends((low, high)),
                source,
                _ends(wanted),
            ),
            phrase(
                "normalised twice: the model normalises itself, or its metadata states another "
                "normalisation"
            )
            if doubled
            else phrase("not normalised: the values lie far outside what the model was made for"),
            phrase("give pixels of 0 to 255 and let the model or --norm scale them")
            if doubled
            else phrase("scale the data as the model expects, or set --norm"),
            True,
        )


def _part_of_range(tensor: Tensor, found: tuple[float, float], wanted: str) -> Problem:
    return Problem(
        phrase(
            "input {name!r} gets values from {ends} only; {wanted}",
            plain(tensor.name),
            _ends(found),
            wanted,
        ),
        phrase("images fill their range, so these may be normalised another way"),
        phrase("compare the accuracy under other settings of --norm"),
        False,
    )


def _ends(span: tuple[float, float]) -> str:
    return f"{number_text(span[0])} to {number_text(span[1])}"


def _wanted_range(model: Model, place: int) -> tuple[tuple[float, float] | None, str]:
    """The range for which an input was made, where the model says so, and how the model says it."""
    tensor = model.main.inputs[place]
    described = metadata(model).inputs
    norm = described[place] if place < len(described) else None
    if norm is not None:
        ends = [(np.array(e) - norm.mean) / norm.std for e in (0.0, 255.0)]
        return (float(np.min(ends)), float(np.max(ends))), phrase("the model's metadata wants")
    if own_divisor(model, tensor) >= _PIXEL_DIVISOR:
        return (0.0, 255.0), phrase("the model's first ops scale pixels themselves, so it wants")
    quant = tensor.quant
    if quant is not None and quant.scale.size == 1 and tensor.dtype in ("int8", "uint8"):
        stored = np.iinfo(tensor.dtype)
        scale, zero = float(quant.scale[0]), int(quant.zero_point[0])
        return (scale * (stored.min - zero), scale * (stored.max - zero)), phrase("its scale holds")
    return None, ""


def own_divisor(model: Model, tensor: Tensor) -> float:
    """The divisor that a model's first ops apply to an input before anything else."""
    divisor = 1.0
    while True:
        readers = [op for op in model.main.ops if any(t is tensor for t in op.inputs)]
        if len(readers) != 1 or not readers[0].outputs:
            return divisor
        op = readers[0]
        plain_inputs = [t for t in op.inputs if t is not None and t.quant is None]
        numbers = [n for n in map(constant_numbers, plain_inputs) if n is not None and n.size]
        row = OPS[op.kind]
        if row.arithmetic in ("*", "/") and len(numbers) == 1:
            factor = float(np.abs(numbers[0].astype(np.float64)).max())
            divisor *= factor if row.arithmetic == "/" else 1 / max(factor, 1e-12)
        elif not (_passes(row) or (row.arithmetic and len(numbers) == 1)):
            return divisor
        tensor = op.outputs[0]


def _passes(row: Row) -> bool:
    """True for ops after which pixels are still pixels, in another type, order, frame or shape."""
    return row.converts or row.pads or row.transposes or (row.reshapes and row.takes_shape)


def _few(seen: SeenData) -> Iterator[Problem]:
    if seen.count >= _ENOUGH:
        return
    serious = seen.count < _HARDLY
    yield Problem(
        phrase("{count} samples", seen.count),
        phrase("ranges of so few samples are chance")
        if serious
        else phrase(
            "fewer than {enough} cost accuracy: 32 cost MobileNet v2 half a point", _ENOUGH
        ),
        phrase("give {enough} or more, like those the model will see", _ENOUGH),
        serious,
    )


def _outliers(seen: SeenData) -> Iterator[Problem]:
    for _, tensor, spans in seen.inputs():
        largest = sorted((max(-s.low, s.high), name) for name, s in spans)
        few = max(1, len(spans) // 50)
        if len(spans) < _FEWEST_FOR_OUTLIERS:
            continue
        usual, (top, name) = largest[-1 - few][0], largest[-1]
        most = percent_text(1 - few / len(spans))
        if top > _FAR * usual > 0:
            yield Problem(
                phrase(
                    "{name} reaches {number} in input {name2!r}; {most} of the samples stay "
                    "within {number2}",
                    plain(name),
                    number_text(top),
                    plain(tensor.name),
                    most,
                    number_text(usual),
                ),
                phrase("a range that has to hold it leaves few steps for all others"),
                phrase("remove it if it is an error; otherwise use percentile ranges"),
                False,
            )


def _leaks(seen: SeenData) -> Iterator[Problem]:
    shared = [name for digest, name in seen.items if digest in seen.others]
    if shared:
        yield Problem(
            phrase(
                "{count} of {count2} samples are also in the evaluation data, first {shared}",
                len(shared),
                len(seen.items),
                plain(shared[0]),
            ),
            phrase("accuracy on samples that the model was tuned to says nothing about others"),
            phrase("calibrate on other samples than those you evaluate on"),
            True,
        )


def _labels(seen: SeenData) -> Iterator[Problem]:
    count = class_count(seen.model)
    if count is None:
        return
    bad = [(name, number) for name, number in seen.classes if not 0 <= number < count]
    if bad:
        yield Problem(
            phrase(
                "{count} of {count2} labels are outside the model's classes 0 to {count3}, "
                "first {bad} of {bad2}",
                len(bad),
                len(seen.classes),
                count - 1,
                bad[0][1],
                plain(bad[0][0]),
            ),
            phrase("such a sample can never be right"),
            phrase("correct the labels, or say --label-offset"),
            True,
        )


def _duplicates(seen: SeenData) -> Iterator[Problem]:
    total = len(seen.items)
    copies = total - len({digest for digest, _ in seen.items})
    if copies:
        yield Problem(
            phrase("{copies} of {total} samples are copies of others", copies, total),
            phrase("they count twice and add nothing new"),
            phrase("remove them"),
            copies > total // 2,
        )


RULES: tuple[Callable[[SeenData], Iterator[Problem]], ...] = (
    _not_finite,
    _constant,
    _range,
    _few,
    _outliers,
    _leaks,
    _labels,
    _duplicates,
)
