"""What stands out in a model, why it matters, and the command that acts on it."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from litesmith.anatomy.known_times import (
    KNOWN_CONVERSIONS,
    is_integer,
    is_slow_integer,
    known_us,
)
from litesmith.errors import CannotApply
from litesmith.ir.dtype import DTYPES
from litesmith.ir.ops import OPS
from litesmith.ir.types import Model, Op, Tensor
from litesmith.operating_system import quote
from litesmith.passes.core.layers import layers_of, unpacked_constants
from litesmith.passes.core.recipe import parse, step_name
from litesmith.passes.core.step import Context
from litesmith.passes.tidy.upgrade import legacy_tensors
from litesmith.phrases import join, phrase
from litesmith.tflite.write import chunks
from litesmith.units import bytes_text, factor_text, percent_text, plain

TIDY = "cleanup | fold | fuse"

# The recipe that turns 1×1 convolutions into fully connected layers at every place.
AS_CONNECTED = "rewrite(ops=[CONV_2D:FULLY_CONNECTED])"

# The command that keeps ops in float where they are faster in float.
QUANTIZE = "litesmith quantize FLOAT.tflite --data DATA -o OUT.tflite"

# Expected waste is mentioned from this share of a run and this many microseconds on.
_WORTH_TIME, _WORTH_US = 0.1, 5.0

# Wasted bytes are mentioned from this share of the file on.
_WORTH_SAYING = 0.01


class Finding(NamedTuple):
    """One observation. `command` is what a user types; it names the model as MODEL."""

    what: str
    why: str
    command: str

    @property
    def recipe(self) -> str:
        """The recipe that the command applies; "" where the command is another."""
        words = shlex.split(self.command)
        return words[3] if words[1:3] == ["apply", "MODEL"] else ""


def findings(model: Model) -> list[Finding]:
    """All findings about a model, in the order of `RULES`."""
    return [finding for rule in RULES for finding in rule(model)]


def scheme(model: Model) -> str:
    """How a model's numbers are stored, in the words of the documentation."""
    weights = Counter(t.dtype for t in _tensors(model) if t.is_const and _is_real(t))
    activations = Counter(t.dtype for t in _tensors(model) if not t.is_const and _is_real(t))
    if not weights and not activations:
        return phrase("no real numbers")
    quantized = {d for d in activations if not DTYPES[d].is_float}
    small = {d for d in weights if not DTYPES[d].is_float and d not in ("int32", "int64")}
    if not small and not quantized:
        return "float16 weights, float32 activations" if "float16" in weights else "float32"
    if not quantized:
        return phrase(
            "{what} weights, float activations (dynamic range or weight only)", _words(small)
        )
    mixed = phrase(", partly float") if any(DTYPES[d].is_float for d in activations) else ""
    return phrase(
        "{what} activations, {what2} weights{mixed}", _words(quantized), _words(small), mixed
    )


def _words(dtypes: set[str]) -> str:
    return " and ".join(sorted(dtypes)) or "no"


def _tensors(model: Model) -> Iterator[Tensor]:
    return (tensor for graph in model.graphs for tensor in graph.tensors)


def _is_real(tensor: Tensor) -> bool:
    return DTYPES[tensor.dtype].is_float or tensor.quant is not None


def _legacy(model: Model) -> Iterator[Finding]:
    count = len(legacy_tensors(model))
    if count:
        yield Finding(
            phrase("1 tensor is quantized as uint8")
            if count == 1
            else phrase("{count} tensors are quantized as uint8", count),
            phrase(
                "today's fast kernels take int8; uint8 runs the slow path, which made MobileNet v2 "
                "half as fast"
            ),
            'litesmith apply MODEL "upgrade" -o OUT.tflite',
        )


def _waste(model: Model) -> Iterator[Finding]:
    try:
        size = sum(map(len, chunks(model)))
    except CannotApply:  # a model that cannot be copied can still be inspected
        return
    tidy, edits = model, Counter[str]()
    for step in parse(TIDY):
        change = step.apply(tidy, Context())
        tidy = change.model
        edits[step_name(step)] += len(change.touched)
    ops = sum(len(g.ops) for g in model.graphs) - sum(len(g.ops) for g in tidy.graphs)
    saved = size - sum(map(len, chunks(tidy)))
    if ops or saved > _WORTH_SAYING * size:
        size_text = bytes_text(max(saved, 0))
        what = phrase("{ops} and {size}", _ops(ops), size_text) if ops else size_text
        yield Finding(
            phrase("{what} can go without a change of the results", what),
            phrase("edits: {edits}", _summary(edits)),
            f'litesmith apply MODEL "{TIDY}" -o OUT.tflite',
        )


def _ops(count: int) -> str:
    return phrase("1 op") if count == 1 else phrase("{count} ops", count)


def _summary(edits: Counter[str]) -> str:
    counts = [phrase("{count} by {step}", n, step) for step, n in edits.most_common() if n]
    return join(counts, ", ")


def _half(model: Model) -> Iterator[Finding]:
    unpacking = (op for graph in model.graphs for op in unpacked_constants(graph).values())
    stored = (op.inputs[0] for op in unpacking)
    packed = [t for t in stored if t is not None and t.dtype == "float16"]
    if packed:
        size = bytes_text(sum(t.nbytes for t in packed))
        yield Finding(
            phrase("1 constant, {size}, is float16 and unpacked by a DEQUANTIZE op", size)
            if len(packed) == 1
            else phrase(
                "{count} constants, {size}, are float16 and unpacked by DEQUANTIZE ops",
                len(packed),
                size,
            ),
            phrase(
                "half the file, but each load pays for the unpacking; float32 doubles these bytes"
            ),
            'litesmith apply MODEL "fold(float16=true) | fuse" -o OUT.tflite',
        )


def _free_shapes(model: Model) -> Iterator[Finding]:
    free = [t.name for t in model.main.inputs if t.dynamic]
    shaping = sum(1 for _, _, op in model.ops() if op.kind == "SHAPE")
    if free and shaping:
        yield Finding(
            phrase(
                "input {free!r} has a free dimension; {shaping} SHAPE ops compute with it",
                plain(free[0]),
                shaping,
            ),
            phrase(
                "a fixed size lets these be computed once; keep it free if you resize the input"
            ),
            'litesmith apply MODEL "fold(shapes=true) | cleanup" -o OUT.tflite',
        )


def _custom(model: Model) -> Iterator[Finding]:
    names = sorted({op.custom for _, _, op in model.ops() if op.is_custom})
    if names:
        yield Finding(
            phrase("custom operators: {names}", ", ".join(map(plain, names))),
            phrase("a runtime without their kernels refuses the model"),
            "litesmith inspect MODEL --ops",
        )


def _newer(model: Model) -> Iterator[Finding]:
    if model.lost:
        yield Finding(
            phrase("fields newer than this version's schema: {lost}", ", ".join(model.lost)),
            phrase("a copy would lose them, so apply refuses to write one"),
            "pip install --upgrade litesmith",
        )


def _misplaced_scales(model: Model) -> Iterator[Finding]:
    if model.mended:
        yield Finding(
            phrase(
                "{count} tensors of one axis have scales along another, {name!r} for one",
                len(model.mended),
                plain(model.mended[0]),
            ),
            phrase("LiteRT refuses the file for it; a copy has them right, and is what runs here"),
            'litesmith apply MODEL "cleanup" -o OUT.tflite',
        )


def _four_bits(model: Model) -> Iterator[Finding]:
    """1×1 convolutions with 4-bit weights, for which no fast kernel exists, and which are fully
    connected layers at every place."""
    windows = [
        op
        for op, layer in layers_of(model.main).items()
        if OPS[op.kind].is_convolution
        and (layer.data.dtype, layer.weight.dtype) == ("int8", "int4")
        and layer.weight.shape[1:3] == (1, 1)
    ]
    if windows:  # some have strides, or channels in groups
        (connect,) = parse(AS_CONNECTED)
        left = set(connect.apply(model, Context()).model.main.ops)
        windows = [op for op in windows if op not in left]
    if windows:
        yield Finding(
            phrase("{kinds} with int4 weights leave XNNPACK", _count_kinds(_kinds(windows))),
            phrase(
                "it has 4-bit kernels for fully connected layers alone, which these are at every "
                "place; the builtin kernel takes about four times as long"
            ),
            f"litesmith apply MODEL {quote(AS_CONNECTED)} -o OUT.tflite",
        )


def slow_integers(model: Model) -> Iterator[Finding]:
    """Ops in int8 that XNNPACK takes only in float, where float should pay."""
    ops = model.main.ops
    slow = [op for op in ops if is_slow_integer(op)]
    if not slow:
        return
    whole = sum(known_us(op, is_integer=is_integer(op)) for op in ops)
    now, then = (sum(known_us(op, is_integer=form) for op in slow) for form in (True, False))
    then += sum(2 * KNOWN_CONVERSIONS.of(t.elements) for op in slow for t in op.outputs)
    if now - then < max(_WORTH_TIME * whole, _WORTH_US):
        return
    yield Finding(
        phrase("{kinds} in int8 leave XNNPACK", _count_kinds(_kinds(slow))),
        phrase(
            "expected from the times of their kinds on another machine, not measured: {share} of a "
            "run, and a run {factor} with these ops in float, as quantize leaves them by default",
            percent_text(now / whole),
            factor_text(whole / (whole - now + then), phrase("faster")),
        ),
        QUANTIZE,
    )


def _kinds(ops: Sequence[Op]) -> Counter[str]:
    return Counter(op.kind for op in ops)


def _count_kinds(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())


RULES: tuple[Callable[[Model], Iterator[Finding]], ...] = (
    _newer,
    _misplaced_scales,
    _legacy,
    _waste,
    _half,
    slow_integers,
    _four_bits,
    _free_shapes,
    _custom,
)
