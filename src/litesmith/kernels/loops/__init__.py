"""What numba compiles: loops over units of work, and the tiles inside them.

loops_layers.py  layers of int16 data: rows times weights, depthwise convolutions
loops_sparse.py  sparse layers of float32 and int8
loops_values.py  ops without weights
program_loop.py  the one function that runs a program

Each file begins with its tiles, the innermost loops, emitted as LLVM's vector instructions.

One instruction, multiply and add pairs, serves AVX-512, AVX2 and SSE2; other processors get vectors
without it, at a third of the speed. Sums are 32 bits wide and cut where they could overflow, so the
bits are LiteRT's for any input.

Sparse int8 layers end in float32 as XNNPACK's do on x86, to the bit. With many rows, words of four
inputs are transposed, so one instruction multiplies a block at 16 places; with few, each of 16
channels takes its next block out of 32 that lie together.
"""
