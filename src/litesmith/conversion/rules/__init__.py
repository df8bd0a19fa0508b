"""The rules: LiteRT's counterpart of each operator of the source, one row each.

attention.py       attention, and its companions in language models
bits.py            the bits of integers
control.py         branches and loops
fused.py           operators that onnxruntime's optimizer makes of several
layers.py          convolutions
losses.py          losses
own.py             ops of LiteRT for which ONNX has no name
pools.py           pools
products.py        products of matrices
quantized.py       integers that stand for real numbers
random_numbers.py  numbers drawn at random
recurrent.py       LSTM, GRU, RNN
reductions.py      sums, norms, normalizations, softmax
refused.py         operators without a form in LiteRT, and why
resizing.py        resized images
sampling.py        images read between their pixels
scattering.py      values picked from places, and put into places
selection.py       values chosen by a condition, by their size, by their overlap
shapes.py          moving, cutting, joining
signals.py         spectra and windows
values.py          elementwise operators
windows.py         the windows of convolutions and pools
"""
