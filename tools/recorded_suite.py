"""The test suite on a machine that is emulated in a folder, in parts that can be resumed.

`tools/arm` and `tools/windows` make the machines. Each test is on record as soon as it ends, so
that a run can be stopped, or crash, anywhere; what has passed is not run again.
"""

import argparse
import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parents[1]

# Folders and files in the machine's root. The tests import the wheel, never the checkout's sources.
CHECKOUT, SITE = "opt/litesmith", "opt/site"
RECORD = "opt/record.jsonl"
SEAT = "opt/seat-{}"  # each Python's folder: its record, the tests that it leaves out, its /tmp
PYTEST = (
    *("-m", "pytest", "-p", "no:cacheprovider", "-p", "tools.record_tests", "-n0"),
    *("--continue-on-collection-errors", "--tb=short"),
)

# The order of the parts where none is given: first the rooms that others stand on, and quick ones;
# training and whole searches last.
FIRST = (
    *("ir", "tflite", "numeric", "native", "kernels", "passes", "run", "timing", "evidence"),
    *("calibration", "accuracy", "anatomy", "blocks", "precision", "profiling", "data", "tasks"),
    *("lang", "micro", "ops", "workers", "graph_view", "pages", "cli", "regression", "diagnosis"),
    *("front", "transfer", "conversion", "networks"),
)
LAST = ("search", "training", "ray_engine")
FILES = 24  # in one Python at most: starting one takes about 10 s


class Machine(NamedTuple):
    """What one kind of emulated machine does in its own way."""

    make_root: Callable[[Path], None]
    platform: tuple[str, ...]  # of its wheels, in uv's words
    other_pins: dict[str, str]  # versions that are not those of constraints.txt
    more: tuple[str, ...]  # packages beside those of [dev]
    finish: Callable[[Path], None]  # what is left to do when the packages are installed
    enter: Callable[..., "subprocess.Popen[bytes]"]  # starts a command in the machine
    python: tuple[str, ...]
    inside: str  # where the machine sees its root: "" or a drive
    check: str  # a program that fails where nothing would be tested


class Outcome(NamedTuple):
    """How a test ended: passed, failed or skipped; "began" where it has not ended."""

    outcome: str
    why: str = ""
    seconds: float = 0


class Batch(NamedTuple):
    """A Python, and the test files that it runs."""

    process: subprocess.Popen[bytes]
    files: list[str]
    seat: Path  # its folder


class Record(NamedTuple):
    """The tests that each file had when it was last collected, and each test's last outcome."""

    tests: dict[str, list[str]]
    outcomes: dict[str, Outcome]

    def tests_of(self, file: str) -> list[str]:
        """A file's tests; the file itself stands for them where it has not been collected."""
        return self.tests.get(file, [file])

    def has_ended(self, name: str) -> bool:
        return name in self.outcomes and self.outcomes[name].outcome != "began"

    def is_green(self, name: str) -> bool:
        return name in self.outcomes and self.outcomes[name].outcome in ("passed", "skipped")

    def is_all_green(self, file: str) -> bool:
        return all(map(self.is_green, self.tests_of(file)))


def run_suite(machine: Machine, folder: Path, given: argparse.Namespace) -> int:
    """Makes the machine, installs this checkout and runs its tests; 1 where one failed."""
    refuse_two(folder)
    machine.make_root(folder)
    install(machine, folder)
    if given.install:
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the Pythons are ended too
    if machine.enter(folder, [*machine.python, "-P", "-c", machine.check]).wait():
        raise SystemExit("the compiled model does not open without copies: nothing was tested")
    files = files_of(folder, given.parts)
    run_parts(machine, folder, files, given.again, given.limit, given.at_once)
    return summarize(folder)


def options_of(words: str) -> argparse.ArgumentParser:
    """The options that every kind of machine has."""
    options = argparse.ArgumentParser(
        description=words, formatter_class=argparse.RawTextHelpFormatter
    )
    options.add_argument("folder", type=Path)
    options.add_argument("parts", nargs="*")
    options.add_argument("--again", action="store_true")
    options.add_argument("--summary", action="store_true")
    options.add_argument("--install", action="store_true")
    options.add_argument("--shell")
    options.add_argument("--at-once", type=int, default=1, help="how many Pythons")
    options.add_argument("--limit", type=float, default=1200, help="seconds that a test may take")
    return options


def refuse_two(folder: Path) -> None:
    """Exits where another run installs or tests in this folder; until the end, none may."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(
            f"{folder}: another run installs or tests here; wait for its end"
        ) from None


def install(machine: Machine, folder: Path) -> None:
    """Installs the dependencies' wheels and this checkout's own; copies the checkout's tests."""
    root, tools = folder / "root", folder / "tools"
    if not (tools / "bin/uv").exists():
        subprocess.run([sys.executable, "-m", "venv", tools], check=True)
        subprocess.run([tools / "bin/pip", "install", "-q", "uv"], check=True)
    pins, others = folder / "constraints.txt", folder / "overrides.txt"
    lines = (HERE / "constraints.txt").read_text().splitlines(keepends=True)
    pins.write_text(
        "".join(line for line in lines if line.partition("==")[0] not in machine.other_pins)
    )
    others.write_text("".join(f"{name}=={pin}\n" for name, pin in machine.other_pins.items()))
    into = [tools / "bin/uv", "pip", "install", "-q", *machine.platform, "--target", root / SITE]
    extras = ["--extra", "dev", *machine.more]
    project = HERE / "pyproject.toml"
    wanted = "".join(path.read_text() for path in (pins, others, project)) + " ".join(extras)
    noted = folder / "installed"
    if not noted.exists() or noted.read_text() != wanted:
        words = ["--only-binary", ":all:", "-c", pins, "--overrides", others, "-r", project]
        subprocess.run([*into, *words, *extras], check=True)
        noted.write_text(wanted)
    copy_checkout(root / CHECKOUT)
    build = folder / "wheel"
    shutil.rmtree(build, ignore_errors=True)
    pip = [tools / "bin/pip", "wheel", "-q", "--no-deps", "-w", build, root / CHECKOUT]
    subprocess.run(pip, check=True)
    (wheel,) = build.glob("*.whl")
    subprocess.run([*into, "--no-deps", "--reinstall", wheel], check=True)
    shutil.rmtree(root / CHECKOUT / "build", ignore_errors=True)
    machine.finish(folder)


def enter_root(
    folder: Path,
    command: list[str],
    variables: dict[str, str],
    temporary: str = "tmp",
    mounts: str = "",
    place: str = CHECKOUT,
) -> subprocess.Popen[bytes]:
    """Starts a command at a place in the root, in its own namespaces: its mounts and children end
    with it."""
    root = shlex.quote(str(folder / "root"))
    all_mounts = f"""
        mount --bind {root}/{temporary} {root}/tmp && mount -t proc proc {root}/proc &&
        mount -t sysfs -o ro sys {root}/sys && mount --rbind /dev {root}/dev &&
        {mounts.format(root=root)}
        exec chroot {root} /usr/bin/env -i "$@"
    """
    given = [f"{name}={value}" for name, value in variables.items()]
    inside = ["/bin/sh", "-c", f'cd /{place} && exec "$@"', "sh", *command]
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", all_mounts, "sh"]
    return subprocess.Popen([*apart, *given, *inside])


def copy_checkout(place: Path) -> None:
    """Copies every file that git tracks or would add, as it is now."""
    command = ["git", "-C", str(HERE), "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode()
    shutil.rmtree(place, ignore_errors=True)
    for name in filter(None, names.split("\0")):
        if (HERE / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(HERE / name, place / name)


def files_of(folder: Path, asked: list[str]) -> list[str]:
    """The test files of these parts, in order; of all parts where none was asked for."""
    place = folder / "root" / CHECKOUT
    found: list[str] = []
    for name in asked or ordered(place):
        paths = (
            [place / name] if name.endswith(".py") else sorted((place / name).rglob("test_*.py"))
        )
        found += [str(path.relative_to(place)) for path in paths]
    return list(dict.fromkeys(found))


def ordered(place: Path) -> list[str]:
    """All parts: those of FIRST, then single files and parts without a place, then LAST."""
    every = sorted(path.name for path in (place / "tests").iterdir() if path.name != "__pycache__")
    parts = [name for name in every if (place / "tests" / name).is_dir() or name[:5] == "test_"]
    others = [name for name in parts if name not in (*FIRST, *LAST)]
    return [f"tests/{name}" for name in (*FIRST, *others, *LAST)]


def run_parts(
    machine: Machine, folder: Path, files: list[str], again: bool, limit: float, at_once: int
) -> None:
    """Runs the tests of these files that have not passed; with `again`, all of them."""
    for seat in folder.glob("root/" + SEAT.format("*")):
        add_to_record(folder, seat)  # a run that was stopped left its last lines there
    known = read(folder)
    done = set() if again else {name for name in known.outcomes if known.is_green(name)}
    left = [file for file in files if again or not known.is_all_green(file)]
    free = [folder / "root" / SEAT.format(number) for number in range(at_once)]
    running = list[Batch]()
    try:
        while left or running:
            busy = {file for batch in running for file in batch.files}
            waiting = [file for file in left if file not in busy]
            if free and waiting:
                running.append(start_batch(machine, folder, free.pop(), waiting[:FILES], done))
            time.sleep(1)
            for batch in [one for one in running if has_ended(one, limit)]:
                running.remove(batch)
                free.append(batch.seat)
                left = settle(folder, batch, left, done)
    finally:
        for batch in running:
            batch.process.kill()


def settle(folder: Path, batch: Batch, left: list[str], done: set[str]) -> list[str]:
    """Records how a batch ended and adds its tests to `done`; returns the files left to run."""
    status = batch.process.wait()
    lines = add_to_record(folder, batch.seat)
    now = parsed(lines)
    for name, told in now.outcomes.items():
        if told.outcome == "began":
            tell(folder, test=name, outcome="failed", why=f"the process ended in it: {status}")
    done.update(now.outcomes)
    is_whole = any("session" in json.loads(line) for line in lines)
    ended = ended_files(folder, batch.files, now, done, is_whole)
    return [file for file in left if file not in ended]


def ended_files(
    folder: Path, batch: list[str], now: Record, done: set[str], is_whole: bool
) -> set[str]:
    """The files of a batch that need no other run; files without a test are recorded as such."""
    ended = {file for file in batch if set(now.tests_of(file)) <= done}
    if is_whole:
        for file in set(batch) - ended:
            tell(folder, file=file, tests=[])
        return set(batch)
    if not ended and not now.outcomes:
        for file in batch:
            tell(folder, test=file, outcome="failed", why="nothing was collected")
        return set(batch)
    return ended


def start_batch(
    machine: Machine, folder: Path, seat: Path, files: list[str], done: set[str]
) -> Batch:
    shutil.rmtree(seat, ignore_errors=True)
    (seat / "tmp").mkdir(parents=True)
    (seat / "tmp").chmod(0o1777)
    (seat / "record").touch()
    (seat / "done").write_text("\n".join(sorted(done)))
    place = seat.relative_to(folder / "root")
    names = {
        f"LITESMITH_{name.upper()}": f"{machine.inside}/{place}/{name}"
        for name in ("record", "done")
    }
    command = [*machine.python, *PYTEST, *files]
    return Batch(machine.enter(folder, command, f"{place}/tmp", **names), files, seat)


def has_ended(batch: Batch, limit: float) -> bool:
    """Whether a batch has ended; it is killed where one test takes more than `limit` seconds."""
    if batch.process.poll() is None:
        if time.time() - (batch.seat / "record").stat().st_mtime <= limit:
            return False
        batch.process.kill()
    return True


def add_to_record(folder: Path, seat: Path) -> list[str]:
    """Moves a seat's whole lines to the common record, and returns them."""
    place = seat / "record"
    lines = place.read_text().splitlines(keepends=True) if place.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    with (folder / "root" / RECORD).open("a") as file:
        file.writelines(whole)
    place.unlink(missing_ok=True)
    return whole


def tell(folder: Path, **facts: object) -> None:
    with (folder / "root" / RECORD).open("a") as file:
        file.write(json.dumps(facts) + "\n")


def read(folder: Path) -> Record:
    """The common record, and what the running batches have added at their seats."""
    seats = sorted(folder.glob("root/" + SEAT.format("*") + "/record"))
    places = [place for place in (folder / "root" / RECORD, *seats) if place.exists()]
    return parsed([line for place in places for line in place.read_text().splitlines()])


def parsed(lines: list[str]) -> Record:
    """The last outcome of each test that its file still has."""
    tests, outcomes = dict[str, list[str]](), dict[str, Outcome]()
    for facts in map(json.loads, lines):
        if "session" in facts:
            continue
        name = facts.pop("test", None)
        if name is None:
            tests[facts["file"]] = facts["tests"]
        else:
            outcomes[name] = Outcome(**facts)
    kept = {
        name: told
        for name, told in outcomes.items()
        if name in tests.get(name.partition("::")[0], [name])
    }
    return Record(tests, kept)


def summarize(folder: Path) -> int:
    """Prints totals, failures and the reasons of skips; returns 1 where a test failed."""
    known = read(folder)
    last = {name: told for name, told in known.outcomes.items() if told.outcome != "began"}
    counts = Counter(told.outcome for told in last.values())
    seconds = sum(told.seconds for told in last.values())
    every = files_of(folder, [])
    ran = [file for file in every if all(map(known.has_ended, known.tests_of(file)))]
    print(
        f"{len(ran)} of {len(every)} files: {counts['passed']} tests passed, "
        f"{counts['failed']} failed, {counts['skipped']} skipped, {seconds:.0f} s"
    )
    print("  not yet  " + " ".join(file for file in every if file not in ran))
    skipped = Counter(told.why for told in last.values() if told.outcome == "skipped")
    for name, told in last.items():
        if told.outcome == "failed":
            print(f"  failed   {name}  {told.why.splitlines()[0] if told.why else ''}")
    for why, count in skipped.most_common():
        print(f"  skipped  {count:4}  {why}")
    return 1 if counts["failed"] else 0
