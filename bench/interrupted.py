"""A search that is killed at random moments and goes on ends where an undisturbed one does.

`litesmith tune` runs once undisturbed, then in rounds: killed (SIGKILL) at ten random moments, and
started again in the same folder each time, until it is done. A round that is done before its ten
kills goes on being killed while it answers from its records.

Bar: after every kill each model in the folder opens, each record can be read, and the best so far
runs; in the end the best is the undisturbed run's, or the intervals of their times overlap.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import numpy as np
from report import print_table, verdict_line
from stock import ASSETS, MISSING

from litesmith import Session, load
from litesmith.errors import LitesmithError
from litesmith.evidence.log import Log
from litesmith.evidence.tune_record import TUNE_KINDS
from litesmith.ir.check import problems
from litesmith.tflite.file import digest
from litesmith.units import ratio_text, time_text

MODEL = ASSETS / "models" / "pretrainedResnet.tflite"
DATA = ASSETS / "data" / "cifar10_test.npz"
OPTIONS = ("--norm", "raw", "--samples", "1500", "--no-train", "--max-drop", "1pt")

# A run that goes on has its start again, and the trial that the kill cut short: the moments of all
# kills reach this far beyond one undisturbed run.
REACH = 2.0

# Starts without a kill that a round may take to be done.
MOST_STARTS = 3


class Start(NamedTuple):
    """One start of the command: how long it ran, and its exit status; None where it was killed."""

    seconds: float
    status: int | None


class End(NamedTuple):
    """The result of a search: the best file, and its time as a part of the float model's."""

    name: str
    digest: str
    ratio: float
    low: float
    high: float

    def is_like(self, other: "End") -> bool:
        overlaps = self.low <= other.high and other.low <= self.high
        return self.digest == other.digest or overlaps


def started(command: Sequence[str], seconds: float | None = None) -> Start:
    """Runs the command to its end, or kills it after so many seconds."""
    began = perf_counter()
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=nowhere, stderr=nowhere) as child:
        try:
            status = child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            status = None
    return Start(perf_counter() - began, status)


def command_of(given: argparse.Namespace, folder: Path) -> list[str]:
    words = [sys.executable, "-m", "litesmith", "tune", str(given.model), "--data", str(given.data)]
    resume = ["--resume"] if (folder / "tune.json").exists() else []
    return [*words, *(given.options or OPTIONS), "-o", str(folder), *resume]


def broken(folder: Path) -> Iterator[str]:
    """A sentence for each file of a search that is not whole."""
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name.endswith(".part"):  # a name that nobody reads
            continue
        try:
            _read(path)
        except (LitesmithError, OSError, ValueError) as error:
            yield f"{path.relative_to(folder)}: {error}"


def _read(path: Path) -> None:
    """Raises where a file is not what its name says."""
    if path.suffix == ".tflite":
        for problem in problems(load(path)):
            raise ValueError(problem)
    elif path.suffix == ".json":
        json.loads(path.read_bytes())
    elif path.name == "trials.jsonl":
        Log(path).read(TUNE_KINDS)
    if path.name == "best.tflite":
        with Session(path) as session:
            session.run()


def end_of(folder: Path) -> End:
    """Reads the result from the records of a finished search; raises where they contradict its
    files."""
    told = json.loads((folder / "tune.json").read_bytes())
    best = told["best"]
    if told["state"] != "done" or best is None:
        raise ValueError(f"state {told['state']!r}, best {best}")
    made, recipe = digest(folder / "best.tflite"), json.loads((folder / "recipe.json").read_bytes())
    if not made == best["digest"] == recipe["digest"]:
        raise ValueError("best.tflite, tune.json and recipe.json are not of one model")
    left = [path.name for path in folder.rglob("*.part")]
    if left or (folder / "work").exists():
        raise ValueError(f"left behind: {', '.join(left) or 'work'}")
    times = (best["latency"][key] for key in ("ratio", "low", "high"))
    return End(best["name"], made, *times)


class Round(NamedTuple):
    """A search that was killed again and again.

    kills   the moments, in seconds after each start
    lines   the lines of the log of trials
    faults  incomplete files, after a kill or at the end
    """

    kills: tuple[float, ...]
    lines: int
    seconds: float
    end: End | None
    faults: tuple[str, ...]


def interrupted(given: argparse.Namespace, folder: Path, whole: float, seed: int) -> Round:
    """Kills the search, starts it again, and lets it end at last."""
    random = np.random.default_rng(seed)
    kills: list[float] = []
    faults: list[str] = []
    seconds, longest = 0.0, REACH * 2 * whole / given.kills
    while len(kills) < given.kills:
        run = started(command_of(given, folder), float(random.uniform(0, longest)))
        seconds += run.seconds
        if run.status is None:
            kills.append(run.seconds)
            faults += [f"kill {len(kills)}: {fault}" for fault in broken(folder)]
        elif run.status:
            faults.append(f"exit status {run.status} after {len(kills)} kills")
            break
        else:  # done before its kills: those left come while it answers from its records
            longest = run.seconds
    runs = [started(command_of(given, folder))]
    while runs[-1].status and len(runs) < MOST_STARTS:
        runs.append(started(command_of(given, folder)))
    seconds += sum(run.seconds for run in runs)
    faults += [f"at the end: {fault}" for fault in broken(folder)]
    end: End | None = None
    try:
        end = end_of(folder)
    except (OSError, ValueError, KeyError) as error:
        faults.append(f"at the end: {error}")
    return Round(tuple(kills), lines_in(folder), seconds, end, tuple(faults))


def lines_in(folder: Path) -> int:
    return len((folder / "trials.jsonl").read_bytes().splitlines())


def row_of(name: str, found: Round) -> list[str]:
    kills, end = found.kills, found.end
    return [
        name,
        str(len(kills)),
        f"{time_text(1e6 * min(kills))} to {time_text(1e6 * max(kills))}" if kills else "",
        time_text(1e6 * found.seconds),
        str(found.lines),
        str(len(found.faults)),
        "none" if end is None else f"{end.name} {end.digest[:8]}",
        "" if end is None else ratio_text(end.ratio, end.low, end.high),
    ]


def main() -> int:
    given = _arguments()
    for place in (given.model, given.data):
        if not place.exists():
            print(f"{place}: not found")
            return MISSING
    with TemporaryDirectory(dir=given.scratch) as scratch:
        alone = Path(scratch, "alone")
        whole = started(command_of(given, alone))
        wanted = end_of(alone)
        rows = [row_of("undisturbed", Round((), lines_in(alone), whole.seconds, wanted, ()))]
        missed: list[str] = []
        for number in range(1, given.rounds + 1):
            name = f"round {number}"
            found = interrupted(given, Path(scratch, str(number)), whole.seconds, number)
            rows.append(row_of(name, found))
            missed += [f"{name}: {fault}" for fault in found.faults]
            if found.end is not None and not found.end.is_like(wanted):
                missed.append(f"{name}: ends with another best, {found.end.name}")
    head = ("", "kills", "after", "took", "lines", "faults", "best", "time of float's")
    print_table(head, rows)
    return verdict_line(missed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--scratch", type=Path, help="where the folders of the searches go")
    parser.add_argument("options", nargs="*", help="of tune, behind --, in place of the usual ones")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
