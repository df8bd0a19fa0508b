"""Arrays in, arrays out: reference kernels, and the mathematics of quantization.

affine.py              real numbers as integers and back
array_files.py         arrays from .npy and .npz files, whose headers may be false
arrays.py              element types and fused activations
codebook.py            codes of the int8 grid that stand for many numbers
convolve.py            windows and matrix products
elementwise.py         each element by itself
kernels.py             the kernel table (`KERNELS`)
minimum_cut.py         the minimum cut of a network
one_core.py            products of small matrices without threads
patches.py             the input rows that a layer's weights multiply, and their moments
picking.py             by index: gather, scatter, find
ranges.py              statistics of a tensor, and the range to quantize it with
recurrent.py           the cell of an LSTM, step by step
reduce.py              along dimensions
resize.py              images resampled
rounding.py            weights rounded to codes by their effect on a layer's outputs
shaping.py             moving, joining, cutting, repeating
softmax_regression.py  the linear scores that separate classes best, solved
sparse.py              masks of weights, and what they cost
sparse_encoding.py     constants that list only what is not 0

A kernel is called as `kernel(options, *arrays)`, is exact, and raises `ValueError` for whatever the
runtime refuses. `tests/test_every_op.py` compares every kernel with LiteRT.
"""
