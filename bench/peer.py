"""int8 of every float model beside ai-edge-quantizer, on the same samples.

Both quantizers see the same calibration samples; the peer also with the ranges of all samples in
place of its moving average. Every file is judged in LiteRT on other samples, against the float
model: by the class it chooses where it ends in SOFTMAX, else by the SNR of its worst output. Bar:
ours loads, is fully integer or names the ops that are not, and is nowhere worse than the peer by
more than the paired 95 % interval.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import flatbuffers
import numpy as np
from ai_edge_litert.schema_py_generated import ModelT
from report import print_table, verdict_line
from stock import ASSETS, arguments, model_files, want_folder

import litesmith
from litesmith.accuracy.metrics import METRICS, difference_of, value_of
from litesmith.accuracy.paired import Estimate, Rows
from litesmith.accuracy.scoring import ScoredSample
from litesmith.calibration.claims import Claims, check_claims
from litesmith.data.answers import Outputs, outputs_of
from litesmith.data.preparation import Preparation
from litesmith.data.samples import Data, Sample
from litesmith.data.sources import open_data
from litesmith.errors import LitesmithError
from litesmith.ir.types import Model, Signature
from litesmith.passes.quantizing.integer_graph import integer_tensors
from litesmith.units import gain_text, score_text

WAYS = {"average": "peer", "minmax": "peer, min/max", "mse": "peer, MSE"}
OURS = "ours"
INSTALL = (
    "no --peer: ours alone. For the comparison: python -m venv peer && "
    "peer/bin/pip install ai-edge-quantizer==0.10.0, then --peer peer/bin/python"
)
MOST_WORDS = 110  # characters of an error that are printed


def tones(random: np.random.Generator) -> np.ndarray:
    """Two seconds of a few notes with overtones, and some noise."""
    time = np.arange(43844) / 22050
    pitches = 27.5 * 2 ** (random.integers(12, 72, 3) / 12)
    loud = random.uniform(0.05, 0.3, 3)
    waves = [
        a * np.sin(2 * np.pi * k * f * time) / k
        for a, f in zip(loud, pitches, strict=True)
        for k in range(1, 6)
    ]
    noise = random.normal(0, 0.003, len(time))
    return (np.sum(waves, axis=0) + noise).astype(np.float32)[None, :, None]


def words(random: np.random.Generator) -> np.ndarray:
    """A short text of few different words, filled up with zeros."""
    known = random.integers(1, 10_000, 12)
    ids = random.choice(known, random.integers(10, 200))
    return np.pad(ids, (0, 256 - len(ids))).astype(np.int32)[None]


def noise(random: np.random.Generator) -> np.ndarray:
    """Smooth spectra: a random walk."""
    return np.cumsum(random.normal(0, 0.3, 640)).astype(np.float32)[None]


IMAGENET = "imagenet_calibration", "imagenet_val"
CIFAR = "cifar10_train.npz", "cifar10_test.npz"
UNIT, TF = Preparation(norm="unit"), Preparation(norm="tf")

# Where each model's samples come from: files and how pixels are prepared, or a function.
SOURCES: dict[str, tuple[tuple[str, str], Preparation] | Callable[..., np.ndarray]] = {
    "ad01_fp32": noise,
    "basic_pitch": tones,
    "deeplabv3": (IMAGENET, TF),
    "efficientnet_lite0_f32": (
        IMAGENET,
        Preparation(mean=(127.0,), std=(128.0,), resize="bicubic"),
    ),
    "face_landmark": (IMAGENET, UNIT),
    "hand_landmark_lite": (IMAGENET, UNIT),
    "mobilenet_v1_0.25_224": (IMAGENET, TF),
    "mobilenet_v1_1.0_224": (IMAGENET, TF),
    "mobilenet_v2_1.0_224_features": (IMAGENET, Preparation(norm="torch")),
    "movie_review": words,
    "pretrainedResnet": (CIFAR, Preparation(norm="raw")),
    "selfie_segmentation": (IMAGENET, UNIT),
    "vww_96_float": (IMAGENET, UNIT),
}


def gathered(model: Path, data: Path, count: int, *, held_out: bool) -> np.ndarray:
    """Samples for a model, each as one call takes it: shape (count, 1, …)."""
    source = SOURCES[model.stem]
    if callable(source):
        seeds = range(held_out * 1_000_000, held_out * 1_000_000 + count)
        return np.stack([source(np.random.default_rng(seed)) for seed in seeds])
    files, how = source
    place = data / files[held_out]
    opened = open_data(place, litesmith.load(model), preparation=how, samples=count)
    return np.stack([sample.inputs[0] for sample in opened])


class File(NamedTuple):
    """What a quantizer made: `failure` says why there is nothing, `remark` what is odd."""

    path: Path
    failure: str = ""
    claims: Claims | None = None
    remark: str = ""


def ours(model: Path, samples: Path, out: Path) -> File:
    """As the command line makes it; its calibration data is used whatever it looks like."""
    given = ["--data", str(samples), "--samples", "100000", "--trust-data", "--json"]
    line = [sys.executable, "-m", "litesmith", "quantize", str(model), "-o", str(out), *given]
    done = subprocess.run(
        line, capture_output=True, text=True, env=os.environ | {"LITESMITH_CACHE": ""}
    )
    if done.returncode:
        return File(out, last_line(done.stderr))
    groups = json.loads(done.stdout)["claims"]["float_ops"]
    reasons = [f"{group['ops']} {group['kind']} ({group['why']})" for group in groups]
    return File(out, remark=f"leaves in float {', '.join(reasons)}" if reasons else "")


def peers(interpreter: str, model: Path, samples: Path, out: Path, way: str) -> File:
    child = Path(__file__).with_name("peer_child.py")
    entry = litesmith.load(model).signatures[0]
    names = entry.key, entry.inputs[0][0]
    line = [interpreter, str(child), str(model), str(samples), str(out), way, *names]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        return File(out, last_line(done.stderr))
    try:
        litesmith.load(out)
    except LitesmithError as error:
        leave_out_signatures(out)
        return File(out, remark=f"judged without its signature: {error}")
    return File(out)


def leave_out_signatures(path: Path) -> None:
    """For a file whose signature names what is no output; the runtime does not look."""
    model = ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    model.signatureDefs = None
    builder = flatbuffers.Builder(path.stat().st_size)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(builder.Output())


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:MOST_WORDS] if lines else "no message"


def with_signature(model: Model) -> Model:
    """The model with an entry point of a name, which the peer needs."""
    if model.signatures:
        return model
    inputs = tuple((f"in_{n}", tensor) for n, tensor in enumerate(model.main.inputs))
    outputs = tuple((f"out_{n}", tensor) for n, tensor in enumerate(model.main.outputs))
    return replace(model, signatures=(Signature("serving_default", 0, inputs, outputs),))


def checked(file: File, original: Model, data: Data) -> File:
    """The file with what was found of it; one that does not run has failed."""
    if file.failure:
        return file
    try:
        claims = check_claims(file.path, original, data)
    except LitesmithError as error:
        return file._replace(failure=str(error)[:MOST_WORDS])
    return file._replace(claims=claims, failure=claims.failure[:MOST_WORDS])


def drift(files: Sequence[Path], model: Path, data: Data) -> dict[str, list[Rows]]:
    """The rows of both metrics for each file, on the same samples."""
    chooses = litesmith.load(model).main.ops[-1].kind == "SOFTMAX"
    names = ("agreement", "snr") if chooses else ("snr",)

    def kept(sample: Sample, answers: Sequence[Outputs]) -> list[list[Rows]]:
        cases = [ScoredSample(own, None, answers[-1], sample.name) for own in answers[:-1]]
        return [[METRICS[name].statistics(case) for case in cases] for name in names]

    found = list(outputs_of([*files, model], data, kept))
    return {
        name: [np.concatenate([one[m][f] for one in found]) for f in range(len(files))]
        for m, name in enumerate(names)
    }


class Line(NamedTuple):
    """What one model came to."""

    cells: tuple[str, ...]
    remarks: list[str]
    missed: list[str]


def judged(model: Path, made: dict[str, File], data: Data) -> Line:
    """The files of one model beside each other."""
    running = {who: file for who, file in made.items() if not file.failure}
    rows = drift([file.path for file in running.values()], model, data) if running else {}
    metric = next(iter(rows), "snr")
    values = {
        name: {who: value_of(METRICS[name], row) for who, row in zip(running, found, strict=True)}
        for name, found in rows.items()
    }
    own = dict(zip(running, rows.get(metric, ()), strict=True))
    gaps = {
        who: difference_of(METRICS[metric], own[OURS], row)
        for who, row in own.items()
        if who != OURS and OURS in own
    }
    remarks = [f"{model.stem}: {who} fails: {f.failure}" for who, f in made.items() if f.failure]
    remarks += [f"{model.stem}: {who}: {f.remark}" for who, f in made.items() if f.remark]
    missed = [f"{model.stem}: ours does not work"] if made[OURS].failure else []
    for who, gap in gaps.items():
        if gap.high < 0:
            gain = gain_text(gap.value, METRICS[metric].unit, gap.low, gap.high)
            missed.append(f"{model.stem}: {METRICS[metric].title} {gain} of {who}")
    return Line(cells(model, made, metric, values, gaps), remarks, missed)


def cells(
    model: Path,
    made: dict[str, File],
    metric: str,
    values: dict[str, dict[str, Estimate]],
    gaps: dict[str, Estimate],
) -> tuple[str, ...]:
    unit = METRICS[metric].unit

    def value(who: str) -> str:
        if made[who].failure:
            return "fails"
        shown = [score_text(found[who].value, METRICS[name].unit) for name, found in values.items()]
        return ", ".join(shown)

    def gap(who: str) -> str:
        found = gaps.get(who)
        return "" if found is None else gain_text(found.value, unit, found.low, found.high)

    everyone = [OURS, *WAYS.values()] if len(made) > 1 else [OURS]
    pieces = [integer_text(made[who]) for who in everyone[:2]]
    return (model.stem, *map(value, everyone), *map(gap, everyone[1:]), *pieces)


def integer_text(file: File) -> str:
    if file.claims is None:
        return "–"
    if file.claims.is_integer:
        return "yes"
    count = sum(group.ops for group in file.claims.float_ops)
    return f"{count} in float, {file.claims.conversions} conversions"


class Job(NamedTuple):
    """What all models share."""

    data: Path
    peer: str | None
    samples: int
    held_out: int


def compared(model: Path, job: Job, folder: Path) -> Line:
    content = litesmith.load(model)
    given = folder / "samples.npy"
    np.save(given, gathered(model, job.data, job.samples, held_out=False)[:, 0])
    judging = gathered(model, job.data, job.held_out, held_out=True)[:, 0]
    data = open_data(judging, content)
    made = {OURS: ours(model, given, folder / "ours.tflite")}
    if job.peer:
        named = folder / "named.tflite"
        litesmith.save(with_signature(content), named)
        calls = folder / "calls.npy"
        np.save(calls, np.load(given)[:, None])
        for way, who in WAYS.items():
            made[who] = peers(job.peer, named, calls, folder / f"{way}.tflite", way)
    made = {who: checked(file, content, data) for who, file in made.items()}
    return judged(model, made, data)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds imagenet_val")
    parser.add_argument("--peer", help="the Python that has ai-edge-quantizer")
    parser.add_argument("--samples", type=int, default=128, help="to calibrate on")
    parser.add_argument("--held-out", type=int, default=200, help="samples to judge by")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="parts of names")
    options = parser.parse_args()
    job = Job(want_folder(options.data, "--data"), options.peer, options.samples, options.held_out)
    files = [file for file in model_files(options.models) if file.stem in SOURCES]
    files = [f for f in files if not options.only or any(t in f.stem for t in options.only)]
    if not job.peer:
        print(INSTALL)
    lines: list[Line] = []
    for file in files:
        if integer_tensors(litesmith.load(file)):
            continue
        with TemporaryDirectory() as folder:
            lines.append(compared(file, job, Path(folder)))
        print(*lines[-1].cells, sep="  ", file=sys.stderr, flush=True)
    head = ["model", OURS, *WAYS.values(), *(f"ours − {who}" for who in WAYS.values())]
    head += ["ours integer", "peer integer"]
    if not job.peer:
        head = ["model", OURS, "ours integer"]
    print_table(head, [line.cells for line in lines])
    for line in lines:
        print("".join(f"{remark}\n" for remark in line.remarks), end="")
    return verdict_line([one for line in lines for one in line.missed])


if __name__ == "__main__":
    sys.exit(main())
