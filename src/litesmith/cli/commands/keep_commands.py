"""To keep a model good: `gate`, `report` and `cache`."""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import Command, Typed, argument, option
from litesmith.cli.options.shared_options import (
    AGAINST,
    DATA,
    METRIC,
    MODEL,
    ON,
    OPS,
    OUT_FOLDER,
    OWN_SHAPE,
    PREPARING,
    SAMPLES,
)
from litesmith.errors import BadInput


def _gate_or_update(typed: Typed) -> str:
    if typed.pop("update", False):
        if any(name in typed for name in ("markdown", "junit", "out")):
            raise BadInput("--update compares nothing: leave out --markdown, --junit and -o")
        typed.pop("strict", None)
        return "update_baseline"
    if "accelerator" in typed:
        raise BadInput("--for is the baseline's: give it with --update")
    typed.pop("ops", None)
    return "gate"


GATE = Command(
    "gate_text:print_gate",
    (
        argument("baseline", metavar="BASELINE", kind=Path, help="The .json file of a baseline."),
        MODEL,
        OWN_SHAPE,
        DATA,
        option("--update", kind=bool, help="Measure MODEL and write its baseline."),
        option(
            "--allow",
            metavar="WHAT=MUCH",
            many=True,
            help="How much worse a quantity may get, such as latency=5%, "
            "accuracy=0.5pt or memory=off. --update remembers it.",
            show_default="accuracy=0.5pt, latency=5%, size=2%, gzip=2%, memory=5%, delegation=0",
        ),
        replace(
            ON,
            help="With --update: where to run.",
            default=None,
            show_default="the baseline's, or cpu:1",
        ),
        option(
            "--for",
            argument="accelerator",
            metavar="TARGET",
            many=True,
            help="With --update: an accelerator that must not lose ops either, such as edgetpu.",
        ),
        METRIC,
        replace(
            AGAINST,
            help="Without labels: a .tflite file to compare answers with.",
        ),
        option(
            "--seconds",
            kind=float,
            help="Longest time to measure; a clear answer ends it earlier.",
            default="60.0",
        ),
        option("--strict", kind=bool, help="Treat unclear results as worse too."),
        option(
            "--markdown",
            metavar="FILE",
            kind=Path,
            help="File to write for a pull request.",
        ),
        option("--junit", metavar="FILE", kind=Path, help="JUnit XML file to write for CI."),
        replace(OUT_FOLDER, help="Folder for the record and a page."),
        SAMPLES,
        replace(OPS, to_function=True),
        *PREPARING,
    ),
    help="Exit with status 1 if MODEL is worse than BASELINE allows.",
    prepare=_gate_or_update,
)

REPORT = Command(
    "printing:path",
    (
        argument(
            "folders",
            metavar="DIR",
            kind=Path,
            many=True,
            help="A folder that tune, choose, retrain, bench or gate wrote; several are put "
            "side by side.",
        ),
        option("--markdown", kind=bool, help="Markdown with pictures, for a pull request."),
        option(
            "-o",
            "--output",
            argument="out",
            metavar="FILE",
            kind=Path,
            help="The file to write.",
            show_default="DIR/report.html or DIR/report.md; of several, litesmith-runs.html",
        ),
    ),
    help="Rebuild a report from its folder, or show several runs side by side.",
    has_json=False,
)

CACHE = Command(
    "printing:sentence",
    (argument("action", metavar="[clear]", choices="clear", help="clear: remove what is kept."),),
    help="Show what is kept between runs, or clear it.",
    has_json=False,
)
