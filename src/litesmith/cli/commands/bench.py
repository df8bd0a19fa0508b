"""`litesmith bench`: how long models take, and which is faster."""

import json
from pathlib import Path
from shlex import quote
from typing import Annotated

import click

import litesmith
from litesmith.cli.options.declare import argument, option, typed_command
from litesmith.cli.options.shared_options import Json, Ops
from litesmith.cli.text.deliver import say
from litesmith.cli.text.progress_text import Terminal
from litesmith.errors import BadInput
from litesmith.phrases import phrase
from litesmith.units import plain

_TABLE = "table"

Models = Annotated[
    list[Path] | None,
    argument(metavar="MODEL", help="One .tflite file or more."),
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
        help="Number of threads; auto tries every count, alone and beside a load.",
        show_default=False,
    ),
]
Runs = Annotated[
    int | None,
    option("--runs", "--num_runs", help="Number of runs to stop after.", show_default=False),
]
Seconds = Annotated[
    float | None, option("--seconds", help="Number of seconds to stop after.", show_default=False)
]
WarmupRuns = Annotated[
    int | None,
    option(
        "--warmup-runs",
        "--warmup_runs",
        help="Number of first runs that are not counted. [until steady]",
        show_default=False,
    ),
]
WithCopies = Annotated[
    bool, option("--copies", help="Cost of feeding inputs and reading outputs, by each way.")
]
Csv = Annotated[Path | None, option("--csv", help="File for the rows.", show_default=False)]
LogFile = Annotated[
    Path | None,
    option("--log", help="Log of JSON lines that the samples are added to.", show_default=False),
]
OutFolder = Annotated[
    Path | None,
    option(
        "-o",
        "--output",
        metavar="DIR",
        help="With --on all: folder for the evidence and a page.",
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
    copies: WithCopies = False,
    ops: Ops = None,
    as_json: Json = False,
    csv: Csv = None,
    log: LogFile = None,
    out: OutFolder = None,
    output_format: Format = _TABLE,
    graph: Graph = None,
    enable_op_profiling: OpProfiling = False,
) -> None:
    """Latency with intervals; several models or targets take turns and are compared."""
    from litesmith.cli.text.bench_text import print_summary_lines, print_table

    formats = {_TABLE: print_table, "benchmark_model": print_summary_lines}
    if output_format not in formats:
        raise BadInput(
            "--format {output_format}: there are {formats}",
            output_format,
            ", ".join(formats),
        )
    if (threads == "auto" or copies) and output_format != _TABLE and not as_json:
        raise BadInput(
            "--format {output_format} has no place for --threads auto and --copies", output_format
        )
    given = [*(models or ()), *(graph or ())]
    with Terminal(quiet=as_json) as progress:
        done = litesmith.bench(
            given,
            on,
            threads=threads,
            copies=copies,
            runs=runs,
            seconds=seconds,
            warmup_runs=warmup_runs,
            csv=csv,
            log=log,
            out=out,
            command=typed_command(),
            progress=progress,
        )
    if enable_op_profiling:
        told = phrase(
            "for the time of each operator: litesmith profile {given}", quote(str(given[0]))
        )
        click.echo(f"litesmith: {plain(told)}", err=True)
    for warning in done.warnings:
        say("warning", warning)
    if as_json:
        click.echo(json.dumps(done.to_json()))
    else:
        formats[output_format](done)
