"""Programs: kernels in sequence on one piece of memory, and the data that they read.

cost_factors.py    how this machine differs from that of the constants, kept in the cache
learn_costs.py     a short calibration that learns the difference
pack_weights.py    weights in the order of the tiles, dense and sparse
prepare_layers.py  int16x8 layers: packed weights, tables, records
prepare_sparse.py  sparse layers
prepare_values.py  ops without weights
program.py         kernels in sequence, their buffers in one piece of memory; helper threads
record_layout.py   the words of an op's record, by place
rescale.py         scales as integers, functions of one int16 as tables, by the runtime's rules
sparse_parts.py    layers that could be sparse, their codes, and their expected times

A record is a row of 64-bit words: what a compiled loop reads of its op. A scale of zero, or a bias
without one, is left to LiteRT.
"""
