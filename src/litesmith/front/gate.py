"""`gate` and `update_baseline`: is a model worse than its baseline allows?"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from litesmith.accuracy.metrics import Function, metric_name, metric_named
from litesmith.arguments import argument, check_types
from litesmith.data.preparation import Preparing, read_preparation
from litesmith.data.samples import Data
from litesmith.data.sources import Given
from litesmith.errors import BadInput, os_reason
from litesmith.evidence.folder import GATE, hold_folder
from litesmith.front.given_data import open_evaluation, type_options
from litesmith.front.resize import Shape
from litesmith.front.resized_copies import Rename, in_shape, shape_options
from litesmith.operating_system import quote
from litesmith.pages.folder_kinds import write_report
from litesmith.pages.gate_page import gate_junit, gate_markdown, gate_summary
from litesmith.phrases import phrase
from litesmith.progress import WARNING, Note, Progress, silent
from litesmith.regression.baseline import Baseline, baseline_to_update, read_baseline
from litesmith.regression.gate_measures import MOST_SECONDS, GateSettings
from litesmith.regression.gate_rules import Allowances, read_allowances
from litesmith.regression.gate_run import Gated, Renewed, renew_baseline, run_gate
from litesmith.run.core.target import Target
from litesmith.run.trial_run import probe
from litesmith.tflite.file import load, refuse_output, write_whole
from litesmith.timing.latency import Rule
from litesmith.type_guards import is_path
from litesmith.units import plain

Place = str | os.PathLike[str]

# GitHub shows what is appended to the file of this name beside the run.
_SUMMARY = "GITHUB_STEP_SUMMARY"


@check_types
def gate(
    baseline: Place,
    model: Place,
    data: Given | None = None,
    *,
    on: str | Target | None = None,
    metric: str | Function = "auto",
    against: Place | None = None,
    allow: Allowances = (),
    strict: bool = False,
    seconds: float = MOST_SECONDS,
    markdown: Place | None = None,
    junit: Place | None = None,
    out: Place | None = None,
    samples: int | None = None,
    shape: Shape | None = None,
    command: str = "",
    progress: Progress = silent,
    **preparing: Unpack[Preparing],
) -> Gated:
    """Holds a model against a baseline that `update_baseline` wrote, on the baseline's target.

    >>> allow = {"latency": "10%", "memory": "off"}
    >>> _ = litesmith.update_baseline(
    ...     "baseline.json", "model.tflite", "val.npz", allow=allow, seconds=0.1
    ... )
    >>> found = litesmith.gate("baseline.json", "model.tflite", "val.npz", seconds=0.1)
    >>> [check.verdict for check in found.checks if check.quantity in ("accuracy", "size")]
    ['ok', 'ok']

    `metric` is the baseline's; one of your own code is given again, because a file brings no code.
    `against` is a model that stands in for labels. `allow` replaces what the baseline allows, as in
    {"latency": "10%"}. `strict` makes what could not be told, or not for certain, worse too.
    `seconds` is the longest time to measure for. `markdown` and `junit` are files for a pull
    request and for CI; on GitHub the run's summary has the same. `out` is a folder for the record
    and a page. `shape` has models of free sizes measured in these, as in {"x": (1, 1280)};
    `command` is what the user typed, for the record.
    """
    _refuse_outputs((markdown, junit), (baseline, model, against, data))
    with (
        hold_folder(None if out is None else Path(out), GATE) as folder,
        in_shape(_files(model, against), shape) as (places, rename),
    ):
        manner = _manner(on, metric, places[1:], allow, (), seconds, _renamed(progress, rename))
        kept = read_baseline(Path(baseline))
        if data is not None:
            read_preparation(**preparing)  # a task of the user's own brings its metric
            _refuse_metric(Path(baseline), kept, manner)
        opened = _open(places[0], data, kept, manner, samples, preparing)
        found: Gated = rename(run_gate(Path(baseline), places[0], opened, manner))
        found = replace(_with_options(found, type_options(preparing, samples)), strict=strict)
        if folder is not None:
            folder.write_summary(gate_summary(found, command))
            found = replace(found, report=write_report(folder.path))
    for note in found.notes:
        progress(Note(note))
    _write(found, markdown, junit, progress)
    return found


@check_types
def update_baseline(
    baseline: Place,
    model: Place,
    data: Given | None = None,
    *,
    on: str | Target | None = None,
    accelerator: str | Sequence[str] = (),
    metric: str | Function = "auto",
    against: Place | None = None,
    allow: Allowances = (),
    seconds: float = MOST_SECONDS,
    samples: int | None = None,
    shape: Shape | None = None,
    ops: Sequence[str] = (),
    progress: Progress = silent,
    **preparing: Unpack[Preparing],
) -> Renewed:
    """Measures a model and writes what later ones are held against.

    >>> allow = {"latency": "off", "memory": "off", "size": "1%"}
    >>> made = litesmith.update_baseline("int8.json", "int8.tflite", allow=allow)
    >>> made.path.name
    'int8.json'

    What was allowed stays, and so does the target, which is cpu:1 at first. No `accelerator` that
    is named may lose ops later. `ops` are the sources of custom ops, for the command of the next
    gate.
    """
    _refuse_outputs((baseline,), (model, against, data))
    places = (accelerator,) if isinstance(accelerator, str) else tuple(accelerator)
    with in_shape(_files(model, against), shape) as (files, rename):
        tell = _renamed(progress, rename)
        manner = _manner(on, metric, files[1:], allow, places, seconds, tell)
        kept = baseline_to_update(Path(baseline))
        opened = _open(files[0], data, kept, manner, samples, preparing)
        made = renew_baseline(Path(baseline), files[0], opened, manner, called=str(model))
    command = f"litesmith gate {quote(str(baseline))} {quote(made.model)}{shape_options(shape)}"
    if made.scores is not None:
        command += f" --data {quote(made.scores.source)}"
    if against is not None:
        command += f" --against {quote(str(against))}"
    command += "".join(f" --ops {quote(source)}" for source in ops)
    return Renewed(Path(baseline), made, command + type_options(preparing, samples))


def _refuse_metric(path: Path, kept: Baseline, manner: GateSettings) -> None:
    """Raises where the baseline was scored by another metric, or by code that nobody gave."""
    if kept.scores is None:
        return
    then = kept.scores.metric
    if manner.metric not in ("auto", then):
        raise BadInput(
            "{path}: is of the metric {then}, not of {now}; leave out {metric}, or write a "
            "baseline of its own for each metric",
            path,
            plain(then),
            manner.metric,
            argument("metric"),
        )
    metric_named(then)


def _refuse_outputs(outs: Sequence[Place | None], inputs: Sequence[object]) -> None:
    """Refuses outputs that are also inputs."""
    files = [Path(one) for one in inputs if is_path(one)]
    for out in outs:
        if out is not None:
            refuse_output(Path(out), *files)


def _files(model: Place, against: Place | None) -> list[Path]:
    return [Path(one) for one in (model, against) if one is not None]


def _renamed(progress: Progress, rename: Rename) -> Progress:
    return lambda event: progress(rename(event))


def _manner(
    on: str | Target | None,
    metric: str | Function,
    against: Sequence[Path],
    allow: Allowances,
    places: tuple[str, ...],
    seconds: float,
    progress: Progress,
) -> GateSettings:
    """How the model is measured; wrong values are refused before the work."""
    Rule(seconds=seconds)
    return GateSettings(
        None if on is None else Target.parse(on),
        metric_name(metric),
        against[0] if against else None,
        read_allowances(allow),
        places,
        seconds,
        progress,
    )


def _open(
    model: Path,
    data: Given | None,
    kept: Baseline | None,
    manner: GateSettings,
    samples: int | None,
    preparing: Preparing,
) -> Data | None:
    """The data, once a child process has survived the model where it is measured."""
    preparation = read_preparation(**preparing)
    content = load(model)
    opened = None
    if data is not None:
        opened = open_evaluation(data, content, preparation, manner.progress, samples=samples)
    probe(model, manner.on or (kept.target if kept is not None else Target()))
    return opened


def _with_options(found: Gated, options: str) -> Gated:
    """With the data's options in the command that looks into accuracy, so that it can be run."""
    checks = tuple(
        replace(check, command=check.command + options) if check.quantity == "accuracy" else check
        for check in found.checks
    )
    return replace(found, checks=checks)


def _write(found: Gated, markdown: Place | None, junit: Place | None, progress: Progress) -> None:
    """Writes the files that were asked for, and what GitHub shows beside the run."""
    text = gate_markdown(found)
    if markdown is not None:
        write_whole(Path(markdown), [text.encode()])
    if junit is not None:
        write_whole(Path(junit), [gate_junit(found).encode()])
    summary = os.environ.get(_SUMMARY)
    if not summary:
        return
    try:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
    except OSError as error:
        told = phrase(
            "{summary}: no summary is written there ({strerror})", summary, os_reason(error)
        )
        progress(Note(told, WARNING))
