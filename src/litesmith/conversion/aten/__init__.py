"""ATen's operators as nodes that speak ONNX: a row an operator, without torch itself.

call.py        one call with its arguments by name, and the nodes that are written for it
layers.py      convolutions, products, pools, norms, attention, cells, images of another size
operators.py   all rows
picks.py       values by their places or their size, and back
reductions.py  sums, extremes, norms, softmax; running sums
refused.py     what has no form in LiteRT, and why
shapes.py      views, slices, joins; tensors that are known
values.py      each element by itself
"""
