"""A folder as `choose` leaves it, with names that a page or a table could stumble over."""

import json
from collections.abc import Mapping
from pathlib import Path

Json = dict[str, object]

# name, value, time in µs, bytes, on the front
MODELS = (
    ("small", 0.50, 1_100.0, 1_900_000, True),
    ("middle", 0.69, 9_000.0, 3_600_000, True),
    ("large", 0.72, 14_000.0, 18_600_000, True),
    ("beaten", 0.68, 12_000.0, 16_900_000, False),
)


def row(name: str, value: float, us: float, size: int, on_front: bool) -> Json:
    return {
        "model": name,
        "file": f"{name}.tflite",
        "digest": name,
        "value": value,
        "low": value - 0.04,
        "high": value + 0.04,
        "n": 400,
        "unit": "share",
        "metric": "top1",
        "title": "top-1",
        "better": 1,
        "p50_us": us,
        "p50_low_us": 0.98 * us,
        "p50_high_us": 1.03 * us,
        "bytes": size,
        "gzip_bytes": int(0.9 * size),
        "peak_bytes": 3 * size,
        "on_front": on_front,
        "as_good": ["middle"] if name == "beaten" else [],
        "misses": ["takes 14.0 ms"] if us > 13_000 else [],
        "published": None,
        "preparation": "norm=tf",
        "parent": None,
        "recipe": "",
        "is_integer": False,
        "fits": us <= 13_000,
        "notes": [],
    }


def published(name: str, value: float, us: float, size: int) -> Json:
    told = {"value": value, "source": "Howard et al. 2017, on ImageNet"}
    return {**row(name, value, us, size, False), "value": None, "published": told}


def summary(*more: Json) -> Json:
    return {
        "schema": 1,
        "version": "0.1.0",
        "command": "litesmith choose *.tflite --data val --max-latency 13ms",
        "state": "done",
        "request": {
            "goal": "accuracy",
            "limits": ["at most 13.0 ms"],
            "ceilings": {"latency": 13_000.0},
            "min_accuracy": None,
            "target": "cpu:1",
        },
        "basis": "measured",
        "data": {"source": "val", "judged": 400, "calibration": 100},
        "candidates": [*(row(*one) for one in MODELS), *more],
        "front": ["small", "middle", "large"],
        "pick": "middle",
        "pick_file": "middle.tflite",
        "nearest": None,
        "reason": "middle: the most accurate of the 3 under 13.0 ms; large is 3.00 pt better but "
        "takes 14.0 ms",
        "notes": [],
        "warnings": [],
        "environment": {"cpu": "a CPU", "cores": 2},
        "seconds": 61.0,
    }


def write_folder(folder: Path, told: Mapping[str, object] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    shown = summary() if told is None else told
    (folder / "choose.json").write_text(json.dumps(shown))
    return folder
