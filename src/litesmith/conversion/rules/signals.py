"""Rules for spectra and the windows before them: products with matrices that are constant."""

from collections.abc import Callable

import numpy as np

from litesmith.conversion.core.lowering import COMPUTED_AS, Lowering, Rule
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.shapes import positive
from litesmith.conversion.rules.values import element_type
from litesmith.ir.types import Array, Tensor


def fourier(lower: Lowering, node: Node) -> Tensor:
    x, length, place = lower.inputs(node, 3)[:3]
    x = lower.need(x)
    rank = len(x.shape)
    axis = node.integer("axis", 1) if lower.opset < 20 else -2
    if place is not None:
        axis = lower.integers(place, "axis")[0]
    axis = positive(axis, rank)
    inverse, half = bool(node.integer("inverse")), bool(node.integer("onesided"))
    count = x.shape[axis] if not (inverse and half) else 2 * (x.shape[axis] - 1)
    if length is not None:
        count = lower.integers(length, "length")[0]
    matrix, parts = _matrix((x.shape[axis], x.shape[-1]), count, inverse, half)
    order = [i for i in range(rank - 1) if i != axis] + [axis, rank - 1]
    turned = lower.transpose(x, order)
    rows = lower.reshape(turned, (*turned.shape[:-2], turned.shape[-2] * turned.shape[-1]))
    made = lower.op("FULLY_CONNECTED", rows, matrix, None, keep_num_dims=rank > 3)
    made = lower.reshape(made, (*turned.shape[:-2], matrix.shape[0] // parts, parts))
    return lower.transpose(made, [order.index(i) for i in range(rank)])


def _matrix(shape: tuple[int, int], count: int, inverse: bool, half: bool) -> tuple[Array, int]:
    """The spectrum of each value of a signal, as rows; how many parts a number of it has."""
    size, parts = shape
    basis = np.eye(size * parts).reshape(size * parts, size, parts)
    signal = basis[..., 0] + 1j * basis[..., 1] if parts == 2 else basis[..., 0]
    if inverse and half:
        made = np.fft.irfft(signal, count, axis=1)[..., None]
    else:
        found = (np.fft.ifft if inverse else np.fft.fft)(signal, count, axis=1)
        found = found[:, : count // 2 + 1] if half else found
        made = np.stack([found.real, found.imag], -1)
    return np.ascontiguousarray(made.reshape(size * parts, -1).T, np.float32), made.shape[-1]


def short_fourier(lower: Lowering, node: Node) -> Tensor:
    x, step, window, length = lower.inputs(node, 4)[:4]
    x = lower.need(x)
    hop = lower.integers(step, "steps")[0]
    if length is not None:
        size = lower.integers(length, "length")[0]
    else:
        size = x.shape[1] if window is None else window.elements
    begins = np.arange(0, x.shape[1] - size + 1, hop)
    places = (begins[:, None] + np.arange(size)).astype(np.int32)
    frames = lower.op("GATHER", x, places, axis=1)
    if window is not None:
        frames = lower.op("MUL", frames, lower.reshape(window, (size, 1)))
    matrix, parts = _matrix((size, x.shape[2]), size, False, bool(node.integer("onesided", 1)))
    rows = lower.reshape(frames, (x.shape[0], len(begins), size * x.shape[2]))
    made = lower.op("FULLY_CONNECTED", rows, matrix, None, keep_num_dims=True)
    return lower.reshape(made, (x.shape[0], len(begins), matrix.shape[0] // parts, parts))


def window(shape: Callable[[Array], Array]) -> Rule:
    """A window by its height at an angle of the full circle."""

    def rule(lower: Lowering, node: Node) -> Tensor:
        told = lower.told(node)
        size = told[0] if told else lower.integers(lower.first(node), "sizes")[0]
        whole = size if node.integer("periodic", 1) else size - 1
        heights = shape(np.arange(size) * (2 * np.pi / max(whole, 1)))
        return lower.const(heights.astype(_output_type(node)))

    return rule


def _output_type(node: Node) -> str:
    dtype = element_type(node, "output_datatype", 1)
    return COMPUTED_AS.get(dtype, dtype)


def mel_weights(lower: Lowering, node: Node) -> Tensor:
    numbers = [float(lower.known(t, "settings").reshape(-1)[0]) for t in lower.inputs(node, 5)]
    bins, length, rate = (int(n) for n in numbers[:3])
    low, high = (2595 * np.log10(1 + edge / 700) for edge in numbers[3:])
    mels = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    edges = ((length + 1) * 700 * (10 ** (mels / 2595) - 1) // rate).astype(int)
    place = np.arange(length // 2 + 1).reshape(-1, 1)
    left, top, right = edges[:-2], edges[1:-1], edges[2:]
    rising: Array = (place - left) / np.maximum(top - left, 1)
    rising = np.where(top > left, rising, 1.0)
    falling: Array = (right - place) / np.maximum(right - top, 1)
    made = np.where((place >= left) & (place <= top), rising, 0.0)
    made = np.where((place >= top) & (place < right), falling, made)
    return lower.const(made.astype(_output_type(node)))


RULES: dict[str, Rule] = {
    "BlackmanWindow": window(lambda a: 0.42 - 0.5 * np.cos(a) + 0.08 * np.cos(2 * a)),
    "DFT": fourier,
    "HammingWindow": window(lambda a: 25 / 46 - 21 / 46 * np.cos(a)),
    "HannWindow": window(lambda a: 0.5 - 0.5 * np.cos(a)),
    "MelWeightMatrix": mel_weights,
    "STFT": short_fourier,
}
