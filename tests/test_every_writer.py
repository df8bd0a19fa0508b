"""Every file that is written is whole or as it was before: on a full or broken disk, and when
killed.

The disk is full at a given byte of any file (RLIMIT_FSIZE): a write fails there, or the system
kills the process in the middle of it. It is broken: the system refuses every write (a filter of
system calls answers with EIO). Or it is really full: a disk in memory with a few bytes left.
"""

import ast
import json
import os
import shutil
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

import litesmith
from litesmith import Builder
from litesmith.cli.guard import can_guard
from litesmith.tflite.file import load, save
from tests.broken_disk import CAN_BREAK
from tests.forked import CAN_FORK, forked
from tests.zoo import noise

pytestmark = pytest.mark.skipif(not (CAN_FORK and can_guard()), reason="needs Linux")

MODEL, DATA, FOLDER = "model.tflite", "data.npz", "folder"
OTHER, LABELLED, SOURCE = "other.tflite", "labelled.npz", "net.onnx"
BASELINE, TUNED = "baseline.json", "tuned"  # made before
OLD = Path(__file__).parent / "fixtures" / "version_0_1"

# A command in its guarded child, whose files end at a byte; what it says goes through a pipe, which
# has no such end.
PROGRAM = """\
import os, resource, signal, sys
from litesmith.cli import main
from litesmith.cli.guard import run_guarded

full, how = int(sys.argv.pop(1)), sys.argv.pop(1)
sys.dont_write_bytecode = True  # else the fault would cut those files short, for all who come later

def work():
    if how == "break":
        import tests.broken_disk
        tests.broken_disk.refuse_writes()
    elif how != "fill":
        resource.setrlimit(resource.RLIMIT_FSIZE, (full, full))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if how == "kill" else signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return main._run()

(told, said), stderr, guard = os.pipe(), os.dup(2), os.getpid()
os.dup2(said, 2)
status = run_guarded(work, main._fail)
if os.getpid() != guard:
    sys.exit(status)
os.dup2(stderr, 2)
os.close(said)
with open(told) as text:
    sys.stderr.write(text.read())
sys.exit(status)
"""

COMMAND = "from litesmith.cli.main import main; main()"

# Every command that writes: what is typed, and what it writes.
WRITERS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "apply": (("apply", MODEL, "cleanup", "-o", "out.tflite"), ("out.tflite",)),
    "quantize": (("quantize", MODEL, "--data", DATA, "--trust-data", "-o", "out.tflite"),
                 ("out.tflite",)),
    "prune": (("prune", MODEL, "--sparsity", "0.5", "--no-tune", "-o", "out.tflite"),
              ("out.tflite",)),
    "cluster": (("cluster", MODEL, "-k", "8", "--no-tune", "-o", "out.tflite"), ("out.tflite",)),
    "qat": (("qat", MODEL, "--data", DATA, "--trust-data", "--samples", "16", "--epochs", "1", "-o",
             "out.tflite"), ("out.tflite",)),
    "retrain": (("retrain", MODEL, "--data", LABELLED, "--epochs", "1", "-o", "out.tflite",
                 "--evidence", FOLDER), ("out.tflite",)),
    "catalogue": (("catalogue", "ds_cnn", "-o", "out.tflite"), ("out.tflite",)),
    "trace": (("profile", MODEL, "--runs", "2", "--trace", "out.json"), ("out.json",)),
    "overlay": (("profile", MODEL, "--runs", "2", "--overlay", "out.json"), ("out.json",)),
    "csv": (("bench", MODEL, "--runs", "2", "--csv", "out.csv"), ("out.csv",)),
    "log": (("bench", MODEL, "--runs", "2", "--log", "out.jsonl"), ("out.jsonl",)),
    "bench -o": (("bench", MODEL, "--runs", "1", "--on", "all", "-o", FOLDER), ()),
    "bundle": (("doctor", MODEL, "--bundle", "out.zip", "--seconds", "0.05"), ("out.zip",)),
    "baseline": (("gate", "out.json", MODEL, "--update", "--seconds", "0.3"), ("out.json",)),
    "gate": (("gate", BASELINE, MODEL, "--seconds", "0.3", "--markdown", "out.md", "--junit",
              "out.xml"), ("out.md", "out.xml")),
    "report": (("report", TUNED, "-o", "out.html"), ("out.html",)),
    "report --markdown": (("report", TUNED, "--markdown", "-o", "out.md"), ("out.md",)),
    "demo": (("demo", "-o", FOLDER, "--runs", "1"), ()),
    "tune": (("tune", MODEL, "--data", DATA, "--min-snr", "1dB", "--runs", "1", "--trust-data",
              "-o", FOLDER), ()),
    "choose": (("choose", MODEL, OTHER, "--seconds", "0.2", "-o", FOLDER), ()),
    "convert": (("convert", SOURCE, "--no-check", "-o", "out.tflite"), ("out.tflite",)),
    "view": (("view", MODEL, "--predict", "-o", "out.html"), ("out.html",)),
    "export": (("export", MODEL, "--c", FOLDER), ()),
    "compare --page": (("compare", MODEL, OTHER, "--seconds", "0.05", "--page", "out.html"),
                       ("out.html",)),
    "doctor --page": (("doctor", MODEL, "--seconds", "0.05", "--page", "out.html"), ("out.html",)),
    "gate -o": (("gate", BASELINE, MODEL, "--seconds", "0.3", "-o", FOLDER), ()),
}  # fmt: skip
TRAINS = ("qat", "retrain")
SLOW = ("compare --page",)  # which is written as doctor's is

# What is wrong, and the bytes at which the disk is full: before anything is written, and in the
# middle of something. Each writer meets one of each group by default.
FAULTS = (("fail", 0), ("fail", 700)), (("kill", 700), ("kill", 0)), (("break", 0), ("fill", 0))
ROWS = [
    pytest.param(
        name,
        *fault,
        marks=() if number % 2 == place and name not in SLOW else pytest.mark.full,
    )
    for number, name in enumerate(WRITERS)
    for group in FAULTS
    for place, fault in enumerate(group)
]
_PAGE = 4096


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and data."""
    folder = tmp_path_factory.mktemp("inputs")
    b = Builder()
    x = b.op("CONV_2D", b.input("x", (1, 8, 8, 3)), noise(32, 3, 3, 3), noise(32))
    x = b.op("CONV_2D", x, noise(32, 3, 3, 32), noise(32))
    save(b.model(b.op("SOFTMAX", b.op("MEAN", x, [1, 2]))), folder / MODEL)
    shutil.copy(folder / MODEL, folder / OTHER)
    images = np.random.default_rng(0).random((400, 8, 8, 3), np.float32)
    np.savez(folder / DATA, x=images)
    classes = np.arange(60) % 2
    np.savez(folder / LABELLED, x=images[:60] + classes[:, None, None, None], y=classes)
    shutil.copytree(OLD / "tune", folder / TUNED)
    (folder / SOURCE).write_bytes(small_onnx())
    words = [BASELINE if word == "out.json" else word for word in WRITERS["baseline"][0]]
    done = forked(COMMAND, words, cwd=folder, variables=os.environ, seconds=60)
    assert done.returncode == 0, done.stderr
    return folder


def small_onnx() -> bytes:
    """A model to convert; nothing where there is no onnx, as then its row is passed over."""
    if find_spec("onnx") is None:
        return b""
    from onnx import helper, numpy_helper

    x, y = (helper.make_tensor_value_info(name, 1, [1, 32]) for name in "xy")
    weights = numpy_helper.from_array(noise(32, 32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "main", [x], [y], [weights])
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


def run(place: Path, work: Path, name: str, full: int, how: str) -> CompletedProcess[str]:
    """A command in a fresh folder, where what it is to write is there already."""
    words, targets = WRITERS[name]
    (work / "temporary").mkdir()
    shutil.copytree(place, work, dirs_exist_ok=True)
    for target in targets:
        (work / target).write_bytes(before(target))
    if how == "fill":
        fill_up(work)
    variables = {
        **os.environ,
        "TMPDIR": str(work / "temporary"),
        "LITESMITH_CACHE": "",
        "PYTHONDONTWRITEBYTECODE": "1",  # of its children
    }
    return forked(PROGRAM, [str(full), how, *words], cwd=work, variables=variables, seconds=40)


def before(target: str) -> bytes:
    """What is there: lines of an earlier run, or a baseline that is to be replaced."""
    return b"" if target.endswith(".jsonl") else b"{}" if target.endswith(".json") else b"old"


@pytest.mark.parametrize(("name", "how", "full"), ROWS)
def test_a_full_or_broken_disk_leaves_the_old_or_the_whole(
    place: Path, tmp_path: Path, name: str, how: str, full: int
) -> None:
    if name in TRAINS:
        pytest.importorskip("torch")
    if name == "convert":
        pytest.importorskip("onnx")
    if how == "break" and not CAN_BREAK:
        pytest.skip("the system's calls are not known by their numbers")
    if how == "fill":
        with small_disk(tmp_path / "disk") as disk:
            check(place, disk, name, full, how)
    else:
        check(place, tmp_path, name, full, how)


@contextmanager
def small_disk(place: Path) -> Generator[Path]:
    """A disk in memory."""
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=8m", "litesmith-test", str(place)]
    if os.geteuid() or subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill_up(place: Path) -> None:
    """Leaves a few pages of the disk that a folder is on."""
    free = shutil.disk_usage(place).free
    (place / "ballast").write_bytes(bytes(free - 3 * _PAGE))


def check(place: Path, tmp_path: Path, name: str, full: int, how: str) -> None:
    """Runs a command on a disk with a fault, and looks at what it has left."""
    done = run(place, tmp_path, name, full, how)
    aside = ("litesmith: warning: ", "litesmith: note: ")
    told = [line for line in done.stderr.splitlines() if line.startswith("litesmith: ")]
    lines = [line for line in told if not line.startswith(aside)]
    assert done.returncode in (0, 1, 2) and "Traceback" not in done.stderr, done.stderr
    assert how != "break" or done.returncode == 2, "nothing could be written"
    if done.returncode == 2:
        assert len(lines) == 1, done.stderr
        assert how == "kill" or names_a_place(tmp_path, lines[0], name), lines[0]
    for target in WRITERS[name][1]:
        content = (tmp_path / target).read_bytes()
        assert content == before(target) or is_whole(tmp_path / target), target
    for given in (MODEL, DATA):
        assert (tmp_path / given).read_bytes() == (place / given).read_bytes()
    assert not [*tmp_path.rglob(".litesmith-*"), *(tmp_path / "temporary").iterdir()]
    assert all(is_whole(path) for path in (tmp_path / FOLDER).rglob("*") if path.is_file())


def names_a_place(work: Path, line: str, name: str) -> bool:
    """True where a line names a file that was to be written, a picture beside it, or the temporary
    folder."""
    beside = [f"{Path(target).stem}-" for target in WRITERS[name][1]]
    places = (*WRITERS[name][1], *beside, FOLDER, str(work / "temporary"))
    return any(place in line for place in places)


def is_whole(path: Path) -> bool:
    ends = {".html": b"</html>", ".xml": b"</testsuites>", ".md": b"\n", ".svg": b"</svg>"}
    ends |= {".cc": b";", ".h": b"#endif"}
    if path.suffix in ends:
        return (
            path.read_bytes().rstrip(b" ").endswith((ends[path.suffix], ends[path.suffix] + b"\n"))
        )
    if path.suffix == ".tflite":
        return bool(load(path))
    if path.suffix == ".json":
        return bool(json.loads(path.read_bytes()))
    if path.suffix == ".jsonl":  # who reads it passes over a line that was cut short
        return all(json.loads(line) for line in path.read_bytes().split(b"\n")[:-1])
    return path.name == ".lock" or path.suffix in (".csv", ".zip", ".npz", ".txt")


# Every file that opens others for writing by itself: the row of WRITERS that shows what happens on
# a full disk, or why there is none. All others write through `write_whole`.
OPENERS = {
    "evidence/folder.py": "tune",  # its lock
    "evidence/log.py": "log",
    "front/gate.py": "a summary for GitHub: where it cannot be written, a warning says so",
    "native/sealed_file.py": "the user's key: without it nothing is kept between runs",
    "networks/pretrained_weights.py": "what pip is asked for, in a folder that goes away again",
    "numeric/arrays.py": "room that is taken before it is written to, or refused in one line",
    "operating_system.py": "a switch of the kernel's",
    "ray_engine/device_log.py": "a log that is only added to, on another machine",
    "run/devices/agent.py": "the program on a device, which tells by its answer",
    "run/guarded.py": "memory that two processes share, not a file with a name",
    "temporary.py": "quantize",
    "tflite/file.py": "apply",
    "unfinished.py": "apply",
}


def test_every_file_that_writes_is_known() -> None:
    root = Path(litesmith.__file__).parent
    found = [
        path for path in sorted(root.rglob("*.py")) if writes(ast.parse(path.read_text("utf-8")))
    ]
    assert {path.relative_to(root).as_posix() for path in found} == set(OPENERS)
    assert all(" " in told or told in WRITERS for told in OPENERS.values())


def writes(tree: ast.Module) -> bool:
    """True where a file opens another for writing by itself."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(_is_writing(ast.unparse(call.func), call) for call in calls)


def _is_writing(function: str, call: ast.Call) -> bool:
    words = [arg.value for arg in call.args if isinstance(arg, ast.Constant)]
    name = function.rpartition(".")[2]
    if function == "formatter.write_text":  # click's, which writes to the terminal
        return False
    if name in ("write_bytes", "write_text", "mkstemp", "NamedTemporaryFile", "copyfile"):
        return True
    if function == "os.open":
        return "O_CREAT" in ast.unparse(call) or "APPEND" in ast.unparse(call)
    modes = ("w", "a", "x", "wb", "ab", "xb", "w+b", "r+b", "w+")
    return name in ("open", "fdopen", "memmap") and any(word in modes for word in words)
