"""The command retrain: a classifier of the user's classes from any float network."""

from pathlib import Path
from typing import Annotated, Unpack

import litesmith
from litesmith.cli.options.declare import argument, option, typed_command
from litesmith.cli.options.shared_options import DataSource, Json, LearningPlan, SampleCount
from litesmith.cli.text.deliver import deliver
from litesmith.cli.text.progress_text import Terminal

Backbone = Annotated[
    Path,
    argument(
        metavar="BACKBONE",
        help="A float .tflite: a classifier, or a feature extractor; or a network of "
        "`litesmith catalogue` by name, to train from scratch.",
    ),
]
OutFile = Annotated[Path, option("-o", "--output", metavar="OUT", help="The .tflite to write.")]
Val = Annotated[
    str | None,
    option(
        "--val",
        metavar="D2",
        help="Other data to judge by.",
        show_default="D/val, else a fifth of each class",
    ),
]
At = Annotated[
    str,
    option(
        "--at",
        metavar="TENSOR",
        help="Tensor to learn from, by name or index.",
        show_default="the vector before the classifier",
    ),
]
Balance = Annotated[
    bool, option("--balance", help="Let every class count the same, large or small.")
]
FineTune = Annotated[
    str,
    option(
        "--fine-tune",
        metavar="none|last|all|N",
        help="Layers to train too, with torch; none takes seconds, not minutes.",
    ),
]
SampleRate = Annotated[
    int | None,
    option(
        "--sample-rate",
        min=0,
        help="Samples a second that a model of sounds takes.",
        show_default="its metadata, else 16000, said",
    ),
]
Evidence = Annotated[
    Path | None,
    option(
        "--evidence",
        metavar="DIR",
        help="Folder for the report.",
        show_default="OUT without its ending, and -retrain",
    ),
]


class RetrainPlan(LearningPlan, total=False):
    """How data is prepared, and how a network is trained on it."""

    epochs: Annotated[
        float,
        option(
            "--epochs",
            metavar="N",
            help="Number of times to use each sample.",
            show_default="10, from scratch 40",
        ),
    ]


def retrain(
    backbone: Backbone,
    out: OutFile,
    data: DataSource = None,
    val: Val = None,
    at: At = "",
    balance: Balance = False,
    fine_tune: FineTune = "none",
    samples: SampleCount = None,
    sample_rate: SampleRate = None,
    evidence: Evidence = None,
    as_json: Json = False,
    **plan: Unpack[RetrainPlan],
) -> None:
    """Make a classifier of your classes: a new head, or a whole network from scratch."""
    from litesmith.cli.text.retrain_text import print_retrained

    with Terminal(quiet=as_json) as progress:
        result = litesmith.retrain(
            backbone,
            data,
            out,
            val=val,
            at=at,
            balance=balance,
            fine_tune=fine_tune,
            samples=samples,
            sample_rate=sample_rate,
            evidence=evidence or out.with_name(f"{out.stem}-retrain"),
            command=typed_command(),
            progress=progress,
            **plan,
        )
    deliver(result, print_retrained, as_json)
