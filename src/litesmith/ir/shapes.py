"""Output shapes, a rule for each kind of op: first windows, products, joining, cutting and
reshaping, then picking, reducing, resizing, regrouping and recurrence.

A rule returns None where the shapes depend on computed values, and where the call is impossible: a
file can hold anything, so no rule may fail on its inputs.
"""

from collections.abc import Sequence
from math import ceil, isfinite, prod

from litesmith.ir.shape_rule import (
    Dims,
    Inputs,
    ShapeRule,
    Shapes,
    broadcast_shape,
    constant_at,
    from_front,
    integer_at,
    integers_at,
    shape_at,
    shape_rule,
)
from litesmith.ir.types import Record
from litesmith.ir.window import slid_size, slides, strided_picks
from litesmith.phrases import phrase

_MOST_OUTPUTS = 4096  # a file can state billions


def like(place: int) -> ShapeRule:
    """The shape of one of the inputs."""
    return shape_rule(lambda inputs, _: (shape_at(inputs, place),))


def held_shape(place: int) -> ShapeRule:
    """The shape that is the value of one of the inputs."""
    return shape_rule(lambda inputs, _: (integers_at(inputs, place),))


same = like(0)
scalar: ShapeRule = shape_rule(lambda inputs, _: ((),))
shape_of: ShapeRule = shape_rule(lambda inputs, _: ((len(shape_at(inputs, 0)),),))


@shape_rule
def broadcast(inputs: Inputs, options: Record) -> Shapes:
    if not inputs:
        raise ValueError(phrase("no inputs"))
    return (broadcast_shape(*(shape_at(inputs, place) for place in range(len(inputs)))),)


@shape_rule
def conv(inputs: Inputs, options: Record) -> Shapes:
    batch, *sizes, channels = shape_at(inputs, 0)
    filters, height, width, depth = shape_at(inputs, 1)
    if depth < 1 or channels % depth:
        raise ValueError(phrase("{channels} channels for filters of {depth}", channels, depth))
    return ((batch, *_slide_size(options, sizes, (height, width)), filters),)


@shape_rule
def depthwise_conv(inputs: Inputs, options: Record) -> Shapes:
    batch, *sizes, _ = shape_at(inputs, 0)
    _, height, width, filters = shape_at(inputs, 1)
    return ((batch, *_slide_size(options, sizes, (height, width)), filters),)


@shape_rule
def conv_3d(inputs: Inputs, options: Record) -> Shapes:
    batch, *sizes, _ = shape_at(inputs, 0)
    depth, height, width, _, filters = shape_at(inputs, 1)
    return ((batch, *_slide_size(options, sizes, (depth, height, width), "dhw"), filters),)


@shape_rule
def pool(inputs: Inputs, options: Record) -> Shapes:
    batch, *sizes, channels = shape_at(inputs, 0)
    windows = options.integer("filter_height"), options.integer("filter_width")
    return ((batch, *_slide_size(options, sizes, windows), channels),)


def _slide_size(options: Record, sizes: Sequence[int], windows: Dims, axes: str = "hw") -> Dims:
    padding = options.word("padding")
    steps = zip(sizes, slides(options, windows, axes), strict=True)
    return tuple(slid_size(padding, size, slide) for size, slide in steps)


@shape_rule
def fully_connected(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    units, depth = shape_at(inputs, 1)
    if depth < 1 or prod(dims) % depth:
        raise ValueError(phrase("{dims} values for rows of {depth}", dims, depth))
    if options["keep_num_dims"]:
        *rows, last = dims
        return ((*rows, units) if last == depth else (*rows, -1),)
    return ((prod(dims) // depth, units),)


@shape_rule
def batch_matmul(inputs: Inputs, options: Record) -> Shapes:
    *x_batch, rows, x_depth = shape_at(inputs, 0)
    *y_batch, y_depth, columns = shape_at(inputs, 1)
    if options["adj_x"]:
        rows, x_depth = x_depth, rows
    if options["adj_y"]:
        y_depth, columns = columns, y_depth
    if x_depth != y_depth:
        raise ValueError(phrase("rows of {x_depth} by columns of {y_depth}", x_depth, y_depth))
    return ((*broadcast_shape(tuple(x_batch), tuple(y_batch)), rows, columns),)


@shape_rule
def concatenation(inputs: Inputs, options: Record) -> Shapes:
    shapes = [shape_at(inputs, place) for place in range(len(inputs))]
    axis = from_front(options.integer("axis"), len(shapes[0]) if shapes else 0)
    if len({(*dims[:axis], *dims[axis + 1 :]) for dims in shapes}) > 1:
        raise ValueError(phrase("the other dimensions differ"))
    first = shapes[0]
    return ((*first[:axis], sum(dims[axis] for dims in shapes), *first[axis + 1 :]),)


@shape_rule
def pack(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    axis = from_front(options.integer("axis"), len(dims) + 1)
    return ((*dims[:axis], len(inputs), *dims[axis:]),)


@shape_rule
def unpack(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    axis = from_front(options.integer("axis"), len(dims))
    return _many(((*dims[:axis], *dims[axis + 1 :]),), dims[axis])


@shape_rule
def split(inputs: Inputs, options: Record) -> Shapes:
    dims, count = shape_at(inputs, 1), options.integer("num_splits")
    axis = from_front(integer_at(inputs, 0), len(dims))
    if count < 1 or dims[axis] % count:
        raise ValueError(phrase("{dims} into {count} parts", dims[axis], count))
    return _many(((*dims[:axis], dims[axis] // count, *dims[axis + 1 :]),), count)


@shape_rule
def split_v(inputs: Inputs, options: Record) -> Shapes:
    dims, sizes = shape_at(inputs, 0), integers_at(inputs, 1)
    axis = from_front(integer_at(inputs, 2), len(dims))
    filled = fill_rest(sizes, dims[axis])
    return tuple((*dims[:axis], size, *dims[axis + 1 :]) for size in filled)


def fill_rest(sizes: Sequence[int], total: int) -> Dims:
    """Sizes that add up to the total, where one of them may be -1 for what is left."""
    rest = total - sum(size for size in sizes if size != -1)
    filled = tuple(rest if size == -1 else size for size in sizes)
    if sum(filled) != total or min(filled, default=-1) < 0 or len(filled) > _MOST_OUTPUTS:
        raise ValueError(phrase("sizes {sizes} of {total}", sizes, total))
    return filled


def _many(shapes: Shapes, count: int) -> Shapes:
    if count > _MOST_OUTPUTS:
        raise ValueError(phrase("{count} outputs", count))
    return shapes * count


@shape_rule
def reshape(inputs: Inputs, options: Record) -> Shapes:
    has_shape = len(inputs) > 1 and inputs[1] is not None
    asked = integers_at(inputs, 1) if has_shape else options.integers("new_shape")
    return (resolve_shape(prod(shape_at(inputs, 0)), asked),)


def resolve_shape(elements: int, asked: Sequence[int]) -> Dims:
    """The shape with its -1 resolved for this many elements."""
    known = prod(size for size in asked if size != -1)
    if -1 in asked and known > 0:
        at = asked.index(-1)
        asked = (*asked[:at], elements // known, *asked[at + 1 :])
    if min(asked, default=0) < 0 or prod(asked) != elements:
        raise ValueError(phrase("{elements} elements into shape {asked}", elements, tuple(asked)))
    return tuple(asked)


@shape_rule
def squeeze(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    asked = {from_front(axis, len(dims)) for axis in options.integers("squeeze_dims")}
    gone = asked or {place for place, size in enumerate(dims) if size == 1}
    if any(dims[place] != 1 for place in gone):
        raise ValueError(phrase("axes {gone} of {dims} are not all 1", gone, dims))
    return (tuple(size for place, size in enumerate(dims) if place not in gone),)


@shape_rule
def expand_dims(inputs: Inputs, options: Record) -> Shapes:
    dims = shape_at(inputs, 0)
    axis = from_front(integer_at(inputs, 1), len(dims) + 1)
    return ((*dims[:axis], 1, *dims[axis:]),)


@shape_rule
def transpose(inputs: Inputs, options: Record) -> Shapes:
    dims, order = shape_at(inputs, 0), integers_at(inputs, 1)
    places = [from_front(place, len(dims)) for place in order]
    if sorted(places) != list(range(len(dims))):
        raise ValueError(phrase("order {order} of {dims}", order, dims))
    return (tuple(dims[place] for place in places),)


@shape_rule
def slice_(inputs: Inputs, options: Record) -> Shapes:
    dims, begin, size = shape_at(inputs, 0), integers_at(inputs, 1), integers_at(inputs, 2)
    return (tuple(map(len, slice_ranges(dims, begin, size))),)


def slice_ranges(dims: Dims, begin: Sequence[int], size: Sequence[int]) -> tuple[range, ...]:
    """The range that SLICE keeps along each dimension; a size of -1 means all the rest."""
    ranges: list[range] = []
    for extent, first, count in zip(dims, begin, size, strict=True):
        last = extent if count == -1 else first + count
        if not 0 <= first <= last <= extent:
            raise ValueError(
                phrase("{count} elements from {first} of {extent}", count, first, extent)
            )
        ranges.append(range(first, last))
    return tuple(ranges)


@shape_rule
def strided_slice(inputs: Inputs, options: Record) -> Shapes:
    begin, end, strides = (integers_at(inputs, place) for place in (1, 2, 3))
    picks = strided_picks(shape_at(inputs, 0), begin, end, strides, options)
    kept = [pick for pick in picks if not isinstance(pick, int)]
    return (tuple(1 if pick is None else len(pick) for pick in kept),)


@shape_rule
def pad(inputs: Inputs, options: Record) -> Shapes:
    dims, amounts = shape_at(inputs, 0), integers_at(inputs, 1)
    sides = zip(dims, amounts[::2], amounts[1::2], strict=True)
    return (tuple(before + size + after for size, before, after in sides),)


@shape_rule
def tile(inputs: Inputs, options: Record) -> Shapes:
    dims, times = shape_at(inputs, 0), integers_at(inputs, 1)
    return (tuple(size * count for size, count in zip(dims, times, strict=True)),)


@shape_rule
def broadcast_args(inputs: Inputs, options: Record) -> Shapes:
    (first,), (second,) = shape_at(inputs, 0), shape_at(inputs, 1)
    return ((max(first, second),),)


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
def range_(inputs: Inputs, options: Record) -> Shapes:
    return ((range_length(*(_number(inputs, place) for place in (0, 1, 2))),),)


def range_length(start: float, limit: float, delta: float) -> int:
    """The number of steps of `delta` from the start to before the limit."""
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
    """The rows of the projection if there is one, otherwise of the gates."""
    has_projection = len(inputs) > 16 and inputs[16] is not None
    weight: Dims = shape_at(inputs, 16 if has_projection else 2)
    units, _ = weight
    return units
