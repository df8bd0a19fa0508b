"""What the folders of commands hold, read so that anything may be missing.

choose_record.py   what `choose` wrote
read_folder.py     a folder of `tune` as one record
record_words.py    records in words: every number with its interval
retrain_record.py  what `retrain` wrote
tolerant_json.py   values from JSON that a crash or a person may have damaged
tune_record.py     what `tune` wrote, as values

A missing or damaged value is an empty place on the page, never an exception.
"""
