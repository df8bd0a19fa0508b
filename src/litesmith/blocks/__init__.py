"""What a network is built of: attention, feed-forward blocks, normalizations, recurrences.

attention.py      products of queries and keys, a softmax, products with values
embeddings.py     tables from which token ids pick rows
feed_forward.py   a wide layer, an activation, a layer back
gelu.py           activations that exporters write as several ops
normalization.py  layer normalization written as several ops
recurrence.py     LSTM and GRU, as one op, in a loop or unrolled
structure.py      all patterns of one graph (`PATTERNS`), and names of ops by them
wiring.py         which op writes a tensor and which ops read it, through ops that only move values

Exporters write the same block in many ways, so a pattern is recognised by what its ops compute
together and not by their order in the file. Integer graphs are read like float ones: a conversion
is an op that only moves values.
"""
