"""The command demo."""

from pathlib import Path
from typing import Annotated

import litesmith
from litesmith.cli.commands.tune import Runs
from litesmith.cli.options.declare import option
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, say
from litesmith.cli.text.progress_text import pass_on

OutFolder = Annotated[
    Path, option("-o", "--output", metavar="DIR", help="Folder for the demo's files.")
]


def demo(out: OutFolder = Path("litesmith-demo"), runs: Runs = None) -> int:
    """Tune a small classifier of clothes that ships with litesmith, and show the proof."""
    from litesmith.cli.text.demo_text import print_end, print_start
    from litesmith.cli.text.tune_text import Live

    print_start(out)
    with Live(quiet=False) as live:
        found = litesmith.demo(out, runs=runs, progress=pass_on(live.show))
    for warning in found.warnings:
        say("warning", warning)
    print_end(found)
    return 0 if found.best is not None else MISSES_WHAT_WAS_ASKED
