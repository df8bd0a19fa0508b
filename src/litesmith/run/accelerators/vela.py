"""What Arm's Ethos-U makes of a model: Vela compiles it here, for an NPU that is not here.

The placement is measured: Vela really compiled the model. Cycles, time and memory are what Vela
estimates for its default system and memory mode. Its time is that of the NPU alone, so a model of
which some ops stay on the CPU has no latency here. Vela runs as a program of its own: it is native
code that may crash, and it prints.
"""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from litesmith.errors import BadInput, CannotRun
from litesmith.installing import install_command
from litesmith.ir.types import Model
from litesmith.operating_system import crash_name
from litesmith.phrases import phrase
from litesmith.run.core.child_process import run_program
from litesmith.run.core.placement import (
    ESTIMATED,
    MEASURED,
    Fact,
    Home,
    Placement,
    mark_ops,
    marks_of,
    refuse,
)
from litesmith.temporary import temporary_folder
from litesmith.tflite.file import save
from litesmith.tflite.read import read

PACKAGE = "ethos-u-vela"
ACCELERATORS = (
    "ethos-u55-32",
    "ethos-u55-64",
    "ethos-u55-128",
    "ethos-u55-256",
    "ethos-u65-256",
    "ethos-u65-512",
)
RECIPE = phrase("litesmith quantize MODEL --to int8 --io int8 --data DATA -o OUT.tflite")

_INTEGERS = ("int8", "uint8", "int16")  # of quantized values between ops
_SECONDS = 600.0
_COMMANDS = "ethos-u"  # the custom op that holds the NPU's commands in a compiled model
_WARNING = re.compile(r"^Warning \(supported operators\) operator: \w+, ofm: 'op(\d+)\.")
_COUNT = re.compile(r"^(CPU|NPU) operators = (\d+)", re.MULTILINE)
_TENSOR = re.compile(r" ?[('](?:op\d+\.\d+|in\d+)\w*[)']")


def vela_place(model: Model, accelerator: str = "ethos-u55-128") -> Placement:
    """The ops that Vela puts on the NPU, why not the others, and its estimates."""
    if accelerator not in ACCELERATORS:
        raise BadInput(
            "no accelerator {accelerator!r}; there are {accelerators}",
            accelerator,
            ", ".join(ACCELERATORS),
        )
    if find_spec("ethosu") is None:
        raise CannotRun("Vela is not installed; {install}", install_command("ethos"))
    with temporary_folder("litesmith-vela-") as folder:
        path = folder / "model.tflite"
        save(mark_ops(model), path)  # Vela speaks of ops by what they make
        told, failed = _compile(path, accelerator)
        if failed:
            return _refuse(accelerator, model, failed)
        # Not `load`: the NPU's scratch memory is read before it is written, which is no model.
        compiled = read(memoryview((folder / "model_vela.tflite").read_bytes()))
        facts = _facts(told, next(folder.glob("*_summary_*.csv")))
    homes = _homes(model, compiled, _reasons(told))
    pieces = sum(op.custom == _COMMANDS for op in compiled.main.ops)
    if not pieces:
        return _refuse(accelerator, model, _why_none(homes))
    whole = all(home.taken for home in homes)
    return Placement(
        accelerator,
        MEASURED,
        homes,
        pieces,
        latency_us=float(facts["npu_us"]) if whole else None,
        latency_how=ESTIMATED if whole else "",
        facts=facts,
    )


def _compile(path: Path, accelerator: str) -> tuple[str, str]:
    """Vela's output, and one line where it failed."""
    # -P: modules come from where Vela is, not from the folder the user happens to be in.
    command = [sys.executable, "-P", "-m", "ethosu.vela", os.fspath(path)]
    command += ["--output-dir", os.fspath(path.parent), "--accelerator-config", accelerator]
    child = run_program(command, _SECONDS, stderr=subprocess.STDOUT)
    if child is None:
        return "", phrase("Vela took over {seconds:g} s; it was stopped", _SECONDS)
    told = child.stdout.decode(errors="replace")
    return told, _failure(told, child.returncode) if child.returncode else ""


def _failure(told: str, status: int) -> str:
    """One line on why Vela gave no model."""
    if crash := crash_name(status):
        return phrase("Vela crashed on the model ({name}), which is a bug of Vela's", crash)
    lines = [line.strip(" -") for line in told.splitlines() if line.strip()]
    errors = [number for number, line in enumerate(lines) if "Error: " in line]
    if not errors:
        return phrase(
            "Vela does not compile it: {lines}",
            lines[-1] if lines else phrase("no reason is given"),
        )
    cause, *details = lines[errors[-1] :][:2]  # what is wrong, and with luck the rule behind it
    said = ": ".join([cause.rpartition("Error: ")[2].rstrip("."), *details])
    return phrase("Vela does not compile it: {sub}", _TENSOR.sub("", said))


def _reasons(told: str) -> dict[int, str]:
    """Why ops stay on the CPU, in Vela's words, by the number of the op."""
    reasons: dict[int, str] = {}
    place = -1
    for line in told.splitlines():
        warning = _WARNING.match(line)
        if warning:
            place = int(warning[1])
        elif place >= 0 and line.startswith("Reason: "):
            reasons.setdefault(place, _plain(line.removeprefix("Reason: ")))
            place = -1
    return reasons


def _plain(reason: str) -> str:
    """A reason without tensors: the op is known, and equal reasons must read alike."""
    return f"Vela: {' '.join(_TENSOR.sub('', reason).split()).rstrip('.')}"


def _homes(model: Model, compiled: Model, reasons: Mapping[int, str]) -> tuple[Home, ...]:
    """The home of each op. An op that is still in the compiled model stays on the CPU; one that is
    not may be gone for good, such as the computation of known shapes."""
    left = marks_of(op for op in compiled.main.ops if op.custom != _COMMANDS)
    homes: list[Home] = []
    for place, op in enumerate(model.main.ops):
        reason = reasons.get(place, "")
        if place in left or not op.outputs:
            why = reason or phrase("Vela left it as it was, without a reason")
            homes.append(Home(place, op.kind, taken=False, why=why))
        else:
            why = (
                phrase("the compiled model does without it")
                if reason
                else phrase("Vela put it on the NPU")
            )
            homes.append(Home(place, op.kind, taken=True, why=why))
    return tuple(homes)


def _refuse(accelerator: str, model: Model, why: str) -> Placement:
    """A model of floats needs int8 first, whatever Vela says of it."""
    floats = _why_float(model)
    return replace(refuse(accelerator, MEASURED, model, floats or why), needs_int8=bool(floats))


def _why_float(model: Model) -> str:
    """The way out for a model that computes with floats throughout; "" for another."""
    computed = [t for op in model.main.ops for t in op.outputs]
    floats = sorted({t.dtype for t in computed if t.dtype.startswith("float")})
    if not floats or any(t.quant is not None and t.dtype in _INTEGERS for t in computed):
        return ""
    return phrase(
        "Ethos-U computes with integers, this model with {floats}; make it int8: {recipe}",
        floats[0],
        RECIPE,
    )


def _why_none(homes: tuple[Home, ...]) -> str:
    if not homes:
        return phrase("the model has no ops")
    reasons = sorted({f"{home.kind}: {home.why.removeprefix('Vela: ')}" for home in homes})
    return phrase("Vela takes none of its ops: {reasons}", "; ".join(reasons[:3]))


def _facts(told: str, summary: Path) -> Mapping[str, Fact]:
    """Vela's estimates, the system they are for, and its own count of ops: it takes some apart."""
    counts = {side.lower(): int(count) for side, count in _COUNT.findall(told)}
    with summary.open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    flash = float(row["on_chip_flash_memory_used"]) + float(row["off_chip_flash_memory_used"])
    return MappingProxyType(
        {
            "system": row["system_config"],
            "memory_mode": row["memory_mode"],
            "clock_hz": int(float(row["core_clock"])),
            "cycles": int(float(row["cycles_total"])),
            "npu_us": float(row["inference_time"]) * 1e6,
            "npu_operators": counts["npu"],
            "cpu_operators": counts["cpu"],
            "sram_bytes": round(float(row["sram_memory_used"]) * 1024),
            "dram_bytes": round(float(row["dram_memory_used"]) * 1024),
            "flash_bytes": round(flash * 1024),
        }
    )
