"""Rules for attention, and for its companions in language models."""

from typing import NamedTuple

import numpy as np

from litesmith.conversion.core.lowering import Lowering, Rule, Unsupported
from litesmith.conversion.core.source import Node
from litesmith.conversion.rules.layers import Filters, convolve
from litesmith.conversion.rules.shapes import cut_out, padded, wrapped
from litesmith.conversion.rules.values import like
from litesmith.conversion.rules.windows import Window
from litesmith.ir.types import Tensor, constant_numbers

# Steps of a recurrence that are written out one after another.
_MOST_STEPS = 128

_HIDDEN = np.array(-np.inf, np.float32)


class _Cache(NamedTuple):
    """The number of keys before the first query: the same for all, or one number per batch."""

    before: int
    lengths: Tensor | None


def attention(lower: Lowering, node: Node) -> tuple[Tensor, ...]:
    q, k, v, mask, past_k, past_v, lengths = lower.inputs(node, 7)[:7]
    flat = len(lower.need(q).shape) == 3
    q = _heads_first(lower, q, node.integer("q_num_heads"))
    k, v = (_heads_first(lower, t, node.integer("kv_num_heads")) for t in (k, v))
    before = 0
    if past_k is not None and past_v is not None:
        before = past_k.shape[2]
        k = lower.op("CONCATENATION", past_k, k, axis=2)
        v = lower.op("CONCATENATION", past_v, v, axis=2)
    scores = _scores(lower, node, q, k)
    capped = _softcap(lower, scores, node.number("softcap"))
    bias = _bias(lower, node, mask, (q.shape[2], k.shape[2]), _Cache(before, lengths))
    biased = capped if bias is None else lower.op("ADD", capped, bias)
    weights = lower.op("SOFTMAX", biased, beta=1.0)
    hidden = None if bias is None else _hidden_rows(lower, bias)
    made = _shown(lower, _by_groups(lower, weights, v), hidden)
    if flat:
        batch, heads, length, depth = made.shape
        made = lower.transpose(made, (0, 2, 1, 3))
        made = lower.reshape(made, (batch, length, heads * depth))
    told = (scores, capped, biased, weights)[node.integer("qk_matmul_output_mode")]
    return made, k, v, _shown(lower, told, hidden) if told is weights else told


def _heads_first(lower: Lowering, x: Tensor | None, heads: int) -> Tensor:
    """Batch, length, all heads' values as batch, head, length, values."""
    x = lower.need(x)
    if len(x.shape) == 4:
        return x
    if len(x.shape) != 3 or heads < 1 or x.shape[2] % heads:
        raise Unsupported("{heads} heads do not divide the shape {shape}", heads, x.shape)
    batch, length, size = x.shape
    parted = lower.reshape(x, (batch, length, heads, size // heads))
    return lower.transpose(parted, (0, 2, 1, 3))


def _scores(lower: Lowering, node: Node, q: Tensor, k: Tensor) -> Tensor:
    scale = node.number("scale") or q.shape[3] ** -0.5
    q = lower.op("MUL", q, like(q, scale))
    groups, batch, heads, length = q.shape[1] // k.shape[1], *q.shape[:3]
    if groups > 1:  # queries that share a key are rows of one product
        q = lower.reshape(q, (batch, k.shape[1], groups * length, q.shape[3]))
    made = lower.op("BATCH_MATMUL", q, k, adj_y=True)
    return lower.reshape(made, (batch, heads, length, k.shape[2]))


def _by_groups(lower: Lowering, weights: Tensor, v: Tensor) -> Tensor:
    """The values that the weights say; heads may share them."""
    batch, heads, length, keys = weights.shape
    groups = heads // v.shape[1]
    if groups > 1:
        weights = lower.reshape(weights, (batch, v.shape[1], groups * length, keys))
    made = lower.op("BATCH_MATMUL", weights, v)
    return lower.reshape(made, (batch, heads, length, v.shape[3]))


def _softcap(lower: Lowering, x: Tensor, cap: float) -> Tensor:
    if cap <= 0:
        return x
    return lower.op("MUL", lower.op("TANH", lower.op("MUL", x, like(x, 1 / cap))), like(x, cap))


def _bias(
    lower: Lowering, node: Node, mask: Tensor | None, sizes: tuple[int, int], cache: _Cache
) -> Tensor | None:
    """What is added to the scores: the mask, and minus infinity where a key must not be seen."""
    parts = [] if mask is None else [_added_mask(lower, mask, sizes[1])]
    parts += [_hidden(lower, seen) for seen in _seen(lower, node, sizes, cache)]
    total: Tensor | None = None
    for part in parts:
        total = part if total is None else lower.op("ADD", total, part)
    return total


def _added_mask(lower: Lowering, mask: Tensor, keys: int) -> Tensor:
    """A mask as numbers to add, for all keys."""
    added = _hidden(lower, mask) if mask.dtype == "bool" else mask
    frame = [(0, 0)] * (len(mask.shape) - 1) + [(0, max(keys - mask.shape[-1], 0))]
    return padded(lower, added, frame, "constant", lower.const(_HIDDEN))


def _hidden(lower: Lowering, seen: Tensor) -> Tensor:
    return lower.op("SELECT_V2", seen, np.array(0, np.float32), _HIDDEN)


def _seen(lower: Lowering, node: Node, sizes: tuple[int, int], cache: _Cache) -> list[Tensor]:
    """Which keys each query may see, by their distance and by the lengths that are filled."""
    queries, keys = sizes
    ahead = 0 if node.integer("is_causal") else node.integer("right_window_size", -1)
    back = node.integer("left_window_size", -1)
    places = np.arange(queries)[:, None] - np.arange(keys)[None]
    if cache.lengths is None:
        distance = lower.const((places + cache.before).astype(np.int32))
        filled: list[Tensor] = []
    else:
        lengths = lower.cast(cache.lengths, "int32")
        lengths = lower.reshape(lengths, (lengths.elements, 1, 1, 1))
        distance = lower.op("ADD", lengths, (places - queries).astype(np.int32)[None, None])
        row = np.arange(keys, dtype=np.int32).reshape(1, 1, 1, keys)
        filled = [lower.op("GREATER", lengths, row)]
    if ahead >= 0:
        filled.append(lower.op("GREATER_EQUAL", distance, np.array(-ahead, np.int32)))
    if back >= 0:
        filled.append(lower.op("LESS_EQUAL", distance, np.array(back, np.int32)))
    return filled


def _hidden_rows(lower: Lowering, bias: Tensor) -> Tensor | None:
    """The queries that see no key at all; None where there are none."""
    last = np.array([len(bias.shape) - 1], np.int32)
    most = lower.op("REDUCE_MAX", bias, last, keep_dims=True)
    hidden = lower.op("EQUAL", most, _HIDDEN)
    known = constant_numbers(hidden)
    return None if known is not None and not known.any() else hidden


def _shown(lower: Lowering, x: Tensor, hidden: Tensor | None) -> Tensor:
    return x if hidden is None else lower.op("SELECT_V2", hidden, like(x, 0), x)


def rotary_embedding(lower: Lowering, node: Node) -> Tensor:
    x, cos, sin, places = lower.inputs(node, 4)[:4]
    x, cos, sin = lower.need(x), lower.need(cos), lower.need(sin)
    shape = x.shape
    if len(shape) == 3:
        heads = max(node.integer("num_heads"), 1)
        x = lower.reshape(x, (*shape[:2], heads, shape[2] // heads))
    head_axis = 2 if len(shape) == 3 else 1
    if places is not None:
        ids = wrapped(lower, places, cos.shape[0])
        cos, sin = (lower.op("GATHER", t, ids, axis=0) for t in (cos, sin))
    spread = list(cos.shape)
    spread.insert(head_axis, 1)
    cos, sin = lower.reshape(cos, spread), lower.reshape(sin, spread)
    turned = node.integer("rotary_embedding_dim") or x.shape[3]
    first = _last_part(lower, x, 0, turned)
    made = _rotated(lower, first, cos, sin, bool(node.integer("interleaved")))
    if turned < x.shape[3]:
        made = lower.op("CONCATENATION", made, _last_part(lower, x, turned, x.shape[3]), axis=3)
    return lower.reshape(made, shape)


def _last_part(lower: Lowering, x: Tensor, begin: int, end: int, step: int = 1) -> Tensor:
    return cut_out(lower, x, [*((0, d, 1) for d in x.shape[:-1]), (begin, end, step)])


def _rotated(lower: Lowering, x: Tensor, cos: Tensor, sin: Tensor, alternate: bool) -> Tensor:
    """Pairs of values turned by angles: halves of the last axis, or neighbours in it."""
    size = x.shape[-1]
    if alternate:
        a, b = _last_part(lower, x, 0, size - 1, 2), _last_part(lower, x, 1, size, 2)
    else:
        a, b = _last_part(lower, x, 0, size // 2), _last_part(lower, x, size // 2, size)
    real = lower.op("SUB", lower.op("MUL", a, cos), lower.op("MUL", b, sin))
    imaginary = lower.op("ADD", lower.op("MUL", a, sin), lower.op("MUL", b, cos))
    if not alternate:
        return lower.op("CONCATENATION", real, imaginary, axis=3)
    pairs = lower.op("PACK", real, imaginary, axis=4, values_count=2)
    return lower.reshape(pairs, x.shape)


class _Step(NamedTuple):
    """The inputs of one moment of linear attention; each is batch, head, 1, values."""

    query: Tensor
    key: Tensor
    value: Tensor
    decay: Tensor | None
    beta: Tensor | None


def linear_attention(lower: Lowering, node: Node) -> tuple[Tensor, Tensor]:
    q, k, v, state, decay, beta = lower.inputs(node, 6)[:6]
    heads, shared = node.integer("q_num_heads"), node.integer("kv_num_heads")
    q = _heads_first(lower, q, heads)
    k, v = _heads_first(lower, k, shared), _heads_first(lower, v, shared)
    batch, _, length, depth = q.shape
    if length > _MOST_STEPS:
        raise Unsupported(
            "its {count} steps depend on each other, and at most {most} are written out; export "
            "it for a shorter sequence and carry the state",
            length,
            _MOST_STEPS,
        )
    q = lower.op("MUL", q, like(q, node.number("scale") or depth**-0.5))
    if decay is not None:
        decay = lower.op("EXP", _heads_first(lower, decay, shared))
    if beta is not None:
        beta = _heads_first(lower, beta, beta.shape[2])
    if state is None:
        state = lower.const(np.zeros((batch, shared, depth, v.shape[3]), np.float32))
    made: list[Tensor] = []
    for i in range(length):
        parts = (t and _moment(lower, t, i) for t in (q, k, v, decay, beta))
        state, seen = _step(lower, state, _Step(*parts))  # pyright: ignore[reportArgumentType]
        made.append(seen)
    whole = made[0] if length == 1 else lower.op("CONCATENATION", *made, axis=2)
    whole = lower.transpose(whole, (0, 2, 1, 3))
    return lower.reshape(whole, (batch, length, heads * v.shape[3])), state


def _moment(lower: Lowering, x: Tensor, i: int) -> Tensor:
    return cut_out(
        lower, x, [(i, i + 1, 1) if a == 2 else (0, d, 1) for a, d in enumerate(x.shape)]
    )


def _step(lower: Lowering, state: Tensor, now: _Step) -> tuple[Tensor, Tensor]:
    """The state after one moment, and what the queries read from it."""
    batch, shared, depth, width = state.shape
    value = now.value
    if now.decay is not None:
        fading = lower.transpose(now.decay, (0, 1, 3, 2))
        state = lower.op("MUL", state, fading)
    if now.beta is not None:
        found = lower.op("BATCH_MATMUL", now.key, state)
        value = lower.op("MUL", lower.op("SUB", value, found), now.beta)
    upright = lower.reshape(now.key, (batch, shared, depth, 1))
    state = lower.op("ADD", state, lower.op("MUL", upright, value))
    heads = now.query.shape[1]
    query = lower.reshape(now.query, (batch, shared, heads // shared, depth))
    seen = lower.op("BATCH_MATMUL", query, state)
    return state, lower.reshape(seen, (batch, heads, 1, width))


def causal_conv(lower: Lowering, node: Node) -> tuple[Tensor, Tensor]:
    x, weight, bias, past = lower.inputs(node, 4)[:4]
    x, weight = lower.need(x), lower.need(weight)
    reach = weight.shape[2] - 1
    if past is None:
        whole = padded(lower, x, [(0, 0), (0, 0), (reach, 0)])
    else:
        whole = lower.op("CONCATENATION", past, x, axis=2) if reach else x
    window = Window(weight.shape[2:], [1], [1], [(0, 0)])
    made = convolve(lower, whole, Filters(weight, bias, x.shape[1]), window)
    if node.word("activation", "none") in ("silu", "swish"):
        made = lower.op("MUL", made, lower.op("LOGISTIC", made))
    size = whole.shape[2]
    return made, _last_part(lower, whole, size - reach, size)


RULES: dict[str, Rule] = {
    "Attention": attention,
    "CausalConvWithState": causal_conv,
    "LinearAttention": linear_attention,
    "RotaryEmbedding": rotary_embedding,
}
