"""`bench --on all`: one model on every target, in one table."""

import json
from collections.abc import Sequence

import typer
from rich.text import Text

from litesmith.cli.show import Json, console, line, table
from litesmith.cli.targets import placement_json
from litesmith.measure.everywhere import Reached
from litesmith.measure.latency import Bench
from litesmith.units import error_text, plain, time_text


def print_all(name: str, rows: Sequence[Reached], done: Bench) -> None:
    """What each takes, how long it takes, how exact it is, and whether it is worth it."""
    line(plain(name), "bold")
    shown = table("target", "ops", "time", "differs by", "how", "verdict", right=(1, 2, 3))
    last = ""
    for row in rows:
        found, verdict = row.placement, plain(row.verdict)
        shown.add_row(
            row.target,
            "all" if found is None else f"{found.taken}/{len(found.homes)}",
            "" if row.latency_us is None else time_text(row.latency_us),
            "" if row.difference is None else error_text(row.difference),
            row.how,
            Text('"' if verdict == last else verdict),
        )
        last = verdict
    console.print(shown)
    line(f"times that are measured: one run in turns, {done.results[0].runs} runs each")
    line("litesmith targets MODEL --json has a reason for each op")


def print_all_json(rows: Sequence[Reached], done: Bench) -> None:
    typer.echo(
        json.dumps(
            {
                "schema": 1,
                "targets": [_as_json(row) for row in rows],
                "results": [{**r.row(), "samples_us": r.samples_us} for r in done.results],
                "comparisons": [c.row() for c in done.comparisons],
                "host": done.host.facts(),
                "warnings": done.warnings,
            }
        )
    )


def _as_json(row: Reached) -> Json:
    low, high = row.ratio.interval if row.ratio else (None, None)
    return {
        "target": row.target,
        "how": row.how,
        "why": row.why,
        "latency_us": row.latency_us,
        "ratio": row.ratio.value if row.ratio else None,
        "low": low,
        "high": high,
        "difference": row.difference,
        "verdict": row.verdict,
        "placement": None if row.placement is None else placement_json(row.placement),
    }
