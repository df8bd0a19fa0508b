"""Steps that store, and compute, in smaller numbers.

attention_range.py  how low scores of attention matter
correct.py          `correct`: mean and gain of every channel put back
equalize.py         `equalize`: channels of unlike size made alike
float_side.py       what the float model gives at each layer, a few layers at a time
integer_graph.py    the graph on integers; conversions only where float and integer meet
integer_lstm.py     an LSTM that is one op, in the integers of the runtime's kernel
layer_rows.py       what the weights of a layer are multiplied with, as rows
level.py            `level`: channels that a layer writes brought to one size
masks.py            `masks`: numbers that hide places from attention, cut to what is enough
paired_walk.py      a quantized model beside the float one, layer by layer
qat.py              `qat`: quantize, then train
quantize.py         `quantize`: any scheme
round.py            `round`: codes by a layer's outputs, not by its weights
scales.py           one scale a tensor, solved over the whole graph
smooth.py           `smooth`: large channels behind a normalization, moved into weights
stored_weights.py   small weights while activations stay float
track.py            a model run part by part over all samples

An integer layer needs its bias at the scale of its products. Where a channel has next to no
weights, that scale is so fine that the bias leaves int32: the weight's scale is raised until it
fits. XNNPACK does not open a model in which a step of the products is 256 steps of the output or
more: the output's range is widened.

`correct` uses that a layer is linear before its activation: the mean output is the output of the
mean input, an exact sum of codes. The gain of each channel goes into the scale of its weights and
costs nothing. `round` solves for weights that give, on the inputs the quantized model really has,
what the float layer gives on its own; a channel that comes out farther than with its nearest codes
keeps those.
"""
