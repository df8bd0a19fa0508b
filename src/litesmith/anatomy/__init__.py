"""What is in a model, without running it. `inspect` and `diff` are here.

anonymous.py       a model that behaves like another and reveals no weights, names or labels
findings.py        what stands out, why it matters, the command that acts on it (`RULES`)
footprint.py       parameters, MACs, bytes, peak memory
inspection.py      `inspect`: what is in a model
known_times.py     what kinds of ops take in float and in int8, where nothing was measured
model_diff.py      `diff`: what changed between two models
source_file.py     a model as a user names it, and the size of its file
sparse_speedup.py  what kernels that skip zeros should gain, layer by layer
weights.py         zeros and distinct values of every weight, sparse ones too

That weights are pruned or clustered is nowhere recorded in a file; it is seen in the weights
themselves.
"""
