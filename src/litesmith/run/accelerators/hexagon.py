"""What Qualcomm's Hexagon makes of a model: LiteRT's partition tool with the user's QNN libraries.

The tool asks the libraries op by op, here, for a chip that is not here. It is native code that may
crash and prints much, so it runs as a program of its own. Its plugin is linked with libQnnLpai.so
too, of which it uses nothing here and which packages of the libraries often lack: another of the
user's libraries then answers to the name.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from litesmith.errors import BadInput, BadModel, CannotRun
from litesmith.ir.types import Model
from litesmith.operating_system import crash_name
from litesmith.phrases import phrase
from litesmith.run.accelerators.probes import hexagon, partition_tool, qnn_folders
from litesmith.run.core.child_process import run_program
from litesmith.run.core.placement import MEASURED, Home, Placement, mark_ops, marks_of, refuse
from litesmith.run.rules.hexagon import HEXAGON
from litesmith.run.rules.rule_row import place_by_rules
from litesmith.temporary import temporary_folder
from litesmith.tflite.file import save
from litesmith.tflite.read import read

DEFAULT_SOC = "SM8650"  # Snapdragon 8 Gen 3

_SECONDS = 300.0
_SOC = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_UNUSED, _STAND_IN = "libQnnLpai.so", "libQnnSystem.so"
_UNNAMED = phrase("Qualcomm's HTP library does not validate it")


def hexagon_place(model: Model, soc: str = DEFAULT_SOC) -> Placement:
    """Which ops go to the Hexagon of a chip, and why not the others."""
    if _SOC.fullmatch(soc) is None:
        raise BadInput("no chip {soc!r}; a chip is a name as {default_soc}", soc, DEFAULT_SOC)
    found = hexagon()
    if not found.usable:
        raise CannotRun("target hexagon: {why}; {how}", found.why, found.how)
    with temporary_folder("litesmith-hexagon-") as folder:
        path, out = folder / "model.tflite", folder / "out.tflite"
        save(mark_ops(model), path)
        failed = _partition(path, out, soc)
        if failed:
            return refuse("hexagon", MEASURED, model, failed)
        try:
            split = read(memoryview(out.read_bytes()))
        except BadModel as error:  # seen with sparse weights
            why = phrase("LiteRT's partition tool writes a damaged model ({error})", error)
            return refuse("hexagon", MEASURED, model, why)
    pieces = split.graphs[len(model.graphs) :]
    taken = marks_of(op for graph in pieces for op in graph.ops)
    placed = Placement("hexagon", MEASURED, _homes(model, taken), len(pieces), facts={"soc": soc})
    return replace(placed, refused=placed.main_reason) if placed.homes and not taken else placed


def _partition(path: Path, out: Path, soc: str) -> str:
    """Writes the model in pieces; one line where that failed."""
    tool = partition_tool()
    assert tool is not None
    package = tool.parents[1]
    command = [
        os.fspath(tool),
        "--cmd=partition",
        f"--model={path}",
        f"--libs={package / 'vendors' / 'qualcomm' / 'compiler'}",
        "--soc_manufacturer=Qualcomm",
        f"--soc_model={soc}",
        f"--o={out}",
    ]
    folders = [*qnn_folders(), *stand_in(path.parent, [*qnn_folders()]), os.fspath(package)]
    env = {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders)}
    child = run_program(command, _SECONDS, env=env)
    if child is None:
        return phrase("LiteRT's partition tool took over {seconds:g} s; it was stopped", _SECONDS)
    crash = crash_name(child.returncode)
    if crash:
        return phrase("LiteRT's partition tool crashed ({name})", crash)
    if child.returncode or not out.stat().st_size:
        return phrase(
            "LiteRT's partition tool failed for the chip {soc}, status {returncode}",
            soc,
            child.returncode,
        )
    return ""


def stand_in(folder: Path, libraries: Sequence[str]) -> list[str]:
    """The folder with a link for the library that is missing; none where it is not."""
    if any(Path(known, _UNUSED).exists() for known in libraries):
        return []
    found = (Path(known, _STAND_IN) for known in libraries)
    (folder / _UNUSED).symlink_to(next(path for path in found if path.is_file()).resolve())
    return [os.fspath(folder)]


def _homes(model: Model, taken: set[int]) -> tuple[Home, ...]:
    """The home of each op. The tool's own reasons cannot be told apart, so the reasons of the rules
    stand in."""
    ruled = place_by_rules("hexagon", HEXAGON, model)
    return tuple(
        Home(home.place, home.kind, True, phrase("Qualcomm's HTP library validates it"))
        if home.place in taken
        else home._replace(taken=False, why=_UNNAMED if home.taken else home.why)
        for home in ruled.homes
    )
