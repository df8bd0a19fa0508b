"""Weights of 4 bits on three ImageNet networks, beside every int4 recipe of ai-edge-quantizer.

Ours are the files of `--to w4a8` and `--to dynamic-int4`. The peer has each of its recipes with
each of its algorithms, as it comes and with 8 bits in the layers that suffer most (`careful`). All
files of a network are scored in LiteRT on the same images and timed in one interleaved run; the SNR
is that of the scores before the softmax, against the float model's. Bars: our better file loses at
most 1.5 pt on each network and 1.0 pt in the mean, and each of ours has less squared error than any
file of the peer of at most 1.15 times its size.
"""

import subprocess
import sys
from argparse import Namespace
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import numpy as np
from peer import INSTALL, File, peers, with_signature
from quantize import NETWORKS, Bar, Network, Variant, command, make
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, MISSING, arguments, want_folder

import litesmith
from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.data.samples import Data
from litesmith.data.sources import open_data
from litesmith.errors import LitesmithError
from litesmith.ir.edit import regraph, with_graphs
from litesmith.ir.softmax_scores import scores_of
from litesmith.ir.types import Model
from litesmith.timing.latency import Bench
from litesmith.timing.statistics import Ratio
from litesmith.units import bytes_text, gain_text, ratio_text, score_text

FILES = (
    "mobilenet_v1_1.0_224.tflite",
    "efficientnet_lite0_f32.tflite",
    "mobilenet_v2_torchvision.tflite",
)
OURS = ("w4a8", "dynamic-int4")
UNIFORM = {"MIN_MAX_UNIFORM_QUANT": "min/max", "OCTAV": "OCTAV", "MSE": "MSE"}
GPTQ, OSCAR = {"GPTQ": "GPTQ"}, {"OSCAR": "OSCAR"}  # both for FULLY_CONNECTED alone
MIN_MAX = {"MIN_MAX_UNIFORM_QUANT": "min/max"}

# The peer's recipes, each with the algorithms that differ in it; `static` has rules, no function.
RECIPES: dict[str, dict[str, str]] = {
    "dynamic_wi4c_afp32": UNIFORM | GPTQ | OSCAR,
    "dynamic_wi4c_hr_afp32": {"": "rotated"},
    "dynamic_wi4b32_afp32": MIN_MAX,
    "dynamic_wi4b64_afp32": MIN_MAX,
    "weight_only_wi4_afp32": UNIFORM,
    "static": UNIFORM | GPTQ,
}
WAYS = {
    f"{name.removesuffix('_afp32')} {told}{', careful' if careful else ''}": (
        f"four:{name}:{key}{careful}"
    )
    for name, algorithms in RECIPES.items()
    for key, told in algorithms.items()
    for careful in ("", ":careful")
}

CALIBRATION = 300  # images
LOGITS = 200  # images that the error of the scores is measured on: one has 1,000 numbers
FEW = 2  # images, to see whether a file runs
MOST_LOST, MOST_LOST_MEAN = 0.015, 0.010
AS_LARGE = 1.15
HEAD = ("file", "size", "top-1", "difference, 95 %", "SNR", "time / float", "made in")


class Made(NamedTuple):
    """A file with its name in the table and the seconds it took to make, or the reason why it
    cannot be judged."""

    name: str
    path: Path
    seconds: float
    failure: str = ""

    @property
    def is_ours(self) -> bool:
        return self.name in OURS

    @property
    def size(self) -> int:
        return self.path.stat().st_size


class Judged(NamedTuple):
    """The results for a file; the SNR is None where its scores cannot be read."""

    made: Made
    top1: Evaluation
    ratio: Ratio
    snr: float | None

    @property
    def gain(self) -> tuple[float, float, float]:
        """The top-1 above float's, with its paired interval."""
        against = self.top1.against
        assert against is not None and against.difference is not None
        ends = against.difference_low or 0.0, against.difference_high or 0.0
        return against.difference, *ends

    @property
    def cells(self) -> tuple[str, ...]:
        return (
            self.made.name,
            bytes_text(self.made.size),
            score_text(self.top1.value, "share"),
            gain_text(self.gain[0], "share", *self.gain[1:]),
            "–" if self.snr is None else score_text(self.snr, "dB"),
            ratio_text(self.ratio.value, *self.ratio.interval),
            f"{self.made.seconds:.0f} s",
        )


class Job(NamedTuple):
    """The settings that all networks share."""

    models: Path
    data: Path
    peer: str | None
    samples: int
    seconds: float


def images(network: Network, job: Job, folder: str, count: int) -> Data:
    model = litesmith.load(job.models / network.file)
    return open_data(job.data / folder, model, preparation=network.preparation, samples=count)


def ours(network: Network, job: Job, folder: Path) -> list[Made]:
    """Our files, as the command line makes them."""
    source, data = job.models / network.file, job.data / network.calibration
    found: list[Made] = []
    for scheme in OURS:
        path = folder / f"{scheme}.tflite"
        words = command(network, Variant(scheme, Bar()), source, data, CALIBRATION)
        try:
            found.append(Made(scheme, path, make(words, path)))
        except subprocess.CalledProcessError as error:
            found.append(Made(scheme, path, 0.0, f"exit status {error.returncode}"))
    return found


def theirs(network: Network, job: Job, folder: Path) -> list[Made]:
    """The peer's files, calibrated on the same images wherever a recipe asks for them."""
    if job.peer is None:
        return []
    named, calls = folder / "named.tflite", folder / "calls.npy"
    litesmith.save(with_signature(litesmith.load(job.models / network.file)), named)
    given = images(network, job, network.calibration, CALIBRATION)
    np.save(calls, np.stack([sample.inputs[0] for sample in given]))
    found: list[Made] = []
    for number, (name, way) in enumerate(WAYS.items()):
        path, start = folder / f"{number}.tflite", perf_counter()
        file = peers(job.peer, named, calls, path, way)
        found.append(Made(name, path, perf_counter() - start, complaint(file)))
    return without_twins(found)


def complaint(file: File) -> str:
    """Why a file of the peer cannot be judged; "" where it can."""
    if file.failure:
        return file.failure
    try:
        model = litesmith.load(file.path)
    except LitesmithError as error:
        return str(error)
    tensors = (t for op in model.main.ops for t in op.inputs if t is not None)
    return "" if any(t.dtype == "int4" for t in tensors) else "no weight has 4 bits"


def without_twins(made: list[Made]) -> list[Made]:
    """The files without those that have the same bytes as another one."""
    seen: dict[str, str] = {}
    found: list[Made] = []
    for one in made:
        if not one.failure:
            first = seen.setdefault(sha256(one.path.read_bytes()).hexdigest(), one.name)
            one = one if first == one.name else one._replace(failure=f"the bytes of {first}")
        found.append(one)
    return found


def before_softmax(model: Model) -> Model:
    """The model with its scores as outputs: a softmax hides what moved where one class is sure to
    win."""
    outputs = [scores_of(model.main, tensor) for tensor in model.main.outputs]
    graph = regraph(model.main, outputs=outputs)
    return replace(with_graphs(model, (graph, *model.graphs[1:])), signatures=(), metadata=())


def snrs(paths: list[Path], source: Path, data: Data, few: Data) -> dict[Path, float]:
    """How far scores are from the float model's, in dB; a file whose scores are not to be had is
    left out."""
    original = before_softmax(litesmith.load(source))
    cut: dict[Path, Model] = {}
    for path in paths:
        try:
            model = before_softmax(litesmith.load(path))
            evaluate_all([model], few, against=original, metric="snr")
        except LitesmithError:
            continue
        cut[path] = model
    found = evaluate_all([*cut.values()], data, against=original, metric="snr") if cut else ()
    return {path: one.value for path, one in zip(cut, found, strict=True)}


def tried(one: Made, source: Path, data: Data) -> Made:
    """The file; with its failure, where it does not run."""
    if one.failure:
        return one
    try:
        evaluate_all([one.path], data, against=source, metric="snr")
    except LitesmithError as error:
        return one._replace(failure=str(error))
    return one


def judged(network: Network, made: list[Made], job: Job) -> list[Judged]:
    """The files that run, each scored, timed and held against the float model."""
    if not made:
        return []
    source = job.models / network.file
    paths = [one.path for one in made]
    labelled = images(network, job, network.validation, job.samples)
    scored = evaluate_all(paths, labelled, against=source, metric="top1")
    timed = litesmith.bench([source, *paths], on="cpu:1", seconds=job.seconds)
    assert isinstance(timed, Bench)
    some, few = (
        images(network, job, network.validation, n) for n in (min(LOGITS, job.samples), FEW)
    )
    near = snrs(paths, source, some, few)
    parts = zip(made, scored, timed.comparisons, strict=True)
    return [Judged(one, top1, time.ratio, near.get(one.path)) for one, top1, time in parts]


def show(network: Network, made: list[Made], found: list[Judged], source: Path) -> None:
    """The table of a network; below it, what is not in it and why."""
    print(network.file)
    if found:
        size, value = bytes_text(source.stat().st_size), found[0].top1.value - found[0].gain[0]
        lines = [("float", size, score_text(value, "share"), "", "", "", "")]
        print_table(HEAD, [*lines, *(one.cells for one in found)])
    for one in made:
        if one.failure:
            print(f"{one.name}: {one.failure}")
    print(flush=True)


def tell(stem: str, one: Judged) -> None:
    told = f"{stem} {one.made.name}"
    tell_figure(f"{told} top-1", one.top1.value)
    tell_figure(f"{told} difference", *one.gain)
    tell_figure(f"{told} bytes", one.made.size)
    tell_figure(f"{told} time", one.ratio.value, *one.ratio.interval)
    if one.snr is not None:
        tell_figure(f"{told} SNR", one.snr)


def nearer(own: Judged, found: list[Judged]) -> list[str]:
    """The peer's files that are no larger than one of ours and at least as near to float."""
    most = AS_LARGE * own.made.size
    rivals = [one for one in found if not one.made.is_ours and one.made.size <= most]
    return [
        f"{own.made.name}: {one.made.name} is as near to float, {score_text(one.snr, 'dB')}"
        for one in rivals
        if one.snr is not None and own.snr is not None and one.snr >= own.snr
    ]


class Result(NamedTuple):
    """The result for a network: the points that our better file gains, and the bars that it
    missed."""

    gain: float
    missed: list[str]


def compared(network: Network, job: Job) -> Result:
    source = job.models / network.file
    with TemporaryDirectory() as name:
        folder = Path(name)
        made = ours(network, job, folder) + theirs(network, job, folder)
        few = images(network, job, network.validation, FEW)
        made = [tried(one, source, few) for one in made]
        found = judged(network, [one for one in made if not one.failure], job)
        show(network, made, found, source)
        own = [one for one in found if one.made.is_ours]
        for one in own:
            tell(source.stem, one)
        missed = [f"{one.name}: {one.failure}" for one in made if one.is_ours and one.failure]
        missed += [line for one in own for line in nearer(one, found)]
    gain = max((one.gain[0] for one in own), default=-1.0)
    if gain < -MOST_LOST:
        missed.append(f"our better file loses {-100 * gain:.2f} pt")
    return Result(gain, [f"{source.stem}: {line}" for line in missed])


def verdict(results: list[Result]) -> int:
    missed = [line for result in results for line in result.missed]
    mean = sum(result.gain for result in results) / len(results)
    print(f"our better files, in the mean of {len(results)}: {100 * mean:+.2f} pt")
    if len(results) == len(FILES) and mean < -MOST_LOST_MEAN:
        missed.append(f"our better files lose {-100 * mean:.2f} pt in the mean")
    return verdict_line(missed)


def job_of(options: Namespace) -> Job:
    models, data = want_folder(options.models, "--models"), want_folder(options.data, "--data")
    return Job(models, data, options.peer, options.samples, options.seconds)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds imagenet_val")
    parser.add_argument("--peer", help="the Python that has ai-edge-quantizer")
    parser.add_argument("--samples", type=int, default=2000, help="images to score with")
    parser.add_argument("--seconds", type=float, default=120.0, help="of timing, for a network")
    parser.add_argument("--only", default="", metavar="TEXT", help="part of a network's name")
    options = parser.parse_args()
    job = job_of(options)
    networks = [n for n in NETWORKS if n.file in FILES and options.only in n.file]
    places = [job.models / network.file for network in networks]
    places += [job.data / name for network in networks for name in network[1:3]]
    lost = next((place for place in places if not place.exists()), None)
    if lost is not None or not networks:
        told = lost or f"--only {options.only}"
        print(f"{told}: not there; name a folder with --models or --data", file=sys.stderr)
        return MISSING
    if not job.peer:
        print(INSTALL)
    return verdict([compared(network, job) for network in networks])


if __name__ == "__main__":
    sys.exit(main())
