"""One trial: a candidate built, measured and recorded, for `tune` and `choose`.

budget.py           what may be lost, the ceilings, the goal, and whether a measurement meets it
data_split.py       the data in three parts that share nothing: calibration, search, held out
measured_values.py  measurements as evidence keeps them
remote_build.py     models built by workers of a Ray cluster, also ahead of their turn
target_place.py     where the result is to run: how its time is known there, which ops it accepts
trial_runner.py     trials on record, never measured twice; how far the work has come
tried_model.py      what is known of a model that was tried; which is best

A failure of the Ray cluster (`Lost`) is not a failure of a candidate: no trial is recorded for it.
"""
