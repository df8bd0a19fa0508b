"""The words of an op's record, by place. All are 64-bit; an address is a number like others."""

WORDS = 40
RECORD_BYTES = 8 * WORDS

# For every op: its kernel's address, its number of units, its input and output by buffer number.
KERNEL, UNITS, IN, OUT, IN_2 = range(5)

# A window that slides over an image, of PRODUCT, DEPTHWISE, AVERAGE and LARGEST.
(
    HEIGHT,
    WIDTH,
    DEPTH,
    WINDOW_H,
    WINDOW_W,
    STRIDE_H,
    STRIDE_W,
    DILATION_H,
    DILATION_W,
    PAD_H,
    PAD_W,
    OUT_H,
    OUT_W,
) = range(24, 37)

# The places of constants, and the limits of results.
WEIGHTS, TABLE, LOW, HIGH = range(5, 9)
# Rows of the output, how many blocks they are cut into, rows of a block.
ROWS, BLOCKS, BLOCK_ROWS = range(9, 12)

# PRODUCT: inputs of a channel, channels; what computes rows; whether they are read in place.
INPUTS, CHANNELS, PANELS, PANEL_BYTES, CUTS, CUT_WORDS, FINISH, ROWS_CALL, IN_PLACE = range(12, 21)

# DEPTHWISE: where blocks of channels begin, pairs of taps, a line of zeros; places side by side
# whose few channels fill a vector, 1 where none do.
STARTS, STARTS_COUNT, PAIRS, ZEROS, BESIDE = range(12, 17)

# TWO: which tile; elements of a row; their steps (0 or 1); outer sizes and steps, outermost first.
IS_PRODUCT, COUNT, STEP_1, STEP_2, IS_FLAT, OFFSET, SIZES = range(12, 19)
STEPS_1, STEPS_2, OUTER = 23, 28, 5

# QUANTIZE: whether by division; OFFSET is that of TWO.
IS_EXACT = 12

# MEAN: outer × reduced × inner; a factor as multiplier and shifts left and right.
REDUCED, INNER, MULTIPLIER, LEFT, RIGHT = range(12, 17)

# ROWS_COPY: bytes of a row, and from row to row on both sides; where the first row goes, and where
# it is taken from.
ROW_BYTES, IN_STRIDE, OUT_STRIDE, OUT_OFFSET, IN_OFFSET = range(12, 17)

# PAD: four sizes of the input, of the output, and what is missing before each.
IN_SIZES, OUT_SIZES, BEFORE = 12, 16, 20

# SPARSE: byte offsets of blocks, where each channel's begin, bias, the two limits; INPUTS and
# CHANNELS are those of PRODUCT. Of int8 also scales; places of blocks among 32; how many
# parts channels are cut into.
NUMBERS, BEGINS, BIAS, LIMITS, SCALES, PLACES, PARTS = range(14, 21)

# Bytes at the start of a thread's scratch that tiles use; what an op needs of its own is behind.
TILE_SCRATCH = 8192
