"""A speech LSTM in int8: plain int8 beside what `quantize` makes of it, on real speech.

The model is DeepSpeech's: 16 unrolled steps of an LSTM of 2048, layers before and behind it, its
state given and handed back. A file with int8 weights becomes a float twin first. The speech is cut
into pieces of 16 steps with the float model's own state; some sentences calibrate, others
judge: all outputs of a piece, and the letters of whole sentences whose state goes from piece to
piece in the quantized model itself.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from report import print_table, verdict_line

from litesmith import Model, Session
from litesmith.calibration.context import context_of
from litesmith.calibration.quantize_effort import carry_out, plan
from litesmith.data.sources import open_data
from litesmith.ir.edit import exposing, regraph, rewrite, with_main
from litesmith.ir.types import Graph, Tensor, frozen
from litesmith.passes.core.layers import real_values
from litesmith.passes.core.recipe import apply
from litesmith.passes.quantizing.quantize import Quantize
from litesmith.run.core.target import Target
from litesmith.tasks.sound import read_sound
from litesmith.tflite.file import load, save
from litesmith.timing.latency import Rule, list_contenders, measure
from litesmith.units import time_text

# How far above plain int8 the mixture must be, and how much longer it may take, where.
LEAST_GAIN_DB, MOST_TIME = 15.0, 1.3
STOCK, OURS = "cpu:1", "cpu:1:litesmith"

# DeepSpeech's front end: 32 ms at 16 kHz every 20 ms, 40 bands of which 26 numbers are made, and 9
# rows on either side of each.
WINDOW, HOP, BANDS, WIDE, AROUND = 512, 320, 40, 26, 9
RATE, LOWEST, STEPS = 16_000, 20.0, 16

OUTPUTS = ("logits", "new_state_c", "new_state_h")

PLAIN, FORMS, MIXTURE = "plain int8", "--to int8", "--to int8 --fully-integer"
PLAIN_RECIPE = "cleanup | fold | fuse | quantize | correct"

# Sentences that calibrate, and pieces taken of them; sentences that judge.
HEARD, SAMPLES, JUDGED = 30, 64, 4

Numbers = np.ndarray
Spoken = tuple[dict[str, Numbers], dict[str, Numbers]]


def float_twin(model: Model) -> Model:
    """The same network with float weights, from the audio features to the letters."""
    kept = [tensor for tensor in model.main.outputs if tensor.name in OUTPUTS]
    cut = exposing(model, kept)
    graph = apply(cut, "cleanup").model.main
    read = {tensor for op in graph.ops for tensor in op.inputs}
    graph = regraph(graph, inputs=[tensor for tensor in graph.inputs if tensor in read])
    return with_main(cut, rewrite(graph, tensors=dict(_unpacked(graph))))


def _unpacked(graph: Graph) -> Iterator[tuple[Tensor, Tensor]]:
    for tensor in graph.tensors:
        if tensor.is_const and tensor.dtype == "int8" and tensor.quant is not None:
            numbers = real_values(tensor).astype(np.float32)
            yield tensor, replace(tensor, dtype="float32", quant=None, data=frozen(numbers))


def features(wave: Numbers) -> Numbers:
    """Rows of 26 numbers, as TensorFlow's AudioSpectrogram and Mfcc make them."""
    count = 1 + (len(wave) - WINDOW) // HOP
    places = np.arange(WINDOW) + HOP * np.arange(count)[:, None]
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    loud = np.abs(np.fft.rfft(wave[places] * hann))
    bands = np.log(np.maximum(loud @ _bands().T, 1e-12))
    turns = np.outer(np.arange(WIDE), np.arange(BANDS) + 0.5) * np.pi / BANDS
    return (bands @ np.cos(turns).T * np.sqrt(2 / BANDS)).astype(np.float32)


def _bands() -> Numbers:
    """Triangular filters over pitch: the weight of each frequency in each band."""

    def mel(hertz: Numbers | float) -> Numbers:
        return 1127 * np.log1p(np.asarray(hertz) / 700)

    edges = np.linspace(mel(LOWEST), mel(RATE / 2), BANDS + 2)
    heard = mel(np.arange(WINDOW // 2 + 1) * RATE / WINDOW)
    rising = (heard - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - heard) / (edges[2:] - edges[1:-1])[:, None]
    inside = heard >= mel(LOWEST)
    return np.clip(np.minimum(rising, falling), 0, None) * inside


def pieces(path: Path) -> Numbers:
    """A sentence as the model takes it: pieces of 16 steps, each with the rows around it."""
    rows = features(read_sound(path)[0])
    whole = ceil(len(rows) / STEPS) * STEPS
    padded = np.zeros((whole + 2 * AROUND, WIDE), np.float32)
    padded[AROUND : AROUND + len(rows)] = rows
    around = np.arange(whole)[:, None] + np.arange(2 * AROUND + 1)
    return padded[around].reshape(-1, 1, STEPS, 2 * AROUND + 1, WIDE)


def spoken(session: Session, heard: Numbers) -> Spoken:
    """Runs a model piece by piece with its own state; returns its inputs and outputs."""
    state = {name: np.zeros((1, 2048), np.float32) for name in ("c", "h")}
    given: dict[str, list[Numbers]] = {}
    made: dict[str, list[Numbers]] = {}
    for piece in heard:
        inputs = {"input_node": piece}
        inputs |= {f"previous_state_{name}": array for name, array in state.items()}
        outputs = one(session, inputs)
        state = {name: outputs[f"new_state_{name}"] for name in state}
        for record, found in ((given, inputs), (made, outputs)):
            for name, array in found.items():
                record.setdefault(name, []).append(array)
    before, after = ({n: np.stack(a) for n, a in record.items()} for record in (given, made))
    return before, after


def one(session: Session, inputs: dict[str, Numbers]) -> dict[str, Numbers]:
    for name, array in inputs.items():
        session.inputs[name][...] = array
    session.run()
    return {name: session.outputs[name].copy() for name in OUTPUTS}


def _files(twin: Path, calibration: Path, folder: Path) -> dict[str, Path]:
    """The files that are compared."""
    model = load(twin)
    data = open_data(calibration, model, samples=SAMPLES)
    todo = plan(model, Quantize(), "default", has_data=True)
    made = {
        PLAIN: apply(model, PLAIN_RECIPE, context_of(data)).model,
        FORMS: carry_out(model, todo, data, target=Target.parse(STOCK)).change.model,
        MIXTURE: carry_out(model, todo, data).change.model,
    }
    files = {name: folder / f"{number}.tflite" for number, name in enumerate(made)}
    for name, path in files.items():
        save(made[name], path)
    return files


def _noise(found: Numbers, wanted: Numbers) -> float:
    """Signal over error, in dB."""
    error = np.square(found.astype(np.float64) - wanted).sum()
    return float(10 * np.log10(np.square(wanted.astype(np.float64)).sum() / error))


def judge(path: Path, target: str, sentences: list[Spoken]) -> list[float]:
    """The SNR of each output over pieces with the float model's state; then that of the logits,
    and how often the likeliest letter is the same, with the model's own."""
    alone: dict[str, list[Numbers]] = {name: [] for name in OUTPUTS}
    carried: list[Numbers] = []
    with Session(path, target) as session:
        for given, _ in sentences:
            for place in range(len(given["input_node"])):
                found = one(session, {name: rows[place] for name, rows in given.items()})
                for name, array in found.items():
                    alone[name].append(array)
            carried.append(spoken(session, given["input_node"])[1]["logits"])
    wanted = {name: np.concatenate([made[name] for _, made in sentences]) for name in OUTPUTS}
    own = np.concatenate(carried)
    same = (own.argmax(axis=-1) == wanted["logits"].argmax(axis=-1)).mean()
    noises = [_noise(np.stack(alone[name]), wanted[name]) for name in OUTPUTS]
    return [*noises, _noise(own, wanted["logits"]), 100 * float(same)]


def _prepare(model: Path, speech: Path, folder: Path) -> tuple[Path, Path, list[Spoken]]:
    """The float twin, calibration data, and the sentences that judge."""
    twin, calibration = folder / "float.tflite", folder / "calibration.npz"
    save(float_twin(load(model)), twin)
    sentences = sorted(speech.glob("*.flac"))
    with Session(twin, STOCK) as session:
        heard = [spoken(session, pieces(path))[0] for path in sentences[: 2 * HEARD : 2]]
        judged = [spoken(session, pieces(path)) for path in sentences[1 : 2 * JUDGED : 2]]
    rows = {name: np.concatenate([given[name] for given in heard]) for name in heard[0]}
    np.savez(calibration, allow_pickle=False, **rows)
    return twin, calibration, judged


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", type=Path)
    options.add_argument("speech", type=Path, help="folder of .flac")
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--folder", type=Path, help="where the files are kept")
    asked = options.parse_args()
    with TemporaryDirectory() as place:
        folder = asked.folder or Path(place)
        twin, calibration, judged = _prepare(asked.model, asked.speech, folder)
        files = _files(twin, calibration, folder)
        runs = [(PLAIN, STOCK), (FORMS, STOCK), (MIXTURE, STOCK), (MIXTURE, OURS)]
        found = {(name, target): judge(files[name], target, judged) for name, target in runs}
        group = [one for name, target in runs for one in list_contenders([files[name]], target)]
        timed = measure(group, Rule(seconds=asked.seconds), memory=False)
    times = [result.percentile_us(50) for result in timed.results]
    rows = [
        [*run, *(f"{one:.1f}" for one in found[run]), time_text(us)]
        for run, us in zip(runs, times, strict=True)
    ]
    print_table(["file", "on", "logits, dB", "c", "h", "carried", "same letter, %", "time"], rows)
    return verdict_line(list(_missed(found, timed.comparisons[-1].ratio.value)))


def _missed(found: dict[tuple[str, str], list[float]], ratio: float) -> Iterator[str]:
    gained = np.subtract(found[MIXTURE, OURS], found[PLAIN, STOCK])[:-1]
    if gained.min() < LEAST_GAIN_DB:
        yield f"the mixture gains {gained.min():.1f} dB"
    if ratio > MOST_TIME:
        yield f"the mixture takes {ratio:.2f} times as long as plain int8"
    if found[MIXTURE, OURS] != found[MIXTURE, STOCK]:
        yield "our kernels give other results than LiteRT's"


if __name__ == "__main__":
    sys.exit(main())
