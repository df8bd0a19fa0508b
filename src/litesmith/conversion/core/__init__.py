"""The tools of rules: a source as nodes, and the graph to which rules add ops.

element_types.py  element types as ONNX numbers them
inner_graphs.py   graphs inside nodes, and what they read from outside
lowering.py       the walk over a source graph; `Lowering`, with which a rule adds ops
source.py         `Node`, `SourceGraph`, `SourceModel`: nodes that speak ONNX
"""
