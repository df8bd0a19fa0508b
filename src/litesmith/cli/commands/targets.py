"""The command targets: what a model can run on, here and elsewhere."""

import json
from pathlib import Path
from shlex import quote
from typing import Annotated

import click

from litesmith.cli.commands.model import Json
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.ops_option import Ops
from litesmith.cli.text import inspect_text as show
from litesmith.diagnosis.all_targets import placement_facts
from litesmith.ir.types import Model
from litesmith.phrases import phrase
from litesmith.run.accelerators.targets import Delegate, with_custom
from litesmith.run.core.placement import Placement
from litesmith.tflite.file import load

Placed = list[tuple[Delegate, Placement | None]]


def targets(
    model: Annotated[
        Path | None,
        argument(
            metavar="[MODEL]", help="A .tflite file: what each makes of it.", show_default=False
        ),
    ] = None,
    compilers: Annotated[
        bool,
        option("--compile", help="Ask the compilers that are installed, not rules: slower."),
    ] = False,
    ops: Ops = None,
    as_json: Json = False,
) -> None:
    """Every accelerator: usable here or why not, and which ops of a model it takes."""
    placed = _placed(None if model is None else load(model), compilers)
    if as_json:
        click.echo(json.dumps({"schema": 1, "targets": [_as_json(*one) for one in placed]}))
    elif model is None:
        _print_targets()
    else:
        show.line(model.name, "bold")
        _print_placed(placed)
        _print_ways_out(placed, model)


def _placed(model: Model | None, compilers: bool) -> Placed:
    """What each target makes of the model; None where there is none, or it takes every op."""
    ways = [(one, one.place if compilers else one.predict) for one in with_custom()]
    return [
        (delegate, way(model) if way is not None and model is not None else None)
        for delegate, way in ways
    ]


def _print_targets() -> None:
    rows = show.table("target", "here", "why, and what to do")
    for delegate in with_custom():
        found = delegate.probe()
        told = f"{delegate.title}: {found.why}" + (f"; {found.how}" if found.how else "")
        rows.add_row(
            delegate.name, phrase("yes") if found.usable else phrase("no"), show.said(told)
        )
    show.console.print(rows)


def _print_placed(placed: Placed) -> None:
    rows = show.table("target", "taken", "left", "parts", "how", "why left", right=(1, 2, 3))
    last = ""
    for delegate, found in placed:
        if found is None:
            rows.add_row(delegate.name, "all", "", "", "", "")
            continue
        why = found.main_reason
        counts = (str(found.taken), str(found.left or ""), str(found.partitions or ""))
        told = show.said('"' if why and why == last else why)
        rows.add_row(delegate.name, *counts, found.how, told)
        last = why
    show.console.print(rows)
    show.heading("how")
    show.line("predicted: by rules from the makers' documents; --compile asks compilers instead")
    show.line("parts: pieces between which the CPU works; --json has a reason for each op")


def _print_ways_out(placed: Placed, path: Path) -> None:
    """The commands that make the model fit where its type keeps it out."""
    ways: dict[str, list[str]] = {}
    for delegate, found in placed:
        if found is not None and "way_out" in found.facts:
            ways.setdefault(str(found.facts["way_out"]), []).append(delegate.name)
    for way, names in ways.items():
        show.line(phrase("for {names}:", ", ".join(names)))
        show.command(f"  {way.replace('MODEL', quote(str(path)))}")


def _as_json(delegate: Delegate, found: Placement | None) -> show.Json:
    usable, why, how = delegate.probe()
    told: show.Json = {
        "name": delegate.name,
        "title": delegate.title,
        "usable": usable,
        "why": why,
        "how": how,
        "runs": delegate.runs,
    }
    return told if found is None else told | {"placement": placement_facts(found)}
