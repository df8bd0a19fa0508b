"""`profile`: where the time of a run goes, op by op."""

import os
from dataclasses import replace
from pathlib import Path

from litesmith.arguments import check_types
from litesmith.ir.types import Model
from litesmith.pages.overlay import refuse_name, times_overlay, write_overlay
from litesmith.profiling.op_times import Profile, profile_ops
from litesmith.profiling.trace import run_pieces, write_trace
from litesmith.progress import Note, Progress, silent
from litesmith.run.core.target import Target
from litesmith.run.session import Source
from litesmith.run.trial_run import probe_source
from litesmith.tflite.file import load, refuse_output
from litesmith.timing.chosen_cores import on_cores
from litesmith.timing.host import host, noise

Place = str | os.PathLike[str]


@check_types
def profile(
    model: Source,
    on: str | Target = "cpu:1",
    *,
    runs: int | None = None,
    cores: str | None = None,
    trace: Place | None = None,
    overlay: Place | None = None,
    progress: Progress = silent,
) -> Profile:
    """Times every op of a model on a CPU target: its share of a run, its kernel and its speed.

    >>> found = litesmith.profile("model.tflite", on="cpu:1", runs=12)
    >>> len(found.top(2))
    2

    The number of profiled `runs` is what fills about a second unless it is given. `cores` are those
    to run on: "big" or "little", where a processor has both, or numbers such as "0-3". `trace` is a
    file for ui.perfetto.dev (.json for Chrome's format), `overlay` a .json file for Model Explorer,
    which colours the graph by the times.
    """
    path = Path(model) if isinstance(model, str | os.PathLike) else None
    sources = () if path is None else (path,)
    outs = [Path(out) for out in (trace, overlay) if out is not None]
    if overlay is not None:
        refuse_name(Path(overlay))
    for out in outs:
        refuse_output(out, *sources)
    target = Target.parse(on)
    with on_cores(cores):
        probe_source(model, target)
        machine = host()
        warnings = noise(machine, [target])
        found = profile_ops(model, target, runs=runs)
    found = replace(found, model=str(path or "model"), host=machine, warnings=warnings)
    if trace is not None:
        written = write_trace(Path(trace), run_pieces(found.runs, Path(found.model).name))
        found = replace(found, trace=written)
    if overlay is not None:
        content = model if isinstance(model, Model) else load(model)
        for note in write_overlay(Path(overlay), content, times_overlay(content, found)):
            progress(Note(note))
    return found
