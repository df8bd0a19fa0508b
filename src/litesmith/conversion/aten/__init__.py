"""ATen's operators as nodes that speak ONNX: a row an operator, without torch itself.

call.py       one call with its arguments by name, and the nodes that are written for it
layers.py     convolutions, products, pools, norms, attention, cells, images of another size
operators.py  all rows
shapes.py     views, slices, joins, picks; tensors that are known
values.py     each element by itself, and reductions
"""
