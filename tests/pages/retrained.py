"""A folder that `retrain` could have left, with hostile names and many classes."""

import json
from pathlib import Path

HOSTILE = "<script>alert('&')</script> | `x` \x1b[2J"
CLASSES = 25


def write_folder(folder: Path) -> Path:
    (folder / "evidence").mkdir(parents=True)
    names = [HOSTILE, *(f"class {place}" for place in range(1, CLASSES))]
    matrix = [[8 * (a == b) + (a + 1 == b) for b in range(CLASSES)] for a in range(CLASSES)]
    share = {"value": 0.9, "low": 0.85, "high": 0.95}
    record = {
        "schema": 1,
        "model": HOSTILE,
        "digest": "ab12",
        "command": "litesmith retrain a.tflite --data d -o b.tflite",
        **share,
        "n": 224,
        "classes": names,
        "per_class": [{"class": name, "n": 9, **share} for name in names],
        "confusion": matrix,
        "head": [{"strength": 1.0, "loss": 0.5, "accuracy": 0.8}, {"strength": "x"}],
        "strength": 1.0,
        "notes": [HOSTILE, 3],
        "seconds": 12.5,
        "fine_tuned": {"is_kept": True, "told": HOSTILE, "head_alone": share},
    }
    mistakes = [
        {"name": HOSTILE, "true": HOSTILE, "said": "b", "confidence": 0.9, "thumbnail": "/9j/4A=="},
        {"name": "a", "said": "b", "thumbnail": '"><script>', "confidence": "high"},
    ]
    (folder / "retrain.json").write_text(json.dumps(record))
    (folder / "evidence" / "ab12.json").write_text(json.dumps({"mistakes": mistakes}))
    return folder
