"""Commands killed at random moments: no half file, nothing left behind, nothing still running.

Each command runs once undisturbed, which says how much processor time it takes, on a busy machine
as on an idle one. A seed decides the command, the moment and the way: Ctrl-C, SIGTERM, SIGKILL of
the process that works, SIGKILL of all. Where a command is left to clean up, nothing may be left at
once; where nobody is, the next command that writes there cleans up.
"""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import numpy as np
from report import print_table

from litesmith import demo_files
from litesmith.errors import LitesmithError
from litesmith.native.sealed_file import read_sealed, write_sealed
from litesmith.tflite.file import load

FLOAT, OUT, BASELINE, FOLDER = "model.tflite", "out.tflite", "baseline.json", "found"
FED = ("--data", "data.npz", "--samples", "300")
TUNED = ("--data", "data.npz", "--max-drop", "2pt", "--no-train")
TOLD = ("--markdown", "gate.md", "--junit", "gate.xml")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "apply": ("apply", FLOAT, "cleanup | fold | fuse", "-o", OUT),
    "quantize": ("quantize", FLOAT, *FED, "-o", OUT),
    "tune": ("tune", FLOAT, *TUNED, "--runs", "20", "-o", FOLDER),
    "retrain": ("retrain", FLOAT, *FED, "-o", OUT, "--evidence", FOLDER),
    "gate --update": ("gate", BASELINE, FLOAT, *FED, "--update", "--seconds", "4"),
    "gate": ("gate", BASELINE, FLOAT, *FED, "--seconds", "4", *TOLD),
    "cache": ("cache", "clear"),
    "demo": ("demo", "-o", FOLDER, "--runs", "10"),
    "view": ("view", FLOAT, FLOAT, *FED, "--seconds", "0.2", "-o", "page.html"),
    "export": ("export", FLOAT, "--c", FOLDER),
    "choose": ("choose", FLOAT, OUT, *FED, "--seconds", "0.2", "-o", FOLDER),
}
CTRL_C, TERM, WORKER, ALL = "Ctrl-C", "SIGTERM", "kill of the worker", "kill of all"
WAYS = (CTRL_C, TERM, WORKER, ALL)
STATUSES = {CTRL_C: 130, TERM: 143, WORKER: 2, ALL: -signal.SIGKILL}

# How long a command that was asked to end may take, on a busy machine.
MOST_SECONDS = 20.0


@dataclass(frozen=True)
class Kill:
    """What a kill left; `status` is the command's, `seconds` of processor time the moment."""

    seed: int
    command: str
    way: str
    seconds: float
    status: int
    faults: Sequence[str]

    @property
    def is_fine(self) -> bool:
        return not self.faults


def killed(seed: int, undisturbed: "Undisturbed") -> Kill:
    """Starts the command of a seed in a folder of its own, kills it, and looks at what is left."""
    random = np.random.default_rng(seed)
    name = list(COMMANDS)[seed % len(COMMANDS)]
    way = WAYS[seed // len(COMMANDS) % len(WAYS)]
    moment = float(random.uniform(0.0, 1.05)) * undisturbed.seconds(name)
    with TemporaryDirectory() as scratch:
        place = Place(Path(scratch))
        before = place.prepare(undisturbed.baseline())
        child = place.start(COMMANDS[name])
        while child.poll() is None and (ahead := moment - _spent(child.pid)) > 0:
            # The kernel counts in steps of 0.01 s; on all cores, the moment comes no sooner.
            sleep(max(ahead / (os.cpu_count() or 1), float(random.uniform(0.0, 0.02))))
        _send(child, way)
        asked = monotonic()
        status = _wait(child)
        faults = [*_wrong_status(status, way, monotonic() - asked), *_running(child)]
        if way == ALL:  # nobody is there to clean up but the next
            place.start(("apply", FLOAT, "", "-o", "next.tflite")).wait()
            place.work.joinpath("next.tflite").unlink()
        faults += [*place.left(all_gone=way != ALL), *place.broken(before)]
    return Kill(seed, name, way, moment, status, tuple(faults))


class Place:
    """The folders of one command."""

    def __init__(self, scratch: Path) -> None:
        self.work, self.temporary = scratch / "work", scratch / "temporary"
        self.cache = scratch / "cache"
        for folder in (self.work, self.temporary, self.cache):
            folder.mkdir()

    def prepare(self, baseline: bytes) -> dict[str, bytes]:
        """The inputs, and earlier results that are to be replaced; all by name."""
        demo_files.write(self.work)
        for path in self.work.glob("LICENSE*"):
            path.unlink()
        (self.work / OUT).write_bytes((self.work / FLOAT).read_bytes())
        (self.work / BASELINE).write_bytes(baseline)
        for name, content in kept_files().items():
            (self.cache / name).write_bytes(content)
        return {path.name: path.read_bytes() for path in self.work.iterdir()}

    def start(self, words: Sequence[str]) -> "subprocess.Popen[bytes]":
        variables = {"TMPDIR": str(self.temporary), "LITESMITH_CACHE": str(self.cache)}
        return subprocess.Popen(
            [sys.executable, "-m", "litesmith", *words],
            cwd=self.work,
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def left(self, *, all_gone: bool) -> Iterator[str]:
        """Unfinished files, and temporary ones; of a folder that nobody wrote to again, the
        unfinished ones are still there."""
        for path in [*self.work.rglob(".litesmith-*"), *self.cache.rglob(".litesmith-*")]:
            if all_gone or path.parent == self.work:
                yield f"leaves {path.relative_to(self.work.parent)}"
        for path in self.temporary.iterdir():
            yield f"leaves {path.name} among the temporary files"

    def broken(self, before: Mapping[str, bytes]) -> Iterator[str]:
        """Files that are not whole, and inputs that changed."""
        for name in (FLOAT, "data.npz"):
            if (self.work / name).read_bytes() != before[name]:
                yield f"{name} was changed"
        for path in sorted([*self.work.rglob("*"), *self.cache.rglob("*")]):
            if path.is_dir() or path.name.startswith(".litesmith-"):
                continue
            if self.cache in path.parents and read_sealed(path) is None:
                yield f"{path.name} in the cache is not whole"
            try:
                _read(path)
            except (LitesmithError, OSError, ValueError) as error:
                yield f"{path.relative_to(self.work.parent)} is not whole: {error}"


@cache
def kept_files() -> dict[str, bytes]:
    """Some files as a cache holds them, by name."""
    with TemporaryDirectory() as scratch:
        for number in range(40):
            write_sealed(Path(scratch, f"{number:064x}.facts"), bytes(1000))
        return {path.name: path.read_bytes() for path in Path(scratch).iterdir()}


def _read(path: Path) -> None:
    """Raises where a file is not what its name says."""
    if path.suffix == ".tflite":
        load(path)
    elif path.suffix == ".json":
        json.loads(path.read_bytes())
    elif path.suffix == ".jsonl":  # a last line that was cut off is passed over by who reads it
        for line in path.read_bytes().split(b"\n")[:-1]:
            json.loads(line)
    elif path.suffix in (".html", ".xml") and b"</" not in path.read_bytes()[-200:]:
        raise ValueError("it has no end")
    elif path.suffix == ".npz":
        with np.load(path) as arrays:
            for name in arrays:
                _ = arrays[name]


class Undisturbed:
    """What commands come to that nobody kills: measured once, and kept in the folder, if any."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / "undisturbed.json"
        is_known = self._file is not None and self._file.exists()
        self._known = json.loads(self._file.read_bytes()) if self._file and is_known else {}

    def baseline(self) -> bytes:
        """A baseline of the float model."""
        if BASELINE not in self._known:
            with TemporaryDirectory() as scratch:
                place = Place(Path(scratch))
                demo_files.write(place.work)
                if place.start(COMMANDS["gate --update"]).wait():
                    raise RuntimeError("no baseline could be made")
                self._keep(BASELINE, (place.work / BASELINE).read_text())
        return self._known[BASELINE].encode()

    def seconds(self, name: str) -> float:
        """The processor time of a command."""
        if name not in self._known:
            with TemporaryDirectory() as scratch:
                place = Place(Path(scratch))
                before = place.prepare(self.baseline())
                _, ended, usage = os.wait4(place.start(COMMANDS[name]).pid, 0)
                faults = [*place.left(all_gone=True), *place.broken(before)]
                if os.waitstatus_to_exitcode(ended) not in (0, 1) or faults:
                    raise RuntimeError(f"{name}: ends with {ended} without any kill; {faults}")
                self._keep(name, usage.ru_utime + usage.ru_stime)
        return self._known[name]

    def _keep(self, name: str, found: object) -> None:
        self._known[name] = found
        if self._file is not None:
            self._file.write_text(json.dumps(self._known))


def _spent(process: int) -> float:
    """Processor seconds of a process and of all that it started."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0.0
    ticks = sum(map(int, words[11:15]))  # its own, and of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK") + sum(map(_spent, _children(process)))


def _send(child: "subprocess.Popen[bytes]", way: str) -> None:
    if child.poll() is not None:
        return
    if way == ALL:
        os.killpg(child.pid, signal.SIGKILL)
    elif way == WORKER:
        for worker in _children(child.pid):
            os.kill(worker, signal.SIGKILL)
    else:
        child.send_signal(signal.SIGINT if way == CTRL_C else signal.SIGTERM)


def _children(parent: int) -> list[int]:
    try:
        return [*map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())]
    except OSError:  # it has ended
        return []


def _wait(child: "subprocess.Popen[bytes]") -> int:
    try:
        return child.wait(600)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return child.wait()


def _wrong_status(status: int, way: str, seconds: float) -> Iterator[str]:
    """0 and 1 are of a command that was done before; one that has not begun, a signal ends."""
    early = {CTRL_C: -signal.SIGINT, TERM: -signal.SIGTERM}.get(way)
    if status not in (0, 1, STATUSES[way], early):
        yield f"status {status}"
    if way in (CTRL_C, TERM) and status in (STATUSES[way], early) and seconds > MOST_SECONDS:
        yield f"takes {seconds:.0f} s to stop"


def _running(child: "subprocess.Popen[bytes]") -> Iterator[str]:
    """Processes of the command's session that live on."""
    deadline = monotonic() + 5
    while (alive := _session(child.pid)) and monotonic() < deadline:
        sleep(0.05)
    if alive := [process for process in alive if not _is_dying(process)]:
        yield f"{len(alive)} processes go on"
        os.killpg(child.pid, signal.SIGKILL)


def _is_dying(process: int) -> bool:
    """True where a process was killed, and has not had the processor since: the machine is busy."""
    try:
        rows = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return True
    waiting = [int(row.split()[1], 16) for row in rows if row.startswith(("SigPnd", "ShdPnd"))]
    return any(signals >> signal.SIGKILL - 1 & 1 for signals in waiting)


def _session(leader: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == leader and words[0] not in "ZX":
            found.append(int(path.parent.name))
    return found


def describe(kill: Kill) -> str:
    faults = "; ".join(kill.faults) or f"status {kill.status}"
    return f"seed {kill.seed}, {kill.command}, {kill.way} after {kill.seconds:.2f} s: {faults}"


def print_kills(kills: list[Kill]) -> list[str]:
    """The table of kills; a sentence for each offender."""
    counts = Counter((kill.command, kill.way) for kill in kills)
    rows = [(name, *(str(counts[name, way]) for way in WAYS)) for name in COMMANDS]
    print_table(("command", *WAYS), rows)
    statuses = Counter(kill.status for kill in kills)
    print("by status:", ", ".join(f"{status}: {n}" for status, n in sorted(statuses.items())))
    return [describe(kill) for kill in kills if not kill.is_fine]
