"""Options that several commands have, each declared once; none of them needs more than a parser.

What a command does not use is in its own file. Values that help shows are those of the rooms below,
which a test compares: importing them here would make every `--help` wait for numpy.
"""

from pathlib import Path
from typing import Annotated, TypedDict

from litesmith.cli.options.declare import argument, option
from litesmith.errors import BadInput

LOCAL = "local"
SCHEMES = "dynamic|dynamic-int4|float16|int16x8|int8|w4a8|weight-int4|weight-int8"
NORMS = "caffe|raw|tf|torch|unit"
RESIZES = "bilinear|bicubic"
ENGINES = "local|ray|ray://HOST:PORT"
COSTS = "latency|size|download|memory"
AUGMENTS = "auto|mix|flip|shift|none"

ModelFile = Annotated[Path, argument(metavar="MODEL", help="A .tflite file.")]
OutFile = Annotated[
    Path, option("-o", "--output", metavar="FILE", help="The .tflite file to write.")
]
Json = Annotated[bool, option("--json", help="Print one JSON object.")]

# Data.

DataSource = Annotated[
    str | None,
    option(
        "--data",
        metavar="D",
        help="A folder of images, or of class folders; .npz with x and y; .npy; module:function.",
    ),
]
EvaluationData = Annotated[
    str | None,
    option("--eval", metavar="D2", help="Data to score the model and the result on."),
]
SampleCount = Annotated[
    int | None,
    option(
        "--samples",
        metavar="N",
        min=1,
        help="Number of samples to use, spread over the classes.",
        show_default="all",
    ),
]
TrustData = Annotated[bool, option("--trust-data", help="Use data that looks wrong.")]


class Images(TypedDict, total=False):
    """How images are prepared for a model."""

    mean: Annotated[
        str,
        option(
            "--mean",
            metavar="M",
            help="Pixels of 0 to 255 become (x − M) / S; one number or three, as in 127.5.",
        ),
    ]
    std: Annotated[str, option("--std", metavar="S", help="See --mean.")]
    norm: Annotated[
        str,
        option(
            "--norm",
            metavar=NORMS,
            help="The same by name.",
            show_default="from the model, or guessed and said",
        ),
    ]
    resize: Annotated[
        str,
        option(
            "--resize", metavar=RESIZES, help="How images are resized.", show_default="bilinear"
        ),
    ]
    crop: Annotated[
        float,
        option(
            "--crop",
            metavar="SHARE",
            help="Central share of an image to keep; 0 squashes the whole image.",
            show_default="0.875",
        ),
    ]


class Preparing(Images, total=False):
    """How data is prepared for a model."""

    label_offset: Annotated[
        int,
        option(
            "--label-offset",
            metavar="N",
            help="Number added to labels: 1 for a background class.",
            show_default="detected and said",
        ),
    ]


# Where a model runs, and who does the work.

On = Annotated[
    str, option("--on", metavar="TARGET", help="Where to run, as in cpu:4 or cpu:1:litesmith.")
]
EngineName = Annotated[
    str,
    option(
        "--engine",
        metavar=ENGINES,
        help="Who does the work: this machine, or the nodes of a Ray cluster.",
    ),
]


def load_ops(source: str) -> None:
    """Registers what a file or module of the user's has, before the command runs."""
    from litesmith.ops.registry import load

    load(source)


Ops = Annotated[
    list[str] | None,
    option(
        "--ops",
        metavar="FILE",
        load=load_ops,
        help="A Python file or module that registers custom ops or delegates.",
    ),
]


def refuse_files_elsewhere(ops: list[str] | None, engine: str) -> None:
    """Raises where workers would need files of the user's that they do not have."""
    if ops and engine != LOCAL:
        raise BadInput(
            "--ops with --engine {engine}: files of yours stay here; use --engine local", engine
        )


MetricName = Annotated[
    str,
    option(
        "--metric",
        metavar="NAME",
        help="A metric: agreement, auc, cosine, mae, miou, rmse, snr, top1, top5, or "
        "module:function, called with outputs and label.",
    ),
]
MaxSize = Annotated[
    str | None, option("--max-size", metavar="4MB", help="Largest size the file may have.")
]
MaxLatency = Annotated[
    str | None, option("--max-latency", metavar="10ms", help="Longest time one run may take.")
]
Seconds = Annotated[
    float | None,
    option("--seconds", metavar="N", help="Time to measure for.", show_default="until steady"),
]

# Quantization and other steps.

Scheme = Annotated[str, option("--to", metavar=SCHEMES, help="Scheme to quantize to.")]
Io = Annotated[
    str, option("--io", metavar="float|int8|uint8|int16", help="Type of inputs and outputs.")
]
Keep = Annotated[
    list[str] | None,
    option(
        "--keep",
        metavar="OPS",
        help="Ops to leave as they are: numbers, kinds or name patterns, as in 0,SOFTMAX,head*.",
    ),
]
Only = Annotated[
    list[str] | None, option("--only", metavar="OPS", help="Ops to change; no others are.")
]
Effort = Annotated[
    str, option("--effort", metavar="quick|default|best", help="Time put into accuracy.")
]
PerTensor = Annotated[bool, option("--per-tensor", help="One scale a weight, not one a channel.")]
NoTune = Annotated[bool, option("--no-tune", help="Train nothing, even with data.")]
TrainingCount = Annotated[
    int | None,
    option(
        "--samples",
        metavar="N",
        min=1,
        help="Number of samples to use, spread over the classes.",
        show_default="all to train, else 256",
    ),
]


class LearningPlan(Images, total=False):
    """How images are prepared, and how a network is trained on them."""

    epochs: Annotated[
        float,
        option(
            "--epochs", metavar="N", help="Number of times to use each sample.", show_default="10"
        ),
    ]
    minutes: Annotated[
        float,
        option("--minutes", metavar="N", help="Longest training time.", show_default="no limit"),
    ]
    rate: Annotated[
        float,
        option(
            "--rate",
            metavar="R",
            help="Learning rate in units of each weight's size.",
            show_default="several are tried",
        ),
    ]
    batch: Annotated[
        int,
        option(
            "--batch",
            metavar="N",
            help="Number of samples in a training step.",
            show_default="as many as suit",
        ),
    ]
    augment: Annotated[
        str,
        option(
            "--augment",
            metavar=AUGMENTS,
            help="How colour pictures vary: auto mirrors and moves; mix for a hundred epochs; "
            "shift where mirrors mislead.",
            show_default="auto",
        ),
    ]
    seed: Annotated[int, option("--seed", metavar="N", help="Random seed.", show_default="0")]
    device: Annotated[
        str,
        option("--device", metavar="auto|cpu|cuda", help="Where to train.", show_default="auto"),
    ]
    resume: Annotated[bool, option("--resume", help="Continue an interrupted training.")]
    record_every: Annotated[
        float,
        option(
            "--record-every",
            metavar="SECONDS",
            help="Time between two records that a training can continue from.",
            show_default="10",
        ),
    ]


class TrainingPlan(LearningPlan, Preparing, total=False):
    """How data is prepared, and how a model is trained to do again what it did."""

    labels: Annotated[
        float,
        option(
            "--labels",
            metavar="SHARE",
            help="Share of the loss for labels, 0 to 1; the rest follows the original.",
            show_default="0.5",
        ),
    ]
    runs: Annotated[
        int,
        option(
            "--runs",
            metavar="N",
            min=1,
            help="Number of runs to time both files in.",
            show_default="for a second",
        ),
    ]
    trust_data: Annotated[bool, option("--trust-data", help="Use data that looks wrong.")]


class ShrinkPlan(TrainingPlan, total=False):
    """What prune, cluster and qat have alike."""

    samples: TrainingCount
    eval: EvaluationData
