"""The rules: what LiteRT has for each operator of the source, a row each.

layers.py      convolutions, products of matrices, pools
own.py         what LiteRT has and ONNX has not
reductions.py  sums, norms, normalizations, softmax
resampling.py  images of another size
shapes.py      moving, cutting, joining, picking
values.py      each element by itself
"""
