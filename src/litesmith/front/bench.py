"""`bench`: how long models take, on which targets, with how many threads."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from litesmith._version import VERSION
from litesmith.arguments import argument, check_types
from litesmith.diagnosis.all_targets import (
    ModelOnTargets,
    TargetsBench,
    bench_everywhere,
    placement_row,
)
from litesmith.errors import BadInput
from litesmith.evidence.bench_record import BenchedInside, BenchedModel, BenchSummary
from litesmith.evidence.folder import BENCH, Folder, hold_folder
from litesmith.evidence.log import Log
from litesmith.micro.boards import Room, find_room
from litesmith.micro.memory_report import MicroBench, MicroMemory, report_memory
from litesmith.micro.plan_file import check_file
from litesmith.pages.folder_kinds import write_report
from litesmith.progress import Progress, Status, silent
from litesmith.run.accelerators.targets import refuse_unusable
from litesmith.run.accelerators.tflite_micro import read_arena
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Lost
from litesmith.run.session import Source, read_once
from litesmith.run.trial_run import probe
from litesmith.temporary import temporary_file
from litesmith.tflite.file import digest, refuse_output
from litesmith.timing.bench_files import append_log, append_partial, write_csv
from litesmith.timing.chosen_cores import on_cores
from litesmith.timing.copies import Copies, time_copies
from litesmith.timing.latency import (
    Bench,
    Contender,
    Rule,
    list_contenders,
    measure,
    with_advice,
)
from litesmith.timing.threads import sweep

_SWEEP_SECONDS = 5.0
_COPIES_SECONDS = 2.0

Place = str | os.PathLike[str]

_ALL = argument("on", "all")
_LOOKS = argument("threads", "auto"), argument("copies", True)


@check_types
def bench(
    models: Source | Sequence[Source],
    on: str | Target | Sequence[str | Target] | None = None,
    *,
    threads: int | str | None = None,
    copies: bool = False,
    runs: int | None = None,
    seconds: float | None = None,
    warmup_runs: int | None = None,
    cores: str | None = None,
    cool: float = 0.0,
    fits: str | None = None,
    ram: int | str | None = None,
    flash: int | str | None = None,
    csv: Place | None = None,
    log: Place | None = None,
    out: Place | None = None,
    command: str = "",
    progress: Progress = silent,
) -> Bench | TargetsBench | MicroBench:
    """Times models on targets in one interleaved run, and compares each with the first.

    >>> found = litesmith.bench(["model.tflite", "int8.tflite"], on="cpu:1", seconds=0.1)
    >>> [comparison.ratio.verdict for comparison in found.comparisons]
    [...]

    `on` is a target or several, cpu:1 unless it is given; "all" is every target there is, and
    `out` then names a folder for the evidence and a page. `threads` stands for a CPU target;
    "auto" tries every thread count, alone and beside a load. `copies` also times the ways to
    feed inputs and to read outputs. The run ends after so many `runs` or `seconds`, or else
    once the interval is narrow. `cores` are those to run on: "big" or "little", where a
    processor has both, or numbers such as "0-3"; on a device its own are meant. Up to `cool`
    seconds pass before loads while the system holds a core below its highest clock, as against
    heat. `csv` and `log` are files for the rows and for every sample; `command` is what the
    user typed, for the records. On "micro" memory is told, not time: the arena and flash of a
    microcontroller; `fits` is a board, `ram` and `flash` are sizes such as "256K".
    """
    if _is_micro(on):
        return _bench_micro(models, find_room(fits, ram, flash))
    if any(one is not None for one in (fits, ram, flash)):
        raise BadInput("{fits} and sizes are for {on}", argument("fits"), argument("on", "micro"))
    rule = Rule(runs, seconds, warmup_runs, cool_seconds=cool, cores=cores)
    csv_file, log_file = _path(csv), _path(log)
    if _is_all(on):
        _refuse_beside_all({"threads": threads, "csv": csv, "copies": copies, "cores": cores})
        return _bench_all(_files(models), rule, log_file, _path(out), command, progress)
    if out is not None:
        raise BadInput(
            "{out}: a folder is written with {all}; {log} keeps these times",
            argument("out", out),
            _ALL,
            argument("log"),
        )
    auto = threads == "auto"
    group = list_contenders(models, _targets(on, threads))
    _refuse_outputs(group, csv_file, log_file)
    if auto or copies:
        _refuse_several(group)
    is_here = any(isinstance(one.target, Target) for one in group)
    with on_cores(cores if is_here else None):
        try:
            done = _measure(group, rule, auto, progress)
        except Lost as lost:
            append_partial(log_file, lost, _devices(group))
            raise
        if copies:
            progress(Status("copies"))
            done = replace(done, copies=_time_copies(group[0], seconds or _COPIES_SECONDS))
    if csv_file is not None:
        write_csv(csv_file, done)
    if log_file is not None:
        append_log(log_file, done)
    return done


def _is_micro(on: str | Target | Sequence[str | Target] | None) -> bool:
    """True where memory on a microcontroller is asked for, which has no times beside it."""
    listed = [on] if isinstance(on, str | Target) or on is None else [*on]
    names = [name.strip() for one in listed for name in str(one).split(",")]
    found = [name == "micro" for name in names]
    if any(found) and not all(found):
        raise BadInput(
            "{on}: micro tells memory, not time; bench on it alone", argument("on", str(on))
        )
    return all(found)


def _bench_micro(models: Source | Sequence[Source], room: Room | None) -> MicroBench:
    """The memory of each model, beside the interpreter's own account of it."""
    refuse_unusable(Target("micro"))
    found: list[MicroMemory] = []
    for one in list_contenders(models):
        read = read_once(one.source)
        check_file(read.model)
        told = read_arena(read.model, read.content)
        size = len(read.content)
        found.append(report_memory(Path(one.name).name, read.model, size, told=told, room=room))
    return MicroBench(tuple(found))


def _path(given: Place | None) -> Path | None:
    return None if given is None else Path(given)


def _is_all(on: object) -> bool:
    if not isinstance(on, str) or "all" not in on.split(","):
        return False
    if on != "all":
        raise BadInput(
            "{on}: all is every target there is; leave out the others", argument("on", on)
        )
    return True


def _refuse_beside_all(others: dict[str, object]) -> None:
    """Refuses what a bench on every target has no answer to."""
    for name, value in others.items():
        if value:
            raise BadInput(
                "{all} has no {name}; leave it out, or name the targets", _ALL, argument(name)
            )


def _targets(
    on: str | Target | Sequence[str | Target] | None, threads: int | str | None
) -> str | Target | Sequence[str | Target]:
    if threads is None:
        return "cpu:1" if on is None else on
    if on is not None:
        raise BadInput(
            "give {on} or {threads}, not both; a target has its threads, as in cpu:2",
            argument("on"),
            argument("threads"),
        )
    if threads == "auto":
        return "cpu:1"
    if not str(threads).isdecimal():
        raise BadInput("{threads}: give a number or auto", argument("threads", threads))
    return f"cpu:{threads}"


def _refuse_outputs(group: Sequence[Contender], csv: Path | None, log: Path | None) -> None:
    models = [Path(one.source) for one in group if isinstance(one.source, str)]
    for path in filter(None, (csv, log)):
        refuse_output(path, *models)
    if csv is not None and csv == log:
        raise BadInput(
            "{path}: {csv} and {log} need a file each", log, argument("csv"), argument("log")
        )


def _refuse_several(group: Sequence[Contender]) -> None:
    """Refuses what cannot be swept over threads, nor be fed in several ways."""
    if len({contender.name for contender in group}) > 1:
        raise BadInput("{threads} and {copies} look at one model; give one", _LOOKS[0], _LOOKS[1])
    if not isinstance(group[0].target, Target):
        raise BadInput(
            "{threads} and {copies} look at this machine; leave out the device",
            _LOOKS[0],
            _LOOKS[1],
        )


def _measure(group: Sequence[Contender], rule: Rule, auto: bool, progress: Progress) -> Bench:
    """One interleaved run, or the sweep over threads; a child process tries every file first."""
    for name, target in {
        one.name: one.target
        for one in group
        if isinstance(one.target, Target) and isinstance(one.source, str)
    }.items():
        probe(name, target)
    if not auto:
        return with_advice(measure(group, rule, progress))
    is_fixed = rule.runs is not None or rule.seconds is not None
    limits = rule if is_fixed else replace(rule, seconds=_SWEEP_SECONDS)
    situations = sweep(group[0].source, limits, progress)
    return replace(situations[0].bench, situations=situations)


def _time_copies(one: Contender, seconds: float) -> tuple[Copies, ...]:
    assert isinstance(one.target, Target)  # others have been refused
    if isinstance(one.source, str):
        return time_copies(one.source, one.target, seconds=seconds)
    with temporary_file(one.source) as path:
        return time_copies(path, one.target, seconds=seconds)


def _devices(group: Sequence[Contender]) -> str:
    """The devices of a group that are not this machine."""
    afar = [str(one.target) for one in group if not isinstance(one.target, Target)]
    return ", ".join(dict.fromkeys(afar))


# Every target there is.


def _files(models: Source | Sequence[Source]) -> list[Path]:
    """The files of models, which have to be there."""
    group = list_contenders(models)
    if not all(isinstance(one.source, str) for one in group):
        raise BadInput("{all}: other programs read the models; give .tflite files", _ALL)
    return [Path(one.name) for one in group]


def _bench_all(
    models: Sequence[Path],
    rule: Rule,
    log: Path | None,
    out: Path | None,
    command: str,
    progress: Progress,
) -> TargetsBench:
    """Every target there is; models one after another, each on record once it is measured."""
    if log is not None:
        refuse_output(log, *models)
    found: list[ModelOnTargets] = []
    with hold_folder(out, BENCH) as folder:
        for model in models:
            one = bench_everywhere(model, rule, progress)
            _keep(one, folder, log, command)
            found.append(one)
        page = None if folder is None else write_report(folder.path)
    return TargetsBench(tuple(found), page)


def _keep(one: ModelOnTargets, folder: Folder | None, log: Path | None, command: str) -> None:
    """Adds a trial for each target to the logs, and to the folder the home of each op."""
    name, own, host = one.model.name, digest(one.model), str(one.bench.host)
    for row in one.rows:
        trial = row.trial(name, own, host)
        if log is not None:
            Log(log).append(trial)
        if folder is not None:
            folder.add(trial)
    if folder is None:
        return
    placed = {row.target: row.placement for row in one.rows if row.placement is not None}
    rows = {target: placement_row(found) for target, found in placed.items()}
    folder.write_evidence(own, BenchedInside(1, name, rows))
    folder.write_summary(_summary(folder.summary(BenchSummary), one, own, command))


def _summary(
    known: BenchSummary | None, one: ModelOnTargets, own: str, command: str
) -> BenchSummary:
    """What the folder tells, with this model in place of what was known of it."""
    others = [other for other in known.models if other.digest != own] if known else []
    told = BenchedModel(
        model=one.model.name,
        digest=own,
        bytes=one.model.stat().st_size,
        targets=tuple(row.row for row in one.rows),
        warnings=one.bench.warnings,
    )
    return BenchSummary(
        schema=1,
        version=VERSION,
        command=command,
        models=(*others, told),
        environment=one.bench.host.facts(),
    )
