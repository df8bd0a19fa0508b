"""Whether this machine has what a target needs; asks without importing or crashing on it."""

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, TypedDict

from litesmith.errors import CannotRun
from litesmith.installing import install_command
from litesmith.operating_system import THIS, is_linux_x86_64, is_mac
from litesmith.phrases import phrase
from litesmith.run.accelerators import metal, vulkan
from litesmith.run.core.child_process import run_program
from litesmith.run.litert.capi import installed_version
from litesmith.units import plain

_SECONDS = 20.0
_LEAST_MESA = 25  # the runtime's accelerator refuses the software driver of Mesa 22.3
_MESA = re.compile(r"Mesa (\d+)\.")

# The libraries that LiteRT's plugin for Qualcomm is linked with; without one of them it does not
# load.
_QNN = ("libQnnHtp.so", "libQnnIr.so", "libQnnSaver.so", "libQnnSystem.so")


class Device(TypedDict):
    """A GPU that Vulkan shows."""

    name: str
    driver: str
    is_software: bool


class Told(TypedDict, total=False):
    """The answer of the programs about Vulkan and Metal: the missing library, or the devices; None
    where there is no driver, or no device."""

    missing: str
    device: str | None
    devices: list[Device] | None


class Usable(NamedTuple):
    """Whether a target can be used here."""

    usable: bool
    why: str  # what makes it usable, or what is missing
    how: str  # what to install or do; "" where nothing is missing


def runtime() -> Usable:
    try:
        return Usable(True, f"LiteRT {installed_version()}", "")
    except CannotRun:
        return Usable(False, phrase("LiteRT is not installed"), "pip install ai-edge-litert")


def kernels() -> Usable:
    """Kernels of our own, which need the runtime for the ops that they leave."""
    found = runtime()
    return found if not found.usable else _package("numba", "numba", "jit")


def always() -> Usable:
    return Usable(True, phrase("part of this package"), "")


@cache
def gpu() -> Usable:
    """Asked here, because the runtime's answer to a missing GPU is a place in its source."""
    if is_mac():
        return judge_metal(ask_program(metal.__file__, *metal.PLACES))
    return judge_vulkan(ask_program(vulkan.__file__, THIS.vulkan))


def judge_metal(told: Told | None) -> Usable:
    """Judges whether Metal shows a GPU; None means that no answer came."""
    use_cpu = phrase("use cpu")
    if told is None:
        return Usable(False, phrase("Metal crashes or hangs when it is asked"), use_cpu)
    name = told.get("device")
    if name:
        return Usable(True, phrase("{name}, Metal", plain(name)), "")
    return Usable(False, phrase("Metal finds no GPU, as on most virtual machines"), use_cpu)


def judge_vulkan(told: Told | None) -> Usable:
    """Judges whether the runtime can use what Vulkan shows; None means that no answer came."""
    driver = phrase("install the GPU's Vulkan driver, or use cpu")
    if told is None:
        return Usable(False, phrase("a Vulkan driver crashes or hangs when it is asked"), driver)
    if "missing" in told:
        why = phrase("there is no Vulkan loader ({missing})", plain(told["missing"]))
        return Usable(False, why, phrase("install libvulkan1 and the GPU's driver"))
    found = told.get("devices")
    if found is None:
        return Usable(False, phrase("Vulkan finds no driver"), driver)
    refusals = [_refused(device) for device in found]
    usable = [device for device, why in zip(found, refusals, strict=True) if not why]
    if usable:
        return Usable(True, f"{plain(usable[0]['name'])}, {plain(usable[0]['driver'])}", "")
    how = phrase("install Mesa {least_mesa} or newer", _LEAST_MESA) if refusals else driver
    return Usable(False, next(iter(refusals), phrase("Vulkan finds no GPU")), how)


def _refused(device: Device) -> str:
    """Why the runtime does not use a device; "" where it does."""
    mesa = _MESA.search(device["driver"])
    if not device["is_software"] or mesa is None or int(mesa[1]) >= _LEAST_MESA:
        return ""
    driver = plain(device["driver"])
    return phrase(
        "there is only a software driver, {driver}, and LiteRT needs Mesa {least_mesa}",
        driver,
        _LEAST_MESA,
    )


def ask_program(program: str | os.PathLike[str], *words: str) -> Told | None:
    """The answer of a program about GPUs; None where it does not end well."""
    told = run_program([sys.executable, "-I", "-S", os.fspath(program), *words], _SECONDS)
    if told is None or told.returncode:
        return None
    with suppress(ValueError):
        return json.loads(told.stdout)
    return None


def openvino() -> Usable:
    return _package("openvino", "openvino", "openvino")


def micro() -> Usable:
    """TensorFlow Lite Micro's wheel, which is built for one platform."""
    if not is_linux_x86_64():
        why = phrase("TensorFlow Lite Micro has no wheel for this platform")
        return Usable(False, why, phrase("use Linux on x86_64"))
    return _package("tflite_micro", "tflite-micro", "micro")


def vela() -> Usable:
    return _package("ethosu", "ethos-u-vela", "ethos")


def _package(module: str, package: str, extra: str) -> Usable:
    with suppress(PackageNotFoundError, ValueError):
        if find_spec(module) is not None:
            return Usable(True, f"{package} {version(package)}", "")
    why = phrase("{package} is not installed", package)
    return Usable(False, why, install_command(extra))


def hexagon() -> Usable:
    """Qualcomm's libraries are the user's own: they may not be passed on."""
    if partition_tool() is None:
        why = phrase("LiteRT has no partition tool here")
        return Usable(False, why, phrase("use Linux on x86_64"))
    folders = [Path(folder) for folder in qnn_folders()]
    missing = [name for name in _QNN if not any((f / name).is_file() for f in folders)]
    if missing:
        why = phrase("no {missing} in QNN_SDK_ROOT or LD_LIBRARY_PATH", missing[0])
        return Usable(False, why, phrase("install Qualcomm's QNN SDK and set QNN_SDK_ROOT to it"))
    return Usable(True, phrase("Qualcomm's QNN libraries and LiteRT's partition tool"), "")


def partition_tool() -> Path | None:
    """LiteRT's program that partitions a model for an accelerator, in its wheel."""
    spec = find_spec("ai_edge_litert")
    folders = spec.submodule_search_locations if spec is not None else None
    tools = [Path(folder, "tools", "apply_plugin_main") for folder in folders or ()]
    return next((tool for tool in tools if tool.is_file()), None)


def qnn_folders() -> Iterator[str]:
    """The folders that the environment names for Qualcomm's libraries."""
    root = os.environ.get("QNN_SDK_ROOT", "")
    if root:
        yield os.path.join(root, "lib", "x86_64-linux-clang")
        yield root
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))


def edge_tpu() -> Usable:
    how = phrase("compile with Coral's edgetpu_compiler and run where the Edge TPU is")
    return Usable(False, phrase("no Edge TPU compiler can be run here"), how)


def nnapi() -> Usable:
    how = phrase("run on an Android phone, up to Android 14")
    return Usable(False, phrase("it is part of Android"), how)


def core_ml() -> Usable:
    how = phrase("run on an iPhone, from iOS 12 on")
    return Usable(False, phrase("its delegate is part of iOS apps"), how)
