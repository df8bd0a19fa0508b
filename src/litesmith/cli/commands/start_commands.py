"""Where one starts: `demo`, `tune` and `doctor`."""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import Command, Typed, option
from litesmith.cli.options.shared_options import (
    AGAINST,
    BOARD,
    CALIBRATE,
    COSTS,
    DATA,
    ENGINE,
    MAX_LATENCY,
    MAX_SIZE,
    METRIC,
    MINIMIZE,
    MODEL,
    ON,
    OUT_FOLDER,
    OVERLAP,
    OVERLAY,
    PAGE,
    PREPARING,
    RUNS,
    SAMPLES,
    SECONDS,
    SHAPE,
    TRUST_DATA,
    list_choices,
)
from litesmith.phrases import phrase


def _announce_demo(typed: Typed) -> None:
    from litesmith.cli.text.demo_text import print_start

    print_start(typed.setdefault("out", Path("litesmith-demo")))


DEMO = Command(
    "demo_text:print_end",
    (
        replace(OUT_FOLDER, help="Folder for the demo's files.", default="litesmith-demo"),
        RUNS,
    ),
    help="Try the whole job on a small classifier that is included.",
    live="tune_text:Live",
    prepare=_announce_demo,
    has_json=False,
)

TUNE = Command(
    "tune_text:print_found",
    (
        MODEL,
        SHAPE,
        DATA,
        option(
            "--max-drop",
            "--max-rise",
            argument="max_drop",
            metavar="X",
            help="How much of the task's metric may be lost: in points (1pt), as a "
            "share of the float model's value (1%), or, for an error, in its "
            "own unit (0.05).",
        ),
        option(
            "--min-agreement",
            metavar="98%",
            help="Without labels: smallest share of samples that must keep the float "
            "model's class.",
        ),
        option(
            "--min-snr",
            metavar="20dB",
            help="Without classes: lowest SNR of the outputs, compared with the float model's.",
        ),
        METRIC,
        replace(
            MINIMIZE,
            help=phrase("What to minimize: {costs}.", list_choices(f"{COSTS}|ram|flash")),
            choices=f"{COSTS}|ram|flash",
            default=None,
            show_default="latency; ram on a microcontroller",
        ),
        MAX_SIZE,
        MAX_LATENCY,
        replace(
            ON,
            metavar="TARGETS",
            default=None,
            show_default="cpu:1; micro with --fits, --ram or --flash",
            help="Where to run, such as cpu:1,cpu:4, gpu, ssh://pi@host/cpu:4 or ethos-u55-128.",
        ),
        *BOARD,
        OVERLAP,
        replace(CALIBRATE, help="Separate data to calibrate and train on."),
        option(
            "--minutes",
            metavar="N",
            kind=float,
            help="Longest search time.",
            show_default="no limit",
        ),
        RUNS,
        option(
            "--no-train",
            argument="training",
            kind=bool,
            gives=None,
            help="Do not train, even where it would help.",
        ),
        option("--resume", kind=bool, help="Continue the search in the folder that -o names."),
        TRUST_DATA,
        replace(OUT_FOLDER, show_default="MODEL-tuned"),
        SAMPLES,
        ENGINE,
        *PREPARING,
    ),
    help="Find the fastest or smallest file within your budget, and prove it.",
    live="tune_text:Live",
)

DOCTOR = Command(
    "doctor_text:print_doctor",
    (
        MODEL,
        SHAPE,
        DATA,
        replace(
            AGAINST,
            metavar="FLOAT",
            help="The float .tflite that MODEL was quantized from. Without data, "
            "shows how fast its slow int8 ops are in float.",
        ),
        ON,
        option(
            "--for",
            argument="accelerator",
            metavar="TARGET",
            help="Show what keeps the model from running entirely on an accelerator "
            "(edgetpu, ethos-u55, hexagon, gpu, …), and the recipe that changes "
            "it.",
        ),
        replace(SECONDS, help="Seconds to time a remedy for.", default="1", show_default=""),
        SAMPLES,
        option(
            "--bundle",
            metavar="OUT.zip",
            kind=Path,
            help="Write a file with which others can reproduce the finding.",
        ),
        option(
            "--keep-custom-options",
            kind=bool,
            help="Keep the names and options of custom ops in the bundle; otherwise "
            "they are replaced.",
        ),
        replace(
            OVERLAY,
            help="Write a file for Model Explorer: the time of each op and, with "
            "--data, its error.",
        ),
        PAGE,
        *PREPARING,
    ),
    help="Find out why a model is slow or inaccurate, and what helps.",
)
