"""A folder as `gate -o` leaves it."""

from pathlib import Path

from litesmith.accuracy.paired import Estimate
from litesmith.evidence.folder import GATE, Folder
from litesmith.pages.gate_page import gate_summary
from litesmith.phrases import Quantity, phrase
from litesmith.regression.gate_checks import Check
from litesmith.regression.gate_rules import FINE, OFF, UNCLEAR, WORSE
from litesmith.regression.gate_run import Gated

CHECKS = (
    Check(
        "accuracy",
        "top-1",
        UNCLEAR,
        Quantity("0.5 pt"),
        Quantity("87.33 %"),
        Quantity("86.67 %"),
        Quantity("−0.67 pt [−2.50, +1.17]"),
        phrase("no data was given"),
        "litesmith compare a.tflite b.tflite",
        used=Estimate(1.33, -2.3, 5.0),
    ),
    Check(
        "latency",
        phrase("latency"),
        FINE,
        Quantity("5 %"),
        Quantity("112 µs"),
        Quantity("36.0 µs"),
        Quantity("−67.8 %"),
        used=Estimate(-13.6, -13.7, -13.5),
    ),
    Check(
        "size",
        phrase("file size"),
        WORSE,
        Quantity("2 %"),
        Quantity("318 KB"),
        Quantity("400 KB"),
        Quantity("+25.8 %"),
        phrase("no data was given"),
        "litesmith diff a.tflite b.tflite",
        used=Estimate(12.9, 12.9, 12.9),
    ),
    Check("memory", phrase("peak memory"), OFF, why=phrase("not asked for")),
)


def gated(*checks: Check) -> Gated:
    host = {"cpu": "AMD EPYC", "cores": 2, "memory_bytes": 25_300_000_000}
    return Gated("base.json", "model.tflite", "ab12", "cpu:1", checks, host)


def write_folder(folder: Path, *checks: Check) -> Path:
    kept = Folder(folder, GATE)
    folder.mkdir(parents=True, exist_ok=True)
    kept.write_summary(gate_summary(gated(*(checks or CHECKS)), "litesmith gate base.json"))
    return folder
