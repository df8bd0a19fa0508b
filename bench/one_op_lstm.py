"""LSTMs that are one op in each form that the runtime has: how near they stay, and their time.

Two networks: a reader of digits of 28 rows (20 units), judged on digits that are drawn here; and
one of 256 units that reads the 32 rows of a CIFAR-10 picture, trained here for some minutes. Some
samples calibrate, others judge: each sample begins with the state that the one before it left, as
the file has it when it runs. All files take turns in one run.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from report import print_table, verdict_line

import litesmith
from litesmith import Model
from litesmith.accuracy.scoring import MOST_DB
from litesmith.ir.build import Builder
from litesmith.ir.types import Tensor
from litesmith.tflite.file import save
from litesmith.timing.latency import Rule, list_contenders, measure
from litesmith.units import time_text

Numbers = np.ndarray

# The files to make of each network: the scheme, and whether every op must compute in integers.
FORMS = {
    "--to dynamic": ("dynamic", False),
    "--to int8": ("int8", False),
    "--to int8 --fully-integer": ("int8", True),
}
FLOAT, CONVERTED = "float", "int8 by TensorFlow's converter"
CHOSEN, LEAST_DB, MOST_TIME = "--to int8", 20.0, 1.15
CALIBRATE, JUDGE = 256, 500
UNITS, EPOCHS, BATCH, RATE = 256, 6, 100, 2e-3


def digits(count: int, seed: int) -> tuple[Numbers, Numbers]:
    """Drawn digits with their labels: turned, moved and of several sizes."""
    from PIL import Image, ImageDraw, ImageFont

    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    made = np.zeros((count, 28, 28), np.float32)
    for place, label in enumerate(labels):
        picture = Image.new("L", (28, 28))
        font = ImageFont.load_default(float(random.integers(20, 26)))
        spot = float(random.uniform(12, 16)), float(random.uniform(12, 16))
        ImageDraw.Draw(picture).text(spot, str(label), fill=255, font=font, anchor="mm")
        picture = picture.rotate(float(random.normal(0, 8)), Image.Resampling.BILINEAR)
        made[place] = np.asarray(picture, np.float32) / 255
    return made, labels


def pictures(file: Path, count: int) -> tuple[Numbers, Numbers]:
    """CIFAR-10's pictures as 32 rows of 96 numbers around 0."""
    with np.load(file) as held:
        images, labels = (held[name] for name in held.files[:2])
    rows = images[:count].reshape(-1, 32, 96).astype(np.float32)
    return (rows - 120) / 64, labels[:count].reshape(-1)


def trained(rows: Numbers, labels: Numbers, units: int = UNITS) -> Model:
    """An LSTM and a layer that tell classes apart by the last step, learned in torch."""
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)
    lstm, head = nn.LSTM(rows.shape[2], units, batch_first=True), nn.Linear(units, 10)
    learned = [*lstm.parameters(), *head.parameters()]
    steps = EPOCHS * (len(rows) // BATCH)
    optimizer = torch.optim.AdamW(learned, RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, steps)
    data, wanted = torch.from_numpy(rows), torch.from_numpy(labels.astype(np.int64))
    for _ in range(EPOCHS):
        for some in torch.randperm(len(rows))[: steps // EPOCHS * BATCH].split(BATCH):
            loss = functional.cross_entropy(head(lstm(data[some])[0][:, -1]), wanted[some])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(learned, 1.0)
            optimizer.step()
            schedule.step()
    named = {name: value.detach().numpy() for name, value in lstm.named_parameters()}
    return as_one_op(named, head.weight.detach().numpy(), head.bias.detach().numpy(), rows.shape)


def as_one_op(
    named: dict[str, Numbers], weight: Numbers, bias: Numbers, shape: tuple[int, ...]
) -> Model:
    """torch's gates stand in the file's order."""
    b = Builder()
    parts = {name: np.split(value, 4) for name, value in named.items()}
    biases = [a + c for a, c in zip(parts["bias_ih_l0"], parts["bias_hh_l0"], strict=True)]
    units = len(biases[0])
    states = (Tensor(name, (1, units), variable=True) for name in ("output_state", "cell_state"))
    y = b.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        b.input("rows", (1, *shape[1:])),
        *parts["weight_ih_l0"],
        *parts["weight_hh_l0"],
        *[None] * 3,
        *biases,
        *[None] * 2,
        *states,
        *[None] * 4,
        fused_activation_function="TANH",
    )
    last = b.op(
        "STRIDED_SLICE",
        y,
        [0, shape[1] - 1, 0],
        [1, shape[1], units],
        [1, 1, 1],
        shrink_axis_mask=2,
    )
    return b.model(b.op("SOFTMAX", b.op("FULLY_CONNECTED", last, weight, bias)))


def answers(file: Path, samples: Numbers) -> Numbers:
    """The outputs of a file for samples in a row."""
    made: list[Numbers] = []
    with litesmith.Session(file) as session:
        (given,), (found,) = session.inputs.values(), session.outputs.values()
        quant = session.model.main.inputs[0].quant if given.dtype == np.int8 else None
        for sample in samples:
            if quant is not None:
                sample = np.clip(np.rint(sample / quant.scale + quant.zero_point), -128, 127)
            given[...] = sample.astype(given.dtype)[None]
            session.run()
            out = session.model.main.outputs[0].quant
            real = found.astype(np.float32)
            made.append(real if out is None else (real - out.zero_point) * out.scale)
    return np.concatenate(made)


def snr(found: Numbers, wanted: Numbers) -> float:
    return 10 * float(np.log10(np.square(wanted).sum() / np.square(found - wanted).sum()))


def files_of(model: Path, calibration: Numbers, folder: Path) -> Iterator[tuple[str, Path]]:
    """The file of each form, and the float one."""
    yield FLOAT, model
    for number, (name, (to, is_whole)) in enumerate(FORMS.items()):
        made, data = folder / f"{model.stem}_{number}.tflite", list(calibration[:, None])
        litesmith.quantize(model, data, to=to, fully_integer=is_whole, out=made, runs=12)
        yield name, made


def judge(files: dict[str, Path], samples: Numbers, labels: Numbers, seconds: float) -> list[str]:
    """Prints a table of the files; returns the bars that they missed."""
    timed = measure(
        list_contenders(list(files.values()), "cpu:1"), Rule(seconds=seconds), memory=False
    )
    said = {name: answers(file, samples) for name, file in files.items()}
    wanted, missed, rows = said[FLOAT], list[str](), list[tuple[str, ...]]()
    ratios = ["", *(str(one.ratio.words) for one in timed.comparisons)]
    for (name, file), result, ratio in zip(files.items(), timed.results, ratios, strict=True):
        same = (said[name].argmax(-1) == wanted.argmax(-1)).mean()
        right = (said[name].argmax(-1) == labels).mean()
        near = MOST_DB if name == FLOAT else snr(said[name], wanted)
        size = f"{file.stat().st_size / 1e3:.1f} KB"
        shares = (f"{near:.1f}", *(f"{100 * share:.1f}" for share in (same, right)))
        rows.append((name, size, *shares, time_text(result.percentile_us(50)), ratio))
        if name in FORMS and near < LEAST_DB:
            missed.append(f"{name} is only {near:.1f} dB from float")
    print_table(["file", "size", "SNR", "same class, %", "right, %", "time", ""], rows)
    slowest = MOST_TIME * timed.results[0].percentile_us(50)
    by_time = timed.results[list(files).index(CHOSEN)]
    if by_time.percentile_us(50) > slowest:
        missed.append(f"{CHOSEN} is slower than float")
    return missed


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=Path, default=Path("../shared/assets/models"))
    options.add_argument("--data", type=Path, default=Path("../shared/assets/data"))
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--folder", type=Path, help="where the files are kept")
    asked = options.parse_args()
    known = asked.models / "micro/trained_lstm.tflite"
    with TemporaryDirectory() as place:
        folder = asked.folder or Path(place)
        files = dict(files_of(known, digits(CALIBRATE, 0)[0], folder))
        files[CONVERTED] = known.with_stem(f"{known.stem}_int8")
        missed = judge(files, *digits(JUDGE, 1), asked.seconds)
        rows, labels = pictures(asked.data / "cifar10_train.npz", 6000)
        larger = folder / "lstm_256.tflite"
        if not larger.exists():
            save(trained(rows, labels), larger)
        files = dict(files_of(larger, rows[:CALIBRATE], folder))
        missed += judge(files, *pictures(asked.data / "cifar10_test.npz", JUDGE), asked.seconds)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
