"""Measurements as frozen types, and the one way of writing and reading them.

bench_record.py    the folder and the log of `bench`
choose_record.py   the folder of `choose`
codec.py           JSON from these types and back: a key is the name of a field
folder.py          the folder of a command: one writer, files that are whole or absent
gate_record.py     the folder of `gate`
json_schema.py     JSON schemas of these types, and of what commands print
log.py             trials in a file, one per line; lines are only ever added
measurement.py     one metric with its samples; a trial of a model
records.py         scores, speeds and placements, as every command stores them
retrain_record.py  the folder of `retrain`
tune_record.py     the folder of `tune`

Files that Litesmith wrote are read strictly: a missing, unknown or odd key is an error that names
the file, the line and the key. Files that a user hands over are salvaged, with a reason for every
loss. Types of higher rooms (`search/tuning/replay.py`) go through the same codec.
"""
