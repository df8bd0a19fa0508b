"""Kernels of our own, compiled on the user's machine: arrays in, arrays out, no graph above them.

int16 data with int8 weights, bit by bit as LiteRT's reference kernels; sparse layers of float32,
and of int8, bit by bit as XNNPACK's.
Only `emit`, `tiles*` and `loops*` import numba, and only `native` imports those, when asked.
"""
