"""`litesmith demo`: the whole job on a small model that is built on the spot."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from litesmith.cli import model as commands
from litesmith.cli.show import command, heading
from litesmith.errors import BadInput
from litesmith.ir.build import Builder
from litesmith.ir.types import Model, Tensor
from litesmith.measure.findings import TIDY
from litesmith.tflite.file import save


def demo(
    out: Annotated[
        Path, typer.Option("-o", "--output", help="The folder for the demo's files.")
    ] = Path("litesmith-demo"),
) -> None:
    """Build a small model, look into it, and write a cleaned-up copy."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{out}: cannot be made a folder ({error.strerror}); choose another -o"
        ) from None
    model, cleaned = out / "model.tflite", out / "cleaned.tflite"
    save(wasteful_model(), model)
    commands.inspect(model)
    heading("cleaned up")
    command(f'litesmith apply {model} "{TIDY}" -o {cleaned}')
    commands.apply(model, TIDY, cleaned)
    heading("next: your own model")
    command("litesmith inspect YOUR.tflite")


def wasteful_model() -> Model:
    """A small image classifier as a careless export leaves it: nothing fused, nothing folded."""
    random = np.random.default_rng(7)
    b = Builder()
    x = b.input("image", (1, 32, 32, 3))
    channels = 3
    for filters in (16, 32, 64):
        x = _careless_block(b, random, x, channels, filters)
        channels = filters
    x = b.op("MEAN", x, [1, 2])
    x = b.op("RESHAPE", x, [1, channels])
    weight = random.normal(0, 0.3, (10, channels)).astype(np.float32)
    x = b.op("FULLY_CONNECTED", x, weight, np.zeros(10, np.float32))
    return b.model(b.op("SOFTMAX", x, name="scores"), signature="serving_default")


def _careless_block(
    b: Builder, random: np.random.Generator, x: Tensor, channels: int, filters: int
) -> Tensor:
    """PAD, convolution, batch normalization in four pieces, and an activation, all apart."""
    size = x.shape[1]
    weight = random.normal(0, (2 / (9 * channels)) ** 0.5, (filters, 3, 3, channels))
    x = b.op("PAD", x, [[0, 0], [0, 1], [0, 1], [0, 0]])
    bias = np.zeros(filters, np.float32)
    x = b.op("CONV_2D", x, weight.astype(np.float32), bias, padding="VALID", stride_h=2, stride_w=2)
    x = b.op("MUL", x, random.uniform(0.5, 1.5, filters).astype(np.float32))
    x = b.op("ADD", x, random.normal(0, 0.1, filters).astype(np.float32))
    b.op("SHAPE", x)
    x = b.op("RESHAPE", x, [1, size // 2, size // 2, filters])
    return b.op("RELU6", x)
