"""Litesmith's own kernels, compiled on the user's machine: the target `cpu:N:litesmith`.

compiled.py          the functions of this room as machine code, compiled on first use
graph_programs.py    ops of a graph as programs; why an op has no kernel
litesmith_target.py  the delegate that claims ops, or a whole graph without LiteRT
plug.py              what this room offers the rest of the package
loops/               the code that numba compiles
programs/            weights packed, tables, programs; no loops

LiteRT has only reference kernels for int16 data with int8 weights, and multiplies zeros like any
number. These kernels replace such ops as an unchanged model opens, with the same bits. The room
needs the extra `jit`, and can be taken away: the rest of the package knows `plug.py` alone, through
one row of `plugins.py`.

Numba, not C++: tiles of 6 × 64 sums emitted as LLVM's vector instructions reach 86 to 95 % of an
AVX-512 core (109 of 117 GMAC/s); the same tiles in g++ 12 spill and reach half, plain loops reach 3
GMAC/s, LiteRT 2. Small functions called by address compile in 8 s; one large one took 52.

Tried and left out: blocks of 1×16 gain nothing over 1×4 (0.97 to 1.13 times the time at 90 %
zeros); 2:4 needs a permutation for each product and takes 1.2 to 2.1 times as long as dense.
"""
