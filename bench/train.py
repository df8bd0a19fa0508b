"""What training on a .tflite is worth: quantized, pruned and clustered files, scored in LiteRT.

Every file is made by the command line from the float file and data alone, read back from disk and
scored on images that no step has seen. Bar: the numbers of `NETWORKS`; where a size or a time is
promised, that too, measured on the written file in one interleaved run.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from quantize import Bar, Made, make, rows
from quantize import Network as Scored
from report import print_table, verdict_line
from stock import ASSETS, MISSING, arguments, want_folder

from litesmith.anatomy.footprint import gzip_bytes
from litesmith.data.preparation import Preparation
from litesmith.regression.size_report import report_sizes
from litesmith.tflite.file import pieces
from litesmith.units import ratio_text


class Variant(NamedTuple):
    """A file to make.

    words    of the command: a recipe for `apply`, or a command of its own where it has several
    gzip     at most this part of the original's bytes after gzip
    faster   at least so many times as fast as the original
    behind   the name of the variant that it must not be behind
    """

    name: str
    bar: Bar
    words: tuple[str, ...]
    gzip: float | None = None
    faster: float | None = None
    behind: str = ""


FREE = "int4, no training"
RESNET = (
    Variant("int8 QAT", Bar(lost=0.3), ("qat",)),
    Variant(FREE, Bar(lost=1.2), ("quantize(to=w4a8) | round",)),
    Variant("int4 QAT", Bar(lost=0.8), ("qat(to=w4a8)",)),
    Variant("int4 distilled", Bar(lost=1.2), ("qat(to=w4a8)", "--labels", "0"), behind=FREE),
    Variant("half zeros, int8", Bar(lost=0.7), ("prune | qat",)),
    Variant("32 clusters, int8", Bar(lost=0.7), ("cluster | qat",)),
    Variant(
        "half zeros, clusters, int8",
        Bar(lost=1.5),
        ("prune | cluster(k=12, own=[9:6, 8:8, 5:10]) | qat",),
        gzip=1 / 8,
    ),
    Variant(
        "60 % of the MACs",
        Bar(lost=2.0),
        ("prune(sparsity=0.4, block=channels)", "--epochs", "300", "--augment", "mix"),
        faster=1.3,
    ),
)
MOBILENET = (Variant("int8 a tensor, distilled", Bar(lost=1.0), ("qat(per_channel=false)",)),)

NETWORKS = {
    Scored(
        "pretrainedResnet.tflite",
        "cifar10_train.npz",
        "cifar10_test.npz",
        Preparation(norm="raw"),
        (),
    ): RESNET,
    Scored(
        "mobilenet_v1_1.0_224.tflite",
        "imagenet_calibration",
        "imagenet_val",
        Preparation(norm="tf"),
        (),
    ): MOBILENET,
}


def promises(variant: Variant, source: Path, path: Path) -> list[str]:
    """Checks the size and time of a file; a sentence about a missed bar ends in "missed"."""
    found: list[str] = []
    if variant.gzip is not None:
        share = gzip_bytes(pieces(path)) / gzip_bytes(pieces(source))
        met = "" if share <= variant.gzip else ", missed"
        found.append(f"{variant.name}: gzip 1/{1 / share:.2f}, bar 1/{1 / variant.gzip:.0f}{met}")
    if variant.faster is not None:
        latency = report_sizes(source, path, patient=True).latency
        assert latency is not None
        met = "" if latency.ratio.interval[1] <= 1 / variant.faster else ", missed"
        told = ratio_text(latency.ratio.value, *latency.ratio.interval)
        found.append(f"{variant.name}: time {told}, bar {1 / variant.faster:.2f} ×{met}")
    return found


def behind(lines: list[tuple[str, ...]], variants: list[Variant]) -> list[str]:
    """The variants that score below the one they must not be behind."""
    scores = {line[1]: float(line[3].split()[0]) for line in lines}
    return [
        f"{variant.name}: {scores[variant.name]} %, {variant.behind}: {scores[variant.behind]} %"
        for variant in variants
        if variant.behind in scores and scores[variant.name] < scores[variant.behind]
    ]


def run(network: Scored, variants: list[Variant], models: Path, data: Path) -> list[str]:
    """Makes, scores and prints the files of a network; returns the bars that they missed."""
    source = models / network.file
    made: list[Made] = []
    told: list[str] = []
    with TemporaryDirectory() as folder:
        for number, variant in enumerate(variants):
            path = Path(folder) / f"{number}.tflite"
            given = ["--data", str(data / network.calibration), *network.words]
            words = ["apply", str(source), *variant.words, *given]
            made.append(Made(variant, path, make(words, path)))  # type: ignore[arg-type]
            told += promises(variant, source, path)
        lines = rows(network, source, made, data / network.validation)
    head = ("model", "file", "size", "top-1", "difference, 95 %", "bar", "made in", "")
    print_table(head, lines)
    for text in told:
        print(text)
    missed = [f"{line[0]} {line[1]}: {line[3]}, {line[5]}" for line in lines if line[-1]]
    return [*missed, *behind(lines, variants), *(t for t in told if t.endswith("missed"))]


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, default=ASSETS / "data", help="holds cifar10_train")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="parts: Resnet, int4")
    options = parser.parse_args()
    models, data = want_folder(options.models, "--models"), want_folder(options.data, "--data")
    missed: list[str] = []
    for network, variants in NETWORKS.items():
        some = [
            variant
            for variant in variants
            if not options.only
            or any(text in f"{network.file} {variant.name}" for text in options.only)
        ]
        places = models / network.file, data / network.calibration, data / network.validation
        lost = next((place for place in places if not place.exists()), None)
        if some and lost is not None:
            print(f"{lost}: not there; name its folder with --models or --data", file=sys.stderr)
            return MISSING
        if some:
            missed += run(network, some, models, data)
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
