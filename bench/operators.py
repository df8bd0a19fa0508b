"""Layers in kernels of ours beside the runtime's own: int16 data with int8 weights; sparse ones.

Products a nanosecond on one thread, all in turns, the best of many runs by the thread's own clock;
beside them the most that this machine can do. Bars:

* whole int16x8 models give LiteRT's bits, at least 12 times faster on one thread;
* MobileNet v1 with nine of ten blocks of its 1×1 layers pruned is at least 1.5 times faster than
  dense: what it takes dense, less its 1×1 layers, plus those in our kernels;
* a fully connected layer of 2048×2048, pruned so, is no slower than in the runtime's sparse form;
* sparse int8 layers have LiteRT's bits, and so has MobileNet v1 that was pruned so and made int8,
  which is at least 1.3 times faster.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

import numpy as np
from peak import peak_gmacs
from report import print_table, tell_figure, verdict_line
from stock import arguments, want_folder

import litesmith
from litesmith import Builder, Model, Quant, Session
from litesmith.anatomy.footprint import op_macs
from litesmith.kernels.programs.prepare_sparse import sparse_layer
from litesmith.kernels.programs.program import Program, address
from litesmith.kernels.programs.sparse_parts import break_even, gain
from litesmith.units import number_text, percent_text, rate_text, time_text
from tests.kernels.one_op import whole

FASTER, SPARSE_FASTER, INT8_FASTER, ZEROS = 12, 1.5, 1.3, 0.9
PRUNED = f"prune(sparsity={ZEROS}, block=1x4, tune=false) | quantize(to=int8)"
ROUNDS, LEAST_NS = 15, 3_000_000

# Kind, height and width, inputs, channels, window, stride; of MobileNet, ResNet, EfficientNet.
LAYERS = (
    ("CONV_2D", 224, 3, 32, 3, 2),
    ("CONV_2D", 112, 32, 64, 1, 1),
    ("CONV_2D", 56, 24, 144, 1, 1),
    ("CONV_2D", 28, 256, 256, 1, 1),
    ("CONV_2D", 14, 512, 512, 1, 1),
    ("CONV_2D", 7, 1024, 1024, 1, 1),
    ("CONV_2D", 32, 16, 16, 3, 1),
    ("CONV_2D", 28, 128, 128, 3, 1),
    ("DEPTHWISE_CONV_2D", 112, 32, 32, 3, 1),
    ("DEPTHWISE_CONV_2D", 14, 512, 512, 3, 1),
    ("DEPTHWISE_CONV_2D", 28, 240, 240, 5, 1),
    ("FULLY_CONNECTED", 1, 1024, 1000, 1, 1),
)
# The 1×1 layers of MobileNet v1: height and width, inputs, channels, how many of them.
POINTWISE = (
    (112, 32, 64, 1),
    (56, 64, 128, 1),
    (56, 128, 128, 1),
    (28, 128, 256, 1),
    (28, 256, 256, 1),
    (14, 256, 512, 1),
    (14, 512, 512, 5),
    (7, 512, 1024, 1),
    (7, 1024, 1024, 1),
)
MODELS = ("mobilenet_v1_1.0_224", "efficientnet_lite0_f32", "pretrainedResnet")

Clock = Callable[[], int]


def times_text(factor: float) -> str:
    return f"{number_text(round(factor, 2))} ×"


def best_ns(
    runs: Sequence[Callable[[], object]], clock: Clock = thread_time_ns, rounds: int = ROUNDS
) -> list[int]:
    """The shortest run of each, in turns; short ones run more often in their turn."""
    best = [10**15] * len(runs)
    for _ in range(rounds):
        for place, run in enumerate(runs):
            left = LEAST_NS
            while left > 0:
                began = clock()
                run()
                took = max(clock() - began, 1)
                best[place] = min(best[place], took)
                left -= took
    return best


def int16_layer(
    kind: str, size: int, inputs: int, channels: int, window: int, stride: int
) -> Model:
    """A layer with random weights."""
    rng = np.random.default_rng(0)
    shape = (channels, window, window, inputs)
    x_shape: tuple[int, ...] = (1, size, size, inputs)
    options: dict[str, int] = {"stride_h": stride, "stride_w": stride}
    axis = 0
    if kind == "DEPTHWISE_CONV_2D":
        shape, axis = (1, window, window, channels), 3
        options["depth_multiplier"] = 1
    elif kind == "FULLY_CONNECTED":
        shape, x_shape, options = (channels, inputs), (1, inputs), {}
    b = Builder()
    steps = np.full(channels, 0.01, np.float32)
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    w = b.const(weights, quant=Quant.of(steps, axis=axis))
    offsets = b.const(rng.integers(-(10**6), 10**6, channels), dtype="int64")
    x = b.input("x", x_shape, "int16", Quant.of(0.001))
    return b.model(b.op(kind, x, w, offsets, dtype="int16", quant=Quant.of(0.01), **options))


def opened(model: Model, scale: float, on: str = "cpu:1") -> tuple[Session, np.ndarray]:
    """A session of one thread with random inputs, and those inputs."""
    session = Session(model, on)
    (name,) = session.inputs
    array = session.inputs[name]
    array[...] = (np.random.default_rng(1).normal(0, scale, array.shape)).astype(array.dtype)
    return session, array


def int16_rows() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for layer in LAYERS:
        model = int16_layer(*layer)
        session, x = opened(model, 5000)
        program = whole(model.main)
        out = list(program.run([x]))
        peaks: list[float] = []
        theirs, ours, _ = best_ns(
            [
                session.run,
                lambda p=program, x=x, out=out: p.run([x], out),
                lambda peaks=peaks: peaks.append(peak_gmacs() or 0),
            ]
        )
        alone, both = best_ns(
            [
                lambda p=program, x=x, out=out: p.run([x], out),
                lambda p=program, x=x, out=out: p.run([x], out, threads=2),
            ],
            perf_counter_ns,
            rounds=4 * ROUNDS,  # both cores must be free at once
        )
        session.close()
        macs = op_macs(model.main.ops[0])
        kind, size, inputs, channels, window, _ = layer
        name = f"{kind} {size}×{size}×{inputs}→{channels} {window}×{window}"
        share = percent_text(macs / ours / max(peaks)) if max(peaks) else ""
        speeds = rate_text(macs / theirs), rate_text(macs / ours), rate_text(max(peaks))
        rows.append((name, *speeds, share, times_text(theirs / ours), times_text(alone / both)))
    return rows


def pruned_weights(inputs: int, channels: int) -> np.ndarray:
    """Without nine of ten blocks."""
    rng = np.random.default_rng(0)
    blocks = rng.normal(0, 1, (channels, inputs // 4, 4)) / np.sqrt(inputs)
    energy = np.square(blocks).sum(axis=2)
    blocks *= (energy > np.quantile(energy, ZEROS))[..., None]
    return blocks.astype(np.float32).reshape(channels, inputs)


def sparse_model(kind: str, rows: int, inputs: int, channels: int) -> Model:
    """A float layer of such weights."""
    weights, bias = pruned_weights(inputs, channels), np.ones(channels, "f4")
    b = Builder()
    if kind == "FULLY_CONNECTED":
        return b.model(b.op(kind, b.input("x", (rows, inputs)), weights, bias))
    x = b.input("x", (1, rows, rows, inputs))
    shaped = weights.reshape(channels, 1, 1, inputs)
    return b.model(b.op(kind, x, shaped, bias, stride_h=1, stride_w=1))


def sparse_int8_model(kind: str, rows: int, inputs: int, channels: int) -> Model:
    """The same of int8."""
    weights = pruned_weights(inputs, channels)
    steps = np.maximum(np.abs(weights).max(axis=1) / 127, 1e-6)
    codes = np.rint(weights / steps[:, None]).astype(np.int8)
    is_flat = kind == "FULLY_CONNECTED"
    b = Builder()
    x_shape = (rows, inputs) if is_flat else (1, rows, rows, inputs)
    x = b.input("x", x_shape, "int8", Quant.of(0.02, -3))
    shaped = codes if is_flat else codes.reshape(channels, 1, 1, inputs)
    w = b.const(shaped, "w", quant=Quant.of(steps, axis=0))
    offsets = b.const(np.full(channels, 100, np.int32), quant=Quant.of(0.02 * steps, axis=0))
    slides = {} if is_flat else {"stride_h": 1, "stride_w": 1}
    return b.model(b.op(kind, x, w, offsets, dtype="int8", quant=Quant.of(0.03, 5), **slides))


# Kind, height and width (or rows), inputs, channels.
INT8 = (
    *(("CONV_2D", size, inputs, channels) for size, inputs, channels, _ in POINTWISE[1:]),
    ("FULLY_CONNECTED", 1, 1024, 1024),
    ("FULLY_CONNECTED", 1, 2048, 2048),
    ("FULLY_CONNECTED", 8, 1024, 1024),
)


def sparse_int8_rows() -> tuple[list[tuple[str, ...]], list[str]]:
    """Products a nanosecond, zeros included, and the bars that were missed."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for layer in INT8:
        kind, size, inputs, channels = layer
        model = sparse_int8_model(*layer)
        session, x = opened(model, 40)
        program = Program((sparse_layer(model.main.ops[0]),), model.main.inputs, model.main.outputs)
        out = list(program.run([x]))
        session.run()
        same = np.array_equal(out[0], next(iter(session.outputs.values())))
        places, peaks = [address(x), address(out[0])], []
        dense, ours, _ = best_ns(
            [
                session.run,
                lambda p=program, places=places: p.run_at(places),
                lambda peaks=peaks: peaks.append(peak_gmacs("int8") or 0),
            ]
        )
        session.close()
        name = f"{kind} {size}×{inputs}→{channels}"
        if kind == "CONV_2D":
            name = f"{kind} {size}×{size}×{inputs}→{channels}"
        missed += [] if same else [f"{name}: other bits than LiteRT's"]
        place = (size if kind == "FULLY_CONNECTED" else size * size), inputs, channels
        macs, even = op_macs(model.main.ops[0]), break_even(*place, "int8")
        rows.append(
            (
                name,
                *map(rate_text, (macs / dense, macs / ours, max(peaks))),
                times_text(dense / ours),
                times_text(gain(*place, ZEROS, "int8")),
                "never" if even is None else percent_text(even),
                "the same" if same else "others",
            )
        )
    return rows, missed


def pruned_int8_row(path: Path) -> tuple[tuple[str, ...], list[str]]:
    """A model that our own tools pruned and made int8: LiteRT, and with kernels of ours."""
    model = litesmith.load(path)
    shape = model.main.inputs[0].shape
    data = np.random.default_rng(0).normal(0, 1, (4, *shape[1:])).astype(np.float32)
    pruned = litesmith.apply(model, PRUNED, data).model
    (stock, _), (ours, _) = opened(pruned, 1), opened(pruned, 1, "cpu:1:litesmith")
    stock.run()
    ours.run()
    first, second = (next(iter(session.outputs.values())) for session in (stock, ours))
    same = np.array_equal(first, second)
    times = best_ns([stock.run, ours.run])
    both = [opened(pruned, 1, target)[0] for target in ("cpu:2", "cpu:2:litesmith")]
    two = best_ns([session.run for session in both], perf_counter_ns)
    missed = [] if same else [f"pruned int8 {path.stem}: other bits than LiteRT's"]
    tell_figure("pruned int8", times[0] / times[1])
    if times[0] < INT8_FASTER * times[1]:
        missed.append(f"pruned int8 {path.stem}: {times_text(times[0] / times[1])} faster")
    texts = (time_text(ns / 1e3) for ns in times)
    factors = times_text(times[0] / times[1]), times_text(two[0] / two[1])
    taken = ours.note.partition(" on ")[0]
    return (path.stem, *texts, *factors, taken, "the same" if same else "others"), missed


def sparse_rows() -> tuple[list[tuple[str, ...]], float, float]:
    """Prints the table; returns the time of all 1×1 layers of MobileNet v1, dense and in our
    kernels, in ns."""
    rows: list[tuple[str, ...]] = []
    dense_ns = ours_ns = 0.0
    for size, inputs, channels, count in POINTWISE:
        model = sparse_model("CONV_2D", size, inputs, channels)
        session, x = opened(model, 1)
        program = Program((sparse_layer(model.main.ops[0]),), model.main.inputs, model.main.outputs)
        out = list(program.run([x]))
        session.run()
        (reference,) = session.outputs.values()
        apart = float(np.abs(out[0] - reference).max())
        dense, ours = best_ns([session.run, lambda p=program, x=x, out=out: p.run([x], out)])
        session.close()
        dense_ns, ours_ns = dense_ns + count * dense, ours_ns + count * ours
        place = size * size, inputs, channels
        even = break_even(*place)
        rows.append(
            (
                f"{count} × {size}×{size}×{inputs}→{channels}",
                time_text(dense / 1e3),
                time_text(ours / 1e3),
                times_text(dense / ours),
                times_text(gain(*place, ZEROS)),
                "never" if even is None else percent_text(even),
                f"{apart:.0e}",
            )
        )
    return rows, dense_ns, ours_ns


def connected_row() -> tuple[tuple[str, ...], bool]:
    """A fully connected layer: dense, in the runtime's sparse form, in ours."""
    model = sparse_model("FULLY_CONNECTED", 1, 2048, 2048)
    stored = litesmith.apply(model, "sparsify(least=0.5)").model
    (dense, x), (stock, _) = opened(model, 1), opened(stored, 1)
    program = Program((sparse_layer(model.main.ops[0]),), model.main.inputs, model.main.outputs)
    out = list(program.run([x]))
    times = best_ns([dense.run, stock.run, lambda: program.run([x], out)])
    row = ("FULLY_CONNECTED 2048×2048", *(time_text(ns / 1e3) for ns in times))
    return row, times[2] <= times[1]


def whole_row(path: Path) -> tuple[tuple[str, ...], list[str]]:
    """A model in int16x8: the runtime, int8 in XNNPACK, and one program of ours."""
    model = litesmith.load(path)
    shape = model.main.inputs[0].shape
    data = np.random.default_rng(0).normal(0, 1, (4, *shape[1:])).astype(np.float32)
    wide, narrow = (
        litesmith.apply(model, f"quantize(to={to})", data).model for to in ("int16x8", "int8")
    )
    (session, x), (int8, _) = opened(wide, 1), opened(narrow, 1)
    program = whole(wide.main)
    out = list(program.run([x]))
    session.run()
    same = np.array_equal(out[0], next(iter(session.outputs.values())))
    theirs, fast, ours = best_ns([session.run, int8.run, lambda: program.run([x], out)])
    missed = [] if same else [f"{path.stem}: other bits than LiteRT's"]
    if theirs < FASTER * ours:
        missed.append(f"{path.stem}: {times_text(theirs / ours)} faster than LiteRT")
    times = (time_text(ns / 1e3) for ns in (theirs, ours, fast))
    words = "the same" if same else "others"
    return (path.stem, *times, times_text(theirs / ours), times_text(ours / fast), words), missed


def main() -> int:
    folder = want_folder(arguments(__doc__).parse_args().models, "--models")
    head = ("int16x8 layer", "LiteRT", "ours", "most", "of it", "faster", "2 threads")
    print_table(head, int16_rows())
    missed: list[str] = []
    rows: list[tuple[str, ...]] = []
    for name in MODELS:
        row, lines = whole_row(folder / f"{name}.tflite")
        rows.append(row)
        missed += lines
    print_table(("int16x8 model", "LiteRT", "ours", "int8", "faster", "ours / int8", "bits"), rows)
    table, dense, ours = sparse_rows()
    print_table(("90 % zeros", "dense", "ours", "faster", "expected", "even at", "apart"), table)
    session, _ = opened(litesmith.load(folder / f"{MODELS[0]}.tflite"), 1)
    (total,) = best_ns([session.run])
    faster = total / (total - dense + ours)
    print(
        f"MobileNet v1: {time_text(total / 1e3)} dense, 1×1 layers {time_text(dense / 1e3)}; "
        f"in our kernels {time_text(ours / 1e3)}: {times_text(faster)} faster\n"
    )
    if faster < SPARSE_FASTER:
        missed.append(f"pruned MobileNet v1: {times_text(faster)} faster than dense")
    row, wins = connected_row()
    print_table(("90 % zeros", "dense", "stock sparse", "ours"), [row])
    if not wins:
        missed.append("a sparse 2048×2048 layer is slower than in the runtime's sparse form")
    table, lines = sparse_int8_rows()
    head = ("int8, 90 % zeros", "LiteRT", "ours", "most", "faster", "expected", "even at", "bits")
    print_table(head, table)
    missed += lines
    row, lines = pruned_int8_row(folder / f"{MODELS[0]}.tflite")
    head = ("int8, 90 % zeros", "LiteRT", "ours", "faster", "2 threads", "taken", "bits")
    print_table(head, [row])
    return verdict_line(missed + lines)


if __name__ == "__main__":
    sys.exit(main())
