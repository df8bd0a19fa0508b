"""How long a model takes, and which of several is faster: the measurements behind `bench`.

bench_files.py     the files of `bench`: rows of a table, and a log with every sample
chosen_cores.py    which cores threads run on, where some cores are faster
clock.py           the clock of every measurement
cluster_timing.py  times from devices of a Ray cluster
copies.py          the cost of feeding inputs and reading outputs
host.py            the machine, and what makes it noisy
latency.py         latency with intervals, ratios, verdicts
loaded_models.py   a model while it is loaded: here, over ssh, on a phone
memory.py          a model's own peak memory, in a child process
statistics.py      percentiles, intervals, verdicts
threads.py         how many threads are worth using, alone and beside other programs
turns.py           models that take turns

Two models are never compared across two runs. The place of a model in memory makes it faster or
slower for as long as it lies there, so each block loads all models anew, in mirrored order, and
intervals are taken over blocks. A verdict needs the whole interval beyond 1 %, and a machine that
was quiet enough. Every number of a run comes from one `TurnTimes`, so no two can disagree.
"""
