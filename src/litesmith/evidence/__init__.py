"""What was measured, as frozen types, and the one way in which they are written and read.

benching.py     what `bench` leaves in its folder and its log
choosing.py     what `choose` leaves in its folder
codec.py        JSON from these types and back: a key is the name of a field
folder.py       the folder of a command: one writer, files that are whole or not there
gating.py       what `gate` leaves in its folder
json_schema.py  JSON schemas of these types, and of what commands print
log.py          trials in a file, a line each; lines are only ever added
measurement.py  one metric with its samples; a trial of a model
records.py      a score, a speed, what a target takes: what is said of a model wherever it turns up
retraining.py   what `retrain` leaves in its folder
tuning.py       what `tune` leaves in its folder

What Litesmith wrote is read strictly: a key that is missing, unknown or odd is an error with its
file, line and name. What a user hands over is salvaged, and every loss has a reason. Types that
hold what lives in rooms above (`search/tuning/replay.py`) go through the same codec.
"""
