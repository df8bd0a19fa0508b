"""Models on an Android phone over adb, timed by the user's own `benchmark_model` there.

The program reports averages, not the times of single runs, and each call of it opens the model
anew. A model is copied once and found again by its digest.
"""

import os
import re
import shlex
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from litesmith.errors import BadInput, CannotRun
from litesmith.phrases import phrase
from litesmith.run.core.target import Target
from litesmith.run.devices.address import TRANSPORTS, Address, Lost, after_runs, parse
from litesmith.run.devices.condition import LOOK, Condition, read_condition
from litesmith.temporary import temporary_file
from litesmith.tflite.file import map_file
from litesmith.units import plain

Fact = str | int | float

_FOLDER = "/data/local/tmp/litesmith"
_PROGRAM_VARIABLE = "LITESMITH_BENCHMARK_MODEL"  # where on the phone it lies, for all addresses
_END = "litesmith-ended="
_SECONDS = 60.0
_RUN_SECONDS = 600.0

# The states of unusable phones in the list of `adb devices` -> the way out.
_STATES = {
    "unauthorized": phrase("unlock the phone and allow debugging by this machine"),
    "authorizing": phrase("unlock the phone and allow debugging by this machine"),
    "no permissions": phrase(
        "this user may not open it; install udev rules (android-sdk-platform-tools-common has "
        "them) and plug it in again"
    ),
    "offline": phrase("it does not answer; plug it in again, or run adb reconnect"),
}
_FACTS = {
    "maker": "getprop ro.product.manufacturer",
    "model": "getprop ro.product.model",
    "chip": "getprop ro.soc.model",
    "board": "getprop ro.board.platform",
    "android": "getprop ro.build.version.release",
    "abi": "getprop ro.product.cpu.abi",
    "cores": "nproc",
    "governor": "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null",
    "load": "cut -d' ' -f1 /proc/loadavg",
    "memory": "grep MemTotal /proc/meminfo",
}
_FLAGS = {
    ("cpu", "builtin"): "--use_xnnpack=false",
    ("cpu", "xnnpack"): "--use_xnnpack=true",
    ("gpu", "xnnpack"): "--use_gpu=true",
}

# What loggers put in front of a line: `INFO: `, `I0000 00:00:17 4 file.cc:9] `, `[file.cc:9] `.
_LOGGER = r"(?:(?:INFO|WARNING|ERROR): |[IWEF]\d{4} [^\]]*\] |\[[^\]]*\] )*"
_NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_LONGEST = 2_000  # characters of a line that is looked at

_TIMINGS = re.compile(
    rf"Inference timings in us: Init: ({_NUMBER}), First inference: ({_NUMBER}), "
    r".*Inference \(avg\): \d"
)
_RUNS = re.compile(rf"{_LOGGER}(count=\d+ .*)")
_DELEGATE = re.compile(rf"{_LOGGER}((?:Explicitly applied|Though) .* delegate.*)")
_ERROR = re.compile(r"(?:\[[^\]]*\] )?(?:ERROR: |[EF]\d{4} [^\]]*\] )(?:\[[^\]]*\] )?(.*)")


class Benchmark(NamedTuple):
    """The measurements of one call of the program."""

    create_us: float
    first_us: float
    runs: int
    typical_us: float  # of a run: the median where the program tells it, else the mean
    note: str  # how much of the model a delegate took, in the program's words


class Phone:
    """An Android phone that adb reaches.

    >>> phone = connected("adb://R58M12ABCDE/cpu:4")                    # doctest: +SKIP
    >>> phone.benchmark("model.tflite", "cpu:4").typical_us             # doctest: +SKIP
    """

    def __init__(self, name: str, serial: str, program: str) -> None:
        self.name, self.serial, self.program = name, serial, program
        self._samples: dict[str, list[float]] = {}
        self._runs = 0
        self._pinned: tuple[str, ...] = ()
        self._refuse_unusable()
        self.facts = self._facts()

    @property
    def samples(self) -> tuple[tuple[float, ...], ...]:
        """Typical µs of each call of the program so far, for each model in the order of use."""
        return tuple(map(tuple, self._samples.values()))

    def benchmark(
        self,
        model: str | Path | bytes,
        target: str | Target = "cpu:1",
        *,
        runs: int = 50,
    ) -> Benchmark:
        """One call of the program: the model is opened, warmed up and run this many times."""
        wanted = Target.parse(target)
        if (wanted.kind, wanted.kernels) not in _FLAGS:
            raise BadInput(
                "{name}: no target {wanted} there; use cpu:THREADS or gpu", self.name, wanted
            )
        path = self._put(model)
        words = [
            *self._pinned,
            self.program,
            f"--graph={path}",
            f"--num_threads={wanted.threads}",
            _FLAGS[wanted.kind, wanted.kernels],
            "--enable_op_profiling=false",
            f"--num_runs={runs}",
            "--min_secs=0",
            "--warmup_min_secs=0.1",
        ]
        answer = self._shell(f"{shlex.join(words)} 2>&1", seconds=_RUN_SECONDS)
        try:
            told = read(answer.text)
        except CannotRun as error:
            raise CannotRun("{name}: {error}", self.name, error) from None
        self._runs += told.runs
        self._samples.setdefault(path, []).append(told.typical_us)
        return told

    def look(self) -> Condition:
        """How the phone is now."""
        return read_condition(self._shell(LOOK.rstrip()).text)

    def pin(self, cores: frozenset[int]) -> None:
        """Lets models run on these cores only."""
        self._pinned = "taskset", f"{sum(1 << core for core in cores):x}"
        if self._shell(f"{shlex.join(self._pinned)} true").status:
            raise CannotRun("{name}: its cores cannot be chosen; leave them to it", self.name)

    def _put(self, model: str | Path | bytes) -> str:
        """The model's path on the phone, where it is copied unless it is there."""
        content = model if isinstance(model, bytes) else map_file(model)
        digest = sha256(content).hexdigest()
        path = f"{_FOLDER}/{digest}.tflite"
        known = self._shell(f"mkdir -p {_FOLDER}; sha256sum {path} 2>/dev/null")
        if known.text.startswith(digest):
            return path
        with temporary_file(content) as copy:
            self._push(str(copy), f"{path}.part")
        moved = self._shell(f"mv {path}.part {path} 2>&1")
        if moved.status:
            raise CannotRun(
                "{name}: no model at {path} ({what})", self.name, path, plain(moved.text.strip())
            )
        return path

    def _refuse_unusable(self) -> None:
        """Raises where the phone or the program on it is missing."""
        done = _called(self.name, ["devices"])
        rows = [line.split("\t", 1) for line in done.stdout.splitlines() if "\t" in line]
        states = {row[0].strip(): row[1].strip() for row in rows}
        if done.returncode:
            cause = _last_line(done.stderr or done.stdout)
            raise CannotRun(
                "{name}: adb fails here ({cause}); run adb devices by hand", self.name, cause
            )
        if self.serial not in states:
            seen = ", ".join(states) or "none"
            raise CannotRun(
                "{name}: adb sees no such phone (it sees {seen}); plug it in and switch on "
                "USB debugging, or adb connect to it",
                self.name,
                plain(seen),
            )
        state = states[self.serial]
        if state != "device":
            ways = [way for word, way in _STATES.items() if state.startswith(word)]
            way_out = ways[0] if ways else phrase("start Android on it")
            told = plain(state.split(" (")[0])
            raise CannotRun(
                "{name}: adb says {told!r} of the phone; {way_out}", self.name, told, way_out
            )
        program = shlex.quote(self.program)
        if self._shell(f"test -x {program}").status:
            raise CannotRun(
                "{name}: no program {program} there; build or download TensorFlow Lite's "
                "benchmark_model, then: adb -s {serial} push benchmark_model {program2} && "
                "adb -s {serial} shell chmod +x {program2}",
                self.name,
                self.program,
                self.serial,
                program,
            )

    def _facts(self) -> dict[str, Fact]:
        script = "; ".join(f'echo "{key}=$({command})"' for key, command in _FACTS.items())
        lines = self._shell(script).text.splitlines()
        said = {key: value.strip() for key, _, value in (line.partition("=") for line in lines)}
        chip = said.get("chip") or said.get("board") or "unknown chip"
        return {
            "cpu": plain(f"{said.get('maker', '')} {said.get('model', '')}, {chip}".strip()),
            "cores": int(_number(said.get("cores", ""))),
            "governor": plain(said.get("governor", "")),
            "load": _number(said.get("load", "")),
            "busy": 0.0,
            "memory_bytes": int(_number(said.get("memory", ""))) * 1024,
            "system": plain(
                phrase("Android {android} {abi}", said.get("android", ""), said.get("abi", ""))
            ),
            "python": "",
            "runtime": f"benchmark_model ({self.program})",
        }

    def _shell(self, command: str, seconds: float = _SECONDS) -> "_Answer":
        """The output of a command on the phone. adb does not always distinguish the end of a
        command from that of a connection, so the end is printed."""
        words = ["-s", self.serial, "shell", f"{command}; echo {_END}$?"]
        try:
            done = _called(self.name, words, seconds)
        except CannotRun as error:
            raise self._lost(str(error)) from None
        text, mark, status = done.stdout.rpartition(_END)
        if not mark or not status.strip().isdecimal():
            runs = after_runs(self._runs)
            what = phrase("{name}: the connection was lost {runs}", self.name, runs)
            raise self._lost(phrase("{what}; plug the phone in again, then measure again", what))
        return _Answer(text, int(status))

    def _lost(self, message: str) -> Lost:
        """The error for a phone that is gone, with its measurements."""
        digests = tuple(Path(path).stem for path in self._samples)
        return Lost(message, self.samples, digests)

    def _push(self, source: str, destination: str) -> None:
        words = ["-s", self.serial, "push", source, destination]
        done = _called(self.name, words, seconds=_RUN_SECONDS)
        if done.returncode:
            self._shell("true")  # raises where the phone is gone
            cause = _last_line(done.stderr or done.stdout)
            raise CannotRun(
                "{name}: `adb {direction}` of {destination} failed ({cause})",
                self.name,
                "push",
                destination,
                cause,
            )


class _Answer(NamedTuple):
    text: str
    status: int


def connect(address: str | Address) -> Phone:
    """The phone at an address, seen to be usable."""
    where = parse(address) if isinstance(address, str) else address
    program = where.program or os.environ.get(_PROGRAM_VARIABLE, "") or TRANSPORTS["adb"].default
    return Phone(where.device, where.host, program)


def _number(text: str) -> float:
    """The first number of a text; 0 where there is none."""
    found = re.search(r"\d+(?:\.\d+)?", text)
    return float(found[0]) if found else 0.0


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return plain(lines[-1].strip()) if lines else phrase("it gives no reason")


def _called(
    name: str, words: list[str], seconds: float = _SECONDS
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["adb", *words],
            input="",
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise CannotRun(
            "{name}: adb is not installed here; install Android's platform tools (apt-get "
            "install adb, brew install android-platform-tools)",
            name,
        ) from None
    except subprocess.TimeoutExpired:
        raise CannotRun(
            "{name}: adb did not answer for {seconds:g} s; plug the phone in again", name, seconds
        ) from None


def read(text: str) -> Benchmark:
    """The values in the program's output; raises where it measured nothing."""
    text = "\n".join(line[:_LONGEST] for line in text.splitlines())
    timings = _TIMINGS.search(text)
    told = [_count_and_time(found[1]) for found in map(_RUNS.match, text.splitlines()) if found]
    measured = [one for one in told if one is not None]  # the warm-up, and then the runs
    if timings is None or not measured:
        raise CannotRun("benchmark_model measured nothing: {cause}", _cause(text))
    delegate = next(filter(None, map(_DELEGATE.match, text.splitlines())), None)
    note = plain(delegate[1]) if delegate else ""
    return Benchmark(float(timings[1]), float(timings[2]), *measured[-1], note)


def _count_and_time(text: str) -> tuple[int, float] | None:
    """Reads `count=50 first=9 … avg=9.4 std=1`; equal times appear as `count=2 curr=9(all
    same)`."""
    values = {key: float(value) for key, value in re.findall(rf"(\w+)=({_NUMBER})", text)}
    if not values["count"] or not values.keys() & {"avg", "curr"}:
        return None
    mean = values["avg"] if "avg" in values else values["curr"]
    return int(values["count"]), values.get("median", mean)


def _cause(text: str) -> str:
    """The program's own complaint, as one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [found[1] for found in map(_ERROR.match, lines) if found]
    complaint = errors[0] if errors else lines[-1] if lines else phrase("it said nothing")
    return plain(complaint).rstrip(".")
