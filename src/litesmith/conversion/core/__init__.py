"""What rules work with: a source as nodes, and the graph that they add ops to.

element_types.py  element types as ONNX numbers them
inner_graphs.py   graphs inside nodes, and what they read from outside
lowering.py       the walk over a source graph; `Lowering`, what a rule adds ops with
source.py         `Node`, `SourceGraph`, `SourceModel`: nodes that speak ONNX
"""
