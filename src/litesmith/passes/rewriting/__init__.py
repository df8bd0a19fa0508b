"""Steps that express a model by other ops.

replace.py         `replace`: ops become one custom op; patterns of ops as text
rewrite.py         `rewrite`: for accelerators that know only some ops
rewrite_layers.py  convolutions, fully connected layers, means, pools, sizes
rewrite_parts.py   the building blocks of rewrites
rewrite_shapes.py  ops that move values
rewrite_types.py   indices in int32, weights in float
rewrite_values.py  activations and arithmetic

A rewrite is a row in one of three tables (`WAYS` of `rewrite.py` joins them) and says by how much
results may differ, where they may. `doctor --for TARGET` tries them all.
"""
