"""Where work is done: in this process, or by the workers of a Ray cluster.

engine.py  the interface to a Ray cluster, and what `--engine` opens; None is this process

An engine knows nothing of models: it calls functions of the rooms above, by name, on other
machines. No result depends on what other workers do, and results are put together in the order of
the samples, so they equal those of one machine to the last digit.
"""
