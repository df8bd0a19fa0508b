"""Steps that keep the results and drop the waste, and steps that change the interface.

axis_order.py  an op on tensors whose axes are stored in another order
borders.py     `borders`: the model's own inputs and outputs in other types and sizes
cleanup.py     `cleanup`: everything that can go without changing an output bit (`_NO_OPS`)
fold.py        `fold`: whatever depends on constants alone, computed now
fuse.py        `fuse`: arithmetic around a layer goes into it (`_RULES`)
hoist.py       `hoist`: inputs of an unrolled recurrence, all steps at once
moves.py       the part of `cleanup` for transposes, and for conversions around moves
relayout.py    `relayout`: the order of axes, solved over the whole graph
resize.py      `resize`: inputs of fixed sizes, and the sizes that follow
upgrade.py     `upgrade`: a legacy uint8 model as int8

`fold` leaves SHAPE alone while an input has a free dimension: folding it would fix the size.
`upgrade` keeps uint8 inputs and outputs by default, because callers rely on them.
"""
