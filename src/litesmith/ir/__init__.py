"""The core values, `Model`, `Graph`, `Op`, `Tensor` and `Quant`, and the op table.

build.py           `Builder`: models in code
check.py           the rules that every valid model obeys (`RULES`)
dtype.py           element types
edit.py            new graphs from old ones
macs.py            multiply-accumulates of a call
match.py           chains of ops in a graph
model_text.py      models as text, one line per op
op_row.py          the type of a row of the op table
op_rows.py         the rows
ops.py             the op table
partition.py       parts of a graph that can run as one
shape_rule.py      the parts of shape rules: careful access to the inputs of a call
shapes.py          output shapes by the inputs and options of a call
softmax_scores.py  the scores behind a softmax output
sparse_places.py   constants without their zeros: whether their places fit their shapes
types.py           the types
versions.py        integer kernels of the stock runtime, with op versions
window.py          geometry of windows and strided slices

Tensors are compared by identity, because names may repeat. Ops refer to tensors, never to numbers;
numbers exist only while a file is written. `Graph.tensors` keeps the file's order, so a copy has
the same tensor numbers; `regraph` in `edit.py` is the one function that maintains it.

A fact about an op is a column of its row. How to add an op: `docs/add-an-op.md`.
"""
