"""The source's own outputs for some inputs, computed in a process of its own.

python -m litesmith.conversion.onnx_runner SOURCE.onnx inputs.npz outputs.npz [NAME …]

The names are further values to return, beside the outputs. onnxruntime computes them where it is
installed and knows the file's version and operators, otherwise the reference implementation of the
onnx package.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

import numpy as np

from litesmith.errors import CannotRun
from litesmith.ir.types import Array
from litesmith.operating_system import limit_child, peak_bytes
from litesmith.phrases import phrase
from litesmith.run.core.child_process import call_seconds
from litesmith.temporary import temporary_folder

# The packages that can run an .onnx file, the one to be believed most first.
JUDGES = {"onnxruntime": "onnxruntime", "onnx": "onnx"}


Samples = Sequence[Mapping[str, Array]]

_LONGEST = 240  # characters of a reason: onnxruntime's begin with the place in its own source


class OnnxAnswers(NamedTuple):
    """The outputs of a source for each of some inputs, the runtime that computed them, and its
    memory."""

    judge: str
    values: list[dict[str, Array]]
    bytes: int


def find_judge() -> str:
    """The package that runs a source here first; "" where there is none."""
    return next(iter(_installed()), "")


def _installed() -> list[str]:
    return [name for name, module in JUDGES.items() if find_spec(module)]


class OnnxJudge:
    """Runs an .onnx file in child processes.

    name   the runtime that ran it last, or will be asked first; "" where there is none
    bytes  the most memory that a child used; 0 before the first run
    """

    def __init__(self, source: Path) -> None:
        self.source, self.name, self.bytes = source, find_judge(), 0

    def __call__(self, samples: Samples, more: Sequence[str]) -> list[dict[str, Array]]:
        found = judge_onnx(self.source, samples, more)
        self.name, self.bytes = found.judge, max(self.bytes, found.bytes)
        return found.values


def judge_onnx(source: Path, samples: Samples, more: Sequence[str] = ()) -> OnnxAnswers:
    """The outputs of an .onnx file by their names for each of some inputs, and further values."""
    with temporary_folder() as folder:
        given, found = folder / "inputs.npz", folder / "outputs.npz"
        _save(given, [array for inputs in samples for array in inputs.values()])
        # -P: modules come from where the package is, not from the folder the user happens to be in.
        words = [sys.executable, "-P", "-m", __name__, str(source), str(given), str(found)]
        request = json.dumps({"inputs": [list(one) for one in samples], "more": list(more)})
        try:
            done = subprocess.run(
                words,
                input=request,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
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
        values = _by_name(found, [told["names"]] * len(samples))
        return OnnxAnswers(told["judge"], values, int(told["bytes"]))


def _by_name(place: Path, names: Sequence[Sequence[str]]) -> list[dict[str, Array]]:
    """The arrays of a file, one after another, under the names of each sample."""
    with np.load(place) as arrays:
        each = iter(arrays[f"_{i}"] for i in range(sum(map(len, names))))
        return [{name: next(each) for name in own} for own in names]


def _save(place: Path, arrays: Iterable[Array]) -> None:
    numbered: Any = {f"_{i}": array for i, array in enumerate(arrays)}
    np.savez(place, **numbered)


def _main() -> None:
    limit_child()
    source, given, found = sys.argv[1:4]
    request = json.load(sys.stdin)
    samples = _by_name(Path(given), request["inputs"])
    judge, names, values = _first_answer(source, samples, request["more"])
    _save(Path(found), [array for one in values for array in one])
    print(json.dumps({"judge": judge, "names": names, "bytes": peak_bytes() or 0}))


def _first_answer(source: str, samples: Samples, more: Sequence[str]) -> Any:
    """What the first judge that can run the source says. An older onnxruntime refuses files, and
    operators, that are newer than itself."""
    judges = _installed()
    for judge in judges:
        try:
            return judge, *_RUN[judge](source, samples, more)
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


def _onnxruntime(source: str, samples: Samples, more: Sequence[str]) -> Any:
    onnxruntime: Any = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        _with_outputs(source, more), options, providers=["CPUExecutionProvider"]
    )
    types = {one.name: one.type for one in session.get_inputs()}
    halves = {name for name, kind in types.items() if kind == "tensor(float16)"}
    names = [one.name for one in session.get_outputs()]
    made: list[list[Array]] = []
    for inputs in samples:
        fed = {
            name: array.astype(np.float16) if name in halves else array
            for name, array in inputs.items()
            if name in types
        }
        made.append([np.asarray(value) for value in session.run(None, fed)])
    return names, made


def _reference(source: str, samples: Samples, more: Sequence[str]) -> Any:
    onnx: Any = import_module("onnx")
    reference: Any = import_module("onnx.reference")
    changed = _with_outputs(source, more)
    model = onnx.load(source) if changed == source else onnx.load_from_string(changed)
    wanted = [value.name for value in model.graph.output]
    types = {
        value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        for value in model.graph.input
    }
    evaluator, made = reference.ReferenceEvaluator(model), list[list[Array]]()
    for inputs in samples:
        fed = {n: array.astype(types[n]) for n, array in inputs.items() if n in types}
        made.append([_plain(value) for value in evaluator.run(wanted, fed)])
    return wanted, made


def _plain(value: Any) -> Array:
    """The value in one of numpy's own types."""
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


_RUN = {"onnxruntime": _onnxruntime, "onnx": _reference}


if __name__ == "__main__":
    _main()
