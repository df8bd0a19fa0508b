"""One model or two, op by op: the facts of each op, pairs of ops, and blocks that fold.

differing_samples.py  samples that two models answer differently, and the layer where they part
gather_view.py        everything on a page of graphs, as one value (`GraphView`)
graph_rows.py         a graph of both models as rows from top to bottom
keep_float.py         which ops can be kept float, and which are
loss_path.py          the path along which a quantized model loses most
model_facts.py        a model: its ops, times, weights, and the accelerators that take each op
op_facts.py           the facts of each op in a file, and the histogram of its weights
op_measures.py        the time and the error of each op: measured, or else predicted
op_pairs.py           which op of one model corresponds to which of another, and how it changed
row_blocks.py         rows that share a name or repeat, as blocks inside blocks
row_order.py          one order for the ops of both models, in which every value is written before
                      it is read

A row is an op of the first model, of the second, or a pair of both. Pages draw these values;
nothing here knows of HTML.
"""
