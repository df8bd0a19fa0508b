"""The command gate: is a model worse than its baseline allows?"""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import argument, option
from litesmith.cli.options.shared_options import (
    DataSource,
    Json,
    MetricName,
    ModelFile,
    Ops,
    Preparing,
    SampleCount,
)
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, deliver
from litesmith.cli.text.progress_text import Terminal
from litesmith.errors import BadInput

BaselineFile = Annotated[Path, argument(metavar="BASELINE", help="The .json file of a baseline.")]
Update = Annotated[bool, option("--update", help="Measure MODEL and write its baseline.")]
Allow = Annotated[
    list[str] | None,
    option(
        "--allow",
        metavar="QUANTITY=AMOUNT",
        help="How much worse a quantity may get, as in latency=5%, accuracy=0.5pt, memory=off. "
        "--update keeps it.",
        show_default="accuracy=0.5pt, latency=5%, size=2%, gzip=2%, memory=5%, delegation=0",
    ),
]
OnOnce = Annotated[
    str | None,
    option(
        "--on",
        metavar="TARGET",
        help="With --update: where to run.",
        show_default="the baseline's, or cpu:1",
    ),
]
For = Annotated[
    list[str] | None,
    option(
        "--for",
        metavar="edgetpu|ethos-u55|gpu|…",
        help="With --update: an accelerator that must not lose ops either.",
    ),
]
Against = Annotated[
    Path | None,
    option(
        "--against",
        metavar="REF",
        help="A .tflite file to hold answers against where there are no labels.",
    ),
]
Seconds = Annotated[
    float,
    option("--seconds", help="Longest time to measure for; a clear answer ends it earlier."),
]
Strict = Annotated[bool, option("--strict", help="Exit with 1 for what is not clear too.")]
MarkdownFile = Annotated[
    Path | None,
    option("--markdown", metavar="FILE", help="File to write for a pull request."),
]
JunitFile = Annotated[
    Path | None, option("--junit", metavar="FILE", help="JUnit XML file to write for CI.")
]


def gate(
    baseline: BaselineFile,
    model: ModelFile,
    data: DataSource = None,
    update: Update = False,
    allow: Allow = None,
    on: OnOnce = None,
    accelerator: For = None,
    metric: MetricName = "auto",
    against: Against = None,
    seconds: Seconds = 60.0,
    strict: Strict = False,
    markdown: MarkdownFile = None,
    junit: JunitFile = None,
    samples: SampleCount = None,
    ops: Ops = None,
    as_json: Json = False,
    **preparing: Unpack[Preparing],
) -> int:
    """Is MODEL worse than BASELINE allows? Exit status 1 where it is; --update writes BASELINE."""
    from litesmith.cli.text.gate_text import print_gate, print_renewed

    if update and (markdown or junit):
        raise BadInput("--update compares nothing: leave out --markdown and --junit")
    if not update and (metric != "auto" or accelerator):
        raise BadInput("--metric and --for are the baseline's: give them with --update")
    with Terminal(quiet=as_json) as progress:
        if update:
            made = litesmith.update_baseline(
                baseline,
                model,
                data,
                on=on,
                accelerator=accelerator or (),
                metric=metric,
                against=against,
                allow=allow or (),
                seconds=seconds,
                samples=samples,
                ops=ops or (),
                progress=progress,
                **preparing,
            )
            deliver(made, print_renewed, as_json)
            return 0
        found = litesmith.gate(
            baseline,
            model,
            data,
            on=on,
            against=against,
            allow=allow or (),
            strict=strict,
            seconds=seconds,
            markdown=markdown,
            junit=junit,
            samples=samples,
            progress=progress,
            **preparing,
        )
    deliver(found, print_gate, as_json)
    return 0 if found.passes else MISSES_WHAT_WAS_ASKED
