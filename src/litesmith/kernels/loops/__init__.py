"""What numba compiles: loops over units of work, and the tiles inside them.

loops_depthwise.py    depthwise convolutions
loops_product.py      rows times weights
loops_sparse.py       sparse float32 layers
loops_sparse_int8.py  sparse int8 layers
loops_values.py       ops without weights
program_loop.py       the one function that runs a program
tiles_product.py      innermost loops of layers with weights
tiles_sparse.py       innermost loops of sparse float32 layers
tiles_sparse_int8.py  innermost loops of sparse int8 layers
tiles_values.py       innermost loops of ops without weights, 16 elements at a time

One instruction, multiply and add pairs, serves AVX-512, AVX2 and SSE2; other processors get vectors
without it, at a third of the speed. Sums are 32 bits wide and cut where they could overflow, so the
bits are LiteRT's for any input.

Sparse int8 layers end in float32 as XNNPACK's do on x86, to the bit. With many rows, words of four
inputs are transposed, so one instruction multiplies a block at 16 places; with few, each of 16
channels takes its next block out of 32 that lie together.
"""
