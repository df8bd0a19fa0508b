"""The panels of options in the help of a command, and their titles."""

from collections.abc import Sequence
from typing import NamedTuple

from litesmith.phrases import phrase


class Panel(NamedTuple):
    """Options under a title, by any of their names; `tune --minutes` means the option of that
    command alone.
    """

    title: str
    options: tuple[str, ...]


PANELS = (
    Panel(
        phrase("Budget"),
        (
            "--max-drop",
            "--min-agreement",
            "--min-snr",
            "--min-accuracy",
            "--metric",
            "--minimize",
            "--max-size",
            "--max-latency",
            "--max-memory",
            "--allow",
            "tune --minutes",
        ),
    ),
    Panel(
        phrase("Data"),
        (
            "--data",
            "--samples",
            "--val",
            "--eval",
            "--calibrate",
            "--reference",
            "--against",
            "--random-data",
            "--trust-data",
            "--group",
        ),
    ),
    Panel(
        phrase("Task"),
        ("--task", "--decode", "--class-names", "--vocab", "--features", "--label-offset"),
    ),
    Panel(
        phrase("Images and sound"),
        ("--norm", "--mean", "--std", "--resize", "--crop", "--sample-rate"),
    ),
    Panel(
        phrase("What to change"),
        (
            "--to",
            "--io",
            "--keep",
            "--only",
            "--per-tensor",
            "--ranges",
            "--effort",
            "--fully-integer",
            "--sparsity",
            "--block",
            "--speedup",
            "--schedule",
            "--clusters",
            "--own",
            "--at",
            "--balance",
            "--raw",
            "--classes",
            "--weights",
            "--pretrained",
            "--head",
            "--fix",
            "--keep-layout",
            "--quantized",
            "--retrain",
            "catalogue --seed",
        ),
    ),
    Panel(
        phrase("Training"),
        (
            "--no-train",
            "--no-tune",
            "--fine-tune",
            "--epochs",
            "--minutes",
            "--rate",
            "--batch",
            "--augment",
            "--labels",
            "--seed",
            "--device",
            "--record-every",
        ),
    ),
    Panel(
        phrase("Where it runs"),
        (
            "--on",
            "--for",
            "--fits",
            "--ram",
            "--flash",
            "--overlap",
            "--threads",
            "--cores",
            "--compile",
            "--engine",
            "--shape",
            "--graph",
            "--ops",
        ),
    ),
    Panel(
        phrase("Measuring"),
        (
            "--seconds",
            "--predict",
            "--runs",
            "--warmup-runs",
            "--cool",
            "--copies",
            "--check",
            "--strict",
        ),
    ),
    Panel(
        phrase("Output"),
        (
            "--output",
            "--c",
            "--evidence",
            "--resume",
            "--update",
            "inspect --ops",
            "--top",
            "--trace",
            "--overlay",
            "--page",
            "--bundle",
            "--keep-custom-options",
            "--markdown",
            "--junit",
            "--csv",
            "--log",
            "--format",
            "--enable_op_profiling",
            "--json",
            "--lang",
            "--help-platform",
            "--help",
        ),
    ),
)


def place_of(command: str, names: Sequence[str]) -> tuple[int, int]:
    """The number of an option's panel, and its place in the panel; a place for one command alone
    overrides the shared one.
    """
    for prefix in (f"{command} ", ""):
        wanted = {prefix + name for name in names}
        for number, panel in enumerate(PANELS):
            for place, name in enumerate(panel.options):
                if name in wanted:
                    return number, place
    raise KeyError(names)
