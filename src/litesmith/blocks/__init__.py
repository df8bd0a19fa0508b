"""What a network is built of: attention, feed-forward blocks, normalizations, recurrences.

attention.py      products of queries and keys, a softmax, products with values
embeddings.py     tables that numbers of tokens pick rows from
feed_forward.py   a wide layer, an activation, a layer back
gelu.py           activations that exporters leave in pieces
normalization.py  layer normalization in pieces
recurrence.py     LSTM and GRU, as one op, in a loop or unrolled
structure.py      all of it, found in one graph (`PATTERNS`), and names of ops by it
wiring.py         who makes a tensor and who reads it, through ops that only move values

Exporters write the same block in many ways, so that a pattern is found by what its ops compute with
each other and not by their order in the file. Integer graphs are read like float ones: a conversion
is an op that only moves values.
"""
