"""Programs: kernels in a row on one piece of memory, and what they read.

break_even.py      from which share of zeros a sparse layer is faster than dense
int16_tables.py    functions of one int16 as tables
pack_weights.py    weights in the order of the tiles, dense and sparse
prepare_layers.py  int16x8 layers: packed weights, tables, records
prepare_sparse.py  sparse layers
prepare_values.py  ops without weights
program.py         kernels in a row, their buffers in one piece of memory
record_layout.py   the words of an op's record, by place
rescale.py         scales as integers, by the runtime's rules
sparse_codes.py    sums of int8 products to codes, as XNNPACK does on x86
sparse_parts.py    layers that could be sparse, and what is expected of them
thread_pool.py     threads that take units of work without the interpreter

A record is a row of 64-bit words: what a compiled loop reads of its op. A scale of zero, or a bias
without one, is left to LiteRT.
"""
