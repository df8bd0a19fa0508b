"""Damaged files and interrupted commands end as promised: as a result or as one clear line.

files     damaged files in process, many thousands (fuzz_files.py)
commands  those that still open, through the commands as a user runs them (fuzz_commands.py)
kills     commands killed at random moments (fuzz_kills.py)

A seed decides the file and its damage, or the command and its moment: --only SEED repeats one.
With --keep DIR results are recorded there, a later run goes on where the last one ended, and every
input that failed is kept under its seed.
"""

import json
import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from time import monotonic

import fuzz_commands
import fuzz_files
import fuzz_kills
from fuzz_files import BATCH, Ending
from report import verdict_line
from stock import arguments, model_files


class Kept:
    """The folder of a run: a line for each seed, and the inputs that failed."""

    def __init__(self, folder: Path | None, what: str) -> None:
        self.folder = folder
        self.log = None if folder is None else folder / f"{what}.jsonl"
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def lines(self) -> list[dict[str, object]]:
        if self.log is None or not self.log.exists():
            return []
        whole = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in whole if line.endswith("\n")]

    def add(self, lines: list[dict[str, object]]) -> None:
        if self.log is not None:
            with self.log.open("a") as file:
                file.writelines(f"{json.dumps(line)}\n" for line in lines)

    def keep_input(self, name: str, content: bytes, told: str) -> None:
        if self.folder is not None:
            place = self.folder / "failed"
            place.mkdir(exist_ok=True)
            (place / f"{name}.tflite").write_bytes(content)
            (place / f"{name}.txt").write_text(told)


def fuzz_the_files(options: Namespace, kept: Kept) -> list[str]:
    """Batches of seeds until they are done or the minutes are over."""
    folder: Path = options.models
    ends = monotonic() + 60 * options.minutes
    endings = [Ending(**line) for line in kept.lines()]  # pyright: ignore[reportArgumentType]
    done = {e.seed for e in endings}
    first, last = options.seed, options.seed + options.count
    starts = [at for at in range(first, last, BATCH) if at not in done]
    batches = [(at, min(at + BATCH, last)) for at in starts]
    for part in fuzz_files.all_endings(folder, batches):
        kept.add([asdict(ending) for ending in part])
        endings += part
        for bad in (ending for ending in part if not ending.is_fine):
            content = fuzz_files.damaged_file(folder, bad.seed)
            told = f"{fuzz_files.describe(folder, bad)}\n{bad.trace}"
            kept.keep_input(f"files-{bad.seed}", content, told)
        print(f"{len(endings)} of {options.count}", file=sys.stderr)
        if monotonic() > ends:
            break
    return fuzz_files.print_endings(folder, endings)


def fuzz_the_commands(options: Namespace, kept: Kept) -> list[str]:
    """Four commands on each of the files, some files at a time."""
    folder: Path = options.models
    ends = monotonic() + 60 * options.minutes
    runs = [fuzz_commands.Run(**line) for line in kept.lines()]  # pyright: ignore[reportArgumentType]
    done = {run.seed for run in runs}
    seeds = [s for s in range(options.seed, options.seed + options.count) if s not in done]

    def work(seed: int) -> list[fuzz_commands.Run]:
        each = fuzz_commands.COMMANDS_EACH
        return [] if monotonic() > ends else list(fuzz_commands.runs_of(folder, seed, each))

    with ThreadPoolExecutor(options.jobs) as pool:
        for part in pool.map(work, seeds):
            kept.add([asdict(run) for run in part])
            runs += part
            for bad in (run for run in part if not run.is_fine):
                content = fuzz_commands.survivor(folder, bad.seed)[1]
                told = f"{fuzz_commands.describe(folder, bad)}\n{bad.told}"
                kept.keep_input(f"commands-{bad.seed}-{bad.command}", content, told)
    return fuzz_commands.print_runs(folder, runs)


def fuzz_the_kills(options: Namespace, kept: Kept) -> list[str]:
    """One kill after the other: two at once would disturb each other's moments."""
    ends = monotonic() + 60 * options.minutes
    kills = [fuzz_kills.Kill(**line) for line in kept.lines()]  # pyright: ignore[reportArgumentType]
    done, undisturbed = {kill.seed for kill in kills}, fuzz_kills.Undisturbed(kept.folder)
    for seed in range(options.seed, options.seed + options.count):
        if seed in done or monotonic() > ends:
            continue
        kills.append(fuzz_kills.killed(seed, undisturbed))
        kept.add([asdict(kills[-1])])
        print(fuzz_kills.describe(kills[-1]), file=sys.stderr)
    return fuzz_kills.print_kills(kills)


def parsed() -> Namespace:
    parser = arguments(__doc__)
    parser.add_argument("what", nargs="?", choices=("files", "commands", "kills"), default="files")
    parser.add_argument("--count", type=int, default=5000, help="how many seeds")
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="the longest")
    parser.add_argument("--jobs", type=int, default=2, help="commands at a time")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="records, and what failed")
    parser.add_argument("--only", type=int, metavar="SEED", help="one seed, in this process")
    parser.add_argument("--child", type=int, nargs=2, metavar=("FIRST", "END"))
    return parser.parse_args()


def main() -> int:
    options = parsed()
    folder: Path = options.models
    model_files(folder)
    if options.child:
        fuzz_files.work_through(folder, *options.child)
        return 0
    if options.only is not None and options.what == "kills":
        undisturbed = fuzz_kills.Undisturbed(options.keep)
        return verdict_line(fuzz_kills.print_kills([fuzz_kills.killed(options.only, undisturbed)]))
    if options.only is not None and options.what == "commands":
        runs = list(fuzz_commands.runs_of(folder, options.only))
        return verdict_line(fuzz_commands.print_runs(folder, runs))
    if options.only is not None:
        found = fuzz_files.ending(folder, options.only, fuzz_files.peak_memory())
        print(fuzz_files.describe(folder, found), found.trace, sep="\n")
        return 0 if found.is_fine else 1
    fuzz = {"files": fuzz_the_files, "commands": fuzz_the_commands, "kills": fuzz_the_kills}[
        options.what
    ]
    return verdict_line(fuzz(options, Kept(options.keep, options.what)))


if __name__ == "__main__":
    sys.exit(main())
