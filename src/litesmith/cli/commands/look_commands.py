"""To look at a model: `inspect`, `view`, `profile`, `bench`, `eval`, `compare`, `diff` and
`targets`."""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import Command, Typed, argument, option
from litesmith.cli.options.shared_options import (
    AGAINST,
    BOARD,
    CORES,
    DATA,
    ENGINE,
    METRIC,
    MODEL,
    ON,
    OPS,
    OUT_FOLDER,
    OVERLAY,
    PAGE,
    PREPARING,
    SAMPLES,
    SECONDS,
    SHAPE,
)
from litesmith.errors import BadInput


def _refuse_files_elsewhere(typed: Typed) -> None:
    """Raises where workers would need files of the user's that they do not have."""
    engine = typed.get("engine", ENGINE.default)
    if "ops" in typed and engine != ENGINE.default:
        raise BadInput(
            "--ops with --engine {engine}: your files stay on this machine; use --engine local",
            engine,
        )


def _refuse_format(typed: Typed) -> None:
    known, shown = ("table", "benchmark_model"), typed.get("output_format", "table")
    if shown not in known:
        raise BadInput("--format {output_format}: there are {formats}", shown, ", ".join(known))
    if shown != "table" and (typed.get("threads") == "auto" or "copies" in typed):
        raise BadInput(
            "--format {output_format} has no place for --threads auto and --copies", shown
        )


def _print_platform_help() -> None:
    from litesmith.cli.text.profile_text import print_platform_help

    print_platform_help()


INSPECT = Command(
    "inspect_text:print_inspection",
    (MODEL, SHAPE, option("--ops", kind=bool, help="List every op.")),
    help="Show what is in a model and what stands out.",
)

VIEW = Command(
    "view_text:print_view",
    (
        argument("a", metavar="A", kind=Path, help="A .tflite file."),
        argument("b", metavar="[B]", kind=Path, help="A second .tflite file, to compare it with."),
        option(
            "-o",
            "--output",
            argument="out",
            metavar="FILE.html",
            kind=Path,
            required=True,
            help="The page to write.",
        ),
        SHAPE,
        replace(
            DATA,
            help="With B: data for the error of each op, and for samples on which A and B differ.",
        ),
        ON,
        replace(
            SECONDS,
            help="Time that each model is profiled for.",
            default="1.0",
            show_default="",
        ),
        option("--predict", kind=bool, help="Run nothing; times are predicted."),
        SAMPLES,
        OPS,
        *PREPARING,
    ),
    help="A model as a graph, or two side by side, as one page.",
)

PROFILE = Command(
    "profile_text:print_profile",
    (
        MODEL,
        SHAPE,
        ON,
        CORES,
        option(
            "--runs",
            kind=int,
            least=1,
            help="Number of runs to profile. [about a second of them]",
        ),
        option(
            "--top",
            kind=int,
            least=1,
            help="Print only this many of the slowest ops.",
            to_function=False,
            to_text=True,
        ),
        option(
            "--trace",
            kind=Path,
            help="Write a trace for ui.perfetto.dev; .json for Chrome's format.",
            to_text=True,
        ),
        replace(
            OVERLAY,
            help="Write a file for Model Explorer that colours the graph by time.",
            to_text=True,
        ),
        OPS,
        option(
            "--help-platform",
            kind=bool,
            print_and_stop=_print_platform_help,
            help="How to see the same run in perf, on Android and in Instruments.",
        ),
    ),
    help="Show where the time of a run goes, op by op.",
)

BENCH = Command(
    "bench_text:print_bench",
    (
        argument(
            "models",
            metavar="MODEL",
            kind=Path,
            many=True,
            help="One or more .tflite files.",
        ),
        replace(
            SHAPE,
            help="Use the model with an input of these sizes; repeat it for the same "
            "input to compare several sizes.",
        ),
        option(
            "--on",
            metavar="TARGETS",
            help="Targets, such as cpu:1, cpu:2:litesmith, cpu:1:builtin, gpu or "
            "gpu:full; or all. [cpu:1]",
        ),
        option("--runs", "--num_runs", kind=int, help="Stop after this many runs."),
        option("--seconds", kind=float, help="Stop after this many seconds."),
        option(
            "--warmup-runs",
            "--warmup_runs",
            kind=int,
            help="Warm-up runs that do not count. [until steady]",
        ),
        option(
            "--threads",
            "--num_threads",
            metavar="auto|N",
            help="Number of threads; auto tries every count, alone and next to other work.",
        ),
        CORES,
        option(
            "--cool",
            kind=float,
            metavar="SECONDS",
            help="Wait up to so many seconds in all while a core is held back against heat.",
        ),
        option(
            "--copies",
            kind=bool,
            help="Also measure what feeding inputs and reading outputs costs.",
        ),
        OPS,
        *BOARD,
        option("--csv", kind=Path, help="Write the rows to this CSV file."),
        option("--log", kind=Path, help="Append every sample to this log of JSON lines."),
        replace(OUT_FOLDER, help="With --on all: write the evidence and a report to this folder."),
        option(
            "--format",
            argument="output_format",
            metavar="KIND",
            default="table",
            help="table, or benchmark_model for its summary line.",
            choices="table|benchmark_model",
            to_function=False,
            to_text=True,
        ),
        option(
            "--graph",
            argument="models",
            kind=Path,
            many=True,
            help="Another spelling of MODEL, for users of benchmark_model.",
        ),
        option(
            "--enable_op_profiling",
            kind=bool,
            hidden=True,
            help="Says where that is.",
            to_function=False,
            to_text=True,
        ),
    ),
    help="Time models side by side, with intervals and a verdict.",
    prepare=_refuse_format,
)

EVAL = Command(
    "evaluate_text:print_evaluation",
    (
        MODEL,
        SHAPE,
        DATA,
        replace(AGAINST, help="A .tflite file to compare with, sample by sample.", to_text=True),
        METRIC,
        ON,
        SAMPLES,
        OPS,
        ENGINE,
        *PREPARING,
    ),
    help="Measure accuracy with its interval, or drift from a reference.",
    prepare=_refuse_files_elsewhere,
)

COMPARE = Command(
    "compare_text:print_comparison",
    (
        argument("a", metavar="A", kind=Path, help="The .tflite file before."),
        argument("b", metavar="B", kind=Path, help="The .tflite file to take its place."),
        SHAPE,
        DATA,
        ON,
        METRIC,
        SECONDS,
        SAMPLES,
        PAGE,
        OPS,
        *PREPARING,
    ),
    help="Is B as good as A, and faster? Accuracy, time, size and drift.",
)

DIFF = Command(
    "diff_text:print_diff",
    (
        argument("a", metavar="A", kind=Path, help="The .tflite file before."),
        argument("b", metavar="B", kind=Path, help="The .tflite file after."),
    ),
    help="Show what changed in the graph between two models.",
)

TARGETS = Command(
    "targets_text:print_targets",
    (
        argument(
            "model",
            metavar="[MODEL]",
            kind=Path,
            help="A .tflite file, to see which ops each accelerator accepts.",
        ),
        SHAPE,
        option(
            "--compile",
            kind=bool,
            help="Ask installed compilers instead of rules; slower.",
        ),
        OPS,
    ),
    help="List accelerators: which work here, and which ops each accepts.",
)
