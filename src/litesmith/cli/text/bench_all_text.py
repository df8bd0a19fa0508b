"""`bench --on all`: models on every target, in one table each, and as evidence."""

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, cast

import click

from litesmith._version import VERSION
from litesmith.cli.text.inspect_text import Json, command, console, line, said, table
from litesmith.diagnosis.all_targets import Reached, placement_facts
from litesmith.evidence import Log
from litesmith.pages.folder_kinds import write_report
from litesmith.search.trial.folder import BENCH, Folder
from litesmith.tflite.file import digest
from litesmith.timing.latency import Bench
from litesmith.units import error_text, plain, time_text


class Seen(NamedTuple):
    """One model on every target."""

    path: Path
    rows: tuple[Reached, ...]
    done: Bench


@contextmanager
def kept_in(out: Path | None) -> Iterator[Folder | None]:
    """The folder that keeps what is measured, with others kept out of it; None where none is asked
    for."""
    if out is None:
        yield None
        return
    folder = Folder(out, BENCH)
    with folder.held():
        yield folder


def keep(seen: Seen, folder: Folder | None, log: Path | None) -> None:
    """Adds a trial for each target to the logs, and to the folder the home of each op."""
    name, own, host = seen.path.name, digest(seen.path), str(seen.done.host)
    for row in seen.rows:
        trial = row.trial(name, own, host)
        if log is not None:
            Log(log).append(trial)
        if folder is not None:
            folder.add(trial)
    if folder is None:
        return
    placed = {row.target: row.placement for row in seen.rows if row.placement is not None}
    facts = {target: placement_facts(found) for target, found in placed.items()}
    folder.write_evidence(own, {"schema": 1, "name": name, "placements": facts})
    folder.write_summary(_summary(folder.summary(), seen, own))
    write_report(folder.path)


def _summary(known: Json, seen: Seen, own: str) -> Json:
    """What the folder tells, with this model in place of what was known of it."""
    before = known.get("models")
    models = cast(list[Json], before) if isinstance(before, list) else []
    others = [one for one in models if one.get("digest") != own]
    told: Json = {
        "model": seen.path.name,
        "digest": own,
        "bytes": seen.path.stat().st_size,
        "targets": [row.facts() for row in seen.rows],
        "warnings": list(seen.done.warnings),
    }
    return {
        "schema": 1,
        "version": VERSION,
        "command": shlex.join(["litesmith", *sys.argv[1:]]),
        "models": [*others, told],
        "environment": seen.done.host.facts(),
    }


def print_all(seen: Seen) -> None:
    """What each takes, how long it takes, how exact it is, and whether it is worth it."""
    line(plain(str(seen.path)), "bold")
    shown = table("target", "ops", "time", "differs by", "how", "verdict", right=(1, 2, 3))
    last = ""
    for row in seen.rows:
        verdict = plain(row.verdict)
        same = verdict.replace(row.target, "") == last
        shown.add_row(
            row.target,
            _ops(row),
            "" if row.latency_us is None else time_text(row.latency_us),
            "" if row.difference is None else error_text(row.difference),
            row.how,
            said('"' if same else verdict),
        )
        last = verdict.replace(row.target, "")
    console.print(shown)
    runs = seen.done.results[0].runs
    line(f"times that are measured: {_turns(seen.rows)} took turns, {runs} runs of the CPU")
    for row in (one for one in seen.rows if one.is_alone):
        count = "1 run" if len(row.samples_us) == 1 else f"{len(row.samples_us)} runs"
        line(f"{row.target}: {count} by itself; so slow that turns would tell no more")
    if any("doctor MODEL" in row.verdict for row in seen.rows):
        line("the way there, with commands to copy, for a target as in the table:")
        target = next(row.target for row in seen.rows if "doctor MODEL" in row.verdict)
        command(f"  litesmith doctor {shlex.quote(str(seen.path))} --for {target}")
    line("litesmith targets MODEL --json has a reason for each op")


def _ops(row: Reached) -> str:
    found = row.placement
    return "all" if found is None else f"{found.taken}/{len(found.homes)}"


def _turns(rows: Sequence[Reached]) -> str:
    return ", ".join(row.target for row in rows if row.samples_us and not row.is_alone)


def print_all_json(seen: Sequence[Seen]) -> None:
    """One object; of several models, one in a list each."""
    shown = [_as_json(one) for one in seen]
    told: Json = {"schema": 1, "models": shown} if len(shown) > 1 else {"schema": 1, **shown[0]}
    click.echo(json.dumps(told))


def _as_json(seen: Seen) -> Json:
    return {
        "model": str(seen.path),
        "targets": [
            row.facts()
            | {"placement": None if row.placement is None else placement_facts(row.placement)}
            for row in seen.rows
        ],
        "results": [{**r.row(), "samples_us": r.samples_us} for r in seen.done.results],
        "comparisons": [c.row() for c in seen.done.comparisons],
        "host": seen.done.host.facts(),
        "warnings": seen.done.warnings,
    }
