"""Output shapes of picking, reducing, resizing, regrouping and recurrence; see `shapes`."""

from math import ceil, isfinite, prod

from litesmith.ir.infer import (
    Dims,
    Inputs,
    Shapes,
    constant_at,
    from_front,
    integer_at,
    integers_at,
    shape_at,
    shape_rule,
)
from litesmith.ir.types import Record
from litesmith.phrases import phrase


@shape_rule
def gather(inputs: Inputs, options: Record) -> Shapes:
    dims, places = shape_at(inputs, 0), shape_at(inputs, 1)
    axis = from_front(options.integer("axis"), len(dims))
    batch = options.integer("batch_dims")
    batch += len(places) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(places)) or dims[:batch] != places[:batch]:
        raise ValueError(
            phrase("{batch} batch dimensions of {dims} and {places}", batch, dims, places)
        )
    return ((*dims[:axis], *places[batch:], *dims[axis + 1 :]),)


@shape_rule
def gather_nd(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    *rows, depth = shape_at(inputs, 1)
    if depth > len(dims):
        raise ValueError(phrase("{depth} indices for {dims}", depth, dims))
    return ((*rows, *dims[depth:]),)


@shape_rule
def embedding_lookup(inputs: Inputs, options: Record) -> Shapes:
    (count,) = shape_at(inputs, 0)
    _, *row = shape_at(inputs, 1)
    return ((count, *row),)


@shape_rule
def one_hot(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    axis = from_front(options.integer("axis"), len(dims) + 1)
    return ((*dims[:axis], integer_at(inputs, 1), *dims[axis:]),)


@shape_rule
def reduce(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    gone = {from_front(axis, len(dims)) for axis in integers_at(inputs, 1)}
    if options["keep_dims"]:
        return (tuple(1 if place in gone else size for place, size in enumerate(dims)),)
    return (tuple(size for place, size in enumerate(dims) if place not in gone),)


@shape_rule
def drop_axis(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    axis = from_front(integer_at(inputs, 1), len(dims))
    return ((*dims[:axis], *dims[axis + 1 :]),)


@shape_rule
def top_k(inputs: Inputs, options: Record) -> Shapes:
    *rows, size = shape_at(inputs, 0)
    count = integer_at(inputs, 1)
    if count > size:
        raise ValueError(phrase("the top {count} of {size}", count, size))
    return ((*rows, count), (*rows, count))


@shape_rule
def shape_of(inputs: Inputs, options: Record) -> Shapes:
    return ((len(shape_at(inputs, 0)),),)


@shape_rule
def range_(inputs: Inputs, options: Record) -> Shapes:
    return ((range_length(*(_number(inputs, place) for place in (0, 1, 2))),),)


def range_length(start: float, limit: float, delta: float) -> int:
    """How many steps of delta lead from the start to before the limit."""
    if delta == 0 or not all(map(isfinite, (start, limit, delta))):
        raise ValueError(phrase("a range from {start} to {limit} by {delta}", start, limit, delta))
    steps = (limit - start) / delta
    if not 0 <= steps < 2**31:
        raise ValueError(phrase("{steps} steps from {start} to {limit}", steps, start, limit))
    return ceil(steps)


def _number(inputs: Inputs, place: int) -> float:
    data = constant_at(inputs, place)
    if data.dtype.kind not in "iuf" or data.size != 1:
        raise ValueError(phrase("input {place} is not a number", place))
    return data.reshape(-1).tolist()[0]


@shape_rule
def matrix_diag(inputs: Inputs, options: Record) -> Shapes:
    *rows, size = shape_at(inputs, 0)
    return ((*rows, size, size),)


@shape_rule
def segment_sum(inputs: Inputs, options: Record) -> Shapes:
    _, *row = shape_at(inputs, 0)
    return ((max(integers_at(inputs, 1), default=-1) + 1, *row),)


@shape_rule
def unsorted_segment(inputs: Inputs, options: Record) -> Shapes:
    dims, segments = shape_at(inputs, 0), shape_at(inputs, 1)
    if dims[: len(segments)] != segments:
        raise ValueError(phrase("segments {segments} of {dims}", segments, dims))
    return ((integer_at(inputs, 2), *dims[len(segments) :]),)


@shape_rule
def resize(inputs: Inputs, options: Record) -> Shapes:
    batch, _, _, channels = shape_at(inputs, 0)
    height, width = integers_at(inputs, 1)
    return ((batch, height, width, channels),)


@shape_rule
def space_to_depth(inputs: Inputs, options: Record) -> Shapes:
    batch, height, width, channels = shape_at(inputs, 0)
    block = options.integer("block_size")
    if block < 1 or height % block or width % block:
        raise ValueError(phrase("blocks of {block} in {height} by {width}", block, height, width))
    return ((batch, height // block, width // block, channels * block * block),)


@shape_rule
def depth_to_space(inputs: Inputs, options: Record) -> Shapes:
    batch, height, width, channels = shape_at(inputs, 0)
    block = options.integer("block_size")
    if block < 1 or channels % (block * block):
        raise ValueError(phrase("{channels} channels into blocks of {block}", channels, block))
    return ((batch, height * block, width * block, channels // (block * block)),)


@shape_rule
def space_to_batch(inputs: Inputs, options: Record) -> Shapes:
    batch, *sizes = shape_at(inputs, 0)
    blocks, amounts = integers_at(inputs, 1), integers_at(inputs, 2)
    outer = tuple(
        before + size + after
        for size, before, after in zip(sizes, amounts[::2], amounts[1::2], strict=False)
    )
    if len(amounts) != 2 * len(blocks) or min((*amounts, *blocks)) < 0:
        raise ValueError(phrase("paddings {amounts} for blocks {blocks}", amounts, blocks))
    if min(blocks) < 1 or any(size % block for size, block in zip(outer, blocks, strict=True)):
        raise ValueError(phrase("blocks {blocks} in {outer}", blocks, outer))
    inner = tuple(size // block for size, block in zip(outer, blocks, strict=True))
    return ((batch * prod(blocks), *inner, *sizes[len(blocks) :]),)


@shape_rule
def batch_to_space(inputs: Inputs, options: Record) -> Shapes:
    batch, *sizes = shape_at(inputs, 0)
    blocks, crops = integers_at(inputs, 1), integers_at(inputs, 2)
    if min(blocks, default=0) < 1 or batch % prod(blocks) or min(crops, default=0) < 0:
        raise ValueError(phrase("a batch of {batch} into blocks {blocks}", batch, blocks))
    cut = zip(sizes, blocks, crops[::2], crops[1::2], strict=False)
    inner = tuple(size * block - before - after for size, block, before, after in cut)
    if not len(inner) == len(blocks) == len(crops) / 2:
        raise ValueError(phrase("crops {crops} for blocks {blocks}", crops, blocks))
    return ((batch // prod(blocks), *inner, *sizes[len(blocks) :]),)


@shape_rule
def rfft_2d(inputs: Inputs, options: Record) -> Shapes:
    *rows, _, _ = shape_at(inputs, 0)
    height, width = integers_at(inputs, 1)
    return ((*rows, height, width // 2 + 1),)


@shape_rule
def multinomial(inputs: Inputs, options: Record) -> Shapes:
    batch, _ = shape_at(inputs, 0)
    return ((batch, integer_at(inputs, 1)),)


@shape_rule
def suppression(inputs: Inputs, options: Record) -> Shapes:
    return ((integer_at(inputs, 2),), ())


@shape_rule
def soft_suppression(inputs: Inputs, options: Record) -> Shapes:
    count = integer_at(inputs, 2)
    return ((count,), (count,), ())


@shape_rule
def svdf(inputs: Inputs, options: Record) -> Shapes:
    batch, _ = shape_at(inputs, 0)
    filters, _ = shape_at(inputs, 1)
    rank = options.integer("rank")
    if rank < 1 or filters % rank:
        raise ValueError(phrase("{filters} filters of rank {rank}", filters, rank))
    return ((batch, filters // rank),)


@shape_rule
def rnn(inputs: Inputs, options: Record) -> Shapes:
    *rows, _ = shape_at(inputs, 0)
    units, _ = shape_at(inputs, 1)
    return ((*rows, units),)


@shape_rule
def lstm(inputs: Inputs, options: Record) -> Shapes:
    if "kernel_type" in options and options.word("kernel_type") != "FULL":
        raise ValueError(phrase("the basic kernel has four outputs"))
    *rows, _ = shape_at(inputs, 0)
    return ((*rows, _units(inputs)),)


def _units(inputs: Inputs) -> int:
    """Rows of the projection where there is one, else of the gates."""
    has_projection = len(inputs) > 16 and inputs[16] is not None
    weight: Dims = shape_at(inputs, 16 if has_projection else 2)
    units, _ = weight
    return units
