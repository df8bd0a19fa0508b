"""`tune`: from a model and a budget to the best file within it, with the proof.

decision_tree.py    the questions (`BRANCHES`): when each is asked, and which recipes it proposes
micro_tree.py       the questions for microcontrollers (`MICRO_BRANCHES`)
mixed_precision.py  which ops of a quantized model stay float, as few as possible
op_sensitivity.py   what each op loses when quantized, and what float would cost
proof.py            the best candidates on held-out samples, with precise times
replay.py           recipe.json, and the result rebuilt from it, byte for byte
search_state.py     what is known of the candidates so far, and what follows from it
tree_walk.py        the walk through the tree, candidate by candidate
tune_search.py      `tune` itself
tune_summary.py     the search in words and numbers
tune_trials.py      builds, checks, times and scores a candidate unless it is on record

Candidates are ranked on the search part by estimates, not intervals: with a few hundred samples an
interval contains everything. The proof runs at most four candidates on the held-out part, cheapest
first; the intervals widen with each, so that together they hold with 95 %.

The float model is never shipped: it fits every accuracy budget, and `tune` could never say that
nothing fits.
"""
