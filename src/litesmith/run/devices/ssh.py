"""Models on another Linux machine: a small runner goes there over one ssh connection.

The runner is sent each time and never stored; a model is copied once and found again by its
digest. Nothing is installed there. Models run in the wheel's classic interpreter, whose call takes
some 3 µs less than a session's here: 1 % of a run of 0.3 ms, nothing of a longer one.
"""

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from litesmith.errors import BadInput, CannotRun
from litesmith.phrases import phrase
from litesmith.run.core.target import Target
from litesmith.run.devices.address import TRANSPORTS, Address, Lost, after_runs, parse
from litesmith.run.devices.condition import LOOK, Condition, read_condition
from litesmith.tflite.file import map_file
from litesmith.units import plain

Fact = str | int | float

_AGENT = Path(__file__).with_name("agent.py")
# Reads its own source, of a given length, and nothing that follows it.
_BOOTSTRAP = (
    "import os,sys; n=int(sys.argv[1]); s=b''\n"
    "while len(s)<n: s+=os.read(0,n-len(s)) or sys.exit(1)\n"
    "exec(compile(s,'agent.py','exec'))"
)
_OPTIONS = {
    "BatchMode": "yes",  # a question would wait for ever
    "ConnectTimeout": "10",
    "LogLevel": "ERROR",
    "ServerAliveCountMax": "3",
    "ServerAliveInterval": "5",
}
_NOISE_LINES = 200  # that a login may print before the runner speaks

# Messages of ssh -> the way out; the first match counts.
_WAYS_OUT = {
    "IDENTIFICATION HAS CHANGED": phrase(
        "its host key is not the known one; where that is expected, run ssh-keygen -R {host}"
    ),
    "Host key verification failed": phrase(
        "its host key is not known yet; run `{ssh}` once and accept it"
    ),
    "Permission denied": phrase("no key of yours is accepted there; run ssh-copy-id {place}"),
    "Could not resolve": phrase("no machine of that name; check the name or the network"),
    "Connection refused": phrase(
        "nothing answers on that port; start sshd there or correct the port"
    ),
    "timed out|No route|unreachable": phrase("it does not answer; is it on, and in this network?"),
    "not found|No such file": phrase(
        "there is no {python} there; install Python 3.9 or later, or name it: {address}?python=PATH"
    ),
}


class Device:
    """A machine with the runner on it, which holds any number of models open in one process.

    >>> with connect("ssh://pi@kitchen/cpu:4") as device:             # doctest: +SKIP
    ...     with device.opened("model.tflite", "cpu:4") as session:
    ...         times_us, cpu_us = session.take(50)
    """

    def __init__(self, name: str, command: Sequence[str], hints: Mapping[str, str]) -> None:
        self.name = name
        python = TRANSPORTS["ssh"].default
        plainly = {"address": name, "host": name, "place": name, "python": python, "ssh": "ssh"}
        self._hints = {**plainly, **hints}
        self._sessions: list[DeviceSession] = []
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (close() does)
        source = _AGENT.read_bytes()
        self.facts: dict[str, Fact] = {}  # until the device has answered
        try:
            self._process = subprocess.Popen(
                [*command, shlex.join([self._hints["python"], "-c", _BOOTSTRAP, str(len(source))])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
            )
        except FileNotFoundError:
            self._errors.close()
            raise CannotRun(
                "{name}: {command} is not installed here; install an OpenSSH client",
                name,
                command[0],
            ) from None
        try:
            self.facts = self._greeted(source)
        except BaseException:
            self.close()
            raise

    @property
    def samples(self) -> tuple[tuple[float, ...], ...]:
        """Microseconds of each model so far, in the order of opening."""
        return tuple(tuple(session.samples_us) for session in self._sessions)

    def opened(self, model: str | Path | bytes, target: str | Target = "cpu:1") -> "DeviceSession":
        """The model, copied to the device unless it is there, open and run once."""
        wanted = Target.parse(target)
        if (wanted.kind, wanted.kernels) not in TRANSPORTS["ssh"].targets:
            raise BadInput("{name}: no target {wanted} there; use cpu:THREADS", self.name, wanted)
        content = model if isinstance(model, bytes) else map_file(model)
        known = sha256(content).hexdigest()
        if self.ask(do="put", digest=known, size=len(content))["wanted"]:
            self._write(content)
            self.answer()
        number, how = len(self._sessions), (wanted.threads, wanted.kernels)
        told = self.ask(do="open", number=number, digest=known, how=how)
        opened = DeviceSession(self, number, known, told["create_ns"] / 1e3, told["first_ns"] / 1e3)
        self._sessions.append(opened)
        return opened

    def look(self) -> Condition:
        """How the device is now."""
        return read_condition(self.ask(do="look", script=LOOK)["text"])

    def pin(self, cores: frozenset[int]) -> None:
        """Lets models that are opened from now on run on these cores only."""
        self.ask(do="pin", cores=sorted(cores))

    def close(self) -> None:
        """Ends the runner. Closing twice is fine."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what is left to write has nobody to read it
                    pipe.close()
        try:
            self._process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def __enter__(self) -> "Device":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _greeted(self, source: bytes) -> dict[str, Fact]:
        """The device's facts; anything that a login prints before them is skipped."""
        self._write(source)
        self.tell(do="greet")
        for _ in range(_NOISE_LINES):
            line = self._line()
            if line.startswith(b'{"facts"'):
                break
        else:
            raise CannotRun(
                "{name}: the login there prints without end; it must be silent", self.name
            )
        facts: dict[str, Fact] = json.loads(line)["facts"]
        if not facts["runtime"]:
            raise CannotRun(
                "{name}: its {python} has no ai-edge-litert; run there: python3 -m venv "
                "~/litert && ~/litert/bin/pip install ai-edge-litert numpy, then use "
                "{address}?python=~/litert/bin/python",
                self.name,
                self._hints["python"],
                self._hints["address"],
            )
        return facts

    def ask(self, **words: object) -> dict[str, Any]:
        self.tell(**words)
        return self.answer()

    def tell(self, **words: object) -> None:
        self._write(json.dumps(words).encode() + b"\n")

    def _write(self, content: bytes | memoryview) -> None:
        stream = self._process.stdin
        assert stream is not None
        try:
            stream.write(content)
            stream.flush()
        except (OSError, ValueError):  # a pipe without a reader, or one that is closed
            raise self._gone() from None

    def answer(self) -> dict[str, Any]:
        told = json.loads(self._line())
        if "refused" in told:
            raise CannotRun("{name}: {told}", self.name, plain(told["refused"]))
        return told

    def _line(self) -> bytes:
        stream = self._process.stdout
        assert stream is not None
        line = b"" if stream.closed else stream.readline()
        if not line.endswith(b"\n"):
            raise self._gone()
        return line

    def _gone(self) -> CannotRun:
        """The error for a connection that ended, and why it did."""
        if self._errors.closed:
            return CannotRun("{name}: the connection is closed; connect again", self.name)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=3)
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace")
        if not self.facts:
            return CannotRun("{name}: {way_out}", self.name, self._way_out(said))
        kept = after_runs(sum(map(len, self.samples)))
        crash = re.search("Fatal Python error: (.+)", said)
        if crash:
            what = phrase("the runtime crashed there {kept} ({crash})", kept, plain(crash[1]))
            way_out = phrase("the model is damaged, or the runtime there has a bug")
        else:
            what = phrase("the connection was lost {kept}", kept)
            way_out = phrase("see that the device is on and reachable, then measure again")
        message = phrase("{name}: {what}; {way_out}", self.name, what, way_out)
        return Lost(message, self.samples, tuple(session.digest for session in self._sessions))

    def _way_out(self, said: str) -> str:
        """Advice for the errors that ssh and the device wrote."""
        for pattern, way_out in _WAYS_OUT.items():
            if re.search(pattern, said):
                return way_out.format(**self._hints)
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        cause = plain(lines[-1]) if lines else phrase("it gives no reason")
        return phrase("no connection: {cause}; try `{ssh}` by hand", cause, self._hints["ssh"])


class DeviceSession:
    """A model that is open on a device. `samples_us` are the times of all its runs so far."""

    def __init__(
        self, device: Device, number: int, digest: str, create_us: float, first_us: float
    ) -> None:
        self._device, self._number, self.digest = device, number, digest
        self.create_us, self.first_us = create_us, first_us
        self.samples_us: list[float] = []

    def take(self, runs: int, *, settle: bool = False) -> tuple[tuple[float, ...], float]:
        """Microseconds of each of some runs, by the device's clock, and the CPU time of one, summed
        over threads. A settling run before them pays for what others left in caches."""
        self._device.tell(do="play", number=self._number, runs=runs, settle=settle)
        before, told = len(self.samples_us), dict[str, Any]()
        while "cpu_us" not in told:
            told = self._device.answer()
            self.samples_us += [time / 1e3 for time in told["ns"]]
        return tuple(self.samples_us[before:]), told["cpu_us"]

    def warm_up(self, runs: int | None = None) -> list[float]:
        """Microseconds of warm-up runs: this many, or until they get no faster."""
        told = self._device.ask(do="warm_up", number=self._number, runs=runs)
        return [time / 1e3 for time in told["ns"]]

    def close(self) -> None:
        """Gives the model's memory back, where the device is still there."""
        with suppress(CannotRun):
            self._device.tell(do="close", number=self._number)

    def __enter__(self) -> "DeviceSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(address: str | Address) -> Device:
    """The device at an address, with the runner started on it."""
    where = parse(address) if isinstance(address, str) else address
    host = where.host.strip("[]")
    place = f"{where.user}@{host}" if where.user else host
    port = [] if where.port is None else ["-p", str(where.port)]
    options = [f"-o{key}={value}" for key, value in _OPTIONS.items()]
    # A path from the home folder, which is where ssh begins; the shell there sees it quoted.
    python = where.program.removeprefix("~/") or TRANSPORTS["ssh"].default
    hints = {
        "address": f"{where.device}/{where.target}",
        "host": host if where.port is None else f"[{host}]:{where.port}",
        "place": shlex.join([*port, place]),
        "python": python,
        "ssh": shlex.join(["ssh", *port, place]),
    }
    return Device(where.device, ["ssh", "-T", *options, *port, place], hints)
