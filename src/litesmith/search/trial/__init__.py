"""One trial: a candidate built, measured and recorded, for `tune` and `choose`.

budget.py           the allowed loss, the ceilings, the goal, and whether a measurement meets them
data_split.py       the data in three parts that share nothing: calibration, search, held out
measured_values.py  measurements as the evidence stores them
remote_build.py     models built by workers of a Ray cluster, also ahead of their turn
target_place.py     where the result is to run: how times are known there, which ops it accepts
trial_runner.py     trials on record, never measured twice; the progress of the work
tried_model.py      what is known of a tried model; which model is best

A failure of the Ray cluster (`Lost`) is not a failure of a candidate: no trial is recorded for it.
"""
