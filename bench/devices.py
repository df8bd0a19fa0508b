"""A device over ssh beside this machine, where the device is this machine behind an sshd.

* `bench MODEL --on cpu:1,ssh://…/cpu:1`, one interleaved run: the device's time is that of this
  machine, the ratio's interval is within 5 % of 1.
* sshd dies in the middle of a run: one line, exit status 2, and the times so far are in the log.
"""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from report import print_table, verdict_line
from stock import MISSING as NO_FOLDER
from stock import arguments, want_folder

from litesmith.evidence.bench_record import PartialBench
from litesmith.evidence.log import Log
from litesmith.units import ratio_text, time_text, total_text
from tools.sshd import MISSING, Server, serving

NEAR = 0.05
MODELS = ("vww_96_float.tflite", "mobilenet_v1_1.0_224.tflite")
LOST = 2  # the exit status of a command that a device is lost to


def said(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "litesmith", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def compared(server: Server, path: Path, seconds: float) -> tuple[tuple[str, ...], list[str]]:
    """This machine and the device in one run."""
    places = f"cpu:1,{server.address()}"
    shown = said("bench", str(path), "--on", places, "--seconds", str(seconds), "--json")
    if shown.returncode:
        return (path.stem, "", "", "", ""), [f"{path.stem}: {shown.stderr.strip()}"]
    told = json.loads(shown.stdout)
    times = [time_text(result["p50_us"]) for result in told["results"]]
    (comparison,) = told["comparisons"]
    low, high = comparison["low"], comparison["high"]
    ratio = ratio_text(comparison["ratio"], low, high)
    runs = total_text(told["results"][1]["runs"])
    is_near = high is not None and low >= 1 - NEAR and high <= 1 + NEAR
    missed = [] if is_near else [f"{path.stem}: the device takes {ratio} of this machine's time"]
    return (path.stem, *times, runs, ratio), missed


def kill_while_it_runs(server: Server, seconds: float) -> None:
    """Waits until the model has arrived on the device and has run for a while, then kills sshd."""
    while not any(server.cache.glob("*.tflite")):
        time.sleep(0.1)
    time.sleep(seconds)
    server.kill()


def interrupted(server: Server, path: Path, log: Path) -> tuple[tuple[str, ...], list[str]]:
    """A run that loses its device."""
    killer = threading.Thread(target=kill_while_it_runs, args=(server, 6.0))
    killer.start()
    words = ("bench", str(path), "--on", server.address(), "--seconds", "60", "--log", str(log))
    shown = said(*words)
    killer.join()
    lines = [line for line in shown.stderr.splitlines() if "warning" not in line and line.strip()]
    kept = Log(log).read({"": PartialBench}) if log.exists() else []
    samples = sum(len(m.samples) for trial in kept for m in trial.measurements)
    missed: list[str] = []
    if shown.returncode != LOST or "the connection was lost" not in shown.stderr:
        missed.append(f"lost: exit status {shown.returncode}: {shown.stderr.strip()}")
    if len(lines) != 1:
        missed.append(f"lost: {len(lines)} lines instead of one")
    if not samples or not all(trial.details.is_partial for trial in kept):
        missed.append("lost: the times so far are not in the log")
    print("\n".join(lines), end="\n\n")
    return (path.stem, str(shown.returncode), total_text(samples)), missed


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each comparison")
    options = parser.parse_args()
    models = want_folder(options.models, "--models")
    if MISSING:
        print(MISSING, file=sys.stderr)
        return NO_FOLDER
    rows, missed = list[tuple[str, ...]](), list[str]()
    with TemporaryDirectory() as name, serving(Path(name)) as server:
        os.environ["PATH"] = server.path
        for model in MODELS:
            row, wrong = compared(server, models / model, options.seconds)
            rows.append(row)
            missed += wrong
        print_table(("model", "here", "over ssh", "runs", "ratio (95 % interval)"), rows)
    with TemporaryDirectory() as name, serving(Path(name)) as server:
        os.environ["PATH"] = server.path
        row, wrong = interrupted(server, models / MODELS[0], Path(name, "log.jsonl"))
        print_table(("lost in the middle", "exit status", "times kept"), [row])
    return verdict_line([*missed, *wrong])


if __name__ == "__main__":
    sys.exit(main())
