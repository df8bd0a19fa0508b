"""The command profile: where the time of a run goes, op by op."""

from pathlib import Path
from typing import Annotated

import litesmith
from litesmith.cli.options.declare import option
from litesmith.cli.options.shared_options import Json, ModelFile, On, Ops
from litesmith.cli.text.deliver import deliver, say
from litesmith.cli.text.progress_text import Terminal

Runs = Annotated[
    int | None,
    option("--runs", min=1, help="Number of profiled runs; otherwise about a second of them."),
]
Top = Annotated[int, option("--top", min=1, help="Number of the slowest ops to list.")]
TraceFile = Annotated[
    Path | None, option("--trace", help="Trace for ui.perfetto.dev to write; .json for Chrome's.")
]
TimesFile = Annotated[
    Path | None,
    option(
        "--overlay",
        metavar="FILE.json",
        help="File for Model Explorer, which colours the graph by the time of each op.",
    ),
]


def _print_platform_help() -> None:
    from litesmith.cli.text.profile_text import print_platform_help

    print_platform_help()


PlatformHelp = Annotated[
    bool,
    option(
        "--help-platform",
        print_and_stop=_print_platform_help,
        help="How to see the same run in perf, on Android and in Instruments.",
    ),
]


def profile(
    model: ModelFile,
    on: On = "cpu:1",
    runs: Runs = None,
    top: Top = 10,
    trace: TraceFile = None,
    overlay: TimesFile = None,
    ops: Ops = None,
    as_json: Json = False,
    help_platform: PlatformHelp = False,
) -> None:
    """Where the time of a run goes: every op with its time, its kernel and its speed."""
    from litesmith.cli.text.profile_text import print_profile

    with Terminal(quiet=as_json) as progress:
        found = litesmith.profile(
            model, on, runs=runs, trace=trace, overlay=overlay, progress=progress
        )
    deliver(found, lambda one: print_profile(one, top, trace, overlay), as_json)
    for warning in found.warnings:
        say("warning", warning)
