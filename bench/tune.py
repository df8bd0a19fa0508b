"""`tune --max-drop 1pt` beside ai-edge-quantizer and the C++ quantizer in the runtime's wheel.

The search is the command line's, without training and with nothing remembered from earlier runs.
All quantizers see the same calibration samples, and all leave inputs and outputs in float. Every
file is scored on the held-out samples of the search, paired with the float model, and all files of
a network are timed in one interleaved run on one thread. Bar: proven or likely; fully integer; so
much faster than float as `BARS` says; not slower than a peer within the budget; for MobileNet v1
0.25 no peer is within it. The part `cost` asks for a first search of at most 10 minutes with 1,000
images, and of 20 seconds when repeated.
"""

import json
import os
import subprocess
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple, cast

import numpy as np
from peer import INSTALL, File, checked, integer_text, last_line, peers, with_signature
from quantize import NETWORKS, Network, missing
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, MISSING, arguments, want_folder

import litesmith
from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.calibration.context import CALIBRATION_SAMPLES
from litesmith.cli.call import MISSES_WHAT_WAS_ASKED
from litesmith.data.sample_splits import take_some
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.search.trial.budget import MISSED, Budget, verdict
from litesmith.search.trial.data_split import split
from litesmith.search.trial.measured_values import score_of
from litesmith.timing.latency import Rule, list_contenders, measure, ratio
from litesmith.timing.statistics import SLOWER, Ratio
from litesmith.units import (
    bytes_text,
    factor_text,
    gain_text,
    ratio_text,
    score_text,
    time_text,
    total_text,
)

MAX_DROP = "1pt"
BUDGET = Budget.parse(max_drop=MAX_DROP)
FLOAT, OURS, WHEEL = "float", "tune", "C++ quantizer"
WAYS = {"average+float": "ai-edge-quantizer", "minmax+float": "ai-edge-quantizer, min/max"}
COST, COST_IMAGES, COST_NETWORK = "cost", 1000, "mobilenet_v1_1.0_224.tflite"
FIRST_SECONDS, AGAIN_SECONDS = 600.0, 20.0


class Bar(NamedTuple):
    """The requirement for a network: how many times faster than float our file is, and whether no
    other file may be within the budget."""

    faster: float
    is_alone: bool = False


BARS = {
    "mobilenet_v1_1.0_224.tflite": Bar(1.6),
    "mobilenet_v1_0.25_224.tflite": Bar(1.4, is_alone=True),
    "efficientnet_lite0_f32.tflite": Bar(1.6),
    "pretrainedResnet.tflite": Bar(1.6),
}


# The search, and the peers.


class Tuned(NamedTuple):
    """The output of the command, and its seconds."""

    said: dict[str, object]
    seconds: float

    @property
    def verdict(self) -> str:
        return str(self.said["verdict"])

    @property
    def best(self) -> dict[str, object] | None:
        """The file to ship; None where there is none."""
        return cast("dict[str, object] | None", self.said["best"])


def tuned(network: Network, job: Namespace, out: Path, samples: int | None = None) -> Tuned:
    """Runs one search from the command line; exits where it is refused."""
    places = ["--data", str(job.data / network.validation)]
    places += ["--calibrate", str(job.data / network.calibration)]
    places += [] if samples is None else ["--samples", str(samples)]
    line = [sys.executable, "-m", "litesmith", "tune", str(job.models / network.file), *places]
    line += [*network.words, "--max-drop", MAX_DROP, "--no-train", "--json", "-o", str(out)]
    start = perf_counter()
    environment = os.environ | {"LITESMITH_CACHE": ""}
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    if done.returncode not in (0, MISSES_WHAT_WAS_ASKED) or not done.stdout:
        print(f"{network.file}: {last_line(done.stderr)}", file=sys.stderr)
        sys.exit(1)
    return Tuned(json.loads(done.stdout), perf_counter() - start)


def by_wheel(model: Path, calls: Path, out: Path) -> File:
    """Quantizes with the quantizer in the wheel, as TensorFlow's converter calls it; inputs and
    outputs stay float."""
    wheel = import_module("ai_edge_litert._pywrap_tensorflow_lite_calibration_wrapper")
    outside, codes, bias = (np.dtype(kind).num for kind in ("float32", "int8", "int32"))
    content = model.read_bytes()  # has to outlive the worker, which looks into it to the end
    try:
        worker = wheel.CalibrationWrapper(content, [], [])
        worker.Prepare()
        for values in np.load(calls, mmap_mode="r"):
            worker.FeedTensor([np.array(values)])
        out.write_bytes(worker.QuantizeModel(outside, outside, False, codes, bias, False, False))
    except (RuntimeError, ValueError) as error:
        return File(out, last_line(str(error)))
    return File(out)


def by_peers(model: Path, few: Data, peer: str | None, folder: Path) -> dict[str, File]:
    """The files that the other quantizers make of a model, by name."""
    calls, named = folder / "calls.npy", folder / "named.tflite"
    np.save(calls, np.stack([sample.inputs[0] for sample in few]))
    made: dict[str, File] = {}
    if peer:
        litesmith.save(with_signature(litesmith.load(model)), named)
        for way, who in WAYS.items():
            made[who] = peers(peer, named, calls, folder / f"{way}.tflite", way)
    made[WHEEL] = by_wheel(model, calls, folder / "wheel.tflite")
    return made


# The comparison.


class Judged(NamedTuple):
    """One file: its score beside float's, its time and float's, and ours over its own."""

    name: str
    file: File
    score: Evaluation
    p50_us: float
    float_us: float
    time: Ratio
    ours: Ratio

    @property
    def verdict(self) -> str:
        return verdict(BUDGET.room(score_of(self.score)))

    @property
    def is_integer(self) -> bool:
        return self.file.claims is not None and self.file.claims.is_integer


def judged(source: Path, made: dict[str, File], held_out: Data, seconds: float) -> list[Judged]:
    """Every file that runs, on one pass over the samples and in one run in turns; ours first."""
    running = {who: file for who, file in made.items() if not file.failure}
    paths = [file.path for file in running.values()]
    scores = evaluate_all(paths, held_out, against=source, metric="top1")
    timed = measure(list_contenders([source, *paths]), Rule(seconds=seconds), memory=False)
    first, best, *_ = timed.results
    times = (
        (own.percentile_us(50), first.percentile_us(50), ratio(first, own), ratio(own, best))
        for own in timed.results[1:]
    )
    lines = zip(running.items(), scores, times, strict=True)
    return [Judged(who, file, score, *time) for (who, file), score, time in lines]


HEAD = ("", "top-1", "against float, 95 %", "1 pt", "integer", "size", "p50", "time / float")


def cells(one: Judged) -> tuple[str, ...]:
    against = one.score.against
    assert against is not None and against.difference is not None
    ends = against.difference_low or 0.0, against.difference_high or 0.0
    ours = "" if one.name == OURS else ratio_text(one.ours.value, *one.ours.interval)
    return (
        one.name,
        score_text(one.score.value, "share"),
        gain_text(against.difference, "share", *ends),
        one.verdict,
        integer_text(one.file),
        bytes_text(one.file.path.stat().st_size),
        time_text(one.p50_us),
        ratio_text(one.time.value, *one.time.interval),
        ours,
    )


def float_cells(source: Path, ours: Judged) -> tuple[str, ...]:
    assert ours.score.against is not None and ours.score.against.value is not None
    value = score_text(ours.score.against.value, "share")
    size = bytes_text(source.stat().st_size)
    return (FLOAT, value, "", "", "no", size, time_text(ours.float_us), "", "")


def missed(network: Network, found: Tuned, lines: list[Judged]) -> list[str]:
    """The requirements that one network's files miss."""
    ours, *others = lines
    bar, within = BARS[network.file], [one for one in others if one.verdict != MISSED]
    says = found.said["value"]
    told = {
        f"is {found.verdict}, and here {ours.verdict}": MISSED in (found.verdict, ours.verdict),
        f"says {says}, scored here {ours.score.value}": says != ours.score.value,
        "is not fully integer": not ours.is_integer,
        factor_text(1 / ours.time.value, "faster than float"): 1 / ours.time.value < bar.faster,
    }
    told |= {f"slower than {one.name}": one.ours.verdict == SLOWER for one in within}
    if bar.is_alone:
        told |= {f"{one.name} is within the budget too": True for one in within}
    return [f"{network.file}: {text}" for text, is_missed in told.items() if is_missed]


def compared(network: Network, job: Namespace, folder: Path) -> list[str]:
    """Searches, quantizes with the peers and prints the table; returns the bars that were
    missed."""
    source = job.models / network.file
    content = litesmith.load(source)
    places = (job.data / network.validation, job.data / network.calibration)
    parts = split(*(open_data(p, content, preparation=network.preparation) for p in places))
    few = take_some(parts.calibration, CALIBRATION_SAMPLES)
    found = tuned(network, job, (job.keep or folder) / f"{source.stem}-tuned")
    print(f"{source.stem}, {total_text(len(few))} samples to calibrate on", end=", ")
    print(f"{total_text(len(parts.held_out))} held out, {time_text(1e6 * found.seconds)} of search")
    print(f"{found.verdict}: {found.said['sentence']}", flush=True)
    if found.best is None:
        return [f"{network.file}: tune ends with {found.verdict}"]
    made = {OURS: File(Path(str(found.best["file"]))), **by_peers(source, few, job.peer, folder)}
    made = {who: checked(file, content, few) for who, file in made.items()}
    for who, file in made.items():
        print("".join(f"{who}: {text}\n" for text in (file.failure, file.remark) if text), end="")
    if made[OURS].failure:
        return [f"{network.file}: what tune ships does not run"]
    lines = judged(source, made, parts.held_out, job.seconds)
    ratio = lines[0].time
    tell_figure(f"{source.stem} faster", 1 / ratio.value, *(1 / e for e in ratio.interval[::-1]))
    print_table((*HEAD, "tune / it"), [float_cells(source, lines[0]), *map(cells, lines)])
    return missed(network, found, lines)


def cost(network: Network, job: Namespace, folder: Path) -> list[str]:
    """Runs the same search twice and prints the cost of each; returns the bars that were missed."""
    first, again = (tuned(network, job, folder / COST, COST_IMAGES) for _ in range(2))
    parts = (("first search", first, FIRST_SECONDS), ("again", again, AGAIN_SECONDS))
    rows = [
        (f"{what}, {total_text(COST_IMAGES)} images", time_text(1e6 * one.seconds), one.verdict)
        for what, one, _ in parts
    ]
    for what, one, _ in parts:
        tell_figure(what, one.seconds)
    print_table((network.file, "took", "verdict"), rows)
    lines = [
        f"{what}: {time_text(1e6 * one.seconds)}, at most {time_text(1e6 * most)}"
        for what, one, most in parts
        if one.seconds > most
    ]
    if not first.best or not again.best or first.best["digest"] != again.best["digest"]:
        lines.append("again: does not end with the same file")
    return lines


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds imagenet_val")
    parser.add_argument("--peer", help="the Python that has ai-edge-quantizer")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each interleaved run")
    parser.add_argument("--keep", type=Path, help="folder of the searches; goes on with these")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="parts: v1_0.25, Resnet, cost"
    )
    job = parser.parse_args()
    lost = missing(want_folder(job.models, "--models"), want_folder(job.data, "--data"))
    if lost is not None:
        print(f"{lost}: not there; name its folder with --models or --data", file=sys.stderr)
        return MISSING
    if not job.peer:
        print(INSTALL)
    by_file = {network.file: network for network in NETWORKS}
    parts = {file: (compared, by_file[file]) for file in BARS}
    parts[COST] = cost, by_file[COST_NETWORK]
    lines: list[str] = []
    for name, (act, network) in parts.items():
        if not job.only or any(text in name for text in job.only):
            with TemporaryDirectory() as folder:
                lines += act(network, job, Path(folder))
    return verdict_line(lines)


if __name__ == "__main__":
    sys.exit(main())
