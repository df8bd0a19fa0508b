"""Observes a model's tensors on data, and uses the observations: `quantize` with data.

claims.py           claims about a written file (integer only, XNNPACK only), checked on that file
context.py          the `Context` of steps, made from a user's data
four_bits.py        which layers have weights of 4 bits, and in which form kernels are fast
mixed_outputs.py    outputs that mix numbers of different meanings, the small ones lost
observe.py          ranges, histograms and means of tensors, streamed over the samples
observed_cache.py   observations kept on disk, by digests; `cache`
outside_xnnpack.py  ops that run outside XNNPACK, seen in a profiled run
quantize_effort.py  recipes by effort and scheme; `best` tries several
runnable.py         whether a result opens, before it is written, and which op is to blame if not
sequence_forms.py   wider forms where int8 ruins transformers and recurrent networks

Observations are minima, counts and exact sums, so neither the order of samples nor the number of
threads or workers changes a byte of the result.

`--effort best` leaves the default recipe only for one that is closer to the float model beyond
chance, sample by sample: the highest of a few noisy numbers is often not the best.
"""
