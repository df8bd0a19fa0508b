"""The rules: what LiteRT has for each operator of the source, a row each.

attention.py   attention, and what stands beside it in language models
bits.py        the bits of integers
chance.py      numbers drawn at random
layers.py      convolutions
losses.py      losses
pools.py       pools
products.py    products of matrices
reductions.py  sums, norms, normalizations, softmax
refused.py     what has no form in LiteRT, and why
resampling.py  images of another size
sampling.py    images read between their pixels
scattering.py  values picked from places, and put into places
selection.py   values chosen by a condition, by their size, by what they overlap
shapes.py      moving, cutting, joining
signals.py     spectra and windows
values.py      each element by itself
"""
