"""Folders as `tune` leaves them: a whole one, and what is left of it at other moments."""

import json
import math
from collections.abc import Mapping
from pathlib import Path

Json = dict[str, object]

FLOAT_BYTES, FLOAT_US, FLOAT_TOP1 = 16_900_000, 10_430.0, 0.6915

# name, branch, recipe, status, bytes, change in top-1, ratio of time, why
TRIED = (
    ("float", "clean-up", "", "fits", 16_900_000, 0.0, 1.0, "The model as it was given."),
    (
        "clean",
        "clean-up",
        "cleanup | fold | fuse",
        "fits",
        16_870_000,
        0.0,
        0.991,
        "Costs nothing: 3 ops fewer, the same answers.",
    ),
    (
        "float16",
        "float16",
        "quantize(to=float16)",
        "fits",
        8_460_000,
        -0.0002,
        1.004,
        "Half the size; this CPU computes in float32, so that it is no faster.",
    ),
    (
        "dynamic",
        "dynamic",
        "quantize(to=dynamic)",
        "fits",
        4_310_000,
        -0.0062,
        0.611,
        "Weights in 8 bits: a quarter of the size; the range of data is found at every run.",
    ),
    (
        "int8",
        "int8",
        "quantize(to=int8)",
        "misses",
        4_270_000,
        -0.0131,
        0.419,
        "Fastest, but it loses more than the budget: the remedies are tried.",
    ),
    (
        "int8.correct",
        "ranges",
        "quantize(to=int8) | correct",
        "fits",
        4_270_000,
        -0.0042,
        0.42,
        "Biases and gains put back: inside the budget at no cost in time.",
    ),
    (
        "int8.equalize",
        "equalize",
        "equalize | quantize(to=int8) | correct",
        "fits",
        4_271_000,
        -0.003,
        0.42,
        "Channels evened out before: nearer to the float model still.",
    ),
    (
        "int16x8",
        "int16x8",
        "quantize(to=int16x8)",
        "fits",
        4_480_000,
        -0.0007,
        1.62,
        "Next to no loss, but slower than float on this CPU.",
    ),
    (
        "int4",
        "int4",
        "quantize(to=int4) | round(bits=4)",
        "misses",
        2_380_000,
        -0.151,
        0.74,
        "Four bits are too few for the depthwise layers.",
    ),
    (
        "qat",
        "qat",
        "qat(to=int8)",
        "refused",
        None,
        None,
        None,
        "torch is not installed; pip install 'litesmith[train]' adds it.",
    ),
    (
        "mixed",
        "mixed",
        "quantize(to=int8, keep=[0, 27])",
        "set aside",
        5_100_000,
        None,
        None,
        "Slower than int8.equalize, which already fits: not scored.",
    ),
)
BEST, FRONT = "int8.equalize", ("int8.equalize", "float16", "int16x8", "float")
KINDS = ("CONV_2D", "DEPTHWISE_CONV_2D") * 13


def digest(name: str) -> str:
    """A digest that looks like one."""
    return f"{abs(hash_of(name)):064x}"


def hash_of(name: str) -> int:
    return sum(ord(letter) * 31**place for place, letter in enumerate(name, 1)) % 2**255


FLOAT_DIGEST = digest("float")


def name_of(line: Json) -> object:
    """The name of the trial in a line."""
    details = line["details"]
    assert isinstance(details, dict)
    return details["name"]


def accuracy(change: float, count: int = 640, reference: float = FLOAT_TOP1) -> Json:
    value = reference + change
    half, paired = 1.96 * math.sqrt(value * (1 - value) / count), 0.006 + abs(change) / 4
    paired = paired if change else 0.0
    return {
        "metric": "top1",
        "title": "top-1",
        "unit": "share",
        "value": value,
        "low": value - half,
        "high": value + half,
        "n": count,
        "reference": reference,
        "difference": change,
        "difference_low": change - paired,
        "difference_high": change + paired,
        "agreement": 0.97,
    }


def latency(ratio: float, target: str = "cpu:1") -> Json:
    return {
        "target": target,
        "p50_us": ratio * FLOAT_US * 1.01,
        "float_us": FLOAT_US * 1.01,
        "ratio": ratio,
        "low": ratio * 0.985,
        "high": ratio * 1.017,
    }


def trial(details: Json, recipe: str = "", digest: str = "", **more: object) -> Json:
    """A line of trials.jsonl."""
    usual = {"measurements": [], "skipped": [], "reason": ""}
    names = {"recipe": recipe, "parent_digest": FLOAT_DIGEST, "model_digest": digest}
    return {**names, **usual, **more, "details": details}


def trials() -> list[Json]:
    """Every trial of the whole folder, the proof of the best one last."""
    made: list[Json] = []
    for name, branch, recipe, status, size, change, ratio, reason in TRIED:
        details: Json = {"name": name, "kind": "candidate", "branch": branch, "status": status}
        if size is not None:
            details |= {"bytes": size, "gzip_bytes": int(0.91 * size), "peak_bytes": 5_200_000}
        if change is not None and ratio is not None:
            details |= {"accuracy": accuracy(change), "latency": latency(ratio)}
            details["room"] = {"estimate": change + 0.01, "allowed": 0.01}
        details |= {"is_integer": name.startswith("int8"), "seconds": 11.2, "notes": []}
        skipped = [{"where": "SOFTMAX 30", "why": "stays float: its output is the model's"}]
        own = "" if status == "refused" else digest(name)
        made.append(
            trial(
                details,
                recipe,
                own,
                skipped=skipped if name.startswith("int8") else [],
                reason=reason,
            )
        )
    proof: Json = {"name": BEST, "kind": "verified", "branch": "equalize", "status": "fits"}
    proof |= {"accuracy": accuracy(-0.0021, 960, 0.6948), "latency": latency(0.42)}
    made.append(trial(proof, digest=digest(BEST)))
    return made


def summary() -> Json:
    """tune.json of a search that ended well."""
    return {
        "schema": 1,
        "model": "mobilenet_v1_1.0_224.tflite",
        "model_digest": digest("float"),
        "version": "0.6.0",
        "command": "litesmith tune mobilenet_v1_1.0_224.tflite --data val/ --max-drop 1pt -o tuned",
        "state": "done",
        "request": {
            "minimize": "latency",
            "budget": "a drop of at most 1 pt",
            "limits": ["at most 6.00 MB"],
            "ceilings": {"size": 6e6},
            "targets": ["cpu:1", "cpu:2"],
        },
        "data": {
            "source": "val/",
            "calibration": 256,
            "search": 640,
            "held_out": 960,
            "preparation": "224×224, bilinear, central 87.5 %, (x − 127.5) / 127.5",
            "notes": ["labels: a background class was found, so that 1 is added to every label"],
        },
        "verdict": "proven",
        "sentence": "int8.equalize is 2.38× faster than the float model and a quarter of its "
        "size, at −0.21 pt of top-1",
        "best": {
            "name": BEST,
            "file": "best.tflite",
            "recipe": "equalize | quantize(to=int8) | correct",
            "target": "cpu:2",
            "accuracy": accuracy(-0.0021, 960, 0.6948),
            "latency": latency(0.42),
            "bytes": 4_271_000,
            "gzip_bytes": 3_890_000,
        },
        "float": {
            "name": "float",
            "bytes": FLOAT_BYTES,
            "gzip_bytes": 15_600_000,
            "accuracy": accuracy(0.0, 960, 0.6948),
            "latency": latency(1.0),
        },
        "front": list(FRONT),
        "path": PATH,
        "threads": [
            {
                "target": target,
                "model": model,
                "p50_us": us,
                "low_us": us * 0.99,
                "high_us": us * 1.012,
            }
            for model, target, us in (
                ("float", "cpu:1", 10_430.0),
                ("float", "cpu:2", 5_920.0),
                ("best", "cpu:1", 4_380.0),
                ("best", "cpu:2", 2_510.0),
            )
        ],
        "next": ["litesmith bench tuned/best.tflite --on cpu:2: the times again, on any machine"],
        "environment": {
            "cpu": "AMD EPYC 7B13, AVX2",
            "cores": 2,
            "governor": "",
            "load": 0.41,
            "memory_bytes": 8_329_000_000,
            "system": "Linux 6.1 x86_64",
            "python": "3.11.7",
            "runtime": "ai-edge-litert 2.3.0",
            "litesmith": "0.6.0",
        },
        "seconds": 312.0,
    }


PATH = [
    {
        "branch": "clean-up",
        "question": "Does it get faster without any loss?",
        "answer": "a little: 0.99× the time, the same answers",
        "trials": ["clean"],
    },
    {
        "branch": "int8",
        "question": "Does int8 stay within the budget?",
        "answer": "no: −1.31 pt [−2.44, −0.18]",
        "trials": ["int8"],
    },
    {
        "branch": "equalize",
        "question": "Do the remedies that cost nothing bring it back?",
        "answer": "yes: −0.30 pt [−1.18, +0.58] with equalization",
        "trials": ["int8.correct", "int8.equalize"],
    },
    {
        "branch": "qat",
        "question": "Would training get closer?",
        "answer": "not tried: torch is not installed",
        "trials": ["qat"],
    },
]


def accelerators(name: str) -> list[Json]:
    """What accelerators make of a model: integers for one, float for another."""
    is_float = name == "float"
    taken = {"gpu": 31, "ethos-u55-64": 0, "ethos-u55-128": 0, "coreml": 30}
    if not is_float:
        taken |= {"ethos-u55-64": 31, "ethos-u55-128": 31, "coreml": 0}
    return [
        {
            "target": target,
            "how": "measured" if target == "ethos-u55-128" and not is_float else "predicted",
            "taken": count,
            "ops": 31,
            "partitions": 0 if not count else 1 if count == 31 else 2,
            "why": "" if count == 31 else f"a reason of {target}",
            "latency_us": 2_900.0 if target == "ethos-u55-128" and not is_float else None,
            "latency_how": "estimated",
        }
        for target, count in taken.items()
    ]


# An item on which the two models differ: in boxes, points, a mask and words.
APART = {
    "name": "<cat>.png",
    "thumbnail": "/9j/4AAQ",
    "before": {
        "score": 1.0,
        "text": "KAKAO ZEBU XYLO",
        "marks": [{"box": [0.1, 0.2, 0.5, 0.6], "words": "<cat> 0.91", "is_point": False}],
        "mask": "",
    },
    "after": {
        "score": 0.25,
        "text": "KAKAO ZOBU XYLO",
        "marks": [{"box": [0.1, 0.2, 0.1, 0.2], "words": "", "is_point": True}],
        "mask": "iVBORw0K",
    },
}


def inside(name: str, speed: float) -> Json:
    """Per-op times and, but for the float model, per-layer errors."""
    ops = [
        {
            "index": index,
            "kind": kind,
            "name": f"MobilenetV1/MobilenetV1/Conv2d_{index // 2}_{kind.lower()}/Relu6;bias",
            "us": speed * (80 + 420 * ((7 * index) % 11) / 11) * (1.6 if index % 2 else 1.0),
            "macs": 1_000_000 * index,
        }
        for index, kind in enumerate(KINDS)
    ]
    layers = [
        {**op, "snr_db": 42 - 0.6 * index - 14 * (index in (3, 14, 21))}
        for index, op in enumerate(ops)
    ]
    ops.append(
        {"index": len(ops), "kind": "SOFTMAX", "name": "probs", "us": 9.0 * speed, "macs": 0}
    )
    shown: Json = {"schema": 1, "name": name, "ops": ops, "run_us": FLOAT_US * speed}
    shown["accelerators"] = accelerators(name)
    return shown if name == "float" else {**shown, "layers": layers, "disagreements": [APART]}


def write_folder(
    folder: Path,
    told: Mapping[str, object] | None = None,
    tried: list[Json] | None = None,
    details: bool = True,
) -> Path:
    """Writes what is given, or the whole example, as a tuning would."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tune.json").write_text(json.dumps(summary() if told is None else told))
    lines = [json.dumps(line) + "\n" for line in (trials() if tried is None else tried)]
    (folder / "trials.jsonl").write_text("".join(lines))
    if details:
        (folder / "evidence").mkdir(exist_ok=True)
        for name, speed in (("float", 1.0), (BEST, 0.42)):
            place = folder / "evidence" / f"{digest(name)}.json"
            place.write_text(json.dumps(inside(name, speed)))
        recipe = {"schema": 1, "command": f"litesmith apply m.tflite '{BEST}' --data val/ -o out"}
        (folder / "recipe.json").write_text(json.dumps(recipe))
    return folder


def half_finished(folder: Path) -> Path:
    """A search that was stopped after three trials, with a line that a crash cut short."""
    told = summary()
    for key in ("verdict", "best", "sentence", "path", "threads", "environment", "seconds", "next"):
        told.pop(key)
    told |= {"state": "stopped", "front": ["float"], "verdict": None, "best": None}
    write_folder(folder, told, trials()[:3], details=False)
    with (folder / "trials.jsonl").open("a") as log:
        log.write('{"recipe": "quant')
    return folder


def missed(folder: Path) -> Path:
    """A search in which nothing fits."""
    told = summary()
    told |= {
        "verdict": "missed",
        "best": None,
        "front": ["float"],
        "sentence": "nothing is within 1 pt; int8 is nearest, at −1.31 pt [−2.44, −0.18]",
        "nearest": {"name": "int8", "accuracy": accuracy(-0.0131, 960), "bytes": 4_270_000},
        "next": [
            "litesmith doctor m.tflite --data val/: which layers lose it, and why",
            "more samples to calibrate on, with --calibrate, or a larger budget",
        ],
    }
    kept = [line for line in trials() if name_of(line) in ("float", "int8", "int4")]
    return write_folder(folder, told, kept)


def float_only(folder: Path) -> Path:
    """The first moment: only the float model is known, and almost nothing of it."""
    line = trial({"name": "float", "kind": "candidate"}, digest=digest("float"))
    return write_folder(folder, {"schema": 1, "state": "running"}, [line], details=False)


MOMENTS = {
    "done": write_folder,
    "half finished": half_finished,
    "missed": missed,
    "float only": float_only,
}
