"""What the source itself gives for some inputs, run in a process of its own.

    python -m litesmith.conversion.judge SOURCE.onnx inputs.npz outputs.npz [NAME …]

The names are further values to tell, beside the outputs. onnxruntime judges where it is installed
and knows the file's version and operators, else the reference implementation of the onnx package.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from litesmith.errors import CannotRun
from litesmith.ir.types import Array
from litesmith.operating_system import limit_child, peak_bytes
from litesmith.phrases import phrase
from litesmith.run.core.child_process import call_seconds

# The packages that can run an .onnx file, the one to be believed most first.
JUDGES = {"onnxruntime": "onnxruntime", "onnx": "onnx"}


_LONGEST = 240  # characters of a reason: onnxruntime's begin with the place in its own source


class Judged(NamedTuple):
    """The outputs of a source: who computed them, and the memory that took."""

    judge: str
    values: dict[str, Array]
    bytes: int


def find_judge() -> str:
    """The package that runs a source here first; "" where there is none."""
    return next(iter(_installed()), "")


def _installed() -> list[str]:
    return [name for name, module in JUDGES.items() if find_spec(module)]


class OnnxJudge:
    """Runs an .onnx file in children.

    name   who ran it last, or will be asked first; "" where nobody can be
    bytes  the most memory that a child took; 0 before the first
    """

    def __init__(self, source: Path) -> None:
        self.source, self.name, self.bytes = source, find_judge(), 0

    def __call__(self, inputs: Mapping[str, Array], more: Sequence[str]) -> dict[str, Array]:
        found = judge_onnx(self.source, inputs, more)
        self.name, self.bytes = found.judge, max(self.bytes, found.bytes)
        return found.values


def judge_onnx(source: Path, inputs: Mapping[str, Array], more: Sequence[str] = ()) -> Judged:
    """The outputs of an .onnx file by their names, and further values."""
    with TemporaryDirectory() as folder:
        given, found = Path(folder) / "inputs.npz", Path(folder) / "outputs.npz"
        _save(given, inputs.values())
        # -P: modules come from where the package is, not from the folder the user happens to be in.
        words = [sys.executable, "-P", "-m", __name__, str(source), str(given), str(found)]
        request = json.dumps({"inputs": list(inputs), "more": list(more)})
        try:
            done = subprocess.run(
                words,
                input=request,
                capture_output=True,
                text=True,
                timeout=call_seconds(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CannotRun(
                "{source}: took over {seconds:g} s in {judges}, and was stopped; --no-check "
                "converts it unproven",
                source,
                call_seconds(),
                ", ".join(_installed()),
            ) from None
        if done.returncode or not found.is_file():
            why = (done.stderr.strip().splitlines() or [phrase("no reason given")])[-1]
            raise CannotRun(
                "{source} does not run in {judges}: {why}; --no-check converts it unproven",
                source,
                ", ".join(_installed()),
                shorten(why, _LONGEST),
            )
        told = json.loads(done.stdout.splitlines()[-1])
        with np.load(found) as arrays:
            values = {name: arrays[f"_{i}"] for i, name in enumerate(told["names"])}
        return Judged(told["judge"], values, int(told["bytes"]))


def _save(place: Path, arrays: Iterable[Array]) -> None:
    numbered: Any = {f"_{i}": array for i, array in enumerate(arrays)}
    np.savez(place, **numbered)


def _main() -> None:
    limit_child()
    source, given, found = sys.argv[1:4]
    request = json.load(sys.stdin)
    with np.load(given) as arrays:
        inputs = {name: arrays[f"_{i}"] for i, name in enumerate(request["inputs"])}
    judge, names, values = _first_answer(source, inputs, request["more"])
    _save(Path(found), values)
    print(json.dumps({"judge": judge, "names": names, "bytes": peak_bytes() or 0}))


def _first_answer(source: str, inputs: dict[str, Array], more: Sequence[str]) -> Any:
    """What the first judge that can run the source says. An older onnxruntime refuses files, and
    operators, that are newer than itself."""
    judges = _installed()
    for judge in judges:
        try:
            return judge, *_RUN[judge](source, inputs, more)
        except Exception:
            if judge == judges[-1]:
                raise
    raise AssertionError("nobody is asked where nobody is installed")


def _with_outputs(source: str, more: Sequence[str]) -> Any:
    """The model with further outputs, as bytes; its path where there are none."""
    if not more:
        return source
    onnx: Any = import_module("onnx")
    model = onnx.load(source)
    known = {value.name for value in model.graph.output}
    for name in more:
        if name not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    return model.SerializeToString()


def _onnxruntime(source: str, inputs: dict[str, Array], more: Sequence[str]) -> Any:
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        _with_outputs(source, more), options, providers=["CPUExecutionProvider"]
    )
    types = {"tensor(float16)": np.float16}
    fed = {
        one.name: inputs[one.name].astype(types.get(one.type, inputs[one.name].dtype))
        for one in session.get_inputs()
        if one.name in inputs
    }
    names = [one.name for one in session.get_outputs()]
    return names, [np.asarray(value) for value in session.run(None, fed)]


def _reference(source: str, inputs: dict[str, Array], more: Sequence[str]) -> Any:
    onnx: Any = import_module("onnx")
    reference: Any = import_module("onnx.reference")
    changed = _with_outputs(source, more)
    model = onnx.load(source) if changed == source else onnx.load_from_string(changed)
    wanted = [value.name for value in model.graph.output]
    return wanted, [np.asarray(v) for v in reference.ReferenceEvaluator(model).run(wanted, inputs)]


_RUN = {"onnxruntime": _onnxruntime, "onnx": _reference}


if __name__ == "__main__":
    _main()
