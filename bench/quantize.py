"""What each scheme of `quantize` costs in accuracy, without training.

Every file is made by the command line, read back from disk and scored in LiteRT on the validation
images, all files of a network in one pass; with `--peer` also int8 by ai-edge-quantizer. Bar: the
numbers of `NETWORKS`, and for the legacy uint8 MobileNet v2 after `upgrade` at most 0.3 pt from the
original.
"""

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

import numpy as np
from peer import SOURCES, WAYS, gathered, peers, with_signature
from report import print_table, tell_figure, verdict_line
from stock import ASSETS, MISSING, arguments, want_folder

import litesmith
from litesmith.accuracy.evaluate import Evaluation, evaluate_all
from litesmith.data.preparation import Preparation
from litesmith.data.sources import open_data
from litesmith.units import bytes_text, gain_text, score_text


class Bar(NamedTuple):
    """What is asked of a file's top-1, in points: at least so much, or a distance from float.

    lost   at most so much below the original
    moved  at most so far from the original, in either direction
    """

    least: float | None = None
    lost: float | None = None
    moved: float | None = None

    def is_met(self, found: Evaluation) -> bool:
        assert found.against is not None and found.against.difference is not None
        # Points to a millionth: shares of a few thousand images are not exact in binary.
        value, gain = (round(100 * share, 6) for share in (found.value, found.against.difference))
        if self.least is not None:
            return value >= self.least
        if self.lost is not None:
            return gain >= -self.lost
        return self.moved is not None and abs(gain) <= self.moved

    @property
    def text(self) -> str:
        if self.least is not None:
            return f"at least {self.least:.1f} %"
        if self.lost is not None:
            return f"−{self.lost:.1f} pt or better"
        return f"within ±{self.moved:.1f} pt"


class Variant(NamedTuple):
    """One file to make: a scheme, or a recipe."""

    name: str
    bar: Bar
    recipe: str = ""
    samples: int | None = None


NEAR = (
    Variant("int16x8", Bar(moved=0.3)),
    Variant("float16", Bar(moved=0.2)),
    Variant("dynamic", Bar(moved=0.6)),
)


def four_bits(*, w4a8: float, dynamic: float) -> tuple[Variant, ...]:
    """Both schemes of 4-bit weights, and what each may lose."""
    return Variant("w4a8", Bar(lost=w4a8)), Variant("dynamic-int4", Bar(lost=dynamic))


class Network(NamedTuple):
    """A float model, its data, how pixels are prepared, and the files to make of it."""

    file: str
    calibration: str
    validation: str
    preparation: Preparation
    variants: tuple[Variant, ...]
    samples: int | None = 300  # images to calibrate on; None for the command's own number

    @property
    def words(self) -> list[str]:
        """The preparation as the command line takes it."""
        how = self.preparation
        words = ["--norm", how.norm] if how.norm else []
        for option, numbers in (("--mean", how.mean), ("--std", how.std)):
            words += [option, ",".join(f"{number:g}" for number in numbers)] if numbers else []
        return [*words, "--resize", how.resize]


IMAGENET = "imagenet_calibration", "imagenet_val"
NETWORKS = (
    Network(
        "mobilenet_v1_1.0_224.tflite",
        *IMAGENET,
        Preparation(norm="tf"),
        (
            Variant("int8", Bar(least=68.7)),
            *four_bits(w4a8=2.0, dynamic=1.5),
            *NEAR,
        ),
    ),
    Network(
        "mobilenet_v1_0.25_224.tflite",
        *IMAGENET,
        Preparation(norm="tf"),
        (Variant("int8", Bar(least=50.9)), *NEAR),
    ),
    Network(
        "efficientnet_lite0_f32.tflite",
        *IMAGENET,
        Preparation(mean=(127.0,), std=(128.0,), resize="bicubic"),
        (
            Variant("int8", Bar(least=74.5)),
            *four_bits(w4a8=1.6, dynamic=1.4),
            *NEAR,
        ),
    ),
    # Activations of very unlike channels behind its last residual sums: `equalize` is for these.
    Network(
        "mobilenet_v2_torchvision.tflite",
        *IMAGENET,
        Preparation(norm="torch"),
        (
            Variant("int8", Bar(lost=1.2)),
            Variant("int8 with equalize", Bar(lost=0.9), "equalize | quantize | correct"),
            *four_bits(w4a8=2.2, dynamic=1.0),
        ),
    ),
    Network(
        "pretrainedResnet.tflite",
        "cifar10_train.npz",
        "cifar10_test.npz",
        Preparation(norm="raw"),
        (
            Variant("int8", Bar(lost=0.3)),
            Variant("w4a8", Bar(lost=1.2), samples=1000),
            *NEAR,
        ),
        samples=None,
    ),
    # Its input stands for (x − 128) / 128, so that the samples are the pixels themselves.
    Network(
        "mobilenet_v2_1.0_224_quant.tflite",
        *IMAGENET,
        Preparation(mean=(128.0,), std=(128.0,)),
        (Variant("upgraded", Bar(moved=0.3), "upgrade"),),
    ),
)


class Made(NamedTuple):
    """A written file and the seconds that the command took."""

    variant: Variant
    path: Path
    seconds: float


def command(
    network: Network, variant: Variant, source: Path, data: Path, samples: int | None
) -> list[str]:
    """The words after `litesmith` that make the file, but for its name."""
    count = samples or variant.samples or network.samples
    given = ["--data", str(data), *(["--samples", str(count)] if count else []), *network.words]
    if variant.name == "float16" or variant.recipe == "upgrade":
        given = []
    if variant.recipe:
        return ["apply", str(source), variant.recipe, *given]
    return ["quantize", str(source), "--to", variant.name, *given]


def make(words: list[str], path: Path) -> float:
    """Runs the command, with nothing remembered from earlier runs; the seconds it took."""
    start = perf_counter()
    line = [sys.executable, "-m", "litesmith", *words, "-o", str(path)]
    environment = os.environ | {"LITESMITH_CACHE": ""}
    subprocess.run(line, check=True, env=environment, stdout=subprocess.DEVNULL)
    return perf_counter() - start


def peer_files(
    network: Network, source: Path, data: Path, folder: Path, options: Namespace
) -> list[Made]:
    """int8 by ai-edge-quantizer, in each way that it has, from the same samples."""
    count, made = options.samples or network.samples or 256, list[Made]()
    samples, named = folder / "samples.npy", folder / "named.tflite"
    np.save(samples, gathered(source, data, count, held_out=False))
    litesmith.save(with_signature(litesmith.load(source)), named)
    for way, told in WAYS.items():
        start = perf_counter()
        found = peers(options.peer, named, samples, folder / f"{way}.tflite", way)
        if found.failure:
            print(f"{source.stem}, {told}: {found.failure}")
            continue
        variant = Variant(f"int8, {told}", Bar(least=0.0))
        made.append(Made(variant, found.path, perf_counter() - start))
    return made


def rows(
    network: Network, source: Path, made: list[Made], data: Path, samples: int | None
) -> list[tuple[str, ...]]:
    """A line for the original and for each file; what misses its bar is marked."""
    how = network.preparation
    opened = open_data(data, litesmith.load(source), preparation=how, samples=samples)
    found = evaluate_all([one.path for one in made], opened, against=source, metric="top1")
    lines: list[tuple[str, ...]] = []
    for one, result in zip(made, found, strict=True):
        against = result.against
        assert against is not None and against.value is not None and against.difference is not None
        ends = against.difference_low or 0.0, against.difference_high or 0.0
        if not lines:
            size, value = bytes_text(source.stat().st_size), score_text(against.value, "share")
            lines.append((source.stem, "original", size, value, "", "", "", ""))
        told = f"{source.stem} {one.variant.name}"
        tell_figure(f"{told} top-1", result.value)
        tell_figure(f"{told} difference", against.difference, *ends)
        tell_figure(f"{told} bytes", one.path.stat().st_size)
        lines.append(
            (
                source.stem,
                one.variant.name,
                bytes_text(one.path.stat().st_size),
                score_text(result.value, "share"),
                gain_text(against.difference, "share", *ends),
                one.variant.bar.text,
                f"{one.seconds:.0f} s",
                "" if one.variant.bar.is_met(result) else "missed",
            )
        )
    return lines


def wanted(network: Network, only: list[str]) -> tuple[Variant, ...]:
    """The variants whose names, after the network's, contain one of the texts; all without any."""
    return tuple(
        variant
        for variant in network.variants
        if not only or any(text in f"{network.file} {variant.name}" for text in only)
    )


def run(network: Network, variants: tuple[Variant, ...], options: Namespace) -> list[str]:
    """Makes and scores the files of a network; prints them; what missed its bar."""
    source, data, samples = options.models / network.file, options.data, options.samples
    made: list[Made] = []
    with TemporaryDirectory() as folder:
        for number, variant in enumerate(variants):
            path = Path(folder) / f"{number}.tflite"
            words = command(network, variant, source, data / network.calibration, samples)
            made.append(Made(variant, path, make(words, path)))
        if options.peer and source.stem in SOURCES and variants[0].name == "int8":
            made += peer_files(network, source, data, Path(folder), options)
        lines = rows(network, source, made, data / network.validation, samples)
    head = ("model", "scheme", "size", "top-1", "difference, 95 %", "bar", "made in", "")
    print_table(head, lines)
    return [f"{line[0]} {line[1]}: {line[3]}, {line[5]}" for line in lines if line[-1]]


def missing(options_models: Path, data: Path) -> Path | None:
    """The first file or folder that is not there."""
    places = [options_models / network.file for network in NETWORKS]
    places += [data / name for network in NETWORKS for name in network[1:3]]
    return next((place for place in places if not place.exists()), None)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds imagenet_val")
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="TEXT",
        help="parts: v1_0.25, int8, 'v1_1.0_224.tflite int8'",
    )
    parser.add_argument("--samples", type=int, help="fewer to calibrate and to score with")
    parser.add_argument("--peer", default="", help="a Python that has ai-edge-quantizer")
    options = parser.parse_args()
    models, data = want_folder(options.models, "--models"), want_folder(options.data, "--data")
    lost = missing(models, data)
    if lost is not None:
        print(f"{lost}: not there; name its folder with --models or --data", file=sys.stderr)
        return MISSING
    missed: list[str] = []
    for network in NETWORKS:
        variants = wanted(network, options.only)
        if variants:
            missed += run(network, variants, options)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
