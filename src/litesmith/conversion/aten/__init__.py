"""ATen's operators as nodes that speak ONNX: one row per operator, without torch itself.

call.py        one call with its arguments by name, and the nodes written for it
layers.py      convolutions, products, pools, norms, attention, cells, resized images
operators.py   all rows
picks.py       values chosen by their places or their size, and put back
reductions.py  sums, extremes, norms, softmax; running sums
refused.py     operators without a form in LiteRT, and why
shapes.py      views, slices, joins; known tensors
values.py      elementwise operators
"""
