"""Options that several commands have, each declared once; they import nothing but a parser.

Options of a single command are in its row. Values that help shows are copies from the rooms below,
which a test compares: importing them here would make every `--help` wait for numpy.
"""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import argument, option
from litesmith.phrases import phrase


def list_choices(choices: str) -> str:
    """Choices as a list in a sentence."""
    return choices.replace("|", ", ")


SCHEMES = "dynamic|dynamic-int4|float16|int16x8|int8|w4a8|weight-int4|weight-int8"
NORMS = "caffe|raw|tf|torch|unit"
RESIZES = "bilinear|bicubic|letterbox"
ENGINES = "local|ray|ray://HOST:PORT"
COSTS = "latency|size|download|memory"
AUGMENTS = "auto|mix|flip|shift|none"
METRICS = (
    "agreement|anomaly_auc|ap|ap50|auc|cer|cosine|em|f1|labels_f1|mae|miou|oks|pck|retrieval|rmse|"
    "snr|top1|top5|wer"
)
TARGETS = "cpu:1|cpu:2|cpu:4|cpu:1:litesmith|cpu:1:builtin|gpu|gpu:full|openvino:1"
TASKS = (
    "anomaly|classification|detection|embedding|keypoints|questions|regression|segmentation|"
    "speech|text"
)
EFFORTS = "quick|default|best"
RANGES = "minmax|mse|percentile"
TRAINED_SCHEMES = "dynamic|dynamic-int4|int16x8|int8|w4a8|weight-int4|weight-int8"

MODEL = argument("model", metavar="MODEL", kind=Path, help="A .tflite file.")
OUT_FILE = option(
    "-o",
    "--output",
    argument="out",
    metavar="FILE",
    kind=Path,
    required=True,
    help="The .tflite file to write.",
)
OUT_FOLDER = option(
    "-o", "--output", argument="out", metavar="DIR", kind=Path, help="Folder to write."
)
OVERLAY = option("--overlay", metavar="FILE.json", kind=Path, help="")
PAGE = option(
    "--page", metavar="FILE.html", kind=Path, help="Page to write: the result and the graph."
)

SHAPE = option(
    "--shape",
    metavar="NAME=1,1280",
    many=True,
    to_function=False,
    help="Use the model with an input of these sizes; once for each input.",
)
OWN_SHAPE = replace(SHAPE, to_function=True)  # of a function that takes sizes itself

# Data.

DATA = option(
    "--data",
    metavar="D",
    is_place=True,
    help="A folder of images, or of class folders; a table of files and labels; .npz with x and "
    "y; .npy; module:function.",
)
EVAL = option(
    "--eval", metavar="D2", is_place=True, help="Data to score the model and the result on."
)
AGAINST = option("--against", metavar="REF", kind=Path, help="")
CALIBRATE = option(
    "--calibrate", metavar="D2", is_place=True, help="", show_default="a fifth of --data"
)
SAMPLES = option(
    "--samples",
    metavar="N",
    kind=int,
    least=1,
    help="Number of samples to use, spread over the classes.",
    show_default="all",
)
TRAINING_SAMPLES = replace(SAMPLES, show_default="all to train, else 256")
TRUST_DATA = option("--trust-data", kind=bool, help="Use data that looks wrong.")

IMAGES = (
    option(
        "--mean",
        metavar="M",
        help="Instead of a name: pixels of 0 to 255 become (x − M) / S; one number or three.",
    ),
    option("--std", metavar="S", help="The S of --mean."),
    option(
        "--norm",
        metavar="NAME",
        help=phrase("How pixels become inputs: {norms}.", list_choices(NORMS)),
        choices=NORMS,
        show_default="from the model, or guessed with a note",
    ),
    option(
        "--resize",
        metavar="HOW",
        help=phrase("How images are resized: {ways}.", list_choices(RESIZES)),
        choices=RESIZES,
        default="bilinear",
    ),
    option(
        "--crop",
        metavar="SHARE",
        kind=float,
        help="Central share of an image to keep; 0 squashes the whole image.",
        default="0.875",
    ),
)
GROUP = option(
    "--group",
    metavar="BY",
    help="Which samples belong together: an array's name, folder, folder:2, or a regular "
    "expression for file names; none: all are independent.",
    show_default="copies and near copies are found",
)
TASK = (
    option(
        "--task",
        metavar="NAME",
        help="What the model is for: anomaly, classification, detection, embedding, "
        "keypoints, questions, regression, segmentation, speech, text, or your own "
        "file.py:Class.",
        choices=TASKS,
        show_default="recognised, with a note",
    ),
    option(
        "--decode",
        metavar="LAYOUT",
        help="How outputs encode boxes or points, such as yolov8.",
        show_default="recognised, with a note",
    ),
    option(
        "--class-names", metavar="FILE", is_place=True, help="The model's classes, one per line."
    ),
    option(
        "--vocab",
        metavar="FILE",
        is_place=True,
        help="A tokenizer.json, or word pieces, one per line.",
    ),
    option(
        "--features",
        metavar="KIND",
        help="How sound becomes the model's input: wave, mfcc:40, logmel:80,window=25,hop=10 …",
        show_default="by the input's shape",
    ),
)
PREPARING = (
    *IMAGES,
    *TASK,
    GROUP,
    option(
        "--label-offset",
        metavar="N",
        kind=int,
        help="Number added to labels: 1 for a background class.",
        show_default="detected, with a note",
    ),
)

# Where a model runs, and who does the work.

ON = option(
    "--on",
    metavar="TARGET",
    help="Where to run, such as cpu:4 or cpu:1:litesmith.",
    choices=TARGETS,
    default="cpu:1",
)
CORES = option(
    "--cores",
    metavar="CORES",
    help="Cores to run on: big, little, or numbers such as 0-3. [any]",
)
BOARD = (
    option("--fits", metavar="BOARD", help="A board of the table: does the model fit it?"),
    option("--ram", metavar="SIZE", help="RAM that the arena may take, as in 256K."),
    option("--flash", metavar="SIZE", help="Flash that model and kernels may take, as in 1M."),
)
OVERLAP = option(
    "--overlap",
    metavar="none|reference",
    default="none",
    help="reference: write a layer's output over its input, right with the reference kernels "
    "alone.",
)
ENGINE = option(
    "--engine",
    metavar="ENGINE",
    help=phrase(
        "Who does the work, this machine or a Ray cluster: {engines}.", list_choices(ENGINES)
    ),
    choices=ENGINES,
    default="local",
)


def _load_ops(source: str) -> None:
    """Registers the ops in a user's file or module before the command runs."""
    from litesmith.ops.registry import load

    load(source)


OPS = option(
    "--ops",
    metavar="FILE",
    many=True,
    to_function=False,
    load=_load_ops,
    help="A Python file or module that registers custom ops or delegates.",
)
METRIC = option(
    "--metric",
    metavar="NAME",
    help="A metric: agreement, anomaly_auc, ap, ap50, auc, cer, cosine, em, f1, labels_f1, mae, "
    "miou, oks, pck, retrieval, rmse, snr, top1, top5, wer, or "
    "module:function, called with outputs and label.",
    choices=METRICS,
    default="auto",
)
MAX_SIZE = option("--max-size", metavar="4MB", help="Largest size the file may have.")
MAX_LATENCY = option("--max-latency", metavar="10ms", help="Longest time one run may take.")
MINIMIZE = option(
    "--minimize",
    metavar="WHAT",
    help=phrase("What to minimize: {costs}.", list_choices(COSTS)),
    choices=COSTS,
    default="latency",
)
SECONDS = option(
    "--seconds",
    metavar="N",
    kind=float,
    help="Time to measure for.",
    show_default="until steady",
)
RUNS = option(
    "--runs",
    metavar="N",
    kind=int,
    least=1,
    help="Number of runs to time each candidate for.",
    show_default="until steady",
)

# Quantization and other steps.

SCHEME = option(
    "--to",
    metavar="SCHEME",
    help=phrase("Scheme to quantize to: {schemes}.", list_choices(SCHEMES)),
    choices=SCHEMES,
    default="int8",
)
IO = option(
    "--io",
    metavar="TYPE",
    help="Type of inputs and outputs: float, int8, uint8 or int16.",
    choices="float|int8|uint8|int16",
    default="float",
)
KEEP = option(
    "--keep",
    metavar="OPS",
    many=True,
    help="Ops to leave alone: numbers, kinds or name patterns, such as 0,3-7,SOFTMAX,head*.",
)
ONLY = option("--only", metavar="OPS", many=True, help="Change only these ops.")
EFFORT = option(
    "--effort",
    metavar="LEVEL",
    help=phrase("Time put into accuracy: {levels}.", list_choices(EFFORTS)),
    choices=EFFORTS,
    default="default",
)
PER_TENSOR = option(
    "--per-tensor", kind=bool, help="One scale per weight tensor instead of one per channel."
)
NO_TUNE = option("--no-tune", kind=bool, help="Do not train, even with data.")

# Training.

EPOCHS = option(
    "--epochs",
    metavar="N",
    kind=float,
    help="Number of times to use each sample.",
    default="10",
)
LEARNING = (
    option(
        "--minutes",
        metavar="N",
        kind=float,
        help="Longest training time.",
        show_default="no limit",
    ),
    option(
        "--rate",
        metavar="R",
        kind=float,
        help="Learning rate in units of each weight's size.",
        show_default="several are tried",
    ),
    option(
        "--batch",
        metavar="N",
        kind=int,
        help="Number of samples in a training step.",
        show_default="automatic",
    ),
    option(
        "--augment",
        metavar="HOW",
        help=phrase(
            "How to augment colour images ({ways}): auto mirrors and shifts; mix suits a "
            "hundred epochs; shift is for images that must not be mirrored.",
            list_choices(AUGMENTS),
        ),
        choices=AUGMENTS,
        default="auto",
    ),
    option("--seed", metavar="N", kind=int, help="Random seed.", default="0"),
    option(
        "--device",
        metavar="auto|cpu|cuda",
        help="Where to train.",
        choices="auto|cpu|cuda",
        default="auto",
    ),
    option("--resume", kind=bool, help="Continue an interrupted training."),
    option(
        "--record-every",
        metavar="SECONDS",
        kind=float,
        help="Seconds between checkpoints.",
        default="10",
    ),
)
TRAINING = (
    *PREPARING,
    EPOCHS,
    *LEARNING,
    option(
        "--labels",
        metavar="SHARE",
        kind=float,
        help="Weight of the labels in the loss, 0 to 1; the rest follows the original model.",
        default="0.5",
    ),
    replace(RUNS, help="Number of runs to time both files for.", show_default="for a second"),
    TRUST_DATA,
)
SHRINKING = (*TRAINING, TRAINING_SAMPLES, EVAL)
