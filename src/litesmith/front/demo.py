"""`demo`: the whole job on a small real model and real data that ship with the package."""

import os
from pathlib import Path

from litesmith import demo_files as shipped
from litesmith.arguments import check_types
from litesmith.front.tune import TuneProgress, tune
from litesmith.progress import silent
from litesmith.search.tuning.tune_search import Found

DROP = "1pt"


@check_types
def demo(
    out: str | os.PathLike[str] = "litesmith-demo",
    *,
    runs: int | None = None,
    progress: TuneProgress = silent,
) -> Found:
    """Tunes a small classifier of clothes that ships with the package, and proves the result.

    >>> litesmith.demo("demo").best  # doctest: +SKIP
    PosixPath('demo/tuned/best.tflite')

    The model, the data and the folder of the search are written into `out`.
    """
    model, data = shipped.write(Path(out))
    return tune(
        model,
        str(data),
        max_drop=DROP,
        runs=runs,
        out=Path(out) / "tuned",
        command=demo_command(Path(out)),
        progress=progress,
    )


def demo_command(out: Path) -> str:
    """The command that does the same."""
    model, data = out / shipped.MODEL, out / shipped.DATA
    return f"litesmith tune {model} --data {data} --max-drop {DROP} -o {out / 'tuned'}"
