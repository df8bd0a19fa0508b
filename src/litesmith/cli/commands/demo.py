"""`litesmith demo`: the whole job on a small real model and real data that ship with it."""

from pathlib import Path
from typing import Annotated

from litesmith import demo_files as shipped
from litesmith.cli.commands.tune import Runs, carried_out
from litesmith.cli.options.data_options import ImageOptions, open_evaluation
from litesmith.cli.options.declare import option
from litesmith.cli.text.printing import command, heading, line
from litesmith.search.trial.budget import Budget
from litesmith.search.tuning.replay import remember
from litesmith.search.tuning.tree_walk import Request
from litesmith.tflite.file import load

_DROP = "1pt"


def demo(
    out: Annotated[Path, option("-o", "--output", help="The folder for the demo's files.")] = Path(
        "litesmith-demo"
    ),
    runs: Runs = None,
) -> int:
    """Tune a small classifier of clothes that ships with litesmith, and show the proof."""
    model, data = shipped.write(out)
    tuned = out / "tuned"
    line("A float classifier of clothes (28×28 pixels), and 1,900 images it never saw in training.")
    text = f"litesmith tune {model} --data {data} --max-drop {_DROP} -o {tuned}"
    command(text)
    options = ImageOptions()
    request = Request(
        model,
        open_evaluation(str(data), load(model), options),
        tuned,
        Budget.parse(_DROP),
        command=text,
        opened=remember(str(data), None, options.preparation()),
        runs=runs,
    )
    status = carried_out(request)
    heading("next: your own model")
    command("litesmith tune YOUR.tflite --data YOUR_DATA --max-drop 1pt")
    return status
