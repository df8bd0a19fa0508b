"""Ops as differentiable torch code, one row a kind.

elementwise_ops.py  ops on each element, and reductions
layer_ops.py        windows, matrix products, resampling
lift.py             a graph as torch code, on any number of samples; the table of all rows
recurrent.py        recurrent networks; states start at zero
shape_ops.py        ops that move elements without computing

`bench/lift.py` compares lifted models with LiteRT.
"""
