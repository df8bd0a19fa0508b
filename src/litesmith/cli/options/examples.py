"""Commands to copy, at the end of each command's help."""

from typing import NamedTuple

from litesmith.phrases import phrase


class Example(NamedTuple):
    """A command line and its purpose."""

    words: str
    purpose: str


EXAMPLES = {
    "tune": (
        Example(
            "litesmith tune model.tflite --data val/ --max-drop 1pt",
            phrase("the fastest file that loses at most one point, proven on held-out samples"),
        ),
        Example(
            "litesmith tune model.tflite --data val/ --max-drop 1pt --minimize size",
            phrase("the smallest one instead"),
        ),
        Example(
            "litesmith tune landmarks.tflite --data frames/ --min-snr 20dB",
            phrase("without labels: the outputs stay within 20 dB of the float model's"),
        ),
    ),
    "choose": (
        Example(
            "litesmith choose 'models/*.tflite' --data val/ --max-latency 10ms",
            phrase("the most accurate model that runs in 10 ms on this machine"),
        ),
        Example(
            "litesmith choose mobilenet_v2 resnet8 --retrain --data photos/",
            phrase("which network learns your classes best"),
        ),
    ),
    "report": (
        Example("litesmith report model-tuned", phrase("rebuild the report of a search")),
        Example(
            "litesmith report model-tuned --markdown -o summary.md",
            phrase("the same for a pull request"),
        ),
        Example(
            "litesmith report tuned-a tuned-b chosen -o runs.html",
            phrase("several runs side by side, with a filter"),
        ),
    ),
    "compare": (
        Example(
            "litesmith compare float.tflite int8.tflite --data val/",
            phrase("whether the second is as good, and faster"),
        ),
        Example(
            "litesmith compare old.tflite new.tflite --on cpu:4",
            phrase("without data: times, sizes and drift on four threads"),
        ),
    ),
    "view": (
        Example(
            "litesmith view model.tflite -o page.html",
            phrase("the graph, coloured by the time of each op"),
        ),
        Example(
            "litesmith view float.tflite int8.tflite --data val/ -o page.html",
            phrase("two models side by side: what changed, and where accuracy is lost"),
        ),
    ),
    "gate": (
        Example(
            "litesmith gate baseline.json model.tflite --data val.npz --update",
            phrase("write the baseline once"),
        ),
        Example(
            "litesmith gate baseline.json model.tflite --data val.npz",
            phrase("in CI: exit status 1 where the model got worse"),
        ),
        Example(
            "litesmith gate baseline.json model.tflite --data val.npz -o gated",
            phrase("the same, with a page"),
        ),
    ),
    "inspect": (
        Example("litesmith inspect model.tflite", phrase("what is in it, and what stands out")),
        Example("litesmith inspect model.tflite --ops", phrase("every op with its shapes")),
    ),
    "bench": (
        Example(
            "litesmith bench float.tflite int8.tflite --on cpu:1",
            phrase("which one is faster, with an interval"),
        ),
        Example(
            "litesmith bench model.tflite --threads auto",
            phrase("how many threads pay, alone and beside other programs"),
        ),
        Example(
            "litesmith bench model.tflite --on all -o targets",
            phrase("every accelerator, with a page"),
        ),
    ),
    "profile": (
        Example("litesmith profile model.tflite --top 5", phrase("the five slowest ops")),
        Example(
            "litesmith profile model.tflite --trace run.pftrace",
            phrase("a trace for ui.perfetto.dev"),
        ),
    ),
    "eval": (
        Example("litesmith eval model.tflite --data val/", phrase("accuracy with its interval")),
        Example(
            "litesmith eval int8.tflite --data val/ --against float.tflite",
            phrase("what quantizing has cost, sample by sample"),
        ),
        Example(
            "litesmith eval detector.tflite --data coco/val --metric ap50",
            phrase("average precision of a detector"),
        ),
    ),
    "doctor": (
        Example("litesmith doctor model.tflite", phrase("why it is slow")),
        Example(
            "litesmith doctor int8.tflite --data val/ --against float.tflite",
            phrase("where accuracy is lost, and the command that helps"),
        ),
        Example(
            "litesmith doctor model.tflite --for edgetpu",
            phrase("what keeps it from running entirely there"),
        ),
    ),
    "targets": (
        Example("litesmith targets", phrase("what can be used here, or why not")),
        Example("litesmith targets model.tflite", phrase("which ops of a model each one takes")),
    ),
    "export": (
        Example(
            "litesmith export int8.tflite --c firmware/model --fits arduino-nano-33-ble",
            phrase("a C array, the ops to register, and whether the board has room"),
        ),
        Example(
            "litesmith export int8.tflite --c firmware/model --overlap reference",
            phrase("with less memory still, for the reference kernels alone"),
        ),
    ),
    "catalogue": (
        Example("litesmith catalogue", phrase("all networks")),
        Example(
            "litesmith catalogue efficientnet_lite0 --pretrained -o lite0.tflite",
            phrase("one of them with published weights"),
        ),
    ),
    "apply": (
        Example(
            'litesmith apply model.tflite "cleanup | fold | fuse" -o tidy.tflite',
            phrase("the same results from fewer ops"),
        ),
        Example(
            "litesmith apply model.tflite model-tuned/recipe.json -o again.tflite",
            phrase("make the result of a search again"),
        ),
    ),
    "quantize": (
        Example(
            "litesmith quantize model.tflite --data photos/ -o int8.tflite",
            phrase("int8, calibrated on 256 samples; labels are not needed"),
        ),
        Example(
            "litesmith quantize model.tflite --to float16 -o half.tflite",
            phrase("half the size, without data"),
        ),
        Example(
            "litesmith quantize model.tflite --data x.npy --fully-integer -o npu.tflite",
            phrase("for an accelerator that takes integers only"),
        ),
    ),
    "prune": (
        Example(
            "litesmith prune model.tflite --sparsity 0.8 --data train/ -o pruned.tflite",
            phrase("zeroes four of five weights: a smaller download"),
        ),
        Example(
            "litesmith prune model.tflite --block channels --data train/ -o slim.tflite",
            phrase("removes whole channels: faster everywhere"),
        ),
    ),
    "cluster": (
        Example(
            "litesmith cluster model.tflite -k 16 --data train/ -o few.tflite",
            phrase("sixteen values per layer: a smaller download"),
        ),
        Example(
            "litesmith cluster model.tflite -k 32 --no-tune -o few.tflite",
            phrase("without training, in seconds"),
        ),
    ),
    "qat": (
        Example(
            "litesmith qat model.tflite --data train/ -o int8.tflite",
            phrase("int8 with training, where quantizing alone loses too much"),
        ),
        Example(
            "litesmith qat model.tflite --to w4a8 --data x.npy --labels 0 -o small.tflite",
            phrase("int4 weights, taught by the float model: no labels are needed"),
        ),
    ),
    "retrain": (
        Example(
            "litesmith retrain backbone.tflite --data photos/ -o mine.tflite",
            phrase("a classifier of the folders in photos/, in seconds"),
        ),
        Example(
            "litesmith retrain net.tflite --data photos/ --fine-tune all -o mine.tflite",
            phrase("the whole network, with torch"),
        ),
    ),
    "convert": (
        Example("litesmith convert model.onnx -o model.tflite", phrase("the usual case")),
        Example(
            "litesmith convert net.onnx --shape x=1,3,320,320 --data val/ -o net.tflite",
            phrase("with free sizes fixed, proven on your data"),
        ),
    ),
    "diff": (
        Example("litesmith diff before.tflite after.tflite", phrase("ops, constants and scales")),
        Example(
            "litesmith diff before.tflite after.tflite --json", phrase("the same for a program")
        ),
    ),
    "demo": (
        Example("litesmith demo", phrase("the whole job in a minute")),
        Example("litesmith demo -o here", phrase("with its files in a folder of your choice")),
    ),
    "cache": (
        Example("litesmith cache", phrase("what is kept, and where")),
        Example("litesmith cache clear", phrase("start afresh")),
    ),
}
