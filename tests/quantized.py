"""What holds of every quantized model, and how near it comes to the float one in stock LiteRT."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from litesmith.data.samples import Data, as_stored
from litesmith.ir.check import problems
from litesmith.ir.dtype import DTYPES
from litesmith.ir.ops import OPS
from litesmith.ir.types import Graph, Model, Op, Tensor
from litesmith.passes.core.layers import layers_of
from litesmith.passes.core.schemes import roles
from litesmith.passes.quantizing.scales import real_tensors
from litesmith.run.session import Session
from litesmith.tflite.read import read
from litesmith.tflite.write import to_bytes

CONVERSIONS = ("QUANTIZE", "DEQUANTIZE")
TARGETS = ("cpu:1", "cpu:1:builtin")


def real(tensor: Tensor, array: np.ndarray) -> np.ndarray:
    """What an output stands for."""
    quant = tensor.quant
    if quant is None or tensor.dtype == "float32":
        return np.array(array, np.float64)
    return (array.astype(np.float64) - quant.zero_point[0]) * float(quant.scale[0])


def results(model: Model, data: Data, target: str = "cpu:1") -> list[np.ndarray]:
    """Every output over all samples, as real numbers, of the model as it is written."""
    written = read(memoryview(to_bytes(replace(model, signatures=()))))
    rows: list[list[np.ndarray]] = []
    with Session(written, target) as session:
        for sample in data:
            ports = zip(session.runner.inputs, written.main.inputs, sample.inputs, strict=True)
            for port, tensor, value in ports:
                port.array[...] = as_stored(tensor, value)
            session.run()
            ends = zip(written.main.outputs, session.runner.outputs, strict=True)
            rows.append([real(tensor, port.array) for tensor, port in ends])
    return [np.stack(column) for column in zip(*rows, strict=True)]


def snr(wanted: np.ndarray, got: np.ndarray) -> float:
    """Signal to noise in decibels; 200 where there is no noise."""
    noise = float(((wanted - got) ** 2).mean()) if wanted.size else 0.0
    signal = float((wanted**2).mean()) if wanted.size else 0.0
    return 200.0 if noise == 0 else 10 * float(np.log10(max(signal, 1e-30) / noise))


def worst(model: Model, quantized: Model, data: Data, target: str = "cpu:1") -> float:
    """The signal to noise of the output that suffers most."""
    pairs = zip(results(model, data), results(quantized, data, target), strict=True)
    return min((snr(a, b) for a, b in pairs), default=200.0)


def broken_laws(model: Model) -> list[str]:
    """What is wrong with a model whose main graph was quantized: nothing, one hopes."""
    found = [str(problem) for problem in problems(model)]
    graph = model.main
    for law in (_conversions, _same_scales, _fixed_scales, _weights, _biases):
        found += law(graph)
    return found


def _makers(graph: Graph) -> dict[Tensor, Op]:
    return {t: op for op in graph.ops for t in op.outputs}


def _conversions(graph: Graph) -> Iterator[str]:
    """No way there and back, no conversion twice, none that nobody reads."""
    makers = _makers(graph)
    readers = Counter(t for op in graph.ops for t in op.inputs if t is not None)
    readers.update(graph.outputs)
    seen: set[tuple[object, ...]] = set()
    for op in graph.ops:
        if op.kind not in CONVERSIONS:
            continue
        source, target = op.inputs[0], op.outputs[0]
        assert source is not None
        key = source, target.dtype, _scale(target)
        if key in seen:
            yield f"{source.name} is converted to {target.dtype} twice"
        seen.add(key)
        if not readers[target]:
            yield f"nobody reads {target.name}, a conversion"
        made_by = makers.get(source)
        is_back = op.kind == "QUANTIZE" and made_by is not None and made_by.kind == "DEQUANTIZE"
        if is_back and readers[source] == 1:
            yield f"{source.name} is dequantized only to be quantized"
        if (target.dtype, _scale(target)) == (source.dtype, _scale(source)):
            yield f"{source.name} is converted to what it is"


def _scale(tensor: Tensor) -> tuple[object, ...]:
    quant = tensor.quant
    if quant is None or tensor.dtype == "float32":
        return ()
    return tuple(quant.scale.tolist()), tuple(quant.zero_point.tolist())


def _on_integers(op: Op) -> bool:
    return any(t.quant is not None and not DTYPES[t.dtype].is_float for t in op.outputs)


def _same_scales(graph: Graph) -> Iterator[str]:
    for op in graph.ops:
        if OPS[op.kind].scale == "same" and _on_integers(op):
            words = roles(op)
            given = [t for t, word in zip(op.inputs, words, strict=True) if t and word == "x"]
            moved = [t for t in (*given, *op.outputs) if t.quant is not None]
            if len({(t.dtype, _scale(t)) for t in moved}) > 1:
                yield f"{op.kind} {op.outputs[0].name} moves between scales"
            if any(t.dtype == "float32" for t in (*given, *op.outputs)):
                yield f"{op.kind} {op.outputs[0].name} mixes float and integers"


def _fixed_scales(graph: Graph) -> Iterator[str]:
    for op in graph.ops:
        row = OPS[op.kind]
        if row.scale != "fixed" or not _on_integers(op):
            continue
        for tensor in op.outputs:
            scale, zero_point = row.fixed.get(tensor.dtype, (None, None))
            if scale is not None and _scale(tensor) != ((float(np.float32(scale)),), (zero_point,)):
                yield f"{op.kind} {tensor.name} has the scale {_scale(tensor)}"


def _weights(graph: Graph) -> Iterator[str]:
    for layer in layers_of(graph).values():
        weight = layer.weight
        if weight.quant is None or weight.quant.block is not None:
            continue
        most = {"int8": 127, "int4": 7}[weight.dtype]
        # The least int4 code is for kernels that unpack it to int8.
        least = -8 if weight.dtype == "int4" and layer.data.dtype == "int8" else -most
        if weight.values().min() < least or weight.values().max() > most:
            yield f"{weight.name} has a code beyond {least} and {most}"
        if weight.quant.zero_point.any() or not (weight.quant.scale > 0).all():
            yield f"{weight.name} is not symmetric"
        if weight.quant.scale.size not in (1, layer.channels):
            yield f"{weight.name} has {weight.quant.scale.size} scales"


def _biases(graph: Graph) -> Iterator[str]:
    """The bias at the scale of its products, well inside its type; the ratio one that opens."""
    for layer in layers_of(graph).values():
        data, weight, bias = layer.data.quant, layer.weight.quant, layer.bias
        if data is None or weight is None or layer.data.dtype == "float32":
            continue
        products = np.float32(data.scale[0]) * weight.scale
        out = layer.op.outputs[0].quant
        assert out is not None
        if layer.data.dtype == "int8" and (products / out.scale[0]).max() >= 256:
            yield f"{layer.op.outputs[0].name} has far finer steps than its products"
        if bias is None:
            continue
        assert bias.quant is not None
        if bias.dtype != {"int8": "int32", "int16": "int64"}[layer.data.dtype]:
            yield f"{bias.name} is {bias.dtype}"
        if not np.allclose(bias.quant.scale, products, rtol=1e-6, atol=0):
            yield f"{bias.name} is not at the scale of the products"
        largest = np.abs(bias.values().astype(np.float64)).max(initial=0)
        if bias.dtype == "int32" and largest >= 2.0**31 - 1:
            yield f"{bias.name} is clipped"


def float_inside(graph: Graph) -> list[str]:
    """The ops that compute with float numbers."""
    ops = [op for op in graph.ops if op.kind not in CONVERSIONS and real_tensors(op)]
    return [op.kind for op in ops]
