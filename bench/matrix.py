"""Every command on every real model, and `tune` beside the obvious choices.

* `inspect`, `apply`, `quantize` with each scheme, `bench`, `profile`, `doctor`, `targets` on every
  file. Bar: no status beyond 0, 1 and 2, and every refusal is one line.
* `tune --min-snr 20` without training on the float models, with 64 inputs, in turns with float,
  float16, dynamic, int8, int8 that keeps every kind of op that leaves XNNPACK, and the peer's int8
  and dynamic, as far as these keep 20 dB on the same inputs. Bars: never slower than float beyond
  the noise; within 3 % of the fastest on 9 of 10 models; the median at least 1.4 times as fast as
  float; the predicted time of the chosen file within 15 % of the measured one on 9 of 10.
"""

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import numpy as np
from peer import INSTALL, SOURCES, gathered, peers, with_signature
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, arguments, model_files

import litesmith
from litesmith.accuracy.evaluate import evaluate_all
from litesmith.calibration.outside_xnnpack import outside_xnnpack
from litesmith.data.images import picture
from litesmith.data.sources import open_data
from litesmith.errors import LitesmithError
from litesmith.ir.types import Model, Tensor
from litesmith.passes.core.recipe import is_float
from litesmith.passes.core.schemes import SCHEMES
from litesmith.timing.latency import Bench, Rule, list_contenders, measure
from litesmith.timing.statistics import SLOWER

INPUTS, LEAST_DB = 64, 20.0
NEAR, PREDICTED, SHARE, FASTER = 1.03, 0.15, 0.9, 1.4
MOST_SECONDS = 600
CRASHED = {*range(3, 256), *range(-64, 0)}


class Told(NamedTuple):
    """How a command ended."""

    words: str
    status: int
    last: str
    lines: int


def said(*words: object) -> Told:
    line = [sys.executable, "-m", "litesmith", *map(str, words)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return Told(str(words[0]), -1, "no end in sight", 0)
    lines = [one for one in done.stderr.splitlines() if one.startswith("litesmith: ")]
    refusals = [one for one in lines if "note:" not in one and "warning:" not in one]
    return Told(str(words[0]), done.returncode, (refusals or [""])[-1], len(refusals))


def commands(file: Path, folder: Path) -> Iterator[Told]:
    """Every command on one model."""
    out = folder / "out.tflite"
    yield said("inspect", file)
    yield said("apply", file, "cleanup | fold | fuse", "-o", out)
    for scheme in SCHEMES:
        random = ["--random-data", "--samples", 4] if SCHEMES[scheme].is_integer else []
        words = ["quantize", file, "--to", scheme, *random, "--runs", 12, "-o", out]
        yield said(*words)._replace(words=f"quantize --to {scheme}")
    yield said("bench", file, "--seconds", 0.2)
    yield said("profile", file, "--runs", 12)
    yield said("doctor", file)
    yield said("targets", file)


def command_part(files: list[Path]) -> list[str]:
    """Prints which command refuses which model; returns the bars that were missed."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for file in files:
        with TemporaryDirectory() as folder:
            for told in commands(file, Path(folder)):
                is_bad = told.status in CRASHED or (told.status == 2 and told.lines != 1)
                missed += [f"{file.stem}: {told.words}: {told.status}"] if is_bad else []
                if told.status:
                    row = (file.stem, told.words, str(told.status), told.last[:150])
                    rows.append(row)
                    print(*row, sep=" | ", flush=True)
    print_table(("model", "command", "status", "said"), rows)
    return missed


def smooth(random: np.random.Generator, tensor: Tensor) -> np.ndarray:
    """A smooth signal for a model without data: like a picture in [0, 1], or a sound in [−1, 1]."""
    if picture(tensor) is not None and len(tensor.shape) == 4:
        small = random.random((1, 8, 8, tensor.shape[-1]))
        sizes = [-(-size // 8) for size in tensor.shape[1:3]]
        large = small.repeat(sizes[0], axis=1).repeat(sizes[1], axis=2)
        noisy = large[:, : tensor.shape[1], : tensor.shape[2]]
        return (0.9 * noisy + 0.1 * random.random(tensor.shape)).astype(np.float32)
    walk = np.cumsum(random.normal(0, 0.1, tensor.elements))
    return np.sin(walk).reshape(tensor.shape).astype(np.float32)


def inputs_of(file: Path, model: Model, data: Path) -> np.ndarray:
    """Samples (count, 1, …) for the one input of a model."""
    if file.stem in SOURCES:
        return gathered(file, data, INPUTS, held_out=True)
    tensor = model.main.inputs[0]
    return np.stack([smooth(np.random.default_rng(n), tensor) for n in range(INPUTS)])


class Contest(NamedTuple):
    """The result for one model.

    ratio      the time of tune's file as a share of float's, with its interval and verdict
    best       the name of the fastest of all that keep the SNR, and its time as a share of float's
    predicted  the time predicted for tune's file, as a share of the measured one
    """

    name: str
    ratio: float
    verdict: str
    best: str
    best_ratio: float
    predicted: float | None
    seconds: float
    recipe: str


def rivals(file: Path, model: Model, samples: Path, folder: Path, peer: str) -> dict[str, Path]:
    """The obvious choices as files, as far as they can be made."""
    made: dict[str, Path] = {}

    def make(name: str, to: str, **more: object) -> None:
        try:
            data = str(samples) if SCHEMES[to].is_integer else None
            done = litesmith.quantize(str(file), data, to=to, runs=2, trust_data=True, **more)
        except LitesmithError as error:
            print(f"  {file.stem} {name}: {error}")
            return
        made[name] = folder / f"{name}.tflite"
        done.save(made[name])

    make("float16", "float16")
    make("dynamic", "dynamic")
    make("int8", "int8", fully_integer=True)
    if "int8" in made:
        kinds = [kind for kind in outside_xnnpack(made["int8"]) or {} if "QUANTIZE" not in kind]
        if kinds:
            make("int8 keeping", "int8", keep=kinds, fully_integer=True)
    if peer and len(model.main.inputs) == 1:
        named = folder / "named.tflite"
        litesmith.save(with_signature(model), named)
        calls = folder / "calls.npy"
        np.save(calls, np.load(samples)[:, None])
        for name, way in (("peer int8", "minmax+float"), ("peer dynamic", "dynamic")):
            found = peers(peer, named, calls, folder / f"{name}.tflite", way)
            if found.failure:
                print(f"  {file.stem} {name}: {found.failure}")
            else:
                made[name] = found.path
    return made


def contest(file: Path, options: Namespace, folder: Path) -> Contest | None:
    """`tune` beside the obvious choices on one model."""
    model = litesmith.load(file)
    if len(model.main.inputs) != 1 or model.main.inputs[0].dtype != "float32":
        return None
    samples = folder / "samples.npy"
    values = inputs_of(file, model, options.data)
    np.save(samples, values[:, 0])
    start = perf_counter()
    try:
        found = litesmith.tune(
            str(file), str(samples), min_snr=LEAST_DB, out=folder / "tuned", trust_data=True
        )
    except LitesmithError as error:
        print(f"  {file.stem}: {error}")
        return None
    seconds = perf_counter() - start
    made = rivals(file, model, samples, folder, options.peer)
    data = open_data(str(samples), model)
    kept = {name: path for name, path in made.items() if snr(path, file, data) >= LEAST_DB}
    ours = found.best or file
    bench = in_turns({"float": file, "tune": ours, **kept})
    times = {result.model: result.percentile_us(50) for result in bench.results}
    ratios = {name: us / times["float"] for name, us in times.items()}
    best = min(ratios, key=ratios.__getitem__)
    chosen = found.summary.chosen
    tried = {record.name: record.details.predicted_us for record in found.records}
    predicted = tried.get(chosen.name) if chosen and found.best else None
    comparison = bench.comparisons[0].ratio
    return Contest(
        file.stem,
        ratios["tune"],
        comparison.verdict,
        best,
        ratios[best],
        predicted / times["tune"] if predicted else None,
        seconds,
        next((r.recipe for r in found.records if chosen and r.name == chosen.name), ""),
    )


def snr(path: Path, file: Path, data: object) -> float:
    try:
        return evaluate_all([path], data, against=file, metric="snr")[0].value  # pyright: ignore[reportArgumentType]
    except LitesmithError as error:
        print(f"  {path.stem}: {error}")
        return -np.inf


def in_turns(files: dict[str, Path]) -> Bench:
    group = list_contenders(list(files.values()))
    named = [replace(one, name=name) for one, name in zip(group, files, strict=True)]
    return measure(named, Rule(seconds=6.0, look_seconds=0), memory=False)


def tune_part(files: list[Path], options: Namespace) -> list[str]:
    """Prints the results of `tune`; returns the bars that it missed."""
    found: list[Contest] = []
    for file in files:
        if not is_float(litesmith.load(file)):
            continue
        with TemporaryDirectory() as folder:
            one = contest(file, options, Path(folder))
        if one is not None:
            found.append(one)
            print(json.dumps(one), flush=True)
    rows = [
        (
            one.name,
            f"{1 / one.ratio:.2f}",
            one.verdict,
            f"{one.best} {1 / one.best_ratio:.2f}",
            f"{one.ratio / one.best_ratio:.3f}",
            "" if one.predicted is None else f"{one.predicted - 1:+.0%}",
            f"{one.seconds:.0f}",
        )
        for one in found
    ]
    head = ("model", "× as fast", "verdict", "fastest", "of its time", "predicted", "seconds")
    print_table(head, rows)
    near = [one for one in found if one.ratio <= NEAR * one.best_ratio]
    told = [one for one in found if one.predicted is not None]
    right = [one for one in told if one.predicted and abs(one.predicted - 1) <= PREDICTED]
    faster = median(1 / one.ratio for one in found)
    missed = [f"{one.name}: slower than float" for one in found if one.verdict == SLOWER]
    if len(near) < SHARE * len(found):
        missed.append(f"within 3 % of the fastest on {len(near)} of {len(found)}")
    if len(right) < SHARE * len(told):
        missed.append(f"predicted within 15 % on {len(right)} of {len(told)}")
    if faster < FASTER:
        missed.append(f"the median is {faster:.2f} times as fast")
    print(f"near the fastest {len(near)} of {len(found)}, predicted {len(right)} of {len(told)},")
    print(f"median {faster:.2f} times as fast as float")
    tell_figure("median speed-up", faster)
    return missed


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="more folders of models")
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="folder of data")
    parser.add_argument("--peer", default="", help="a Python that has ai-edge-quantizer")
    parser.add_argument("--only", default="", help="models whose name has this")
    parser.add_argument("--skip", choices=("commands", "tune"), help="leave out one part")
    options = parser.parse_args()
    if not options.peer:
        print(INSTALL)
    files = [file for folder in (*options.more, options.models) for file in model_files(folder)]
    files = [file for file in files if options.only in file.stem]
    missed = command_part(files) if options.skip != "commands" else []
    missed += tune_part(files, options) if options.skip != "tune" else []
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
