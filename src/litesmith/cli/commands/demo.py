"""`litesmith demo`: the whole job on a small real model and real data that ship with it."""

from pathlib import Path
from typing import Annotated

import litesmith
from litesmith import demo_files as shipped
from litesmith.cli.commands.tune import Runs
from litesmith.cli.options.declare import option
from litesmith.cli.text.deliver import MISSES_WHAT_WAS_ASKED, say
from litesmith.cli.text.progress_text import pass_on

_DROP = "1pt"

OutFolder = Annotated[Path, option("-o", "--output", help="Folder for the demo's files.")]


def demo(out: OutFolder = Path("litesmith-demo"), runs: Runs = None) -> int:
    """Tune a small classifier of clothes that ships with litesmith, and show the proof."""
    from litesmith.cli.text.printing import command, heading, line
    from litesmith.cli.text.tune_text import Live, print_found

    model, data = shipped.write(out)
    tuned = out / "tuned"
    line("A float classifier of clothes (28×28 pixels), and 1,900 images it never saw in training.")
    text = f"litesmith tune {model} --data {data} --max-drop {_DROP} -o {tuned}"
    command(text)
    with Live(quiet=False) as live:
        found = litesmith.tune(
            model,
            str(data),
            max_drop=_DROP,
            runs=runs,
            out=tuned,
            command=text,
            progress=pass_on(live.show),
        )
    for warning in found.warnings:
        say("warning", warning)
    print_found(found)
    heading("next: your own model")
    command("litesmith tune YOUR.tflite --data YOUR_DATA --max-drop 1pt")
    return 0 if found.best is not None else MISSES_WHAT_WAS_ASKED
