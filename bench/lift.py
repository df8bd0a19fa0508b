"""A lifted model computes what LiteRT does, and a training step costs what torch by hand does.

Parity: the largest difference over the largest magnitude of each float output, on seeded random
inputs, beside LiteRT's own difference from the same graph in double precision. A model whose
weights are stored in integers is compared with its twin in float, since the runtime rounds data
for such weights as it runs. Bar: at most 1e-4, also where LiteRT itself is farther off.

Step: forward, loss, backward and SGD on one thread, in turns with the same network written by hand
in torch, in whichever of torch's two layouts is faster there. Bar: at most 1.3 times as long.

QAT: a step under the rounding of an int8 and of an int4 file, in turns with one of the float model,
as the training loop takes them. Bar: at most 2.5 times as long.
"""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
from ai_edge_litert.interpreter import Interpreter
from report import print_table, tell_figure, verdict_line
from stock import arguments, model_files
from torch import nn
from torch.nn import functional

import litesmith
from litesmith.calibration.context import RandomSamples, context_of
from litesmith.ir.edit import rewrite, with_graphs
from litesmith.passes.core.layers import real_values
from litesmith.passes.core.recipe import apply
from litesmith.tflite.write import to_bytes
from litesmith.timing.statistics import Ratio
from litesmith.training.ops.lift import Lift, constants_of
from litesmith.training.student import Student
from litesmith.units import ratio_text
from tests.runtime import random_input

SEEDS = (0, 1, 2)
MOST_ERROR, MOST_TIME, MOST_QAT = 1e-4, 1.3, 2.5


def is_float(model: litesmith.Model) -> bool:
    """True where what is computed is in floats, however the weights are stored."""
    graph = model.main
    computed = [*graph.inputs, *(t for op in graph.ops for t in op.outputs)]
    return all(tensor.quant is None for tensor in computed)


def in_float(model: litesmith.Model) -> litesmith.Model:
    """The twin whose stored weights are the floats they stand for."""
    graph = model.main
    stored = [t for t in graph.tensors if t.is_const and t.quant is not None]
    twins = {
        t: replace(t, dtype="float32", data=np.array(real_values(t), np.float32), quant=None)
        for t in stored
    }
    return (
        with_graphs(model, [rewrite(graph, tensors=twins), *model.graphs[1:]]) if twins else model
    )


def run(model: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def error(results: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> float:
    """The largest difference over the largest magnitude, of any output."""
    return max(
        float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(results, wanted, strict=True)
    )


def parity(file: Path) -> tuple[float, float, Lift]:
    """The lift's largest difference from LiteRT, LiteRT's from exact sums, the lift after a batch.

    Sums in double precision are as good as exact.
    """
    model = litesmith.load(file)
    lift, constants = Lift(model), constants_of(model)
    exact = {tensor: value.double() for tensor, value in constants.items()}
    content = to_bytes(in_float(model))
    errors: list[float] = []
    own: list[float] = []
    samples = [random_inputs(model, seed) for seed in SEEDS]
    with torch.no_grad():
        for inputs in samples:
            wanted = run(content, inputs)
            errors.append(error([value.numpy() for value in lift(inputs, constants)], wanted))
            own.append(error(wanted, [value.numpy() for value in lift(inputs, exact)]))
        lift([np.concatenate(parts) for parts in zip(*samples, strict=True)], constants)
    return max(errors), max(own), lift


def random_inputs(model: litesmith.Model, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [
        random_input(random, np.array(t.shape), np.dtype(t.dtype).type) for t in model.main.inputs
    ]


def parity_part(options: Namespace) -> list[str]:
    """Prints the table of parity; returns the bars that it missed."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for file in model_files(options.models):
        if not is_float(litesmith.load(file)):
            rows.append((file.name, "", "", "", "computes in integers"))
            continue
        try:
            found, own, lift = parity(file)
        except litesmith.CannotApply as problem:
            rows.append((file.name, "", "", "", str(problem)))
            continue
        batch = f"{len(lift.apart or ())} ops one by one"
        frozen = f"{len(lift.frozen)} ops frozen" if lift.frozen else ""
        rows.append((file.name, f"{found:.1e}", f"{own:.1e}", batch, frozen))
        if not found <= MOST_ERROR:
            missed.append(f"{file.name}: differs by {found:.1e}, LiteRT is off by {own:.1e}")
    print_table(
        ("model", "error", "LiteRT is off", "many samples", "why not, or what is fixed"), rows
    )
    return missed


class Convolution(nn.Module):
    """A convolution padded as the runtime pads: an odd pixel goes behind."""

    def __init__(self, inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1):
        super().__init__()
        self.odd = stride == 2 and size == 3
        padding = 0 if self.odd else size // 2
        self.conv = nn.Conv2d(inputs, outputs, size, stride, padding, groups=groups)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(functional.pad(x, (0, 1, 0, 1)) if self.odd else x)


class Block(nn.Module):
    """Two convolutions beside none, or beside one where the size changes."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.first = Convolution(inputs, outputs, stride=stride)
        self.second = Convolution(outputs, outputs)
        self.beside = Convolution(inputs, outputs, 1, stride) if stride == 2 else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.beside(x) + self.second(torch.relu(self.first(x))))


def resnet_8() -> nn.Module:
    blocks = Block(16, 16), Block(16, 32), Block(32, 64)
    head = nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10), nn.Softmax(-1)
    return nn.Sequential(Convolution(3, 16), nn.ReLU(), *blocks, *head)


def mobilenet_v1() -> nn.Module:
    """A quarter of the channels, 224 by 224."""
    parts: list[nn.Module] = [Convolution(3, 8, stride=2), nn.ReLU6()]
    widths = 8, 16, 32, 32, 64, 64, *(128,) * 6, 256, 256
    strides = 1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1
    for inputs, outputs, stride in zip(widths[:-1], widths[1:], strides, strict=True):
        parts += [Convolution(inputs, inputs, stride=stride, groups=inputs), nn.ReLU6()]
        parts += [Convolution(inputs, outputs, 1), nn.ReLU6()]
    head = nn.AvgPool2d(7), Convolution(256, 1001, 1), nn.Flatten(), nn.Softmax(-1)
    return nn.Sequential(*parts, *head)


# The file, the same network by hand, and the samples of a step.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "pretrainedResnet.tflite": (resnet_8, 64),
    "mobilenet_v1_0.25_224.tflite": (mobilenet_v1, 8),
}
Step = Callable[[], torch.Tensor]


def weights_in_order(model: litesmith.Model) -> list[torch.Tensor]:
    """Weights and biases as torch has them, in the order of the layers."""
    found: list[torch.Tensor] = []
    turned = {"CONV_2D": (0, 3, 1, 2), "DEPTHWISE_CONV_2D": (3, 0, 1, 2), "FULLY_CONNECTED": (0, 1)}
    constants = constants_of(model)
    for op in model.main.ops:
        if op.kind in turned:
            weight, bias = (constants[t] for t in op.inputs[1:] if t is not None)
            found += [weight.permute(turned[op.kind]), bias]
    return found


def stepped(forward: Step, weights: Sequence[torch.Tensor]) -> Callable[[], None]:
    """One training step: the samples are to be of the first class."""
    optimizer = torch.optim.SGD(weights, lr=1e-6)

    def step() -> None:
        optimizer.zero_grad()
        (-forward()[:, 0].clamp_min(1e-9).log().mean()).backward()
        optimizer.step()

    return step


def lifted(model: litesmith.Model, x: torch.Tensor) -> tuple[Step, list[torch.Tensor]]:
    lift = Lift(model)
    constants = {t: v.requires_grad_() for t, v in constants_of(model).items()}
    return lambda: lift([x], constants)[0], list(constants.values())


def by_hand(
    network: nn.Module, model: litesmith.Model, x: torch.Tensor, layout: torch.memory_format
) -> tuple[Step, list[torch.Tensor]]:
    with torch.no_grad():
        for own, weight in zip(network.parameters(), weights_in_order(model), strict=True):
            own.copy_(weight.reshape(own.shape))
    network = network.to(memory_format=layout)  # pyright: ignore[reportCallIssue]
    data = x.permute(0, 3, 1, 2).contiguous(memory_format=layout)
    return lambda: network(data), list(network.parameters())


def in_turns(steps: Sequence[Callable[[], None]], rounds: int) -> list[list[float]]:
    """Seconds of each step, once a round, in an order that turns; the first round warms up."""
    seconds: list[list[float]] = [[] for _ in steps]
    for number in range(rounds + 1):
        for which in range(len(steps))[:: 1 if number % 2 else -1]:
            start = perf_counter()
            steps[which]()
            if number:
                seconds[which].append(perf_counter() - start)
    return seconds


def step_part(options: Namespace) -> list[str]:
    """Prints the cost of a training step; returns the bars that it missed."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, (make, count) in NETWORKS.items():
        model = litesmith.load(options.models / name)
        x = torch.rand(count, *model.main.inputs[0].shape[1:]) * 2 - 1
        layouts = torch.channels_last, torch.contiguous_format
        ways = [lifted(model, x), *(by_hand(make(), model, x, layout) for layout in layouts)]
        first, *others = (forward() for forward, _ in ways)
        for other in others:
            assert torch.allclose(first, other, atol=1e-4), "not the same network"
        ours, last, plain = in_turns([stepped(*way) for way in ways], options.rounds)
        best, layout = (last, "last") if median(last) < median(plain) else (plain, "first")
        ratio = Ratio(tuple(a / b for a, b in zip(ours, best, strict=True)))
        times = [f"{1000 * median(taken):.1f} ms" for taken in (ours, best)]
        rows.append((name, str(count), *times, layout, ratio_text(ratio.value, *ratio.interval)))
        tell_figure(f"{name} step", ratio.value, *ratio.interval)
        if ratio.value > MOST_TIME:
            missed.append(f"{name}: a step takes {ratio.value:.2f} times as long")
    head = ("model", "batch", "step", "by hand", "its channels", "step / by hand, 95 %")
    print_table(head, rows)
    return missed


def trained(student: Student, x: torch.Tensor) -> tuple[Step, list[torch.Tensor]]:
    return lambda: functional.softmax(student([x])[0], -1), list(student.parameters)


def qat_part(options: Namespace) -> list[str]:
    """Prints what rounding adds to a step; returns the bars that it missed."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, (_, count) in NETWORKS.items():
        model = litesmith.load(options.models / name)
        x = torch.rand(count, *model.main.inputs[0].shape[1:]) * 2 - 1
        context = context_of(RandomSamples(model, 8))
        schemes = "int8", "w4a8"
        coded = [apply(model, f"quantize(to={to})", context).model for to in schemes]
        students = [Student(model), *(Student(one, origin=model) for one in coded)]
        ways = [stepped(*trained(student, x)) for student in students]
        plain, *others = in_turns(ways, options.rounds)
        for to, taken in zip(schemes, others, strict=True):
            ratio = Ratio(tuple(a / b for a, b in zip(taken, plain, strict=True)))
            times = [f"{1000 * median(one):.1f} ms" for one in (taken, plain)]
            rows.append((name, to, *times, ratio_text(ratio.value, *ratio.interval)))
            tell_figure(f"{name} {to}", ratio.value, *ratio.interval)
            if ratio.value > MOST_QAT:
                missed.append(f"{name} {to}: a step takes {ratio.value:.2f} times as long")
    print_table(("model", "scheme", "QAT step", "float step", "QAT / float, 95 %"), rows)
    return missed


PARTS = {"parity": parity_part, "step": step_part, "qat": qat_part}


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=21, help="of steps")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    missed = [line for part in options.only for line in PARTS[part](options)]
    return verdict_line(missed)


if __name__ == "__main__":
    sys.exit(main())
