"""The first steps that `litesmith` prints by itself, its groups of commands, and the pages of
`litesmith help`: data, recipes and targets.
"""

from typing import NamedTuple

from litesmith.phrases import phrase

# Commands grouped by purpose, for the list of all commands.
GROUPS = (
    (phrase("Start here"), ("demo", "tune", "doctor")),
    (phrase("Find a model"), ("choose", "retrain", "catalogue", "convert")),
    (
        phrase("Look at it"),
        ("inspect", "view", "profile", "bench", "eval", "compare", "diff", "targets"),
    ),
    (phrase("Change it"), ("quantize", "qat", "prune", "cluster", "apply", "export")),
    (phrase("Keep it good"), ("gate", "report", "cache")),
)

# The commands for a newcomer, with the purpose of each.
FIRST = (
    ("litesmith demo", phrase("try the whole job in a minute, on a model that is included")),
    ("litesmith inspect model.tflite", phrase("what is in your file, and what stands out")),
    (
        "litesmith tune model.tflite --data val/ --max-drop 1pt",
        phrase("the fastest file within a budget, with the proof"),
    ),
)


class Topic(NamedTuple):
    """A page of help: its subject, rows of words with their meaning, and pages of the
    documentation.
    """

    about: str
    rows: tuple[tuple[str, str], ...]
    pages: str


TOPICS = {
    "data": Topic(
        phrase("What --data accepts. Accuracy needs labels; calibration does not."),
        (
            ("photos/", phrase("a folder of images: calibration, drift")),
            ("val/cat/, val/dog/", phrase("one folder per class, by name or number: accuracy")),
            ("val.npz", phrase("arrays x and y, or one array for each input by its name")),
            ("x.npy", phrase("one array, samples first")),
            ("coco/, voc/, yolo/", phrase("images and boxes, outlines or key points")),
            ("images/ and masks/", phrase("images and a mask for each")),
            (
                "labels.csv, .tsv, .jsonl",
                phrase("a file, or a row of numbers, and its label or several in each row"),
            ),
            ("reviews.tsv, .csv, .jsonl", phrase("texts with labels; needs --vocab")),
            ("clips/transcripts.tsv", phrase("WAV or FLAC clips and what is said in them")),
            ("squad.json", phrase("questions with their paragraphs")),
            ("module:function", phrase("your own code that yields samples, or (sample, label)")),
            ("--samples 500", phrase("fewer samples, spread over the classes")),
            (
                "--norm tf|torch|caffe|unit|raw",
                phrase("how pixels become inputs; otherwise guessed, with a note"),
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
            ("arrange(ram=60000)", phrase("lowers the memory on a microcontroller, exactly")),
            ("borders", phrase("changes types or fixes sizes of inputs and outputs")),
            ("cleanup", phrase("removes what does nothing, merges what repeats")),
            ("cluster(k=32)", phrase("weights with few distinct values")),
            ("correct", phrase("corrects what rounding shifted, using data")),
            ("encode", phrase("stores weights as TensorFlow Lite Micro decodes them")),
            ("equalize", phrase("evens out the ranges of channels between layers")),
            ("fold", phrase("computes what depends on constants alone")),
            ("fuse", phrase("puts padding, scaling and activations into layers")),
            ("hoist", phrase("computes the inputs of all steps of an LSTM at once")),
            ("level", phrase("gives each channel that a layer writes steps of its own")),
            ("masks", phrase("cuts attention masks to what a softmax needs, exactly")),
            (
                "prune(sparsity=0.5)",
                phrase("sets the least important weights to zero, or removes channels"),
            ),
            ("qat(to=int8)", phrase("quantizes, then trains to win back what that cost")),
            ("quantize(to=int8)", phrase("stores and computes in small numbers")),
            ("relayout", phrase("chooses the order of axes with the fewest transposes")),
            ("replace", phrase("puts a custom op in the place of a pattern")),
            ('resize(shape=["x=1,320"])', phrase("fixes the sizes of inputs")),
            ("rewrite(ops=[PRELU])", phrase("expresses ops by others that a target supports")),
            ("round", phrase("rounds weights so that layer outputs stay closest; for int4")),
            ("smooth", phrase("moves large channels of a normalization into weights")),
            ("sparsify", phrase("stores pruned layers sparse where that is faster")),
            ("upgrade", phrase("turns a legacy uint8 model into int8")),
        ),
        "docs/quantize.md, docs/train.md",
    ),
    "targets": Topic(
        phrase(
            "What --on accepts; separate several with commas. `litesmith targets` "
            "shows what works here."
        ),
        (
            ("cpu:4", phrase("LiteRT with four threads")),
            ("cpu:1:litesmith", phrase("with Litesmith's own kernels: int16x8 and sparse layers")),
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
