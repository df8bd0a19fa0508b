"""What `litesmith` says by itself, what it groups its commands by, and the pages of
`litesmith help`: data, recipes and targets."""

from typing import NamedTuple

from litesmith.phrases import phrase

# Commands by what one wants, for the list of all of them.
GROUPS = (
    (phrase("Start here"), ("demo", "tune", "doctor")),
    (phrase("Find a model"), ("choose", "retrain", "catalogue", "convert")),
    (phrase("Look at it"), ("inspect", "profile", "bench", "eval", "compare", "diff", "targets")),
    (phrase("Change it"), ("quantize", "qat", "prune", "cluster", "apply", "export")),
    (phrase("Keep it good"), ("gate", "report", "cache")),
)

# The commands that a newcomer is shown, and what each is for.
FIRST = (
    ("litesmith demo", phrase("the whole job in a minute, on a model that comes along")),
    ("litesmith inspect model.tflite", phrase("what is in your file, and what stands out")),
    (
        "litesmith tune model.tflite --data val/ --max-drop 1pt",
        phrase("the fastest file within a budget, with the proof"),
    ),
)


class Topic(NamedTuple):
    """A page of help: what it is about, rows of something to type and its meaning, and the pages
    of the documentation."""

    about: str
    rows: tuple[tuple[str, str], ...]
    pages: str


TOPICS = {
    "data": Topic(
        phrase("What --data takes. Labels are needed for accuracy, not for calibration."),
        (
            ("photos/", phrase("a folder of images: calibration, drift")),
            ("val/cat/, val/dog/", phrase("a folder a class, by name or number: accuracy")),
            ("val.npz", phrase("arrays x and y, or one array for each input by its name")),
            ("x.npy", phrase("one array, samples first")),
            ("coco/, voc/, yolo/", phrase("images and boxes, outlines or key points")),
            ("images/ and masks/", phrase("images and a mask for each")),
            ("reviews.tsv, .csv, .jsonl", phrase("texts with labels; needs --vocab")),
            ("clips/transcripts.tsv", phrase("WAV or FLAC clips and what is said in them")),
            ("squad.json", phrase("questions with their paragraphs")),
            ("module:function", phrase("code of yours that yields samples, or (sample, label)")),
            ("--samples 500", phrase("fewer samples, spread over the classes")),
            (
                "--norm tf|torch|caffe|unit|raw",
                phrase("how pixels become inputs; else guessed, said"),
            ),
            ("--group folder", phrase("which samples are not independent; copies are found")),
        ),
        "docs/tasks.md, docs/evidence.md",
    ),
    "recipes": Topic(
        phrase(
            'A recipe is steps joined by |, as in: apply m.tflite "fuse | quantize" -o out.tflite'
        ),
        (
            ("borders", phrase("other types or fixed sizes of inputs and outputs")),
            ("cleanup", phrase("drops what does nothing, joins what repeats")),
            ("cluster(k=32)", phrase("weights of few values")),
            ("correct", phrase("puts back what rounding has moved, on data")),
            ("equalize", phrase("evens out the ranges of channels between layers")),
            ("fold", phrase("computes what depends on constants alone")),
            ("fuse", phrase("puts padding, scaling and activations into layers")),
            ("prune(sparsity=0.5)", phrase("makes the least weights zero, or removes channels")),
            ("qat(to=int8)", phrase("quantizes, and trains what that has cost back")),
            ("quantize(to=int8)", phrase("stores and computes in small numbers")),
            ("relayout", phrase("the order of axes with the fewest transposes")),
            ("replace", phrase("puts a custom op in the place of a pattern")),
            ("resize(shape=[x=1,320])", phrase("fixed sizes of inputs")),
            ("rewrite(ops=[PRELU])", phrase("says ops with others that a target knows")),
            ("round", phrase("chooses codes so that layers come out closest; for int4")),
            ("sparsify", phrase("stores pruned layers sparse where that is faster")),
            ("upgrade", phrase("turns a legacy uint8 model into int8")),
        ),
        "docs/quantize.md, docs/train.md",
    ),
    "targets": Topic(
        phrase("What --on takes; several with commas. `litesmith targets` says what works here."),
        (
            ("cpu:4", phrase("LiteRT with four threads")),
            ("cpu:1:litesmith", phrase("with kernels of ours: int16x8 and sparse layers")),
            ("cpu:1:builtin", phrase("without XNNPACK")),
            ("cpu:1:reference", phrase("the runtime's slow reference kernels")),
            ("numpy", phrase("our own reference kernels, for comparison")),
            ("gpu, gpu:full", phrase("LiteRT's GPU accelerator, in half and in full precision")),
            ("openvino:1", phrase("Intel's runtime, with its own kernels")),
            ("micro", phrase("TensorFlow Lite Micro: memory and scores, no times")),
            ("ethos-u55-128", phrase("Arm's NPU: compiled and estimated, not run")),
            ("ssh://pi@host/cpu:4", phrase("another machine that has Python")),
            ("adb://SERIAL/cpu:4", phrase("an Android phone")),
            ("all", phrase("with bench: every accelerator in one table")),
        ),
        "docs/add-a-target.md",
    ),
}
