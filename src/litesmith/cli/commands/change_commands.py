"""To change a model: `quantize`, `qat`, `prune`, `cluster`, `apply` and `export`."""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import Command, argument, option
from litesmith.cli.options.shared_options import (
    BOARD,
    CALIBRATE,
    DATA,
    EFFORT,
    EVAL,
    IO,
    KEEP,
    MODEL,
    NO_TUNE,
    ON,
    ONLY,
    OPS,
    OUT_FILE,
    OVERLAP,
    PER_TENSOR,
    PREPARING,
    RANGES,
    RUNS,
    SAMPLES,
    SCHEME,
    SHAPE,
    SHRINKING,
    TRAINED_SCHEMES,
    TRAINING,
    TRAINING_SAMPLES,
    TRUST_DATA,
    list_choices,
)
from litesmith.phrases import phrase

QUANTIZE = Command(
    "quantize_text:print_quantized",
    (
        MODEL,
        SHAPE,
        OUT_FILE,
        SCHEME,
        DATA,
        IO,
        KEEP,
        ONLY,
        option(
            "--ranges",
            metavar="HOW",
            help=phrase("How ranges are chosen: {ways}.", list_choices(RANGES)),
            choices=RANGES,
            default="minmax",
        ),
        PER_TENSOR,
        option(
            "--block",
            metavar="N",
            kind=int,
            least=0,
            help="With dynamic-int4: number of inputs that share a scale.",
            default="0",
            show_default="32",
        ),
        EFFORT,
        replace(
            SAMPLES,
            help="Number of samples to calibrate on, spread over the classes.",
            show_default="256",
        ),
        option(
            "--random-data",
            kind=bool,
            help="Take ranges from random inputs; only to measure speed.",
        ),
        replace(ON, help="Where the file will run; ops that are faster in float there stay float."),
        option(
            "--fully-integer",
            kind=bool,
            help="Use integers wherever a kernel exists, even where float is faster.",
        ),
        RUNS,
        EVAL,
        TRUST_DATA,
        *PREPARING,
    ),
    help="Quantize: store weights, and compute, in small numbers.",
)

QAT = Command(
    "shrink_text:print_shrinking",
    (
        MODEL,
        SHAPE,
        OUT_FILE,
        replace(
            SCHEME,
            help=phrase("Scheme to quantize to: {schemes}.", list_choices(TRAINED_SCHEMES)),
            choices=TRAINED_SCHEMES,
        ),
        DATA,
        IO,
        PER_TENSOR,
        KEEP,
        ONLY,
        *SHRINKING,
    ),
    help="Quantize, then train to win back what that cost.",
)

PRUNE = Command(
    "shrink_text:print_shrinking",
    (
        MODEL,
        SHAPE,
        OUT_FILE,
        option(
            "--sparsity",
            metavar="SHARE",
            kind=float,
            help="Share of zeros among pruned weights.",
            default="0.5",
        ),
        option(
            "--block",
            metavar="SHAPE",
            help="What is zeroed together: single weights (1x1), four neighbouring "
            "inputs (1x4), two of every four (2:4), or whole channels "
            "(channels).",
            choices="1x1|1x4|2:4|channels",
            default="1x1",
        ),
        option(
            "--schedule",
            metavar="WHEN",
            help="Prune during training (gradual) or before it (constant).",
            choices="constant|gradual",
            default="constant",
        ),
        option(
            "--speedup",
            metavar="TIMES",
            kind=float,
            help="Remove channels until a run is so many times as fast, such as 1.5, by the "
            "measured time of each layer at each width.",
        ),
        ON,
        KEEP,
        ONLY,
        NO_TUNE,
        DATA,
        *SHRINKING,
    ),
    help="Set the least important weights to zero, and train the rest.",
)

CLUSTER = Command(
    "shrink_text:print_shrinking",
    (
        MODEL,
        SHAPE,
        OUT_FILE,
        option(
            "--clusters",
            "-k",
            metavar="K",
            kind=int,
            help="Number of values per layer, 2 to 256.",
            default="32",
        ),
        option(
            "--own",
            metavar="NAME:K",
            many=True,
            help="Layers with a K of their own, named as in --keep: dense*:16.",
        ),
        PER_TENSOR,
        KEEP,
        ONLY,
        NO_TUNE,
        DATA,
        *SHRINKING,
    ),
    help="Let the weights of each layer share a few values.",
)

APPLY = Command(
    "apply_text:print_applied",
    (
        MODEL,
        SHAPE,
        argument(
            "recipe",
            metavar="RECIPE",
            help='Steps, as in "cleanup | fuse"; `litesmith help recipes` lists all. "" '
            "copies; the recipe.json of a search makes its result again.",
        ),
        OUT_FILE,
        DATA,
        replace(
            CALIBRATE,
            help="With a recipe.json: the separate data that the search calibrated on.",
            show_default="as the recipe says",
        ),
        option(
            "--reference",
            metavar="FLOAT",
            kind=Path,
            help="The float model that a quantized MODEL was made from, for correct and round.",
        ),
        TRAINING_SAMPLES,
        OPS,
        *TRAINING,
    ),
    help="Apply a recipe of steps to a model.",
)

EXPORT = Command(
    "micro_text:print_exported",
    (
        MODEL,
        option(
            "--c",
            metavar="DIR",
            kind=Path,
            required=True,
            help="Folder for the C array, the op resolver and the planned .tflite file.",
        ),
        *BOARD,
        OVERLAP,
    ),
    help="A model as a C array for a microcontroller, its memory planned.",
)
