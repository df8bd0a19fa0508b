"""ATen's layers: convolutions, products, pools, norms, attention, cells, images of another size."""

from collections.abc import Sequence
from math import prod, sqrt

import numpy as np

from litesmith.conversion.aten.call import Call, NotWritten, Ref, Row
from litesmith.conversion.core.source import Setting
from litesmith.ir.types import Array

# Convolutions and products


def convolution(call: Call) -> None:
    x, weight = call.ref("input"), call.ref("weight")
    count = weight.rank - 2
    stride, dilation = call.integers("stride", count), call.integers("dilation", count)
    settings: dict[str, Setting] = {"strides": stride, "dilations": dilation}
    settings["group"] = call.integer("groups", 1)
    settings["pads"] = _frame(call, weight, dilation)
    kind = "Conv"
    if call.flag("transposed") or "conv_transpose" in call.kind:
        kind, settings["output_padding"] = "ConvTranspose", call.integers("output_padding", count)
    inputs = [x.name, weight.name, *([call.name("bias")] if call.has("bias") else [])]
    if x.rank == weight.rank:
        call.end(kind, *inputs, **settings)
        return
    inputs[0] = call.step("Reshape", x.name, call.whole((1, *x.shape)))  # one sample alone
    call.end("Reshape", call.step(kind, *inputs, **settings), call.whole(call.shape))


def _frame(call: Call, weight: Ref, dilation: Sequence[int]) -> tuple[int, ...]:
    way = call.word("padding")
    if not way:
        return call.integers("padding", weight.rank - 2) * 2
    totals = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if way == "valid":
        totals = [0] * len(totals)
    return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))


def linear(call: Call) -> None:
    names = [call.name(n) for n in ("input", "weight", "bias")]
    call.end("litesmith.Linear", *names)


def product(second: str) -> Row:
    def row(call: Call) -> None:
        call.end("MatMul", call.name("self"), call.name(second))

    return row


def add_product(first: str, second: str) -> Row:
    """beta × a tensor + alpha × a product."""

    def row(call: Call) -> None:
        made = call.step("MatMul", call.name(first), call.name(second))
        start = call.name("self")
        for name in ("alpha", "beta"):
            factor = call.number(name, 1)
            if factor != 1:
                times = call.constant(factor, call.dtype)
                if name == "alpha":
                    made = call.step("Mul", made, times)
                else:
                    start = call.step("Mul", start, times)
        call.end("Add", made, start)

    return row


def attention(call: Call) -> None:
    """softmax(q kᵀ × scale + mask) v; the scale goes into q, which is smaller than q kᵀ."""
    q, k, v = (call.ref(n) for n in ("query", "key", "value"))
    scale = call.number("scale", 1 / sqrt(q.shape[-1]))
    names = [k.name, v.name]
    if call.flag("enable_gqa") and k.shape[-3] != q.shape[-3]:
        names = [_repeated(call, r, q.shape[-3]) for r in (k, v)]
    scaled = call.step("Mul", q.name, call.constant(scale, "float32"))
    scores = call.step("litesmith.MatMul", scaled, names[0], transB=1)
    mask = _mask(call, q, k)
    if mask:
        scores = call.step("Add", scores, mask)
    call.end("MatMul", call.step("Softmax", scores, axis=-1), names[1])


def _repeated(call: Call, ref: Ref, heads: int) -> str:
    """Heads that several queries share, one for each."""
    places = np.repeat(np.arange(ref.shape[-3]), heads // ref.shape[-3])
    return call.step("Gather", ref.name, call.whole(places.tolist()), axis=ref.rank - 3)


# The score of a masked place: far below any other, and finite, because 0 × inf is NaN.
_UNSEEN = -1e30


def _mask(call: Call, q: Ref, k: Ref) -> str:
    if call.flag("is_causal"):
        seen = np.tril(np.ones((q.shape[-2], k.shape[-2]), bool))
        return call.constant(np.where(seen, 0, _UNSEEN).astype(np.float32))
    if not call.has("attn_mask"):
        return ""
    mask = call.ref("attn_mask")
    if mask.dtype != "bool":
        low = call.constant(_UNSEEN, "float32")
        return call.step("Max", mask.name, low)
    ends = call.constant(0.0, "float32"), call.constant(_UNSEEN, "float32")
    return call.step("Where", mask.name, *ends)


# Norms


def _ones(call: Call, name: str, count: int, value: float = 1) -> str:
    return call.name(name) or call.constant(np.full(count, value, np.float32))


def batch_norm(call: Call) -> None:
    x = call.ref("input")
    count = x.shape[1]
    names = [
        _ones(call, name, count, value)
        for name, value in (("weight", 1), ("bias", 0), ("running_mean", 0), ("running_var", 1))
    ]
    fresh = call.flag("training") or not call.has("running_mean")
    first = call.output(0)
    first.end(
        "BatchNormalization",
        x.name,
        *names,
        epsilon=call.number("eps", 1e-5),
        training_mode=int(fresh),
    )


def instance_norm(call: Call) -> None:
    if call.has("running_mean") and not call.flag("use_input_stats"):
        batch_norm(call)
        return
    x = call.ref("input")
    scale, bias = _ones(call, "weight", x.shape[1]), _ones(call, "bias", x.shape[1], 0)
    call.end("InstanceNormalization", x.name, scale, bias, epsilon=call.number("eps", 1e-5))


def layer_norm(call: Call) -> None:
    count = len(call.integers("normalized_shape"))
    names = [call.name(n) for n in ("input", "weight", "bias")]
    first = call.output(0)
    epsilon = call.number("eps", 1e-5)
    first.end("LayerNormalization", *names, axis=-count, epsilon=epsilon)


def rms_norm(call: Call) -> None:
    count = len(call.integers("normalized_shape"))
    names = [call.name(n) for n in ("input", "weight")]
    epsilon = call.number("eps", float(np.finfo(np.float32).eps))
    call.end("RMSNormalization", *names, axis=-count, epsilon=epsilon)


def group_norm(call: Call) -> None:
    x = call.ref("input")
    groups = call.integer("num_groups", call.integer("group"))
    scale, bias = _ones(call, "weight", x.shape[1]), _ones(call, "bias", x.shape[1], 0)
    first = call.output(0)
    settings = {"num_groups": groups, "epsilon": call.number("eps", 1e-5)}
    first.end("GroupNormalization", x.name, scale, bias, **settings)


# Pools


def pool(kind: str, count: int) -> Row:
    def row(call: Call) -> None:
        kernel = call.integers("kernel_size", count)
        given = call.arguments.get("stride")
        strides = kernel if given is None or given == () else call.integers("stride", count)
        settings: dict[str, Setting] = {"kernel_shape": kernel, "strides": strides}
        settings["pads"] = (
            call.integers("padding", count) * 2 if call.has("padding") else (0,) * (2 * count)
        )
        settings["ceil_mode"] = call.integer("ceil_mode")
        if kind == "MaxPool" and call.has("dilation"):
            settings["dilations"] = call.integers("dilation", count)
        if kind == "AveragePool":
            settings["count_include_pad"] = call.integer("count_include_pad", 1)
        if len(call.outputs) > 1 and call.outputs[1]:
            _with_places(call, count, settings)
            return
        first = call.output(0)
        _as_batch(first, call, count, kind, settings)

    return row


def _with_places(call: Call, count: int, settings: dict[str, Setting]) -> None:
    """A pool that also returns the places of its maxima, which torch counts anew in each image."""
    x = call.ref("self")
    if x.rank != count + 2:
        raise NotWritten("the places of the largest values of one sample alone; give it a batch")
    image = call.constant(prod(x.shape[2:]), "int64")
    largest, places = call.steps("MaxPool", 2, x.name, **settings)
    call.output(0).end("Identity", largest)
    call.output(1).end("Mod", places, image)


def _as_batch(first: Call, call: Call, count: int, kind: str, settings: dict[str, Setting]) -> None:
    """A pool; one sample alone becomes a batch of one."""
    x = call.ref("self")
    factor = 1.0
    if call.has("divisor_override"):
        factor = prod(call.integers("kernel_size", count)) / call.number("divisor_override")
        settings["count_include_pad"] = 1
    if x.rank == count + 2 and factor == 1:
        first.end(kind, x.name, **settings)
        return
    batch = first.step(
        "Reshape", x.name, first.whole((prod(x.shape[: -count - 1]), *x.shape[-count - 1 :]))
    )
    made = first.step(kind, batch, **settings)
    if factor != 1:
        made = first.step("Mul", made, first.constant(factor, "float32"))
    first.end("Reshape", made, first.whole(first.shape))


def adaptive_average(call: Call) -> None:
    """Windows by the result's sizes: the mean, a pool, or a product along each axis."""
    x = call.ref("self")
    count = len(call.integers("output_size"))
    sizes, wanted = x.shape[-count:], call.shape[-count:]
    if all(w == 1 for w in wanted):
        axes = range(x.rank - count, x.rank)
        call.end("ReduceMean", x.name, call.whole(tuple(axes)), keepdims=1)
        return
    if all(s % w == 0 for s, w in zip(sizes, wanted, strict=True)) and x.rank == count + 2:
        kernel = tuple(s // w for s, w in zip(sizes, wanted, strict=True))
        call.end("AveragePool", x.name, kernel_shape=kernel, strides=kernel)
        return
    name = x.name
    for i, (size, want) in enumerate(zip(sizes, wanted, strict=True)):
        axis = x.rank - count + i
        order = [a for a in range(x.rank) if a != axis] + [axis]
        turned = call.step("Transpose", name, perm=tuple(order))
        made = call.step("MatMul", turned, call.constant(_shares(size, want).T))
        name = call.step("Transpose", made, perm=tuple(order.index(a) for a in range(x.rank)))
    call.end("Identity", name)


def _shares(size: int, wanted: int) -> Array:
    """The weight of each old value in each new one: shape (wanted, size)."""
    matrix = np.zeros((wanted, size), np.float32)
    for row in range(wanted):
        begin, end = row * size // wanted, -(-(row + 1) * size // wanted)
        matrix[row, begin:end] = 1 / (end - begin)
    return matrix


def adaptive_max(call: Call) -> None:
    """Windows by the result's sizes: a pool, or a slice for each place along each axis."""
    x = call.ref("self")
    count = len(call.integers("output_size"))
    sizes, wanted = x.shape[-count:], call.made[0].shape[-count:]
    if len(call.outputs) > 1 and call.outputs[1]:
        raise NotWritten("the places of the largest values, which LiteRT's pool does not tell")
    first = call.output(0)
    if not any(s % w for s, w in zip(sizes, wanted, strict=True)) and x.rank == count + 2:
        kernel = tuple(s // w for s, w in zip(sizes, wanted, strict=True))
        first.end("MaxPool", x.name, kernel_shape=kernel, strides=kernel)
        return
    name = x.name
    for i, (size, want) in enumerate(zip(sizes, wanted, strict=True)):
        axis = x.rank - count + i
        spans = [(row * size // want, -(-(row + 1) * size // want)) for row in range(want)]
        cuts = [first.step("Slice", name, *map(first.whole, ([b], [e], [axis]))) for b, e in spans]
        parts = [first.step("ReduceMax", cut, first.whole([axis]), keepdims=1) for cut in cuts]
        name = first.step("Concat", *parts, axis=axis)
    first.end("Identity", name)


# Images of another size


def resize(mode: str, exact: bool = False, smooth: bool = False) -> Row:
    def row(call: Call) -> None:
        x = call.ref("input" if "input" in call.arguments else "self")
        count = x.rank - 2
        scales = _scales(call, count)
        how = "pytorch_half_pixel" if mode != "nearest" or exact else "asymmetric"
        if mode != "nearest" and call.flag("align_corners"):
            how = "align_corners"
        settings: dict[str, Setting] = {"mode": mode, "coordinate_transformation_mode": how}
        settings["nearest_mode"] = "round_prefer_ceil" if exact else "floor"
        if exact:
            settings["coordinate_transformation_mode"] = "half_pixel"
        if mode == "cubic":
            settings["cubic_coeff_a"] = -0.5 if smooth else -0.75
        settings["antialias"] = settings["exclude_outside"] = int(smooth)
        if scales is None:
            sizes = call.whole(call.shape)
            call.end("Resize", x.name, "", "", sizes, **settings)
        else:
            call.end("Resize", x.name, "", np.array((1, 1, *scales)), **settings)

    return row


def grid_sample(call: Call) -> None:
    """Values of an image at places between its pixels."""
    modes, frames = ("linear", "nearest", "cubic"), ("zeros", "border", "reflection")
    call.end(
        "GridSample",
        call.name("input"),
        call.name("grid"),
        mode=modes[call.integer("interpolation_mode")],
        padding_mode=frames[call.integer("padding_mode")],
        align_corners=call.integer("align_corners"),
    )


def _scales(call: Call, count: int) -> tuple[float, ...] | None:
    """The factors that were asked for; None where sizes were."""
    given = call.arguments.get("scale_factors")
    if given is None:
        names = ("scales_h", "scales_w") if count == 2 else ("scales",)
        names = ("scales_d", "scales_h", "scales_w") if count == 3 else names
        given = tuple(call.arguments.get(n) for n in names)
    if not isinstance(given, tuple) or len(given) != count:
        return None
    found = tuple(float(v) for v in given if isinstance(v, int | float))
    return found if len(found) == count else None


# Cells

# The position of each of torch's gates among ONNX's.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def cell(kind: str, activation: str = "") -> Row:
    """Layers of a recurrent network, each in one direction or both."""

    def row(call: Call) -> None:
        x, weights = call.ref("input"), call.refs("params")
        layers, both = call.integer("num_layers", 1), 1 + call.integer("bidirectional")
        each = 4 if call.flag("has_biases") else 2
        if len(weights) != layers * both * each:
            raise NotWritten("its states are projected to another size; use proj_size=0")
        states = call.refs("hx") if kind == "LSTM" else (call.ref("hx"),)
        name, early = x.name, call.flag("batch_first")
        if early:
            name = call.step("Transpose", name, perm=(1, 0, 2))
        ends: list[list[str]] = []
        for layer in range(layers):
            own = weights[layer * both * each : (layer + 1) * both * each]
            parts = [own[i * each : (i + 1) * each] for i in range(both)]
            starts = [_rows(call, s, layer * both, both) for s in states]
            name, *last = _layer(call, kind, name, parts, starts, activation)
            ends.append(last)
        _finish(call, name, ends, early)

    return row


def _rows(call: Call, ref: Ref, begin: int, count: int) -> str:
    if count == ref.shape[0]:
        return ref.name
    return call.step("Slice", ref.name, *(call.whole([v]) for v in (begin, begin + count, 0)))


def _layer(
    call: Call,
    kind: str,
    x: str,
    parts: Sequence[Sequence[Ref]],
    starts: Sequence[str],
    activation: str,
) -> list[str]:
    """One layer: its values over time, batch and features; its last states."""
    hidden = parts[0][1].shape[1]
    gates = _GATES[kind]
    order = [g * hidden + i for g in gates for i in range(hidden)]

    def joined(place: int) -> str:
        rows = [_ordered(call, part[place], order) for part in parts]
        return call.step("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]

    inputs = [x, joined(0), joined(1)]
    if len(parts[0]) == 4:
        inputs.append(call.step("Concat", joined(2), joined(3), axis=1))
    else:
        inputs.append("")
    settings: dict[str, Setting] = {"hidden_size": hidden}
    settings["direction"] = "bidirectional" if len(parts) > 1 else "forward"
    if kind == "GRU":
        settings["linear_before_reset"] = 1
    if activation:
        settings["activations"] = (activation,) * len(parts)
    count = 1 + len(starts)
    y, *last = call.steps(kind, count, *inputs, "", *starts, **settings)
    length, batch = _time_and_batch(call)
    if len(parts) > 1:
        y = call.step("Transpose", y, perm=(0, 2, 1, 3))
    return [
        call.step("Reshape", y, call.whole((length, batch, len(parts) * hidden))),
        *last,
    ]


def _time_and_batch(call: Call) -> tuple[int, int]:
    length, batch = call.ref("input").shape[:2]
    return (batch, length) if call.flag("batch_first") else (length, batch)


def _ordered(call: Call, ref: Ref, order: Sequence[int]) -> str:
    """Weights with the gates in ONNX's order, as those of one direction."""
    rows = call.step("Gather", ref.name, call.whole(order), axis=0)
    return call.step("Reshape", rows, call.whole((1, *ref.shape)))


def _finish(call: Call, name: str, ends: Sequence[Sequence[str]], early: bool) -> None:
    outputs = (*call.outputs, "", "")
    for place, output in enumerate(outputs[: len(call.made)]):
        if not output:
            continue
        own = call.output(place)
        if place:
            last = [e[place - 1] for e in ends]
            own.end("Concat", *last, axis=0)
        elif early:
            own.end("Transpose", name, perm=(1, 0, 2))
        else:
            own.end("Identity", name)


def trilinear(call: Call) -> None:
    """`nn.Bilinear`: every pair of features of two tensors, weighed."""
    layout = (1, 3), (0,), (1, 2), (2, 3)
    if tuple(call.integers(n) for n in ("expand1", "expand2", "expand3", "sumdim")) != layout:
        raise NotWritten("products of three tensors in another order; use torch.einsum")
    call.end("Einsum", *(call.name(n) for n in ("i1", "i2", "i3")), equation="bi,oij,bj->bo")


ROWS: dict[str, Row] = {
    "_adaptive_avg_pool2d": adaptive_average,
    "_native_batch_norm_legit_no_training": batch_norm,
    "_upsample_bicubic2d_aa": resize("cubic", smooth=True),
    "_upsample_bilinear2d_aa": resize("linear", smooth=True),
    "_upsample_nearest_exact1d": resize("nearest", exact=True),
    "_upsample_nearest_exact2d": resize("nearest", exact=True),
    "_upsample_nearest_exact3d": resize("nearest", exact=True),
    "_trilinear": trilinear,
    "adaptive_avg_pool1d": adaptive_average,
    "adaptive_avg_pool2d": adaptive_average,
    "adaptive_avg_pool3d": adaptive_average,
    "adaptive_max_pool1d": adaptive_max,
    "adaptive_max_pool2d": adaptive_max,
    "adaptive_max_pool3d": adaptive_max,
    "addmm": add_product("mat1", "mat2"),
    "avg_pool1d": pool("AveragePool", 1),
    "avg_pool2d": pool("AveragePool", 2),
    "avg_pool3d": pool("AveragePool", 3),
    "baddbmm": add_product("batch1", "batch2"),
    "batch_norm": batch_norm,
    "bmm": product("mat2"),
    "conv1d": convolution,
    "conv2d": convolution,
    "conv3d": convolution,
    "conv_transpose1d": convolution,
    "conv_transpose2d": convolution,
    "conv_transpose3d": convolution,
    "convolution": convolution,
    "grid_sampler": grid_sample,
    "grid_sampler_2d": grid_sample,
    "group_norm": group_norm,
    "gru.input": cell("GRU"),
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "linear": linear,
    "lstm.input": cell("LSTM"),
    "matmul": product("other"),
    "max_pool1d": pool("MaxPool", 1),
    "max_pool2d": pool("MaxPool", 2),
    "max_pool2d_with_indices": pool("MaxPool", 2),
    "max_pool3d": pool("MaxPool", 3),
    "mm": product("mat2"),
    "native_layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "rnn_relu.input": cell("RNN", "Relu"),
    "rnn_tanh.input": cell("RNN", "Tanh"),
    "scaled_dot_product_attention": attention,
    "upsample_bicubic2d": resize("cubic"),
    "upsample_bilinear2d": resize("linear"),
    "upsample_linear1d": resize("linear"),
    "upsample_nearest1d": resize("nearest"),
    "upsample_nearest2d": resize("nearest"),
    "upsample_nearest3d": resize("nearest"),
    "upsample_trilinear3d": resize("linear"),
}
