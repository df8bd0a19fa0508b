"""The parts that benches share: the folders of models and data, the stock runtime, the
comparison."""

import sys
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from litesmith.timing.latency import Rule, list_contenders, measure
from litesmith.timing.statistics import Ratio
from tests.runtime import random_input

ASSETS = Path(__file__).resolve().parents[2] / "shared" / "assets"
MISSING = 2  # the exit status where a folder does not exist


def arguments(purpose: str | None) -> ArgumentParser:
    """A parser with the options that all benches share."""
    parser = ArgumentParser(description=(purpose or "").partition("\n")[0])
    parser.add_argument("--models", type=Path, default=ASSETS / "models", help="folder of .tflite")
    return parser


def want_folder(folder: Path, option: str) -> Path:
    """Returns the folder; exits where it does not exist."""
    if not folder.is_dir():
        print(f"{folder}: no such folder; name it with {option}", file=sys.stderr)
        sys.exit(MISSING)
    return folder


def model_files(folder: Path) -> list[Path]:
    """Every .tflite of the folder; exits where there is none."""
    files = sorted(want_folder(folder, "--models").glob("*.tflite"))
    if not files:
        print(
            f"{folder}: holds no .tflite file; name another folder with --models", file=sys.stderr
        )
        sys.exit(MISSING)
    return files


def prepared(path: Path, seed: int = 0) -> Interpreter:
    """The model in stock LiteRT on one thread, mapped from its file, with seeded random inputs."""
    interpreter = Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    random = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        content = random_input(random, detail["shape"], detail["dtype"])
        interpreter.set_tensor(detail["index"], content)
    return interpreter


def compare(old: Path | bytes, new: Path | bytes, *, seconds: float, seed: int = 0) -> Ratio:
    """Time of new / time of old, from one interleaved run of this length."""
    rule = Rule(seconds=seconds, seed=seed)
    return measure(list_contenders([old, new]), rule, memory=False).comparisons[0].ratio


def outputs(path: Path, seed: int) -> list[np.ndarray]:
    """The outputs of the model for random inputs of this seed."""
    interpreter = prepared(path, seed)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
