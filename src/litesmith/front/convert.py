"""`convert`: a model of another tool as a .tflite, proven on the same inputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Unpack, cast

import numpy as np

from litesmith.anatomy.source_file import SourceFile
from litesmith.arguments import check_types
from litesmith.conversion.core.lowering import Left
from litesmith.conversion.core.source import SourceModel
from litesmith.conversion.lower_model import SOURCE_DIGEST, Lowered, Tidied, tidied, with_sizes
from litesmith.conversion.open_to_convert import OpenedSource, open_to_convert
from litesmith.conversion.proof import (
    Inputs,
    OutputDifference,
    Run,
    differences,
    first_difference,
    made_inputs,
)
from litesmith.data.preparation import Preparation, Preparing, read_preparation
from litesmith.data.sources import Given
from litesmith.display import show_html, show_line
from litesmith.errors import BadInput, CannotApply
from litesmith.front.given_data import open_given
from litesmith.front.made_model import Json, Place, model_digest, read_place
from litesmith.installing import install_command
from litesmith.ir.types import Array, Model, frozen
from litesmith.passes.tidy.axis_order import first
from litesmith.passes.tidy.resize import split_shape
from litesmith.phrases import phrase
from litesmith.progress import Note, Progress, silent
from litesmith.tflite.file import digest, save
from litesmith.type_guards import is_path
from litesmith.units import bytes_text, number_text

Sizes = Sequence[int]

# How many inputs a conversion is proven on, where the user gives none.
_MADE_SAMPLES = 2
_MOST_SAMPLES = 8


@dataclass(frozen=True, repr=False, eq=False)
class Converted:
    """A model that came from another tool.

    source       the name of what was converted
    out          the file that was written, if one was
    left         nodes that LiteRT has no form for; there is no model where there are any
    turned       inputs and outputs that are channels last now
    differences  how far each output is from the source's
    judge        who ran the source: onnxruntime, onnx or torch; "" where nobody could
    judge_bytes  the most memory that running the source took, in a process of its own
    samples      how many inputs both were run on
    """

    source: str
    opset: int
    nodes: int
    out: Path | None = None
    made: Model | None = None
    left: tuple[Left, ...] = ()
    turned: frozenset[str] = frozenset()
    differences: tuple[OutputDifference, ...] = ()
    judge: str = ""
    judge_bytes: int = 0
    samples: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    __repr__ = show_line

    @property
    def model(self) -> Model:
        """The model, or CannotApply where parts of the source have no form in LiteRT."""
        if self.made is None:
            raise CannotApply("{source}: {told}", self.source, self.sentence)
        return self.made

    @property
    def is_as_asked(self) -> bool:
        return self.made is not None

    @property
    def sentence(self) -> str:
        if self.made is None:
            kinds = ", ".join(dict.fromkeys(left.kind for left in self.left))
            return phrase(
                "{count} of {nodes} nodes without a form in LiteRT: {kinds}",
                len(self.left),
                self.nodes,
                kinds,
            )
        ops = sum(len(graph.ops) for graph in self.made.graphs)
        size = bytes_text(SourceFile(self.made, self.out).bytes)
        return phrase("{nodes} nodes became {ops} ops, {size}", self.nodes, ops, size)

    def save(self, path: Place) -> None:
        """Writes the model to a file."""
        save(self.model, path)

    def to_rows(self) -> list[Json]:
        """One row for each output; for each node that is left where there is no model."""
        if self.made is None:
            return [{**left._asdict(), "opset": self.opset} for left in self.left]
        return [
            {
                "output": one.output,
                "layout": "NHWC" if one.output in self.turned else "",
                "largest_difference": one.largest,
                "of_largest_value": one.share,
            }
            for one in self.differences
        ]

    def to_json(self) -> Json:
        made = None if self.made is None else SourceFile(self.made, self.out)
        return {
            "schema": 1,
            "source": self.source,
            "opset": self.opset,
            "nodes": self.nodes,
            "out": None if self.out is None else str(self.out),
            "bytes": None if made is None else made.bytes,
            "digest": None if made is None else model_digest(made),
            "ops": 0 if self.made is None else sum(len(g.ops) for g in self.made.graphs),
            "channels_last": sorted(self.turned),
            "judge": self.judge,
            "judge_bytes": self.judge_bytes,
            "samples": self.samples,
            "differences": [one._asdict() for one in self.differences],
            "left": [one._asdict() for one in self.left],
            "seconds": self.seconds,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        return show_html(self, self.notes)


@check_types
def convert(
    source: object,
    example: object = None,
    *,
    out: Place | None = None,
    shape: Mapping[str, Sizes] | str | Sequence[str] = (),
    fix: Mapping[str, object] | str | Sequence[str] = (),
    keep_layout: bool = False,
    data: Given | None = None,
    samples: int | None = None,
    check: bool = True,
    progress: Progress = silent,
    **preparing: Unpack[Preparing],
) -> Converted:
    """A .tflite of a model of another tool, and the proof that both give the same.

    >>> litesmith.convert("model.onnx", out="converted.tflite").nodes
    1

    A torch module needs example inputs: `litesmith.convert(module, torch.zeros(1, 3, 224, 224))`.

    source       an .onnx, .pt2 or .keras file, a torch module with `example` inputs, an exported
                 program, a Keras model
    shape        sizes of inputs that the source leaves free: {"x": (1, 3, 224, 224)}
    fix          values of inputs that become constants: {"sr": 16000}
    keep_layout  leave images in the source's order of axes; else they are channels last
    data         samples to prove it on; else made ones
    check        False: write without running source and result
    """
    begun = perf_counter()
    place = read_place(out, Path(source) if is_path(source) else "")
    sizes = read_sizes(shape)
    opened = open_to_convert(source, example, sizes)
    constants = _read_values(fix, opened.model)
    count = len(opened.model.graph.nodes)
    progress(Note(phrase("converting {nodes} nodes", count)))
    done = with_sizes(opened.model, sizes, constants)
    notes = [*opened.model.notes, *done.notes]
    empty = Converted(opened.name, opened.model.opset, count, left=done.left, notes=tuple(notes))
    if done.model is None:
        return replace(empty, seconds=perf_counter() - begun)
    final = tidied(done.model, keep_layout)
    if opened.path is not None:
        final = final._replace(model=_marked(final.model, opened.path))
    seen: list[Inputs] = []
    found: tuple[OutputDifference, ...] = ()
    if check and opened.judge:
        preparation = read_preparation(**preparing)
        seen = (
            [made_inputs(*final, seed, opened.example) for seed in range(_MADE_SAMPLES)]
            if data is None
            else _samples(final, data, samples, preparation, progress)
        )
        progress(Note(phrase("running source and result on {count} inputs", len(seen))))
        run = partial(_with_constants, opened.run, constants)
        found = differences(final.model, final.turned, seen, run, opened.half)
        _refuse_wrong(opened, found, done, seen, run)
    elif check:
        notes.append(
            phrase(
                "not proven: nothing here runs the source; {install} brings what does",
                install_command("onnx"),
            )
        )
    if place is not None:
        save(final.model, place)
    return replace(
        empty,
        out=place,
        made=final.model,
        turned=final.turned,
        differences=found,
        judge=opened.judge if seen else "",
        judge_bytes=opened.bytes,
        samples=len(seen),
        seconds=perf_counter() - begun,
        notes=tuple(notes),
    )


def _marked(model: Model, source: Path) -> Model:
    """The model with the digest of what it was made of."""
    mark = frozen(np.frombuffer(digest(source).encode(), np.uint8).copy())
    return replace(model, metadata=((SOURCE_DIGEST, mark),))


def read_sizes(shape: object) -> dict[str, tuple[int, ...]]:
    """Sizes by input, from a mapping or from texts like `x=1,3,224,224`."""
    if isinstance(shape, Mapping):
        given = cast(Mapping[str, Sizes], shape)
        return {name: tuple(int(s) for s in sizes) for name, sizes in given.items()}
    texts = [shape] if isinstance(shape, str) else cast(Sequence[str], shape)
    return {name: tuple(sizes) for name, sizes in map(split_shape, texts)}


def _read_values(fix: object, source: SourceModel) -> dict[str, Array]:
    """Values of inputs that become constants, from a mapping or from texts like `sr=16000`."""
    texts = [fix] if isinstance(fix, str) else fix
    given = (
        dict(cast(Mapping[str, object], fix))
        if isinstance(fix, Mapping)
        else dict(_value(text) for text in cast(Sequence[str], texts))
    )
    known = {v.name: v for v in source.graph.inputs}
    for name in given:
        if name not in known:
            raise BadInput(
                "--fix {name}: the source has no such input; it has {names}",
                name,
                ", ".join(known),
            )
    return {name: np.asarray(value, known[name].dtype) for name, value in given.items()}


def _value(text: str) -> tuple[str, object]:
    name, equals, listed = text.partition("=")
    try:
        numbers = [float(word) if "." in word else int(word) for word in listed.split(",")]
    except ValueError:
        equals = ""
        numbers = [0]
    if not equals:
        raise BadInput("--fix {text}: give NAME=VALUE, as in --fix sr=16000", text)
    return name, numbers[0] if len(numbers) == 1 else numbers


def _with_constants(
    run: Run, constants: Inputs, samples: Sequence[Inputs], more: Sequence[str]
) -> Sequence[Mapping[str, Array]]:
    return run([{**inputs, **constants} for inputs in samples], more)


def _samples(
    final: Tidied,
    data: Given,
    count: int | None,
    preparation: Preparation,
    progress: Progress,
) -> list[Inputs]:
    """The user's inputs to compare on, in the order of the source."""
    model, turned = final
    opened = open_given(data, model, preparation, progress, samples=count or _MOST_SAMPLES)
    names = [tensor.name for tensor in model.main.inputs]
    return [
        {
            name: array.transpose(first(array.ndim)) if name in turned else array
            for name, array in zip(names, sample.inputs, strict=True)
        }
        for sample in opened
    ]


def _refuse_wrong(
    opened: OpenedSource,
    found: Sequence[OutputDifference],
    done: Lowered,
    samples: Sequence[Inputs],
    run: Run,
) -> None:
    """Raises where an output differs by more than float arithmetic does."""
    wrong = next((one for one in found if not one.is_float_error), None)
    if wrong is None or done.model is None:
        return
    nodes = opened.model.graph.nodes
    values = [name for node in nodes for name in node.outputs if name]
    place = first_difference(done.model, values, samples[wrong.sample], run)
    kind = next((node.kind for node in nodes if place and place in node.outputs), "")
    where = phrase(", first at {kind} {place!r}", kind, place) if kind else ""
    raise CannotApply(
        "{name}: output {output!r} differs by {share} of its largest value{where}; this is a fault "
        "of Litesmith: --no-check writes the file all the same",
        opened.name,
        wrong.output,
        number_text(float(f"{wrong.share:.2g}")),
        where,
    )
