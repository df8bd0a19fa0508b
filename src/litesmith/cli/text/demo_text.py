"""Prints the steps of `demo`, its result, and the next commands."""

from pathlib import Path

from litesmith.cli.text.printing import command, heading, line
from litesmith.cli.text.tune_text import print_found
from litesmith.front.demo import demo_command
from litesmith.search.tuning.tune_search import Found


def print_start(out: Path) -> None:
    line("A float classifier of clothes (28×28 pixels), and 1,900 images it never saw in training.")
    command(demo_command(out))


def print_end(found: Found) -> None:
    print_found(found)
    heading("next: your own model")
    command("litesmith tune YOUR.tflite --data YOUR_DATA --max-drop 1pt")
