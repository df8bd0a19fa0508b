"""`litesmith bench`: how long models take, and which is faster."""

import csv
import io
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from statistics import mean
from typing import Annotated

import click

from litesmith.cli.commands.model import Json, refuse_place
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.ops_option import Ops
from litesmith.cli.text import bench_text
from litesmith.cli.text.bench_all_text import Seen, keep, kept_in, print_all, print_all_json
from litesmith.cli.text.progress_text import Terminal
from litesmith.diagnosis.all_targets import everywhere
from litesmith.errors import BadInput
from litesmith.evidence import Log, Measurement, Trial
from litesmith.lang.speech import say
from litesmith.progress import Status
from litesmith.run.core.target import Target
from litesmith.run.devices.address import Lost
from litesmith.run.trial_run import probe
from litesmith.tflite.file import write_whole
from litesmith.timing.copies import Copies, time_copies
from litesmith.timing.latency import Bench, Contender, Rule, list_contenders, measure
from litesmith.timing.threads import Situation, sweep
from litesmith.units import number_text, plain

_SWEEP_SECONDS = 5.0
_COPIES_SECONDS = 2.0


Models = Annotated[
    list[Path] | None,
    argument(metavar="MODEL", help="One .tflite file or more.", show_default=False),
]
Graph = Annotated[
    list[Path] | None,
    option("--graph", help="The same, as benchmark_model says it.", show_default=False),
]
On = Annotated[
    str | None,
    option(
        "--on",
        help="Targets: cpu:1, cpu:2:litesmith, cpu:1:builtin, gpu, gpu:full; all for each. [cpu:1]",
        show_default=False,
    ),
]
Threads = Annotated[
    str | None,
    option(
        "--threads",
        "--num_threads",
        metavar="auto|N",
        help="So many threads; auto tries all counts, alone and beside a load.",
        show_default=False,
    ),
]
Runs = Annotated[
    int | None,
    option("--runs", "--num_runs", help="Stop after so many runs.", show_default=False),
]
Seconds = Annotated[
    float | None, option("--seconds", help="Stop after so long.", show_default=False)
]
WarmupRuns = Annotated[
    int | None,
    option(
        "--warmup-runs",
        "--warmup_runs",
        help="Runs that are not counted. [until steady]",
        show_default=False,
    ),
]
WithCopies = Annotated[bool, option("--copies", help="What feeding and reading cost, by each way.")]
Csv = Annotated[Path | None, option("--csv", help="Write the rows to a file.", show_default=False)]
LogFile = Annotated[
    Path | None,
    option("--log", help="Add the samples to a log of JSON lines.", show_default=False),
]
OutFolder = Annotated[
    Path | None,
    option(
        "-o",
        "--output",
        metavar="DIR",
        help="With --on all: a folder with the evidence and a page.",
        show_default=False,
    ),
]
Format = Annotated[str, option("--format", help="table, or benchmark_model for its summary line.")]
OpProfiling = Annotated[
    bool, option("--enable_op_profiling", help="Says where that is.", hidden=True)
]


def bench(
    models: Models = None,
    on: On = None,
    runs: Runs = None,
    seconds: Seconds = None,
    warmup_runs: WarmupRuns = None,
    threads: Threads = None,
    with_copies: WithCopies = False,
    ops: Ops = None,
    as_json: Json = False,
    csv_file: Csv = None,
    log: LogFile = None,
    out: OutFolder = None,
    output_format: Format = "table",
    graph: Graph = None,
    enable_op_profiling: OpProfiling = False,
) -> None:
    """Latency with intervals; several models or targets take turns and are compared."""
    if output_format not in _FORMATS:
        raise BadInput(f"--format {output_format}: there are {', '.join(_FORMATS)}")
    rule = Rule(runs, seconds, warmup_runs)
    given = [*(models or ()), *(graph or ())]
    if on is not None and "all" in on.split(","):
        _refuse_beside_all(on, {"--threads": threads, "--csv": csv_file, "--copies": with_copies})
        _bench_all(given, rule, log, out, as_json)
        return
    if out is not None:
        raise BadInput(f"-o {out}: a folder is written with --on all; --log FILE keeps these times")
    group = list_contenders(given, _targets(on, threads))
    auto = threads == "auto"
    if (auto or with_copies) and len({contender.name for contender in group}) > 1:
        raise BadInput("--threads auto and --copies look at one model; give one")
    for path in filter(None, (csv_file, log)):
        for model in given:
            refuse_place(path, model)
    if csv_file is not None and csv_file == log:
        raise BadInput(f"{log}: --csv and --log need a file each")
    if (auto or with_copies) and not isinstance(group[0].target, Target):
        raise BadInput("--threads auto and --copies look at this machine; leave out the device")
    if (auto or with_copies) and output_format != "table" and not as_json:
        raise BadInput(f"--format {output_format} has no place for --threads auto and --copies")
    try:
        done, situations, copied = _work(group, rule, auto, with_copies)
    except Lost as lost:
        afar = [str(c.target) for c in group if not isinstance(c.target, Target)]
        _keep_partial(lost, ", ".join(dict.fromkeys(afar)), log)
        raise
    _keep(done, situations, csv_file, log)
    if enable_op_profiling:
        _say(f"for the time of each operator: litesmith profile {quote(group[0].name)}")
    for warning in done.warnings:
        _say(f"warning: {warning}")
    if as_json:
        click.echo(json.dumps(_as_json(done, situations, copied)))
    else:
        _FORMATS[output_format](done, situations, copied)


def _refuse_beside_all(on: str, others: dict[str, object]) -> None:
    """Raises where more is asked for than --on all has an answer to."""
    if on != "all":
        raise BadInput(f"--on {on}: all is every target there is; leave out the others")
    for name, value in others.items():
        if value:
            raise BadInput(f"--on all has no {name}; leave it out, or name the targets")


def _bench_all(
    models: Sequence[Path], rule: Rule, log: Path | None, out: Path | None, as_json: bool
) -> None:
    """Every target there is; models one after another."""
    if not models:
        raise BadInput("--on all: give a model")
    for model in models:
        list_contenders(str(model))  # says what is no file before the first is measured
        if log is not None:
            refuse_place(log, model)
    seen: list[Seen] = []
    with kept_in(out) as folder:
        for model in models:
            with Terminal(quiet=as_json) as progress:
                one = Seen(model, *everywhere(str(model), rule, progress))
            keep(one, folder, log)
            seen.append(one)
            for warning in one.done.warnings:
                _say(f"warning: {warning}")
            if not as_json:
                print_all(one)
    if as_json:
        print_all_json(seen)
    elif out is not None:
        click.echo(plain(str(out / "report.html")))


def _targets(on: str | None, threads: str | None) -> str:
    if threads is None:
        return "cpu:1" if on is None else on
    if on is not None:
        raise BadInput("give --on or --threads, not both; a target has its threads, as in cpu:2")
    if threads == "auto":
        return "cpu:1"
    if not threads.isdecimal():
        raise BadInput(f"--threads {threads}: give a number or auto")
    return f"cpu:{threads}"


Work = tuple[Bench, tuple[Situation, ...], tuple[Copies, ...]]


def _work(group: Sequence[Contender], rule: Rule, auto: bool, with_copies: bool) -> Work:
    here = [(c.name, c.target) for c in group if isinstance(c.target, Target)]
    for name, target in dict(here).items():
        probe(name, target)
    situations: tuple[Situation, ...] = ()
    copied: tuple[Copies, ...] = ()
    with Terminal() as progress:
        if auto:
            fixed = rule.runs is not None or rule.seconds is not None
            limits = rule if fixed else Rule(None, _SWEEP_SECONDS, rule.warmup_runs)
            situations = sweep(group[0].name, limits, progress)
        done = situations[0].bench if situations else measure(group, rule, progress)
        if with_copies:
            progress(Status("copies"))
            lasting = rule.seconds or _COPIES_SECONDS
            copied = time_copies(*here[0], seconds=lasting)
    return done, situations, copied


def _keep(
    done: Bench, situations: Sequence[Situation], csv_file: Path | None, log: Path | None
) -> None:
    """Writes the files that were asked for, every situation with how many others were busy."""
    seen = [(s.bench, s.competitors) for s in situations] or [(done, 0)]
    if csv_file is not None:
        text = io.StringIO()
        rows = [{**row, "competitors": busy} for bench, busy in seen for row in bench.to_rows()]
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
        write_whole(csv_file, [text.getvalue().encode()])
    if log is not None:
        for measured_bench, busy in seen:
            ratios = _comparisons(measured_bench)
            for result in measured_bench.results:
                trial = result.trial()
                extra = {"competitors": busy, "comparisons": ratios}
                Log(log).append(replace(trial, details={**trial.details, **extra}))


def _keep_partial(lost: Lost, device: str, log: Path | None) -> None:
    """Writes the times that came before a device was lost; says where, or how to have them."""
    count = sum(map(len, lost.samples))
    if log is None or not count:
        if count:
            lost.add_note(f"{count} times were measured; --log FILE keeps them")
        return
    for digest, samples in zip(lost.digests, lost.samples, strict=False):
        if samples:
            latency = Measurement("latency", "us", samples, device, digest, "")
            details = {"device": device, "is_partial": True}
            Log(log).append(Trial("", "", digest, (latency,), (), "bench", details))
    lost.add_note(f"{count} times are in {log}")


def _comparisons(done: Bench) -> list[dict[str, object]]:
    """Each comparison with the ratios of its blocks, from which the interval can be had again."""
    return [{**c.row(), "block_ratios": c.ratio.blocks} for c in done.comparisons]


def _as_json(
    done: Bench, situations: Sequence[Situation], copied: Sequence[Copies]
) -> dict[str, object]:
    shown: dict[str, object] = {
        "schema": 1,
        "results": [{**r.row(), "samples_us": r.samples_us} for r in done.results],
        "comparisons": _comparisons(done),
        "host": done.host.facts(),
        "warnings": done.warnings,
    }
    if situations:
        shown["threads"] = [
            {
                "situation": s.name,
                "competitors": s.competitors,
                "recommended": s.threads,
                "reasons": s.reasons,
                "counts": s.rows(),
            }
            for s in situations
        ]
    if copied:
        shown["copies"] = [one.row() for one in copied]
    return shown


def _print_summary_lines(
    done: Bench, situations: Sequence[Situation], copied: Sequence[Copies]
) -> None:
    """The line that scripts look for in what benchmark_model prints; its averages are means."""
    for result in done.results:
        first = result.loads[0]
        warmups = first.warmup_us or (first.first_us,)
        click.echo(
            f"Inference timings in us: Init: {round(first.create_us)}, "
            f"First inference: {round(first.first_us)}, "
            f"Warmup (avg): {number_text(mean(warmups))}, "
            f"Inference (avg): {number_text(mean(result.samples_us))}"
        )


def _say(text: str) -> None:
    print(f"litesmith: {plain(say(text))}", file=sys.stderr)


_FORMATS = {"table": bench_text.show, "benchmark_model": _print_summary_lines}
