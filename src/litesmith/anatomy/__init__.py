"""The contents of a model, without running it. `inspect` and `diff` are defined here.

anonymous.py       a model that behaves like another and reveals no weights, names or labels
findings.py        what stands out, why it matters, the command that acts on it (`RULES`)
footprint.py       parameters, MACs, bytes, peak memory
inspection.py      `inspect`: what is in a model
known_times.py     typical times of kinds of ops in float and int8, where nothing was measured
model_diff.py      `diff`: what changed between two models
source_file.py     a model as a user names it, and the size of its file
sparse_speedup.py  the expected gain of kernels that skip zeros, layer by layer
weights.py         zeros and distinct values of every weight, sparse ones too

No file records that its weights are pruned or clustered; the weights themselves show it.
"""
