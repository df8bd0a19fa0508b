"""The rules: what LiteRT has for each operator of the source, a row each.

attention.py       attention, and what stands beside it in language models
bits.py            the bits of integers
control.py         branches and loops
fused.py           what onnxruntime's optimizer makes of several operators
layers.py          convolutions
losses.py          losses
own.py             what LiteRT has and ONNX has no word for
pools.py           pools
products.py        products of matrices
quantized.py       integers that stand for real numbers
random_numbers.py  numbers drawn at random
recurrent.py       LSTM, GRU, RNN
reductions.py      sums, norms, normalizations, softmax
refused.py         what has no form in LiteRT, and why
resizing.py        images of another size
sampling.py        images read between their pixels
scattering.py      values picked from places, and put into places
selection.py       values chosen by a condition, by their size, by what they overlap
shapes.py          moving, cutting, joining
signals.py         spectra and windows
values.py          each element by itself
"""
