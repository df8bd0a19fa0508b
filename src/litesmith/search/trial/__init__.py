"""One trial: a candidate built, measured and recorded, for `tune` and `choose`.

budget.py        what may be lost, the ceilings, and the verdict on an interval
candidate.py     a recipe that a search may try
data_split.py    the data in three parts that share nothing: calibration, search, held out
folder.py        the folder: log, best so far, one writer at a time
goal.py          the goal, and whether a measurement meets it
remote_build.py  candidates built by workers of a Ray cluster, also ahead of their turn
target_place.py  where the result is to run: how its time is known there, which ops it accepts
trial_facts.py   measurements as records keep them, and back
trial_record.py  what is known of a candidate, from its trial; which is best
trial_runner.py  builds, times and scores a candidate unless it is on record

A failure of the Ray cluster (`Lost`) is not a failure of a candidate: no trial is recorded for it.
"""
