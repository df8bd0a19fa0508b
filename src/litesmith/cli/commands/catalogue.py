"""The command catalogue: networks by name, what is known of them, and as files."""

import json
from pathlib import Path
from typing import Annotated

import click
from rich.text import Text

from litesmith.anatomy.footprint import Footprint, footprint
from litesmith.cli.commands.model import Json, refuse_place
from litesmith.cli.options.declare import argument, option
from litesmith.cli.text import inspect_text as show
from litesmith.errors import BadInput
from litesmith.ir.types import Model
from litesmith.networks import ROWS, Published, Row, Spec, build, load_weights, parse
from litesmith.networks.build_network import resolved
from litesmith.phrases import phrase
from litesmith.tflite.file import digest, refuse_unwritable, save
from litesmith.units import bytes_text, count_text


def catalogue(
    name: Annotated[
        str,
        argument(
            metavar="NAME",
            help="A network: NAME[:WIDTH][@RESOLUTION][/CLASSES], as in mobilenet_v2:0.5@160.",
            show_default=False,
        ),
    ] = "",
    out: Annotated[
        Path | None,
        option("-o", "--output", help="The .tflite file to write.", show_default=False),
    ] = None,
    classes: Annotated[
        int | None,
        option("--classes", help="How many classes it tells apart.", show_default=False),
    ] = None,
    weights: Annotated[
        Path | None,
        option(
            "--weights",
            metavar="FILE",
            help="Weights of yours: a .tflite, a torch state dict (.pt, .pth) or an .npz.",
            show_default=False,
        ),
    ] = None,
    head: Annotated[
        bool, option("--head/--no-head", help="Take the classifier of the weights too.")
    ] = True,
    seed: Annotated[int, option("--seed", help="Seed of the random weights.")] = 0,
    as_json: Json = False,
) -> None:
    """Networks by name: list them, look at one, or write it as a .tflite."""
    if not name:
        _refuse_lonely(out, classes, weights)
        _print_list(as_json)
        return
    spec = resolved(name, classes)
    if out is None:
        if weights is not None:
            raise BadInput("--weights {weights}: give the file to write too, with -o", weights)
        _print_one(spec, as_json)
        return
    _refuse_places(out, weights)
    model = build(spec, seed=seed) if weights is None else load_weights(spec, weights, head=head)
    save(model, out)
    origin = (
        phrase("random weights, seed {seed}", seed)
        if weights is None
        else phrase("weights of {name}", weights.name)
    )
    _print_written(spec, model, out, origin, as_json)


def _refuse_lonely(out: Path | None, classes: int | None, weights: Path | None) -> None:
    for name, value in (("-o", out), ("--classes", classes), ("--weights", weights)):
        if value is not None:
            raise BadInput("{name} {value}: of which network? give its NAME first", name, value)


def _refuse_places(out: Path, weights: Path | None) -> None:
    if weights is None:
        refuse_unwritable(out)
    else:
        refuse_place(out, weights)


def _counts(spec: Spec) -> Footprint:
    return footprint(build(spec, seed=None))


def _print_list(as_json: bool) -> None:
    facts = [_counts(parse(row.name)) for row in ROWS]
    if as_json:
        rows = [_as_json(parse(r.name), f) for r, f in zip(ROWS, facts, strict=True)]
        click.echo(json.dumps({"schema": 1, "networks": rows}))
        return
    sources = list(dict.fromkeys(_source(row) for row in ROWS))
    table = show.table("name", "what", "params", "MACs", "published", "by", right=(2, 3, 4, 5))
    for row, found in zip(ROWS, facts, strict=True):
        counts = count_text(found.parameters), count_text(found.macs)
        mark = str(sources.index(_source(row)) + 1)
        table.add_row(row.name, row.title, *counts, row.published[0].accuracy, mark)
    show.console.print(table)
    show.heading("by")
    for number, source in enumerate(sources, 1):
        show.line(f"{number:>2}  {source}")
    show.line(
        "published: accuracy of trained weights, which are not in the package; params and MACs "
        "are counted here"
    )
    show.command("litesmith catalogue mobilenet_v2:0.5@160 --classes 10 -o OUT.tflite")


def _source(row: Row) -> str:
    return f"{row.data}: {row.source}"


def _print_one(spec: Spec, as_json: bool) -> None:
    found = _counts(spec)
    if as_json:
        click.echo(json.dumps({"schema": 1} | _as_json(spec, found)))
        return
    row = spec.row
    show.line(f"{spec}: {row.title}", "bold")
    show.line(_work(found))
    show.line(
        phrase("input {shape}, {classes} classes", _shape_text(spec), spec.classes or row.classes)
    )
    show.line(phrase("normalisation of the published weights: {norm}", row.norm))
    show.heading(phrase("published ({source})", _source(row)))
    table = show.table("size", "params", "MACs", "accuracy", right=(1, 2, 3))
    for printed in row.published:
        table.add_row(
            Text(str(_size(row, printed))), printed.parameters, printed.macs, printed.accuracy
        )
    show.console.print(table)
    for why in dict.fromkeys(printed.differs for printed in row.published if printed.differs):
        show.line(phrase("MACs differ: {why}", why))
    show.command(f"litesmith catalogue {spec} -o OUT.tflite")


def _size(row: Row, printed: Published) -> Spec:
    return Spec(row.name, printed.width, printed.resolution)


def _shape_text(spec: Spec) -> str:
    shape = spec.row.shape or (spec.resolution, spec.resolution, 3)
    return " × ".join(map(str, shape))


def _work(found: Footprint) -> str:
    return phrase(
        "{count} parameters, {count2} MACs", count_text(found.parameters), count_text(found.macs)
    )


def _print_written(spec: Spec, model: Model, out: Path, origin: str, as_json: bool) -> None:
    found, size = footprint(model), out.stat().st_size
    if as_json:
        written = {"out": str(out), "bytes": size, "digest": digest(out), "weights": origin}
        told = _as_json(spec, found) | {"classes": model.main.outputs[0].shape[-1]}
        click.echo(json.dumps({"schema": 1} | told | written))
        return
    show.line(f"{out.name}: {bytes_text(size)}", "bold")
    show.line(f"{spec}, {origin}")
    show.line(_work(found))
    ends = [f"{t.name} {t.shape}" for t in (*model.main.inputs, *model.main.outputs)]
    show.line(" -> ".join(ends))


def _as_json(spec: Spec, found: Footprint) -> show.Json:
    row = spec.row
    return {
        "name": str(spec),
        "title": row.title,
        "width": spec.width,
        "input": list(row.shape or (spec.resolution, spec.resolution, 3)),
        "classes": spec.classes or row.classes,
        "norm": row.norm,
        "parameters": found.parameters,
        "macs": found.macs,
        "data": row.data,
        "source": row.source,
        "published": [
            {"size": str(_size(row, printed))} | printed._asdict() for printed in row.published
        ],
    }
